// Layers whose taps leave x at many positions, because the kernel, dilated or long, is about as large as the image, are
// computed in parts of y. Kernels omit taps that leave x along h and d at best, and otherwise multiply zeros. This algorithm
// cuts y along each axis where the set of taps that read inside x changes. Each part is a layer of its own with those taps
// alone. Parts share packed weights if their kernels read the same layout.
#ifndef CONVTRANSPOSE_RUNTIME_ALGORITHMS_OUTPUT_PARTS_H_
#define CONVTRANSPOSE_RUNTIME_ALGORITHMS_OUTPUT_PARTS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"

namespace convtranspose {

class OutputParts : public AlgorithmPlan {
  public:
    static std::unique_ptr<AlgorithmPlan> propose(const AlgorithmProblem &problem, const Planner &planner,
                                                  UnsupportedReason *why);

    std::string summary() const override;
    std::vector<const SubPlan *> layers() const override { return plans_of(parts_); }
    std::uint64_t workspace_bytes() const override { return static_cast<std::uint64_t>(workers_) * part_bytes_; }
    Status build(const LayerWeights &weights, const Planner &planner) override;
    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override;
    Status run(const RunTensors &tensors, char *workspace) const override;

  private:
    // For each axis of y, outermost first, these are the positions where its parts begin, and its extent.
    using Cuts = std::vector<std::vector<std::int64_t>>;

    struct Part {
        std::vector<std::int64_t> begin; // in y, for each axis
        Geometry geometry;
        std::unique_ptr<SubPlan> plan;
        double cost; // estimated, in cycles
    };

    OutputParts(const Geometry &geometry, const PlanSettings &settings);
    static std::vector<Cuts> proposals(const Geometry &geometry);
    std::vector<Part> parts_of(const Cuts &cuts) const;
    double choose(const std::vector<Cuts> &list);
    Status reshape_parts(const SubPlan &from, std::size_t first);

    Geometry geometry_;
    const QuantizationValues *quantization_ = nullptr; // quantized layers only, until the plan is built
    PlanSettings settings_;                            // for the parts
    Parallel parallel_;
    std::vector<Part> parts_; // the slowest first
    int workers_ = 1;         // threads that take whole parts, each with its own workspace; 1: all share each part
    std::uint64_t part_bytes_ = 0;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_ALGORITHMS_OUTPUT_PARTS_H_
