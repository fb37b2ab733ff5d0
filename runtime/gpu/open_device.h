// A device in use, and memory on it, are released when nobody uses them any more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "convtranspose/convtranspose.hpp"
#include "gpu/device_table.h"

namespace convtranspose {

// Returns the table of a kind of device, or null if its component is not linked.
const DeviceTable *find_device_table(const std::string &kind);

// Returns the status of a call of a driver.
inline Status to_status(bool done, const DeviceError &error) {
    return done ? Status() : Status(error.status, error.text);
}

class OpenDevice {
  public:
    // Opens a device. Plans for the same device and context share one, and with it the kernels that the driver has compiled. A
    // device that is opened without a context of the caller's stays open for later plans.
    static Status open(const DeviceTable &table, int index, void *context, std::shared_ptr<OpenDevice> *out);
    ~OpenDevice() {
        if (device_) table_.backend->close(device_);
    }
    OpenDevice(const OpenDevice &) = delete;
    OpenDevice &operator=(const OpenDevice &) = delete;

    const DeviceTable &table() const { return table_; }
    const DeviceBackend &backend() const { return *table_.backend; }
    const DeviceFacts &facts() const { return facts_; }
    Device *get() const { return device_; }

  private:
    explicit OpenDevice(const DeviceTable &table) : table_(table) {}

    const DeviceTable &table_;
    Device *device_ = nullptr;
    DeviceFacts facts_;
};

// This is memory on a device, the library's own or, if wrapped, the caller's. It may be empty.
class DeviceMemory {
  public:
    DeviceMemory() = default;
    DeviceMemory(DeviceMemory &&other) noexcept { swap(other); }
    DeviceMemory &operator=(DeviceMemory &&other) noexcept {
        swap(other);
        return *this;
    }
    ~DeviceMemory() {
        if (!device_) return;
        if (wrapped_) {
            device_->backend().unwrap(memory_);
        } else {
            device_->backend().release(device_->get(), memory_);
        }
    }

    Status allocate(std::shared_ptr<OpenDevice> device, std::uint64_t bytes) {
        DeviceMemory made;
        DeviceError error;
        if (!device->backend().allocate(device->get(), bytes, &made.memory_, &error)) return to_status(false, error);
        made.device_ = std::move(device);
        made.bytes_ = bytes;
        swap(made);
        return Status();
    }
    Status wrap(std::shared_ptr<OpenDevice> device, const void *data) {
        DeviceMemory made;
        DeviceError error;
        if (!device->backend().wrap(device->get(), const_cast<void *>(data), &made.memory_, &error))
            return to_status(false, error);
        made.device_ = std::move(device);
        made.wrapped_ = true;
        swap(made);
        return Status();
    }
    Status upload(void *stream, const void *from, std::uint64_t bytes) const {
        DeviceError error;
        return to_status(device_->backend().upload(device_->get(), stream, from, memory_, bytes, &error), error);
    }
    Status download(void *stream, void *to, std::uint64_t bytes) const {
        DeviceError error;
        return to_status(device_->backend().download(device_->get(), stream, memory_, to, bytes, &error), error);
    }

    explicit operator bool() const { return device_ != nullptr; }
    std::uint64_t get() const { return memory_; }
    std::uint64_t bytes() const { return bytes_; }

  private:
    void swap(DeviceMemory &other) {
        std::swap(device_, other.device_);
        std::swap(memory_, other.memory_);
        std::swap(bytes_, other.bytes_);
        std::swap(wrapped_, other.wrapped_);
    }

    std::shared_ptr<OpenDevice> device_;
    std::uint64_t memory_ = 0, bytes_ = 0;
    bool wrapped_ = false;
};

} // namespace convtranspose
