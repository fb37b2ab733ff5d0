// Layers of few output channels on images too small or narrow for vectors along w are computed by a matrix product and col2im. The
// product is a 1x1 layer, whose positions i are one row whatever the axes: columns[m][k][i] = sum over c of x[c][i] * w[c][m][k].
// The columns that meet in an output position are then added up, strip by strip (generators/col2im_generator.cpp). Columns are
// planar; if channels are last and weights constant, those of one position may be side by side instead, in the order of rows of y:
// (kernel elements, output channels). Then x is not transposed (generators/col2im_channels_generator.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/composed_plan.h"
#include "base/division.h"
#include "kernels/halide_buffer.h"

namespace convtranspose {

class Col2im : public ComposedPlan {
  public:
    Status build(const LayerWeights &weights) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    friend Proposer propose_col2im;

    // A table of an axis has rows of: position of the first tap in x, number of taps, kernel element of the first tap, 0.
    using Table = std::vector<std::int32_t>;

    // A part is a range of positions of y along the strip axis, with the rows of x that they read.
    struct Part {
        std::int64_t q_begin, q_end, rows_begin, rows_end;
        const LayerPlan *last; // plan of the last strip, if that has fewer rows
    };

    Col2im(const Geometry &geometry, const PlanSettings &settings, bool planar);
    std::string summary() const override;
    bool may_hold() const;                            // true if the columns of a strip fit
    bool takes_vectors(const Col2imVariant &v) const; // true if rows are long and dense enough for several at once
    // Returns the number of columns of a position.
    std::int64_t elements() const { return geometry_.out_channels * geometry_.kernel_volume(); }
    // These are for columns in the order of y. run() returns the elements of y between two positions, and read_past() those
    // that vectors read past the columns of a position.
    std::int64_t run() const { return capped_product({axes_[0].geometry.stride, geometry_.out_channels}); }
    std::int64_t read_past() const;
    std::int64_t position_stride() const { return planar_ ? 1 : elements(); } // between columns
    std::int64_t columns_of_strip() const;
    std::int64_t capacity() const { return (strip_rows_ + kept_rows_) * row_; } // positions that are held
    void plan_strips();
    void plan_parts();
    Part part_of(std::int64_t q_begin, std::int64_t q_end) const;
    std::int64_t strips() const;
    EstimatedCycles estimated(bool weights_at_run_time) const;
    double cycles_to_add_planes() const;
    double cycles_to_add_runs() const;
    Geometry product(std::int64_t positions) const; // the 1x1 layer
    Status plan_parts_of_whole();
    void make_tables();
    std::int64_t bias_elements() const;
    void bias_of(const void *b, void *bias) const;
    Status run_part(const Part &part, const RunTensors &tensors, std::int64_t first_image, const char *bias,
                    char *workspace) const;
    struct Range {
        std::int64_t begin, end;
        std::int64_t extent() const { return end - begin; }
    };
    Status multiply(const LayerPlan &plan, const RunTensors &tensors, std::int64_t first_image, Range rows,
                    char *columns, char *workspace) const;
    // These are the columns from row first_row on.
    struct Columns {
        std::int64_t first_image, first_row, rows; // rows: up to the end of the part; fewer may be held
        const char *data;
    };
    Range outputs(std::size_t axis, Range q) const;
    Buffer<2> taps(std::size_t axis, Range outputs) const;
    void add_up(const Columns &columns, const RunTensors &tensors, Range q, const char *bias) const;
    void add_planes(const Columns &columns, const RunTensors &tensors, Range q, Range oc, const char *bias) const;
    void add_runs(const Columns &columns, const RunTensors &tensors, Range q, const char *bias) const;

    convt_dtype sum_dtype_;
    std::int64_t size_; // bytes of a sum
    bool planar_;       // the dense dimension of columns is positions, not kernel elements and channels
    const Col2imVariant *kernel_ = nullptr;
    std::array<AxisPlan, 3> axes_; // w, h, d
    // Strips consist of rows, which are positions of the outermost axis along which x has several. A row holds all positions of
    // the axes inside.
    std::size_t strip_axis_ = 0;
    std::int64_t row_ = 1;                        // positions of a row
    std::int64_t strip_rows_ = 1, kept_rows_ = 0; // rows computed at a time; rows kept from the strip before
    std::int64_t images_ = 1;                     // the number that is computed at a time
    std::vector<Part> parts_;
    const LayerPlan *whole_ = nullptr, *single_ = nullptr; // for a whole strip; for a row along w alone
    std::array<Table, 3> tables_; // w: by phase; h and d: by output position, with taps inside x only
    Block bias_;                  // the bias of constant weights; that of a run is in the workspace that workers share
};

} // namespace convtranspose
