#include "conv_transpose.h"

#include <string>
#include <utility>

namespace convtranspose {

using namespace Halide;

namespace {

// The dimensions of one of the two factors, and their values in the sum.
struct Operand {
    std::vector<Var> args;
    std::vector<Expr> in_sum;

    void add(const Var &v, const Expr &value) {
        args.push_back(v);
        in_sum.push_back(value);
    }
};

// The places that one tap of an axis reads.
struct Read {
    Expr x;              // input position,
    Expr q, offset;      // which is their sum
    Expr w;              // index on the kernel axis of the packed weights
    Expr rises = Expr(); // kSideBySide: whether the next input position is read instead
};

// The places of one term.
struct Term {
    std::array<Read, 3> axes; // w, h, d
    Expr ic;                  // input channel of the group, or block of them
    Expr is_channel;          // whether there is such a channel; undefined: always
};

// No index of x depends on the phase, so that vectors of phases broadcast what they read. Taps are a position apart, as there is no
// dilation.
Read read_tap_side_by_side(const Axis &axis, const Expr &q, const Expr &r, const Expr &tap) {
    const Expr offset = axis.taps(0, kTapOffset) + tap, phases = axis.kernel / axis.max_count;
    const Expr w = axis.taps(0, kTapFirst) + tap * phases + r;
    return {q + offset, q, offset, unsafe_promise_clamped(w, 0, axis.kernel - 1), r >= axis.turn};
}

Read read_tap(const Axis &axis, const Expr &q, const Expr &r, const Expr &tap, bool shared) {
    if (axis.order == TapOrder::kSideBySide) return read_tap_side_by_side(axis, q, r, tap);
    const Expr offset = axis.taps(r, kTapOffset);
    const bool tap_offset_order = axis.order == TapOrder::kTapOffset;
    const Expr position = tap_offset_order ? q + axis.first_offset + tap
                          : shared         ? q + axis.shared_first + tap
                                           : q + offset + tap * axis.step;
    const Expr of_q = tap_offset_order ? axis.first_offset + tap
                      : shared         ? axis.shared_first + tap
                                       : offset + tap * axis.step;
    const Expr t = tap_offset_order ? (axis.first_offset + tap - offset) / axis.step
                   : shared         ? axis.shared_first + tap - offset
                                    : tap;
    return {position, q, of_q, unsafe_promise_clamped(axis.taps(r, kTapFirst) + t, 0, axis.kernel - 1)};
}

// Leaves out the steps of a reduction over an axis that are no tap of the phase, or one that another update takes, or, where so
// asked, one outside of x.
void restrict_to_taps(const Axis &axis, const Expr &q, const Expr &r, const RVar &tap, bool shared, RDom *k) {
    if (axis.order == TapOrder::kTapOffset) {
        const Expr beyond = axis.first_offset + tap - axis.taps(r, kTapOffset); // the first tap of the phase
        k->where(beyond >= 0);
        k->where(beyond < axis.taps(r, kTapCount) * axis.step);
        k->where(beyond % axis.step == 0);
    } else if (!shared && !axis.equal_counts && axis.order != TapOrder::kSideBySide) {
        k->where(tap < axis.taps(r, kTapCount));
    }
    if (!shared && axis.order == TapOrder::kShared) {
        const Expr of_shared = axis.taps(r, kTapOffset) + tap - axis.shared_first;
        k->where(of_shared < 0 || of_shared >= axis.shared_count);
    }
    if (axis.outside == Outside::kSkipped) {
        const Expr position = read_tap(axis, q, r, tap, shared).x;
        k->where(position >= axis.x_min);
        k->where(position <= axis.x_min + axis.x_extent - 1);
    }
}

// An element of a part's list.
Term listed_term(const ConvTransposeInputs &in, const Place &place, const Update &u) {
    const TermList &list = in.list;
    const Expr element =
        unsafe_promise_clamped(list.parts(kPartFirst, place.part) + u.op_taps[0], 0, list.element_count - 1);
    const Expr ic = list.parts(kPartChunk, place.part) * list.chunk + u.op_ic;
    Term term;
    term.ic = ic;
    term.is_channel = (in.block > 1 ? ic * in.block + u.op_ib : ic) < in.x_at.channels;
    for (int a = 0; a < 3; a++) {
        const Expr offset = list.elements(kElementOffset + a, element);
        term.axes[a] = {place.q[a] + offset, place.q[a], offset, 0};
    }
    term.axes[0].w = unsafe_promise_clamped(list.elements(kElementTap, element), 0, in.axes[0].kernel - 1);
    return term;
}

// The factor x of a term.
Expr x_of_term(const ConvTransposeInputs &in, const Place &place, const Term &term, const Update &u) {
    Expr inside; // undefined: x is read in any case
    const auto only_if = [&](const Expr &e) { inside = inside.defined() ? inside && e : e; };
    if (term.is_channel.defined()) {
        only_if(place.n < in.numbering.batch);
        only_if(term.is_channel);
    }
    for (int a = 0; a < 3; a++) {
        const Axis &axis = in.axes[a];
        if (axis.outside == Outside::kZero) {
            only_if(is_within(term.axes[a].x - axis.x_min, axis.x_extent));
        }
    }
    Expr value;
    if (in.x_at.defined()) {
        const Strided &x = in.x_at;
        const Expr channel = in.block > 1 ? term.ic * in.block + u.op_ib : term.ic;
        Expr at = place.n * x.image_stride + place.g * (x.channels * x.channel_stride), offset = 0;
        for (int a = 0; a < 3; a++) {
            at += term.axes[a].q * x.strides[a];
            offset += term.axes[a].offset * x.strides[a];
        }
        at = at + offset + channel * x.channel_stride;
        value = in.x(unsafe_promise_clamped(inside.defined() ? select(inside, at, 0) : at, 0, x.size - 1));
    } else {
        std::vector<Expr> at;
        if (in.block > 1) {
            at.emplace_back(u.op_ib);
        }
        const auto within = [](const Axis &axis, const Expr &position) {
            const Expr x_max = axis.x_min + axis.x_extent - 1;
            return axis.outside == Outside::kZero ? clamp(position, axis.x_min, x_max)
                                                  : unsafe_promise_clamped(position, axis.x_min, x_max);
        };
        for (int a = 0; a < 3; a++) {
            at.push_back(within(in.axes[a], term.axes[a].x));
        }
        at.insert(at.end(), {term.ic, place.g, place.n});
        value = in.x(at);
        if (const Read &w = term.axes[0]; w.rises.defined()) {
            at[at.size() - 6] = within(in.axes[0], w.x + 1);
            value = select(w.rises, in.x(at), value);
        }
    }
    if (!inside.defined()) {
        return value;
    }
    // Nothing is past the last channel, whatever is around x.
    const Expr zero = Internal::make_zero(value.type());
    return !in.around.defined()         ? select(inside, value, zero)
           : !term.is_channel.defined() ? select(inside, value, in.around)
                                        : select(inside, value, term.is_channel, in.around, zero);
}

// The factor w of a term.
Expr w_of_term(const ConvTransposeInputs &in, const Place &place, const Term &term, const Update &u) {
    Expr ic = term.ic;
    if (term.is_channel.defined()) {
        const Expr last = (in.x_at.channels - 1) / in.block;
        ic = unsafe_promise_clamped(min(ic, last), 0, last);
    }
    std::vector<Expr> at;
    if (in.block > 1) {
        at.emplace_back(u.op_ib);
    }
    at.insert(at.end(), {place.oi, ic, term.axes[0].w, term.axes[1].w, term.axes[2].w, place.oo});
    at.push_back(in.numbering.positions == Positions::kByAxis ? place.g : 0);
    return in.w(at);
}

// The dimensions of both factors.
struct Factors {
    Operand x, w;

