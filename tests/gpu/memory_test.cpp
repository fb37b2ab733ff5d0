// x and y in memory of the device: used in place, in the caller's context and queue, with nothing waited for.
#include <dlfcn.h>

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/device.h"
#include "gpu/device_reference.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

template<typename F>
F find(void *library, const char *name) {
    return reinterpret_cast<F>(dlsym(library, name));
}

// A context of the caller's, on the first device.
struct OpenclContext {
    OpenclContext() : library(dlopen("libOpenCL.so.1", RTLD_NOW)) {
        void *platform = nullptr;
        std::int32_t error = 0;
        EXPECT_EQ(
            find<std::int32_t (*)(std::uint32_t, void **, void *)>(library, "clGetPlatformIDs")(1, &platform, nullptr),
            0);
        EXPECT_EQ(find<std::int32_t (*)(void *, std::uint64_t, std::uint32_t, void **, void *)>(
                      library, "clGetDeviceIDs")(platform, 0xFFFFFFFF, 1, &device, nullptr),
                  0);
        context = find<void *(*)(void *, std::uint32_t, void **, void *, void *, std::int32_t *)>(
            library, "clCreateContext")(nullptr, 1, &device, nullptr, nullptr, &error);
        EXPECT_EQ(error, 0);
    }
    ~OpenclContext() { find<std::int32_t (*)(void *)>(library, "clReleaseContext")(context); }
    OpenclContext(const OpenclContext &) = delete;
    OpenclContext &operator=(const OpenclContext &) = delete;

    void *const library;
    void *device = nullptr, *context = nullptr;
};

// A plan that never ran has loaded no kernels: there is nothing to unload.
TEST(DeviceMemory, IsGivenBackUnused_opencl) {
    CONVTRANSPOSE_NEEDS_DEVICE("opencl");
    const OpenclContext own;
    const Problem problem = parse_problem("f32 nchw n1 ic2 oc3 i2x2 k2x2");
    Options options{};
    options.device.name = "opencl";
    options.device.context = own.context;
    Plan plan;
    const Status status = Plan::create(problem, options, draw(problem, 1).w.data(), nullptr, &plan);
    EXPECT_TRUE(status) << status.message();
}

TEST(DeviceMemory, IsUsedInPlace_opencl) {
    CONVTRANSPOSE_NEEDS_DEVICE("opencl");
    // The caller's own context, queue and buffers.
    const OpenclContext own;
    void *const cl = own.library, *const context = own.context;
    std::int32_t error = 0;
    void *const queue = find<void *(*)(void *, void *, std::uint64_t, std::int32_t *)>(cl, "clCreateCommandQueue")(
        context, own.device, 0, &error);
    ASSERT_EQ(error, 0);
    const auto create =
        find<void *(*)(void *, std::uint64_t, std::size_t, void *, std::int32_t *)>(cl, "clCreateBuffer");
    const auto release = find<std::int32_t (*)(void *)>(cl, "clReleaseMemObject");

    const Problem problem = parse_problem("f32 nchw n2 ic20 oc30 i4x5 k4x4 s2x2 p1x1_1x1 bias");
    Inputs inputs = draw(problem, 21);
    {
        Options options{};
        options.device.name = "opencl";
        options.device.context = context;
        Plan plan;
        Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
        ASSERT_TRUE(status) << status.message();
        Tensor y(CONVT_F32, plan.y_shape());
        constexpr std::uint64_t kCopyHost = 1 << 5, kReadWrite = 1; // CL_MEM_COPY_HOST_PTR, CL_MEM_READ_WRITE
        void *const x_memory = create(context, kReadWrite | kCopyHost, 4 * static_cast<std::size_t>(inputs.x.size()),
                                      inputs.x.data(), &error);
        ASSERT_EQ(error, 0);
        void *const y_memory =
            create(context, kReadWrite | kCopyHost, 4 * static_cast<std::size_t>(y.size()), y.data(), &error);
        ASSERT_EQ(error, 0);

        Arguments arguments;
        arguments.x = ConstTensorView(x_memory, CONVT_F32, problem.x_shape, {}, CONVT_DEVICE_MEMORY);
        arguments.y = {y_memory, CONVT_F32, plan.y_shape(), {}, CONVT_DEVICE_MEMORY};
        arguments.stream = queue;
        for (int run = 0; run < 3; ++run) {
            status = plan.run(arguments);
            ASSERT_TRUE(status) << status.message();
        }
        // The caller's queue orders this after the runs.
        ASSERT_EQ(find<std::int32_t (*)(void *, void *, std::uint32_t, std::size_t, std::size_t, void *, std::uint32_t,
                                        void *, void *)>(cl, "clEnqueueReadBuffer")(
                      queue, y_memory, 1, 0, 4 * static_cast<std::size_t>(y.size()), y.data(), 0, nullptr, nullptr),
                  0);
        EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
        release(x_memory);
        release(y_memory);
    }
    find<std::int32_t (*)(void *)>(cl, "clReleaseCommandQueue")(queue);
}

