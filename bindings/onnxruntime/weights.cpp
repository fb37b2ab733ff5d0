// Constant weights and biases, with DequantizeLinear, Cast and BatchNormalization computed into them, in as few bytes as is
// allowed.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "bindings/onnxruntime/prefer_floats.h"
#include "failure.h"
#include "layer.h"
#include "runtime/base/half.h"

namespace convtranspose::provider {

namespace {

// Numbers of f32 among bytes.
float float_at(const std::vector<std::byte> &bytes, std::size_t i) {
    float value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

// Floats of 16 bits become f32 if the layer is one of f32: a Cast stands before them.
std::vector<std::byte> copy_of(const TensorRef &tensor, convt_dtype layer_dtype) {
    const std::optional<convt_dtype> dtype = dtype_of(tensor.element_type);
    const std::size_t size = dtype ? tensor.count() * convt_dtype_size(*dtype) : 0;
    std::vector<std::byte> bytes(size);
    if (layer_dtype == CONVT_F32 && (dtype == CONVT_F16 || dtype == CONVT_BF16)) {
        bytes.resize(tensor.count() * sizeof(float));
        widen(*dtype, tensor.data, tensor.count(), reinterpret_cast<float *>(bytes.data()));
    } else if (size > 0) {
        std::memcpy(bytes.data(), tensor.data, size);
    }
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

// Numbers the output channels that elements of weights belong to. `problem` has a group that divides its channels.
class ChannelOf {
  public:
    explicit ChannelOf(const Problem &problem)
        : per_group_(static_cast<std::size_t>(problem.w_shape[1])),
          group_inputs_(static_cast<std::size_t>(problem.w_shape[0] / problem.attributes.group)) {
        for (std::size_t d = 2; d < problem.w_shape.size(); d++) taps_ *= static_cast<std::size_t>(problem.w_shape[d]);
    }

    std::size_t operator()(std::size_t element) const {
        const std::size_t row = element / taps_; // of an input and an output channel
        return row / per_group_ / group_inputs_ * per_group_ + row % per_group_;
    }

  private:
    std::size_t per_group_, group_inputs_, taps_ = 1;
};

// Multiplies the weights of each output channel by gamma / sqrt(variance + epsilon), and moves the bias likewise. This is computed
// in f64, and rounded once.
template<typename T>
void fold(const Layer &layer, Weights *weights) {
    const Node &node = *layer.batch_norm;
    const TensorRef gamma = node.input(1).constant(), beta = node.input(2).constant(), mean = node.input(3).constant(),
                    variance = node.input(4).constant();
    const double epsilon = static_cast<double>(node.float_attribute("epsilon").value_or(1e-5f));
    const auto channels = static_cast<std::size_t>(layer.channels());
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
    const ChannelOf channel_of(layer.problem);
    for (std::size_t i = 0; i < count; i++) {
        T value;
        std::memcpy(&value, weights->w.data() + i * sizeof value, sizeof value);
        value = static_cast<T>(static_cast<double>(value) * factors[channel_of(i)]);
        std::memcpy(weights->w.data() + i * sizeof value, &value, sizeof value);
    }
}

// Rounds f32 to f16 or bf16. Returns none if a finite number would become infinite; if `exactly`, if any number changes.
std::optional<std::vector<std::byte>> narrowed(const std::vector<std::byte> &floats, convt_dtype dtype, bool exactly) {
    const std::size_t size = convt_dtype_size(dtype), count = floats.size() / sizeof(float);
    std::vector<std::byte> bytes; // most weights need f32, and the first of them say so: nothing is allocated for all
    for (std::size_t i = 0; i < count; i++) {
        const float value = float_at(floats, i);
        bytes.resize((i + 1) * size);
        store_element(dtype, static_cast<double>(value), bytes.data() + i * size);
        const double back = load_element(dtype, bytes.data() + i * size);
        if (exactly ? back != static_cast<double>(value) : std::isinf(back) && std::isfinite(value))
            return std::nullopt;
    }
    return bytes;
}

// Rounds f32 to s8, with a scale for each output channel that makes 127 of its greatest magnitude. Returns none if one is not
// finite.
std::optional<std::vector<std::byte>> rounded(const std::vector<std::byte> &floats, const Layer &layer,
                                              std::vector<float> *scales) {
    constexpr float kMost = 127;
    const ChannelOf channel_of(layer.problem);
    std::vector<std::byte> bytes(floats.size() / sizeof(float));
    scales->assign(static_cast<std::size_t>(layer.channels()), 0);
    for (std::size_t i = 0; i < bytes.size(); i++) {
        float &most = (*scales)[channel_of(i)];
        most = std::max(most, std::fabs(float_at(floats, i)));
        if (!std::isfinite(float_at(floats, i))) return std::nullopt;
    }
    for (float &scale : *scales) scale = std::isnormal(scale / kMost) ? scale / kMost : 1;
    for (std::size_t i = 0; i < bytes.size(); i++) {
        const float whole = std::nearbyint(float_at(floats, i) / (*scales)[channel_of(i)]);
        bytes[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::clamp(whole, -kMost, kMost)));
    }
    return bytes;
}

constexpr const char *kScalesOfChannels = ", with a scale for each output channel";

// Weights of 8 bits that a DequantizeLinear makes f32 of stay as they are. Says why not.
std::optional<std::string> keep_integers(const Layer &layer, Problem *problem) {
    const std::optional<convt_dtype> dtype = dtype_of(layer.w.element_type());
    if (dtype != CONVT_U8 && dtype != CONVT_S8) return "it is not quantized to 8 bits";
    if (layer.batch_norm) return layer.batch_norm->label() + " is part of it";
    Quantization q;
    if (auto why = read_weight_scales(*layer.w_dequantizer, problem->attributes.group, &q)) return why;
    problem->w_dtype = dtype;
    problem->quantization = std::move(q);
    return std::nullopt;
}

// Converts f32 weights to the type of the settings, or to one of 16 bits that holds all of their numbers. Says what was done.
std::string lighten(const Layer &layer, const Settings &settings, Problem *problem, std::vector<std::byte> *w) {
    const auto become = [&](std::vector<std::byte> light, convt_dtype dtype, const char *how) {
        *w = std::move(light);
        problem->w_dtype = dtype;
        return std::string("w is ") + convt_dtype_name(dtype) + how;
    };
    if (settings.weights == CONVT_S8) {
        if (layer.channels() < 1) return ""; // the library says what is wrong
        Quantization q;
        std::optional<std::vector<std::byte>> light = rounded(*w, layer, &q.w_scale);
        if (!light) return "w is f32: some of it is infinite or NaN";
        problem->quantization = std::move(q);
        return become(std::move(*light), CONVT_S8, kScalesOfChannels);
    }
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16}) {
        if (settings.weights.value_or(dtype) != dtype) continue;
        if (auto light = narrowed(*w, dtype, !settings.weights)) {
            return become(std::move(*light), dtype, settings.weights ? "" : ", which holds its f32 exactly");
        }
    }
    return settings.weights
               ? std::string("w is f32: some of it is too large for ") + convt_dtype_name(*settings.weights)
               : "";
}

} // namespace

