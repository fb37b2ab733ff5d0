// Kernels compute whole tiles: what they read of x and store to y is still only what is there. Each tensor ends, or begins, at a
// page that may not be touched.
#ifdef __linux__

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/guarded_memory.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

class Bounds : public testing::TestWithParam<std::string> {
  protected:
    Bounds()
        : problem_(parse_problem(GetParam())), inputs_(draw(problem_, 1)), expected_(reference(problem_, inputs_)) {}

    Status create(const Options &options, Plan *plan) const {
        return Plan::create(problem_, options, inputs_.w.data(), inputs_.b ? inputs_.b->data() : nullptr, plan);
    }

    void run(const Plan &plan) const {
        const std::size_t size = convt_dtype_size(problem_.dtype),
                          x_bytes = static_cast<std::size_t>(inputs_.x.size()) * size;
        for (const bool at_end : {true, false}) {
            Tensor y(problem_.dtype, plan.y_shape());
            const std::size_t y_bytes = static_cast<std::size_t>(y.size()) * size;
            const BetweenPages x_pages(x_bytes, at_end), y_pages(y_bytes, at_end);
            ASSERT_TRUE(x_pages.data() && y_pages.data()) << "no memory";
            std::memcpy(x_pages.data(), inputs_.x.data(), x_bytes);
            ASSERT_TRUE(plan.run(x_pages.data(), y_pages.data()));
            std::memcpy(y.data(), y_pages.data(), y_bytes);
            EXPECT_TRUE(agrees(y, expected_));
        }
    }

    // Calls f with options of each ISA of this CPU.
    template<typename F>
    void for_each_isa(const F &f) const {
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            if (!convt_isa_supported(i)) continue;
            SCOPED_TRACE(convt_isa_name(i));
            Options options = {};
            options.isa = convt_isa_name(i);
            f(options);
        }
    }

  private:
    Problem problem_;
    Inputs inputs_;
    Expected expected_;
};

TEST_P(Bounds, OnlyWhatIsThereIsTouched) {
    for_each_isa([&](const Options &options) {
        Plan plan;
        const Status status = create(options, &plan);
        ASSERT_TRUE(status) << status.message();
        run(plan);
    });
}

// x in place and copied, ends of rows, one tap, tiles of all families; channels that lie more than half a page apart.
INSTANTIATE_TEST_SUITE_P(Plan, Bounds,
                         testing::Values("f32 nchw n1 ic64 oc16 i3000 k1", "f32 nchw n2 ic64 oc8 i1201 k1 bias",
                                         "f32 nchw n1 ic70 oc1 i700 k16 s8", "f32 nchw n1 ic64 oc2 i30x41 k3x3 bias",
                                         "f32 nchw n1 ic32 oc8 i40x41 k1x1", "f32 nchw n1 ic16 oc24 i9x9 k2x2 s2x2",
                                         "f32 nchw n1 ic16 oc24 i9x17 k4x4 s2x2 p1x1_1x1",
                                         "f32 nhwc n1 ic16 oc24 i9x17 k4x4 s2x2 p1x1_1x1",
                                         "f32 nhwc n1 ic16 oc64 i9x61 k3x3 s2x2 p1x1_1x1 bias",
                                         "f32 nhwc n1 ic16 oc64 i5x50 k3x3 s1x1 d2x2 p2x2_2x2",
                                         "f32 nhwc n1 ic64 oc40 i9x17 k1x1", "f32 nchw n1 ic3 oc1 i9x37 k9x9 s3x3",
                                         "f32 nchw n1 g16 ic16 oc16 i9x37 k4x4 s2x2",
                                         "f32 nhwc n1 g21 ic21 oc21 i9x9 k4x4 s2x2", "f64 nchw n1 ic64 oc8 i1501 k1",
                                         "f16 nchw n1 ic64 oc8 i701 k1"),
                         [](const testing::TestParamInfo<std::string> &c) { return std::to_string(c.index); });

// All that can compute a product, in place where that pays, which differs by machine and estimate.
class BoundsOfProducts : public Bounds {};

TEST_P(BoundsOfProducts, OnlyWhatIsThereIsTouched) {
    for_each_isa([&](Options options) {
        Plan chosen;
        ASSERT_TRUE(create(options, &chosen));
        std::size_t tried = 0;
        for (std::size_t i = 0; i < convt_plan_candidate_count(chosen.get()); i++) {
            options.variant = convt_plan_candidate(chosen.get(), i);
            SCOPED_TRACE(options.variant);
            Plan plan;
            if (!create(options, &plan)) continue; // an algorithm that does not support this problem
            run(plan);
            tried++;
        }
        EXPECT_GT(tried, 3u);
    });
}

INSTANTIATE_TEST_SUITE_P(Plan, BoundsOfProducts,
                         testing::Values("f32 nchw n1 ic32 oc8 i1201 k1", "f32 nchw n2 ic20 oc26 i9x41 k1x1 bias",
                                         "f32 nchw n1 g3 ic48 oc15 i500 k1", "f64 nchw n1 ic32 oc9 i601 k1"),
                         [](const testing::TestParamInfo<std::string> &c) { return std::to_string(c.index); });

} // namespace
} // namespace convtranspose::test

#endif // __linux__
