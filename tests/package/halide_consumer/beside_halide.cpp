// Both of our archives, and a pipeline of Halide with a runtime of its own, in one program.
#include <convtranspose/convtranspose.hpp>

#include <cstdio>
#include <vector>

#include "own_copy.h"

using namespace convtranspose;

namespace {

bool layer(convt_dtype dtype, const void *w, const void *x, void *y) {
    Problem problem;
    problem.dtype = dtype;
    problem.x_shape = {1, 4, 3, 3};
    problem.w_shape = {4, 4, 1, 1};
    if (dtype == CONVT_U8) problem.quantization = Quantization{};
    Plan plan;
    Status status = Plan::create(problem, {}, w, nullptr, &plan);
    if (status) status = plan.run(x, y);
    if (!status) std::fprintf(stderr, "%s\n", status.message().c_str());
    return bool(status);
}

} // namespace

int main() {
    const std::vector<float> x(36, 2.0f), w(16, 1.0f);
    std::vector<float> y(36), copy(36);
    if (!layer(CONVT_F32, w.data(), x.data(), y.data()) || y[35] != 8) return 1;
    const std::vector<std::uint8_t> bytes(36, 2), weights(16, 1);
    std::vector<std::uint8_t> quantized(36);
    if (!layer(CONVT_U8, weights.data(), bytes.data(), quantized.data()) || quantized[35] != 8) return 1;

    halide_dimension_t dims[7] = {};
    int stride = 1;
    for (int i = 0; i < 7; i++) {
        const int extent = i == 1 ? 36 : 1; // w
        dims[i] = {0, extent, stride, 0};
        stride *= extent;
    }
    halide_buffer_t from{}, to{};
    from.host = reinterpret_cast<std::uint8_t *>(y.data());
    to.host = reinterpret_cast<std::uint8_t *>(copy.data());
    from.type = to.type = halide_type_of<float>();
    from.dimensions = to.dimensions = 7;
    from.dim = to.dim = dims;
    const int result = own_copy(&from, 0, 0, false, false, &to);
    if (result != 0 || copy != y) {
        std::fprintf(stderr, "own_copy returned %d\n", result);
        return 1;
    }
    std::printf("three archives, one program\n");
    return 0;
}
