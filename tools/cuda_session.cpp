// A session of CUDA. Times are those of CUDA's events.
#include <cstdint>
#include <limits>

#include "tools/device_session.h"
#include "tools/driver_library.h"

namespace convtranspose::tools {

namespace {

using Result = int; // CUresult
using Memory = std::uint64_t;

// CU_DEVICE_ATTRIBUTE_...
constexpr int kClockKhz = 13, kMultiprocessors = 16, kMajor = 75, kMinor = 76;

struct Driver : DriverLibrary {
    Driver() : DriverLibrary("libcuda.so.1") {
        find("cuInit", &init);
        find("cuDeviceGet", &device_get);
        find("cuDeviceGetAttribute", &attribute);
        find("cuDevicePrimaryCtxRetain", &retain);
        find("cuDevicePrimaryCtxRelease_v2", &release_context);
        find("cuCtxPushCurrent_v2", &push);
        find("cuCtxPopCurrent_v2", &pop);
        find("cuStreamCreate", &create_stream);
        find("cuStreamDestroy_v2", &destroy_stream);
        find("cuStreamSynchronize", &synchronize);
        find("cuEventCreate", &create_event);
        find("cuEventDestroy_v2", &destroy_event);
        find("cuEventRecord", &record);
        find("cuEventSynchronize", &wait);
        find("cuEventElapsedTime", &elapsed);
        find("cuMemAlloc_v2", &allocate);
        find("cuMemFree_v2", &release);
        find("cuMemcpyHtoD_v2", &upload);
        find("cuMemcpyDtoH_v2", &download);
        find("cuGetErrorString", &error_text);
    }
    Result (*init)(unsigned);
    Result (*device_get)(int *, int);
    Result (*attribute)(int *, int, int);
    Result (*retain)(void **, int);
    Result (*release_context)(int);
    Result (*push)(void *);
    Result (*pop)(void **);
    Result (*create_stream)(void **, unsigned);
    Result (*destroy_stream)(void *);
    Result (*synchronize)(void *);
    Result (*create_event)(void **, unsigned);
    Result (*destroy_event)(void *);
    Result (*record)(void *, void *);
    Result (*wait)(void *);
    Result (*elapsed)(float *, void *, void *); // milliseconds
    Result (*allocate)(Memory *, std::size_t);
    Result (*release)(Memory);
    Result (*upload)(Memory, const void *, std::size_t);
    Result (*download)(void *, Memory, std::size_t);
    Result (*error_text)(Result, const char **);
};

// Multiply-adds that a multiprocessor does in a cycle, from CUDA's programming guide ("throughput of native arithmetic
// instructions"). Integers are multiplied one by one, as our kernels do. 0: not known.
int fma_per_cycle(int capability, convt_dtype dtype) {
    struct Throughput {
        int capability, f32, f64;
    };
    constexpr Throughput kKnown[] = {{70, 64, 32}, {75, 64, 2},   {80, 64, 32},   {86, 128, 2},
                                     {89, 128, 2}, {90, 128, 64}, {100, 128, 64}, {120, 128, 2}};
    for (const Throughput &t : kKnown) {
        if (t.capability != capability) continue;
        if (dtype == CONVT_U8 || dtype == CONVT_S8) return 64;
        return dtype == CONVT_F64 ? t.f64 : t.f32;
    }
    return 0;
}

class CudaSession : public DeviceSession {
  public:
    CudaSession() {
        require(d_.init(0), "cuInit");
        require(d_.device_get(&ordinal_, 0), "cuDeviceGet");
        require(d_.retain(&context_, ordinal_), "cuDevicePrimaryCtxRetain");
        require(d_.push(context_), "cuCtxPushCurrent");
        require(d_.create_stream(&stream_, 1), "cuStreamCreate"); // CU_STREAM_NON_BLOCKING
        for (void *&event : events_) require(d_.create_event(&event, 0), "cuEventCreate");
    }
    ~CudaSession() override {
        for (void *const event : events_) d_.destroy_event(event);
        d_.destroy_stream(stream_);
        d_.pop(&context_);
        d_.release_context(ordinal_);
    }

    void *context() override { return nullptr; } // the primary one
    void *stream() override { return stream_; }
    void *allocate(std::size_t bytes) override {
        Memory memory = 0;
        require(d_.allocate(&memory, bytes ? bytes : 1), "cuMemAlloc");
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(memory));
    }
    void release(void *memory) override { d_.release(of(memory)); }
    void upload(const void *from, void *to, std::size_t bytes) override {
        require(d_.upload(of(to), from, bytes), "cuMemcpyHtoD");
    }
    void download(const void *from, void *to, std::size_t bytes) override {
        require(d_.synchronize(stream_), "cuStreamSynchronize");
        require(d_.download(to, of(from), bytes), "cuMemcpyDtoH");
    }
    double seconds(const std::function<void()> &work) override {
        require(d_.record(events_[0], stream_), "cuEventRecord");
        work();
        require(d_.record(events_[1], stream_), "cuEventRecord");
        require(d_.wait(events_[1]), "cuEventSynchronize");
        float ms = 0;
        require(d_.elapsed(&ms, events_[0], events_[1]), "cuEventElapsedTime");
        return static_cast<double>(ms) * 1e-3;
    }
    double fma_peak_gflops(convt_dtype dtype) const override {
        const int per_cycle = fma_per_cycle(10 * attribute(kMajor) + attribute(kMinor), dtype);
        if (per_cycle == 0) return std::numeric_limits<double>::quiet_NaN();
        return 2e-6 * per_cycle * attribute(kMultiprocessors) * attribute(kClockKhz);
    }

  private:
    static Memory of(const void *memory) { return reinterpret_cast<std::uintptr_t>(memory); }
    void require(Result result, const char *what) const {
        if (result == 0) return;
        const char *text = nullptr;
        d_.error_text(result, &text);
        throw Error(std::string("CUDA: ") + what + ": " + (text ? text : "unknown error"));
    }
    int attribute(int which) const {
        int value = 0;
        require(d_.attribute(&value, which, ordinal_), "cuDeviceGetAttribute");
        return value;
    }

    const Driver d_;
    int ordinal_ = 0;
    void *context_ = nullptr, *stream_ = nullptr, *events_[2] = {nullptr, nullptr};
};

} // namespace

std::unique_ptr<DeviceSession> open_cuda() { return std::make_unique<CudaSession>(); }

} // namespace convtranspose::tools
