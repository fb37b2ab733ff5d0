#include "gpu_conv_transpose.h"

#include <vector>

#include "conv_transpose.h"

namespace convtranspose {

using namespace Halide;

namespace {

Expr quotient(const Expr &n, const Divisor &d) {
    const Expr product = cast<uint64_t>(cast<uint32_t>(n)) * cast<uint64_t>(d.multiplier);
    return cast<int>(product >> cast<uint64_t>(d.shift));
}

// Whether 0 <= a < extent, in one comparison.
Expr is_within(const Expr &a, const Expr &extent) { return cast<uint32_t>(a) < cast<uint32_t>(extent); }

struct Position {
    std::array<Expr, 3> axes; // w, h, d
    Expr image;
};

Position position_of(const Expr &p, const std::array<Divisor, 3> &extents) {
    Position at;
    Expr rest = p;
    for (size_t a = 0; a < 3; a++) {
        const Expr next = quotient(rest, extents[a]);
        at.axes[a] = rest - next * extents[a].value;
        rest = next;
    }
    at.image = rest;
    return at;
}

// The number that an element of x stands for.
Expr value_of(const Expr &stored, const GpuTensor &x, const GpuNumbers &numbers) {
    if (!is_float(numbers.numerics.arithmetic)) {
        return (cast<int>(stored) ^ numbers.x_flip) - numbers.x_zero_point;
    }
    return numbers.numerics.widen(x.storage.load(stored));
}

// An element of y.
Expr element_of(const Expr &sum, const Expr &oc, const GpuTensor &y, const Numerics &numerics) {
    return is_float(numerics.arithmetic) ? y.storage.store(sum) : numerics.finish(sum, oc, 0);
}

Expr load(const GpuTensor &x, const Expr &at) { return x.data(unsafe_promise_clamped(at, 0, x.size - 1)); }

// x at one kernel element: zero outside of it and past its last channel, image and position.
void define_x(const ByPhaseInputs &in, ByPhase *c) {
    const bool blocks = in.block > 1;
    const Expr group = quotient(c->oo, in.tiles_per_group);
    const Expr p = ((c->po * in.p.unrolled + c->pu) * in.p.threads + c->pt) * in.p.vector + c->pv;
    const Position q = position_of(p, in.positions);
    const Expr element = unsafe_promise_clamped(in.parts(kPartFirst, c->r) + c->t, 0, in.element_count - 1);
    const Expr block_of_group = in.parts(kPartChunk, c->r) * in.chunk + c->ic;
    const Expr ic_of_group = blocks ? block_of_group * in.block + c->b : block_of_group;
    const Expr is_channel = ic_of_group < in.x.channels;
    Expr inside = q.image < in.batch && is_channel;
    Expr at = q.image * in.x.image_stride + group * (in.x.channels * in.x.channel_stride), offset = 0;
    for (int a = 0; a < 3; a++) {
        const Expr tap_offset = in.elements(kElementOffset + a, element);
        inside = inside && is_within(q.axes[a] + tap_offset, in.x.extents[a]);
        at += q.axes[a] * in.x.strides[a];
        offset += tap_offset * in.x.strides[a];
    }
    at = select(inside, at + offset + ic_of_group * in.x.channel_stride, 0);
    std::vector<Var> args = {c->pv, c->pt, c->pu, c->ic, c->t, c->po, c->r, c->oo};
    if (blocks) {
        // Around x is its zero point, which the biases count on at every tap; past the last channel nothing is.
        args.insert(args.begin(), c->b);
        const Expr value = cast<uint8_t>(cast<int>(load(in.x, at)) ^ in.numbers.x_flip);
        c->x(args) = select(inside, value, is_channel, cast<uint8_t>(in.numbers.x_zero_point), cast<uint8_t>(0));
    } else {
        const Expr zero = Internal::make_zero(in.numbers.numerics.sum);
        c->x(args) = select(inside, value_of(load(in.x, at), in.x, in.numbers), zero);
    }
}

// The weights at one kernel element.
void define_w(const ByPhaseInputs &in, ByPhase *c) {
    const bool blocks = in.block > 1;
    const Expr element = unsafe_promise_clamped(in.parts(kPartFirst, c->r) + c->t, 0, in.element_count - 1);
    const Expr block_of_group = in.parts(kPartChunk, c->r) * in.chunk + c->ic;
    const Expr oi = (c->ou * in.oc.threads + c->ot) * in.oc.vector + c->ov;
    const Expr tap = unsafe_promise_clamped(in.elements(kElementTap, element), 0, in.tap_count - 1);
    const Expr last = (in.x.channels - 1) / in.block;
    const Expr ic = unsafe_promise_clamped(min(block_of_group, last), 0, last);
    std::vector<Var> args = {c->ov, c->ot, c->ou, c->ic, c->t, c->r, c->oo};
    if (blocks) args.insert(args.begin(), c->b);
    c->w(args) = blocks ? Expr(in.w(c->b, oi, ic, tap, c->oo)) : in.numbers.numerics.widen(in.w(oi, ic, tap, c->oo));
}

void define_sum(const ByPhaseInputs &in, ByPhase *c) {
    const bool blocks = in.block > 1;
    const Numerics &numerics = in.numbers.numerics;
    std::vector<Range> terms = {{0, in.chunk}, {0, in.chunks}, {0, in.most_elements}};
    if (blocks) terms.emplace_back(0, in.block);
    c->k = RDom(terms, "k");
    c->k.where(c->k[2] < in.parts(kPartCount, c->r));
    const Expr ic = c->k[1] * in.chunk + c->k[0];
    const Expr oi = (c->ou * in.oc.threads + c->ot) * in.oc.vector + c->ov;
    const Expr row = in.parts(kPartBias, c->r), bias_at = max(row, 0) * in.bias_count + c->oo * in.oc.size() + oi;
    const std::vector<Expr> at = {c->ov, c->ot, c->ou, c->pv, c->pt, c->pu, c->po, c->r, c->oo};
    c->sum(c->ov, c->ot, c->ou, c->pv, c->pt, c->pu, c->po, c->r, c->oo) =
        select(row >= 0, numerics.widen(in.bias(unsafe_promise_clamped(bias_at, 0, in.bias_size - 1))),
               Internal::make_zero(numerics.sum));
    std::vector<Expr> x_at = {c->pv, c->pt, c->pu, ic, c->k[2], c->po, c->r, c->oo};
    std::vector<Expr> w_at = {c->ov, c->ot, c->ou, ic, c->k[2], c->r, c->oo};
    if (blocks) {
        x_at.insert(x_at.begin(), c->k[3]);
        w_at.insert(w_at.begin(), c->k[3]);
    }
    c->sum(at) += numerics.widen(c->x(x_at)) * numerics.widen(c->w(w_at));
}

// Stores go to computed places of y, so this is an update whose loops are all reductions.
void define_y(const ByPhaseInputs &in, ByPhase *c) {
    const Expr positions = in.positions[0].value * in.positions[1].value * in.positions[2].value * in.batch;
    const Expr p_tiles = (positions + in.p.size() - 1) / in.p.size();
    c->o = RDom({{0, in.oc.vector},
                 {0, in.oc.unrolled},
                 {0, in.p.vector},
                 {0, in.p.unrolled},
                 {0, in.p.threads},
                 {0, in.oc.threads},
                 {0, p_tiles},
                 {0, in.tiles},
                 {0, in.part_count}},
                "o");
    const RVar ov = c->o[0], ou = c->o[1], pv = c->o[2], pu = c->o[3], pt = c->o[4], ot = c->o[5], po = c->o[6],
               oo = c->o[7], r = c->o[8];
    const Position to = position_of(((po * in.p.unrolled + pu) * in.p.threads + pt) * in.p.vector + pv, in.positions);
    const Expr oi_to = (ou * in.oc.threads + ot) * in.oc.vector + ov;
    const Expr group_to = quotient(oo, in.tiles_per_group);
    const Expr oc = (oo - group_to * in.tiles_per_group.value) * in.oc.size() + oi_to;
    Expr y_at =
        (group_to * in.y.channels + oc) * in.y.channel_stride + to.image * in.y.image_stride + in.parts(kPartStore, r);
    for (int a = 0; a < 3; a++) {
        const Expr o = to.axes[a] * in.strides[a] + in.parts(kPartPhase + a, r);
        c->o.where(o < in.y.extents[a]);
        y_at += o * in.y.strides[a];
    }
    c->o.where(oc < in.y.channels);
    c->o.where(to.image < in.batch);
    Var i("i");
    c->y(i) = undef(in.y.storage.stored());
    c->y(unsafe_promise_clamped(y_at, 0, in.y.size - 1)) =
        element_of(c->sum(ov, ot, ou, pv, pt, pu, po, r, oo), oo * in.oc.size() + oi_to, in.y, in.numbers.numerics);
}

} // namespace

ByPhase conv_transpose_by_phase(const ByPhaseInputs &in) {
    ByPhase c;
    c.chunk = in.chunk;
    c.block = in.block;
    c.oc_side = in.oc;
    c.p_side = in.p;
    define_x(in, &c);
    define_w(in, &c);
    define_sum(in, &c);
    define_y(in, &c);
    return c;
}

ByOutput conv_transpose_by_output(const ByOutputInputs &in) {
    ByOutput c;
    const Numerics &numerics = in.numbers.numerics;

    const Position o = position_of(c.p, in.outputs);
    const Expr group = quotient(c.m, in.channels_per_group);
    RDom terms({{0, in.x.channels}, {0, in.taps[0].max_count}, {0, in.taps[1].max_count}, {0, in.taps[2].max_count}},
               "terms");
    Expr inside = cast<bool>(true), tap = 0;
    Expr at = o.image * in.x.image_stride + (group * in.x.channels + terms[0]) * in.x.channel_stride;
    for (int a = 2; a >= 0; a--) {
        const ByOutputInputs::AxisTaps &axis = in.taps[a];
        const Expr q = quotient(o.axes[a], in.strides[a]);
        const Expr r = unsafe_promise_clamped(o.axes[a] - q * in.strides[a].value, 0, axis.phases - 1);
        terms.where(terms[1 + a] < axis.taps(r, kTapCount));
        const Expr position = q + axis.taps(r, kTapOffset) + terms[1 + a] * axis.step;
        inside = inside && is_within(position, in.x.extents[a]);
        at += position * in.x.strides[a];
        tap = tap * axis.kernel + axis.taps(r, kTapFirst) + terms[1 + a];
    }
    const Expr weight = in.w(unsafe_promise_clamped(
        c.m * in.w_channel_stride + tap * in.w_tap_stride + terms[0] * in.w_ic_stride, 0, in.w_size - 1));
    const Expr product = value_of(load(in.x, select(inside, at, 0)), in.x, in.numbers) * numerics.widen(weight);
    c.sum(c.m, c.p) = numerics.widen(in.bias(unsafe_promise_clamped(c.m, 0, in.channels - 1)));
    c.sum(c.m, c.p) += select(inside, product, Internal::make_zero(numerics.sum));

    const Expr positions = in.outputs[0].value * in.outputs[1].value * in.outputs[2].value * in.batch;
    const auto tiles = [](const Expr &extent, int tile) { return (extent + tile - 1) / tile; };
    c.o = RDom({{0, in.channel_threads},
                {0, in.position_threads},
                {0, tiles(positions, in.position_threads)},
                {0, tiles(in.channels, in.channel_threads)}},
               "o");
    const Expr m = c.o[3] * in.channel_threads + c.o[0], p = c.o[2] * in.position_threads + c.o[1];
    c.o.where(m < in.channels);
    c.o.where(p < positions);
    const Position to = position_of(p, in.outputs);
    Expr y_at = m * in.y.channel_stride + to.image * in.y.image_stride;
    for (size_t a = 0; a < 3; a++) {
        y_at += to.axes[a] * in.y.strides[a];
    }
    Var i("i");
    c.y(i) = undef(in.y.storage.stored());
    c.y(unsafe_promise_clamped(y_at, 0, in.y.size - 1)) =
        element_of(c.sum(m, p), unsafe_promise_clamped(m, 0, in.channels - 1), in.y, numerics);
    return c;
}

} // namespace convtranspose
