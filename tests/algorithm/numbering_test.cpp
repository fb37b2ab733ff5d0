// The algorithm with positions that are not by axis, with lists of terms and with zeros around x: any of these choices goes with no
// schedule, with one for CPUs and with those for GPUs.
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "algorithm/numbered_layer.h"

namespace convtranspose::test {

namespace {

using namespace Halide;

// y of a kernel whose positions are not by axis.
std::vector<int> run(NumberedKernel kernel, const Pipeline &pipeline, const Target &target) {
    std::vector<int> y(static_cast<std::size_t>(kernel.y_size));
    const auto take = [&](auto result) {
        result.fill(99);
        Pipeline(pipeline).realize(result, target);
        result.copy_to_host();
        for (int i = 0; i < kernel.y_size; i++) y[static_cast<std::size_t>(i)] = static_cast<int>(result(i));
    };
    if (kernel.type == Int(32)) {
        take(Buffer<int>(kernel.y_size));
    } else {
        take(Buffer<float>(kernel.y_size));
    }
    // Parts of the sums are apart.
    for (std::size_t i = kYSize; i < y.size(); i++) y[i % kYSize] += y[i];
    y.resize(kYSize);
    return y;
}

std::vector<int> run(const NumberedKernel &kernel) {
    return run(kernel, Pipeline(kernel.c.y), get_jit_target_from_environment());
}

const Choices kInPhase = {Positions::kInPhase, Outside::kZero, 1, 1},
              kInParts = {Positions::kInPhase, Outside::kZero, 1, 2},
              kInBlocks = {Positions::kInPhase, Outside::kZero, 4, 1},
              kOutputs = {Positions::kOutputs, Outside::kSkipped, 1, 1},
              kOutputsAmongZeros = {Positions::kOutputs, Outside::kZero, 1, 1};

TEST(Numbering, AgreesWithTheDefinitionUnscheduled) {
    for (const Choices &choices : {kInPhase, kInParts, kInBlocks, kOutputs, kOutputsAmongZeros}) {
        EXPECT_EQ(run(make_numbered(choices)), expected_of_numbered(around_x(choices)));
    }
}

// A CPU's schedule: tiles of sums in vectors, tiles of channels in parallel.
TEST(Numbering, AgreesWithTheDefinitionOnTheCpu) {
    for (const Choices &choices : {kInPhase, kInParts, kInBlocks}) {
        NumberedKernel kernel = make_numbered(choices);
        const ConvTranspose &c = kernel.c;
        Func sum = c.sum, x = c.updates[0].x, y = c.y;
        sum.compute_at(y, c.o[6]).vectorize(c.digits[0]).update().vectorize(c.digits[0]);
        x.compute_at(sum, c.updates[0].tw);
        y.update().allow_race_conditions().parallel(c.o[7]);
        EXPECT_EQ(run(kernel), expected_of_numbered(around_x(choices)));
    }
    for (const Choices &choices : {kOutputs, kOutputsAmongZeros}) {
        NumberedKernel kernel = make_numbered(choices);
        Func sum = kernel.c.sum, y = kernel.c.y;
        sum.compute_at(y, kernel.c.o[2]).vectorize(kernel.c.digits[1], 4).update().vectorize(kernel.c.digits[1], 4);
        y.update().allow_race_conditions().parallel(kernel.c.o[3]);
        EXPECT_EQ(run(kernel), expected_of_numbered(0));
    }
}

// By axis, zeros around x are what leaving terms out is, as long as weights are finite.
TEST(Numbering, ZerosAroundXAreSkippedTerms) {
    for (const Outside outside : {Outside::kSkipped, Outside::kZero}) {
        Choices choices;
        choices.outside = outside;
        for (const bool vectors : {false, true}) {
            const NumberedKernel kernel = make_numbered(choices);
            if (vectors) {
                Func sum = kernel.c.sum, y = kernel.c.y;
                sum.compute_at(y, kernel.c.oc).vectorize(kernel.c.axes[0].q, 4);
                sum.update().vectorize(kernel.c.axes[0].q, 4);
            }
            // (oc, qw, rw, qh, rh, qd, rd, g, n)
            Func y = kernel.c.y;
            const Buffer<float> result = y.realize({kOc, 5, 2, 3, 1, 1, 1, kGroups, kBatch});
            const std::vector<int> all = expected_of_numbered(0);
            for (int i = 0; i < kYSize; i++) {
                const int ow = i % 10, oh = i / 10 % 3, oc = i / 30 % 5, g = i / 150 % 2, n = i / 300;
                const int at[] = {oc, ow / 2, ow % 2, oh, 0, 0, 0, g, n};
                ASSERT_EQ(result(at), static_cast<float>(all[static_cast<std::size_t>(i)])) << i;
            }
        }
    }
}

// Calls a function with each kernel that a GPU schedule makes of it.
template<typename Check>
void for_all_on_gpus(const Check &check) {
    for (const Choices &choices : {kInPhase, kInParts, kInBlocks}) {
        for (const bool channels_last : {false, true}) {
            NumberedKernel kernel = make_numbered(choices);
            kernel.tile.channels_last = channels_last;
            const Pipeline pipeline(kernel.c.y);
            phase_schedules().at("tiled")(pipeline, kernel.c, kernel.tile);
            check(kernel, pipeline, choices);
        }
    }
    for (const Choices &choices : {kInPhase, kInParts}) {
        const NumberedKernel kernel = make_numbered(choices);
        const Pipeline pipeline(kernel.c.y);
        phase_schedules().at("small_oc")(pipeline, kernel.c, kernel.tile);
        check(kernel, pipeline, choices);
    }
    for (const Choices &choices : {kOutputs, kOutputsAmongZeros}) {
        const NumberedKernel kernel = make_numbered(choices);
        schedule_each(kernel.c);
        check(kernel, Pipeline(kernel.c.y), choices);
    }
}

// This needs no device.
TEST(Numbering, CompilesWithTheSchedulesOfGpus) {
    for_all_on_gpus([](const NumberedKernel &, Pipeline pipeline, const Choices &) {
        for (const char *target : {"x86-64-linux-opencl", "x86-64-linux-cuda-cuda_capability_70"}) {
            EXPECT_FALSE(pipeline.compile_to_module({}, "kernel", Target(target)).functions().empty());
        }
    });
}

TEST(Numbering, AgreesWithTheDefinitionOnOpenCl) {
    const char *const devices = std::getenv("CONVTRANSPOSE_TEST_DEVICES");
    if (!devices || std::string(devices).find("opencl") == std::string::npos) {
        GTEST_SKIP() << "CONVTRANSPOSE_TEST_DEVICES does not name opencl: see scripts/test.sh";
    }
    const Target opencl = get_host_target().with_feature(Target::OpenCL);
    ASSERT_TRUE(host_supports_target_device(opencl)) << "there is no device";
    for_all_on_gpus([&](const NumberedKernel &kernel, const Pipeline &pipeline, const Choices &choices) {
        EXPECT_EQ(run(kernel, pipeline, opencl), expected_of_numbered(around_x(choices)));
    });
}

} // namespace

} // namespace convtranspose::test
