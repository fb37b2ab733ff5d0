#include "tools/shape_inference.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>

#include <onnx/inliner/inliner.h>
#include <onnx/shape_inference/implementation.h>

#include "tools/error.h"

namespace convtranspose::tools {

namespace {

constexpr std::uint64_t kMostNodes = 1 << 20; // that functions may become
constexpr int kMostCalls = 100;               // of functions by each other

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using FunctionKey = std::string;

FunctionKey key_of(const std::string &domain, const std::string &name, const std::string &overload) {
    return domain + "\n" + name + "\n" + overload;
}

// Counts the nodes that inlining would make. The inliner itself does not stop at recursion, which ONNX forbids.
class InlinedSize {
  public:
    explicit InlinedSize(const onnx::ModelProto &model) {
        for (const onnx::FunctionProto &f : model.functions())
            functions_[key_of(f.domain(), f.name(), f.overload())] = &f;
        require_bounded(count(model.graph().node()));
    }

  private:
    static std::uint64_t require_bounded(std::uint64_t nodes) {
        if (nodes <= kMostNodes) return nodes;
        throw Error("its functions amount to more than " + std::to_string(kMostNodes) + " nodes");
    }

    std::uint64_t count(const Nodes &nodes) {
        std::uint64_t sum = 0;
        for (const onnx::NodeProto &node : nodes) {
            sum += count(node);
            require_bounded(sum);
        }
        return sum;
    }

    std::uint64_t count(const onnx::NodeProto &node) {
        std::uint64_t sum = 1;
        for (const onnx::AttributeProto &attribute : node.attribute()) {
            if (attribute.has_g()) sum += count(attribute.g().node());
            for (const onnx::GraphProto &graph : attribute.graphs()) sum += count(graph.node());
        }
        const auto function = functions_.find(key_of(node.domain(), node.op_type(), node.overload()));
        if (function == functions_.end()) return sum;
        const auto [entry, is_new] = sizes_.emplace(function->first, std::nullopt);
        if (is_new) {
            if (++depth_ > kMostCalls) {
                throw Error("its functions call each other more than " + std::to_string(kMostCalls) + " deep");
            }
            const std::uint64_t size = count(function->second->node());
            depth_--;
            sizes_[function->first] = size;
            return sum + size;
        }
        if (!entry->second) throw Rejected("function '" + node.op_type() + "' calls itself, which ONNX forbids");
        return sum + *entry->second;
    }

