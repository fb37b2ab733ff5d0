#!/usr/bin/env python3
"""Draws results.json of compare.py again: plots.py RESULTS.json OUT_DIR"""
import json
import pathlib
import re
import sys
import textwrap

import adjustText
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import matplotlib.ticker

from table import FEW, PLOTTED, geometric_mean, machine_lines, ratio_kinds, rows_of


def _save(figure, results, file):
    text = "\n".join(line for part in machine_lines(results) for line in textwrap.wrap(part, 190))
    figure.text(0.01, 0.005, text, fontsize=6, color="0.3", va="bottom")
    inches = 0.12 + 0.11 * (text.count("\n") + 1)
    figure.tight_layout(rect=(0, inches / figure.get_size_inches()[1], 1, 1))
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _log2(axis, subdivisions=(1,)):
    axis.set_major_locator(matplotlib.ticker.LogLocator(base=2, subs=subdivisions))
    axis.set_major_formatter(matplotlib.ticker.FormatStrFormatter("%g"))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())


def _span(rows, kinds):
    values = [row[key] for row in rows for key, _ in kinds if key in row]
    return max(values) / min(values)


def ratios(results, threads, file):
    kinds = [(key, who) for key, who in ratio_kinds(results) if key in PLOTTED]
    rows = [row for row in rows_of(results, threads) if kinds[0][0] in row]
    if not rows:
        return
    rows.sort(key=lambda row: row[kinds[0][0]])
    few = len(rows) <= FEW
    figure, axes = plt.subplots(figsize=(9, 0.3 * len(rows) + 1.8) if few else (9, 5))
    height = 0.8 / len(kinds)
    for i, (key, who) in enumerate(kinds):
        values = [row.get(key, float("nan")) for row in rows]
        there = [row[key] for row in rows if key in row]
        if not there:
            continue
        label = f"{who}: geometric mean {geometric_mean(there):.2f}"
        if few:
            places = [at + 0.4 - height * (i + 0.5) for at in range(len(rows))]
            axes.barh(places, [value - 1 for value in values], height, left=1, label=label)
        else:
            axes.plot(range(len(there)), sorted(there), marker=".", linestyle="none", markersize=3, label=label)
    if few:
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log", base=2)
        _log2(axes.xaxis, (1, 1.25, 1.5) if _span(rows, kinds) < 4 else (1,))
        axes.set_yticks(range(len(rows)), [row["layer"] for row in rows], fontsize=8)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel("time of the other / our time (above 1: ours is faster)")
    else:
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_yscale("log", base=2)
        _log2(axes.yaxis)
        axes.set_xlabel(f"{len(rows)} layers, in the order of the ratio")
        axes.set_ylabel("time of the other / our time")
    axes.set_title(f"{results['workload']}, {results['dtype']}, {threads} thread{'s' * (threads > 1)}", fontsize=10)
    axes.legend(loc="lower right")
    _save(figure, results, file)


def _family(row):
    """The family of the kernel that ran, which its name begins with (docs/kernel-names.md); all of the name of an algorithm."""
    return re.split(r"_(?:b?f16|f32|f64|[hb]16|i8|i16)_", row["convtranspose"]["variant"])[0]


def roofline(results, measured, file):
    rows = [row for row in rows_of(results, measured["threads"]) if "flops_per_byte" in row]
    if not rows:
        return
    peak, bandwidth = measured["fma_gflops"], measured["copy_gb_per_s"]
    figure, axes = plt.subplots(figsize=(9, 6))
    intensities = [row["flops_per_byte"] for row in rows]
    ridge = peak / bandwidth
    left, right = min(intensities + [ridge]) / 1.5, max(intensities + [ridge]) * 2.5
    axes.plot([left, ridge, right], [left * bandwidth, peak, peak], color="black", linewidth=1)
    axes.text(left * 1.1, peak, f"multiply-add peak {peak:.0f} GFLOP/s", va="center", fontsize=8)
    axes.text(left * 1.8, left * 1.2 * bandwidth, f"copy {bandwidth:.1f} GB/s", fontsize=8)
    families = sorted({_family(row) for row in rows})
    for family in families:
        of = [row for row in rows if _family(row) == family]
        axes.plot([row["flops_per_byte"] for row in of], [row["convtranspose"]["gflops"] for row in of], linestyle="none",
                  marker="o", markersize=4 if len(rows) <= FEW else 2, label=family)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    _log2(axes.xaxis)
    _log2(axes.yaxis)
    axes.set_xlim(left, right)
    axes.set_ylim(top=peak * 1.4)
    axes.set_xlabel("flops per byte of x, w, b and y, each touched once (a layer that stays in cache may be above the slope)")
    axes.set_ylabel("GFLOP/s")
    threads = f"{measured['threads']} thread{'s' * (measured['threads'] > 1)}"
    axes.set_title(f"{results['workload']}, {results['dtype']}, {threads}", fontsize=10)
    axes.legend(loc="lower right", title="family of kernels", fontsize=8)
    if len(rows) <= FEW:
        names = [axes.text(row["flops_per_byte"], row["convtranspose"]["gflops"], row["layer"], fontsize=6) for row in rows]
        adjustText.adjust_text(names, ax=axes, expand=(1.1, 1.4), time_lim=5,
                               arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.4})
    _save(figure, results, file)


def draw(results, out):
    for measured in results["measured"]:
        threads = measured["threads"]
        ratios(results, threads, out / f"ratio-{threads}.png")
        roofline(results, measured, out / f"roofline-{threads}.png")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    draw(json.loads(pathlib.Path(sys.argv[1]).read_text()), pathlib.Path(sys.argv[2]))
