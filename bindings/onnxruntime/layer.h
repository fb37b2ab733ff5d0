// A layer found in a graph: a transposed convolution with the nodes around it that are computed with it.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_LAYER_H_
#define CONVTRANSPOSE_ONNXRUNTIME_LAYER_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"
#include "graph.h"
#include "settings.h"

namespace convtranspose::provider {

// A DequantizeLinear and what it reads. The zero point may be left out, and is 0 then.
struct Dequantizer {
    Node node;
    Value x, scale, zero_point;

    // True if what it makes can be computed once: f32 of one axis of scales at most, all of it constant.
    bool makes_constant() const;
};

// The layer as the model states it. Shapes in `problem` have -1 where an extent is unknown, and x_shape is empty if nothing is
// known of it.
struct Layer {
    std::string label; // "ConvTranspose 'name'"
    Problem problem;
    Value x, w, b, residual, y; // b and residual may be none
    // These turn constant integers into constant floats, which is done when the layer is compiled. Constants of other floats that a
    // Cast turns into f32 have no such entry.
    std::optional<Dequantizer> w_dequantizer, b_dequantizer;
    // Its scale and shift become part of constant weights.
    std::optional<Node> batch_norm;
    std::vector<Node> nodes;        // all that are computed together
    std::vector<std::string> notes; // nodes beside it that are not, and why

    // True for a layer of floats, whatever its output is.
    bool has_float_input() const { return problem.dtype != CONVT_U8 && problem.dtype != CONVT_S8; }
    bool w_is_constant() const { return w.is_constant(); }
    bool b_is_constant() const { return !b || b.is_constant(); }
    // True if the library packs weights and bias once.
    bool packs() const { return w_is_constant() && b_is_constant(); }
    // The number of output channels, or -1 if it is unknown or the group does not divide the channels.
    std::int64_t channels() const;
    // The nodes by name: "DequantizeLinear + ConvTranspose 'up' + Relu".
    std::string description() const;
};

// Says if a node may be taken: no provider has it, and no other layer.
using IsFree = std::function<bool(const Node &)>;

// True for the operators that this provider computes.
bool is_transposed_convolution(const Node &node);

// The layer that a node makes with its neighbours; without `fuse`, the node alone. Throws Failure if the node cannot be taken.
Layer layer_of(const Node &node, bool fuse, const IsFree &is_free);

// The parts of that, each in a file of its own.

// The DequantizeLinear that computes a value, if nothing else reads it.
std::optional<Dequantizer> dequantizer_of(const Value &value, const IsFree &is_free);
// Makes the layer one of integers, if it stands behind DequantizeLinear. Says why not, if it has one in front of an input.
std::optional<std::string> quantize(const Node &node, const IsFree &is_free, Layer *layer);
// Reads the scales and zero points of 8-bit weights. Says why the library takes none such.
std::optional<std::string> read_weight_scales(const Dequantizer &w, std::int64_t group, Quantization *q);
// Reads a QLinearConvTranspose of ONNX Runtime's channels-last domain.
void read_qlinear(const Node &node, Layer *layer);
// Takes in the nodes that follow a layer with a float output: batch normalization, the addition of a residual, an activation.
void fuse_followers(const IsFree &is_free, Layer *layer);
// The range that a Relu or a Clip of constant bounds clamps to.
std::optional<std::array<float, 2>> clamp_of(const Node &node);

// Dense weights and bias in the library's types. Empty where they come with each run.
struct Weights {
    std::vector<std::byte> w, b;
};
// Copies constants, with DequantizeLinear, Cast and BatchNormalization computed into them. Those of f32 layers take as few bytes as
// the model and the settings say: the problem gets their type and scales. notes: what became of them, for `explain`.
Weights weights_of(const Layer &layer, const Settings &settings, Problem *problem, std::vector<std::string> *notes);
// True if all that a BatchNormalization needs is constant, so that weights_of() can fold it.
bool can_fold(const Node &batch_norm, const Layer &layer);

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_LAYER_H_