    std::map<FunctionKey, const onnx::FunctionProto *> functions_;
    std::map<FunctionKey, std::optional<std::uint64_t>> sizes_; // none: being counted
    int depth_ = 0;
};

void set_shape(onnx::TypeProto *type, const Shape &shape) {
    onnx::TypeProto::Tensor *const tensor = type->mutable_tensor_type();
    tensor->clear_shape();
    for (const std::int64_t extent : shape) tensor->mutable_shape()->add_dim()->set_dim_value(extent);
}

void for_each_graph(onnx::GraphProto *graph, const std::function<void(onnx::GraphProto *)> &act) {
    act(graph);
    for (onnx::NodeProto &node : *graph->mutable_node()) {
        for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
            if (attribute.has_g()) for_each_graph(attribute.mutable_g(), act);
            for (onnx::GraphProto &inner : *attribute.mutable_graphs()) for_each_graph(&inner, act);
        }
    }
}

// Sets the shape of an input. Other inputs with the same symbolic extents get the same numbers.
void set_input(onnx::GraphProto *graph, onnx::ValueInfoProto *input, const Shape &shape) {
    std::map<std::string, std::int64_t> numbers;
    const onnx::TensorShapeProto &declared = input->type().tensor_type().shape();
    for (int d = 0; d < declared.dim_size() && static_cast<std::size_t>(d) < shape.size(); d++) {
        const std::string &symbol = declared.dim(d).dim_param();
        if (!symbol.empty()) numbers[symbol] = shape[static_cast<std::size_t>(d)];
    }
    set_shape(input->mutable_type(), shape);
    for (onnx::ValueInfoProto &other : *graph->mutable_input()) {
        if (!other.type().has_tensor_type() || !other.type().tensor_type().has_shape()) continue;
        for (auto &dim : *other.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
            const auto found = numbers.find(dim.dim_param());
            if (dim.has_dim_param() && found != numbers.end()) dim.set_dim_value(found->second);
        }
    }
}

// True for values that are constants, whose data have a shape of their own.
bool has_initializer(const onnx::GraphProto &graph, const std::string &name) {
    const auto is_it = [&](const onnx::TensorProto &tensor) { return tensor.name() == name; };
    const auto is_sparse = [&](const onnx::SparseTensorProto &tensor) { return is_it(tensor.values()); };
    return std::any_of(graph.initializer().begin(), graph.initializer().end(), is_it) ||
           std::any_of(graph.sparse_initializer().begin(), graph.sparse_initializer().end(), is_sparse);
}

bool has_output(const onnx::GraphProto &graph, const std::string &name) {
    return std::any_of(graph.node().begin(), graph.node().end(), [&](const onnx::NodeProto &node) {
        return std::find(node.output().begin(), node.output().end(), name) != node.output().end();
    });
}

// Sets shapes of values that nodes compute, or that subgraphs take. If the type of the latter is unknown, it is taken for float.
void set_inner(onnx::GraphProto *main, const std::vector<InputShape> &shapes) {
    for_each_graph(main, [&](onnx::GraphProto *graph) {
        for (const InputShape &shape : shapes) {
            if (has_initializer(*graph, shape.name)) continue;
            onnx::ValueInfoProto *info = nullptr;
            for (auto *const list : {graph->mutable_input(), graph->mutable_value_info(), graph->mutable_output()}) {
                if (graph == main && list == graph->mutable_input()) continue; // which are set already
                for (onnx::ValueInfoProto &each : *list) {
                    if (each.name() == shape.name) info = &each;
                }
            }
            if (!info && !has_output(*graph, shape.name)) continue;
            shape.used = true;
            if (!info) {
                info = graph->add_value_info();
                info->set_name(shape.name);
            }
            onnx::TypeProto::Tensor *const tensor = info->mutable_type()->mutable_tensor_type();
            if (tensor->elem_type() == 0) tensor->set_elem_type(onnx::TensorProto::FLOAT);
            set_shape(info->mutable_type(), shape.shape);
        }
    });
}

void infer(onnx::ModelProto *model, std::vector<std::string> *notes) {
    try {
        onnx::shape_inference::DataValueMap data;
        onnx::shape_inference::InferShapes(*model, onnx::OpSchemaRegistry::Instance(),
                                           onnx::ShapeInferenceOptions(false, 0, true), &data);
    } catch (const std::exception &e) {
        notes->push_back(std::string("ONNX's shape inference ended early: ") + e.what());
    }
}

} // namespace

std::vector<std::string> infer_shapes(onnx::ModelProto *model, const std::vector<InputShape> &shapes) {
    std::vector<std::string> notes;
    if (model->functions_size() > 0) {
        const InlinedSize within_bounds(*model);
        try {
            onnx::inliner::InlineLocalFunctions(*model);
        } catch (const std::exception &e) {
            notes.push_back(std::string("ONNX's inliner ended early: ") + e.what());
        }
    }
    onnx::GraphProto *const graph = model->mutable_graph();
    bool changed = false;
    for (const InputShape &shape : shapes) {
        for (onnx::ValueInfoProto &input : *graph->mutable_input()) {
            if (input.name() != shape.name || has_initializer(*graph, shape.name)) continue;
            shape.used = changed = true;
            set_input(graph, &input, shape.shape);
        }
    }
    if (changed) {
        // Shapes that were inferred for other inputs would contradict those that are inferred now.
        for_each_graph(graph, [](onnx::GraphProto *each) {
            each->clear_value_info();
            for (onnx::ValueInfoProto &output : *each->mutable_output()) {
                if (output.type().has_tensor_type()) output.mutable_type()->mutable_tensor_type()->clear_shape();
            }
        });
    }
    std::vector<std::string> inference_notes;
    infer(model, &inference_notes);
    if (std::any_of(shapes.begin(), shapes.end(), [&](const InputShape &shape) {
            return std::none_of(graph->input().begin(), graph->input().end(),
                                [&](const onnx::ValueInfoProto &input) { return input.name() == shape.name; });
        })) {
        set_inner(graph, shapes);
        inference_notes.clear();
        infer(model, &inference_notes);
    }
    notes.insert(notes.end(), inference_notes.begin(), inference_notes.end());
    return notes;
}

} // namespace convtranspose::tools
