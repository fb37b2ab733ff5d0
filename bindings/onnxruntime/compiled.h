// A layer that ONNX Runtime runs.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_COMPILED_H_
#define CONVTRANSPOSE_ONNXRUNTIME_COMPILED_H_

#include <memory>

#include "layer.h"
#include "ort_api.h"
#include "plans.h"
#include "settings.h"
#include "threads.h"

namespace convtranspose::provider {

class CompiledLayer : public NodeComputeInfo {
  public:
    // Copies what it needs of the layer. `fused_node` is the node that stands for it from now on. The plan is made at once if
    // all shapes and the number of threads are known, else at the first run.
    CompiledLayer(const Api &api, const Layer &layer, const Node &fused_node, std::shared_ptr<const Settings> settings,
                  std::shared_ptr<ThreadCount> threads);

  private:
    static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

    static OrtStatus *create(NodeComputeInfo *info, OrtNodeComputeContext *, void **state);
    static OrtStatus *run(NodeComputeInfo *info, void *state, OrtKernelContext *context);
    static void release(NodeComputeInfo *, void *) {}

    void compute_y(OrtKernelContext *context);
    TensorRef input(const OrtKernelContext *context, std::size_t index) const;

    const Api &api_;
    std::shared_ptr<ThreadCount> threads_;
    // Numbers of the fused node's inputs; kNone for what is constant or absent.
    std::size_t x_ = 0, w_ = kNone, b_ = kNone, residual_ = kNone;
    convt_dtype b_dtype_ = CONVT_F32, y_dtype_ = CONVT_F32;
    Plans plans_;
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_COMPILED_H_
