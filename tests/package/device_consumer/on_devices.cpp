// on_devices KIND...: the installed library has exactly these kinds of devices. A layer on each, if there is one, and on the CPU
// if not and its kernels are linked; beside a pipeline with a Halide runtime of its own, if there is that.
#include <convtranspose/convtranspose.hpp>

#include <cstdio>
#include <string>
#include <vector>

#ifdef WITH_OWN_HALIDE
#include "own_copy.h"
#endif

using namespace convtranspose;

namespace {

bool layer_on(const std::string &kind) {
    Problem problem; // f32, channels first
    problem.x_shape = {1, 16, 5, 5};
    problem.w_shape = {16, 8, 2, 2};
    problem.attributes.strides = {{2, 2}};
    const std::vector<float> x(16 * 25, 2.0f), w(16 * 8 * 4, 0.5f);
    std::vector<float> y(8 * 100, 0.0f);
    Options options{};
    options.device.name = kind.c_str();
    Plan plan;
    Status status = Plan::create(problem, options, w.data(), nullptr, &plan);
    if (convt_device_count(kind.c_str()) == 0) {
        std::printf("%s: %s\n", kind.c_str(), status.message().c_str());
        if (status.code() != CONVT_UNSUPPORTED) return false;
        options.device.falls_back = 1;
        status = Plan::create(problem, options, w.data(), nullptr, &plan);
#ifdef ALONE
        return status.code() == CONVT_UNSUPPORTED;
#endif
    }
    if (status) status = plan.run(x.data(), y.data());
    if (!status) {
        std::fprintf(stderr, "%s: %s\n", kind.c_str(), status.message().c_str());
        return false;
    }
    std::printf("%s: %s on %s\n", kind.c_str(), plan.variant().c_str(), plan.device().c_str());
    for (const float value : y) {
        if (value != 16.0f) return false;
    }
    return true;
}

#ifdef WITH_OWN_HALIDE
bool own_pipeline() {
    std::vector<float> from_data(36, 2.0f), to_data(36);
    halide_dimension_t dims[7] = {};
    int stride = 1;
    for (int i = 0; i < 7; i++) {
        const int extent = i == 1 ? 36 : 1; // w
        dims[i] = {0, extent, stride, 0};
        stride *= extent;
    }
    halide_buffer_t from{}, to{};
    from.host = reinterpret_cast<std::uint8_t *>(from_data.data());
    to.host = reinterpret_cast<std::uint8_t *>(to_data.data());
    from.type = to.type = halide_type_of<float>();
    from.dimensions = to.dimensions = 7;
    from.dim = to.dim = dims;
    return own_copy(&from, 0, 0, false, false, &to) == 0 && to_data == from_data;
}
#endif

} // namespace

int main(int count, char **kinds) {
    if (convt_device_kind_count() != static_cast<std::size_t>(count - 1)) return 1;
    for (int i = 1; i < count; i++) {
        if (!layer_on(kinds[i])) return 1;
    }
#ifdef WITH_OWN_HALIDE
    if (!own_pipeline()) return 1;
#endif
    return 0;
}