// The primary context, which is PyTorch's too, and a stream of the caller's.
TEST(DeviceMemory, IsUsedInPlace_cuda) {
    CONVTRANSPOSE_NEEDS_DEVICE("cuda");
    void *const cuda = dlopen("libcuda.so.1", RTLD_NOW);
    ASSERT_NE(cuda, nullptr);
    void *context = nullptr, *stream = nullptr;
    ASSERT_EQ(find<int (*)(void **, int)>(cuda, "cuDevicePrimaryCtxRetain")(&context, 0), 0);
    ASSERT_EQ(find<int (*)(void *)>(cuda, "cuCtxPushCurrent_v2")(context), 0);
    ASSERT_EQ(find<int (*)(void **, unsigned)>(cuda, "cuStreamCreate")(&stream, 1), 0); // CU_STREAM_NON_BLOCKING
    const auto allocate = find<int (*)(std::uint64_t *, std::size_t)>(cuda, "cuMemAlloc_v2");

    const Problem problem = parse_problem("f32 nchw n2 ic20 oc30 i4x5 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 21);
    Options options{};
    options.device.name = "cuda";
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan);
    ASSERT_TRUE(status) << status.message();
    Tensor y(CONVT_F32, plan.y_shape());
    std::uint64_t x_memory = 0, y_memory = 0;
    ASSERT_EQ(allocate(&x_memory, 4 * static_cast<std::size_t>(inputs.x.size())), 0);
    ASSERT_EQ(allocate(&y_memory, 4 * static_cast<std::size_t>(y.size())), 0);
    ASSERT_EQ(find<int (*)(std::uint64_t, const void *, std::size_t)>(cuda, "cuMemcpyHtoD_v2")(
                  x_memory, inputs.x.data(), 4 * static_cast<std::size_t>(inputs.x.size())),
              0);
    Arguments arguments;
    arguments.x =
        ConstTensorView(reinterpret_cast<void *>(x_memory), CONVT_F32, problem.x_shape, {}, CONVT_DEVICE_MEMORY);
    arguments.y = {reinterpret_cast<void *>(y_memory), CONVT_F32, plan.y_shape(), {}, CONVT_DEVICE_MEMORY};
    arguments.stream = stream;
    status = plan.run(arguments);
    ASSERT_TRUE(status) << status.message();
    ASSERT_EQ(find<int (*)(void *)>(cuda, "cuStreamSynchronize")(stream), 0);
    ASSERT_EQ(find<int (*)(void *, std::uint64_t, std::size_t)>(cuda, "cuMemcpyDtoH_v2")(
                  y.data(), y_memory, 4 * static_cast<std::size_t>(y.size())),
              0);
    EXPECT_TRUE(agrees(y, device_reference(problem, inputs)));
    find<int (*)(std::uint64_t)>(cuda, "cuMemFree_v2")(x_memory);
    find<int (*)(std::uint64_t)>(cuda, "cuMemFree_v2")(y_memory);
    find<int (*)(void *)>(cuda, "cuStreamDestroy_v2")(stream);
}

} // namespace
} // namespace convtranspose::test
