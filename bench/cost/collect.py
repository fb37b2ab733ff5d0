#!/usr/bin/env python3
"""Times candidates of random layers, one thread, for fit.py:

    build/venv/bin/python bench/cost/collect.py build/times.jsonl --worker build/bin/convtranspose-worker --seconds 600

Times every candidate whose estimate is within --factor of the least, at most --most, and the choice, in turns. Layers are those
of bench/random_layers.py with --seed, in either layout, or of a --workload. Each becomes a line as `convtranspose calibrate`
keeps them.
"""
import argparse
import json
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from worker import Worker, WorkerEnded

import random_layers
from layers import problem_line, read_workload

LAYOUTS = ("nchw", "nhwc")


def random_lines(options):
    chance = random.Random(options.seed)
    while True:
        layer = random_layers.propose(chance)
        layout = chance.choice(LAYOUTS)
        if random_layers.plausible(layer) and random_layers.multiplies(layer) <= options.most_macs:
            yield from (problem_line(layer, options.dtype, each) for each in (LAYOUTS if options.both else (layout,)))


def lines_of(options):
    """The problem lines of the layers to time."""
    if options.lines:
        given = options.lines.read_text(encoding="utf-8").splitlines()
        lines = (" ".join([options.dtype, layout, *line.split()[2:]]) for line in given for layout in LAYOUTS)
    elif options.workload:
        lines = (problem_line(layer, options.dtype, layout) for layer in read_workload(options.workload) for layout in LAYOUTS)
    else:
        lines = random_lines(options)
    return (" ".join([line, *options.token]) for line in lines)


def times_of(worker, line, options):
    measuring = {"measure": options.measure} if options.measure else {}
    plan = worker.ask(do="plan", problem=line, isa=options.isa, threads=1, **measuring)
    estimates = sorted(zip(plan["cycles"], plan["candidates"]))
    near = [name for cycles, name in estimates
            if cycles <= options.factor * estimates[0][0] and not name.startswith("reference_")][:options.most]
    ready, results = [], []

    def time_ready():
        results.extend(worker.ask(do="time", variants=ready, seconds=options.each)["results"])
        ready.clear()

    for name in dict.fromkeys([plan["variant"], *([plan["measured"]] if measuring else []), *near]):
        try:
            worker.ask(do="try", variant=name)
            ready.append(name)
            if options.alone:
                time_ready()
        except WorkerEnded as error:  # an algorithm that turns out not to be able to
            if not worker.process:
                raise
            print(f"{line}: {name}: {error}", file=sys.stderr)
    time_ready()
    kept = ("package", "kernels", "cpu", *(("measured", "planning_ms") if measuring else ()))
    row = {**{key: plan[key] for key in kept}, "isa": plan["allowed_isa"], "problem": line,
           "ms": {result["variant"]: result["ms"] for result in results if "ms" in result}}
    if options.inner:
        row["cycles"] = {name: cycles for cycles, name in estimates if not name.startswith("reference_")}
        row["inner"] = {name: inner for name in row["ms"]
                        if (inner := worker.ask(do="kernels", variant=name)["kernels"]) != [name]}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="file of JSON lines, to which those of layers that it lacks are added")
    parser.add_argument("--worker", default="build/bin/convtranspose-worker")
    parser.add_argument("--seconds", type=float, default=600, help="for all (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the layers (%(default)s)")
    parser.add_argument("--workload", type=pathlib.Path, help="file of layers, in either layout, instead of random ones")
    parser.add_argument("--lines", type=pathlib.Path,
                        help="file of problem lines, instead; type and layout are replaced")
    parser.add_argument("--isa", default="", help="default: the best that this CPU runs")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--token", action="append", default=[], help="added to the lines of layers, as yf32 (tools/problem_line.h)")
    parser.add_argument("--factor", type=float, default=4, help="of estimates that are tried, over the least (%(default)s)")
    parser.add_argument("--most", type=int, default=12, help="candidates of a layer (%(default)s)")
    parser.add_argument("--each", type=float, default=0.015, help="seconds to time each for (%(default)s)")
    parser.add_argument("--alone", action="store_true",
                        help="time each candidate by itself, with its weights in near caches, instead of in turns")
    parser.add_argument("--inner", action="store_true",
                        help="note what prune.py needs: all estimates, and the kernels that algorithms use")
    parser.add_argument("--both", action="store_true", help="time random layers in both layouts; the others always are")
    parser.add_argument("--measure", type=int, metavar="MS", help="plans that measure for so long choose, too")
    parser.add_argument("--most-macs", type=float, default=random_layers.MULTIPLIES[1],
                        help="multiply-adds of a layer (%(default)g)")
    options = parser.parse_args()
    least = random_layers.MULTIPLIES[0]
    if not options.most_macs >= least:
        parser.error(f"--most-macs {options.most_macs:g} must be {least:g} at least, which random layers have")
    worker = Worker(options.worker)
    timed = set()
    if options.out.exists():
        timed = {json.loads(text)["problem"] for text in options.out.read_text(encoding="utf-8").splitlines()}
    end, count = time.monotonic() + options.seconds, 0
    with options.out.open("a", encoding="utf-8") as file:
        for line in lines_of(options):
            if time.monotonic() > end:
                break
            if line in timed:
                continue
            try:
                print(json.dumps(times_of(worker, line, options)), file=file, flush=True)
                count += 1
            except WorkerEnded as error:
                print(f"{line}: {error}", file=sys.stderr)
    print(f"{count} layers are in {options.out}")


if __name__ == "__main__":
    main()
