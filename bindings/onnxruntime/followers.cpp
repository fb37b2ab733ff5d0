// Nodes that follow a layer with a float output: batch normalization, the addition of a residual, an activation.
#include <cmath>
#include <limits>

#include "layer.h"

namespace convtranspose::provider {

namespace {

constexpr int kClipWithInputs = 11, kBatchNormOfInference = 7; // versions of the operators

// True if a float holds the number, so that a layer of f64 may take it as a parameter.
bool fits_float(double value) { return std::isinf(value) || static_cast<double>(static_cast<float>(value)) == value; }

bool set(PostOps *ops, convt_activation activation, double alpha = 0, double beta = 0) {
    if (!fits_float(alpha) || !fits_float(beta)) return false;
    if (activation == CONVT_LEAKY_RELU && std::isinf(alpha)) return false; // the library refuses such a slope
    ops->activation = activation;
    ops->alpha = static_cast<float>(alpha);
    ops->beta = static_cast<float>(beta);
    return true;
}

// Returns the greatest finite number of a type, at which a Clip without a bound clips infinities; none if no float holds it.
std::optional<float> greatest_of(int element_type) {
    switch (dtype_of(element_type).value_or(CONVT_F64)) {
    case CONVT_F16: return 65504.0f;
    case CONVT_BF16: return 0x1.fep127f;
    case CONVT_F32: return std::numeric_limits<float>::max();
    default: return std::nullopt;
    }
}

// rank: of y, which no parameter may exceed.
bool read_activation(const Node &node, std::size_t rank, PostOps *ops) {
    if (node.is_op("Relu")) return set(ops, CONVT_RELU);
    if (node.is_op("Sigmoid")) return set(ops, CONVT_SIGMOID);
    if (node.is_op("Tanh")) return set(ops, CONVT_TANH);
    if (node.is_op("LeakyRelu")) {
        return set(ops, CONVT_LEAKY_RELU, static_cast<double>(node.float_attribute("alpha").value_or(0.01f)));
    }
    if (node.is_op("PRelu")) { // with one slope for all it is the same; exporters of PyTorch give it y's number of axes
        const Value slope = node.input(1);
        if (!slope.is_constant() || slope.shape().size() > rank || !slope.constant().is_single()) return false;
        return set(ops, CONVT_LEAKY_RELU, slope.constant().at(0));
    }
    const auto range = clamp_of(node);
    return range && set(ops, CONVT_CLIP, static_cast<double>((*range)[0]), static_cast<double>((*range)[1]));
}

// True if both surely have one shape: each extent is known, or has the same name in both.
bool same_shape(const Value &a, const Value &b) {
    const Shape of_a = a.shape(), of_b = b.shape();
    if (of_a.empty() || of_a != of_b) return false;
    const std::vector<std::string> names_a = a.symbols(), names_b = b.symbols();
    for (std::size_t d = 0; d < of_a.size(); d++) {
        if (of_a[d] < 0 && (names_a[d].empty() || names_a[d] != names_b[d])) return false;
    }
    return true;
}

// The tensor that an Add adds to y, if it can be a residual. A constant cannot: it is no input of what the nodes become.
Value residual_of(const Node &add, const Value &y) {
    const Value first = add.input(0), second = add.input(1);
    const Value other = first.name() == y.name() ? second : first;
    if (other.is_constant() || other.element_type() != y.element_type() || !same_shape(other, y)) return {};
    return other;
}

} // namespace

std::optional<std::array<float, 2>> clamp_of(const Node &node) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity(), kMost = std::numeric_limits<float>::max();
    if (node.is_op("Relu")) return std::array<float, 2>{0, kInfinity};
    if (!node.is_op("Clip")) return std::nullopt;
    std::array<float, 2> range = {};
    if (node.since_version() < kClipWithInputs) {
        range = {node.float_attribute("min").value_or(-kMost), node.float_attribute("max").value_or(kMost)};
    } else {
        for (const std::size_t i : {0, 1}) {
            const Value bound = node.input(i + 1);
            if (!bound) {
                const std::optional<float> most = greatest_of(node.input(0).element_type());
                if (!most) return std::nullopt;
                range[i] = i == 0 ? -*most : *most;
                continue;
            }
            if (!bound.is_constant() || !bound.constant().is_single()) return std::nullopt;
            const double value = bound.constant().at(0);
            if (!fits_float(value)) return std::nullopt;
            range[i] = static_cast<float>(value);
        }
    }
    if (!(range[0] <= range[1])) return std::nullopt;
    return range;
}

bool can_fold(const Node &node, const Layer &layer) {
    const convt_dtype dtype = layer.problem.dtype;
    if ((dtype != CONVT_F32 && dtype != CONVT_F64) || layer.problem.quantizes_x) return false;
    if (!layer.packs() || layer.channels() < 0) return false;
    if (layer.b && layer.problem.b_shape != Shape{layer.channels()}) return false; // the plan says what is wrong
    if (node.since_version() < kBatchNormOfInference || node.outputs().size() != 1) return false;
    if (node.int_attribute("training_mode").value_or(0) != 0 || node.int_attribute("spatial").value_or(1) != 1)
        return false;
    const double epsilon = static_cast<double>(node.float_attribute("epsilon").value_or(1e-5f));
    for (const std::size_t i : {1, 2, 3, 4}) {
        const Value parameter = node.input(i);
        if (!parameter || !parameter.is_constant()) return false;
        const TensorRef tensor = parameter.constant();
        if (dtype_of(tensor.element_type) != dtype || tensor.shape != Shape{layer.channels()}) return false;
        for (std::size_t c = 0; i == 4 && c < tensor.count(); c++) {
            if (!(tensor.at(c) + epsilon > 0)) return false;
        }
    }
    return true;
}

void fuse_followers(const IsFree &is_free, Layer *layer) {
    for (;;) {
        const std::optional<Node> reader = layer->y.only_reader();
        if (!reader || !is_free(*reader)) return;
        const bool reads_first = reader->input(0) && reader->input(0).name() == layer->y.name();
        if (reader->is_op("BatchNormalization") && reads_first && !layer->problem.post_ops.adds_residual &&
            !layer->batch_norm && can_fold(*reader, *layer)) {
            layer->batch_norm = *reader;
            layer->problem.b_shape = Shape{layer->channels()};
        } else if (reader->is_op("Add") && !layer->problem.post_ops.adds_residual && residual_of(*reader, layer->y)) {
            layer->residual = residual_of(*reader, layer->y);
            layer->problem.post_ops.adds_residual = 1;
        } else if (!reads_first || !read_activation(*reader, layer->w.shape().size(), &layer->problem.post_ops)) {
            layer->notes.push_back(reader->label() + " behind it stays a node of its own");
            return;
        }
        layer->nodes.push_back(*reader);
        layer->y = reader->outputs().at(0);
        if (layer->problem.post_ops.activation != CONVT_NO_ACTIVATION) return;
    }
}

} // namespace convtranspose::provider
