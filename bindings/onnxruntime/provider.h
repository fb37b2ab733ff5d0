// The provider of one session: chooses nodes, and compiles them.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_
#define CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_

#include <memory>

#include "layer.h"
#include "ort_api.h"
#include "settings.h"
#include "threads.h"

namespace convtranspose::provider {

class Provider : public Ep {
  public:
    Provider(const Api &api, const OrtLogger *logger, Settings settings);

  private:
    static const char *name(const Ep *) { return kProviderName; }
    static OrtStatus *choose(Ep *ep, const OrtGraph *graph, OrtEpGraphSupportInfo *support);
    static OrtStatus *compile_all(Ep *ep, const OrtGraph **graphs, const OrtNode **fused_nodes, std::size_t count,
                                  NodeComputeInfo **infos, OrtNode **context_nodes);
    static void release(Ep *ep, NodeComputeInfo **infos, std::size_t count);

    void choose_nodes(const OrtGraph *graph, OrtEpGraphSupportInfo *support) const;
    std::unique_ptr<NodeComputeInfo> compile_one(const OrtGraph *graph, const Node &fused_node) const;
    // Plans the layer without its weights, as far as its shapes are known, and throws Failure if the library refuses it.
    void try_to_plan(const Layer &layer) const;
    // Tells the user that a node is left to the next provider because something is wrong with it.
    void warn(const std::string &message) const;

    const Api &api_;
    const OrtLogger *logger_;
    std::shared_ptr<const Settings> settings_;
    std::shared_ptr<ThreadCount> threads_;
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_PROVIDER_H_
