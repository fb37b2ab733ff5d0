#include "direct/direct_plan.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/allocator.h"
#include "base/division.h"
#include "kernels/kernel_tables.h"
#include "selection/input_access.h"

namespace convtranspose {

DirectPlan::OperandTypes DirectPlan::types_of(const Variant &v) {
    const halide_type_t s32(halide_type_int, 32), s16(halide_type_int, 16);
    switch (v.arithmetic) {
    case Arithmetic::kFloat:
    case Arithmetic::kHalf: break;
    case Arithmetic::kBf16: return {type_of(CONVT_BF16), type_of(CONVT_BF16), type_of(CONVT_F32)};
    case Arithmetic::kInt8: return {type_of(CONVT_S8), type_of(kByteX), s32};
    case Arithmetic::kInt16: return {s16, s16, s32};
    }
    const halide_type_t sum = type_of(sum_dtype(v));
    return {sum, sum, sum};
}

TensorStrides tensor_strides(const Geometry &geometry, const Strides &strides) {
    TensorStrides s;
    const DimensionOrder at = dimension_order(geometry.layout, strides.size());
    s.n = strides.front();
    s.c = strides[at.channel];
    for (std::size_t a = 0; a < std::min(geometry.axes.size(), s.axes.size()); a++)
        s.axes[a] = strides[at.last_axis - a];
    return s;
}

namespace {

// With up to this many times the wanted number of tasks, it matters if one thread has one task more than another.
constexpr std::int64_t kMostUneven = 4;

} // namespace

DirectPlan::DirectPlan(const SpatialProblem &problem, const Candidate &choice, const CostProfile &profile, int threads,
                       const PackedLayout *packed)
    : variant_(choice.variant), problem_(problem), copies_x_(choice.copies_x),
      packs_edge_strips_(choice.packs_edge_strips), in_place_(choice.in_place) {
    const Variant &v = *variant_;
    const Geometry &g = problem.geometry;
    whole_ = {v.stride_w != 0, v.stride_h != 0, false};
    packed_ = packed ? *packed : packing_of(v);
    for (std::size_t a = 0; a < 3; a++) {
        axes_[a] = whole_[a] ? plan_axis(problem.axes[a], problem.weight_stride[a], true) : problem.plan[a];
        if (a == 0 && pairs_taps(v)) pair_taps(&axes_[a]);
        packed_.taps[a] = static_cast<std::int64_t>(axes_[a].elements.size()) / (axes_[a].paired ? 2 : 1);
    }
    packed_.group = g.group;
    packed_.ic = problem.ic();
    packed_.oc = problem.oc();
    if (choice.narrower_ends) narrower_ = narrower_tiles(v);
    copy_order_ = copy_order(v, g.layout);
    const CopyOrder order = pairs_taps(v) ? CopyOrder::kPlanar : copy_order_; // copy_parts() says why
    const convt_dtype x_bits = is_float(v.arithmetic) ? problem.x_dtype : CONVT_U8;
    copy_ = transposes() ? find_copy(v.isa, CopyOrder::kTransposed, v.arithmetic, x_bits, 1)
                         : find_copy(v.isa, order, v.arithmetic, x_bits, static_cast<int>(x_block()));
    plan_strips(profile, threads);
    if (is_float(v.arithmetic)) return;
    const EpilogueLayout epilogue = epilogue_of({packed_, axes_});
    const std::int64_t biases =
        capped_product({epilogue.classes[0], epilogue.classes[1], epilogue.classes[2], epilogue.biases});
    if (biases > kMostElements) overflow_ = too_large("its biases are # elements; a kernel counts up to #", biases);
}

std::uint64_t DirectPlan::weight_bytes() const {
    std::int64_t elements = packed_.weights();
    if (multiplies_by_element(variant_->isa))
        elements += packed_.block * std::max<std::int64_t>(packed_.oc_tile, 1); // kernels may load a channel more
    return round_up(elements * operand_size(*variant_));
}

std::uint64_t DirectPlan::packed_bytes() const {
    std::int64_t bytes = packed_.biases() * types_of(*variant_).bias.bytes();
    if (packed_.arithmetic == Arithmetic::kInt8) bytes = packed_.biases() * packed_.taps_volume() * 4;
    if (packed_.arithmetic == Arithmetic::kInt16) bytes = 0;
    return weight_bytes() + round_up(bytes);
}

std::uint64_t DirectPlan::epilogue_bytes() const {
    return is_float(packed_.arithmetic) ? 0 : round_up(epilogue_of({packed_, axes_}).bytes());
}

bool DirectPlan::pack(const WeightsView &w, const void *bias, void *packed) const {
    return pack_weights({packed_, axes_}, problem_.x_dtype, w, bias, packed,
                        static_cast<char *>(packed) + weight_bytes());
}

void DirectPlan::pack(const WeightsView &w, const QuantizationValues &q, void *packed) const {
    void *const sums = static_cast<char *>(packed) + weight_bytes();
    pack_quantized({packed_, axes_}, problem_.geometry, q, w, packed, static_cast<std::int32_t *>(sums));
}

void DirectPlan::unpack(const WeightsView &w, const QuantizationValues *q, const void *packed, void *w_out) const {
    unpack_weights({packed_, axes_}, problem_.x_dtype, q, packed, w, w_out);
}

void DirectPlan::prepare(const QuantizationValues &q, const void *packed, const void *bias, void *epilogue) const {
    const void *const sums = static_cast<const char *>(packed) + weight_bytes();
    make_epilogue({packed_, axes_}, problem_.geometry, q, static_cast<const std::int32_t *>(sums), bias, epilogue);
}

bool DirectPlan::transposes() const {
    return copy_order_ == CopyOrder::kToChannels && variant_->arithmetic == Arithmetic::kBf16;
}

std::int64_t DirectPlan::x_block() const { return block_of(*variant_); }

std::int64_t DirectPlan::x_blocks() const { return packed_.blocks() * packed_.block / x_block(); }

std::int64_t DirectPlan::copied_channels() const { return packed_.groups() * packed_.blocks() * packed_.block; }

bool DirectPlan::copies_channels_inside() const {
    return copy_order_ == CopyOrder::kChannels || copy_order_ == CopyOrder::kToChannels;
}

// Kernels multiply positions by strides in 32 bits, also positions before x from which a call counts (kernel_call.cpp).
UnsupportedReason DirectPlan::overflow_of_strides(const TensorStrides &x) const {
    if (copies_x_ && !packs_edge_strips_ && !in_place_.any()) return {};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisPlan &axis = axes_[a];
        const std::int64_t before =
            std::clamp<std::int64_t>(tile_along(*variant_, a) - 1 - axis.low, 0, axis.q_extent() - 1);
        if (axis.geometry.in < 2 || before * x.axes[a] <= kMostElements) continue;
        return too_large("taps reach # elements before x, whose strides are large; a kernel counts up to #",
                         before * x.axes[a]);
    }
    return {};
}

