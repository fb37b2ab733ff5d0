// Says which layers of 8-bit weights are faster in floats. The ONNX Runtime provider computes by this, and the tools plan by it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose {

// True if the library can compute the phases of all axes as output channels, which needs constant weights and a tap for each phase.
inline bool has_phases_as_channels(const Attributes &attributes, const Shape &w_shape, bool constant_w) {
    constexpr std::size_t kMostAxes = 3;
    if (!constant_w || w_shape.size() > kMostAxes + 2 || attributes.strides->size() + 2 != w_shape.size()) return false;
    for (std::size_t d = 0; d + 2 < w_shape.size(); d++) {
        const std::int64_t stride = (*attributes.strides)[d];
        const bool is_dilated = attributes.dilations && d < attributes.dilations->size();
        if (w_shape[d + 2] < stride || std::gcd(stride, is_dilated ? (*attributes.dilations)[d] : 1) > 1) return false;
    }
    return true;
}

// Returns why floats are faster, if they are. 8-bit kernels for few output channels are made for small strides, and for one of 8
// along rows. With other strides they leave most of each vector empty, unless phases become channels; in floats, phases without
// taps may too.
inline std::optional<std::string> prefer_floats(const Attributes &attributes, const Shape &w_shape, bool constant_w) {
    constexpr std::int64_t kFewChannels = 8, kSmallStride = 4, kStrideOfRows = 8;
    if (w_shape.size() < 3 || w_shape[1] < 0 || w_shape[1] >= kFewChannels) return std::nullopt;
    if (!attributes.strides || w_shape[0] == attributes.group) return std::nullopt; // depthwise kernels take any stride
    std::int64_t largest = 1, across = 1; // of all axes, and of all but the last
    for (std::size_t d = 0; d < attributes.strides->size(); d++) {
        const std::int64_t stride = (*attributes.strides)[d];
        largest = std::max(largest, stride);
        if (d + 1 < attributes.strides->size()) across = std::max(across, stride);
    }
    if (largest <= kSmallStride || (largest == kStrideOfRows && across == 1)) return std::nullopt;
    if (has_phases_as_channels(attributes, w_shape, constant_w)) return std::nullopt;
    return "with " + std::to_string(w_shape[1]) + " output channels in a group and a stride of " +
           std::to_string(largest) + " floats are faster";
}

} // namespace convtranspose
