// This applies Winograd's minimal filtering F(2, r) to the phases of a transposed convolution (S. Winograd, Arithmetic
// Complexity of Computations, 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016). Along an
// axis, two neighbouring positions q of a phase with two taps need three products instead of four; with three taps, four
// instead of six. x[i] is the first input position of the pair, and w the phase's taps in the order of x:
//
//   one tap     x[i] w0                  x[i+1] w0
//   two taps    (x[i] - x[i+1]) w0       x[i+1] (w0 + w1)             (x[i+1] - x[i+2]) (-w1)
//               y0 = m0 + m1             y1 = m1 + m2
//   three taps  (x[i] - x[i+2]) w0       (x[i+1] + x[i+2]) (w0 + w1 + w2)/2
//               (x[i+1] - x[i+2]) (-w0 + w1 - w2)/2                   (x[i+1] - x[i+3]) w2
//               y0 = m0 + m1 + m2        y1 = m1 - m2 - m3
//
// For two axes, the transforms of one follow those of the other. Phases share the transformed x. Each product multiplies two
// matrices, (positions, input channels) and (input channels, output channels), as a layer of one tap. The results round
// differently from the definition, so the caller must allow the algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "algorithms/composed_plan.h"
#include "kernel_contract/table_columns.h"

namespace convtranspose {

class Winograd : public ComposedPlan {
  public:
    Status build(const LayerWeights &weights) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    friend Proposer propose_winograd;

    struct Phase {
        std::int64_t number = 0;          // the first output of y
        std::int64_t kernel_begin = 0;    // element of its first tap; it names the phase whatever the pads are
        int count = 0;                    // number of taps; 0: the axis does not exist
        std::vector<std::size_t> entries; // one for each product
        std::int64_t positions = 1;       // number of positions of y

        int outputs() const { return count ? 2 : 1; } // of a tile
    };
    struct Axis {
        // These are rows of EntryColumn (kernel_contract/table_columns.h): the parts of x that products of all phases take, in
        // order. text says the same, for kernels that have them built in.
        std::vector<std::int32_t> entries = {0, 0, 0};
        std::string text = "none";
        std::int32_t first = 0; // position of x that starts are relative to
        std::vector<Phase> phases = {{0, 0, 0, {0}, 1}};
        std::int64_t tiles = 1; // tiles of two positions of each phase; of one if the axis is missing
        std::int64_t kernel = 1, kernel_step = 0, stride = 1;

        std::int64_t entry_count() const { return static_cast<std::int64_t>(entries.size()) / kEntryColumns; }
        // Adds up f(phase).
        template<typename F>
        int sum_of(const F &f) const {
            return std::accumulate(phases.begin(), phases.end(), 0,
                                   [&](int sum, const Phase &r) { return sum + f(r); });
        }
        std::size_t most_products() const; // of a phase
    };
    using Plans = std::vector<const LayerPlan *>;
    // A layer has the plans for one phase of each axis.
    struct Layer {
        const Phase &h, &w;
        // products are for whole strips, one plan for each sum of weights of h and, innermost, of w. rest is the same for the
        // last strip, if that has fewer positions.
        Plans products, rest;
        WinogradOutputFunction output = nullptr;
    };
    struct Strip {
        std::int64_t first_image = 0, first_tile = 0, tiles = 0; // tiles of h
    };

    Winograd(const Geometry &geometry, const PlanSettings &settings);
    std::string summary() const override;
    static Axis axis_of(const AxisGeometry &geometry);
    bool fits() const;
    int product_count() const;
    void plan_strips();
    void plan_workspace();
    Geometry product_geometry(std::int64_t positions) const;
    std::int64_t positions(std::int64_t tiles) const { return images_ * tiles * w_.tiles; }
    std::int64_t rest_tiles() const { return h_.tiles % tiles_of_strip_; }
    std::size_t most_products() const { return h_.most_products() * w_.most_products(); } // of a layer
    std::int64_t strip_elements() const; // of the transformed x of a strip, or of its products, whichever has more
    EstimatedCycles estimated() const;
    Status plan_products(const LayerWeights &weights, const LayerPlan *like, Layer *layer);
    Status reshape_products(const Plans &from, std::int64_t tiles, Plans *to);
    template<typename T>
    bool transform_weights(const Layer &layer, const T *w, void *transformed) const;

    std::int64_t pitch() const;          // elements between positions of the transformed x
    std::int64_t product_stride() const; // elements between products
    std::uint64_t bytes_of_phase() const { return layer_bytes_ + product_bytes_; }
    Status run_strip(const Strip &strip, const RunTensors &tensors, char *workspace) const;
    Status run_layer(const Strip &strip, const Layer &layer, const RunTensors &tensors, const char *transformed,
                     char *workspace) const;
    void transform_input(const Strip &strip, const RunTensors &tensors, char *transformed) const;
    void transform_output(const Strip &strip, const Layer &layer, const char *products,
                          const RunTensors &tensors) const;

    std::int64_t size_; // of an element of x, w and y
    Axis h_, w_;        // outermost, innermost; of one axis, w_ does not exist
    WinogradInputFunction input_ = nullptr;
    std::int64_t tiles_of_strip_ = 1, strips_ = 1, images_ = 1; // tiles of h; strips of an image; images of a strip
    int phases_at_once_ = 1;    // phases of a shared strip that threads take whole; 1: they share each product
    std::vector<Layer> layers_; // one for each phase of h and, innermost, of w
    std::uint64_t transformed_bytes_ = 0, product_bytes_ = 0; // for a phase
};

} // namespace convtranspose