void DirectPlan::run(const Operands &o, const Parallel &parallel) const {
    if (axes_[strip_axis_].q_extent() == 0) return;
    const auto count = static_cast<std::size_t>(strip_count());
    if (workers_ <= 1) {
        for (std::size_t i = 0; i < count; i++) run_strip(i, o, parallel);
        return;
    }
    parallel.for_each_by(workers_, count, [&](std::size_t i, std::size_t worker) {
        Operands own = o;
        own.workspace = static_cast<char *>(o.workspace) + worker * copy_bytes_;
        run_strip(i, own, Parallel());
    });
}

// Returns whether no tap leaves x in the strip. Taps that the kernel skips do not count; a kernel that reads x for whole tiles must
// find all of them inside.
bool DirectPlan::is_inside(const Strip &s) const {
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) continue;
        std::int64_t end = s.x_min[a] + s.x_extent[a];
        if (a == 0 && strip_axis_ == 0 && whole_[0])
            end += ceil_div(s.q_end - s.q_begin, strip_tile_) * strip_tile_ - (s.q_end - s.q_begin);
        if (s.x_min[a] < 0 || end > axes_[a].geometry.in) return false;
    }
    return true;
}

void DirectPlan::run_strip(std::size_t i, const Operands &o, const Parallel &parallel) const {
    const std::int64_t first = static_cast<std::int64_t>(i) / strips_ * images_,
                       at = static_cast<std::int64_t>(i) % strips_;
    Strip s = strip(std::min(images_, problem_.geometry.batch - first), strip_begin(at), strip_begin(at + 1));
    s.first_image = first;
    StripParts parts = parts_of_rows(s);
    char *copy = static_cast<char *>(o.workspace);
    for (std::size_t k = 0; k < parts.count; k++) {
        Strip &part = parts.part[k];
        if (is_copied(part)) {
            locate_copy(&part, copy);
            copy_strip(part, o, parallel);
            copy += copied_elements(part) * operand_size(*variant_);
        } else {
            locate_in_place(&part, o);
        }
    }
    compute_strip(parts, o, parallel);
}

