// A table describes the library's component for a kind of device: its kernels, and calls of the driver. Its rows are generated
// from kernels/table.py. The component's own code and Halide's runtime for it are linked into one object whose only
// symbol is the table (cmake/devices.cmake), so that a program may have other Halide kernels and runtimes of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.h"
#include "kernel_contract/kernel_types.h"

struct halide_device_interface_t;

namespace convtranspose {

// This is the _argv function of a kernel. It takes pointers to a user context and then to each argument.
using DeviceFunction = int (*)(void **arguments);

// These numbers were fitted to measured times (kernels/device_costs.json). Cycles are those of a multiprocessor.
struct VariantCosts {
    double step_cycles;   // of a step of a block while the multiprocessor is full
    double step_latency;  // of a step of a block that is alone
    double block_latency; // of all else that a block does
    int resident_blocks;  // that a multiprocessor runs at once
};

struct DeviceCosts {
    double launch_cycles;   // of a kernel, whatever it does
    double bytes_per_cycle; // from memory, for each multiprocessor
    double strided;         // times as long, if neighbouring threads read or write elements that are apart
};

struct DeviceVariant {
    const char *name; // family_dtype_tile
    DeviceCall call;
    Arithmetic arithmetic;        // kFloat; kInt16 or kInt8, which read x as u8
    bool along_channels;          // true: neighbouring threads read neighbouring channels of x
    convt_dtype x_dtype, y_dtype; // kCombine: of the parts and of y; u8 stands for s8 too
    int tile_oc, tile_p;          // the tile of a block of threads
    int chunk;                    // a number of input channels
    int threads;
    VariantCosts costs;
    DeviceFunction run;
};

// Returns the number of input channels that are multiplied together.
constexpr int block_of(const DeviceVariant &v) { return v.arithmetic == Arithmetic::kInt8 ? 4 : 1; }

// This is an error of a driver. The status is CONVT_OK if there is none.
struct DeviceError {
    convt_status status = CONVT_OK;
    char text[512] = {0};
};

struct Device; // an open device, with its context

struct DeviceFacts {
    int multiprocessors = 0;
    bool has_f64 = true; // true if it computes with f64
    char name[512] = {0};
};

// These are the calls of a driver. Those with a DeviceError return false (count: -1) and set it if they fail. `memory` is as in
// halide_buffer_t::device.
struct DeviceBackend {
    int (*count)(DeviceError *error);                                              // number of devices; -1: failed
    bool (*describe)(int index, char *text, std::size_t size, DeviceError *error); // text: the name, as in DeviceFacts
    bool (*open)(int index, void *context, Device **device, DeviceFacts *facts, DeviceError *error);
    void (*close)(Device *device);
    const halide_device_interface_t *(*interface)();

    bool (*allocate)(Device *device, std::uint64_t bytes, std::uint64_t *memory, DeviceError *error);
    void (*release)(Device *device, std::uint64_t memory);
    // These two are for the caller's own memory.
    bool (*wrap)(Device *device, void *data, std::uint64_t *memory, DeviceError *error);
    void (*unwrap)(std::uint64_t memory);

    // These work in a stream, after all that is in it. When they return, the host's memory may be changed or read.
    bool (*upload)(Device *device, void *stream, const void *from, std::uint64_t to, std::uint64_t bytes,
                   DeviceError *error);
    bool (*download)(Device *device, void *stream, std::uint64_t from, void *to, std::uint64_t bytes,
                     DeviceError *error);
    bool (*call)(Device *device, void *stream, DeviceFunction function, void **arguments, DeviceError *error);
    void *stream_of_thread; // a handle that stands for another stream in each thread; null: there is none
};

struct DeviceTable {
    const char *kind; // "cuda"
    const DeviceVariant *variants;
    std::size_t variant_count;
    DeviceCosts costs;
    const DeviceBackend *backend; // null: the component is not linked
};

extern "C" const DeviceTable convt_cuda_kernels, convt_opencl_kernels;

} // namespace convtranspose
