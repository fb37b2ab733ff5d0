#!/usr/bin/env python3
"""Draws the ratio of ONNX Runtime's time to ours for each layer, from the JSON of scripts/demo/beside_onnxruntime.py.

usage: plot_speed.py SPEED.json OUT.png
"""
import json
import math
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main(source, target):
    with open(source) as file:
        rows = json.load(file)
    threads = sorted({row["threads"] for row in rows})
    names = sorted({row["layer"] for row in rows}, key=lambda name: next(
        row["ratio"] for row in rows if row["layer"] == name and row["threads"] == threads[0]))
    figure, axes = plt.subplots(figsize=(9, 0.28 * len(names) + 1.4))
    height = 0.8 / len(threads)
    for i, count in enumerate(threads):
        ratios = {row["layer"]: row["ratio"] for row in rows if row["threads"] == count}
        mean = math.exp(sum(math.log(r) for r in ratios.values()) / len(ratios))
        places = [at - 0.4 + height * (i + 0.5) for at in range(len(names))]
        axes.barh(places, [ratios.get(name, 0) for name in names], height,
                  label=f"{count} thread{'s' if count > 1 else ''}: geometric mean {mean:.2f}")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlabel("time of ONNX Runtime / our time, f32 (above 1: ours is faster)")
    axes.legend(loc="lower right")
    axes.set_ylim(-0.6, len(names) - 0.4)
    figure.tight_layout()
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
