// Layers whose taps leave x at many positions, because the kernel, dilated or long, is about as large as the image, are
// computed in parts of y. Kernels omit taps that leave x along h and d at best, and otherwise multiply zeros. This algorithm
// cuts y along each axis where the set of taps that read inside x changes. Each part is a layer of its own with those taps
// alone. Parts share packed weights if their kernels read the same layout.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed_plan.h"
#include "base/division.h"
#include "base/error.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

constexpr std::size_t kMostCuts = 32;       // cuts of an axis that are considered
constexpr std::size_t kMostParts = 64;      // parts of a layer
constexpr double kMostTapsOfAxis = 1 << 16; // taps of an axis, each of which is examined
constexpr double kLeft = 0.85;              // greatest share of the multiply-adds that may be left
constexpr std::int64_t kPositionsOfW = 4;   // a row is charged for a multiple of so many positions: a small tile
// A part must save one of these shares of an axis's multiply-adds to be worth it. Each share is tried.
constexpr double kShares[] = {0.03, 0.1};

// Returns the offsets of all taps of an axis, rising.
std::vector<std::int64_t> offsets_of(const AxisPlan &axis) {
    std::vector<std::int64_t> offsets;
    axis.for_each_with_taps([&](const PhaseRun &, std::int64_t, const std::int32_t *row) {
        for (std::int64_t t = 0; t < row[1]; t++) offsets.push_back(row[0] + t * axis.step);
    });
    std::sort(offsets.begin(), offsets.end());
    return offsets;
}

// Returns the positions where the number of taps changes that read inside x, or some of them if there are many, and both ends.
std::vector<std::int64_t> changes_of(const AxisPlan &axis, const std::vector<std::int64_t> &offsets) {
    std::vector<std::int64_t> all = {0, axis.q_extent()};
    for (const std::int64_t offset : offsets) {
        for (const std::int64_t at : {-offset, axis.geometry.in - offset}) {
            if (at > 0 && at < axis.q_extent()) all.push_back(at);
        }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const std::size_t last = all.size() - 1, few = std::min(last, kMostCuts);
    std::vector<std::int64_t> some;
    for (std::size_t i = 0; i <= few; i++) some.push_back(all[last * i / few]);
    return some;
}

// Returns the positions q where the parts of an axis begin, and its extent. They are chosen for the fewest multiply-adds if
// each part adds `least` to those. *work: the multiply-adds.
std::vector<std::int64_t> cut(const AxisPlan &axis, std::int64_t multiple, double least, double *work) {
    const std::vector<std::int64_t> offsets = offsets_of(axis), at = changes_of(axis, offsets);
    // Returns how many taps read inside x at some of the positions q_begin .. q_end - 1.
    const auto taps_inside = [&](std::int64_t q_begin, std::int64_t q_end) {
        const auto first = std::upper_bound(offsets.begin(), offsets.end(), -q_end);
        const auto last = std::lower_bound(offsets.begin(), offsets.end(), axis.geometry.in - q_begin);
        return real(std::max<std::ptrdiff_t>(last - first, 0));
    };
    std::vector<double> best(at.size(), std::numeric_limits<double>::infinity()), taken(at.size(), 0);
    std::vector<std::size_t> from(at.size(), 0);
    best[0] = 0;
    for (std::size_t end = 1; end < at.size(); end++) {
        for (std::size_t begin = 0; begin < end; begin++) {
            const double positions = real(ceil_div(at[end] - at[begin], multiple) * multiple);
            const double own = positions * taps_inside(at[begin], at[end]);
            if (best[begin] + own + least >= best[end]) continue;
            best[end] = best[begin] + own + least;
            taken[end] = taken[begin] + own;
            from[end] = begin;
        }
    }
    *work = taken.back();
    std::vector<std::int64_t> cuts;
    for (std::size_t i = at.size() - 1; i > 0; i = from[i]) cuts.push_back(at[i]);
    cuts.push_back(0);
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
}

} // namespace

class OutputParts : public ComposedPlan {
  public:
    std::string summary() const override {
        return concat("y in ", parts_.size(), parts_.size() > 1 ? " parts, each of" : " part, of",
                      " the taps that read inside x there");
    }

    Status build(const LayerWeights &weights) override { return plan_parts(weights, nullptr); }

    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override {
        const Geometry &geometry = problem.geometry;
        std::unique_ptr<OutputParts> own(new OutputParts(problem));
        std::vector<Cuts> list = proposals(geometry);
        if (list.empty()) { // all of y is one part
            list.emplace_back();
            for (const AxisGeometry &axis : geometry.axes) list.back().push_back({0, axis.out});
        }
        own->choose(list);
        TRY(own->plan_parts({}, parts_.front().plan));
        *made = std::move(own);
        return Status();
    }

    Status run(const RunTensors &t, char *workspace) const override {
        const std::size_t first_axis = geometry_.dimensions().first_axis;
        const std::int64_t size = size_of(geometry_.y_dtype);
        const auto count = static_cast<std::int64_t>(parts_.size());
        return for_each_task(count, workspace, [&](std::int64_t i, char *own_workspace) {
            const Part &part = parts_[static_cast<std::size_t>(i)];
            RunTensors own = t;
            own.residual = {};
            std::int64_t offset = 0;
            for (std::size_t a = 0; a < part.begin.size(); a++) offset += part.begin[a] * t.y.strides[first_axis + a];
            own.y.data = element_at(t.y.data, offset, size);
            return part.plan->run(own, own_workspace);
        });
    }