bool DirectPlan::is_copied(const Strip &s) const {
    if (in_place_.any()) return s.columns.begin != in_place_.begin;
    return copies_x_ && !(packs_edge_strips_ && is_inside(s));
}

void DirectPlan::locate_in_place(Strip *s, const Operands &o) const {
    s->strides = o.x_strides;
    s->group_stride = packed_.ic * s->strides.c;
    s->strides.c *= x_block();
    const std::int64_t x_size = size_of(problem_.x_dtype);
    s->x = static_cast<const char *>(o.x) + s->first_image * o.x_strides.n * x_size;
    if (variant_->family == Family::kReference) return;
    for (std::size_t a = 0; a < 3; a++) {
        if (skips_outside(*variant_, a)) { // such kernels do not read around x
            const std::int64_t in = axes_[a].geometry.in,
                               end = std::clamp<std::int64_t>(s->x_min[a] + s->x_extent[a], 0, in);
            s->x_min[a] = std::clamp<std::int64_t>(s->x_min[a], 0, end);
            s->x_extent[a] = end - s->x_min[a];
        }
        s->x += s->x_min[a] * o.x_strides.axes[a] * x_size;
    }
}

DirectPlan::StripParts DirectPlan::parts_of_rows(const Strip &s) const {
    StripParts parts;
    const AxisPlan &w = axes_[0];
    const auto add = [&](std::int64_t begin, std::int64_t end) {
        if (begin >= end) return;
        Strip &part = parts.part[parts.count++];
        part = s;
        part.columns = {begin, end};
        if (!in_place_.any()) return;
        part.x_min[0] = begin + w.low;
        part.x_extent[0] = end + w.high - 1 - part.x_min[0];
    };
    add(0, in_place_.begin);
    add(in_place_.begin, in_place_.end);
    add(in_place_.end, w.q_extent());
    return parts;
}

