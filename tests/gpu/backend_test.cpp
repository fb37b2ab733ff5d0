// Plans call a device's driver through a table whose calls are counted here and may be made to fail. Nothing is allocated after
// the first run, all memory comes back, a device without enough memory gives a status, and so does one without f64.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/device_reference.h"
#include "plan/counting_allocator.h"
#include "reference/descriptor.h"
#include "reference/reference.h"
#include "runtime/gpu/device_plan.h"

namespace convtranspose::test {
namespace {

// The backend that is watched, of one kind at a time: a backend's functions have no place for a pointer to it.
struct Watched {
    const DeviceBackend *real = nullptr;
    std::size_t allocations = 0, live = 0;
    std::ptrdiff_t until_failure = -1; // allocations; negative: none fails
    int multiprocessors = 0;           // 0: as the device says
    bool has_f64 = true;
} watched;

// Streams of tests are no handles of the driver: all stand for the device's own.
int streams[20];

class WatchedDevice {
  public:
    explicit WatchedDevice(const std::string &kind) {
        const DeviceTable &table = *find_device_table(kind);
        watched = Watched();
        watched.real = table.backend;
        backend_ = *table.backend;
        backend_.allocate = [](Device *device, std::uint64_t bytes, std::uint64_t *memory, DeviceError *error) {
            ++watched.allocations;
            if (watched.until_failure >= 0 && watched.until_failure-- == 0) {
                error->status = CONVT_OUT_OF_MEMORY;
                return false;
            }
            const bool done = watched.real->allocate(device, bytes, memory, error);
            watched.live += done;
            return done;
        };
        backend_.release = [](Device *device, std::uint64_t memory) {
            --watched.live;
            watched.real->release(device, memory);
        };
        backend_.upload = [](Device *device, void *, const void *from, std::uint64_t to, std::uint64_t bytes,
                             DeviceError *error) {
            return watched.real->upload(device, nullptr, from, to, bytes, error);
        };
        backend_.download = [](Device *device, void *, std::uint64_t from, void *to, std::uint64_t bytes,
                               DeviceError *error) {
            return watched.real->download(device, nullptr, from, to, bytes, error);
        };
        backend_.call = [](Device *device, void *, DeviceFunction function, void **arguments, DeviceError *error) {
            return watched.real->call(device, nullptr, function, arguments, error);
        };
        // The caller's memory is what allocate() gave.
        backend_.wrap = [](Device *, void *data, std::uint64_t *memory, DeviceError *) {
            *memory = reinterpret_cast<std::uint64_t>(data);
            return true;
        };
        backend_.unwrap = [](std::uint64_t) {};
        backend_.stream_of_thread = &streams[0];
        backend_.open = [](int index, void *context, Device **opened, DeviceFacts *facts, DeviceError *error) {
            const bool done = watched.real->open(index, context, opened, facts, error);
            if (watched.multiprocessors) facts->multiprocessors = watched.multiprocessors;
            facts->has_f64 = watched.has_f64;
            return done;
        };
        table_ = table;
        table_.backend = &backend_;
    }

    Status plan(const Problem &problem, const Inputs &inputs, const Allocator &allocator,
                std::unique_ptr<ProblemPlan> *plan, const std::string &variant = "") {
        DeviceRequest request;
        request.table = &table_;
        request.variant = variant;
        return plan_on_device(geometry_of(problem), request, allocator,
                              {inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, nullptr}, plan);
    }

    const DeviceTable &table() const { return table_; }

  private:
    // OpenDevice keeps what it opened, by the address of its table: these live as long as the program.
    DeviceBackend &backend_ = *new DeviceBackend;
    DeviceTable &table_ = *new DeviceTable;
};

RunTensors tensors_of(const Problem &problem, const Inputs &inputs, Tensor *y) {
    RunTensors t;
    t.x = {const_cast<void *>(inputs.x.data()), dense_strides(problem.x_shape)};
    t.y = {y->data(), dense_strides(y->shape())};
    return t;
}

Allocator allocator_of(const Options &options) { return {options.allocate, options.deallocate, options.allocate_user}; }

class DeviceBackends : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceBackends, testing::ValuesIn(device_kinds()),
                         [](const testing::TestParamInfo<std::string> &c) { return c.param; });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceBackends);

// In one part, in several, with post-ops, with gaps.
constexpr const char *kLines[] = {"f32 nchw n2 ic20 oc30 i4x5 k4x4 s2x2 p1x1_1x1 bias",
                                  "f32 nchw n1 ic1024 oc64 i2x2 k2x2 s2x2 bias", "f32 nhwc n1 ic8 oc8 g8 i7x7 k3x3"};