    void add_to_both(const Var &v, const Expr &value) {
        x.add(v, value);
        w.add(v, value);
    }
};

// Those for positions by axis.
void name_factors(const ConvTranspose &c, const Update &u, const std::vector<RVar> &taps, Factors *f) {
    f->x.add(u.op_ic, u.ic);
    f->w.add(c.oi, c.oi);
    f->w.add(u.op_ic, u.ic);
    for (std::size_t a = 0; a < taps.size(); a++) {
        const AxisVars &v = c.axes[a];
        f->x.add(v.q, v.q);
        f->add_to_both(v.r, v.r);
        f->add_to_both(u.op_taps[a], taps[a]);
    }
    f->x.add(c.g, c.g);
    f->x.add(c.n, c.n);
    f->w.add(c.oo, c.oo);
    f->w.add(c.g, c.g);
}

// Those for other positions: digits within a tile, the term, the other digits.
void number_factors(const ConvTranspose &c, const Numbering &numbering, const Update &u, const std::vector<RVar> &taps,
                    Factors *f) {
    for (const bool inner : {true, false}) {
        for (const std::size_t i : storage_order(numbering.digits)) {
            const Digit &digit = numbering.digits[i];
            if (is_inner(digit) != inner) continue;
            // The phase of an output, and so its weights, follows from its position.
            const bool of_w = digit.of != Number::kPosition || numbering.positions == Positions::kOutputs;
            if (digit.of != Number::kOi) f->x.add(c.digits[i], c.digits[i]);
            if (of_w) f->w.add(c.digits[i], c.digits[i]);
        }
        if (!inner) continue;
        f->add_to_both(u.op_ic, u.ic);
        for (std::size_t a = 0; a < taps.size(); a++) {
            f->add_to_both(u.op_taps[a], taps[a]);
        }
    }
}

// The reduction over input channels and kernel elements. shared: see add_update().
RDom reduction(const ConvTransposeInputs &in, const std::array<bool, 3> &shared) {
    Region domain;
    if (in.block > 1) {
        domain.push_back(Range(0, in.block));
    }
    domain.push_back(Range(0, in.ic_extent));
    if (in.list.defined()) {
        domain.push_back(Range(0, in.list.most_elements));
    }
    for (std::size_t a = 0; a < 3 && !in.list.defined(); a++) {
        const Axis &axis = in.axes[a];
        domain.push_back(Range(0, shared[a]                            ? axis.shared_count
                                  : axis.order == TapOrder::kTapOffset ? axis.offsets
                                                                       : axis.max_count));
    }
    return RDom(domain, shared[0] && shared[1] ? "shared" : shared[0] ? "shared_w" : shared[1] ? "shared_h" : "k");
}

// The dimensions of y and of the sum, and the element of the sum that an element of y is.
struct Dimensions {
    std::vector<Var> y, sum;
    std::vector<Expr> sum_of_y;
    Place place; // of an element of the sum
};

// Adds one update of c.sum. shared: the axes whose shared taps it takes; of other axes that have shared taps it takes all but
// those.
void add_update(ConvTranspose &c, const ConvTransposeInputs &in, const Dimensions &dimensions,
                const std::array<bool, 3> &shared) {
    const Place &place = dimensions.place;
    RDom k = reduction(in, shared);
    const int first = c.block > 1 ? 1 : 0;
    std::vector<RVar> taps;
    for (int i = first + 1; i < k.dimensions(); i++) {
        taps.push_back(k[i]);
    }
    Update u;
    u.ib = first > 0 ? k[0] : RVar();
    u.ic = k[first];
    u.tw = taps[0];
    u.th = in.list.defined() ? RVar() : taps[1];
    u.td = in.list.defined() ? RVar() : taps[2];

    Term term;
    if (in.list.defined()) {
        term = listed_term(in, place, u);
        k.where(taps[0] < in.list.parts(kPartCount, place.part));
    } else {
        term.ic = u.op_ic;
        for (std::size_t a = 0; a < 3; a++) {
            term.axes[a] = read_tap(in.axes[a], place.q[a], place.r[a], u.op_taps[a], shared[a]);
            restrict_to_taps(in.axes[a], place.q[a], place.r[a], taps[a], shared[a], &k);
        }
    }

    Factors f;
    if (c.block > 1) {
        f.add_to_both(u.op_ib, u.ib);
    }
    if (in.numbering.positions == Positions::kByAxis) {
        name_factors(c, u, taps, &f);
    } else {
        number_factors(c, in.numbering, u, taps, &f);
    }
    u.x = Func("x_of_sum");
    u.x(f.x.args) = x_of_term(in, place, term, u);
    u.w = Func("w_of_sum");
    u.w(f.w.args) = w_of_term(in, place, term, u);
    const std::vector<Expr> at(dimensions.sum.begin(), dimensions.sum.end());
    c.sum(at) += in.numerics.widen(u.x(f.x.in_sum)) * in.numerics.widen(u.w(f.w.in_sum));
    c.updates.push_back(u);
}

Dimensions name_dimensions(const ConvTransposeInputs &in, ConvTranspose *c) {
    const char *names[3] = {"w", "h", "d"};
    Dimensions all{{c->oc}, {c->oi, c->oo}, {c->oc % in.oc_tile, c->oc / in.oc_tile}, Place()};
    all.place.oi = c->oi;
    all.place.oo = c->oo;
    all.place.g = c->g;
    all.place.n = c->n;
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
        all.place.q[a] = v.q;
        all.place.r[a] = v.r;
    }
    all.y.insert(all.y.end(), {c->g, c->n});
    all.sum_of_y.insert(all.sum_of_y.end(), {c->g, c->n});
    all.sum.insert(all.sum.end(), {c->g, c->n});
    return all;
}

// Likewise, of positions that are not by axis; y has one dimension.
Dimensions number_dimensions(const ConvTransposeInputs &in, ConvTranspose *c) {
    Dimensions all;
    for (const Digit &digit : in.numbering.digits) {
        c->digits.emplace_back(digit.name);
    }
    all.place = place_of(in.numbering, std::vector<Expr>(c->digits.begin(), c->digits.end()));
    for (const std::size_t i : storage_order(in.numbering.digits)) {
        all.sum.push_back(c->digits[i]);
    }
    return all;
}

// The bias at a position, of the sum or of y.
Expr bias_at(const ConvTransposeInputs &in, const Expr &g, const Expr &oc, const std::array<Expr, 3> &phase) {
    std::vector<Expr> at = {oc, g};
    for (int a = 0; a < 3 && in.classes[a].defined(); a++) {
        at.push_back(unsafe_promise_clamped(in.axes[a].taps(phase[a], kTapClass), 0, in.classes[a] - 1));
    }
    return in.numerics.widen(in.bias(at));
}

// The value that the sum starts from.
Expr start_of_sum(const ConvTransposeInputs &in, const Place &place) {
    if (in.bias_last) {
        return cast(in.numerics.sum, 0);
    }
    const Expr oc = place.oo * in.oc_tile + place.oi;
    if (in.list.defined()) { // of the parts of a sum one has the bias
        const Expr row = in.list.parts(kPartBias, place.part);
        return select(row >= 0, in.numerics.widen(in.bias(oc, max(row, 0))), Internal::make_zero(in.numerics.sum));
    }
    return bias_at(in, in.numbering.positions == Positions::kByAxis ? place.g : 0, oc, place.r);
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

// Stores each element of y at its place in memory: an update whose loops are all reductions.
void define_stores(const ConvTransposeInputs &in, ConvTranspose *c) {
    const Numbering &numbering = in.numbering;
    const Strided &y = in.y_at;
    std::vector<Range> loops;
    for (const Digit &digit : numbering.digits) {
        loops.emplace_back(0, extent_of(numbering, digit, in.list.part_count));
    }
    c->o = RDom(loops, "o");
    std::vector<Expr> digits, of_sum;
    bool whole_tiles = true; // of oo
    for (std::size_t i = 0; i < loops.size(); i++) {
        digits.emplace_back(c->o[static_cast<int>(i)]);
        whole_tiles = whole_tiles && (numbering.digits[i].of != Number::kOo || numbering.digits[i].step == 1);
    }
    for (const std::size_t i : storage_order(numbering.digits)) {
        of_sum.push_back(digits[i]);
    }
    const Place to = place_of(numbering, digits);
    const Expr oc = (to.oo - to.g * numbering.tiles_per_group.value) * in.oc_tile + to.oi;
    Expr at = (to.g * y.channels + oc) * y.channel_stride + to.n * y.image_stride;
    if (in.list.defined()) {
        at += in.list.parts(kPartStore, to.part);
    }
    for (int a = 0; a < 3; a++) {
        Expr o = to.o[a];
        if (numbering.positions == Positions::kInPhase) {
            o = to.q[a] * numbering.strides[a].value + in.list.parts(kPartPhase + a, to.part);
            c->o.where(o < in.y_extents[a]);
        }
        at += o * y.strides[a];
    }
    if (in.oc_tile > 1) {
        c->o.where(oc < y.channels);
    }
    if (!whole_tiles) {
        c->o.where(to.oo < numbering.tiles);
    }
    c->o.where(to.n < numbering.batch);
    Var i("i");
    const Expr result = in.numerics.finish(c->sum(of_sum), to.oo * in.oc_tile + to.oi, 0);
    c->y(i) = undef(result.type());
    c->y(unsafe_promise_clamped(at, 0, y.size - 1)) = result;
}

} // namespace

ConvTranspose conv_transpose(const ConvTransposeInputs &in) {
    ConvTranspose c;
    c.oc_tile = in.oc_tile;
    c.block = in.block;
    const bool by_axis = in.numbering.positions == Positions::kByAxis;
    const Dimensions dimensions = by_axis ? name_dimensions(in, &c) : number_dimensions(in, &c);
    c.sum(dimensions.sum) = start_of_sum(in, dimensions.place);
    // Over shared taps of both axes, then of one, then of none.
    const bool shares_w = in.axes[0].order == TapOrder::kShared, shares_h = in.axes[1].order == TapOrder::kShared;
    for (const bool h : {true, false}) {
        for (const bool w : {true, false}) {
            if ((!w || shares_w) && (!h || shares_h)) {
                add_update(c, in, dimensions, {w, h, false});
            }
        }
    }
    if (!by_axis) {
        define_stores(in, &c);
        return c;
    }
    define_row(in, dimensions, &c);
    c.y(dimensions.y) = c.row(std::vector<Expr>(dimensions.y.begin(), dimensions.y.end()));
    return c;
}

} // namespace convtranspose
