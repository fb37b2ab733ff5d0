#!/usr/bin/env python3
"""How far the choices of `convtranspose` are behind the best candidate, for each layer of a workload:

    bench/random_layers.py build/random.json
    bench/choices.py --convtranspose build/bin/convtranspose --workload build/random.json --layout nhwc --isa avx2

Times every candidate, variant or method, whose estimate is within --factor of the least, and the choice. Where that seems to be
more than 10% behind, both are timed again in turns, as the least of many single times is too low by chance. Prints the mean, how
many layers are behind, and the furthest. One thread. Needs what bench/requirements.txt lists."""
import argparse
import json
import math
import pathlib
import re
import subprocess
import tempfile

import onnx

from layers import problem_line, read_workload
from make_models import make_model
from table import geometric_mean

CANDIDATE = re.compile(r"\s+(\*?)\s*(\S+)\s+([0-9.]+(?:e[+-]\d+)?)(?:,.*)?")
BEHIND = 1.1
ROUNDS = 3


def candidates(tool, options, measuring, model):
    """(estimated cycles, name, whether it is the choice) of those that can compute the layer, as `explain` lists them."""
    text = subprocess.run([tool, "explain", "--all", *options, *measuring, model], capture_output=True, text=True, check=True).stdout
    listed = text.split("candidates, by estimated cycles:", 1)[1].splitlines()
    found = [match for line in listed if (match := CANDIDATE.fullmatch(line))]
    return sorted((float(cycles), name, bool(chosen)) for chosen, name, cycles in (match.groups() for match in found))


def best_ms(tool, options, model, name, seconds):
    run = subprocess.run([tool, "bench", "--json", "--min-time", str(seconds), *options, "--variant", name, model],
                         capture_output=True, text=True, check=False)
    if run.returncode:  # a method that is estimated without being able to
        return math.inf
    return json.loads(run.stdout)[0]["best_ms"]


def compare(tool, options, model, arguments):
    """(name of the choice, its time, name of the best, its time)."""
    measuring = [f"--measure={arguments.measure}"] if arguments.measure else []
    all_of = candidates(tool, options, measuring, model)
    choice = next(name for _, name, chosen in all_of if chosen)
    close = [name for cycles, name, _ in all_of
             if cycles <= arguments.factor * all_of[0][0] and not name.startswith("reference")][:arguments.most]
    times = {name: best_ms(tool, options, model, name, arguments.seconds) for name in {*close, choice}}
    best = min(times, key=times.get)
    if times[choice] > BEHIND * times[best]:
        again = {choice: math.inf, best: math.inf}
        for _ in range(ROUNDS):
            for name in again:
                again[name] = min(again[name], best_ms(tool, options, model, name, 3 * arguments.seconds))
        times = again
        best = min(times, key=times.get)
    return choice, times[choice], best, times[best]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--convtranspose", required=True, help="the command line tool")
    parser.add_argument("--workload", type=pathlib.Path, required=True, help="file of layers")
    parser.add_argument("--layout", choices=["nchw", "nhwc"], default="nchw")
    parser.add_argument("--isa", help="default: the best that this CPU runs")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--measure", type=int, metavar="MS", help="plans that measure for so long make the choice")
    parser.add_argument("--factor", type=float, default=4, help="of estimates that are tried, over the least (%(default)s)")
    parser.add_argument("--most", type=int, default=10, help="candidates of a layer (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.02, help="to time each for (%(default)s)")
    parser.add_argument("--list", type=int, default=20, help="layers that are furthest behind (%(default)s)")
    arguments = parser.parse_args()
    options = ["--layout", arguments.layout, *(["--isa", arguments.isa] if arguments.isa else [])]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "layer.onnx")
        for layer in read_workload(arguments.workload):
            onnx.save(make_model(layer, arguments.dtype), model)
            rows.append((layer, *compare(arguments.convtranspose, options, str(model), arguments)))
    behind = [(ours / best_of_all, layer, choice, ours, best) for layer, choice, ours, best, best_of_all in rows]
    behind.sort(key=lambda row: -row[0])
    over = sum(row[0] > BEHIND for row in behind)
    print(f"{arguments.workload.name}, {' '.join(options)}: {geometric_mean([row[0] for row in behind]):.3f} behind the best "
          f"candidate in the geometric mean of {len(behind)} layers, {over} ({100 * over / len(behind):.0f}%) by more than 10%")
    for ratio, layer, choice, ours, best in behind[:arguments.list]:
        if ratio > 1:
            print(f"  {ratio:.2f}  {choice} {ours:.4g} ms, {best}: {problem_line(layer, arguments.dtype, arguments.layout)}")


if __name__ == "__main__":
    main()
