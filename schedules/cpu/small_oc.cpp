// The family `small_oc`: schedule.h says which layers it is for, and what its tile holds.
#include "cpu/far_rows.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace {

// Neighbours in w are two input channels of one phase. The weights of all phases of the tile are loaded for a pair, or, if
// registers are too few for that, those of one row of phases.
void schedule_by_element(const ConvTranspose &c, const Tile &tile, const Update &k, Stage update,
                         const std::vector<Var> &inner, const std::vector<Var> &outer) {
    const int phases_w = c.stride[0], phases_h = c.stride[1];
    const bool by_rows = inner.size() == 4 && phases_w * phases_h * (tile.q / tile.lanes + 1) > 28;
    const auto held = static_cast<std::ptrdiff_t>(by_rows ? 2 : inner.size()); // of the loops, innermost first
    const RVar of_pair("of_pair");
    const Update pairs = in_pairs(k, update, of_pair);
    std::vector<VarOrRVar> loops(inner.begin(), inner.end());
    loops.insert(loops.begin() + held, of_pair);
    update.reorder(inner_to_outer(pairs, loops, outer));
    Func w = k.w, sum = c.sum;
    if (by_rows) {
        w.compute_at(sum, inner[2]);
    } else {
        w.compute_at(sum, pairs.ic);
    }
    w.bound_extent(c.oi, tile.oc).bound_extent(k.op_ic, 2);
    if (c.block > 1) {
        w.vectorize(k.op_ib);
    }
    w.vectorize(k.op_ic);
    for (const Var &v : std::vector<Var>(inner.begin() + 1, inner.begin() + held)) {
        if (v.name() == c.axes[0].r.name()) {
            w.bound_extent(v, phases_w);
        } else if (v.name() == c.axes[1].r.name()) {
            w.bound_extent(v, phases_h);
        }
        w.unroll(v);
    }
}

// Taps that all phases of one axis share feed the phases of that axis at once. If only those shared on both axes did, and each
// other tap one phase, few accumulators would wait for the latency of their multiply-adds.
// Measurements: docs/measurements/2026-11-26-schedules.md.
void schedule_small_oc(const ConvTranspose &c, const Tile &tile, OutputOrder) {
    if (tile.loops.tap_offset_order) {
        schedule_unrolled_phases(c, tile);
        return;
    }
    const AxisVars &w = c.axes[0], &h = c.axes[1], &d = c.axes[2];
    Func y = c.y, sum = c.sum;
    Var oo("oo"), oi("oi"), qo("qo"), qi("qi"), rw("rw"), qh("qh"), rh("rh");
    const int stride_w = c.stride[0], stride_h = c.stride[1];

    y.split(c.oc, oo, oi, tile.oc, TailStrategy::GuardWithIf)
        .split(w.o, qo, qi, tile.q * stride_w, TailStrategy::GuardWithIf)
        .split(h.o, qh, rh, stride_h, TailStrategy::GuardWithIf);
    if (stride_w > 1 && tile.masked_rows) {
        store_rows(c, tile, y.reorder({qi, oi, rh, qo, qh, d.r, d.q, oo, c.g, c.n}), qi, oi);
    } else {
        y.split(qi, qi, rw, stride_w)
            .reorder({rw, qi, oi, rh, qo, qh, d.r, d.q, oo, c.g, c.n})
            .vectorize(qi, tile.lanes)
            .unroll(rw);
    }

    sum.compute_at(y, qo)
        .bound_extent(c.oi, tile.oc)
        .bound_extent(c.oo, 1)
        .bound_extent(w.q, tile.q)
        .bound_extent(w.r, stride_w)
        .bound_extent(h.q, 1)
        .bound_extent(h.r, stride_h)
        .reorder_storage({w.q, w.r, h.r, c.oi})
        .reorder({w.q, w.r, h.r, c.oi});
    keep_in_registers(sum, {w.q, w.r, h.r, c.oi}, tile.lanes);
    // Phases that share taps are unrolled, so that a load of x feeds them all; others are outer loops.
    for (int u = 0; u < 4; u++) {
        const bool shares_w = u % 2 == 0, shares_h = u < 2;
        std::vector<Var> inner = {w.q}, outer;
        (shares_w ? inner : outer).push_back(w.r);
        (shares_h ? inner : outer).push_back(h.r);
        inner.push_back(c.oi);
        Stage update = sum.update(u);
        const Update &k = c.updates[u];
        reduce_blocks(c, k, update);
        if (tile.by_element) {
            schedule_by_element(c, tile, k, update, inner, outer);
        } else {
            update.reorder(inner_to_outer(k, inner, outer));
        }
        keep_in_registers(update, inner, tile.lanes);
    }
}

LoweringPasses make_passes(const ConvTranspose &c, const Tile &tile, OutputOrder, const InputNames &) {
    LoweringPasses passes;
    fetch_far_rows(c, tile, &passes);
    return passes;
}

} // namespace

const ScheduleFamily kSmallOc = {Family::kSmallOc, Outside::kNeverReads, TapOrder::kShared, schedule_small_oc, false,
                                 make_passes};

} // namespace convtranspose
