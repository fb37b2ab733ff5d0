#include "numbering.h"

#include <algorithm>

namespace convtranspose {

using namespace Halide;

namespace {

Expr quotient(const Expr &n, const Divisor &d) {
    const Expr product = cast<uint64_t>(cast<uint32_t>(n)) * cast<uint64_t>(d.multiplier);
    return cast<int>(product >> cast<uint64_t>(d.shift));
}

Expr number(const Numbering &numbering, Number of, const std::vector<Expr> &digits) {
    Expr sum;
    for (std::size_t i = 0; i < digits.size(); i++) {
        const Digit &digit = numbering.digits[i];
        if (digit.of != of) continue;
        const Expr term = digit.step == 1 ? digits[i] : digits[i] * digit.step;
        sum = sum.defined() ? sum + term : term;
    }
    return sum.defined() ? sum : 0;
}

} // namespace

Place place_of(const Numbering &numbering, const std::vector<Expr> &digits) {
    Place place;
    place.oi = number(numbering, Number::kOi, digits);
    place.oo = number(numbering, Number::kOo, digits);
    place.part = number(numbering, Number::kPart, digits);
    place.g = quotient(place.oo, numbering.tiles_per_group);
    Expr rest = number(numbering, Number::kPosition, digits);
    for (std::size_t a = 0; a < 3; a++) {
        const Expr next = quotient(rest, numbering.extents[a]);
        const Expr at = rest - next * numbering.extents[a].value;
        if (numbering.positions == Positions::kOutputs) {
            place.o[a] = at;
            place.q[a] = quotient(at, numbering.strides[a]);
            place.r[a] = at - place.q[a] * numbering.strides[a].value;
        } else {
            place.q[a] = at;
        }
        rest = next;
    }
    place.n = rest;
    return place;
}

std::vector<std::size_t> storage_order(const std::vector<Digit> &digits) {
    std::vector<std::size_t> order(digits.size());
    for (std::size_t i = 0; i < order.size(); i++) {
        order[i] = i;
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const Digit &x = digits[a], &y = digits[b];
        if (is_inner(x) != is_inner(y)) return is_inner(x);
        return x.of != y.of ? x.of < y.of : x.step < y.step;
    });
    return order;
}

Expr extent_of(const Numbering &numbering, const Digit &digit, const Expr &part_count) {
    if (is_inner(digit)) return digit.extent;
    const std::array<Divisor, 3> &e = numbering.extents;
    Expr all;
    switch (digit.of) {
    case Number::kOi: all = 1; break;
    case Number::kOo: all = numbering.tiles; break;
    case Number::kPart: all = part_count; break;
    case Number::kPosition: all = e[0].value * e[1].value * e[2].value * numbering.batch; break;
    }
    return digit.step == 1 ? all : (all + (digit.step - 1)) / digit.step;
}

} // namespace convtranspose
