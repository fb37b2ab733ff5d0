#!/usr/bin/env python3
"""Fits the costs of kernels for GPUs to times that collect.py measured, and writes kernels/device_costs.json:

    python bench/gpu/fit.py build/times.json [MORE.json ...]

The model is that of runtime/gpu/device_choice.cpp: a kernel takes as long as a full multiprocessor, as waiting blocks or as memory
does, whichever is most. Two thirds of the layers are fitted to, by least squares of logarithms. The last third is for the report:
how much slower the kernel that is estimated to be the best is than the best that was measured.
"""
import argparse
import datetime
import json
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

import numpy as np
from scipy.optimize import least_squares

from kernels.source import DEVICE_COSTS as DEVICE
from kernels.source import VARIANT_COSTS

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
COSTS = ROOT / "kernels" / "device_costs.json"
RESIDENT = "resident_blocks"  # which registers and shared memory decide, so it is not fitted
KERNEL = [key for key in VARIANT_COSTS if key != RESIDENT]
CORES = 128  # of a multiprocessor, each of which multiplies and adds once a cycle


def read(files):
    """The rows of all files, with times in cycles at the highest clock, and the device."""
    rows, device = [], None
    for file in files:
        results = json.loads(file.read_text())
        device = results["device"]
        peak = max(row["peak_gflops"] for row in results["rows"] if row["dtype"] != "f64") * 1e9
        clock = peak / (2 * CORES * results["multiprocessors"])
        for row in results["rows"]:
            rows.append({**row, "cycles": row["ms"] * 1e-3 * clock, "multiprocessors": results["multiprocessors"],
                         "kernel": row["variant"].split(":")[0]})
    return rows, device


def is_held_out(row):
    """By layer, whatever its batch and layout."""
    return zlib.crc32(row["layer"].rsplit("_n", 1)[0].encode()) % 3 == 0


class Model:
    """Parameters are logarithms: those of the device, then three for each kernel."""

    def __init__(self, rows, costs):
        self.kernels = sorted({row["kernel"] for row in rows})
        self.index = {kernel: i for i, kernel in enumerate(self.kernels)}
        known = costs["kernels"]
        self.resident = {kernel: known[kernel][RESIDENT] for kernel in self.kernels}
        self.start = np.log([*(costs[key] for key in DEVICE),
                             *(known[kernel][key] for kernel in self.kernels for key in KERNEL)])

    def arrays(self, rows):
        column = {key: np.array([row[key] for row in rows], float)
                  for key in ("blocks", "steps", "bytes", "combined_bytes", "strided", "multiprocessors")}
        column["kernel"] = np.array([self.index[row["kernel"]] for row in rows])
        column["resident"] = np.array([self.resident[row["kernel"]] for row in rows], float)
        column["log_cycles"] = np.log([row["cycles"] for row in rows])
        return column

    @staticmethod
    def estimate(parameters, a):
        launch, bandwidth, strided = np.exp(parameters[:3])
        step, step_latency, block_latency = np.exp(parameters[3:]).reshape(-1, 3)[a["kernel"]].T
        blocks = np.ceil(a["blocks"] / a["multiprocessors"])
        full = blocks * a["steps"] * step * np.where(a["strided"] > 0, strided, 1)
        waiting = np.ceil(blocks / a["resident"]) * (block_latency + a["steps"] * step_latency)
        per_cycle = bandwidth * a["multiprocessors"]
        combined = np.where(a["combined_bytes"] > 0, launch + a["combined_bytes"] / per_cycle, 0)
        return np.log(launch + np.maximum(np.maximum(full, waiting), a["bytes"] / per_cycle) + combined)

    def fit(self, rows):
        a = self.arrays(rows)
        return least_squares(lambda p: self.estimate(p, a) - a["log_cycles"], self.start, loss="soft_l1", f_scale=0.2).x

    def regrets(self, parameters, rows):
        """For each layer: the time of the kernel of the least estimate over the best time."""
        estimates = self.estimate(parameters, self.arrays(rows))
        by_layer = {}
        for row, estimate in zip(rows, estimates):
            by_layer.setdefault((row["layer"], row["dtype"], row["layout"]), []).append((estimate, row["cycles"]))
        return {layer: min(times)[1] / min(cycles for _, cycles in times) for layer, times in by_layer.items()}


def report(title, model, parameters, rows):
    regrets = model.regrets(parameters, rows)
    ratios = np.array(list(regrets.values()))
    print(f"{title}: {len(ratios)} layers, chosen over best: geometric mean {np.exp(np.log(ratios).mean()):.3f}, within 10%: "
          f"{(ratios < 1.1).mean():.0%}, worst {ratios.max():.2f} ({' '.join(max(regrets, key=regrets.get))})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", metavar="TIMES.json", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    rows, device = read(arguments.times)
    costs = json.loads(COSTS.read_text())
    timed = {row["kernel"] for row in rows}
    if unknown := sorted(timed - set(costs["kernels"])):
        sys.exit(f"{COSTS} has no first guess of {', '.join(unknown)}")
    if kept := sorted(set(costs["kernels"]) - timed):
        print(f"no times of {', '.join(kept)}: their costs stay")
    seen, held_out = [row for row in rows if not is_held_out(row)], [row for row in rows if is_held_out(row)]
    model = Model(rows, costs)
    report("before, held out", model, model.start, held_out)
    parameters = model.fit(seen)
    report("fitted to", model, parameters, seen)
    report("held out", model, parameters, held_out)
    parameters = model.fit(rows)
    report("all, fitted to all", model, parameters, rows)

    values = [float(f"{value:.4g}") for value in np.exp(parameters)]
    kernels = {kernel: {**dict(zip(KERNEL, values[3 + 3 * i:])), RESIDENT: model.resident[kernel]}
               for i, kernel in enumerate(model.kernels)}
    about = {"device": device, "date": datetime.date.today().isoformat(), "fitted_to": f"{len(rows)} times, by bench/gpu/fit.py"}
    head = {**about, **dict(zip(DEVICE, values))}
    lines = [f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items()]
    kernels = {**costs["kernels"], **kernels}
    table = ",\n".join(f"  {json.dumps(kernel)}: {json.dumps(kernels[kernel])}" for kernel in costs["kernels"])
    COSTS.write_text("{\n" + "".join(lines) + ' "kernels": {\n' + table + "\n }\n}\n")


if __name__ == "__main__":
    main()
