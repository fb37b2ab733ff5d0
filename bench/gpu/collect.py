#!/usr/bin/env python3
"""Times every kernel that can compute each layer on a GPU, each with its sums in each number of parts, for fit.py:

    python bench/gpu/collect.py --device cuda --out build/times.json

The layers are those of bench/workloads, in each type, layout and batch that is asked for. OUT gets one row for each candidate, with
the work that the plan's estimate is made of (docs/gpu.md) and the best time in ms.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import onnx

from layers import read_workload
from make_models import TYPES, make_model, make_quantized_model

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CANDIDATE = re.compile(r"^  [ *] (\S+) +\S+: (\d+) blocks of (\S+) steps, (\S+) bytes(?: and (\S+))?(, strided)?$")
DEVICE = re.compile(r"^device \w+: (.*), (\d+) multiprocessors$")


def write_models(layers, dtype, batch, folder):
    files = []
    for layer in layers:
        batched = {**layer, "n": batch, "name": f"{layer['name']}_n{batch}"}
        model = make_quantized_model(batched) if dtype == "u8" else make_model(batched, dtype)
        files.append(folder / f"{batched['name']}.onnx")
        onnx.save(model, files[-1])
    return files


def called(*command):
    done = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
    print(done.stderr, end="", file=sys.stderr, flush=True)
    return done.stdout


def work_of(text):
    """Reads the text of `explain --all`: the work of each candidate of each layer, {(layer, candidate): work}, and the device."""
    work, device, layer = {}, {}, None
    for line in text.splitlines():
        if heading := re.match(r"^(?:\S+: )?\w*ConvTranspose '(\S+)': ", line):
            layer = heading.group(1)
        if found := DEVICE.match(line):
            device = {"device": found.group(1), "multiprocessors": int(found.group(2))}
        if found := CANDIDATE.match(line):
            name, blocks, steps, moved, combined, strided = found.groups()
            work[layer, name] = {"blocks": int(blocks), "steps": float(steps), "bytes": float(moved),
                                 "combined_bytes": float(combined or 0), "strided": bool(strided)}
    return work, device


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "opencl"), required=True)
    parser.add_argument("--out", metavar="OUT", type=pathlib.Path, required=True, help="the file to write")
    parser.add_argument("--workload", metavar="FILE", type=pathlib.Path, action="append",
                        help="this one; may be repeated (default: all of bench/workloads)")
    parser.add_argument("--dtype", choices=[*TYPES, "u8"], nargs="+", default=["f32"])
    parser.add_argument("--layout", choices=("nchw", "nhwc"), nargs="+", default=["nchw"])
    parser.add_argument("--batch", metavar="N", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--only", metavar="TEXT", default="", help="only layers whose name contains this")
    parser.add_argument("--seconds", type=float, default=0.01, help="to run each candidate for, at least (default: 0.01)")
    parser.add_argument("--convtranspose", metavar="FILE", type=pathlib.Path,
                        default=ROOT / "build" / "bin" / "convtranspose", help="ours (default: the one in build/)")
    arguments = parser.parse_args()
    layers = {}
    for file in arguments.workload or sorted((ROOT / "bench" / "workloads").glob("*.json")):
        layers.update({layer["name"]: layer for layer in read_workload(file)
                       if layer["n"] == 1 and arguments.only in layer["name"]})
    results = {"rows": []}
    for dtype in arguments.dtype:
        for batch in arguments.batch:
            with tempfile.TemporaryDirectory() as folder:
                models = write_models(layers.values(), dtype, batch, pathlib.Path(folder))
                for layout in arguments.layout:
                    common = ["--device", arguments.device, "--layout", layout, *models]
                    work, device = work_of(called(arguments.convtranspose, "explain", "--all", *common))
                    results.update(device)
                    for row in json.loads(called(arguments.convtranspose, "bench", "--json", "--candidates", 1000,
                                                 "--min-time", arguments.seconds, *common)):
                        results["rows"].append({"layer": row["name"], "dtype": dtype, "layout": layout,
                                                "variant": row["variant"], "ms": row["best_ms"],
                                                "peak_gflops": row["peak_gflops"],
                                                **work[row["name"], row["variant"]]})
            arguments.out.write_text(json.dumps(results) + "\n")
            print(f"{len(results['rows'])} times in {arguments.out}", flush=True)


if __name__ == "__main__":
    main()