void DirectPlan::compute_strip(const StripParts &rows, const Operands &o, const Parallel &parallel) const {
    const Strip &s = rows.part[0];
    const std::int64_t q_begin = s.q_begin, q_end = s.q_end;
    const Variant &v = *variant_;

    // The strip is divided into about four tasks a thread: by groups, then by tiles of output channels, then by positions along the
    // strip axis; by positions first if all groups of a position are side by side in y.
    const std::int64_t wanted = std::max<std::int64_t>(
        parallel.threads > 1 ? 4 * static_cast<std::int64_t>(parallel.threads) : 1, pieces(s, o));
    const std::int64_t group_tiles =
        overlaps_groups(v) ? packed_.group / packed_.group_tile : ceil_div(packed_.group, packed_.group_tile);
    const std::int64_t tile = strip_tile_, most_q_parts = std::max<std::int64_t>((q_end - q_begin) / (2 * tile), 1);
    const bool positions_first = v.family == Family::kDepthwise && v.output_order == OutputOrder::kChannels;
    const std::int64_t group_parts = std::min(group_tiles, positions_first ? ceil_div(wanted, most_q_parts) : wanted);
    // The reference takes the channels of one packed tile at a time, however many the tile holds.
    const bool each_tile = v.family == Family::kReference;
    const std::int64_t few_tile_parts = std::min(packed_.tiles(), ceil_div(wanted, group_parts));
    const bool are_uneven = parallel.threads > 1 && packed_.tiles() % few_tile_parts != 0;
    const std::int64_t tile_parts =
        each_tile || (are_uneven && packed_.tiles() <= kMostUneven * wanted) ? packed_.tiles() : few_tile_parts;
    const std::int64_t q_parts = std::min(most_q_parts, ceil_div(wanted, group_parts * tile_parts));
    // If threads cannot take equally many parts, the phases of h are halved too; each half has weights of its own.
    const std::int64_t parts = group_parts * tile_parts * q_parts;
    const bool knows_phases = whole_[1] || (v.built_in && v.built_in->axes[1].table);
    const bool in_halves =
        !o.post_ops && !knows_phases && !each_tile && parts % parallel.threads != 0 && parts <= kMostUneven * wanted;

    const auto positions_of_part = [&](std::int64_t part) {
        // Parts end on whole tiles, so that phases with one position less still fill a tile.
        const std::int64_t tiles = (q_end - q_begin) / tile;
        const std::int64_t from = q_begin + tiles * part / q_parts * tile;
        return std::pair(from, part + 1 == q_parts ? q_end : q_begin + tiles * (part + 1) / q_parts * tile);
    };
    // Tasks are in an order by which each thread takes positions whose x it has copied itself; or channels, if by positions one thread
    // would have a tile more.
    const std::int64_t channel_parts = group_parts * tile_parts;
    const bool by_positions = positions_first || ceil_div(q_end - q_begin, tile) % parallel.threads == 0;
    // Each axis has this many boxes in each part; some of them may be empty.
    std::array<std::size_t, 3> boxes;
    for (std::size_t a = 0; a < 3; a++) boxes[a] = whole_[a] ? 1 : axes_[a].runs.size();
    const bool halves = in_halves && boxes[1] == 1 && axes_[1].runs.front().count > 1;
    if (halves) boxes[1] = 2;
    const auto box_of_part = [&](std::size_t a, std::size_t i, std::int64_t from, std::int64_t to) {
        const bool strip_axis = static_cast<int>(a) == strip_axis_;
        const std::int64_t begin = strip_axis ? from : 0, end = strip_axis ? to : axes_[a].q_extent();
        if (whole_[a]) return Box{0, axes_[a].geometry.stride, 0, begin, end};
        if (a != 1 || !halves) return box_of(axes_[a].runs[i], begin, end);
        PhaseRun half = axes_[a].runs.front();
        const std::int64_t first = half.count / 2;
        half.count = i ? half.count - first : first;
        half.first += i ? first : 0;
        half.row += i && half.has_taps ? first : 0;
        return box_of(half, begin, end);
    };
    const std::size_t per_part = boxes[0] * boxes[1] * boxes[2];
    // Post-ops need all boxes of a part in one task, since only together they leave no gaps in y.
    const std::size_t per_task = o.post_ops ? per_part : 1;
    const auto tasks = static_cast<std::size_t>(q_parts * channel_parts) * (per_part / per_task);
    parallel.for_each(tasks, [&](std::size_t task) {
        const std::size_t first = task * per_task;
        const auto rest = static_cast<std::int64_t>(first / per_part);
        const std::int64_t channels_part = by_positions ? rest % channel_parts : rest / q_parts,
                           part = by_positions ? rest / channel_parts : rest % q_parts;
        const std::int64_t tp = channels_part % tile_parts, gp = channels_part / tile_parts;
        Call c;
        std::tie(c.q_begin, c.q_end) = positions_of_part(part);
        c.group_begin = group_tiles * gp / group_parts * packed_.group_tile;
        c.group_end = gp + 1 == group_parts ? packed_.group : group_tiles * (gp + 1) / group_parts * packed_.group_tile;
        c.oc_tile_begin = packed_.tiles() * tp / tile_parts;
        c.oc_tile_end = packed_.tiles() * (tp + 1) / tile_parts;
        for (std::size_t b = first % per_part; b < first % per_part + per_task; b++) {
            const std::size_t at[3] = {b % boxes[0], b / boxes[0] % boxes[1], b / boxes[0] / boxes[1]};
            for (std::size_t a = 0; a < 3; a++) c.box[a] = box_of_part(a, at[a], c.q_begin, c.q_end);
            if (c.box[1].any() && c.box[2].any()) call(rows, c, o); // which looks at the first axis
        }
        if (o.post_ops) finish(s, c, o);
    });
}

