#!/usr/bin/env python3
"""Times transposed convolutions in `convtranspose` and in ONNX Runtime, with the same number of threads and in turns,
and compares their results. Without --models: some layers of bench/workloads/layers.json. With it: every .onnx file of
a folder, each of one ConvTranspose node.

Times are the best of many runs over several rounds, with inputs and outputs allocated beforehand in both. The ratio is
ONNX Runtime's time over ours: above 1, ours is faster. (ONNX Runtime computes f16 in f32, between casts.)
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ["simplebaseline_4x4", "unet_up_256_112", "fcn_bilinear_x8_dw"]
FEWEST_RUNS = 5
NUMPY_TYPES = {TensorProto.FLOAT16: np.float16, TensorProto.FLOAT: np.float32, TensorProto.DOUBLE: np.float64}
TOLERANCE = {np.float16: 2e-3, np.float32: 1e-5, np.float64: 1e-12}  # of the largest magnitude of the output

COLUMNS = "{:<24} {:>7} {:>10} {:>10} {:>7} {:>9} {:>7} {:>9}  {}"


class Layer:
    """One model, ready to be timed by both."""

    def __init__(self, file, threads, command):
        self.file, self.threads, self.command = file, threads, command
        model = onnx.load(file)
        nodes = [node.op_type for node in model.graph.node if node.op_type != "Constant"]
        if nodes != ["ConvTranspose"]:
            raise ValueError(f"is not one ConvTranspose node, but {nodes}")
        constants = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in constants]
        random = np.random.default_rng(0)
        self.feeds = {}
        for value in inputs:
            kind = value.type.tensor_type
            shape = [dim.dim_value for dim in kind.shape.dim]
            if kind.elem_type not in NUMPY_TYPES or not shape or not all(shape):
                raise ValueError(f"input {value.name} has no static shape, or no type of f16, f32, f64")
            self.feeds[value.name] = (random.random(shape) - 0.5).astype(NUMPY_TYPES[kind.elem_type])

        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.log_severity_level = 4
        self.session = ort.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        self.theirs = self.session.run(None, self.feeds)[0]
        self.binding = self.session.io_binding()
        for name, value in self.feeds.items():
            self.binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(value))
        self.binding.bind_ortvalue_output(model.graph.output[0].name, ort.OrtValue.ortvalue_from_numpy(self.theirs))

    def difference(self):
        """The largest, relative to the largest magnitude; ValueError where it is too much."""
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            files = []
            for name, value in self.feeds.items():
                files.append(folder / f"{len(files)}.pb")
                files[-1].write_bytes(numpy_helper.from_array(value, name).SerializeToString())
            self.call("run", self.file, *files, "--output-dir", folder / "out")
            ours = numpy_helper.to_array(onnx.load_tensor(folder / "out" / self.file.stem / "output_0.pb"))
        theirs = self.theirs.astype(np.float64)
        difference = float(np.abs(ours.astype(np.float64) - theirs).max() / np.abs(theirs).max())
        allowed = TOLERANCE[ours.dtype.type]
        if not difference <= allowed:
            raise ValueError(f"results differ by {difference:.1e} of the largest magnitude, more than {allowed:.0e}")
        return difference

    def time_ours(self, seconds):
        return json.loads(self.call("bench", "--json", "--min-time", str(seconds), self.file))[0]

    def time_theirs(self, seconds):
        for _ in range(2):
            self.session.run_with_iobinding(self.binding)
        times = []
        start = now = time.perf_counter()
        while len(times) < FEWEST_RUNS or now - start < seconds:
            begin = time.perf_counter()
            self.session.run_with_iobinding(self.binding)
            now = time.perf_counter()
            times.append(now - begin)
        return min(times) * 1e3

    def call(self, command, *arguments):
        line = [self.command, command, "--threads", str(self.threads), *arguments]
        result = subprocess.run(line, check=False, capture_output=True, text=True)
        if result.returncode:
            raise ValueError(result.stderr.strip() or f"{command} ended with {result.returncode}")
        return result.stdout


def measure(layer, rounds, seconds):
    difference = layer.difference()
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(layer.time_ours(seconds / rounds))
        theirs.append(layer.time_theirs(seconds / rounds))
    best = min(ours, key=lambda row: row["best_ms"])
    return {"layer": layer.file.stem, "threads": layer.threads, "convtranspose_ms": best["best_ms"],
            "onnxruntime_ms": min(theirs), "ratio": min(theirs) / best["best_ms"], "gflops": best["gflops"],
            "peak_percent": best["peak_percent"], "difference": difference, "variant": best["variant"],
            "isa": best["isa"]}


def print_row(row):
    print(COLUMNS.format(row["layer"], row["threads"], f"{row['convtranspose_ms']:.4f}", f"{row['onnxruntime_ms']:.4f}",
                         f"{row['ratio']:.2f}", f"{row['gflops']:.1f}", f"{row['peak_percent']:.1f}",
                         f"{row['difference']:.1e}", f"{row['variant']} {row['isa']}"), flush=True)


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", metavar="DIR", type=pathlib.Path, help="time the .onnx files of this folder")
    parser.add_argument("--only", metavar="TEXT", default="", help="only those whose name contains this")
    parser.add_argument("--threads", metavar="N", type=int, nargs="+", default=[1], help="thread counts (default: 1)")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each takes per layer (default: 3)")
    parser.add_argument("--min-time", metavar="SECONDS", type=float, default=0.6,
                        help="time to measure for, per layer and engine, over all rounds (default: 0.6)")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="write the rows there too")
    parser.add_argument("--convtranspose", type=pathlib.Path, default=ROOT / "build" / "bin" / "convtranspose")
    arguments = parser.parse_args()
    ort.set_default_logger_severity(4)

    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as folder:
        models = arguments.models
        if not models:
            models = pathlib.Path(folder)
            for name in LAYERS:
                line = [sys.executable, ROOT / "bench" / "make_models.py", ROOT / "bench" / "workloads" / "layers.json",
                        models, "--only", name]
                subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
        files = sorted(file for file in models.glob("*.onnx") if arguments.only in file.stem)
        if not files:
            sys.exit(f"no models in {models}")
        heading = ("layer", "threads", "ours ms", "ORT ms", "ratio", "GFLOP/s", "peak %", "differ", "variant")
        print(COLUMNS.format(*heading))
        for threads in arguments.threads:
            for file in files:
                try:
                    layer = Layer(file, threads, arguments.convtranspose)
                    rows.append(measure(layer, arguments.rounds, arguments.min_time))
                    print_row(rows[-1])
                except Exception as e:  # also ONNX Runtime's own, where it has no kernel for a type
                    failed += 1
                    print(f"{file.stem}: {str(e).splitlines()[0]}", file=sys.stderr, flush=True)
    for threads in arguments.threads:
        ratios = [row["ratio"] for row in rows if row["threads"] == threads]
        if ratios:
            print(f"geometric mean of the ratio, {len(ratios)} layers, {threads} thread{'s' * (threads > 1)}: "
                  f"{geometric_mean(ratios):.3f}   (onnxruntime {ort.__version__})")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
