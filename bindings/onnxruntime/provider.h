// The provider of one session: chooses nodes, and compiles them.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_
#define CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_

#include <memory>
#include <set>

#include "layer.h"
#include "ort_api.h"
#include "settings.h"
#include "threads.h"

namespace convtranspose::provider {

class Provider : public Ep {
  public:
    // in_one_graph: nodes are taken in one graph of the model alone, be it a branch or a loop.
    Provider(const Api &api, const OrtLogger *logger, Settings settings, bool in_one_graph);

  private:
    static const char *name(const Ep *) { return kProviderName; }
    static OrtStatus *choose(Ep *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support);
    static OrtStatus *compile_all(Ep *ep, const OrtGraph **graphs, const OrtNode **fused_nodes, std::size_t count,
                                  NodeComputeInfo **infos, OrtNode **context_nodes);
    static void release(Ep *ep, NodeComputeInfo **infos, std::size_t count);

    void choose_nodes(const Graph &graph, OrtEpGraphSupportInfo *support);
    // Takes a node with its neighbours, and adds their numbers to `taken`. Throws Failure if it cannot be taken.
    void take(const Node &node, const IsFree &is_free, OrtEpGraphSupportInfo *support, std::set<std::size_t> *taken);
    std::unique_ptr<NodeComputeInfo> compile_one(const Graph &graph, const Node &fused_node) const;
    // Plans the layer without its weights, as far as its shapes are known, and throws Failure if the library refuses it.
    void try_to_plan(const Layer &layer) const;
    // Tells the user that a node is left to the next provider.
    void warn(const std::string &message) const;

    const Api &api_;
    const OrtLogger *logger_;
    std::shared_ptr<const Settings> settings_;
    std::shared_ptr<ThreadCount> threads_;
    bool in_one_graph_;
    bool has_taken_ = false; // in an earlier graph
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_
