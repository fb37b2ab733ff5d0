#include <convtranspose/convtranspose.hpp>

#include <cstdio>
#include <vector>

int main() {
    convtranspose::Problem problem; // ONNX ConvTranspose: kernel 4, stride 2, pad 1, f32, channels first
    problem.x_shape = {1, 256, 16, 12};
    problem.w_shape = {256, 128, 4, 4};
    problem.attributes.strides = {{2, 2}};
    problem.attributes.pads = {{1, 1, 1, 1}};
    std::vector<float> x(256 * 16 * 12, 1.0f), w(256 * 128 * 4 * 4, 0.5f), y(128 * 32 * 24);

    convtranspose::Plan plan; // packs the weights once; run it as often as you like, from any threads
    convtranspose::Status status = convtranspose::Plan::create(problem, {}, w.data(), nullptr, &plan);
    if (status) status = plan.run(x.data(), y.data());
    if (!status) {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        return 1;
    }
    std::printf("1x128x32x24 by %s on %s: %g in the middle\n", plan.variant().c_str(), plan.isa().c_str(),
                y[32 * 24 / 2]);
    return y[100] == 256 * 4 * 0.5f ? 0 : 1; // four taps, all inside
}
