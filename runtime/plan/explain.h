// Explanations of plans for CPUs, and the parts that those of plans for devices have in common with them.
#pragma once

#include <string>
#include <vector>

#include "problem/geometry.h"
#include "problem/quantization.h"
#include "selection/candidates.h"

namespace convtranspose {

class LayerPlan;

// Returns a description of the plan and of its reasons, for people.
std::string explain(const LayerPlan &plan);

std::string formatted(const char *format, double number);

// Returns the lines about a layer: its tensors, the taps of its axes, quantization, post-ops, and how much it computes and moves.
// quantization: null if it arrives with each run. facts: those of quantized weights; null: not known yet. how: the way in which
// post-ops are applied.
std::string describe_layer(const Geometry &geometry, const QuantizationValues *quantization, const WeightFacts *facts,
                           const std::string &how);

struct ListedCandidate {
    const char *name;
    UnsupportedReason unsupported;
    double cycles;
    std::string details; // which follow the cycles
    bool is_chosen;
};

// Lists the candidates that can compute the layer, by estimate, then the others, by the reason why they cannot.
std::string list_of(std::vector<ListedCandidate> candidates);

} // namespace convtranspose
