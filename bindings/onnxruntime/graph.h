// The nodes and values of ONNX Runtime's graphs. Both are handles, valid as long as the Graph that they come from.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_GRAPH_H_
#define CONVTRANSPOSE_ONNXRUNTIME_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"
#include "ort_api.h"

namespace convtranspose::provider {

class Graph;
class Node;

// The library's type for an element type of ONNX, if it has one.
std::optional<convt_dtype> dtype_of(int element_type);

// True if a shape is given, and none of its extents is -1.
bool is_known(const Shape &shape);

// True for the types of integers and floats whose elements TensorRef::at() gives; they are more than the library computes with.
bool can_read(int element_type);

// A tensor in ONNX Runtime's memory.
struct TensorRef {
    int element_type = 0;
    Shape shape;
    const void *data = nullptr;

    std::size_t count() const;
    // True for a scalar, and for a tensor with one element.
    bool is_single() const { return count() == 1; }
    // An element of a type that can_read() names.
    double at(std::size_t i) const;
};

// The tensor that a value of ONNX Runtime holds.
TensorRef tensor_of(const Api &api, const OrtValue *value);

// A value of a graph; none where an optional input is left out.
class Value {
  public:
    Value() = default;
    Value(const Graph *graph, const OrtValueInfo *info) : graph_(graph), info_(info) {}

    explicit operator bool() const { return info_ != nullptr; }
    std::string name() const;
    // 0 if the model does not say it, or if the value is no tensor.
    int element_type() const;
    // Extents, with -1 for those that are unknown. Empty for a scalar and if nothing is known.
    Shape shape() const;
    // Names of unknown extents, "" for those without a name.
    std::vector<std::string> symbols() const;
    bool is_constant() const;
    // The data of a constant.
    TensorRef constant() const;
    bool is_graph_output() const;
    // The node that computes it, if there is one in the graph.
    std::optional<Node> producer() const;
    // The only node that reads it, if nothing else does and it is no output of the graph.
    std::optional<Node> only_reader() const;

  private:
    const OrtTensorTypeAndShapeInfo *type() const;

    const Api &api() const;

    const Graph *graph_ = nullptr;
    const OrtValueInfo *info_ = nullptr;
};

class Node {
  public:
    Node(const Graph *graph, const OrtNode *node) : graph_(graph), node_(node) {}

    const OrtNode *get() const { return node_; }
    std::size_t id() const;
    // For messages: "Relu 'name'", or "Relu" if it has no name.
    std::string label() const;
    // True for an operator of ONNX itself.
    bool is_op(const char *type) const;
    bool is_op(const char *domain, const char *type) const;
    // The version of ONNX that brought this form of the operator.
    int since_version() const;
    std::vector<Value> inputs() const;
    std::vector<Value> outputs() const;
    // An input or output that may be left out.
    Value input(std::size_t i) const;
    // True if no provider has taken it yet.
    bool is_free() const;

    std::optional<std::int64_t> int_attribute(const char *name) const;
    std::optional<float> float_attribute(const char *name) const;
    std::optional<Shape> ints_attribute(const char *name) const;
    std::optional<std::string> string_attribute(const char *name) const;

  private:
    friend class Graph;
    using Count = OrtStatus *(*Api::*)(const OrtNode *, std::size_t *);
    using List = OrtStatus *(*Api::*)(const OrtNode *, const OrtValueInfo **, std::size_t);
    std::vector<Value> values(Count count, List list) const;
    // Values of the graph that subgraphs of the node read.
    std::vector<Value> implicit_inputs() const;
    std::string text(OrtStatus *(*Api::*get)(const OrtNode *, const char **)) const;
    const OrtOpAttr *attribute(const char *name) const;
    template<typename T>
    std::optional<T> number(const char *name, AttributeType type) const;

    const Api &api() const;

    const Graph *graph_;
    const OrtNode *node_;
};

// A graph, or the part of one that is compiled. It keeps its own account of who computes and who reads a value: ONNX Runtime
// 1.23 ends the process when it is asked for a node outside of such a part.
class Graph {
  public:
    Graph(const Api &api, const OrtGraph *graph);
    // A node that stands alone, such as the one that replaces others.
    Graph(const Api &api, const OrtNode *node);
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    const Api &api() const { return api_; }
    const std::vector<Node> &nodes() const { return nodes_; }

  private:
    friend class Value;
    struct Readers {
        std::size_t count = 0;
        const OrtNode *first = nullptr; // null: a subgraph of a node reads it
    };

    const Api &api_;
    std::vector<Node> nodes_;
    std::map<std::string, const OrtNode *> producers_;
    std::map<std::string, Readers> readers_;
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_GRAPH_H_
