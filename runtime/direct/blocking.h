// Blocking says in which strips a layer is computed, and by how many threads at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/division.h"
#include "cpu/cost_profile.h"
#include "direct/direct_layer.h"

namespace convtranspose {

// Bytes of a piece of y that stays in the second-level cache until it is finished, or other tiles have stored to it.
constexpr std::int64_t kPieceBytes = 512 << 10;

// A strip: positions of some groups of some images, along the strip axis, that are computed together, and the part of x that they
// read.
struct Strip {
    std::int64_t first_image = 0, images = 1;
    std::int64_t first_group = 0, groups = 1;
    std::int64_t q_begin = 0, q_end = 0;         // positions along the strip axis
    std::array<std::int64_t, 3> x_min, x_extent; // w, h, d
};

struct Blocking {
    Blocking(const DirectLayer &of, const CostProfile &profile, int threads); // the layer must outlive it

    const DirectLayer &layer;
    std::size_t strip_axis;  // strips are ranges of positions along it
    std::int64_t strip_tile; // extent of the variant's tile along that axis
    std::int64_t strips = 1; // of an image, along the axis
    bool rest_apart = false; // true if the last strip is what whole tiles leave
    std::int64_t images;     // computed at a time
    std::int64_t groups;     // computed at a time
    int workers = 1;         // threads that take whole strips; 1: all threads share each strip

    std::int64_t positions() const { return layer.axes[strip_axis].q_extent(); } // along the axis
    // Returns the images of a batch; an empty one is planned like one image.
    std::int64_t batch() const { return std::max<std::int64_t>(layer.problem.geometry.batch, 1); }
    std::int64_t group_parts() const { return ceil_div(layer.packed.group, groups); }
    std::int64_t strip_count() const { // in a run
        return ceil_div(layer.problem.geometry.batch, images) * group_parts() * strips;
    }
    // Returns where strip i of an image begins along the axis; for i = strips, where the last one ends.
    std::int64_t strip_begin(std::int64_t i) const;
    Strip strip(std::int64_t i) const; // of a run: first along the axis, then of groups, then of images

  private:
    struct Amounts;
    Amounts amounts(const CostProfile &profile) const;
    std::int64_t most_strips(std::int64_t least) const;
    bool takes_groups_apart(const Amounts &a, int threads);
    void give_strips_to_threads(const Amounts &a, int threads);
    void share_strips(const Amounts &a, int threads);
};

} // namespace convtranspose
