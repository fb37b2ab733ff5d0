#include "tools/tune/schedule_candidates.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace convtranspose {

namespace {

// The most multiply-adds of vectors that are unrolled. Beyond, the compiler takes seconds, and the loop leaves the instruction
// cache.
constexpr std::int64_t kMostUnrolled = 1400;
// The largest share of a row that its last tile may waste.
constexpr double kMostWaste = 0.2;

const char *halide_name(convt_dtype y) {
    switch (y) {
    case CONVT_F16: return "float16";
    case CONVT_BF16: return "bfloat16";
    case CONVT_F32: return "float32";
    case CONVT_F64: return "float64";
    case CONVT_U8:
    case CONVT_S8: return "uint8";
    case CONVT_S32: break;
    }
    return "int32";
}

// The text "STEP/OFFSET:COUNT:FIRST,..." of an axis, as generators/built_in.h reads it.
std::string text_of(const AxisPlan &axis) {
    std::string text = std::to_string(axis.step) + "/";
    for (std::size_t r = 0; r < static_cast<std::size_t>(axis.phases); r++) {
        const std::int32_t *const row = axis.table.data() + r * kTapColumns;
        text += (r ? "," : "") + std::to_string(row[0]) + ":" + std::to_string(row[1]) + ":" + std::to_string(row[2]);
    }
    return text;
}

// The number of taps that every phase has, or 0 if they differ.
std::int32_t count_of(const AxisPlan &axis) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(axis.phases); r++) {
        if (axis.table[r * kTapColumns + kTapCount] != axis.max_count) return 0;
    }
    return axis.max_count;
}

// The share of the work that is done for positions past the last.
double waste(std::int64_t extent, std::int64_t tile) {
    const std::int64_t whole = (extent + tile - 1) / tile * tile;
    return 1 - static_cast<double>(extent) / static_cast<double>(whole);
}

std::uint32_t hash_of(const std::string &text) { // FNV-1a
    std::uint32_t hash = 2166136261U;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    return hash;
}

// The choices that tell candidates apart, beside the register tile.
struct Choice {
    Family family;
    int stride_w = 0, stride_h = 0;
    int oc = 1, q = 1, qh = 1; // tile; oc of channels, q of others in vectors
    int unrolled_axes = 0, unrolled_ic = 1;
    bool tap_offset_order = false, x_stays = false;
    bool knows_d = true; // the taps of d are built in too
};

class Space {
  public:
    Space(const SpatialProblem &problem, Isa isa) : p_(problem), isa_(isa) {
        const bool floats = !problem.geometry.quantized();
        arithmetic_ = floats ? Arithmetic::kFloat : Arithmetic::kInt8;
        lanes_ =
            facts_of(isa).vector_bytes / (floats ? static_cast<int>(convt_dtype_size(sum_dtype(problem.y_dtype))) : 4);
        accumulators_ = facts_of(isa).vector_registers - 4;
        planar_ = !problem.geometry.y_channels_last();
        for (std::size_t a = 0; a < 3; a++) {
            const AxisPlan &axis = problem.plan[a];
            tables_[a] = axis.phases == axis.geometry.stride && axis.phases <= kMostPhases;
            counts_[a] = count_of(axis);
        }
    }

    std::vector<ScheduleCandidate> candidates() {
        if (p_.ic() == 1 && p_.geometry.group > 1) {
            tap_offset_order(Family::kDepthwise);
            depthwise_channels();
        } else {
            tap_offset_order(Family::kSmallOc);
            ow_vectorized();
            oc_vectorized();
        }
        return std::move(list_);
    }

  private:
    static constexpr std::int64_t kMostPhases = 16; // whose taps are worth a table

    int stride(std::size_t a) const { return static_cast<int>(p_.plan[a].geometry.stride); }

    bool fits(std::int64_t extent, std::int64_t tile) const { return tile == 1 || waste(extent, tile) <= kMostWaste; }

    // True if so many vectors fit; one is the least that there is.
    bool vectors_fit(std::int64_t extent, int vectors) const {
        return waste(extent, std::int64_t{vectors} * lanes_) <= std::max(kMostWaste, waste(extent, lanes_));
    }

