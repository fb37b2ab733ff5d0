#!/usr/bin/env python3
"""Times PyTorch's modules and those of convtranspose.torch on a workload, in turns, and compares their results.

    torch_modules.py [--workload FILE] [--threads 1 2] [--seconds S] [--rounds N] [--channels-last] [--compile] [--json FILE]
                     [LAYER...]
    torch_modules.py --networks [--fuse] ... [NETWORK...]     the whole networks of bench/networks, as modules of PyTorch

torch and the Python package must be importable: build/torch-venv/bin/python, which scripts/test.sh --torch makes, with
PYTHONPATH=build/bindings/python. The time of a layer is the least mean of a round; the ratio is that of PyTorch's over ours.
"""
import argparse
import copy
import functools
import json
import math
import pathlib
import sys
import time

import convtranspose
import convtranspose.torch as ct
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "networks"))

from in_pytorch import torch_module

from networks import NETWORKS

HERE = pathlib.Path(__file__).resolve().parent


def per_axis(layer, key):
    value = layer[key]
    return value if isinstance(value, list) else [value] * len(layer["spatial"])


def layer_module(layer):
    """PyTorch's module of a layer, with random weights, and the shape of its x."""
    kind = (torch.nn.ConvTranspose1d, torch.nn.ConvTranspose2d, torch.nn.ConvTranspose3d)[len(layer["spatial"]) - 1]
    module = kind(layer["c"], layer["m"], layer["k"], stride=per_axis(layer, "s"), padding=per_axis(layer, "p"),
                  output_padding=per_axis(layer, "op"), dilation=per_axis(layer, "d"), groups=layer["g"]).eval()
    return module, [layer["n"], layer["c"], *layer["spatial"]]


def network_module(name):
    """A network as a module of PyTorch, and the shape of its x."""
    model = NETWORKS[name]()
    return torch_module(model), [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]


def subjects(options):
    """(name, function that makes PyTorch's module and the shape of x) for each layer or network that the options select."""
    if options.networks:
        every = {name: functools.partial(network_module, name) for name in NETWORKS}
    else:
        every = {layer["name"]: functools.partial(layer_module, layer) for layer in json.loads(options.workload.read_text())}
    return [(name, make) for name, make in every.items() if not options.names or any(part in name for part in options.names)]


def mean_seconds(module, x, seconds):
    calls, begin = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - begin) < seconds or calls == 0:
        module(x)
        calls += 1
    return elapsed / calls


def measure(make, options):
    """Seconds of a call of PyTorch's module and of ours, and how far their results differ, as a part of the largest magnitude."""
    torch.manual_seed(1)
    stock, shape = make()  # outside of inference mode, as models are made
    ours = copy.deepcopy(stock)
    (ct.fuse_ if options.fuse else ct.replace_)(ours)
    x = torch.rand(shape) - 0.5
    if options.channels_last and x.dim() > 3:
        memory_format = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
        x = x.to(memory_format=memory_format)
        stock.to(memory_format=memory_format)
    pair = [stock, ours]
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


def overhead(compiled):
    """Prints what calls of a tiny layer cost, which is nearly all overhead: without gradients, and forward where x needs one."""
    stock, x = torch.nn.ConvTranspose1d(4, 4, 3).eval(), torch.rand(1, 4, 16)
    ours = copy.deepcopy(stock)
    ct.replace_(ours)
    pair = [torch.compile(module) if compiled else module for module in (stock, ours)]
    for gradients in (False, True):
        x = x.clone().requires_grad_(gradients)
        with torch.set_grad_enabled(gradients):
            times = [min(times) for times in zip(*[[1e6 * mean_seconds(module, x, 0.1) for module in pair] for _ in range(10)])]
        print(f"a tiny layer{', with gradients' if gradients else ''}: PyTorch {times[0]:.1f} us, ours {times[1]:.1f} us, "
              f"{times[1] - times[0]:+.1f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", type=pathlib.Path, default=HERE / "workloads" / "layers.json")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=1.0, help="for each layer and module")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--channels-last", action="store_true", help="x and PyTorch's weights in that memory format, in 2d and 3d")
    parser.add_argument("--compile", action="store_true", help="both by torch.compile")
    parser.add_argument("--networks", action="store_true", help="whole networks, instead of layers")
    parser.add_argument("--fuse", action="store_true", help="ours by fuse_() instead of replace_()")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="names, or parts of names; all if none is given")
    options = parser.parse_args()
    chosen = subjects(options)
    if not chosen:
        parser.error(f"there is nothing named {' or '.join(options.names)}")
    print(f"PyTorch {torch.__version__}, convtranspose {convtranspose.version()}, {options.rounds} rounds")
    results = []
    for threads in options.threads:
        torch.set_num_threads(threads)
        ratios = {}
        print(f"\n{f'{threads} thread(s)':32} {'PyTorch ms':>10} {'ours ms':>10} {'ratio':>7}  difference")
        for name, make in chosen:
            stock, ours, difference = measure(make, options)
            ratios[name] = stock / ours
            results.append({"name": name, "threads": threads, "stock": stock, "ours": ours, "difference": difference})
            print(f"{name:32} {1e3 * stock:10.4f} {1e3 * ours:10.4f} {stock / ours:7.2f}  {difference:.1e}", flush=True)
        least = min(ratios, key=ratios.get)
        mean = math.exp(math.fsum(map(math.log, ratios.values())) / len(ratios))
        overhead(options.compile)
        print(f"geometric mean {mean:.2f}, least {ratios[least]:.2f} ({least})")
    if options.json:
        options.json.write_text(json.dumps({"torch": torch.__version__, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
