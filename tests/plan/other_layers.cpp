#include "plan/other_layers.h"

#include <cmath>

#include <gtest/gtest.h>

namespace convtranspose::test {

Plan plan_of(const Problem &problem, const Inputs &inputs, const Options &options) {
    Plan plan;
    const Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    EXPECT_TRUE(status) << status.message();
    return plan;
}

void expect_infinities_reach_what_they_must(const std::vector<std::string> &problems) {
    for (const std::string &line : problems) {
        const Problem problem = parse_problem(line);
        SCOPED_TRACE(line);
        Inputs inputs = draw(problem, 5);
        inputs.x.set(inputs.x.size() / 2, static_cast<double>(INFINITY));
        inputs.x.set(3, NAN);
        for (const bool in_w : {false, true}) {
            if (in_w) inputs.w.set(inputs.w.size() / 3, -static_cast<double>(INFINITY));
            Tensor y;
            const Status status = run(problem, inputs, Options{}, &y);
            ASSERT_TRUE(status) << status.message();
            EXPECT_TRUE(agrees(y, reference(problem, inputs)));
        }
    }
}

void expect_agreement_when_reshaped(const std::vector<std::string> &problems, SpatialAxis axis,
                                    const std::vector<std::int64_t> &extents) {
    for (const std::string &line : problems) {
        Problem problem = parse_problem(line);
        if (problem.attributes.output_shape) continue;
        const Inputs inputs = draw(problem, 7);
        const Plan from = plan_of(problem, inputs);
        const std::size_t first = problem.layout == CONVT_CHANNELS_LAST ? 1 : 2, axes = problem.x_shape.size() - 2,
                          at = axis == SpatialAxis::kFirst ? first : first + axes - 1;
        for (const std::int64_t extent : extents) {
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
            Tensor y(problem.dtype, plan.y_shape());
            ASSERT_TRUE(plan.run(other.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, reference(problem, other)));
        }
    }
}

} // namespace convtranspose::test