TEST_P(DeviceBackends, AllocateOnlyInTheFirstRun) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    for (const char *line : kLines) {
        SCOPED_TRACE(line);
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        WatchedDevice device(GetParam());
        CountingAllocator host;
        {
            std::unique_ptr<ProblemPlan> plan;
            Status status = device.plan(problem, inputs, allocator_of(host.options()), &plan);
            ASSERT_TRUE(status) << status.message();
            Tensor y(problem.dtype, geometry_of(problem).y_shape);
            const RunTensors tensors = tensors_of(problem, inputs, &y);
            ASSERT_TRUE(plan->run(tensors, nullptr));
            const std::size_t on_device = watched.allocations, on_host = host.allocations();
            EXPECT_GT(on_device, 0u);
            for (int again = 0; again < 3; ++again) ASSERT_TRUE(plan->run(tensors, nullptr));
            EXPECT_EQ(watched.allocations, on_device);
            EXPECT_EQ(host.allocations(), on_host);
            EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
        }
        EXPECT_EQ(watched.live, 0u) << "leaked";
    }
}

TEST_P(DeviceBackends, SayThatMemoryIsShort) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    for (const char *line : kLines) {
        SCOPED_TRACE(line);
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 3);
        WatchedDevice device(GetParam());
        bool failed_in_plan = false, failed_in_run = false, done = false;
        for (int at = 0; !done; ++at) {
            ASSERT_LT(at, 100);
            {
                watched.until_failure = at;
                std::unique_ptr<ProblemPlan> plan;
                Status status = device.plan(problem, inputs, Allocator(), &plan);
                if (!status) {
                    EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY);
                    failed_in_plan = true;
                } else {
                    Tensor y(problem.dtype, geometry_of(problem).y_shape);
                    const RunTensors tensors = tensors_of(problem, inputs, &y);
                    status = plan->run(tensors, nullptr);
                    if (!status) {
                        EXPECT_EQ(status.code(), CONVT_OUT_OF_MEMORY);
                        failed_in_run = true;
                        status = plan->run(tensors, nullptr); // there is memory again
                    }
                    EXPECT_TRUE(status) << status.message();
                    EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
                    done = watched.until_failure >= 0; // it was not reached
                }
                watched.until_failure = -1;
            }
            EXPECT_EQ(watched.live, 0u) << "leaked when allocation " << at << " failed";
        }
        EXPECT_TRUE(failed_in_plan);
        EXPECT_TRUE(failed_in_run);
    }
}

TEST_P(DeviceBackends, RefuseF64WhereThereIsNone) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    WatchedDevice device(GetParam());
    watched.has_f64 = false;
    std::unique_ptr<ProblemPlan> plan;
    for (const char *const dtype : {"f64", "f32"}) {
        const Problem problem = parse_problem(std::string(dtype) + " nchw n1 ic3 oc4 i3x3 k2x2 s2x2");
        const Status status = device.plan(problem, draw(problem, 1), Allocator(), &plan);
        if (problem.dtype == CONVT_F64) {
            EXPECT_EQ(status.code(), CONVT_UNSUPPORTED);
            EXPECT_NE(status.message().find("the device has no f64"), std::string::npos) << status.message();
        } else {
            EXPECT_TRUE(status) << status.message();
        }
    }
}

// The kernels that are chosen for a large device, computed on whatever device there is; sums in parts are among them.
TEST_P(DeviceBackends, AgreeWithTheChoicesOfALargeDevice) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    WatchedDevice device(GetParam());
    watched.multiprocessors = 132;
    bool in_parts = false;
    for (const char *const line :
         {"f32 nchw n1 ic512 oc64 i4x4 k4x4 s2x2 p1x1_1x1 bias", "f16 nhwc n1 ic256 oc40 i5x5 k3x3 s2x2 p1x1_1x1",
          "bf16 nchw n1 ic300 oc33 i6x6 k2x2 s2x2", "f32 nchw n1 ic64 oc3 i20x20 k4x4 s2x2 p1x1_1x1 bias",
          "f32 nchw n1 ic48 oc48 g48 i9x9 k3x3 s2x2 p1x1_1x1", "f64 nchw n2 ic96 oc20 i7 k4 s2"}) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 7);
        std::unique_ptr<ProblemPlan> plan;
        Status status = device.plan(problem, inputs, Allocator(), &plan);
        ASSERT_TRUE(status) << status.message();
        SCOPED_TRACE(plan->explain());
        in_parts = in_parts || plan->explain().find("parts") != std::string::npos;
        Tensor y(problem.dtype, geometry_of(problem).y_shape), again = y;
        ASSERT_TRUE(plan->run(tensors_of(problem, inputs, &y), nullptr));
        ASSERT_TRUE(plan->run(tensors_of(problem, inputs, &again), nullptr));
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
        EXPECT_TRUE(again == y) << "a second run gives other bits";
    }
    EXPECT_TRUE(in_parts);
}

// A plan on a watched device.
struct Planned {
    const Problem problem;
    const Inputs inputs;
    WatchedDevice device;
    std::unique_ptr<ProblemPlan> plan;
    Status status;

