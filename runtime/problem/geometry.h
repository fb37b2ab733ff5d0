// Attribute resolution: it turns the attributes and shapes of an ONNX ConvTranspose node into extents and taps.
// Code behind it sees no attribute of the node again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "base/shape.h"
#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// Returns an enumerator's value as an int. C may pass any int as an enumerator, but loading one that the enumeration does not
// have is undefined in C++.
template<typename Enum>
int raw(const Enum &value) {
    static_assert(sizeof(Enum) == sizeof(int));
    int result = 0;
    std::memcpy(&result, &value, sizeof result);
    return result;
}

// This is one spatial axis. Kernel element k meets phase r if and only if (r + pad_begin - k*dilation) is a multiple of
// stride. With g = gcd(stride, dilation), the kernel elements of a phase are therefore stride/g apart, and its input offsets
// dilation/g.
struct AxisGeometry {
    struct Inputs {
        std::int64_t begin, end;
    };

    std::int64_t in = 0;     // input extent, may be 0
    std::int64_t out = 0;    // output extent, > 0
    std::int64_t kernel = 0; // kernel extent, > 0
    std::int64_t stride = 1;
    std::int64_t dilation = 1;
    std::int64_t output_padding = 0;
    std::int64_t pad_begin = 0; // resolved; may exceed the kernel

    std::int64_t kernel_step() const { return -(stride / std::gcd(stride, dilation)); }
    std::int64_t offset_step() const { return dilation / std::gcd(stride, dilation); }

    // Returns the rest of the natural size. It is negative where output_shape asks for more.
    std::int64_t pad_end() const {
        return (in - 1) * stride + (kernel - 1) * dilation + output_padding + 1 - pad_begin - out;
    }

    // Returns the positions of x that outputs begin .. end - 1 may read: one at least, even if none reaches them, but none of an
    // empty x.
    Inputs read_by(std::int64_t begin, std::int64_t end) const;
};

// Returns an axis whose kernel has one element and whose stride is 1, so that each output position reads its own input
// position.
AxisGeometry pointwise_axis(std::int64_t extent);

// Names the dimension of y that is dense: the one that the layout says, or channels or the last axis whatever the layout
// (phases_as_channels.h, col2im.h).
enum class YOrder { kLayout, kChannels, kPlanar };

// Returns the value of output channel m in a list that has one, or one for each output channel.
template<typename T>
T of_channel(const std::vector<T> &values, std::int64_t m) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(m)];
}

// Weights of f32 that fewer bytes hold exactly: numbers of 16 bits, or an s8 times the scale of its output channel.
struct LightWeights {
    convt_dtype dtype = CONVT_F32;                    // f16, bf16 or s8; f32: none of these
    std::shared_ptr<const std::vector<float>> scales; // of s8: one, or one for each output channel

    bool exist() const { return dtype != CONVT_F32; }
    float scale_of(std::int64_t m) const { return of_channel(*scales, m); } // of s8
};

struct Geometry {
    convt_dtype dtype = CONVT_F32; // type of x
    convt_dtype w_dtype = CONVT_F32, b_dtype = CONVT_F32, y_dtype = CONVT_F32;
    bool quantizes_x = false; // as in convt_problem
    LightWeights light;       // what is known of weights of f32
    convt_layout layout = CONVT_CHANNELS_FIRST;
    YOrder y_order = YOrder::kLayout;
    bool has_bias = false;
    std::int64_t batch = 0;        // N, may be 0
    std::int64_t in_channels = 0;  // C, may be 0
    std::int64_t out_channels = 0; // M, may be 0
    std::int64_t group = 1;
    PostOps post_ops;
    std::vector<AxisGeometry> axes;           // spatial, outermost first
    Shape x_shape, w_shape, b_shape, y_shape; // as the problem lays them out
    Shape given_x_shape; // x with the axes that with_dimensions() left out; empty: it left out none
    // This is the distance in bytes between neighbouring positions of x along the last axis, channels last.
    std::int64_t x_column_bytes = 0;  // 0: the size of all channels
    std::int64_t x_part_of_bytes = 0; // size of the tensor that x is a part of; 0: x is all of it

    bool y_channels_last() const {
        return y_order == YOrder::kLayout ? layout == CONVT_CHANNELS_LAST : y_order == YOrder::kChannels;
    }
    // Sets x_shape, w_shape and y_shape by layout, batch, channels, group and axes.
    void set_shapes();
    DimensionOrder dimensions() const { return dimension_order(layout, x_shape.size()); }
    bool quantized() const { return dtype == CONVT_U8 || dtype == CONVT_S8; }
    bool has_scales() const { return w_dtype == CONVT_U8 || w_dtype == CONVT_S8; }
    std::int64_t in_channels_per_group() const { return in_channels / group; }
    std::int64_t out_channels_per_group() const { return out_channels / group; }
    std::int64_t kernel_volume() const {
        std::int64_t product = 1;
        for (const AxisGeometry &axis : axes) product *= axis.kernel;
        return product;
    }
    std::uint64_t x_bytes() const { return volume(x_shape) * size_of(dtype); }
    std::uint64_t y_bytes() const { return volume(y_shape) * size_of(y_dtype); }
    std::uint64_t w_bytes() const { return volume(w_shape) * size_of(w_dtype); }
    std::uint64_t b_bytes() const { return out_channels * size_of(b_dtype); }
};

// Checks the problem against every rule of the operator and fills *geometry; if a check fails, *geometry is unchanged.
Status resolve(const convt_problem &problem, Geometry *geometry);

// Returns true if x, the kernel and y each have one position along the axis, and these meet.
inline bool is_unit(const AxisGeometry &axis) {
    return axis.in == 1 && axis.kernel == 1 && axis.out == 1 && axis.pad_begin == 0;
}

// Returns the dimensions of x and y that are not unit axes. If all spatial axes are unit axes, one of them stays.
std::vector<std::size_t> without_unit_axes(const Geometry &geometry);

// Returns the same layer with only those dimensions of x and y. The elements of the tensors stay where they are. If there are
// no weights, the axes of the kernel and of x get extent 1.
Geometry with_dimensions(const Geometry &geometry, const std::vector<std::size_t> &dimensions);

// Returns the number of multiply-adds in the definition: the number of (output position, tap) pairs that read inside x, per
// axis, multiplied over the axes, times N * C * M/group. It is a double because it may exceed 2^63.
double count_macs(const Geometry &geometry);

} // namespace convtranspose
