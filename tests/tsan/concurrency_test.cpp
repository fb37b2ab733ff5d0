// Everything that may be done at once, done at once, for the thread sanitizer to look at: plans made, run, reshaped and explained,
// each by a thread and some by all of them, while kernels are added.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/quantized.h"
#include "reference/reference.h"
#include "runtime/kernels/kernel_tables.h"

namespace convtranspose::test {
namespace {

constexpr int kThreads = 6, kRounds = 6;

// Ways to compute that differ in what threads share: tiles, strips, rounds of images, sums, layers one after another.
const std::vector<std::string> kProblems = {
    "f32 nchw n2 g1 ic16 oc24 i19x17 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n3 g1 ic16 oc24 i12x9 k3x3 s2x2",
    "f32 nchw n3 g1 ic100 oc2 i6x9 k7x7 s1x1 p3x3_3x3 bias",
    "f32 nchw n1 g1 ic40 oc1 i50 k64 s16 p32_32",
    "f32 nhwc n9 g1 ic24 oc20 i4x4 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n2 g24 ic24 oc24 i19x20 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g1 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1 bias",
    "f64 nhwc n1 g1 ic5 oc7 i5x9 k3x3 s2x2 p1x1_1x1",
    "bf16 nchw n1 g1 ic8 oc8 i9x9 k4x4 s2x2 p1x1_1x1",
    "u8 nhwc n2 g1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias zx128",
};

struct Layer {
    Problem problem;
    Inputs inputs;
    Expected expected;
    Plan shared; // run by all threads
};

void expect_right(const Plan &plan, const Layer &layer) {
    Tensor y(layer.expected.dtype, plan.y_shape());
    const Status status = plan.run(layer.inputs.x.data(), y.data());
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, layer.expected)) << describe(layer.problem);
}

void work(int thread, std::vector<Layer> *layers, std::atomic<int> *ready) {
    ++*ready;
    while (*ready < kThreads + 1) std::this_thread::yield(); // all begin together
    for (int round = 0; round < kRounds; ++round) {
        for (std::size_t i = 0; i < layers->size(); ++i) {
            const Layer &layer = (*layers)[(i + static_cast<std::size_t>(thread)) % layers->size()];
            const void *const b = layer.inputs.b ? layer.inputs.b->data() : nullptr;
            expect_right(layer.shared, layer);
            Options options{};
            options.threads = 1 + (thread + round) % 3;
            options.all_threads = 1;
            options.planning = round % 2 ? CONVT_MEASURE : CONVT_ESTIMATE;
            options.planning_ms = 1;
            Plan own, other, back;
            Status status = Plan::create(layer.problem, options, layer.inputs.w.data(), b, &own);
            ASSERT_TRUE(status) << status.message();
            expect_right(own, layer);
            Shape shape = layer.problem.x_shape;
            shape[0] += 1 + round;
            status = (round % 2 ? own : layer.shared).reshape(shape, &other);
            ASSERT_TRUE(status) << status.message();
            status = other.reshape(layer.problem.x_shape, &back);
            ASSERT_TRUE(status) << status.message();
            expect_right(back, layer);
            EXPECT_FALSE((round % 3 ? own : layer.shared).explain().empty());
            EXPECT_GT(convt_plan_candidate_count(layer.shared.get()), 0u);
            EXPECT_FALSE(layer.shared.record().empty());
            if (Plan refused; !Plan::create(Problem{}, options, nullptr, nullptr, &refused)) {
                EXPECT_NE(*convt_last_error(), '\0'); // of this thread
            }
        }
    }
}

TEST(Concurrency, PlansMadeRunReshapedAndExplainedWhileKernelsAreAdded) {
    std::vector<Layer> layers;
    for (const std::string &line : kProblems) {
        Layer layer;
        layer.problem = parse_problem(line);
        layer.inputs = draw(layer.problem, 1);
        layer.expected = reference(layer.problem, layer.inputs);
        Options options{};
        options.threads = 3;
        options.all_threads = 1;
        const Status status = Plan::create(layer.problem, options, layer.inputs.w.data(),
                                           layer.inputs.b ? layer.inputs.b->data() : nullptr, &layer.shared);
        ASSERT_TRUE(status) << status.message();
        layers.push_back(std::move(layer));
    }
    static std::array<KernelTable, 20> tables; // they stay
    for (KernelTable &table : tables) table.version = kernels_version();

    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(work, i, &layers, &ready);
    ++ready;
    for (KernelTable &table : tables) {
        const Status status = add_kernels(&table);
        EXPECT_TRUE(status) << status.message();
        std::this_thread::yield();
    }
    for (std::thread &thread : threads) thread.join();
}

} // namespace
} // namespace convtranspose::test
