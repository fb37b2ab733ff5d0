// Layers of few output channels and a large stride along w, whose kernels would leave parts of vectors of channels unused, are
// computed with the phases along w as output channels. With r = (o + pad) % stride and q = (o + pad) / stride,
//
//     y[m][q * stride + r - pad] = sum over t, c of x[c][q - t] * w[c][m][r + t * stride]
//
// is a layer of stride 1 whose output channels are the phases r, which are dense in y. Phases below kernel % stride have one tap
// more than the others, so they are a layer of their own. Positions q at either end, some of whose phases are cropped, are computed
// aside.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_PHASES_AS_CHANNELS_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_PHASES_AS_CHANNELS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/algorithm.h"

namespace convtranspose {

class PhasesAsChannels : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override;
    std::uint64_t workspace_bytes() const override { return layer_bytes_ + aside_bytes_; }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    // These are phases first .. first + count - 1, each with `taps` taps.
    struct Phases {
        std::int64_t first, count, taps;
    };
    struct Piece {
        std::unique_ptr<SubPlan> plan;
        Phases phases;
        std::int64_t channel;          // channel of y; the first one, if folds()
        std::int64_t q_begin, q_count; // positions
        bool aside;                    // some phases of its one position are cropped

        // Returns true if the other piece has the same phases and channel.
        bool is_beside(const Piece &other) const {
            return channel == other.channel && phases.first == other.phases.first;
        }
    };

    PhasesAsChannels(const Geometry &geometry, const PlanSettings &settings)
        : geometry_(geometry), settings_(for_layers(settings)) {}
    double estimated(const WeightFacts &facts) const; // cycles
    static std::vector<Phases> phases_of(const AxisGeometry &w);
    // Returns true if one layer has all output channels, once for each phase.
    bool folds() const { return geometry_.layout == CONVT_CHANNELS_LAST; }
    std::int64_t channels() const { return folds() ? 1 : geometry_.out_channels; }
    Geometry without_post_ops() const;
    Geometry layer(const Phases &phases, std::int64_t q_begin, std::int64_t q_count) const;
    // Returns the pieces that some phases are computed in; q_begin, q_count and aside are set.
    std::vector<Piece> pieces_of(const Phases &phases) const;
    // Adds the pieces of some phases and a channel. Their plans are reshaped from `whole` or, for pieces that are computed
    // aside and if it is not null, from `aside`. first: the plan of the first piece, if it is made already.
    Status add_pieces(const Phases &phases, std::int64_t channel, const SubPlan *whole, const SubPlan *aside,
                      std::unique_ptr<SubPlan> first);
    void gather(const Phases &phases, std::int64_t channel, const void *w, const void *b, char *w_out,
                char *b_out) const;
    // Returns the quantization of a layer of phases of a channel, or of all channels if folds().
    QuantizationValues quantization_of(const QuantizationValues &q, std::int64_t channel, std::int64_t phases) const;
    void plan_workspace();
    // If channels are last, y must be dense along channels and w. values: null, or those of the run for the piece.
    Status run_piece(const Piece &piece, const RunTensors &tensors, const QuantizationValues *values,
                     char *workspace) const;

    Geometry geometry_;
    PlanSettings settings_;                            // for the layers
    const QuantizationValues *quantization_ = nullptr; // quantized layers only, until the plan is built
    std::vector<Piece> pieces_;
    // If channels are last, this plans the layer as it is, for a y that is a part of more channels, where phases are not
    // dense.
    std::unique_ptr<SubPlan> for_gaps_;
    std::uint64_t layer_bytes_ = 0, aside_bytes_ = 0; // workspace of a layer; y of a piece that is computed aside
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_PHASES_AS_CHANNELS_H_
