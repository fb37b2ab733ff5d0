#!/usr/bin/env python3
"""Times PyTorch's modules and those of convtranspose.torch on a workload, in turns, and compares their results.

    torch_modules.py [--workload FILE] [--threads 1 2] [--seconds S] [--rounds N] [--channels-last] [--compile] [--json FILE]
                     [LAYER...]

torch and the Python package must be importable: build/torch-venv/bin/python, which scripts/test.sh --torch makes, with
PYTHONPATH=build/bindings/python. The time of a layer is the least mean of a round; the ratio is that of PyTorch's over ours.
"""
import argparse
import copy
import json
import math
import pathlib
import time

import convtranspose
import convtranspose.torch as ct
import torch

HERE = pathlib.Path(__file__).resolve().parent


def per_axis(layer, key):
    value = layer[key]
    return value if isinstance(value, list) else [value] * len(layer["spatial"])


def modules(layer):
    """PyTorch's module and ours, of the same random weights."""
    kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[len(layer["spatial"]) - 1]
    stock = kind(layer["c"], layer["m"], layer["k"], stride=per_axis(layer, "s"), padding=per_axis(layer, "p"),
                 output_padding=per_axis(layer, "op"), dilation=per_axis(layer, "d"), groups=layer["g"]).eval()
    ours = copy.deepcopy(stock)
    ct.replace_(ours)
    return stock, ours


def mean_seconds(module, x, seconds):
    calls, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds or calls == 0:
        module(x)
        calls += 1
    return elapsed / calls


def measure(layer, options):
    """Seconds of a call of PyTorch's module and of ours, and how far their results differ, as a part of the largest magnitude."""
    torch.manual_seed(1)
    pair = modules(layer)  # outside of inference mode, as models are made
    x = torch.rand(layer["n"], layer["c"], *layer["spatial"]) - 0.5
    if options.channels_last and x.dim() > 3:
        memory_format = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
        x = x.to(memory_format=memory_format)
        pair[0].to(memory_format=memory_format)
    if options.compile:
        torch._dynamo.reset()
        pair = [torch.compile(module, fullgraph=True) for module in pair]
    with torch.inference_mode():
        ys = [[module(x) for _ in range(3)][-1] for module in pair]
        difference = float((ys[0] - ys[1]).abs().max() / ys[0].abs().max())
        times = [math.inf, math.inf]
        for _ in range(options.rounds):
            for index, module in enumerate(pair):
                times[index] = min(times[index], mean_seconds(module, x, options.seconds / options.rounds))
    return *times, difference


def overhead():
    """Prints what a call of a tiny layer costs, which is nearly all overhead."""
    layer = {"c": 4, "m": 4, "spatial": [16], "k": [3], "s": 1, "p": 0, "op": 0, "d": 1, "g": 1}
    pair, x = modules(layer), torch.rand(1, 4, 16)
    with torch.inference_mode():
        times = [min(times) for times in zip(*[[1e6 * mean_seconds(module, x, 0.1) for module in pair] for _ in range(10)])]
    print(f"a tiny layer: PyTorch {times[0]:.1f} us, ours {times[1]:.1f} us, {times[1] - times[0]:+.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", type=pathlib.Path, default=HERE / "workloads" / "layers.json")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each layer and module")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--channels-last", action="store_true", help="x and PyTorch's weights in that memory format, in 2d and 3d")
    parser.add_argument("--compile", action="store_true", help="both by torch.compile")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("layers", nargs="*", metavar="LAYER", help="names, or parts of names; all layers if none is given")
    options = parser.parse_args()
    layers = [layer for layer in json.loads(options.workload.read_text())
              if not options.layers or any(part in layer["name"] for part in options.layers)]
    if not layers:
        parser.error(f"{options.workload} has no layer of such a name")
    print(f"PyTorch {torch.__version__}, convtranspose {convtranspose.version()}, {options.rounds} rounds")
    results = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        ratios = {}
        print(f"\n{'layer, ' + str(threads) + ' thread(s)':32} {'PyTorch ms':>10} {'ours ms':>10} {'ratio':>7}  difference")
        for layer in layers:
            stock, ours, difference = measure(layer, options)
            ratios[layer["name"]] = stock / ours
            results.append({"layer": layer["name"], "threads": threads, "stock": stock, "ours": ours, "difference": difference})
            print(f"{layer['name']:32} {1e3 * stock:10.4f} {1e3 * ours:10.4f} {stock / ours:7.2f}  {difference:.1e}", flush=True)
        least = min(ratios, key=ratios.get)
        mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
        overhead()
        print(f"geometric mean {mean:.2f}, least {ratios[least]:.2f} ({least})")
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