Weights weights_of(const Layer &layer, const Settings &settings, Problem *problem, std::vector<std::string> *notes) {
    Weights weights;
    const auto is_8_bit = [&] { return problem->w_dtype == CONVT_U8 || problem->w_dtype == CONVT_S8; };
    const bool may_be_light = problem->dtype == CONVT_F32 && !problem->w_dtype && layer.packs();
    if (may_be_light && layer.w_dequantizer) {
        if (const auto why = keep_integers(layer, problem)) {
            notes->push_back("w is dequantized: " + *why);
        } else {
            const bool is_single = problem->quantization->w_scale.size() == 1;
            notes->push_back(std::string("w is ") + convt_dtype_name(*problem->w_dtype) +
                             (is_single ? ", with one scale" : kScalesOfChannels));
        }
    }
    if (layer.w_is_constant()) {
        const bool is_dequantized = layer.w_dequantizer && !is_8_bit();
        weights.w = is_dequantized ? dequantized(*layer.w_dequantizer) : copy_of(layer.w.constant(), problem->dtype);
    }
    if (layer.b && layer.b.is_constant()) {
        weights.b =
            layer.b_dequantizer ? dequantized(*layer.b_dequantizer) : copy_of(layer.b.constant(), problem->dtype);
    }
    if (layer.batch_norm && layer.problem.dtype == CONVT_F64) fold<double>(layer, &weights);
    if (layer.batch_norm && layer.problem.dtype == CONVT_F32) fold<float>(layer, &weights);
    if (may_be_light && !is_8_bit()) {
        if (const std::string note = lighten(layer, settings, problem, &weights.w); !note.empty())
            notes->push_back(note);
    }
    if (settings.quantizes_x && may_be_light && is_8_bit()) {
        const std::optional<std::string> why =
            prefer_floats(problem->attributes, layer.w.shape(), layer.w.is_constant());
        problem->quantizes_x = why ? 0 : 1;
        notes->push_back(why ? "x is not quantized: " + *why : "x is quantized to u8 by each run");
    }
    return weights;
}

} // namespace convtranspose::provider
