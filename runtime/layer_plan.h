// What a convt_plan is: geometry, chosen variant, packed weights, and workspaces to run in.
#ifndef CONVTRANSPOSE_RUNTIME_LAYER_PLAN_H_
#define CONVTRANSPOSE_RUNTIME_LAYER_PLAN_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "allocator.h"
#include "core.h"
#include "geometry.h"
#include "parallel.h"

namespace convtranspose {

struct PlanSettings {
    Parallel parallel;
    Allocator allocator;
    Isa isa = Isa::kX86_64;
    std::string variant; // forced; empty: by cost
};

// Weights as one or more cores read them: one block for each kernel element of the leading axes (beyond three), so one
// where there are none.
struct Packed {
    Block block;
    bool finite = true;
    std::vector<double> bias; // with leading axes only: (M) as it is added once their taps have been summed
    PackedLayout layout;
};

class LayerPlan {
  public:
    // w: null if it arrives with each run. b: null if there is none, or likewise.
    static Status create(const Geometry &geometry, const PlanSettings &settings, const void *w, const void *b,
                         std::unique_ptr<LayerPlan> *plan);
    Status reshape(const Geometry &geometry, std::unique_ptr<LayerPlan> *plan) const;

    // Tensors have been checked. w and b: null unless they arrive with each run.
    Status run(const void *x, const std::vector<std::int64_t> &x_strides, const void *w, const void *b, void *y,
               const std::vector<std::int64_t> &y_strides, void *workspace) const;

    const Geometry &geometry() const { return geometry_; }
    const PlanSettings &settings() const { return settings_; }
    bool weights_at_run_time() const { return packed_ == nullptr; }
    const Core &core() const { return core_; }
    std::size_t workspace_bytes() const { return workspace_bytes_; }
    std::size_t packed_bytes() const { return packed_bytes_; }
    const std::vector<Candidate> &candidates() const { return candidates_; }
    const std::string &reason() const { return reason_; }
    const std::string &explanation() const; // made when first asked for

  private:
    LayerPlan(const Geometry &geometry, const PlanSettings &settings);

    Status choose(bool may_be_infinite, const Packed *packed);
    void finish_planning();
    std::int64_t leading_elements() const; // kernel elements of the leading axes
    bool pack(const Core &core, const void *w, const void *b, void *packed) const;
    void run_leading(const Core &core, const void *x, const std::vector<std::int64_t> &x_strides, const void *packed,
                     const void *b, void *y, const std::vector<std::int64_t> &y_strides, char *workspace) const;
    TensorStrides core_strides(const std::vector<std::int64_t> &strides) const;

    // The problem with its leading axes, those beyond the innermost three, taken off.
    Geometry geometry_, core_geometry_;
    std::size_t leading_ = 0;
    PlanSettings settings_;
    CoreProblem problem_;
    std::vector<Candidate> candidates_;
    std::string reason_;
    mutable std::once_flag explained_;
    mutable std::string explanation_;
    Core core_;
    // Weights that arrive at run time may hold an inf or a NaN: then this is run, where core_ must not be.
    std::unique_ptr<Core> exact_;
    std::shared_ptr<const Packed> packed_;
    std::size_t packed_bytes_ = 0;
    std::size_t workspace_bytes_ = 0, core_workspace_bytes_ = 0, partial_bytes_ = 0, run_packed_bytes_ = 0;
    // A single output channel that comes last leaves the columns of y apart if y is a crop, which kernels that store runs
    // of a row cannot do: they then write here.
    std::size_t dense_y_bytes_ = 0;

    mutable std::mutex mutex_;
    mutable std::vector<Block> free_workspaces_;
};

// What was planned and why, as text for a person.
std::string explain(const LayerPlan &plan);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_LAYER_PLAN_H_
