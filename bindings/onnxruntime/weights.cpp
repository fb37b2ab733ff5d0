// Constant weights and biases, with DequantizeLinear and BatchNormalization computed into them.
#include <cmath>
#include <cstring>

#include "failure.h"
#include "layer.h"

namespace convtranspose::provider {

namespace {

std::vector<std::byte> copy_of(const TensorRef &tensor) {
    const std::optional<convt_dtype> dtype = dtype_of(tensor.element_type);
    const std::size_t size = dtype ? tensor.count() * convt_dtype_size(*dtype) : 0;
    std::vector<std::byte> bytes(size);
    if (size > 0) std::memcpy(bytes.data(), tensor.data, size);
    return bytes;
}

// (x - zero_point) * scale in f32, as ONNX Runtime computes it. There is one scale, or one for each position of an axis.
std::vector<std::byte> dequantized(const Dequantizer &by) {
    const TensorRef x = by.x.constant(), scale = by.scale.constant();
    const TensorRef zero = by.zero_point ? by.zero_point.constant() : TensorRef();
    const bool has_zero = static_cast<bool>(by.zero_point);
    std::size_t extent = 1, inner = 1;
    if (!scale.is_single()) {
        std::int64_t axis = by.node.int_attribute("axis").value_or(1);
        if (axis < 0) axis += static_cast<std::int64_t>(x.shape.size());
        if (x.shape.size() == 1) axis = 0; // a bias
        if (axis < 0 || axis >= static_cast<std::int64_t>(x.shape.size()) ||
            scale.count() != static_cast<std::size_t>(x.shape[static_cast<std::size_t>(axis)])) {
            throw Failure(kInvalidArgument, by.node.label() + ": its scales are not one for each position of axis " +
                                                std::to_string(axis));
        }
        extent = scale.count();
        for (auto d = static_cast<std::size_t>(axis) + 1; d < x.shape.size(); d++) {
            inner *= static_cast<std::size_t>(x.shape[d]);
        }
    }
    if (has_zero && zero.count() != scale.count()) {
        throw Failure(kInvalidArgument, by.node.label() + ": it has another number of zero points than of scales");
    }
    std::vector<std::byte> bytes(x.count() * sizeof(float));
    for (std::size_t i = 0; i < x.count(); i++) {
        const std::size_t s = i / inner % extent;
        const float value = static_cast<float>(x.at(i) - (has_zero ? zero.at(s) : 0)) * static_cast<float>(scale.at(s));
        std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
    }
    return bytes;
}

// Multiplies the weights of each output channel by gamma / sqrt(variance + epsilon), and moves the bias likewise. This is computed
// in f64, and rounded once.
template<typename T>
void fold(const Layer &layer, Weights *weights) {
    const Node &node = *layer.batch_norm;
    const TensorRef gamma = node.input(1).constant(), beta = node.input(2).constant(), mean = node.input(3).constant(),
                    variance = node.input(4).constant();
    const double epsilon = static_cast<double>(node.float_attribute("epsilon").value_or(1e-5f));
    const auto channels = static_cast<std::size_t>(layer.channels());
    const auto per_group = static_cast<std::size_t>(layer.problem.w_shape[1]);
    const auto group_inputs = static_cast<std::size_t>(layer.problem.w_shape[0] / layer.problem.attributes.group);
    std::vector<double> factors(channels);
    weights->b.resize(channels * sizeof(T));
    for (std::size_t m = 0; m < channels; m++) {
        factors[m] = gamma.at(m) / std::sqrt(variance.at(m) + epsilon);
        T bias = 0;
        if (layer.b) std::memcpy(&bias, weights->b.data() + m * sizeof bias, sizeof bias);
        bias = static_cast<T>((static_cast<double>(bias) - mean.at(m)) * factors[m] + beta.at(m));
        std::memcpy(weights->b.data() + m * sizeof bias, &bias, sizeof bias);
    }
    const std::size_t count = weights->w.size() / sizeof(T);
    const std::size_t taps =
        count / (group_inputs * static_cast<std::size_t>(layer.problem.attributes.group) * per_group);
    for (std::size_t i = 0; i < count; i++) {
        const std::size_t group = i / (taps * per_group) / group_inputs;
        T value;
        std::memcpy(&value, weights->w.data() + i * sizeof value, sizeof value);
        value = static_cast<T>(static_cast<double>(value) * factors[group * per_group + i / taps % per_group]);
        std::memcpy(weights->w.data() + i * sizeof value, &value, sizeof value);
    }
}

} // namespace

Weights weights_of(const Layer &layer) {
    Weights weights;
    if (layer.w_is_constant()) {
        weights.w = layer.w_dequantizer ? dequantized(*layer.w_dequantizer) : copy_of(layer.w.constant());
    }
    if (layer.b && layer.b.is_constant()) {
        weights.b = layer.b_dequantizer ? dequantized(*layer.b_dequantizer) : copy_of(layer.b.constant());
    }
    if (!layer.batch_norm) return weights;
    if (layer.problem.dtype == CONVT_F64) {
        fold<double>(layer, &weights);
    } else {
        fold<float>(layer, &weights);
    }
    return weights;
}

} // namespace convtranspose::provider
