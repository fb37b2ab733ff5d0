#!/usr/bin/env python3
"""Times light weights and dynamic quantization beside f32: light_weights.py [--workload FILE] [--isa ISA] [--threads N]

For each layer as many plans are made as have --bytes of f32 weights together. Their runs in turn find weights in memory, as those
of a model that is larger than the caches do ("memory"); runs of one plan find them in a cache ("cache"). Types take turns in each
round, and the least time of all rounds counts. The table has ratios: time of f32 / time of the type. The Python package must be
importable.
"""
import argparse
import math
import pathlib
import statistics
import time

import convtranspose
import ml_dtypes
import numpy as np

from layers import read_workload, tensors
from make_models import per_axis

HERE = pathlib.Path(__file__).resolve().parent
TYPES = ("f32", "f16", "bf16", "s8", "dynamic")


def weights(w, name):
    """The weights as a type, and the arguments of a plan that go with them."""
    if name in ("f32", "f16", "bf16"):
        return w.astype({"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[name]), {}
    axes = (0, *range(2, w.ndim))
    scale = np.abs(w).max(axis=axes) / 127
    rounded = np.rint(w / scale.reshape(1, -1, *[1] * (w.ndim - 2))).astype(np.int8)
    return rounded, {"w_scale": scale.astype(np.float32), **({"quantizes_x": True} if name == "dynamic" else {})}


def plans_of(layer, name, count, settings):
    _, x, w, b = tensors(layer)
    typed, more = weights(w, name)
    if layer["g"] > 1 and "w_scale" in more:
        more["w_scale"] = np.tile(more["w_scale"], layer["g"])
    pads = per_axis(layer, "p")
    attributes = {"strides": per_axis(layer, "s"), "pads": [*pads, *pads], "dilations": per_axis(layer, "d"),
                  "output_padding": per_axis(layer, "op"), "group": layer["g"]}
    return x, [convtranspose.Plan(typed, b, x_shape=x.shape, x_dtype="float32", **attributes, **more, **settings)
               for _ in range(count)]


def seconds(plans, x, y, runs):
    begin = time.perf_counter()
    for i in range(runs):
        plans[i % len(plans)](x, out=y)
    return (time.perf_counter() - begin) / runs


def times(layer, args):
    """The least seconds of a run, by type, with weights in memory and in a cache; and the plans' descriptions."""
    settings = {"threads": args.threads, "isa": args.isa}
    bytes_of_weights = 4 * layer["c"] * layer["m"] // layer["g"] * math.prod(layer["k"])
    count = max(2, min(500, args.bytes // bytes_of_weights))
    made = {name: plans_of(layer, name, count, settings) for name in TYPES}
    y = {name: plans[0](x) for name, (x, plans) in made.items()}
    least = {name: [math.inf, math.inf] for name in TYPES}
    for _ in range(args.rounds):
        for name, (x, plans) in made.items():
            memory = seconds(plans, x, y[name], count)
            runs = max(1, min(20, int(0.01 / memory)))
            cache = seconds(plans[:1], x, y[name], runs + 1)
            least[name] = [min(least[name][0], memory), min(least[name][1], cache)]
    return least, {name: plans[0] for name, (_, plans) in made.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default=HERE / "workloads" / "few_positions.json")
    parser.add_argument("--isa")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bytes", type=int, default=600_000_000)
    args = parser.parse_args()
    print("| layer | f32, memory | " + " | ".join(f"{name}, memory | cache" for name in TYPES[1:]) + " |")
    print("|---|--:|" + "--:|--:|" * (len(TYPES) - 1))
    ratios = {name: ([], []) for name in TYPES[1:]}
    for layer in read_workload(args.workload):
        least, plans = times(layer, args)
        cells = [f"{least['f32'][0] * 1e6:.0f} us"]
        for name in TYPES[1:]:
            pair = [least["f32"][i] / least[name][i] for i in (0, 1)]
            for kept, ratio in zip(ratios[name], pair):
                kept.append(ratio)
            mark = "" if name == "dynamic" or plans[name].packed_bytes < 0.9 * plans["f32"].packed_bytes else " (f32)"
            cells += [f"{pair[0]:.2f}{mark}", f"{pair[1]:.2f}"]
        print(f"| {layer['name']} | " + " | ".join(cells) + " |", flush=True)
    means = [f"{statistics.geometric_mean(r):.2f}" for name in TYPES[1:] for r in ratios[name]]
    worst = [f"{min(r):.2f}" for name in TYPES[1:] for r in ratios[name]]
    print("| geometric mean | | " + " | ".join(means) + " |")
    print("| least | | " + " | ".join(worst) + " |")


if __name__ == "__main__":
    main()
