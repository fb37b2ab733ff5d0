#!/usr/bin/env python3
"""Writes a workload of plausible random layers, to look for those that are slow without being in any list:

    build/venv/bin/python bench/random_layers.py build/random.json
    scripts/bench.sh --peers ort --workload build/random.json --threads 1 --seconds 0.3

One to three axes, 1 to 1024 channels, kernels up to 16 (one axis: 64), strides up to 8; some are depthwise, grouped, dilated,
batched, or different along each axis. Each has work for some 10 microseconds to some milliseconds. A layer's name says the
seed and its number: with the same seed they are the same, however many are asked for.
"""
import argparse
import json
import math
import pathlib
import random
import secrets

from layers import bytes_touched
from make_models import output_extents

CHANNELS = [1, 2, 3, 4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 80, 96, 100, 112, 128, 160, 192, 256, 320, 384, 512, 640,
            768, 1024]
MULTIPLIES = (5e5, 3e8)  # least and most, of the whole layer
BYTES = 48 << 20         # at most, of all tensors
LONGEST = {1: 1 << 16, 2: 512, 3: 64}


def kernel_and_stride(chance, axes):
    shape = chance.random()
    if shape < 0.25:    # blocks that do not meet: U-Net and its like
        stride = chance.choice([2, 2, 2, 3, 4, 8])
        return stride, stride
    if shape < 0.65:    # twice the stride: GANs, vocoders
        stride = chance.choice([2, 2, 2, 3, 4, 5, 8])
        return min(2 * stride, 16), stride
    if shape < 0.95:    # small and odd
        return chance.choice([3, 3, 3, 5, 7, 9]), chance.choice([1, 2, 2, 3])
    longest = {1: 64, 2: 16, 3: 8}[axes]
    return chance.randint(1, longest), chance.randint(1, 8)


def channels(chance):
    """c, m and g."""
    kind = chance.random()
    c, m = chance.choice(CHANNELS), chance.choice(CHANNELS)
    if kind < 0.10:     # as many groups as channels
        c = max(c, 4)
        return c, c * chance.choice([1, 1, 1, 2]), c
    if kind < 0.20:
        g = chance.choice([2, 4, 8, 16, 32])
        return g * chance.choice([1, 2, 4, 8, 16, 32]), g * chance.choice([1, 2, 4, 8, 16, 32]), g
    if kind < 0.32:     # images, masks, waveforms
        return c, chance.choice([1, 1, 2, 3, 4]), 1
    return c, chance.choice([m, max(c // 2, 1), c]), 1


def propose(chance):
    axes = chance.choice([1, 1, 1, 2, 2, 2, 2, 2, 3, 3])
    c, m, g = channels(chance)
    pairs = [kernel_and_stride(chance, axes)] * axes
    if axes > 1 and chance.random() < 0.12:
        pairs = [kernel_and_stride(chance, axes) for _ in range(axes)]
    kernel, strides = [k for k, _ in pairs], [s for _, s in pairs]
    dilation = chance.choice([2, 2, 3, 4]) if chance.random() < 0.08 else 1
    pads, extra = [0] * axes, [0] * axes
    if chance.random() < 0.8:  # the output is the stride times the input
        for axis, (k, s) in enumerate(pairs):
            beyond = max((k - 1) * dilation + 1 - s, 0)
            extra[axis] = beyond % 2 if max(s, dilation) > 1 else 0
            pads[axis] = (beyond + extra[axis]) // 2
    n = chance.choice([1] * 9 + [2, 3, 4])
    per_position = n * c * m // g * math.prod(kernel)
    positions = math.exp(chance.uniform(*map(math.log, MULTIPLIES))) / per_position
    side = positions ** (1 / axes)
    spatial = [max(1, round(side * chance.uniform(0.7, 1.4))) for _ in range(axes)]

    def short(values):
        return values[0] if len(set(values)) == 1 else values
    return {"n": n, "c": c, "spatial": spatial, "m": m, "k": kernel, "s": short(strides), "p": short(pads),
            "op": short(extra), "g": g, "d": dilation}


def multiplies(layer):
    return layer["n"] * layer["c"] * layer["m"] // layer["g"] * math.prod(layer["k"]) * math.prod(layer["spatial"])


def plausible(layer):
    if max(layer["spatial"]) > LONGEST[len(layer["spatial"])] or min(output_extents(layer)) < 1:
        return False
    return MULTIPLIES[0] <= multiplies(layer) <= MULTIPLIES[1] and bytes_touched(layer) <= BYTES


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT.json", type=pathlib.Path)
    parser.add_argument("--seed", type=int, help="default: a random one")
    parser.add_argument("--count", type=int, default=500, help="default: 500")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    chance = random.Random(seed)
    layers = []
    while len(layers) < arguments.count:
        layer = propose(chance)
        if plausible(layer):
            layers.append({"name": f"random_{seed}_{len(layers):03}", **layer})
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text("[\n" + ",\n".join("  " + json.dumps(layer) for layer in layers) + "\n]\n")
    print(f"{len(layers)} layers with seed {seed} in {arguments.out}")


if __name__ == "__main__":
    main()
