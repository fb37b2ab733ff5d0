// A strip is divided into tasks, which threads share. Each makes the calls of the kernel for a part of y, and finishes that part
// while it is in the cache.
#include <algorithm>
#include <utility>

#include "base/allocator.h"
#include "base/division.h"
#include "direct/copy_box.h"
#include "direct/direct_plan.h"

namespace convtranspose {

namespace {

// With up to this many times the wanted number of tasks, it matters if one thread has one task more than another.
constexpr std::int64_t kMostUneven = 4;

} // namespace

// The numbers of parts that a strip is divided into, by channels and by positions, and of the boxes of a part along each axis.
struct DirectPlan::Tasks {
    std::int64_t group_tiles = 1, group_parts = 1, tile_parts = 1, q_parts = 1;
    bool by_positions = false, halves = false; // halves: the phases of h are two boxes
    std::array<std::int64_t, 3> boxes = {1, 1, 1};
    std::int64_t boxes_of_task = 1, count = 1;

    std::int64_t channel_parts() const { return group_parts * tile_parts; }
    std::int64_t parts() const { return channel_parts() * q_parts; }
    std::int64_t boxes_of_part() const { return boxes[0] * boxes[1] * boxes[2]; }
};

// A part of y: some images, channels and positions.
struct DirectPlan::PartOfY {
    std::int64_t image, images, channel, groups, oc; // oc: channels of each group
    std::array<std::int64_t, 3> begin, extent;       // w, h, d

    std::int64_t offset(const TensorStrides &strides) const {
        std::int64_t sum = image * strides.n + channel * strides.c;
        for (std::size_t a = 0; a < 3; a++) sum += begin[a] * strides.axes[a];
        return sum;
    }
};

// pieces: how many the strip's y must be divided into at least; 0: the boxes of a part may be tasks of their own.
DirectPlan::Tasks DirectPlan::tasks_of(const Strip &s, std::int64_t pieces, int threads) const {
    const Variant &v = *variant_;
    Tasks t;
    // The strip is divided into about four tasks a thread: by groups, then by tiles of output channels, then by positions along the
    // strip axis; by positions first if all groups of a position are side by side in y.
    const std::int64_t wanted =
        std::max({threads > 1 ? 4 * std::int64_t{threads} : std::int64_t{1}, pieces, std::int64_t{1}});
    t.group_tiles = overlaps_groups(v) ? s.groups / packed_.group_tile : ceil_div(s.groups, packed_.group_tile);
    const std::int64_t positions = s.q_end - s.q_begin, tile = strip_tile_,
                       most_q_parts = std::max<std::int64_t>(positions / (2 * tile), 1);
    const bool positions_first = v.family == Family::kDepthwise && v.output_order == OutputOrder::kChannels;
    t.group_parts = std::min(t.group_tiles, positions_first ? ceil_div(wanted, most_q_parts) : wanted);
    // The reference takes the channels of one packed tile at a time, however many the tile holds.
    const bool each_tile = v.family == Family::kReference;
    const std::int64_t few_tile_parts = std::min(packed_.tiles(), ceil_div(wanted, t.group_parts));
    const bool are_uneven = threads > 1 && packed_.tiles() % few_tile_parts != 0;
    t.tile_parts =
        each_tile || (are_uneven && packed_.tiles() <= kMostUneven * wanted) ? packed_.tiles() : few_tile_parts;
    t.q_parts = std::min(most_q_parts, ceil_div(wanted, t.channel_parts()));
    // Tasks are in an order by which each thread takes positions whose x it has copied itself; or channels, if by positions one thread
    // would have a tile more.
    t.by_positions = positions_first || ceil_div(positions, tile) % threads == 0;
    // Each axis has this many boxes in each part; some of them may be empty.
    for (std::size_t a = 0; a < 3; a++) t.boxes[a] = whole_[a] ? 1 : static_cast<std::int64_t>(axes_[a].runs.size());
    // If threads cannot take equally many parts, the phases of h are halved too; each half has weights of its own.
    const bool knows_phases = whole_[1] || (v.built_in && v.built_in->axes[1].table);
    t.halves = pieces == 0 && !knows_phases && !each_tile && t.parts() % threads != 0 &&
               t.parts() <= kMostUneven * wanted && t.boxes[1] == 1 && axes_[1].runs.front().count > 1;
    if (t.halves) t.boxes[1] = 2;
    // Only all boxes of a part together leave no gaps in y.
    t.boxes_of_task = pieces > 0 ? t.boxes_of_part() : 1;
    t.count = t.parts() * (t.boxes_of_part() / t.boxes_of_task);
    return t;
}

// Returns the channels and positions of part i, without its boxes.
DirectPlan::Call DirectPlan::part(const Strip &s, const Tasks &t, std::int64_t i) const {
    const std::int64_t channels_part = t.by_positions ? i % t.channel_parts() : i / t.q_parts,
                       positions_part = t.by_positions ? i / t.channel_parts() : i % t.q_parts;
    const std::int64_t tp = channels_part % t.tile_parts, gp = channels_part / t.tile_parts;
    // Parts end on whole tiles, so that phases with one position less still fill a tile.
    const std::int64_t tiles = (s.q_end - s.q_begin) / strip_tile_;
    const auto begin_of = [&](std::int64_t p) { return s.q_begin + tiles * p / t.q_parts * strip_tile_; };
    Call c;
    c.q_begin = begin_of(positions_part);
    c.q_end = positions_part + 1 == t.q_parts ? s.q_end : begin_of(positions_part + 1);
    const auto group_begin_of = [&](std::int64_t p) {
        return s.first_group + t.group_tiles * p / t.group_parts * packed_.group_tile;
    };
    c.group_begin = group_begin_of(gp);
    c.group_end = gp + 1 == t.group_parts ? s.first_group + s.groups : group_begin_of(gp + 1);
    c.oc_tile_begin = packed_.tiles() * tp / t.tile_parts;
    c.oc_tile_end = packed_.tiles() * (tp + 1) / t.tile_parts;
    return c;
}

// Returns box i of an axis of a part.
Box DirectPlan::box_of_part(const Tasks &t, const Call &c, std::size_t a, std::int64_t i) const {
    const bool strip_axis = static_cast<int>(a) == strip_axis_;
    const std::int64_t begin = strip_axis ? c.q_begin : 0, end = strip_axis ? c.q_end : axes_[a].q_extent();
    if (whole_[a]) return Box{0, axes_[a].geometry.stride, 0, begin, end};
    if (a != 1 || !t.halves) return box_of(axes_[a].runs[static_cast<std::size_t>(i)], begin, end);
    PhaseRun half = axes_[a].runs.front();
    const std::int64_t first = half.count / 2;
    half.count = i ? half.count - first : first;
    half.first += i ? first : 0;
    half.row += i && half.has_taps ? first : 0;
    return box_of(half, begin, end);
}

// Returns the part of y that all boxes of a part are.
DirectPlan::PartOfY DirectPlan::part_of_y(const Strip &s, const Call &c) const {
    const std::int64_t tile = std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t oc_begin = c.oc_tile_begin * tile, oc_end = std::min(c.oc_tile_end * tile, packed_.oc);
    const std::int64_t channel = c.group_begin * packed_.oc + oc_begin, groups = c.group_end - c.group_begin;
    PartOfY part = {s.first_image, s.images, channel, groups, oc_end - oc_begin, {}, {}};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        const bool strip_axis = static_cast<int>(a) == strip_axis_;
        part.begin[a] = strip_axis ? c.q_begin * axis.stride : 0;
        part.extent[a] = (strip_axis ? std::min(c.q_end * axis.stride, axis.out) : axis.out) - part.begin[a];
    }
    return part;
}

