#include "tools/random_layer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tools/error.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

// Fills a tensor with values in [-scale, scale), or with 8-bit integers over their whole range.
Tensor random_tensor(convt_dtype dtype, const Shape &shape, double scale, std::mt19937 *generator) {
    Tensor tensor(dtype, shape);
    for (std::size_t i = 0, n = tensor.count(); i < n; i++) {
        const double unit = double((*generator)()) / 2147483648.0 - 1.0;
        if (is_integer(dtype)) {
            tensor.set(i, std::floor(unit * 128) + (dtype == CONVT_U8 ? 128 : 0));
        } else {
            tensor.set(i, scale * unit);
        }
    }
    return tensor;
}

// Puts zero points in the middle of x and of a symmetric w, and chooses scales so that outputs fill the range of y, or are about 1
// if x is of floats. `terms` counts the products of an output.
Quantization random_quantization(const Problem &problem, double terms, std::mt19937 *generator) {
    Quantization q;
    const std::int64_t channels = problem.w_shape[1] * problem.attributes.group;
    const float least_scale = is_integer(problem.dtype) ? 0.01f : static_cast<float>(2 / std::sqrt(terms) / 128);
    q.w_scale.clear();
    for (std::int64_t m = 0; m < channels; m++) {
        q.w_scale.push_back(least_scale * (1 + static_cast<float>((*generator)() % 256) / 256));
    }
    q.w_zero_point = {problem.w_dtype == CONVT_U8 ? 128 : 0};
    if (!is_integer(problem.dtype)) return q;
    q.x_scale = 0.02f;
    q.x_zero_point = problem.dtype == CONVT_U8 ? 128 : 0;
    for (const std::int64_t stride : problem.attributes.strides.value_or(Shape())) {
        terms /= double(std::max<std::int64_t>(stride, 1));
    }
    terms = std::max(terms, 1.0);
    const double deviation = 74 * 74 * std::sqrt(terms) * 0.02 * 0.015; // of y: 74 is that of all 256 values
    q.y_scale = static_cast<float>(deviation / 42);                     // three deviations fill the 8 bits
    q.y_zero_point = problem.y_dtype == CONVT_U8 ? 128 : 0;
    return q;
}

const Problem &valid(const Problem &problem) {
    require_valid(problem);
    return problem;
}

double terms_of(const Problem &problem) {
    const std::size_t weights = element_count(problem.w_shape);
    if (!weights || problem.w_shape.size() < 2) return 1;
    return double(weights) / double(problem.w_shape[1]) / double(std::max<std::int64_t>(problem.attributes.group, 1));
}

} // namespace

void require_valid(const Problem &problem) {
    Problem checked = problem;
    checked.quantization.reset(); // which comes with each run, as weights do
    Plan plan;
    throw_unless(Plan::create(checked, {}, nullptr, nullptr, &plan));
}

RandomLayer::RandomLayer(const Problem &p) : problem(valid(p)), terms(terms_of(p)), generator(20220) {
    const bool quantized = is_integer(problem.dtype);
    const convt_dtype w_dtype = problem.w_dtype.value_or(problem.dtype);
    if (is_integer(w_dtype) && problem.w_shape.size() > 1)
        problem.quantization = random_quantization(problem, terms, &generator);
    w = random_tensor(w_dtype, problem.w_shape, 3.0 / std::sqrt(terms), &generator);
    b = random_tensor(bias_dtype(problem), problem.b_shape.value_or(Shape{0}), quantized ? 5000.0 : 1.0, &generator);
    x = random_tensor(problem.dtype, problem.x_shape, 1.0, &generator);
}

Tensor RandomLayer::like(const Tensor &tensor) { return random_tensor(tensor.dtype, tensor.shape, 1.0, &generator); }

void require_plausible(const Tensor &y, double macs) {
    constexpr std::size_t kFew = 64; // an activation may take as many to one value
    const double least = y.dtype == CONVT_S8 ? -128 : 0, most = least + 255;
    bool differ = y.count() < kFew || macs == 0, within = differ || !is_integer(y.dtype);
    for (std::size_t i = 0, n = y.count(); i < n; i++) {
        const double value = y.at(i);
        if (!std::isfinite(value)) throw Error("element " + std::to_string(i) + " of the output is not finite");
        differ = differ || value != y.at(0);
        within = within || (value > least && value < most);
    }
    if (!differ) throw Error("all elements of the output are " + format("%g", y.at(0)));
    if (!within) throw Error("all elements of the output are saturated");
}

} // namespace convtranspose::tools
