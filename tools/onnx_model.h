// ONNX models, as far as transposed convolutions are concerned.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_
#define CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <onnx-ml.pb.h>

#include "tools/input_shape.h"
#include "tools/tensor.h"

namespace convtranspose::tools {

// A ConvTranspose or QLinearConvTranspose node: its attributes, which are checked to be the operator's and of the right types,
// and the names of its values. A ConvTranspose behind DequantizeLinear is the quantized layer that they make, with a QuantizeLinear
// behind it if there is one.
struct Node {
    std::string label;          // for messages: "ConvTranspose 'name'", or "ConvTranspose #2" where it has no name
    bool quantized = false;     // its tensors are of integers
    bool channels_last = false; // QLinearConvTranspose
    bool light = false;         // its weights are constants of 16 or 8 bits, and all else is of f32
    bool quantizes_x = false;   // x goes through DynamicQuantizeLinear, and the weights have 8 bits
    std::string float_output;   // not empty: it is quantized, but its y is f32, and why
    std::string floats_because; // not empty: it has a DequantizeLinear in front, but is a layer of floats, and why
    int opset = 0;
    Attributes attributes;
    std::string x, w, b, y; // b is empty where there is no bias
    // Names for quantized nodes only, and those of w for light weights of 8 bits. Between DequantizeLinear and QuantizeLinear, zero
    // points may be empty, which are 0 then, and scales of w may be those of one group.
    std::string x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point;
    std::optional<std::array<float, 2>> y_range; // of a Relu or Clip before QuantizeLinear

    // The nodes that make it a quantized layer, for messages; empty for others.
    std::string chain() const {
        if (!quantized || channels_last) return "";
        return std::string("DequantizeLinear -> ConvTranspose") + (float_output.empty() ? " -> QuantizeLinear" : "");
    }
    // Says what is computed in floats although there is a DequantizeLinear, and why; empty: nothing is.
    std::string floats() const {
        if (!floats_because.empty()) return "a float layer: " + floats_because;
        return float_output.empty() ? "" : "a quantized layer whose y is f32: " + float_output;
    }
    convt_layout layout() const { return channels_last ? CONVT_CHANNELS_LAST : CONVT_CHANNELS_FIRST; }
};

// The type and shape that a model states for a value without being run.
struct ValueType {
    int data_type = 0;                // of TensorProto; 0: unknown
    std::optional<Shape> shape;       // an extent of -1 is unknown
    std::vector<std::string> symbols; // the names of unknown extents; empty for those without a name
    std::string text() const;         // "1x3x<height>x<?>"
};

class Model {
  public:
    explicit Model(const std::filesystem::path &file);
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    // Asks ONNX for the types and shapes of all values, and replaces calls of the model's functions by their nodes. Returns notes
    // for the user.
    std::vector<std::string> infer_shapes(const std::vector<InputShape> &shapes);

    // The only node, with its light weights. Throws Rejected unless the model is one node of the two operators that computes the
    // one graph output; nodes that make constants may stand beside it, and those that quantize its x.
    Node only_node() const;

    // Throws Error if the model has no node of the two operators.
    void require_nodes() const;

    // The nodes of the two operators, in the main graph and in those of If, Loop and Scan. They are unchecked until one is asked
    // for.
    std::size_t node_count() const { return convs_.size(); }
    Node node(std::size_t i) const;
    std::string label(std::size_t i) const;

    // The node as the quantized layer, or that of light weights, that it is with the nodes around it, if it is one.
    Node with_neighbours(const Node &node) const;

    // Graph inputs that are not initializers, in graph order, which have to be fed; and those that are initializers.
    const std::vector<std::string> &inputs() const { return inputs_; }
    const std::vector<std::string> &inputs_with_initializers() const { return inputs_with_initializers_; }

