// Layers of few output channels whose kernels would leave vectors empty, along w too: small images, three axes, groups. As in
// phases_as_channels.h, but with the residues of all axes as output channels of layers of stride 1, which write a tensor of their
// own; that is then rearranged into y, as ONNX DepthToSpace does. Where the kernel is dilated, so are those layers, and the residues
// of a position of theirs lie apart in y, or further along in it. Strides longer than the kernel leave most of y to the bias: then
// for any number of channels, as kernels would store what is in between by single elements.
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
    // Of an axis: residues first..first+count-1, each named by its first kernel element and with that many taps; the positions
    // with one of them inside y, at least one. Residue r of position q is output q * stride + r * dilation - pad_begin.
    struct Residues {
        std::int64_t first, count, taps;
        std::int64_t q_begin = 0, q_count = 0;
    };
    struct Layer {
        std::vector<Residues> axes; // outermost first, as in geometry_
        std::unique_ptr<SubPlan> plan;
    };

    DepthToSpace(const Geometry &geometry, const PlanSettings &settings)
        : geometry_(geometry), settings_(for_layers(settings)) {}
    std::vector<Layer> list() const; // without plans
    void plan_layers();
    double times() const { return static_cast<double>(geometry_.batch) / static_cast<double>(images_); }
    double elements_rearranged() const;
    double estimated() const; // cycles
    Geometry geometry_of(const Layer &layer) const;
    void gather(const Layer &layer, const void *w, const void *b, char *w_out, char *b_out) const;
    void plan_workspace();
    void fill_with_bias(const RunTensors &tensors) const;
    void rearrange(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;

    Geometry geometry_;
    PlanSettings settings_;
    std::vector<Layer> layers_;
    std::int64_t images_ = 1; // computed at a time
    Block bias_;              // as given; of residues that no tap reaches it is all there is
    std::uint64_t layer_bytes_ = 0, depth_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_
