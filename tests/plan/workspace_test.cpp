// The workspace of a plan is in proportion to its tensors, whatever the attributes are.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/random_problem.h"
#include "reference/reference.h"
#include "runtime/base/shape.h"

namespace convtranspose::test {
namespace {

// Channels are filled up to whole tiles, of 128 at most, and elements are widened to at most 8 bytes.
constexpr std::int64_t kBytesPerElement = 1024, kBytesBesides = 64 << 10;

// A layer of small tensors and any attributes: of any type, and as often as not with one input channel in each group.
Problem draw_layer(Random *random) {
    Problem p = far_problem(random);
    if (random->integer(0, 1)) {
        p.w_shape[0] = p.attributes.group;
        p.x_shape[p.layout == CONVT_CHANNELS_FIRST ? 1 : p.x_shape.size() - 1] = p.attributes.group;
    }
    if (random->integer(0, 1)) {
        p.dtype = random->pick<convt_dtype>({CONVT_U8, CONVT_S8});
        quantize(&p, random_quantized_as(p.dtype, random));
    }
    return p;
}

// Plans with constant weights, which are packed before, and with weights of each run, which are packed in the workspace.
void expect_in_proportion(const Problem &problem, const Inputs &inputs, const Options &options) {
    for (const bool constant : {true, false}) {
        Plan plan;
        const Status status = Plan::create(problem, options, constant ? inputs.w.data() : nullptr,
                                           constant && inputs.b ? inputs.b->data() : nullptr, &plan);
        if (options.variant && status.code() == CONVT_UNSUPPORTED) continue;
        SCOPED_TRACE(describe(problem, 0, options) + (constant ? "" : ", weights with the run"));
        ASSERT_TRUE(status) << status.message();
        const std::int64_t elements = volume(problem.x_shape) + volume(problem.w_shape) + volume(plan.y_shape());
        EXPECT_LE(static_cast<std::int64_t>(plan.workspace_bytes()),
                  options.threads * (kBytesBesides + kBytesPerElement * elements));
    }
}

TEST(Workspace, IsInProportionToTheTensors) {
    constexpr std::uint64_t kSeed = 20;
    constexpr int kLayers = 1500 / kOneIn, kVariantsOfEach = 3;
    SCOPED_TRACE(testing::Message() << "seed " << kSeed);
    Random random(kSeed);
    for (int i = 0; i < kLayers; ++i) {
        const Problem problem = draw_layer(&random);
        const Inputs inputs = draw(problem, 0);
        Options options{};
        options.threads = static_cast<int>(random.integer(1, 3));
        options.all_threads = 1;
        Plan chosen;
        ASSERT_TRUE(Plan::create(problem, options, nullptr, nullptr, &chosen)) << describe(problem, 0, options);
        expect_in_proportion(problem, inputs, options);
        const auto count = static_cast<std::int64_t>(convt_plan_candidate_count(chosen.get()));
        for (int k = 0; k < kVariantsOfEach && count > 0; ++k) {
            const std::string variant =
                convt_plan_candidate(chosen.get(), static_cast<std::size_t>(random.integer(0, count - 1)));
            options.variant = variant.c_str();
            expect_in_proportion(problem, inputs, options);
        }
        if (HasFailure()) return;
    }
}

// Taps in pairs that are too far apart for a smaller x: its plan has the weights packed anew, without pairs.
TEST(Workspace, PairsEndWhereTheyAreTooFarApart) {
    struct Case {
        const char *line;
        std::size_t axis; // of x
        std::int64_t smaller;
    };
    for (const Case &c : {Case{"u8 nchw n1 g8 ic8 oc8 i301 k4 s1 p155_155 d100 bias ws8 yu8 zx3 zw0 zy7", 2, 20},
                          Case{"s8 nhwc n2 g70 ic70 oc70 i301 k4 s1 p155_155 d100 bias ws8 yu8 zx-3 zw0 zy7", 1, 20},
                          Case{"s8 nhwc n1 g1 ic1 oc1 i8 k4 s2 p4_6291459 d2097154 ws8 yu8 zx-68 zw-68 zy60", 1, 8}}) {
        SCOPED_TRACE(c.line);
        const Problem problem = parse_problem(c.line);
        const Inputs inputs = draw(problem, 1);
        Plan plan, small;
        ASSERT_TRUE(Plan::create(problem, Options{}, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan));
        std::vector<std::int64_t> x_shape = problem.x_shape;
        x_shape[c.axis] = c.smaller;
        const Status status = plan.reshape(x_shape, &small);
        ASSERT_TRUE(status) << status.message();
        EXPECT_LE(small.workspace_bytes(), std::size_t{1} << 17);
    }
}

} // namespace
} // namespace convtranspose::test