// Returns the strides of a dense copy of the part, in the order in which the variant writes y. Groups are as far apart as in y.
TensorStrides DirectPlan::dense_strides_of(const PartOfY &part) const {
    const std::int64_t channels = (part.groups - 1) * packed_.oc + part.oc;
    TensorStrides s;
    std::int64_t next = 1;
    const auto take = [&](std::int64_t extent) { return std::exchange(next, next * extent); };
    if (variant_->output_order == OutputOrder::kChannels) s.c = take(channels);
    for (std::size_t a = 0; a < 3; a++) s.axes[a] = take(part.extent[a]);
    if (variant_->output_order == OutputOrder::kPlanar) s.c = take(channels);
    s.n = next;
    return s;
}

// Makes the calls of a task, for the boxes of its part c.
void DirectPlan::call_for_task(const StripParts &rows, const Tasks &t, std::int64_t task, Call c,
                               const Operands &o) const {
    const std::int64_t first = task * t.boxes_of_task % t.boxes_of_part();
    for (std::int64_t b = first; b < first + t.boxes_of_task; b++) {
        const Index at = {b % t.boxes[0], b / t.boxes[0] % t.boxes[1], b / t.boxes[0] / t.boxes[1]};
        for (std::size_t a = 0; a < 3; a++) c.box[a] = box_of_part(t, c, a, at[a]);
        if (c.box[1].any() && c.box[2].any()) call_on_parts(rows, c, o); // which looks at the first axis
    }
}

void DirectPlan::compute_strip(const StripParts &rows, const Operands &o, char *pieces,
                               const Parallel &parallel) const {
    const Strip &s = rows.part[0];
    const Tasks t = tasks_of(s, o.post_ops || rounder_.any ? pieces_of(s) : 0, parallel.threads);
    const auto part_of_task = [&](std::int64_t task) { return part(s, t, task * t.boxes_of_task / t.boxes_of_part()); };
    if (!rounder_.any) {
        return parallel.for_each(t.count, [&](std::int64_t task) {
            const Call c = part_of_task(task);
            call_for_task(rows, t, task, c, o);
            if (o.post_ops) finish(part_of_y(s, c), o);
        });
    }
    parallel.for_each_by(std::min(parallel.threads, piece_count_), t.count,
                         [&](std::int64_t task, std::int64_t worker) {
                             const Call c = part_of_task(task);
                             const PartOfY of_y = part_of_y(s, c);
                             Operands piece = o;
                             piece.y = pieces + worker * piece_bytes_;
                             piece.y_strides = dense_strides_of(of_y);
                             piece.y_begin = of_y.offset(piece.y_strides);
                             call_for_task(rows, t, task, c, piece);
                             round(of_y, piece, o);
                             if (o.post_ops) finish(of_y, o);
                         });
}