    Planned(const std::string &kind, const char *line, int multiprocessors = 0)
        : problem(parse_problem(line)), inputs(draw(problem, 3)), device(kind) {
        watched.multiprocessors = multiprocessors;
        status = device.plan(problem, inputs, Allocator(), &plan);
    }
};

// A run that has brought y has ended: its memory serves other streams.
TEST_P(DeviceBackends, StreamsThatHaveEndedKeepNoMemory) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Planned on(GetParam(), kLines[0]);
    ASSERT_TRUE(on.status) << on.status.message();
    Tensor y(on.problem.dtype, geometry_of(on.problem).y_shape);
    RunTensors tensors = tensors_of(on.problem, on.inputs, &y);
    ASSERT_TRUE(on.plan->run(tensors, nullptr));
    const std::size_t allocations = watched.allocations;
    for (int &stream : streams) {
        tensors.stream = &stream;
        ASSERT_TRUE(on.plan->run(tensors, nullptr));
    }
    EXPECT_EQ(watched.allocations, allocations);
}

// The handle of CUDA's stream of each thread stands for several streams, whose runs may overlap.
TEST_P(DeviceBackends, ThreadsThatHaveAStreamEachShareNoWorkspace) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    // For so many multiprocessors sums are split into parts, which are in the workspace.
    const Planned on(GetParam(), "f32 nchw n1 ic512 oc64 i4x4 k4x4 s2x2 p1x1_1x1 bias", 132);
    ASSERT_TRUE(on.status) << on.status.message();
    const Geometry geometry = geometry_of(on.problem);
    std::shared_ptr<OpenDevice> open;
    DeviceMemory x, y;
    ASSERT_TRUE(OpenDevice::open(on.device.table(), 0, nullptr, &open));
    ASSERT_TRUE(x.allocate(open, geometry.x_bytes()) && y.allocate(open, geometry.y_bytes()));
    ASSERT_TRUE(x.upload(nullptr, on.inputs.x.data(), geometry.x_bytes()));
    Tensor result(on.problem.dtype, geometry.y_shape);
    RunTensors tensors = tensors_of(on.problem, on.inputs, &result);
    tensors.x = {reinterpret_cast<void *>(x.get()), tensors.x.strides, CONVT_DEVICE_MEMORY};
    tensors.y = {reinterpret_cast<void *>(y.get()), tensors.y.strides, CONVT_DEVICE_MEMORY};
    const auto allocated_by_run = [&] {
        const std::size_t before = watched.allocations;
        EXPECT_TRUE(on.plan->run(tensors, nullptr));
        return watched.allocations - before;
    };
    for (const bool is_of_thread : {false, true}) {
        tensors.stream = &streams[is_of_thread ? 0 : 1];
        allocated_by_run();
        std::size_t by_other = 0;
        std::thread([&] { by_other = allocated_by_run(); }).join();
        EXPECT_EQ(by_other, is_of_thread ? 1u : 0u);
        EXPECT_EQ(allocated_by_run(), 0u);
    }
    ASSERT_TRUE(y.download(nullptr, result.data(), geometry.y_bytes()));
    EXPECT_TRUE(agrees(result, device_reference(on.problem, on.inputs)));
}

// The first runs of a process may be at once, in which Halide's runtime looks for the driver.
TEST_P(DeviceBackends, FirstRunsMayBeAtOnce) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Planned on(GetParam(), kLines[0]);
    ASSERT_TRUE(on.status) << on.status.message();
    std::vector<Tensor> results(6, Tensor(on.problem.dtype, geometry_of(on.problem).y_shape));
    std::atomic<bool> begins{false};
    std::vector<std::thread> threads;
    threads.reserve(results.size());
    for (Tensor &y : results) {
        threads.emplace_back([&] {
            while (!begins) std::this_thread::yield();
            EXPECT_TRUE(on.plan->run(tensors_of(on.problem, on.inputs, &y), nullptr));
        });
    }
    begins = true;
    for (std::thread &thread : threads) thread.join();
    for (const Tensor &y : results) EXPECT_TRUE(agrees(y, device_reference(on.problem, on.inputs)));
}

// Parts of sums and phases share an axis of the grid, which has 65535 blocks.
TEST_P(DeviceBackends, PartsAreNoMoreThanAGridHas) {
    CONVTRANSPOSE_NEEDS_DEVICE(GetParam());
    const Problem problem = parse_problem("f32 nchw n1 ic1024 oc2 i1x1 k200x200 s200x200");
    WatchedDevice device(GetParam());
    watched.multiprocessors = 132;
    std::unique_ptr<ProblemPlan> plan;
    ASSERT_TRUE(device.plan(problem, draw(problem, 1), Allocator(), &plan));
    for (const AbleCandidate &candidate : plan->able())
        EXPECT_EQ(std::string(candidate.name).find(':'), std::string::npos) << candidate.name;
}

} // namespace
} // namespace convtranspose::test