    // All phases of w, and of h if they fit, are accumulators; all taps are unrolled. With phases of h one after the other, a tile
    // may have several rows.
    void tap_offset_order(Family family) {
        if (!planar_ || !tables_[0] || !tables_[1]) return;
        for (const int qh : {0, 1, 2, 4}) { // 0: all phases of h at once
            if (qh > 0 && p_.plan[1].geometry.out % stride(1) != 0) continue;
            if (qh == 1 && stride(1) == 1) continue; // the same as 0
            if (qh > 1 && !fits(p_.plan[1].q_extent(), qh)) continue;
            for (const int oc : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
                if (family == Family::kDepthwise && oc > 1) continue;
                if (!fits(p_.oc(), oc)) continue;
                for (const int q : {1, 2, 3, 4, 5, 6, 8}) unrolled_phases(family, oc, q, qh);
            }
        }
    }

    void unrolled_phases(Family family, int oc, int q, int qh) {
        const std::int64_t taps = static_cast<std::int64_t>(p_.plan[0].elements.size() * p_.plan[1].elements.size()),
                           steps = std::int64_t{oc} * q * std::max(qh, 1) * taps,
                           sums = std::int64_t{oc} * q * stride(0) * (qh > 0 ? qh : stride(1));
        // A few sums that spill cost less than taps that are loops.
        if (sums > accumulators_ + 4 && !(family == Family::kDepthwise && q == 1 && qh <= 1)) return;
        if (steps > kMostUnrolled || !vectors_fit(p_.plan[0].q_extent(), q)) return;
        Choice c{family};
        c.stride_w = stride(0);
        c.stride_h = qh == 0 ? stride(1) : 0;
        c.oc = oc;
        c.q = q;
        c.qh = std::max(qh, 1);
        c.unrolled_axes = 2;
        c.tap_offset_order = true;
        // With a loop over the taps of d, of which there may be one, the compiler loads weights where they are used. Without, it
        // may move more of them out of the loops than there are registers.
        c.knows_d = false;
        add(c);
        c.knows_d = true;
        add(c);
        // With three axes the taps of d are unrolled too, and if there are few taps, input channels.
        if (stride(2) > 1 && counts_[2]) {
            c.unrolled_axes = 3;
            add(c);
            c.unrolled_axes = 2;
        }
        if (steps <= 64 && p_.ic() % 2 == 0) {
            c.unrolled_ic = 2;
            add(c);
        }
    }