// Returns the number of pieces that the strip's y is divided into, so that each stays in the second-level cache until it is finished.
std::int64_t DirectPlan::pieces_of(const Strip &s) const {
    const Call all = part(s, Tasks(), 0);
    return std::max<std::int64_t>(ceil_div(dense_bytes(part_of_y(s, all)), kPieceBytes), 1);
}

std::int64_t DirectPlan::dense_bytes(const PartOfY &part) const {
    return capped_product({part.images, dense_strides_of(part).n, size_of(variant_->dtype)});
}

// Plans memory for a piece of y for each thread that has a task, and finds the kernel that rounds it.
void DirectPlan::plan_pieces(int threads) {
    if (packed_.tiles() == 0) return; // y has no channels, so no run computes anything
    rounder_ = find_rounder(variant_->isa, CopyOrder::kPlanar, problem_.y_dtype);
    std::int64_t most = 0;
    std::int64_t tasks = 0;
    // The last images and groups may be fewer than the others. Their strips are divided otherwise, and not always into smaller parts.
    const std::int64_t last_images = (problem_.geometry.batch - 1) % images_ + 1,
                       last_groups = (packed_.group - 1) % groups_ + 1;
    for (std::int64_t i = 0; i < strips_; i++) {
        for (const std::int64_t images : {images_, last_images}) {
            for (const std::int64_t groups : {groups_, last_groups}) {
                const Strip s = strip(images, groups, strip_begin(i), strip_begin(i + 1));
                const Tasks t = tasks_of(s, pieces_of(s), workers_ > 1 ? 1 : threads);
                tasks = std::max(tasks, t.count);
                for (std::int64_t k = 0; k < t.parts(); k++)
                    most = std::max(most, dense_bytes(part_of_y(s, part(s, t, k))));
            }
        }
    }
    piece_bytes_ = round_up(most);
    piece_count_ = workers_ > 1 ? workers_ : static_cast<int>(std::min<std::int64_t>(threads, tasks));
}

// Returns the part in two tensors of these strides.
JointBox DirectPlan::joint_box(const PartOfY &part, const TensorStrides &first, const TensorStrides &second) const {
    JointBox box;
    box.add(part.images, first.n, second.n);
    box.add(part.groups, packed_.oc * first.c, packed_.oc * second.c);
    box.add(part.oc, first.c, second.c);
    for (std::size_t a = 0; a < 3; a++) box.add(part.extent[a], first.axes[a], second.axes[a]);
    return box;
}

// Rounds the part of y in `from` to where `to` has y.
void DirectPlan::round(const PartOfY &part, const Operands &from, const Operands &to) const {
    const JointBox joint = joint_box(part, from.y_strides, to.y_strides).joined();
    CopyBox box; // dense along the copy kernel's w
    for (std::size_t i = 0; i < joint.count; i++)
        box.axes[1 + i] = {joint.axes[i].extent, joint.axes[i].first, joint.axes[i].second};
    const halide_type_t type = type_of(problem_.y_dtype);
    run_copy(rounder_, box, {from.y, type_of(variant_->dtype)},
             {element_at(to.y, part.offset(to.y_strides), type.bytes()), type}, {}, Parallel());
}

// Applies post-ops to a part of y.
void DirectPlan::finish(const PartOfY &part, const Operands &o) const {
    const TensorStrides &y = o.y_strides, &r = o.residual ? o.residual_strides : o.y_strides;
    const std::int64_t size = size_of(o.post_ops->dtype);
    run_post_ops(*o.post_ops, joint_box(part, y, r), element_at(o.y, part.offset(y), size),
                 o.residual ? element_at(o.residual, part.offset(r), size) : nullptr);
}

void DirectPlan::call_on_parts(const StripParts &rows, const Call &c, const Operands &o) const {
    for (std::size_t k = 0; k < rows.count; k++) {
        const Strip &s = rows.part[k];
        Call part = c;
        Box &row = part.box[0];
        row.q_begin = std::max(row.q_begin, s.columns.begin);
        row.q_end = std::min(row.q_end, s.columns.end);
        if (row.q_begin < row.q_end) call_on_strip(s, part, o);
    }
}

void DirectPlan::call_on_strip(const Strip &s, const Call &c, const Operands &o) const {
    const Box &row = c.box[0];
    const std::int64_t rest = (row.q_end - row.q_begin) % variant_->tile_q;
    const Variant *const narrower = narrower_.holding(rest);
    if (!narrower) return call_kernel(*variant_, s, c, o);
    Call tiles = c, end = c;
    tiles.box[0].q_end = end.box[0].q_begin = row.q_end - rest;
    if (tiles.box[0].q_end > row.q_begin) call_kernel(*variant_, s, tiles, o);
    call_kernel(*narrower, s, end, o);
}

} // namespace convtranspose
