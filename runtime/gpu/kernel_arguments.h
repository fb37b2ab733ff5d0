// This puts the arguments of a kernel in the order of its generator's inputs.
#ifndef CONVTRANSPOSE_RUNTIME_GPU_KERNEL_ARGUMENTS_H_
#define CONVTRANSPOSE_RUNTIME_GPU_KERNEL_ARGUMENTS_H_

#include <HalideRuntime.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/device_table.h"
#include "kernel_contract/table_columns.h"

namespace convtranspose {

// Kernels divide by multiplication: n / value = (n * multiplier) >> shift for n < 2^31 and value > 0.
struct Divisor {
    std::int32_t value = 1;
    std::uint32_t multiplier = 0;
    std::int32_t shift = 0;

    Divisor() : Divisor(1) {}
    explicit Divisor(std::int64_t of) : value(static_cast<std::int32_t>(of)) {
        int log = 0; // the least with 2^log >= value
        while ((std::int64_t{1} << log) < of) log++;
        shift = 31 + log;
        const std::uint64_t power = std::uint64_t{1} << shift, d = static_cast<std::uint64_t>(of);
        multiplier = static_cast<std::uint32_t>((power + d - 1) / d);
    }
};

class KernelArguments {
  public:
    explicit KernelArguments(const halide_device_interface_t *device_interface) : interface_(device_interface) {}
    KernelArguments(const KernelArguments &) = delete;
    KernelArguments &operator=(const KernelArguments &) = delete;

    // Adds a dense buffer.
    void add_buffer(std::uint64_t memory, halide_type_t type, std::initializer_list<std::int64_t> extents) {
        Buffer &b = buffers_[buffer_count_++];
        b.raw.device = memory;
        b.raw.device_interface = interface_;
        b.raw.type = type;
        b.raw.dimensions = static_cast<std::int32_t>(extents.size());
        b.raw.dim = b.dims;
        std::int64_t stride = 1;
        std::size_t i = 0;
        for (const std::int64_t extent : extents) {
            b.dims[i++] = halide_dimension_t(0, static_cast<std::int32_t>(extent), static_cast<std::int32_t>(stride));
            stride *= extent;
        }
        pointers_[++count_] = &b.raw;
    }
    void add(std::int64_t value) { put(static_cast<std::uint32_t>(static_cast<std::int32_t>(value))); }
    void add(float value) {
        std::uint32_t bits = 0;
        __builtin_memcpy(&bits, &value, sizeof bits);
        put(bits);
    }
    template<typename Range>
    void add_all(const Range &values) {
        for (const auto value : values) add(static_cast<std::int64_t>(value));
    }
    void add(const Divisor &d) {
        add(std::int64_t{d.value});
        put(d.multiplier);
        add(std::int64_t{d.shift});
    }
    // Adds the divisors of several axes: all values, then all multipliers, then all shifts.
    template<typename Range>
    void add_divisors(const Range &divisors) {
        for (const Divisor &d : divisors) add(std::int64_t{d.value});
        for (const Divisor &d : divisors) put(d.multiplier);
        for (const Divisor &d : divisors) add(std::int64_t{d.shift});
    }

    void **data() { return pointers_.data(); } // the first is for the user context

  private:
    struct Buffer {
        halide_dimension_t dims[5] = {};
        halide_buffer_t raw = {};
    };
    void put(std::uint32_t bits) {
        values_[value_count_] = bits;
        pointers_[++count_] = &values_[value_count_++];
    }

    const halide_device_interface_t *interface_;
    std::array<Buffer, 8> buffers_;
    std::array<std::uint32_t, 72> values_ = {};
    std::array<void *, 82> pointers_ = {};
    std::size_t buffer_count_ = 0, value_count_ = 0, count_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_GPU_KERNEL_ARGUMENTS_H_
