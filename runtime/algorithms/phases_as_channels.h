// Layers whose kernels would leave parts of vectors unused, because they have few output channels or are narrow, are computed with
// phases as output channels, by layers of stride 1 (or dilated, as the kernel is). With r = (o + pad) % stride and
// q = (o + pad) / stride, along an axis without dilation,
//
//     y[m][q * stride + r - pad] = sum over t, c of x[c][q - t] * w[c][m][r + t * stride]
//
// is a layer of stride 1 whose output channels are the phases r. Phases below kernel % stride have one tap more than the others, so
// they are a layer of their own. This is two algorithms:
//
// - phases_as_channels takes the phases of w, which are dense in y, and writes them in place. Positions q at either end, some of
//   whose phases are cropped, are computed aside and copied.
// - depth_to_space takes the phases of all axes. Its layers write a tensor of their own, which is rearranged into y as ONNX
//   DepthToSpace does. If strides are longer than the kernel, most of y is bias; then this is for any number of channels, as
//   kernels would store the elements between one by one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/composed_plan.h"
#include "base/division.h"

namespace convtranspose {

class PhasesAsChannels : public ComposedPlan {
  public:
    Status build(const LayerWeights &weights) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    friend Proposer propose_phases_as_channels, propose_depth_to_space;

    std::string summary() const override;

    // These are phases first .. first + count - 1 of an axis, each of `taps` kernel elements that are `period` apart. q_begin and
    // q_count are positions. The default is all of an axis that is left as it is.
    struct Phases {
        std::int64_t first = 0, count = 1, taps, period = 1;
        std::int64_t q_begin = 0, q_count;

        bool is_like(const Phases &other) const { return first == other.first && taps == other.taps; }
        // Returns the output of the first phase at the first position, which may be outside of y.
        std::int64_t start(const AxisGeometry &axis) const {
            return q_begin * axis.stride + first * axis.dilation - axis.pad_begin;
        }
    };
    struct Layer {
        std::vector<Phases> axes;       // outermost first, as in geometry_
        std::int64_t channel, channels; // the first channel of y that it computes, and the number
        bool in_place;                  // false: it writes a tensor of its own, which is moved into y
        const LayerPlan *plan = nullptr;

        // Returns the number of phases, of all axes together.
        std::int64_t phases() const {
            std::int64_t product = 1;
            for (const Phases &axis : axes) product *= axis.count;
            return product;
        }
        bool has_weights_of(const Layer &other) const {
            return channel == other.channel &&
                   std::equal(axes.begin(), axes.end(), other.axes.begin(),
                              [](const Phases &a, const Phases &b) { return a.is_like(b); });
        }
    };

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

    PhasesAsChannels(const Geometry &geometry, const PlanSettings &settings, bool of_all_axes);
    // Returns the number of phases that a tap reaches.
    static std::int64_t phases_of(const AxisGeometry &axis) { return std::min(axis.kernel, -axis.kernel_step()); }
    static bool has_gaps(const Geometry &geometry); // true if no tap reaches some of the phases
    static std::vector<Phases> phase_sets_of(const AxisGeometry &axis);
    // Returns true if one layer has all output channels, once for each phase of w.
    bool folds() const { return !of_all_axes_ && geometry_.layout == CONVT_CHANNELS_LAST; }
    // Returns true if the output channels of layers are (phase, channel), not (channel, phase).
    bool has_phases_outside() const { return folds() || (has_gaps_ && !has_planes_); }
    bool is_axis_split(std::size_t axis) const { return of_all_axes_ || axis + 1 == geometry_.axes.size(); }
    std::int64_t repetitions() const; // of the layers, once for each channel
    void list_layers();               // those of the first channel, without plans
    void divide_at_crops();           // along w, so that whole positions may be written in place
    Geometry geometry_of(const Layer &layer) const;
    EstimatedCycles estimated_in_place(const WeightFacts &facts) const;
    EstimatedCycles estimated_moved(const WeightFacts &facts) const;
    double times() const { return real(geometry_.batch) / real(images_); }
    double elements_moved() const;
    std::int64_t most_elements() const; // of a layer's own tensor

    void gather(const Layer &layer, const Geometry &g, const LayerWeights &of, char *w_out, char *b_out) const;
    std::int64_t channel_of(const Layer &layer, std::int64_t i) const;
    QuantizationValues quantization_of(const QuantizationValues &q, const Layer &layer) const;
    template<typename T>
    std::vector<T> values_of(const Layer &layer, const std::vector<T> &values) const;
    Status plan_gathered(const LayerWeights &weights, Layer *layer);
    const LayerPlan *plan_with_weights_of(const Layer &layer, bool or_first) const;
    Status plan_layers(const PhasesAsChannels *from, const LayerWeights &weights);
    Status make_bias(const void *b); // of phases without taps

    // If layers write in place and channels are last, y must be dense along channels and w. values: null, or those of the run.
    Status run_layer(const Layer &layer, std::int64_t first_image, const RunTensors &tensors,
                     const QuantizationValues *values, char *workspace) const;
    // These move the tensor of a layer into y, of images from first_image on (depth_to_space.cpp).
    std::array<LayerAxis, 3> axes_of(const Layer &layer, const Strides &y_strides) const; // outermost first
    void rearrange(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;
    void spread(const Layer &layer, const char *depth, std::int64_t first_image, const RunTensors &tensors) const;

    bool of_all_axes_; // depth_to_space; false: phases_as_channels
    bool has_gaps_;    // phases that no tap reaches
    bool has_planes_;  // with gaps: layers write planes, not all channels of a position together
    std::vector<Layer> layers_;
    std::int64_t images_ = 1; // the number that is computed at a time
    // If folds(), this plans the layer as it is, for a y that is a part of more channels, where phases are not dense.
    const LayerPlan *for_gaps_ = nullptr;
    Block bias_; // with gaps: as given, or zeros
};

} // namespace convtranspose
