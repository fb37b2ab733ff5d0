#!/usr/bin/env python3
"""A table and a plot of what `convtranspose tune` found: how the search went, and the default choice, the tuned kernels
and those of Halide's autoschedulers side by side.

    bench/tuning.py SCHEDULE_DIR [--auto AUTO_DIR] [--results RESULTS] --out DIR

SCHEDULE_DIR and AUTO_DIR are what --output named of searches `schedule` and `auto`; RESULTS a results.json of compare.py, of
default choices beside ONNX Runtime. Needs what bench/requirements.txt lists."""
import argparse
import json
import math
from pathlib import Path

import matplotlib

from layers import problem_line, read_workload

matplotlib.use("Agg")
import matplotlib.pyplot as plt

HERE = Path(__file__).resolve().parent


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()] if path.exists() else []


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def autoscheduled(folder):
    """The best time of each layer for each autoscheduler."""
    best = {}
    for line in lines(folder / "search.jsonl") if folder else []:
        if line["name"].startswith("auto_") and "ms" in line:
            key = (line["problem"], line["threads"], line["name"].rsplit("_", 1)[1])
            best[key] = min(best.get(key, math.inf), line["ms"])
    return best


def onnxruntime(file):
    """How many times as long as the default choice ONNX Runtime takes for each layer, measured beside it."""
    if not file:
        return {}
    results = json.loads(file.read_text())
    lines_of = {layer["name"]: problem_line(layer) for layer in read_workload(HERE / "workloads" / results["workload"])}
    return {(lines_of[row["layer"]], row["threads"]): row["ratio_ort"] for row in results["rows"] if "ratio_ort" in row}


def table(records, auto, ort):
    schedulers = sorted({key[2] for key in auto})
    head = ["layer", "threads", "default", "ms", "tuned", "ms", "gain", "default's share of peak",
            *(["tuned against ONNX Runtime"] if ort else []), *schedulers]
    rows = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for r in records:
        share = 2e-6 * r["macs"] / r["default_ms"] / r["peak_gflops"]
        row = [f"`{r['problem']}`", r["threads"], r["default"], f"{r['default_ms']:.4f}", r["variant"], f"{r['ms']:.4f}",
               f"{r['default_ms'] / r['ms']:.2f}", f"{100 * share:.0f}%"]
        if ort:
            ratio = ort.get((r["problem"], r["threads"]))
            row.append(f"{ratio * r['default_ms'] / r['ms']:.2f}" if ratio else "-")
        for scheduler in schedulers:
            ms = auto.get((r["problem"], r["threads"], scheduler))
            row.append(f"{ms:.4f}" if ms else "-")
        rows.append("| " + " | ".join(map(str, row)) + " |")
    low = [r for r in records if 2e-6 * r["macs"] / r["default_ms"] / r["peak_gflops"] < 0.7]
    rows += ["", f"Gain, geometric mean: {geometric_mean(r['default_ms'] / r['ms'] for r in records):.3f} over {len(records)} "
             f"layers; {geometric_mean(r['default_ms'] / r['ms'] for r in low):.3f} over the {len(low)} whose default is below "
             "70% of the multiply-add peak."]
    both = [(ort[key] * r["default_ms"] / r["ms"], ort[key]) for r in records if (key := (r["problem"], r["threads"])) in ort]
    if both:
        rows.append(f"ONNX Runtime takes {geometric_mean(a for a, _ in both):.2f} times as long as the tuned kernel (the default "
                    f"choice: {geometric_mean(b for _, b in both):.2f}), in the geometric mean over {len(both)} layers; least "
                    f"{min(a for a, _ in both):.2f}.")
    for scheduler in schedulers:
        both = [(auto[(r["problem"], r["threads"], scheduler)], r["ms"]) for r in records
                if (r["problem"], r["threads"], scheduler) in auto]
        rows.append(f"{scheduler} takes {geometric_mean(a / b for a, b in both):.2f} times as long as the tuned kernel, in the "
                    f"geometric mean over {len(both)} layers.")
    return "\n".join(rows) + "\n"


def plot(records, searched, auto, ort, file):
    figure, (left, right) = plt.subplots(1, 2, figsize=(13, 5), gridspec_kw={"width_ratios": [1, 1.6]})
    for r in records:
        best, course = r["default_ms"], [1.0]
        for line in searched:
            if line["problem"] == r["problem"] and line["threads"] == r["threads"] and line.get("ms", 0) > 0:
                best = min(best, line["ms"])
                course.append(r["default_ms"] / best)
        left.step(range(len(course)), course, where="post", linewidth=0.9, alpha=0.7)
    left.set_xlabel("measurements")
    left.set_ylabel("best so far, times as fast as the default choice")
    left.set_title("Search, a line for each layer")
    order = sorted(records, key=lambda r: r["default_ms"] / r["ms"])
    positions = range(len(order))
    right.bar(positions, [r["default_ms"] / r["ms"] for r in order], color="#4878a8", label="tuned")
    for scheduler, marker in zip(sorted({key[2] for key in auto}), "ov^"):
        points = [(i, r["default_ms"] / auto[(r["problem"], r["threads"], scheduler)]) for i, r in enumerate(order)
                  if (r["problem"], r["threads"], scheduler) in auto]
        right.plot(*zip(*points), marker, color="#a05050", markersize=4, label=scheduler) if points else None
    points = [(i, 1 / ort[key]) for i, r in enumerate(order) if (key := (r["problem"], r["threads"])) in ort]
    right.plot(*zip(*points), "D", color="#d08030", markersize=4, label="ONNX Runtime") if points else None
    right.axhline(1, color="black", linewidth=0.8)
    right.set_ylabel("times as fast as the default choice")
    right.set_xticks(list(positions), [" ".join(r["problem"].split()[1:8]) for r in order], rotation=90, fontsize=5)
    right.set_yscale("log")
    right.legend(loc="lower left", fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=130)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("schedule", type=Path, help="folder of a search")
    parser.add_argument("--auto", type=Path, help="folder of a search by autoschedulers")
    parser.add_argument("--results", type=Path, help="results.json of compare.py")
    parser.add_argument("--out", type=Path, required=True, help="folder for tuning.md and tuning.png")
    arguments = parser.parse_args()
    records = lines(arguments.schedule / "tuning.jsonl")
    if not records:
        parser.error(f"{arguments.schedule} has no tuning.jsonl with records")
    auto = autoscheduled(arguments.auto)
    arguments.out.mkdir(parents=True, exist_ok=True)
    ort = onnxruntime(arguments.results)
    text = table(records, auto, ort)
    (arguments.out / "tuning.md").write_text(text)
    plot(records, lines(arguments.schedule / "search.jsonl"), auto, ort, arguments.out / "tuning.png")
    print(text.split("\n\n")[-1], end="")


if __name__ == "__main__":
    main()
