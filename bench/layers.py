"""Layers of workload files (make_models.py says what is in one): their geometry, values, and exact results."""
import json
import math
import pathlib
import zlib

import numpy as np
from onnx import numpy_helper

from make_models import TYPES, make_model, output_extents, per_axis

UNITS = {"f32": 2.0 ** -24, "bf16": 2.0 ** -8}  # of rounding


def read_workload(file):
    layers = json.loads(pathlib.Path(file).read_text())
    names = [layer["name"] for layer in layers]
    if len(set(names)) != len(names):
        raise ValueError(f"{file} has layers of the same name")
    return layers


def tensors(layer, dtype="f32"):
    """The model of one layer, its constant w and b, and an x, of the type's numpy type."""
    model = make_model(layer, dtype)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    random = np.random.default_rng([zlib.crc32(layer["name"].encode()), 1])
    x = random.random((layer["n"], layer["c"], *layer["spatial"]), dtype=np.float32) - np.float32(0.5)
    return model, x.astype(TYPES[dtype][1]), constants["w"], constants["b"]


def bytes_touched(layer, dtype="f32"):
    """The bytes of x, w, b and y, each once: the least that any kernel moves."""
    x = layer["n"] * layer["c"] * math.prod(layer["spatial"])
    w = layer["c"] * layer["m"] // layer["g"] * math.prod(layer["k"])
    y = layer["n"] * layer["m"] * math.prod(output_extents(layer))
    return np.dtype(TYPES[dtype][1]).itemsize * (x + w + layer["m"] + y)


def problem_line(layer, dtype="f32", layout="nchw"):
    """As tuning records know a layer by (runtime/kernels/tuning.h)."""
    def axes(values):
        return "x".join(map(str, values))

    # Padding at the end is what the extent of y leaves of it.
    ends = [p - op for p, op in zip(per_axis(layer, "p"), per_axis(layer, "op"))]
    return (f"{dtype} {layout} n{layer['n']} g{layer['g']} ic{layer['c']} oc{layer['m']} i{axes(layer['spatial'])} "
            f"k{axes(layer['k'])} s{axes(per_axis(layer, 's'))} p{axes(per_axis(layer, 'p'))}_{axes(max(e, 0) for e in ends)} "
            f"op{axes(max(-e, 0) for e in ends)} d{axes(per_axis(layer, 'd'))} bias")


def shape_text(layer):
    """In a few words, for tables: 1x64x32x32 -> 3, k 4x4, s 2, p 1."""
    def of(key):
        value = per_axis(layer, key)
        return "x".join(map(str, value[:1] if len(set(value)) == 1 else value))

    text = "x".join(map(str, [layer["n"], layer["c"], *layer["spatial"]])) + f" → {layer['m']}"
    text += ", k " + "x".join(map(str, layer["k"])) + f", s {of('s')}"
    for key, usual in (("p", 0), ("op", 0), ("d", 1)):
        if set(per_axis(layer, key)) != {usual}:
            text += f", {key} {of(key)}"
    return text + (f", g {layer['g']}" if layer["g"] != 1 else "")


def expected(layer, x, w, b, begin=None, dtype="f32"):
    """y in f64 by the definition, one kernel element at a time, and how far a kernel that sums in f32 may be from it.

    begin: what is cut off before the first output, of each axis; the layer's pads, if not given.
    The tolerance is that of `convtranspose run --verify`: (terms + 4) * 2^-24 * max|y| + 4 * u * |y|, u of the type.
    """
    n, c, m, g = layer["n"], layer["c"], layer["m"], layer["g"]
    extents, out = layer["spatial"], output_extents(layer)
    strides, dilations = per_axis(layer, "s"), per_axis(layer, "d")
    begin = per_axis(layer, "p") if begin is None else begin
    x, w = x.astype(np.float64), w.astype(np.float64)
    y = np.zeros((n, m, *out))
    y += b.astype(np.float64).reshape(-1, *[1] * len(out))
    for k in np.ndindex(*layer["k"]):
        reads, writes = [], []
        for i, o, s, d, cut, at in zip(extents, out, strides, dilations, begin, k):
            shift = at * d - cut  # input i goes to output i * s + shift
            first = max(0, -(shift // s))
            end = max(first, min(i, (o - 1 - shift) // s + 1))
            reads.append(slice(first, end))
            writes.append(slice(first * s + shift, (end - 1) * s + shift + 1, s) if end > first else slice(0, 0))
        part = x[(..., *reads)]
        if not part.size:
            continue
        weights = w[(..., *k)].reshape(g, c // g, m // g).swapaxes(1, 2)
        sums = weights @ part.reshape(n, g, c // g, -1)
        y[(..., *writes)] += sums.reshape(n, m, *part.shape[2:])
    terms = c // g * math.prod(-(-k // s) for k, s in zip(layer["k"], strides)) + 1
    return y, (terms + 4) * UNITS["f32"] * np.abs(y).max() + 4 * UNITS[dtype] * np.abs(y)


def judge(y, wanted, looseness=1):
    """None, or what is wrong; wanted: what expected() gave. looseness: of those that compute with fewer bits than f32 has."""
    value, tolerance = wanted
    tolerance = tolerance * looseness
    if y.shape != value.shape:
        return f"shape {y.shape}, not {value.shape}"
    excess = np.abs(y.astype(np.float64) - value) - tolerance
    worst = int(np.nanargmax(np.where(np.isfinite(y), excess, np.inf)))
    if excess.flat[worst] <= 0:
        return None
    return f"{np.count_nonzero(~(excess <= 0))} of {y.size} elements are wrong, the worst {y.flat[worst]:.9g}, " \
           f"not {value.flat[worst]:.9g}"
