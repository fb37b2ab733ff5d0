#!/usr/bin/env python3
"""Times whole networks in ONNX Runtime with and without the execution provider, in turns, and compares their outputs.

    networks_benchmark.py [--threads N] [--types f32 u8] [--seconds S] [--json FILE] [--plot FILE] [NETWORK...]
    networks_benchmark.py --layers bench/workloads/layers.json    each layer as a network of its own

The Python package with its execution provider must be importable. For each network: the time of a run of the whole, the part of it
that transposed convolutions take, and how far outputs differ, as a part of the largest magnitude. The part is taken from ONNX
Runtime's profile: that of ConvTranspose, of the nodes around it that the provider computes with it, and of all that the provider
computes. u8 is made by quantize_static, with random calibration.
"""
import argparse
import collections
import functools
import json
import logging
import math
import pathlib
import sys
import tempfile
import time

import convtranspose.onnxruntime as ct
import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from layers import read_workload
from make_models import make_model
from networks import NETWORKS

CALIBRATIONS = 2
FOLLOWERS = ("BatchNormalization", "Add", "Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "QuantizeLinear")


class Draws(CalibrationDataReader):
    def __init__(self, shape):
        random = np.random.default_rng(2)
        self.values = iter([{"x": random.standard_normal(shape).astype(np.float32)} for _ in range(CALIBRATIONS)])

    def get_next(self):
        return next(self.values, None)


def quantized(proto, shape, folder):
    source, target = folder / "float.onnx", folder / "quantized.onnx"
    onnx.save(proto, source)
    # quantize_static expects as many scales as a group has channels.
    convs = [node for node in proto.graph.node if node.op_type == "ConvTranspose"]
    groups = any(attribute.name == "group" and attribute.i > 1 for node in convs for attribute in node.attribute)
    quantize_static(source, target, Draws(shape), quant_format=QuantFormat.QDQ, per_channel=not groups,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
    return onnx.load(target)


def layer_model(layer):
    proto = make_model(layer, "f32")
    proto.opset_import[0].version = 13  # the first with scales for each channel
    return proto


def session_of(proto, threads, with_provider, profile=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.force_spinning_stop", "1") # or threads of one session would disturb the other
    if profile:
        options.enable_profiling, options.profile_file_prefix = True, str(profile)
    if with_provider:
        return ct.session(proto, options)
    return ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def neighbours(proto):
    """The names of the ConvTranspose nodes, and of those that the provider computes with them: DequantizeLinear before them, and
    what follows and is read by nobody else."""
    nodes = proto.graph.node
    readers = collections.Counter(name for node in nodes for name in node.input)
    convs = [node for node in nodes if node.op_type == "ConvTranspose"]
    read, written = {name for node in convs for name in node.input}, {name for node in convs for name in node.output}
    names = {node.name for node in convs}
    for node in nodes:  # in the order of computation
        if node.op_type == "DequantizeLinear" and node.output[0] in read:
            names.add(node.name)
        if node.op_type in FOLLOWERS and any(name in written and readers[name] == 1 for name in node.input):
            names.add(node.name)
            if node.op_type != "QuantizeLinear":
                written.add(node.output[0])
    return names


def shares(proto, threads, feeds, runs, folder):
    """Seconds of one run that transposed convolutions take, without and with the provider: for each node the least of several runs,
    in turns."""
    sessions = [session_of(proto, threads, with_provider, folder / f"profile{with_provider}") for with_provider in (False, True)]
    for _ in range(runs):
        for session in sessions:
            session.run(None, feeds)
    names, parts = neighbours(proto), []
    for session in sessions:
        least = {}
        for event in json.loads(pathlib.Path(session.end_profiling()).read_text(encoding="utf-8")):
            if event.get("cat") != "Node" or not event["name"].endswith("_kernel_time"):
                continue
            node = event["name"].removesuffix("_kernel_time")
            if event["args"]["provider"] == ct.PROVIDER or event["args"]["op_name"] == "ConvTranspose" or node in names:
                least[node] = min(least.get(node, math.inf), event["dur"] * 1e-6)
        parts.append(sum(least.values()))
    return parts


def in_turns(sessions, feeds, seconds):
    """The least time of a run of each session."""
    least = [math.inf] * len(sessions)
    for session in sessions:
        session.run(None, feeds)
    end, rounds = time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 3:
        for i, session in enumerate(sessions):
            start = time.perf_counter()
            session.run(None, feeds)
            least[i] = min(least[i], time.perf_counter() - start)
        rounds += 1
    return least


def measure(name, make, dtype, threads, seconds):
    proto = make()
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    feeds = {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        if dtype == "u8":
            proto = quantized(proto, shape, folder)
        sessions = [session_of(proto, threads, with_provider) for with_provider in (False, True)]
        plain, ours = (session.run(None, feeds)[0] for session in sessions)
        whole = in_turns(sessions, feeds, seconds)
        del sessions
        runs = max(5, min(50, int(seconds / whole[0] / 2)))
        parts = shares(proto, threads, feeds, runs, folder)
    return {"network": name, "dtype": dtype, "threads": threads, "plain_s": whole[0], "ours_s": whole[1],
            "plain_part_s": parts[0], "ours_part_s": parts[1],
            "difference": float(np.abs(ours - plain).max() / np.abs(plain).max())}


def plot(rows, file):
    """Draws how many times as fast each network and its transposed convolutions are."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    types = sorted({row["dtype"] for row in rows})
    figure, axes = plt.subplots(1, len(types), figsize=(4.5 * len(types), 3.2), squeeze=False)
    for axis, dtype in zip(axes[0], types):
        of_type = [row for row in rows if row["dtype"] == dtype]
        for offset, (label, plain, ours) in ((0.2, ("transposed convolutions", "plain_part_s", "ours_part_s")),
                                             (-0.2, ("whole network", "plain_s", "ours_s"))):
            axis.barh([i + offset for i in range(len(of_type))], [row[plain] / row[ours] - 1 for row in of_type], 0.4, left=1,
                      label=label)
        axis.axvline(1, color="black", linewidth=0.8)
        axis.set_yticks(range(len(of_type)), [row["network"] for row in of_type])
        axis.set_title(f"{dtype}, {rows[0]['threads']} threads: times as fast as ONNX Runtime alone", fontsize=8)
        axis.tick_params(labelsize=8)
    axes[0][-1].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", choices=[[], *NETWORKS], metavar="NETWORK", help=", ".join(NETWORKS))
    parser.add_argument("--layers", type=pathlib.Path, help="a workload, whose layers are timed instead of networks")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--types", nargs="+", default=["f32", "u8"], choices=["f32", "u8"])
    parser.add_argument("--seconds", type=float, default=2, help="for the two sessions of a network")
    parser.add_argument("--json", type=pathlib.Path, help="writes the figures too")
    parser.add_argument("--plot", type=pathlib.Path, help="draws the figures into a file")
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # quantize_static advises on each constant
    print(f"onnxruntime {ort.__version__}, {options.threads} threads; milliseconds without and with the provider")
    print("| network | type | whole | | | transposed convolutions | | | difference |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    if options.layers:
        models = {layer["name"]: functools.partial(layer_model, layer) for layer in read_workload(options.layers)}
    else:
        models = {name: NETWORKS[name] for name in options.networks or NETWORKS}
    rows = []
    for dtype in options.types:
        for name, make in models.items():
            row = measure(name, make, dtype, options.threads, options.seconds)
            rows.append(row)
            times = [row[key] * 1e3 for key in ("plain_s", "ours_s", "plain_part_s", "ours_part_s")]
            print(f"| {name} | {dtype} | {times[0]:.2f} | {times[1]:.2f} | {times[0] / times[1]:.2f} | {times[2]:.2f} | "
                  f"{times[3]:.2f} | {times[2] / times[3]:.2f} | {row['difference']:.1e} |", flush=True)
        chosen = [row for row in rows if row["dtype"] == dtype]
        for what, keys in (("whole", ("plain_s", "ours_s")), ("transposed convolutions", ("plain_part_s", "ours_part_s"))):
            ratios = [row[keys[0]] / row[keys[1]] for row in chosen]
            print(f"\n{dtype}, {what}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} times as fast in the geometric "
                  f"mean, {min(ratios):.2f} the least", flush=True)
        print()
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