// Returns the number of pieces that the strip's y is divided into, so that each stays in the second-level cache until post-ops read it.
std::int64_t DirectPlan::pieces(const Strip &s, const Operands &o) const {
    if (!o.post_ops) return 1;
    std::int64_t elements = s.images * problem_.geometry.out_channels;
    for (int a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        elements *= a == strip_axis_ ? std::min((s.q_end - s.q_begin) * axis.stride, axis.out) : axis.out;
    }
    return ceil_div(elements * size_of(o.post_ops->dtype), kPieceBytes);
}

// Applies post-ops to the y of a task: its channels, at its positions along the strip axis.
void DirectPlan::finish(const Strip &s, const Call &c, const Operands &o) const {
    const std::int64_t tile = std::max<std::int64_t>(packed_.oc_tile, 1);
    const std::int64_t oc_begin = c.oc_tile_begin * tile, oc_end = std::min(c.oc_tile_end * tile, packed_.oc);
    const std::int64_t channel = c.group_begin * packed_.oc + oc_begin;
    const TensorStrides &y = o.y_strides, &r = o.residual ? o.residual_strides : o.y_strides;
    std::int64_t y_offset = s.first_image * y.n + channel * y.c, r_offset = s.first_image * r.n + channel * r.c;
    PostOpsBox box;
    box.add(s.images, y.n, r.n);
    box.add(c.group_end - c.group_begin, packed_.oc * y.c, packed_.oc * r.c);
    box.add(oc_end - oc_begin, y.c, r.c);
    for (int a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        const std::int64_t begin = a == strip_axis_ ? c.q_begin * axis.stride : 0,
                           end = a == strip_axis_ ? std::min(c.q_end * axis.stride, axis.out) : axis.out;
        box.add(end - begin, y.axes[a], r.axes[a]);
        y_offset += begin * y.axes[a];
        r_offset += begin * r.axes[a];
    }
    const std::int64_t size = size_of(o.post_ops->dtype);
    run_post_ops(*o.post_ops, box, static_cast<char *>(o.y) + y_offset * size,
                 o.residual ? static_cast<const char *>(o.residual) + r_offset * size : nullptr);
}

void DirectPlan::call(const StripParts &rows, const Call &c, const Operands &o) const {
    for (std::size_t k = 0; k < rows.count; k++) {
        const Strip &s = rows.part[k];
        Call part = c;
        Box &row = part.box[0];
        row.q_begin = std::max(row.q_begin, s.columns.begin);
        row.q_end = std::min(row.q_end, s.columns.end);
        if (row.q_begin < row.q_end) call(s, part, o);
    }
}

void DirectPlan::call(const Strip &s, const Call &c, const Operands &o) const {
    const Box &row = c.box[0];
    const std::int64_t rest = (row.q_end - row.q_begin) % variant_->tile_q;
    const Variant *const narrower = narrower_.holding(rest);
    if (!narrower) return call(*variant_, s, c, o);
    Call tiles = c, end = c;
    tiles.box[0].q_end = end.box[0].q_begin = row.q_end - rest;
    if (tiles.box[0].q_end > row.q_begin) call(*variant_, s, tiles, o);
    call(*narrower, s, end, o);
}

} // namespace convtranspose
