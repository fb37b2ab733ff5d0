// ONNX models, as far as transposed convolutions are concerned.
#ifndef CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_
#define CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx-ml.pb.h"
#include "tensor.h"

namespace convtranspose::tools {

// A ConvTranspose or QLinearConvTranspose node: its attributes, checked to be the operator's and of the right types,
// and its values' names.
struct Node {
    std::string label;      // for messages: "ConvTranspose 'name'", or "ConvTranspose #2" where it has no name
    bool quantized = false; // QLinearConvTranspose, which is channels last
    int opset = 0;
    Attributes attributes;
    std::string x, w, b, y; // b is empty where there is no bias
    std::string x_scale, x_zero_point, w_scale, w_zero_point, y_scale, y_zero_point; // quantized only

    convt_layout layout() const { return quantized ? CONVT_CHANNELS_LAST : CONVT_CHANNELS_FIRST; }
};

// What a model says about a value without being run.
struct ValueType {
    int data_type = 0;          // of TensorProto; 0: unknown
    std::optional<Shape> shape; // an extent of -1 is unknown
    bool is_known() const;
};

class Model {
  public:
    explicit Model(const std::filesystem::path &file);
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    // Throws Rejected unless the model is one node of the two operators, Constant nodes beside it allowed, computing
    // the one graph output.
    Node only_node() const;

    // Throws Error where the main graph has no node of the two operators.
    void require_nodes() const;

    // The nodes of the two operators in the main graph, as yet unchecked, and the check of one.
    std::size_t node_count() const { return convs_.size(); }
    Node node(std::size_t i) const;
    std::string label(std::size_t i) const;

    // Graph inputs that are not initializers, in graph order: what has to be fed.
    const std::vector<std::string> &inputs() const { return inputs_; }

    bool is_constant(const std::string &value) const { return constants_.count(value) != 0; }
    Tensor constant(const std::string &value) const;
    ValueType type_of(const std::string &value) const;
    void set_shape(const std::string &value, const Shape &shape); // for one that the model does not tell

  private:
    void add_constant_node(const onnx::NodeProto &node);
    void refuse_other_domains() const;
    int opset(const std::string &domain) const;

    std::filesystem::path folder_;
    onnx::ModelProto proto_;
    std::vector<const onnx::NodeProto *> convs_;
    std::vector<std::string> inputs_;
    std::map<std::string, const onnx::TensorProto *> constants_;
    std::map<std::string, onnx::TensorProto> list_constants_; // Constant nodes that give a list in place of a tensor
    std::map<std::string, ValueType> types_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_ONNX_MODEL_H_
