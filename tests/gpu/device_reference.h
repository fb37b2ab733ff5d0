// The reference that tests compare the results of devices with.
#ifndef CONVTRANSPOSE_TESTS_GPU_DEVICE_REFERENCE_H_
#define CONVTRANSPOSE_TESTS_GPU_DEVICE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {

// Returns what a device must compute. Compilers for devices may round acc * factor + b of an f32 y once, where CPUs round it twice:
// within 2^-24 of acc * factor, which is at most |y| + |b|, and the last bit of y.
inline Expected device_reference(const Problem &problem, const Inputs &inputs) {
    Expected expected = reference(problem, inputs);
    if (!is_quantized(problem.dtype) || expected.dtype != CONVT_F32) return expected;
    double most = 0;
    for (std::int64_t i = 0; inputs.b && i < inputs.b->size(); ++i) most = std::max(most, std::fabs(inputs.b->get(i)));
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
        expected.tolerance[i] = std::ldexp(2 * std::fabs(expected.value[i]) + most, -23);
    }
    return expected;
}

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_GPU_DEVICE_REFERENCE_H_