    // Tiles as in the table of kernels, and those between, with the taps of w as constants.
    void ow_vectorized() {
        if (stride(0) > 8) return;
        for (const int oc : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24}) {
            if (!fits(p_.oc(), oc)) continue;
            for (const int q : {1, 2, 3, 4, 6, 8}) {
                if (!vectors_fit(p_.plan[0].q_extent(), q)) continue;
                for (const int qh : {1, 2, 3, 4}) {
                    const int sums = oc * q * qh;
                    if (sums > accumulators_ || sums < accumulators_ / 3 || !fits(p_.plan[1].q_extent(), qh)) continue;
                    Choice c{Family::kOwVectorized};
                    c.stride_w = stride(0);
                    c.oc = oc;
                    c.q = q;
                    c.qh = qh;
                    add_loops(c);
                }
            }
        }
    }

    void oc_vectorized() {
        for (const int oc : {1, 2, 3, 4, 8}) {
            if (!vectors_fit(p_.oc(), oc)) continue;
            for (const int q : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 28}) {
                for (const int qh : {1, 2, 3, 4, 6}) {
                    const int sums = oc * q * qh;
                    if (sums > accumulators_ || sums < accumulators_ / 3 || !fits(p_.plan[1].q_extent(), qh)) continue;
                    Choice c{Family::kOcVectorized};
                    c.oc = oc;
                    c.q = q;
                    c.qh = qh;
                    if (q <= p_.plan[0].least_q_extent() && waste(p_.plan[0].q_extent(), q) <= kMostWaste) add_loops(c);
                    if (planar_ && stride(0) <= 8 && fits(p_.plan[0].q_extent(), q)) {
                        c.stride_w = stride(0);
                        add_loops(c);
                    }
                }
            }
        }
    }

    void depthwise_channels() {
        if (planar_) return;
        for (const int q : {1, 2, 4, 6, 8, 12, 16}) {
            if (q > accumulators_ || !fits(p_.plan[0].q_extent(), q)) continue;
            Choice c{Family::kDepthwise};
            c.q = q;
            add(c);
            for (int axes = 1; axes <= 2 && counts_[static_cast<std::size_t>(axes) - 1]; axes++) {
                c.unrolled_axes = axes;
                add(c);
            }
        }
    }

    // Adds a choice with taps as loops, with taps unrolled as far as every phase has as many, with input channels unrolled, and
    // with x that stays.
    void add_loops(Choice c) {
        add(c);
        if (p_.ic() % 2 == 0) {
            c.unrolled_ic = 2;
            add(c);
            c.unrolled_ic = 1;
        }
        const int sums = c.oc * c.q * c.qh;
        const bool knows_w = counts_[0] || (c.stride_w && tables_[0]);
        if (knows_w && p_.plan[0].max_count > 1 && sums * p_.plan[0].max_count <= 256) {
            c.unrolled_axes = 1;
            add(c);
            if (counts_[1] && sums * p_.plan[0].max_count * counts_[1] <= 256) {
                c.unrolled_axes = 2;
                add(c);
            }
            c.unrolled_axes = 0;
        }
        if (c.family == Family::kOcVectorized && p_.oc() > std::int64_t{c.oc} * lanes_) {
            c.x_stays = true;
            add(c);
        }
    }

    void add(const Choice &c) {
        ScheduleCandidate made;
        made.generator = family_name(c.family);
        Variant &v = made.variant;
        v.isa = isa_;
        v.family = c.family;
        v.output_order = planar_ ? OutputOrder::kPlanar : OutputOrder::kChannels;
        v.arithmetic = arithmetic_;
        v.dtype = p_.y_dtype;
        v.stride_w = c.stride_w;
        v.stride_h = c.stride_h;
        const bool oc_in_vectors = c.family == Family::kOcVectorized;
        v.tile_oc = c.oc * (oc_in_vectors ? lanes_ : 1);
        v.tile_q = c.q * (has_vectors_along_w(v) ? lanes_ : 1);
        v.tile_qh = c.qh;
        v.lanes = lanes_;

        build_in(c, &made);
        list_parameters(c, &made);
        std::string text;
        for (const std::string &one : made.parameters) text += one + " ";
        if (!seen_.insert(text).second) return;
        char name[160];
        std::snprintf(name, sizeof name, "%s_%s_%s_s%dx%d_%dx%dx%d", made.generator.c_str(), convt_dtype_name(v.dtype),
                      row_of(kOutputOrders, v.output_order).name, v.stride_w, v.stride_h, c.oc, c.q, c.qh);
        made.name = name;
        for (const bool x_in_place : {false, true}) {
            ScheduleCandidate one = made;
            one.built_in.x_in_place = x_in_place;
            std::snprintf(name, sizeof name, "_%08x%s", hash_of(text), x_in_place ? "_in_place" : "");
            one.name += name;
            Variant row;
            BuiltIn layer;
            one.complete(&row, &layer);
            const Candidate found = candidate(row, p_, profile_of_cpu(isa_of_floats(isa_)));
            if (found.unsupported.text) return;
            // x in place is a candidate of its own only if that makes a difference.
            if (x_in_place && (found.reads_x == ReadsX::kCopy || found.reads_x == ReadsX::kCopyOfRowEnds)) return;
            // Single rows of phases, one after the other, are seldom faster where all phases of h fit into registers.
            const bool one_by_one =
                c.tap_offset_order && c.stride_h == 0 && c.qh == 1 && facts_of(isa_).vector_registers > 16;
            one.cost = found.cost * (one_by_one ? 1.2 : 1);
            const bool reads_in_place = found.reads_x == ReadsX::kInPlace;
            list_.push_back(std::move(one));
            if (reads_in_place) return; // anyway
        }
    }

    // Writes what the kernel is built for: channels, and taps of axes.
    void build_in(const Choice &c, ScheduleCandidate *made) const {
        BuiltIn &b = made->built_in;
        b.ic = static_cast<std::int32_t>(p_.ic());
        b.oc = static_cast<std::int32_t>(p_.oc());
        const int strides[3] = {c.stride_w, c.stride_h, 0};
        for (std::size_t a = 0; a < 3; a++) {
            const AxisPlan &axis = p_.plan[a];
            BuiltInAxis &to = b.axes[a];
            const bool knows = a < 2 || c.knows_d;
            to.count = knows ? counts_[a] : 0;
            // If phases are a dimension of y, each call must be for all of them.
            const bool all_at_once = strides[a] > 0 || axis.geometry.out % axis.geometry.stride == 0;
            const bool table = knows && tables_[a] && all_at_once &&
                               (strides[a] > 0 || stride(a) == 1 || (c.tap_offset_order && a == 1));
            if (table) {
                made->tables[a].assign(axis.table.begin(), axis.table.begin() + kTapColumns * axis.phases);
                to.phases = static_cast<std::int32_t>(axis.phases);
                to.step = static_cast<std::int32_t>(axis.step);
            }
            if (strides[a] > 0) to.out = static_cast<std::int32_t>(axis.geometry.out);
        }
    }

    // Lists the generator's parameters. The type of y is its own, and that of x is the one that the families want.
    void list_parameters(const Choice &c, ScheduleCandidate *made) const {
        const Variant &v = made->variant;
        const BuiltIn &b = made->built_in;
        std::vector<std::string> &list = made->parameters;
        const auto parameter = [&](const char *name, const std::string &value) {
            list.push_back(std::string(name) + "=" + value);
        };
        const auto number = [&](const char *name, std::int64_t value, std::int64_t otherwise) {
            if (value != otherwise) parameter(name, std::to_string(value));
        };
        parameter("output_order", row_of(kOutputOrders, v.output_order).name);
        parameter("arithmetic", row_of(kArithmetics, v.arithmetic).name);
        parameter("x_type", halide_name(sum_dtype(v.dtype)));
        parameter("y_type", halide_name(v.dtype));
        number("stride_w", v.stride_w, 0);
        number("stride_h", v.stride_h, 0);
        number("tile_oc", v.tile_oc, 0);
        number("tile_q", v.tile_q, 0);
        number("tile_qh", v.tile_qh, 0);
        number("ic", b.ic, 0);
        number("oc", b.oc, 0);
        const char *const outs[2] = {"out_w", "out_h"}, *const counts[3] = {"count_w", "count_h", "count_d"},
                          *const tables[3] = {"table_w", "table_h", "table_d"};
        for (std::size_t a = 0; a < 3; a++) {
            if (a < 2) number(outs[a], b.axes[a].out, 0);
            number(counts[a], b.axes[a].count, 0);
            if (!made->tables[a].empty()) parameter(tables[a], text_of(p_.plan[a]));
        }
        number("unrolled_axes", c.unrolled_axes, 0);
        number("unrolled_ic", c.unrolled_ic, 1);
        if (c.tap_offset_order) parameter("tap_offset_order", "true");
        if (c.x_stays) parameter("x_stays", "true");
    }

    const SpatialProblem &p_;
    Isa isa_;
    Arithmetic arithmetic_;
    int lanes_, accumulators_;
    bool planar_;
    std::array<bool, 3> tables_{};
    std::array<std::int32_t, 3> counts_{};
    std::set<std::string> seen_;
    std::vector<ScheduleCandidate> list_;
};

} // namespace

