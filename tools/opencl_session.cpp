// A session of OpenCL. Times are those of this computer's clock, from an empty queue to an empty queue.
#include <cstdint>
#include <limits>

#include "tools/clock.h"
#include "tools/device_session.h"
#include "tools/driver_library.h"

namespace convtranspose::tools {

namespace {

using Result = std::int32_t; // cl_int

constexpr std::uint64_t kAnyDevice = 0xFFFFFFFF, kReadWrite = 1;
constexpr std::uint32_t kMostPlatforms = 8, kBlocking = 1;

struct Driver : DriverLibrary {
    Driver() : DriverLibrary("libOpenCL.so.1") {
        find("clGetPlatformIDs", &platforms);
        find("clGetDeviceIDs", &devices);
        find("clCreateContext", &create_context);
        find("clReleaseContext", &release_context);
        find("clCreateCommandQueue", &create_queue);
        find("clReleaseCommandQueue", &release_queue);
        find("clCreateBuffer", &create_buffer);
        find("clReleaseMemObject", &release_buffer);
        find("clEnqueueWriteBuffer", &write);
        find("clEnqueueReadBuffer", &read);
        find("clFinish", &finish);
    }
    Result (*platforms)(std::uint32_t, void **, std::uint32_t *);
    Result (*devices)(void *, std::uint64_t, std::uint32_t, void **, std::uint32_t *);
    void *(*create_context)(const void *, std::uint32_t, void **, void *, void *, Result *);
    Result (*release_context)(void *);
    void *(*create_queue)(void *, void *, std::uint64_t, Result *);
    Result (*release_queue)(void *);
    void *(*create_buffer)(void *, std::uint64_t, std::size_t, void *, Result *);
    Result (*release_buffer)(void *);
    Result (*write)(void *, void *, std::uint32_t, std::size_t, std::size_t, const void *, std::uint32_t, void *,
                    void *);
    Result (*read)(void *, void *, std::uint32_t, std::size_t, std::size_t, void *, std::uint32_t, void *, void *);
    Result (*finish)(void *);
};

void require(Result result, const char *what) {
    if (result) throw Error(std::string("OpenCL: ") + what + ": error " + std::to_string(result));
}

class OpenclSession : public DeviceSession {
  public:
    OpenclSession() {
        void *platforms[kMostPlatforms] = {nullptr};
        std::uint32_t count = 0;
        require(d_.platforms(kMostPlatforms, platforms, &count), "clGetPlatformIDs");
        void *device = nullptr; // the first of all platforms, as the library numbers them
        for (std::uint32_t i = 0; i < count && i < kMostPlatforms && !device; i++) {
            if (d_.devices(platforms[i], kAnyDevice, 1, &device, nullptr) != 0) device = nullptr;
        }
        if (!device) throw Error("there is no device of OpenCL");
        Result result = 0;
        context_ = d_.create_context(nullptr, 1, &device, nullptr, nullptr, &result);
        require(result, "clCreateContext");
        queue_ = d_.create_queue(context_, device, 0, &result);
        require(result, "clCreateCommandQueue");
    }
    ~OpenclSession() override {
        d_.release_queue(queue_);
        d_.release_context(context_);
    }

    void *context() override { return context_; }
    void *stream() override { return queue_; }
    void *allocate(std::size_t bytes) override {
        Result result = 0;
        void *const buffer = d_.create_buffer(context_, kReadWrite, bytes ? bytes : 1, nullptr, &result);
        require(result, "clCreateBuffer");
        return buffer;
    }
    void release(void *memory) override { d_.release_buffer(memory); }
    void upload(const void *from, void *to, std::size_t bytes) override {
        require(d_.write(queue_, to, kBlocking, 0, bytes, from, 0, nullptr, nullptr), "clEnqueueWriteBuffer");
    }
    void download(const void *from, void *to, std::size_t bytes) override {
        require(d_.read(queue_, const_cast<void *>(from), kBlocking, 0, bytes, to, 0, nullptr, nullptr),
                "clEnqueueReadBuffer");
    }
    double seconds(const std::function<void()> &work) override {
        require(d_.finish(queue_), "clFinish");
        const double begin = now();
        work();
        require(d_.finish(queue_), "clFinish");
        return now() - begin;
    }
    double fma_peak_gflops(convt_dtype) const override { return std::numeric_limits<double>::quiet_NaN(); }

  private:
    const Driver d_;
    void *context_ = nullptr, *queue_ = nullptr;
};

} // namespace

std::unique_ptr<DeviceSession> open_opencl() { return std::make_unique<OpenclSession>(); }

std::unique_ptr<DeviceSession> DeviceSession::open(const std::string &kind) {
    if (convt_device_count(kind.c_str()) == 0) throw Error(convt_last_error());
    return kind == "cuda" ? open_cuda() : open_opencl();
}

} // namespace convtranspose::tools
