// A device to measure on. It has memory that tensors stay in, and it counts time itself.
#ifndef CONVTRANSPOSE_TOOLS_DEVICE_SESSION_H_
#define CONVTRANSPOSE_TOOLS_DEVICE_SESSION_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"
#include "tools/tensor.h"

namespace convtranspose::tools {

class DeviceSession {
  public:
    // Opens the first device of a kind, "cuda" or "opencl". Throws Error if there is none.
    static std::unique_ptr<DeviceSession> open(const std::string &kind);

    DeviceSession() = default;
    DeviceSession(const DeviceSession &) = delete;
    DeviceSession &operator=(const DeviceSession &) = delete;
    virtual ~DeviceSession() = default;

    virtual void *context() = 0; // for plans
    virtual void *stream() = 0;  // for their runs
    virtual void *allocate(std::size_t bytes) = 0;
    virtual void release(void *memory) = 0;
    virtual void upload(const void *from, void *to, std::size_t bytes) = 0;
    virtual void download(const void *from, void *to, std::size_t bytes) = 0; // after all that is in the stream
    // Time that the device takes for what `work` puts into the stream, which is empty before.
    virtual double seconds(const std::function<void()> &work) = 0;
    // The peak at the device's highest clock, without tensor cores. NaN: the device does not tell.
    virtual double fma_peak_gflops(convt_dtype dtype) const = 0;
};

std::unique_ptr<DeviceSession> open_cuda();
std::unique_ptr<DeviceSession> open_opencl();

// A dense tensor's copy on a device.
class DeviceTensor {
  public:
    DeviceTensor(DeviceSession *session, const ConstTensorView &tensor)
        : session_(session), dtype_(tensor.dtype), shape_(tensor.shape),
          bytes_(element_count(tensor.shape) * convt_dtype_size(tensor.dtype)), memory_(session->allocate(bytes_)) {
        session->upload(tensor.data, memory_, bytes_);
    }
    ~DeviceTensor() { session_->release(memory_); }
    DeviceTensor(const DeviceTensor &) = delete;
    DeviceTensor &operator=(const DeviceTensor &) = delete;

    ConstTensorView view() const { return {memory_, dtype_, shape_, {}, CONVT_DEVICE_MEMORY}; }
    TensorView mutable_view() const { return {memory_, dtype_, shape_, {}, CONVT_DEVICE_MEMORY}; }
    void download(Tensor *to) const { session_->download(memory_, to->data.data(), bytes_); }

  private:
    DeviceSession *const session_;
    const convt_dtype dtype_;
    const Shape shape_;
    const std::size_t bytes_;
    void *const memory_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_DEVICE_SESSION_H_
