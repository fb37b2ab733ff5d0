#include "conv_transpose.h"

#include <string>
#include <utility>

namespace convtranspose {

using namespace Halide;

namespace {

// One of the two factors: its dimensions, their values in the sum, and the element of the input that it is.
struct Operand {
    std::vector<Var> args;
    std::vector<Expr> in_sum, at;

    void add(const Var &v, const Expr &value) {
        args.push_back(v);
        in_sum.push_back(value);
    }
};

// The places that one tap of an axis reads.
struct Read {
    Expr x; // input position
    Expr w; // index on the kernel axis of the packed weights
};

Read read_tap(const Axis &axis, const AxisVars &v, const Expr &tap, bool shared) {
    const Expr offset = axis.taps(v.r, kTapOffset);
    const bool tap_offset_order = axis.order == TapOrder::kTapOffset;
    const Expr position = tap_offset_order ? v.q + axis.first_offset + tap
                          : shared         ? v.q + axis.shared_first + tap
                                           : v.q + offset + tap * axis.step;
    const Expr t = tap_offset_order ? (axis.first_offset + tap - offset) / axis.step
                   : shared         ? axis.shared_first + tap - offset
                                    : tap;
    return {position, unsafe_promise_clamped(axis.taps(v.r, kTapFirst) + t, 0, axis.kernel - 1)};
}

// Leaves out the steps of a reduction over an axis that are no tap of the phase, or one that another update takes, or, where so
// asked, one outside of x.
void restrict_to_taps(const Axis &axis, const AxisVars &v, const RVar &tap, bool shared, RDom *k) {
    if (axis.order == TapOrder::kTapOffset) {
        const Expr beyond = axis.first_offset + tap - axis.taps(v.r, kTapOffset); // the first tap of the phase
        k->where(beyond >= 0);
        k->where(beyond < axis.taps(v.r, kTapCount) * axis.step);
        k->where(beyond % axis.step == 0);
    } else if (!shared && !axis.equal_counts) {
        k->where(tap < axis.taps(v.r, kTapCount));
    }
    if (!shared && axis.order == TapOrder::kShared) {
        const Expr of_shared = axis.taps(v.r, kTapOffset) + tap - axis.shared_first;
        k->where(of_shared < 0 || of_shared >= axis.shared_count);
    }
    if (axis.outside == Outside::kSkipped) {
        const Expr position = read_tap(axis, v, tap, shared).x;
        k->where(position >= axis.x_min);
        k->where(position <= axis.x_min + axis.x_extent - 1);
    }
}

// Adds one update of c.sum. shared: the axes whose shared taps it takes; of other axes that have shared taps it takes all but
// those.
void add_update(ConvTranspose &c, const ConvTransposeInputs &in, const std::vector<Var> &args,
                const std::array<bool, 3> &shared) {
    const auto extent = [&](int a) {
        const Axis &axis = in.axes[a];
        return shared[a] ? axis.shared_count : axis.order == TapOrder::kTapOffset ? axis.offsets : axis.max_count;
    };
    const bool blocked = c.block > 1;
    Region domain;
    if (blocked) {
        domain.push_back(Range(0, c.block));
    }
    for (const Expr &e : {in.ic_extent, extent(0), extent(1), extent(2)}) {
        domain.push_back(Range(0, e));
    }
    RDom k(domain, shared[0] && shared[1] ? "shared" : shared[0] ? "shared_w" : shared[1] ? "shared_h" : "k");
    const int first = blocked ? 1 : 0;
    const RVar ic = k[first], taps[3] = {k[first + 1], k[first + 2], k[first + 3]};
    Update u;
    u.ib = blocked ? k[0] : RVar();
    u.ic = ic;
    u.tw = taps[0];
    u.th = taps[1];
    u.td = taps[2];

    Operand x, w;
    if (blocked) {
        for (Operand *o : {&x, &w}) {
            o->add(u.op_ib, u.ib);
            o->at.emplace_back(u.op_ib);
        }
    }
    x.add(u.op_ic, ic);
    w.add(c.oi, c.oi);
    w.add(u.op_ic, ic);
    w.at.insert(w.at.end(), {c.oi, u.op_ic});
    const Var tap_args[3] = {Var("tw"), Var("th"), Var("td")};
    for (int a = 0; a < 3; a++) {
        const Axis &axis = in.axes[a];
        const AxisVars &v = c.axes[a];
        const Read read = read_tap(axis, v, tap_args[a], shared[a]);
        const Expr x_max = axis.x_min + axis.x_extent - 1;
        restrict_to_taps(axis, v, taps[a], shared[a], &k);
        x.add(v.q, v.q);
        for (Operand *o : {&x, &w}) {
            o->add(v.r, v.r);
            o->add(tap_args[a], taps[a]);
        }
        x.at.push_back(unsafe_promise_clamped(read.x, axis.x_min, x_max));
        w.at.push_back(read.w);
    }
    x.at.insert(x.at.end(), {u.op_ic, c.g, c.n});
    x.add(c.g, c.g);
    x.add(c.n, c.n);
    w.at.insert(w.at.end(), {c.oo, c.g});
    w.add(c.oo, c.oo);
    w.add(c.g, c.g);
    u.x = Func("x_of_sum");
    u.x(x.args) = in.x(x.at);
    u.w = Func("w_of_sum");
    u.w(w.args) = in.w(w.at);
    const std::vector<Expr> at(args.begin(), args.end());
    c.sum(at) += in.numerics.widen(u.x(x.in_sum)) * in.numerics.widen(u.w(w.in_sum));
    c.updates.push_back(u);
}

// The dimensions of y and of the sum, and the element of the sum that an element of y is.
struct Dimensions {
    std::vector<Var> y, sum;
    std::vector<Expr> sum_of_y;
};

Dimensions name_dimensions(const ConvTransposeInputs &in, ConvTranspose *c) {
    const char *names[3] = {"w", "h", "d"};
    Dimensions all{{c->oc}, {c->oi, c->oo}, {c->oc % in.oc_tile, c->oc / in.oc_tile}};
    for (int a = 0; a < 3; a++) {
        const Axis &axis = in.axes[a];
        AxisVars &v = c->axes[a];
        c->stride[a] = axis.stride;
        v.o = Var(std::string("o") + names[a]);
        v.q = Var(std::string("q") + names[a]);
        v.r = Var(std::string("r") + names[a]);
        if (axis.stride == 0) {
            all.y.insert(all.y.end(), {v.q, v.r});
            all.sum_of_y.insert(all.sum_of_y.end(), {v.q, v.r});
        } else {
            all.y.push_back(v.o);
            all.sum_of_y.insert(all.sum_of_y.end(), {v.o / axis.stride, v.o % axis.stride});
        }
        all.sum.insert(all.sum.end(), {v.q, v.r});
    }
    all.y.insert(all.y.end(), {c->g, c->n});
    all.sum_of_y.insert(all.sum_of_y.end(), {c->g, c->n});
    all.sum.insert(all.sum.end(), {c->g, c->n});
    return all;
}

// The bias at a position, of the sum or of y.
Expr bias_at(const ConvTransposeInputs &in, const Var &g, const Expr &oc, const std::array<Expr, 3> &phase) {
    std::vector<Expr> at = {oc, g};
    for (int a = 0; a < 3 && !is_float(in.numerics.arithmetic); a++) {
        at.push_back(unsafe_promise_clamped(in.axes[a].taps(phase[a], kTapClass), 0, in.classes[a] - 1));
    }
    return in.numerics.widen(in.bias(at));
}

// Defines rows of y from the sums, at once or by halves.
void define_row(const ConvTransposeInputs &in, const Dimensions &dimensions, ConvTranspose *c) {
    const auto finished = [&](const std::vector<Expr> &at) {
        const Expr sum = in.bias_last ? c->sum(at) + bias_at(in, c->g, c->oc, {at[3], at[5], at[7]}) : Expr(c->sum(at));
        return in.numerics.finish(sum, c->oc, c->g);
    };
    if (!in.halves_rows) {
        c->row(dimensions.y) = finished(dimensions.sum_of_y);
        return;
    }
    // Dimension 1 of y, and 2 and 3 of the sum, are those of w.
    const int half = in.axes[0].stride / 2;
    std::vector<Var> half_args = dimensions.y;
    half_args[1] = c->half_o;
    half_args.push_back(c->parity);
    std::vector<Expr> of_half = dimensions.sum_of_y, of_row(dimensions.y.begin(), dimensions.y.end());
    of_half[2] = c->half_o / half;
    of_half[3] = c->half_o % half * 2 + c->parity;
    c->half_row(half_args) = finished(of_half);
    of_row[1] = c->axes[0].o / 2;
    of_row.push_back(c->axes[0].o % 2);
    c->row(dimensions.y) = c->half_row(of_row);
}

} // namespace

ConvTranspose conv_transpose(const ConvTransposeInputs &in) {
    ConvTranspose c;
    c.oc_tile = in.oc_tile;
    c.block = in.block;
    const Dimensions dimensions = name_dimensions(in, &c);
    const std::array<Expr, 3> phases = {c.axes[0].r, c.axes[1].r, c.axes[2].r};
    c.sum(dimensions.sum) =
        in.bias_last ? cast(in.numerics.sum, 0) : bias_at(in, c.g, c.oo * in.oc_tile + c.oi, phases);
    // Over shared taps of both axes, then of one, then of none.
    const bool shares_w = in.axes[0].order == TapOrder::kShared, shares_h = in.axes[1].order == TapOrder::kShared;
    for (const bool h : {true, false}) {
        for (const bool w : {true, false}) {
            if ((!w || shares_w) && (!h || shares_h)) {
                add_update(c, in, dimensions.sum, {w, h, false});
            }
        }
    }
    define_row(in, dimensions, &c);
    c.y(dimensions.y) = c.row(std::vector<Expr>(dimensions.y.begin(), dimensions.y.end()));
    return c;
}

} // namespace convtranspose
