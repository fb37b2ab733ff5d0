#include "provider.h"

#include <algorithm>

#include "compiled.h"
#include "failure.h"
#include "plans.h"

namespace convtranspose::provider {

Provider::Provider(const Api &api, const OrtLogger *logger, Settings settings, bool in_one_graph)
    : api_(api), logger_(logger), settings_(std::make_shared<Settings>(std::move(settings))),
      threads_(std::make_shared<ThreadCount>(settings_->threads)), in_one_graph_(in_one_graph) {
    get_name = name;
    get_capability = choose;
    compile = compile_all;
    release_node_compute_infos = release;
}

OrtStatus *Provider::choose(Ep *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support) {
    auto &provider = *static_cast<Provider *>(ep);
    return guarded(provider.api_, [&] { provider.choose_nodes(Graph(provider.api_, graph), support); });
}

OrtStatus *Provider::compile_all(Ep *ep, const OrtGraph **graphs, const OrtNode **fused_nodes, std::size_t count,
                                 NodeComputeInfo **infos, OrtNode **) {
    const auto &provider = *static_cast<Provider *>(ep);
    std::size_t made = 0;
    OrtStatus *const status = guarded(provider.api_, [&] {
        for (; made < count; made++) {
            const Graph nodes(provider.api_, graphs[made]), fused(provider.api_, fused_nodes[made]);
            infos[made] = provider.compile_one(nodes, fused.nodes().front()).release();
        }
    });
    if (status) { // ONNX Runtime releases none of them then
        release(ep, infos, made);
        std::fill_n(infos, count, nullptr);
    }
    return status;
}

void Provider::release(Ep *, NodeComputeInfo **infos, std::size_t count) {
    for (std::size_t i = 0; i < count; i++) delete static_cast<CompiledLayer *>(infos[i]);
}

void Provider::warn(const std::string &message) const {
    if (!logger_) return;
#ifdef _WIN32
    const PathChar *const file = L"provider.cpp";
#else
    const PathChar *const file = "provider.cpp";
#endif
    // A message that cannot be logged is no reason to fail.
    OrtStatus *const status =
        api_.Logger_LogMessage(logger_, kLogWarning, message.c_str(), file, __LINE__, "choose_nodes");
    if (status) api_.ReleaseStatus(status);
}

void Provider::try_to_plan(const Layer &layer) const {
    Problem problem = layer.problem;
    if (!is_known(problem.x_shape) || !is_known(problem.w_shape) || (problem.b_shape && !is_known(*problem.b_shape))) {
        // Types can be tried all the same.
        problem.attributes = {};
        problem.x_shape = problem.w_shape = {1, 1, 1};
        if (problem.b_shape) problem.b_shape = Shape{1};
        if (problem.quantization) {
            problem.quantization->w_scale = {1};
            problem.quantization->w_zero_point = {0};
        }
    }
    Options options;
    options.isa = settings_->isa.empty() ? nullptr : settings_->isa.c_str();
    Plan plan;
    check(Plan::create(problem, options, nullptr, nullptr, &plan), layer.label);
}

void Provider::take(const Node &node, const IsFree &is_free, OrtEpGraphSupportInfo *support,
                    std::set<std::size_t> *taken) {
    if (has_taken_ && in_one_graph_) {
        throw Failure(kNotImplemented, node.label() +
                                           ": ONNX Runtime 1.23 fails if a provider takes nodes of more than one "
                                           "graph, such as branches and loops; later versions do not");
    }
    const Layer layer = layer_of(node, settings_->fuse, is_free);
    try {
        try_to_plan(layer);
    } catch (const Failure &failure) {
        // A node that breaks a rule is taken too, so that compiling it fails with our message. Other providers have none for
        // some, or end the process.
        if (failure.code() != kInvalidArgument) throw;
    }
    std::vector<const OrtNode *> nodes;
    nodes.reserve(layer.nodes.size());
    for (const Node &one : layer.nodes) nodes.push_back(one.get());
    NodeFusionOptions options;
    // They are copied or packed, but for a constant X.
    options.drop_constant_initializers = !layer.x.is_constant();
    check(api_, api_.EpGraphSupportInfo_AddNodesToFuse(support, nodes.data(), nodes.size(), &options));
    for (const Node &one : layer.nodes) taken->insert(one.id());
    if (!settings_->explain) return;
    std::string text = "takes " + layer.description();
    for (const std::string &note : layer.notes) text += "\n    " + note;
    explain(text);
}

void Provider::choose_nodes(const Graph &graph, OrtEpGraphSupportInfo *support) {
    std::set<std::size_t> taken;
    const IsFree is_free = [&](const Node &node) { return node.is_free() && taken.count(node.id()) == 0; };
    for (const Node &node : graph.nodes()) {
        if (!is_transposed_convolution(node) || !is_free(node)) continue;
        try {
            take(node, is_free, support, &taken);
        } catch (const Failure &failure) {
            const std::string text = "leaves it to the next provider: " + std::string(failure.what());
            if (settings_->explain) explain(text);
            warn(std::string(kProviderName) + " " + text);
        }
    }
    if (!taken.empty()) has_taken_ = true;
}

std::unique_ptr<NodeComputeInfo> Provider::compile_one(const Graph &graph, const Node &fused_node) const {
    const IsFree all = [](const Node &) { return true; };
    for (const Node &node : graph.nodes()) {
        if (!is_transposed_convolution(node)) continue;
        const Layer layer = layer_of(node, settings_->fuse, all);
        try_to_plan(layer);
        return std::make_unique<CompiledLayer>(api_, layer, fused_node, settings_, threads_);
    }
    throw Failure(kFail, "the graph of " + fused_node.label() + " has no transposed convolution");
}

} // namespace convtranspose::provider
