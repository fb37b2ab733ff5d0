// Layers of few output channels, whose kernels would leave parts of vectors unused along w too (small images, three axes,
// groups), are computed with the phases of all axes as output channels. As in phases_as_channels.h, layers of stride 1 do
// that. They write a tensor of their own, which is then rearranged into y as ONNX DepthToSpace does. Where the kernel is
// dilated, so are these layers, and the phases of one position are a dilation apart in y. If strides are longer than the
// kernel, most of y is bias; the algorithm is then for any number of channels, as kernels would store the elements between one
// by one.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"

namespace convtranspose {

class DepthToSpace : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override { return plans_of(layers_); }
    std::uint64_t workspace_bytes() const override { return layer_bytes_ + depth_bytes_; }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    // These are phases first .. first + count - 1 of an axis. Each is named by its first kernel element and has `taps` taps.
    // q_begin and q_count are the positions at which at least one of them is inside y; there is at least one position. Phase
    // r of position q is output q * stride + r * dilation - pad_begin.
    struct Phases {
        std::int64_t first, count, taps;
        std::int64_t q_begin = 0, q_count = 0;
    };
    struct Layer {
        std::vector<Phases> axes; // outermost first, as in geometry_
        std::unique_ptr<SubPlan> plan;
    };

    DepthToSpace(const Geometry &geometry, const PlanSettings &settings)
        : geometry_(geometry), settings_(for_layers(settings)) {}
    std::vector<Layer> list() const; // without plans
    void plan_layers();
    double times() const { return static_cast<double>(geometry_.batch) / static_cast<double>(images_); }
    double elements_rearranged() const;
    double estimated() const; // in cycles
    Geometry geometry_of(const Layer &layer) const;
    void gather(const Layer &layer, const void *w, const void *b, char *w_out, char *b_out) const;
    void plan_workspace();
    void fill_with_bias(const RunTensors &tensors) const;
    void rearrange(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;

    Geometry geometry_;
    PlanSettings settings_;
    std::vector<Layer> layers_;
    std::int64_t images_ = 1; // the number that is computed at a time
    Block bias_;              // as given; it is the value of phases that no tap reaches
    std::uint64_t layer_bytes_ = 0, depth_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_
