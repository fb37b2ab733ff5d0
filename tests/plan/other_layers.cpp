#include "plan/other_layers.h"

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "reference/effort.h"

namespace convtranspose::test {

Options by_algorithm(const char *name, int threads) {
    Options options{};
    options.variant = name;
    options.threads = threads;
    options.all_threads = 1;
    return options;
}

Plan plan_of(const Problem &problem, const Inputs &inputs, const Options &options) {
    Plan plan;
    const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    EXPECT_TRUE(status) << status.message();
    return plan;
}

void expect_agreement_on_all_isas(const std::vector<std::string> &problems, const Options &given) {
    constexpr std::uint64_t kSeed = 3;
    for (const std::string &line : problems) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, kSeed);
        const Expected expected = reference(problem, inputs);
        for (std::size_t isa = 0; isa < convt_isa_count(); isa++) {
            if (!convt_isa_supported(isa)) continue;
            Tensor alone;
            for (const int threads : {1, 3}) {
                Options options = given;
                options.threads = threads;
                options.all_threads = 1;
                options.isa = convt_isa_name(isa);
                SCOPED_TRACE(describe(problem, kSeed, options));
                const Plan plan = plan_of(problem, inputs, options);
                EXPECT_EQ(plan.algorithm(), given.variant) << plan.explain();
                Tensor y(problem.dtype, plan.y_shape());
                ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
                EXPECT_TRUE(agrees(y, expected));
                if (threads == 1) alone = y;
                EXPECT_TRUE(y == alone);
            }
        }
    }
}

void expect_infinities_reach_what_they_must(const std::vector<std::string> &problems, const Options &options) {
    for (const std::string &line : problems) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        Inputs inputs = draw(problem, 5);
        inputs.x.set(inputs.x.size() / 2, static_cast<double>(INFINITY));
        inputs.x.set(3, NAN);
        for (const bool in_w : {false, true}) {
            if (kOneIn > 1 && in_w == ((&line - problems.data()) % 2 == 0)) continue;
            if (in_w) inputs.w.set(inputs.w.size() / 3, -static_cast<double>(INFINITY));
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
    }
}

void expect_agreement_when_reshaped(const std::vector<std::string> &problems, SpatialAxis axis,
                                    const std::vector<std::int64_t> &extents, const Options &options) {
    std::size_t turn = 0;
    for (const std::string &line : problems) {
        turn++; // of its extents, where not all are tried
        Problem problem = parse_problem(line);
        if (problem.attributes.output_shape) continue;
        const Inputs inputs = draw(problem, 7);
        const Plan from = plan_of(problem, inputs, options);
        const std::size_t first = problem.layout == CONVT_CHANNELS_LAST ? 1 : 2, axes = problem.x_shape.size() - 2,
                          at = axis == SpatialAxis::kFirst ? first : first + axes - 1;
        for (const std::int64_t extent : extents) {
            if ((turn + static_cast<std::size_t>(&extent - extents.data())) % kOneIn != 0) continue;
            problem.x_shape[at] = extent;
            problem.x_shape[0] = 2;
            SCOPED_TRACE(describe(problem));
            Plan plan;
            const Status status = from.reshape(problem.x_shape, &plan);
            if (status.code() == CONVT_INVALID_ARGUMENT) continue; // cropped to nothing
            ASSERT_TRUE(status) << status.message();
            Inputs other = draw(problem, 9);
            other.w = inputs.w;
            other.b = inputs.b;
            Tensor y(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
            ASSERT_TRUE(plan.run(other.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, reference(problem, other)));
        }
    }
}

void expect_agreement_of_crops(const std::vector<std::string> &problems, const Options &options, CropOrder order,
                               Values values) {
    for (const std::string &line : problems) {
        Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        const Inputs inputs = draw(problem, 11, values);
        Tensor plain;
        ASSERT_TRUE(run(problem, inputs, options, &plain));
        Expected expected = reference(problem, inputs);
        for (double &value : expected.value) value = std::fmax(value, 0.0);
        problem.post_ops = {0, CONVT_RELU, 0, 0};
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan));
        const Shape shape = plan.y_shape();
        Shape larger = shape, strides(shape.size(), 1);
        for (std::size_t i = 1; i < shape.size(); i++) larger[i] += 3;
        for (std::size_t i = shape.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * larger[i + 1];
        Tensor parent(problem.dtype, larger);
        std::vector<char> memory(plan.workspace_bytes() + 64);
        void *const workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
        const TensorView y = {parent.data(), problem.dtype, shape, strides};
        const Status status = plan.run(inputs.x.view(), y, workspace);
        ASSERT_TRUE(status) << status.message();
        std::int64_t written = 0;
        for (std::int64_t i = 0; i < parent.size(); i++) written += !std::isnan(parent.get(i));
        EXPECT_EQ(written, plain.size());
        for (std::int64_t i = 0; i < plain.size(); i++) {
            std::int64_t rest = i, at = 0;
            for (std::size_t d = shape.size(); d-- > 0; rest /= shape[d]) at += rest % shape[d] * strides[d];
            if (order == CropOrder::kSame) {
                ASSERT_EQ(parent.get(at), std::fmax(plain.get(i), 0)) << i;
            }
            plain.set(i, parent.get(at));
        }
        EXPECT_TRUE(agrees(plain, expected));
    }
}

} // namespace convtranspose::test