    // True for initializers, Constant nodes, and what Identity, Cast, Reshape, Transpose and DequantizeLinear make of those.
    bool is_constant(const std::string &value) const;
    Tensor constant(const std::string &value) const;
    // Throws Error, and says what to do, for a constant of a kind that is not supported.
    void require_supported(const std::string &value) const;
    ValueType type_of(const std::string &value) const;
    // The --input-shape options that would tell an unknown shape.
    std::string shape_options(const std::string &value) const;

  private:
    static constexpr int kMostSteps = 100; // nodes in a row that are looked behind
    struct Place {                         // of a node
        const onnx::NodeProto *node;
        std::size_t scope;
    };
    struct Scope {
        std::size_t outer;                        // itself: the main graph
        std::string prefix, description;          // empty: the main graph
        std::map<std::string, std::string> names; // that are defined in it, and by what
    };
    struct Value {
        ValueType type;
        const onnx::TensorProto *tensor = nullptr; // initializer or Constant
        const onnx::NodeProto *producer = nullptr; // else
        std::size_t scope = 0;                     // of the producer
        bool sparse = false, graph_output = false;
        int constant_steps = -1; // nodes between it and constants; -1: it is no constant
        std::vector<Place> consumers;
    };

    void index();
    void index_graph(const onnx::GraphProto &graph, std::size_t outer, const std::string &prefix,
                     const std::string &description);
    void index_node(const onnx::NodeProto &node, std::size_t scope, int position);
    void index_subgraph(const onnx::GraphProto &graph, const onnx::NodeProto &node, const std::string &attribute,
                        std::size_t scope, int position);
    bool take_prefix(const std::string &prefix);
    int steps_to_constants(const onnx::NodeProto &node, std::size_t scope) const;
    std::string open_shape(const std::string &value) const;
    Value &define(const std::string &name, std::size_t scope, const std::string &by);
    std::string resolve(const std::string &name, std::size_t scope) const; // the key of the value
    std::vector<std::string> inputs_of(const onnx::NodeProto &node, std::size_t scope) const;
    const Value *find(const std::string &key) const;
    const Value *source_of(std::string key) const; // what a value is, behind any Identity, or null
    // The node that computes a value, behind any Identity, and its inputs. Null: no node of that type does.
    const onnx::NodeProto *producer(const std::string &key, const char *op_type,
                                    std::vector<std::string> *inputs) const;
    std::string quantize(Node *node) const;
    std::string find_quantizer(Node *node) const;
    const Place *only_reader(const std::string &value) const;
    std::optional<std::array<float, 2>> clamp_of(const Place &place, const std::string &value) const;
    void lighten(Node *node) const;
    bool is_made_by_dynamic_quantization(const std::vector<std::string> &dequantized, std::string *x) const;
    // Values with several consumers, so that each is computed once however many ways lead to it.
    using Evaluated = std::map<std::string, std::shared_ptr<Tensor>>;
    std::shared_ptr<Tensor> evaluate(const std::string &key, Evaluated *known) const;
    Tensor result_of(const onnx::NodeProto &node, const std::vector<std::string> &inputs, Evaluated *known) const;
    const onnx::TensorProto *tensor_of_integers(const std::string &key) const;
    void add_constant_node(const onnx::NodeProto &node, Value *value);
    // Gives a value the type of its initializer, which must be what it is declared as if it is a graph input too.
    static void initialize_type(const std::string &name, const ValueType &type, ValueType *declared);
    void refuse_other_domains() const;
    int opset(const std::string &domain) const;

    std::filesystem::path file_;
    onnx::ModelProto proto_;
    std::vector<Scope> scopes_; // the main graph first
    std::set<std::string> prefixes_;
    std::vector<Place> convs_;
    std::vector<std::string> inputs_, inputs_with_initializers_;
    std::map<std::string, Value> values_; // by prefix of the scope and name
    std::map<const onnx::NodeProto *, onnx::TensorProto>
        list_constants_; // Constant nodes that give a list in place of a tensor
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_