  private:
    friend Proposer propose_output_parts;

    // For each axis of y, outermost first, these are the positions where its parts begin, and its extent.
    using Cuts = std::vector<std::vector<std::int64_t>>;

    struct Part {
        std::vector<std::int64_t> begin; // in y, for each axis
        Geometry geometry;
        const LayerPlan *plan = nullptr;
        double cost; // estimated, in cycles
    };

    explicit OutputParts(const AlgorithmProblem &problem)
        : ComposedPlan(problem.geometry, problem.settings), facts_(problem.facts) {
        settings_.excluded = all_but_direct();
    }

    // Returns cuts that save enough multiply-adds. Some cut w alone, as kernels of floats may omit rows and planes themselves.
    // There are none if the layer has no elements or more axes than kernels have, or if few taps leave x.
    static std::vector<Cuts> proposals(const Geometry &geometry) {
        std::vector<Cuts> list;
        if (geometry.axes.size() > 3 || volume(geometry.x_shape) == 0 || volume(geometry.y_shape) == 0) return list;
        const SpatialProblem problem = spatial_problem(geometry, geometry.y_dtype, true);
        const std::size_t axes = geometry.axes.size();
        double most = 1;
        for (const AxisPlan &axis : problem.plan) {
            if (axis.taps > kMostTapsOfAxis) return list;
            most *= axis.taps > 0 ? axis.taps_inside / axis.taps : 1;
        }
        if (most > kLeft) return list;
        for (const bool of_w_alone : {true, false}) {
            for (const double share : kShares) {
                Cuts cuts(axes);
                double left = 1;
                std::size_t parts = 1;
                for (std::size_t a = 0; a < axes; a++) {
                    const std::size_t i = axes - 1 - a; // w first
                    const AxisPlan &axis = problem.plan[a];
                    const double positions = real(axis.q_extent());
                    const bool is_cut = a == 0 || !of_w_alone;
                    const double all = positions * axis.taps;
                    double work = all;
                    std::vector<std::int64_t> at = {0, axis.q_extent()};
                    if (is_cut && all > 0) at = cut(axis, a == 0 ? kPositionsOfW : 1, share * all, &work);
                    left *= all > 0 ? work / all : 1;
                    parts *= at.size() - 1;
                    for (const std::int64_t q : at)
                        cuts[i].push_back(std::min(q * axis.geometry.stride, axis.geometry.out));
                }
                if (parts > 1 && parts <= kMostParts && left <= kLeft &&
                    std::find(list.begin(), list.end(), cuts) == list.end())
                    list.push_back(std::move(cuts));
            }
        }
        return list;
    }

    std::vector<Part> parts_of(const Cuts &cuts) const {
        std::vector<Part> parts(1);
        parts[0].geometry = geometry_;
        for (std::size_t a = 0; a < cuts.size(); a++) {
            std::vector<Part> longer;
            for (const Part &part : parts) {
                for (std::size_t i = 0; i + 1 < cuts[a].size(); i++) {
                    Part with;
                    with.begin = part.begin;
                    with.begin.push_back(cuts[a][i]);
                    with.geometry = part.geometry;
                    AxisGeometry &axis = with.geometry.axes[a];
                    axis.pad_begin += cuts[a][i];
                    axis.out = cuts[a][i + 1] - cuts[a][i];
                    with.geometry.set_shapes();
                    longer.push_back(std::move(with));
                }
            }
            parts = std::move(longer);
        }
        for (Part &part : parts) {
            part.cost = least_cost(part.geometry, settings_.isa, *settings_.profile, facts_) +
                        (parts.size() > 1 ? settings_.profile->per_part : 0);
        }
        std::stable_sort(parts.begin(), parts.end(), [](const Part &a, const Part &b) { return a.cost > b.cost; });
        return parts;
    }

    // Chooses the cuts whose parts are estimated to take the least time, and returns that estimate.
    double choose(const std::vector<Cuts> &list) {
        double least = std::numeric_limits<double>::infinity();
        for (const Cuts &cuts : list) {
            std::vector<Part> parts = parts_of(cuts);
            double cycles = 0;
            for (const Part &part : parts) cycles += part.cost;
            if (cycles >= least && !parts_.empty()) continue;
            least = cycles;
            parts_ = std::move(parts);
        }
        const int threads = threads_.threads;
        const bool are_alike = 2 * threads * parts_.front().cost <= least;
        if (are_alike && are_enough_for_each(static_cast<std::int64_t>(parts_.size()), threads)) take_whole_layers();
        return least;
    }

    // Plans the parts with the weights of another plan or, if that is null, the first with these and the others with its.
    Status plan_parts(const LayerWeights &weights, const LayerPlan *like) {
        for (Part &part : parts_) {
            TRY(add_plan(part.geometry, weights, like, &part.plan));
            if (!like) like = part.plan;
        }
        return Status();
    }

    WeightFacts facts_;
    std::vector<Part> parts_; // the slowest first
};

std::unique_ptr<AlgorithmPlan> propose_output_parts(const AlgorithmProblem &problem, UnsupportedReason *why) {
    if (!supports({{problem.constant_weights, kNeedsConstantWeights}}, why)) return nullptr;
    const auto list = OutputParts::proposals(problem.geometry);
    if (!supports({{!list.empty(), "no cuts of y spare enough multiply-adds"}}, why)) return nullptr;
    std::unique_ptr<OutputParts> own(new OutputParts(problem));
    own->estimate({own->choose(list) * problem.settings.profile->output_parts});
    return own;
}

} // namespace convtranspose
