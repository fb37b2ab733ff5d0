// Winograd's minimal filtering F(2, r) of the phases of an axis (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin
// and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016). Two neighbouring positions q of a phase with two taps need
// three products instead of four; with three taps, four instead of six. x[i] is the first input position of the pair, and w the
// phase's taps in the order of x:
//
//   one tap     x[i] w0                  x[i+1] w0
//   two taps    (x[i] - x[i+1]) w0       x[i+1] (w0 + w1)             (x[i+1] - x[i+2]) (-w1)
//               y0 = m0 + m1             y1 = m1 + m2
//   three taps  (x[i] - x[i+2]) w0       (x[i+1] + x[i+2]) (w0 + w1 + w2)/2
//               (x[i+1] - x[i+2]) (-w0 + w1 - w2)/2                   (x[i+1] - x[i+3]) w2
//               y0 = m0 + m1 + m2        y1 = m1 - m2 - m3
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "kernel_contract/table_columns.h"
#include "problem/geometry.h"

namespace convtranspose {

constexpr int kMostTapsOfPhase = 3;

// This says how a phase with a given number of taps is computed: the sums of weights, the parts of x that they are multiplied
// with, and the product that the bias is added to, which must be one that both outputs contain once.
struct Products {
    int count, weights;
    double of_weights[4][kMostTapsOfPhase];
    std::int32_t entries[4][kEntryColumns];
    int with_bias;
};
extern const Products kProducts[kMostTapsOfPhase + 1]; // by the number of taps; 0: the axis does not exist

struct WinogradPhase {
    std::int64_t number = 0;          // the first output of y
    std::int64_t kernel_begin = 0;    // element of its first tap; it names the phase whatever the pads are
    int count = 0;                    // number of taps; 0: the axis does not exist
    std::vector<std::size_t> entries; // one for each product
    std::int64_t positions = 1;       // number of positions of y

    int outputs() const { return count ? 2 : 1; } // of a tile
    const Products &products() const { return kProducts[count]; }
};

// The default is an axis that does not exist.
struct WinogradAxis {
    WinogradAxis() = default;
    explicit WinogradAxis(const AxisGeometry &geometry);

    // These are rows of EntryColumn (kernel_contract/table_columns.h): the parts of x that products of all phases take, in
    // order. text says the same, for kernels that have them built in.
    std::vector<std::int32_t> entries = {0, 0, 0};
    std::string text = "none";
    std::int32_t first = 0; // position of x that starts are relative to
    std::vector<WinogradPhase> phases = {{0, 0, 0, {0}, 1}};
    std::int64_t tiles = 1; // tiles of two positions of each phase; of one if the axis is missing
    std::int64_t kernel = 1, kernel_step = 0, stride = 1;

    std::int64_t entry_count() const { return static_cast<std::int64_t>(entries.size()) / kEntryColumns; }
    // Adds up f(phase).
    template<typename F>
    int sum_of(const F &f) const {
        return std::accumulate(phases.begin(), phases.end(), 0,
                               [&](int sum, const WinogradPhase &r) { return sum + f(r); });
    }
    std::int64_t most_products() const { // of a phase
        std::size_t most = 0;
        for (const WinogradPhase &r : phases) most = std::max(most, r.entries.size());
        return static_cast<std::int64_t>(most);
    }
};

} // namespace convtranspose
