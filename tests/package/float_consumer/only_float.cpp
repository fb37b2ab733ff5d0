// Linked with the float kernels alone: they work, the others are not in the program, and it says so.
#include <convtranspose/convtranspose.hpp>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace convtranspose;

int main() {
    Problem problem;
    problem.x_shape = {1, 8, 5, 5};
    problem.w_shape = {8, 16, 2, 2};
    problem.attributes.strides = {{2, 2}};
    const std::vector<float> x(8 * 5 * 5, 1.0f), w(8 * 16 * 2 * 2, 1.0f);
    std::vector<float> y(16 * 10 * 10);
    Plan plan;
    Status status = Plan::create(problem, {}, w.data(), nullptr, &plan);
    if (status) status = plan.run(x.data(), y.data());
    if (!status || y.front() != 8 || y.back() != 8) {
        std::fprintf(stderr, "f32 is wrong: %g %s\n", static_cast<double>(y.front()), status.message().c_str());
        return 1;
    }
    for (size_t i = 0; i < convt_variant_count(); i++) {
        const char *name = convt_variant_name(i);
        if (std::strstr(name, "_i8") || std::strstr(name, "_i16")) {
            std::fprintf(stderr, "%s was linked\n", name);
            return 1;
        }
    }
    problem.dtype = CONVT_U8;
    problem.w_dtype = CONVT_S8;
    problem.quantization = Quantization{};
    status = Plan::create(problem, {}, w.data(), nullptr, &plan);
    const std::string expected = "for quantized layers is built in";
    if (status.code() != CONVT_UNSUPPORTED || status.message().find(expected) == std::string::npos) {
        std::fprintf(stderr, "u8: '%s'\n", status.message().c_str());
        return 1;
    }
    std::printf("%zu variants, %s\n", convt_variant_count(), status.message().c_str());
    return 0;
}
