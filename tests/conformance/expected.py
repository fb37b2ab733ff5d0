#!/usr/bin/env python3
"""Computes y of the conformance cases by the scatter definition, in numpy alone, and writes it into their files.

    expected.py FILE...            fills in y_shape and y of each case, or expect where the node must be refused
    expected.py --check FILE...    writes nothing; fails where a file says something else

Nothing here comes from the library: attributes are read, values drawn and sums formed once more. cases.json describes the format.
"""
import argparse
import json
import math
import sys
import zlib

import numpy as np

FLOATS = {"f16": (np.float16, 11), "f32": (np.float32, 24), "f64": (np.float64, 53)}  # and bits of the significand
INTEGERS = {"u8": (np.uint8, 0), "s8": (np.int8, -128)}  # and the least value
MOST_LISTED = 32  # values; more of them are a checksum


class Refused(Exception):
    """The node breaks a rule of the operator."""


def rule(holds, text):
    if not holds:
        raise Refused(text)


class Draws:
    """The random numbers of tests/reference/tensor.cpp: splitmix64."""

    def __init__(self, seed):
        self.state = seed

    def integers(self, low, high, count):
        steps = np.arange(1, count + 1, dtype=np.uint64)
        z = np.uint64(self.state) + steps * np.uint64(0x9E3779B97F4A7C15)
        self.state = (self.state + count * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
        return low + (z % np.uint64(high - low + 1)).astype(np.int64)


def bias_shape(case):
    return case.get("b_shape", [case["w_shape"][1] * case.get("attrs", {}).get("group", 1)])


def literal(spec, size):
    if isinstance(spec, list):
        return np.array(spec, dtype=np.float64)
    return np.full(size, float(spec["fill"])) if "fill" in spec else np.arange(size) + float(spec.get("from", 0))


def inputs_of(case):
    """x, w and b (None: there is none), as float64 or, of a quantized node, int64."""
    draws, quant = Draws(case.get("seed", 0)), case.get("quant")
    types = (case["dtype"], quant["w"], "s32") if quant else (case["dtype"],) * 3
    tensors = []
    for name, dtype in zip("xwb", types):
        if name == "b" and not case.get("bias"):
            tensors.append(None)
            continue
        shape = {"x": case["x_shape"], "w": case["w_shape"], "b": bias_shape(case)}[name]
        size = math.prod(shape)
        if case["values"] == "literal":
            values = literal(case["literal"][name], size)
        elif dtype in INTEGERS:
            least = INTEGERS[dtype][1]
            values = draws.integers(0, 255, size) + least
            if case["values"] == "extremes":
                values = np.where(values < least + 128, least, least + 255)
        elif dtype == "s32":
            values = draws.integers(-9999, 9999, size)
        else:
            values = draws.integers(-3, 3, size)
        values = values.astype(np.int64 if quant else np.float64)
        for tensor, index, value in case.get("poke", []):
            if tensor == name.upper():
                values[index] = float(value)
        tensors.append(values.reshape(shape))
    return tensors


def geometry(case):
    """Output extents and pads before the first position, from the attributes. Refused: the node breaks a rule."""
    x, w, a = case["x_shape"], case["w_shape"], case.get("attrs", {})
    n = len(x) - 2
    rule(n >= 1 and len(w) == len(x), "ranks")
    rule(case["dtype"] in FLOATS or "quant" in case, "type of x")
    rule(case["dtype"] in FLOATS or (case["dtype"] in INTEGERS and all(case["quant"][t] in INTEGERS for t in "wy")), "types")
    rule(case.get("w_dtype", case["dtype"]) == case["dtype"] or "quant" in case, "type of w")
    rule("drop_input" not in case, "an input is missing")
    group = a.get("group", 1)
    rule(group > 0 and x[1] % group == 0 and w[0] == x[1], "channels")
    channels = w[1] * group
    rule(not case.get("bias") or bias_shape(case) == [channels], "bias")
    if "quant" in case:
        for name in ("w_scale", "w_zero_point"):
            value = case["quant"][name]
            rule(not isinstance(value, list) or len(value) in (1, channels), name)
    kernel = w[2:]
    rule(min(kernel) > 0 and a.get("kernel_shape", kernel) == kernel, "kernel")

    def attribute(name, per_axis, missing, least):
        values = a.get(name, [missing] * per_axis * n)
        rule(len(values) == per_axis * n and min(values) >= least, name)
        return values

    strides, dilations = attribute("strides", 1, 1, 1), attribute("dilations", 1, 1, 1)
    padding, pads = attribute("output_padding", 1, 0, 0), attribute("pads", 2, 0, 0)
    rule(all(p < max(s, d) for p, s, d in zip(padding, strides, dilations)), "output_padding")
    auto = a.get("auto_pad", "NOTSET")
    rule(auto in ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"), "auto_pad")
    rule("pads" not in a or auto == "NOTSET", "pads and auto_pad")
    natural = [s * (i - 1) + p + (k - 1) * d + 1 for s, i, p, k, d in zip(strides, x[2:], padding, kernel, dilations)]
    wanted = a.get("output_shape") or None
    if wanted:
        rule(len(wanted) in (n, n + 2), "output_shape")
        wanted = wanted[-n:]
    elif auto.startswith("SAME"):
        wanted = [min(size, i * s) for size, i, s in zip(natural, x[2:], strides)]
    if wanted:
        crop = [max(0, size - o) for size, o in zip(natural, wanted)]
        begins = [c // 2 if auto == "SAME_UPPER" else c - c // 2 for c in crop]
    else:
        begins = pads[:n]
        wanted = [size - b - e for size, b, e in zip(natural, begins, pads[n:])]
    rule(min(wanted) > 0, "y has no positions")
    rule(math.prod([x[0], channels, *wanted]) < 2**31, "the library's limit of a tensor")
    return {"group": group, "channels": channels, "strides": strides, "dilations": dilations, "begins": begins, "out": wanted}


def scatter(x, w, g):
    """The sums, without bias, one element of the kernel at a time: the positions that it joins are slices of x and y."""
    per_group, out_per_group = x.shape[1] // g["group"], w.shape[1]
    y = np.zeros([x.shape[0], g["channels"], *g["out"]], dtype=x.dtype)
    for element in np.ndindex(*w.shape[2:]):
        sources, targets = [], []
        for k, stride, dilation, begin, size, out in zip(
                element, g["strides"], g["dilations"], g["begins"], x.shape[2:], g["out"]):
            offset = k * dilation - begin
            first = max(0, -(offset // stride))
            last = min(size - 1, (out - 1 - offset) // stride)
            if last < first:
                break
            sources.append(slice(first, last + 1))
            targets.append(slice(first * stride + offset, last * stride + offset + 1, stride))
        else:
            for group in range(g["group"]):
                ic = slice(group * per_group, (group + 1) * per_group)
                oc = slice(group * out_per_group, (group + 1) * out_per_group)
                # Without BLAS, whose products by zero of what is not finite need not be NaN.
                part = x[(slice(None), ic, *sources)]
                y[(slice(None), oc, *targets)] += np.einsum("cm,nc...->nm...", w[(ic, slice(None), *element)], part)
    return y


def per_channel(values, like):
    return np.asarray(values).reshape([1, -1] + [1] * (like.ndim - 2))


def quantized(case, x, w, b, g):
    """By the formulas of convtranspose.h."""
    quant = case["quant"]
    group_of_weights = np.repeat(np.arange(g["group"]), x.shape[1] // g["group"])[:, None]
    channel = group_of_weights * w.shape[1] + np.arange(w.shape[1])
    zero_points = np.resize(np.atleast_1d(quant["w_zero_point"]), g["channels"])[channel]
    sums = scatter(x - quant["x_zero_point"], w - zero_points.reshape(zero_points.shape + (1,) * (w.ndim - 2)), g)
    if b is not None:
        sums += per_channel(b, sums)
    assert not sums.size or np.abs(sums).max() < 2**31, "the sum leaves 32 bits"
    w_scale = np.resize(np.atleast_1d(quant["w_scale"]).astype(np.float32), g["channels"])
    factor = np.float32(quant["x_scale"]) * w_scale / np.float32(quant["y_scale"])
    product = sums.astype(np.float32) * per_channel(factor, sums)
    assert product.dtype == np.float32
    dtype, least = INTEGERS[quant["y"]]
    return np.clip(np.rint(product).astype(np.float64) + quant["y_zero_point"], least, least + 255).astype(dtype)


def magnitudes(values):
    return np.where(np.isfinite(values), np.abs(values), 0)


def compute(case):
    g = geometry(case)
    x, w, b = inputs_of(case)
    if "quant" in case:
        return quantized(case, x, w, b, g)
    dtype, bits = FLOATS[case["dtype"]]
    with np.errstate(invalid="ignore"):
        y = scatter(x, w, g)
        magnitude = scatter(magnitudes(x), magnitudes(w), g)
        if b is not None:
            y += per_channel(b, y)
            magnitude += per_channel(magnitudes(b), y)
    assert magnitude.max(initial=0) <= 2**bits, "not every sum is exact"
    return y.astype(dtype)


def summary(y):
    values = y.reshape(-1).copy()
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan  # one pattern for all, without a sign
        values += 0  # and no negative zero
    if values.size > MOST_LISTED:
        return {"crc32": zlib.crc32(values.astype(values.dtype.newbyteorder("<")).tobytes())}
    return [v if math.isfinite(v) else str(v) for v in values.tolist()]


def expect(case):
    """The case with what must come out."""
    case = {key: value for key, value in case.items() if key not in ("expect", "y_shape", "y")}
    try:
        y = compute(case)
        case.update(y_shape=list(y.shape), y=summary(y))
    except Refused:
        case.update(expect="error")
    return case


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--check", action="store_true", help="compare with what the files say")
    options = parser.parse_args()
    wrong = 0
    for path in options.files:
        with open(path, encoding="ascii") as file:
            content = json.load(file)
        cases = []
        for case in content["cases"]:
            try:
                cases.append(expect(case))
            except (AssertionError, ValueError) as error:
                sys.exit(f"{path}: {case['name']}: {error}")
        if options.check:
            for case, computed in zip(content["cases"], cases):
                if case != computed:
                    wrong += 1
                    print(f"{path}: {case['name']}: the file says {case}, computed is {computed}")
            continue
        with open(path, "w", encoding="ascii") as file:
            about = ",\n".join("    " + json.dumps(line) for line in content["about"])
            lines = ",\n".join(json.dumps(case) for case in cases)
            file.write(f'{{\n"about": [\n{about}\n],\n"cases": [\n{lines}\n]\n}}\n')
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
