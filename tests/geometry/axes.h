// Spatial axes for tests, and what the definition says of them: input i and kernel element k meet at output
// i * stride + k * dilation - pad_begin.
#ifndef CONVTRANSPOSE_TESTS_GEOMETRY_AXES_H_
#define CONVTRANSPOSE_TESTS_GEOMETRY_AXES_H_

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/problem/geometry.h"

namespace convtranspose::test {

using Meeting = std::tuple<std::int64_t, std::int64_t, std::int64_t>; // output, input, kernel element

inline AxisGeometry make_axis(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride,
                              std::int64_t dilation, std::int64_t pad_begin) {
    AxisGeometry axis;
    axis.in = in;
    axis.out = out;
    axis.kernel = kernel;
    axis.stride = stride;
    axis.dilation = dilation;
    axis.pad_begin = pad_begin;
    return axis;
}

inline std::string describe(const AxisGeometry &axis) {
    std::ostringstream text;
    text << "in " << axis.in << " out " << axis.out << " kernel " << axis.kernel << " stride " << axis.stride
         << " dilation " << axis.dilation << " pad_begin " << axis.pad_begin;
    return text.str();
}

inline std::vector<Meeting> by_definition(const AxisGeometry &axis) {
    std::vector<Meeting> meetings;
    for (std::int64_t i = 0; i < axis.in; ++i) {
        for (std::int64_t k = 0; k < axis.kernel; ++k) {
            const std::int64_t o = i * axis.stride + k * axis.dilation - axis.pad_begin;
            if (o >= 0 && o < axis.out) meetings.emplace_back(o, i, k);
        }
    }
    std::sort(meetings.begin(), meetings.end());
    return meetings;
}

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_GEOMETRY_AXES_H_
