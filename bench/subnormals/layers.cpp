// CPU time of a run of f32 layers whose numbers are normal, or subnormal in x, in w, or in the products of both:
// docs/measurements/2026-11-26-subnormal-numbers.md says how it is compiled.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace {

struct Layer {
    std::int64_t ic, oc, extent; // of a kernel of 4x4, stride 2
};

struct Scale {
    float x, w; // of numbers between -1 and 1
};

double milliseconds() {
    std::timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

std::vector<float> draw(std::int64_t size, float scale) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> unit(-1, 1);
    std::vector<float> values(static_cast<std::size_t>(size));
    for (float &value : values) value = unit(random) * scale;
    return values;
}

// The least of 60 runs by one thread.
double time_of(const Layer &layer, const Scale &scale, const char *isa) {
    convtranspose::Problem problem;
    problem.x_shape = {1, layer.ic, layer.extent, layer.extent};
    problem.w_shape = {layer.ic, layer.oc, 4, 4};
    problem.attributes.strides = {{2, 2}};
    problem.attributes.pads = {{1, 1, 1, 1}};
    convtranspose::Options options{};
    options.threads = 1;
    options.isa = isa;
    const std::vector<float> x = draw(layer.ic * layer.extent * layer.extent, scale.x),
                             w = draw(layer.ic * layer.oc * 16, scale.w);
    std::vector<float> y(static_cast<std::size_t>(layer.oc * layer.extent * layer.extent * 4));
    convtranspose::Plan plan;
    convtranspose::Status status = convtranspose::Plan::create(problem, options, w.data(), nullptr, &plan);
    double best = 1e9;
    for (int i = 0; status && i < 60; i++) {
        const double begin = milliseconds();
        status = plan.run(x.data(), y.data());
        best = std::min(best, milliseconds() - begin);
    }
    if (!status) std::fprintf(stderr, "%s\n", status.message().c_str());
    return best;
}

} // namespace

int main() {
    for (const char *const isa : {"avx512", "avx2"}) {
        for (const Layer &layer : {Layer{64, 64, 32}, Layer{256, 128, 16}, Layer{64, 3, 64}}) {
            std::printf("%s, %d to %d channels of %dx%d:", isa, static_cast<int>(layer.ic), static_cast<int>(layer.oc),
                        static_cast<int>(layer.extent), static_cast<int>(layer.extent));
            for (const Scale &scale : {Scale{1, 1}, Scale{1e-40F, 1}, Scale{1, 1e-40F}, Scale{1e-20F, 1e-20F}}) {
                std::printf(" %.3f", time_of(layer, scale, isa));
            }
            std::printf(" ms\n");
        }
    }
}
