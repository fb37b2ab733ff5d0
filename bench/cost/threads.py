#!/usr/bin/env python3
"""Times small random layers on one thread and on two, and says what the second thread costs:

    build/venv/bin/python bench/cost/threads.py --seconds 150 --out build/threads.jsonl
    build/venv/bin/python bench/cost/threads.py --read build/threads.jsonl

Two workers take turns: one plans for a single thread, one for exactly two, with the same kernel or algorithm. Plans use a second
thread from an estimate of 2 * per_thread cycles on (docs/cost-model.md). Prints for which per_thread their choices are least behind
the faster of both, and compares, for layers by their time on one thread, two threads with the number that plans choose. They go by
the profile that ships, or by --per-thread.
"""
import argparse
import itertools
import json
import math
import pathlib
import random
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from worker import Worker, WorkerEnded

import random_layers
from layers import problem_line

MULTIPLIES = (2e3, 1e7)
MICROSECONDS = (0, 2, 5, 10, 20, 50, 100, math.inf)  # bounds of the table's rows
ALGORITHMS = {"batch_as_width", "col2im", "depth_to_space", "layout_transpose", "output_parts", "phases_as_channels", "winograd"}


def lines_of(options):
    chance = random.Random(options.seed)
    random_layers.MULTIPLIES = MULTIPLIES
    while True:
        layer = random_layers.propose(chance)
        layout = chance.choice(("nchw", "nhwc"))
        if MULTIPLIES[0] <= random_layers.multiplies(layer) <= MULTIPLIES[1]:
            yield problem_line(layer, options.dtype, layout)


def times_of(workers, line, options):
    """The estimate of the fastest kernel, and the least times of a run on one thread and on two, in microseconds."""
    plan, _ = (worker.ask(do="plan", problem=line, isa=options.isa, threads=n) for n, worker in enumerate(workers, 1))
    least = [math.inf, math.inf]
    for _ in range(options.rounds):
        for i, worker in enumerate(workers):
            worker.ask(do="try", variant=plan["variant"])
            result = worker.ask(do="time", variants=[plan["variant"]], seconds=options.each)["results"][0]
            least[i] = min(least[i], result["ms"] * 1e3)
    cycles = min(cycles for name, cycles in zip(plan["candidates"], plan["cycles"]) if name not in ALGORITHMS)
    return {"problem": line, "cycles": cycles, "us": least}


def chosen(row, per_thread):
    return row["us"][row["cycles"] > 2 * per_thread]


def mean(ratios):
    """The geometric mean."""
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else math.nan


def behind(rows, per_thread):
    return mean([chosen(row, per_thread) / min(row["us"]) for row in rows]) - 1


def report(rows, per_thread):
    costs = [10 ** (digits / 20) for digits in range(40, 121)]
    least = min(behind(rows, cost) for cost in costs)
    near = [cost for cost in costs if behind(rows, cost) <= least + 0.005]
    print(f"{len(rows)} layers: choices by per_thread = {near[0]:.0f} to {near[-1]:.0f} are {least:.1%} to {least + 0.005:.1%} "
          f"behind the faster of both; by {per_thread:g}, {behind(rows, per_thread):.1%}; "
          f"two threads always, {behind(rows, 0):.1%}\n")
    print("| us on one thread | layers | two threads / one | the chosen number / one | the faster of both / one | layers on one |")
    print("|---|--:|--:|--:|--:|--:|")
    for low, high in [*itertools.pairwise(MICROSECONDS), (0, math.inf)]:
        found = [row for row in rows if low <= row["us"][0] < high]
        title = "all" if (low, high) == (0, math.inf) else f"{low} to {high}" if high < math.inf else f"{low} and more"
        ratios = [mean([time / row["us"][0] for row, time in zip(found, times)])
                  for times in ([row["us"][1] for row in found], [chosen(row, per_thread) for row in found],
                                [min(row["us"]) for row in found])]
        alone = sum(row["cycles"] <= 2 * per_thread for row in found)
        print(f"| {title} | {len(found)} | {ratios[0]:.2f} | {ratios[1]:.2f} | {ratios[2]:.2f} | {alone} |")


def measure(options, workers):
    rows, end = [], time.monotonic() + options.seconds
    for line in lines_of(options):
        if time.monotonic() > end:
            break
        try:
            rows.append(times_of(workers, line, options))
        except WorkerEnded as error:
            print(f"{line}: {error}", file=sys.stderr)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", default="build/bin/convtranspose-worker")
    parser.add_argument("--seconds", type=float, default=150, help="for all (%(default)s)")
    parser.add_argument("--each", type=float, default=0.006, help="seconds of each round of a layer (%(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="of both workers (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the layers (%(default)s)")
    parser.add_argument("--isa", default="", help="default: the best that this CPU runs")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--per-thread", type=float, help="cycles (default: those of the profile that ships)")
    parser.add_argument("--out", type=pathlib.Path, help="file that gets a line of JSON for each layer")
    parser.add_argument("--read", type=pathlib.Path, nargs="+", help="such files, to report on instead of timing anything")
    options = parser.parse_args()
    workers = [Worker(options.worker), Worker(options.worker)]
    per_thread = options.per_thread
    if per_thread is None:
        answer = workers[0].ask(do="choose", problems=[], isa=options.isa, threads=1, profile=None)
        per_thread = answer["profile"]["per_thread"]
    if options.read:
        rows = [json.loads(line) for file in options.read for line in file.read_text(encoding="utf-8").splitlines()]
    else:
        rows = measure(options, workers)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    report(rows, per_thread)


if __name__ == "__main__":
    main()
