// Attribute resolution: from an ONNX ConvTranspose node's attributes and shapes to extents and taps.
// After this, nothing in the library sees a pad, a dilation or an attribute again.
#ifndef CONVTRANSPOSE_RUNTIME_PROBLEM_GEOMETRY_H_
#define CONVTRANSPOSE_RUNTIME_PROBLEM_GEOMETRY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/shape.h"
#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// C may hand over any int as an enumerator, but to load one that the enumeration does not have is undefined in C++.
template<typename Enum>
int raw(const Enum &value) {
    static_assert(sizeof(Enum) == sizeof(int));
    int result = 0;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

// The taps of one residue of one axis. Output positions o = stride*q + residue meet kernel elements
// kernel_begin + t*kernel_step, t = 0..count-1, and there read input positions q + offset + t*offset_step
// where those lie inside the input; elsewhere the tap contributes nothing. Taps that no position of the output meets inside the
// input are left out.
// Ordered by rising input position, so kernel_step < 0 < offset_step (both of AxisGeometry). count may be 0.
struct Taps {
    std::int64_t kernel_begin = 0;
    std::int64_t offset = 0;
    std::int64_t count = 0;
};

// One spatial axis. With g = gcd(stride, dilation), kernel element k meets residue r iff (r + pad_begin - k*dilation) is a
// multiple of stride, so a residue's kernel elements are an arithmetic progression of step stride/g and its input offsets
// one of step dilation/g.
struct AxisGeometry {
    std::int64_t in = 0;     // input extent, may be 0
    std::int64_t out = 0;    // output extent, > 0
    std::int64_t kernel = 0; // kernel extent, > 0
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t output_padding = 0;
    std::int64_t pad_begin = 0; // resolved; may exceed the kernel
    // Resolved: natural - out - pad_begin, negative where output_shape asks for more than natural.
    std::int64_t pad_end = 0;
    std::int64_t kernel_step = 0; // -(stride / gcd(stride, dilation))
    std::int64_t offset_step = 0; // dilation / gcd(stride, dilation)
};

// Of a kernel of one element and stride 1: each position is its own.
AxisGeometry pointwise_axis(std::int64_t extent);

// The taps of residue r in 0..stride-1, by arithmetic: nothing is stored per residue, so a stride of 10^9 costs nothing.
Taps taps_of(const AxisGeometry &axis, std::int64_t residue);

// What is dense of y: as the layout says, or whatever the layout is (phases_as_channels.h, col2im.h).
enum class YOrder { kLayout, kChannels, kPlanar };

struct Geometry {
    convt_dtype dtype = CONVT_F32; // of x
    convt_dtype w_dtype = CONVT_F32, b_dtype = CONVT_F32, y_dtype = CONVT_F32;
    convt_layout layout = CONVT_CHANNELS_FIRST;
    YOrder y_order = YOrder::kLayout;
    bool has_bias = false;
    std::int64_t batch = 0;        // N, may be 0
    std::int64_t in_channels = 0;  // C, may be 0
    std::int64_t out_channels = 0; // M, may be 0
    std::int64_t group = 1;
    convt_post_ops post_ops = {};
    std::vector<AxisGeometry> axes;  // spatial, outermost first
    Shape x_shape, w_shape, y_shape; // as the problem lays them out
    Shape given_x_shape;             // with the axes that with_dimensions() left out; empty: it left out none
    // From one position of x to the next along the last axis, channels last, if it is not the size of all channels.
    std::int64_t x_column_bytes = 0;  // 0: it is
    std::int64_t x_part_of_bytes = 0; // of the tensor that x is a part of; 0: it is all

    bool y_channels_last() const {
        return y_order == YOrder::kLayout ? layout == CONVT_CHANNELS_LAST : y_order == YOrder::kChannels;
    }
    DimensionOrder dimensions() const { return dimension_order(layout, x_shape.size()); }
    bool quantized() const { return dtype == CONVT_U8 || dtype == CONVT_S8; }
    std::int64_t in_channels_per_group() const { return in_channels / group; }
    std::int64_t out_channels_per_group() const { return out_channels / group; }
    std::int64_t kernel_volume() const {
        std::int64_t product = 1;
        for (const AxisGeometry &axis : axes) product *= axis.kernel;
        return product;
    }
    std::uint64_t w_bytes() const { return static_cast<std::uint64_t>(volume(w_shape)) * convt_dtype_size(w_dtype); }
    std::uint64_t b_bytes() const { return static_cast<std::uint64_t>(out_channels) * convt_dtype_size(b_dtype); }
};

// Checks the problem against every rule of the operator and fills *geometry; on failure *geometry is untouched.
Status resolve(const convt_problem &problem, Geometry *geometry);

// Whether one element of x meets the only one of the kernel in the one output there is.
inline bool is_unit(const AxisGeometry &axis) {
    return axis.in == 1 && axis.kernel == 1 && axis.out == 1 && axis.pad_begin == 0;
}

// The dimensions of x and y without those of such axes, of which one stays if there are no others.
std::vector<std::size_t> without_unit_axes(const Geometry &geometry);

// The same layer, of whose x and y only those dimensions are left. Tensors are where they were. Where there are no weights, kernels
// and x have one position.
Geometry with_dimensions(const Geometry &geometry, const std::vector<std::size_t> &dimensions);

// Multiply-adds of the definition: per axis the number of (output position, tap) pairs that read inside the input,
// multiplied over the axes, times N * C * M/group. A double, for it may exceed 2^63.
double count_macs(const Geometry &geometry);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_PROBLEM_GEOMETRY_H_
