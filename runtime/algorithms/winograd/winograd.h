// Winograd's minimal filtering, F(2, r) (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, Fast
// Algorithms for Convolutional Neural Networks, 2016), of the residues of a transposed convolution. Along an axis, two neighbouring
// positions q of a residue with two taps read three of x, and take three products instead of four; with three taps four instead of
// six. With x[i] the first input position of the pair and w the residue's taps in the order of x:
//
//   one tap     x[i] w0                  x[i+1] w0
//   two taps    (x[i] - x[i+1]) w0       x[i+1] (w0 + w1)             (x[i+1] - x[i+2]) (-w1)
//               y0 = m0 + m1             y1 = m1 + m2
//   three taps  (x[i] - x[i+2]) w0       (x[i+1] + x[i+2]) (w0 + w1 + w2)/2
//               (x[i+1] - x[i+2]) (-w0 + w1 - w2)/2                   (x[i+1] - x[i+3]) w2
//               y0 = m0 + m1 + m2        y1 = m1 - m2 - m3
//
// Of two axes the factors are those of either axis after those of the other: 9 products for 16 of 2x2 taps. All residues of an axis
// share what is made of x, which differs in where it begins alone. Each product is one of matrices, positions x input channels
// times input channels x output channels, that the kernels of the channels family compute as a layer of one tap.
//
// Sums have other rounding errors than those of the definition, as differences and sums of x and w enter them: for those who asked.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_WINOGRAD_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_WINOGRAD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "kernels/variant.h"

namespace convtranspose {

class Winograd : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override;
    std::uint64_t workspace_bytes() const override { return static_cast<std::uint64_t>(workers_) * bytes_of_worker(); }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    // Start, distance, second (generators/winograd_input_generator.cpp).
    static constexpr std::int32_t kEntryColumns = 3;

    struct Residue {
        std::int64_t kernel_begin = 0;    // the element of its first tap: which residue it is, whatever the pads are
        int count = 0;                    // of taps; 0: of an axis that there is not
        std::vector<std::size_t> entries; // for each product
        std::int64_t positions = 1;       // of y
    };
    struct Axis {
        // Rows of kEntryColumns: what products take of x, of all residues, in order; and as text, if a kernel may have it built in.
        std::vector<std::int32_t> entries = {0, 0, 0};
        std::string text = "none";
        std::int32_t first = 0; // position of x that starts count from
        std::vector<Residue> residues = {{0, 0, {0}, 1}};
        std::int64_t tiles = 1; // of two positions of each residue; of no axis of one
        std::int64_t kernel = 1, kernel_step = 0, stride = 1;

        std::int64_t entry_count() const { return static_cast<std::int64_t>(entries.size()) / kEntryColumns; }
    };
    // The weights of one residue of each axis.
    struct Layer {
        std::int64_t begin_h = 0, begin_w = 0;
        int count_h = 0, count_w = 0;
        // One for each product of h and of w, of whole strips; the same of the last strip, if that has fewer positions.
        std::vector<std::unique_ptr<SubPlan>> products, rest;
        WinogradOutputFunction output = nullptr;
    };
    struct Strip {
        std::int64_t first_image = 0, first_tile = 0, tiles = 0; // of h
    };

    Winograd(const Geometry &geometry, const PlanSettings &settings);
    static Axis axis_of(const AxisGeometry &geometry);
    void find_input();
    bool fits() const;
    int product_count() const;
    void plan_strips();
    void list_layers();
    void plan_workspace();
    Geometry product_geometry(std::int64_t positions) const;
    std::int64_t positions(std::int64_t tiles) const { return images_ * tiles * w_.tiles; }
    std::int64_t rest_tiles() const { return h_.tiles % tiles_of_strip_; }
    double estimated() const; // cycles
    Status plan_layer(const LayerWeights &weights, const Planner &planner, const SubPlan *like, Layer *layer) const;
    template<typename T>
    bool transform_weights(const Layer &layer, const T *w, void *transformed) const;

    std::int64_t pitch() const;          // elements of what is made of x, from one position to the next
    std::int64_t product_stride() const; // elements from one product to the next
    std::uint64_t bytes_of_residue() const { return layer_bytes_ + product_bytes_; }
    std::uint64_t bytes_of_worker() const {
        return transformed_bytes_ + static_cast<std::uint64_t>(residues_at_once_) * bytes_of_residue();
    }
    Status run_strip(const Strip &strip, const RunTensors &tensors, char *workspace) const;
    Status run_residue(const Strip &strip, std::size_t rh, std::size_t rw, const RunTensors &tensors,
                       const char *transformed, char *workspace) const;
    void transform_input(const Strip &strip, const RunTensors &tensors, char *transformed) const;
    void transform_output(const Strip &strip, const Layer &layer, std::size_t rh, std::size_t rw, const char *products,
                          const RunTensors &tensors) const;

    Geometry geometry_;
    PlanSettings settings_; // of the layers
    Parallel parallel_;     // of the whole
    Axis h_, w_;            // outermost, innermost; of one axis the latter is none
    WinogradInputFunction input_ = nullptr;
    std::int64_t tiles_of_strip_ = 1, strips_ = 1, images_ = 1; // along h, of an image; images of a strip
    int workers_ = 1; // threads that take whole strips, each with a workspace of its own; 1: all share each,
    int residues_at_once_ =
        1; // of which they then take whole residues, with products of their own; 1: share each product
    std::vector<Layer> layers_; // of all residues of h and, innermost, of w
    std::uint64_t layer_bytes_ = 0, transformed_bytes_ = 0, product_bytes_ = 0; // of a worker
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_WINOGRAD_H_