void ScheduleCandidate::complete(Variant *row, BuiltIn *layer) const {
    *layer = built_in;
    for (std::size_t a = 0; a < 3; a++) layer->axes[a].table = tables[a].empty() ? nullptr : tables[a].data();
    *row = variant;
    row->name = name.c_str();
    row->built_in = layer;
}

std::vector<ScheduleCandidate> schedule_candidates(const SpatialProblem &problem, Isa isa, std::size_t most) {
    if (isa == Isa::kAmx) isa = Isa::kAvx512Vnni; // matrices have no shapes to search
    const bool int8 = problem.geometry.quantized() && problem.y_dtype != CONVT_S32 &&
                      (isa == Isa::kAvx512Vnni || isa == Isa::kAvxVnni || isa == Isa::kNeonDotprod);
    if (problem.geometry.quantized() && !int8) return {};
    std::vector<ScheduleCandidate> list = Space(problem, isa).candidates();
    std::stable_sort(list.begin(), list.end(),
                     [](const ScheduleCandidate &a, const ScheduleCandidate &b) { return a.cost < b.cost; });
    list.resize(std::min(list.size(), most), ScheduleCandidate());
    return list;
}

std::vector<std::string> auto_parameters(const SpatialProblem &problem) {
    const Geometry &g = problem.geometry;
    if (g.quantized()) return {};
    std::vector<std::string> list = {std::string("y_type=") + halide_name(g.y_dtype)};
    const auto add = [&](const std::string &name, std::int64_t value) {
        list.push_back(name + "=" + std::to_string(value));
    };
    add("ic", problem.ic());
    add("oc", problem.oc());
    add("group", g.group);
    add("batch", g.batch);
    const char *const axes[] = {"w", "h", "d"};
    for (std::size_t a = 0; a < 3; a++) {
        const AxisPlan &axis = problem.plan[a];
        if (axis.geometry.out % axis.phases != 0) return {};
        add(std::string("x_") + axes[a], axis.geometry.in);
        add(std::string("out_") + axes[a], axis.geometry.out);
        list.push_back(std::string("table_") + axes[a] + "=" + text_of(axis));
    }
    return list;
}

} // namespace convtranspose
