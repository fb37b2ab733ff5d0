// A library with the f32 kernels of one family and ISA works, and says so where something was left out.
#include <convtranspose/convtranspose.hpp>

#include <cstdio>
#include <string>
#include <vector>

using namespace convtranspose;

namespace {

int failures = 0;

void expect(bool condition, const char *what, const std::string &text) {
    if (condition) return;
    std::fprintf(stderr, "%s: '%s'\n", what, text.c_str());
    failures++;
}

} // namespace

int main(int, char **argv) {
    const std::string isa = argv[1];
    Problem problem;
    problem.x_shape = {1, 8, 5, 5};
    problem.w_shape = {8, 16, 2, 2};
    problem.attributes.strides = {{2, 2}};
    const std::vector<double> w(8 * 16 * 2 * 2, 0.0); // large enough for any type
    const std::vector<float> x(8 * 5 * 5, 1.0f), ones(8 * 16 * 2 * 2, 1.0f);
    std::vector<float> y(16 * 10 * 10);
    Plan plan;
    Status status = Plan::create(problem, {}, ones.data(), nullptr, &plan);
    if (status) status = plan.run(x.data(), y.data());
    expect(bool(status), "f32 failed", status.message());
    expect(y.front() == 8 && y.back() == 8, "f32 is wrong", std::to_string(y.front()));
    if (status) {
        expect(plan.isa() == isa, "another ISA", plan.isa());
        expect(plan.variant().rfind("oc_vectorized_f32_", 0) == 0, "another kernel", plan.variant());
    }
    expect(convt_isa_count() == 1, "ISAs", std::to_string(convt_isa_count()));

    problem.dtype = CONVT_F64;
    status = Plan::create(problem, {}, w.data(), nullptr, &plan);
    expect(status.code() == CONVT_UNSUPPORTED, "f64 was taken", status.message());
    expect(status.message() == "no kernel of " + isa + " for f64 is built in", "f64", status.message());

    problem.dtype = CONVT_U8;
    problem.w_dtype = CONVT_S8;
    problem.quantization = Quantization{};
    status = Plan::create(problem, {}, w.data(), nullptr, &plan);
    expect(status.message() == "no kernel of " + isa + " for quantized layers is built in", "u8", status.message());
    return failures ? 1 : 0;
}
