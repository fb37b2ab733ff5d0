// Layers of few output channels, whose kernels would leave parts of vectors unused along w too, are computed with the phases of
// all axes as output channels, by layers of stride 1 (or dilated, as the kernel is). Those write a tensor of their own, which is
// rearranged into y as ONNX DepthToSpace does. If strides are longer than the kernel, most of y is bias; then this is for any number
// of channels, as kernels would store the elements between one by one.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/division.h"

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

        // Returns the number of phases, of all axes together.
        std::int64_t phases() const {
            std::int64_t product = 1;
            for (const Phases &axis : axes) product *= axis.count;
            return product;
        }
    };
    // Returns the distance between kernel elements of one phase.
    static std::int64_t period_of(const AxisGeometry &axis) { return -axis.kernel_step; }
    // Returns the number of phases that a tap reaches.
    static std::int64_t phases_of(const AxisGeometry &axis) { return std::min(axis.kernel, period_of(axis)); }
    // Returns true if no tap reaches some of the phases.
    static bool has_gaps(const Geometry &geometry) {
        return std::any_of(geometry.axes.begin(), geometry.axes.end(),
                           [](const AxisGeometry &axis) { return phases_of(axis) < axis.stride; });
    }

    // An axis of a layer, and where its positions and phases are in y. The default is an axis that there is not.
    struct LayerAxis {
        std::int64_t start = 0, q_count = 1, count = 1, stride = 1, dilation = 1, out = 1, y_stride = 0;

        // Returns the output of position q and phase r, which may be outside of y.
        std::int64_t at(std::int64_t q, std::int64_t r) const { return start + q * stride + r * dilation; }
        // Returns the first position whose phase r is not before output o.
        std::int64_t q_at(std::int64_t o, std::int64_t r) const {
            return std::clamp<std::int64_t>(ceil_div(o - at(0, r), stride), 0, q_count);
        }
        // Calls f(q, r, output) for all outputs from begin to end that are of the layer.
        template<typename F>
        void each(std::int64_t begin, std::int64_t end, const F &f) const {
            for (std::int64_t r = 0; r < count; r++) {
                for (std::int64_t q = q_at(begin, r), q_end = q_at(end, r); q < q_end; q++) f(q, r, at(q, r));
            }
        }
    };

    DepthToSpace(const Geometry &geometry, const PlanSettings &settings);
    std::vector<Layer> list() const; // without plans
    void plan_layers();
    double times() const { return static_cast<double>(geometry_.batch) / static_cast<double>(images_); }
    double elements_rearranged() const;
    EstimatedCycles estimated(const WeightFacts &facts) const;
    Geometry geometry_of(const Layer &layer) const;
    void gather(const Layer &layer, const void *w, const void *b, char *w_out, char *b_out) const;
    QuantizationValues quantization_of(const QuantizationValues &q, const Layer &layer) const;
    void plan_workspace();
    std::array<LayerAxis, 3> axes_of(const Layer &layer, const Strides &y_strides) const; // outermost first
    void rearrange(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;
    // With gaps (depth_to_space_gaps.cpp):
    Status make_bias(const void *b);
    void spread(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;

    Geometry geometry_;
    PlanSettings settings_;
    const QuantizationValues *quantization_ = nullptr; // quantized layers only, until the plan is built
    std::vector<Layer> layers_;
    std::int64_t images_ = 1; // the number that is computed at a time
    bool has_gaps_;           // phases that no tap reaches
    bool has_planes_;         // with gaps: layers write planes, not all channels of a position together
    Block bias_;              // with gaps: as given, or zeros
    std::uint64_t layer_bytes_ = 0, depth_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_DEPTH_TO_SPACE_H_
