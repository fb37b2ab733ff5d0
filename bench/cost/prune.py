#!/usr/bin/env python3
"""Finds the kernels that pay for their bytes, from times of `collect.py --inner --both --most 60`:

    build/venv/bin/python bench/cost/prune.py build/times_*.jsonl --workload bench/workloads/layers.json

For each ISA, kernels leave one by one, those first that cost least time for their bytes. They stop leaving when the best choice
that is left would be further behind the best of all than the limits allow, which hold for the layers of each type: --mean on
average, --worst on all but one layer in twenty and on each of a --workload, --most on any. Where weights arrive with each run,
algorithms that need constant ones are no choice, and --run-time times as much is allowed. Prints what stays, as the table has it.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from kernels.table import DTYPES, FAMILIES, ISAS

NAME = re.compile(rf"({'|'.join(family.name for family in FAMILIES if not family.always_built)})_({'|'.join(DTYPES)})_"
                  r"(planar|channels)_(?:s([0-9x]+)_)?([0-9x]+)(?:_(.*))?")
LIGHT = {"wf16": "f32_f16w", "wbf16": "f32_bf16w", "ws8": "f32_s8w", "wu8": "f32_s8w"}  # words of problems, types of kernels
RUN_TIME = " weights at run time"  # at the end of a problem: algorithms that need constant weights are no candidates


def is_kernel(name):
    return NAME.fullmatch(name) is not None


def types_of(dtype):
    """The types of kernels, as the table calls them, that serve layers of a type, as dtype_of() calls it."""
    dtype = dtype.removesuffix(RUN_TIME)
    end = "_f32" if dtype.endswith("_f32") else ""  # y is f32
    return {f"i8{end}", f"i16{end}"} if dtype[0] in "us" else {dtype}


def dtype_of(problem):
    """Its type, with an ending if it is quantized but for y, and one if its weights arrive with each run. A layer of light weights
    has the type of the kernels that read them so."""
    words = problem.removesuffix(RUN_TIME).split(" ")
    light = next((LIGHT[word] for word in words if word in LIGHT and "dynamic" not in words), None)
    return (light or words[0] + ("_f32" if "yf32" in words else "")) + (RUN_TIME if problem.endswith(RUN_TIME) else "")


def by_dtype(regrets):
    parts = collections.defaultdict(list)
    for problem, regret in regrets.items():
        parts[dtype_of(problem)].append(regret)
    return parts


def all_but_one_in_twenty(ordered):
    return ordered[math.ceil(0.95 * len(ordered)) - 1]


def with_those_below(isa):
    """The ISA and those whose kernels it falls back on, best first."""
    return [isa, *(with_those_below(ISAS[isa].adds_to) if ISAS[isa].adds_to else ())]


def kernel_bytes(objects, nm):
    """The code bytes of each kernel, {(isa, name): bytes}."""
    text = subprocess.run([nm, "--print-size", "--defined-only", "--format=posix", f"@{objects}"], check=True,
                          capture_output=True, text=True).stdout
    sizes = {}
    isa = name = ""
    for line in text.splitlines():
        if match := re.search(r"/([a-z0-9_]+)/([a-z0-9_]+)\.o:$", line):
            isa, name = match.groups()
        elif (match := re.match(r"_?convt_([a-z0-9_]+) T [0-9a-f]+ ([0-9a-f]+)$", line)) and match[1] == f"{name}_{isa}":
            sizes[isa, name] = int(match[2], 16)
    return sizes


def choices(rows):
    """The choices for each problem, fastest first: pairs of the time and of the kernel without which there is no such choice."""
    best = {}
    for row in rows:
        kept = best.setdefault(row["problem"], {**row, "ms": dict(row["ms"])})
        for name, ms in row["ms"].items():
            kept["ms"][name] = min(ms, kept["ms"].get(name, math.inf))
    found = {}
    for problem, row in best.items():
        needed = {name: _needed(row, name) for name in row["ms"]}
        some = [(ms, needed[name]) for name, ms in row["ms"].items()]
        at_run_time = _at_run_time(row, needed)
        words = problem.split(" ")
        words[1] = "nhwc" if words[1] == "nchw" else "nchw"
        some += _by_transposing(row, needed.get("layout_transpose"), best.get(" ".join(words)))
        for line, options in ((problem, some), (problem + RUN_TIME, at_run_time)):
            if options:
                found[line] = sorted(options, key=lambda option: option[0])
    return found


def _needed(row, candidate):
    """A kernel needs itself, an algorithm the first kernel that it runs."""
    return candidate if is_kernel(candidate) else next(filter(is_kernel, row.get("inner", {}).get(candidate, [])), None)


def _at_run_time(row, needed):
    """The choices for the layer if its weights arrive with each run. Kernels that only algorithms left behind were not timed, and
    take what their estimate says."""
    # col2im is the one algorithm that takes weights of a run.
    found = {name: ms for name, ms in row["ms"].items() if needed[name] and (is_kernel(name) or name == "col2im")}
    ratios = sorted(ms / row["cycles"][name] for name, ms in row["ms"].items() if row.get("cycles", {}).get(name))
    if ratios:
        for name, cycles in row["cycles"].items():
            if is_kernel(name):
                found.setdefault(name, cycles * ratios[len(ratios) // 2])
    return [(ms, needed.get(name, name)) for name, ms in found.items()]


def _by_transposing(row, kernel, twin):
    """layout_transpose with other kernels: it takes what the layer takes in the other layout, its twin, and the time to copy."""
    if not twin or kernel not in twin["ms"]:
        return []
    copying = row["ms"]["layout_transpose"] - twin["ms"][kernel]
    return [(copying + ms, name) for name, ms in twin["ms"].items() if is_kernel(name) and ms > twin["ms"][kernel]]


class Limits:
    """How far the best choice may fall behind."""

    def __init__(self, mean, worst, most, run_time=1.0, named=()):
        self.mean, self.worst, self.most, self.run_time = mean, worst, most, run_time
        self.named = set(named)  # problems none of which may be more than `worst` behind

    def allow(self, regrets):
        return (all(self._allow(sorted(some), self.run_time if dtype.endswith(RUN_TIME) else 1)
                    for dtype, some in by_dtype(regrets).items())
                and all(regrets[problem] <= self.worst for problem in self.named if problem in regrets))

    def _allow(self, ordered, times):
        return (sum(ordered) / len(ordered) <= times * self.mean and all_but_one_in_twenty(ordered) <= times * self.worst
                and ordered[-1] <= times * self.most)


def prune(options, sizes, keep, limits):
    """options: of choices(). Returns the kernels that stay, and how far each problem's best choice is then behind."""
    users = collections.defaultdict(set)  # of a kernel: the problems that it is a choice of
    for problem, some in options.items():
        for _, kernel in some:
            users[kernel].add(problem)
    left = {kernel for kernel in users if kernel}
    best = {problem: some[0][0] for problem, some in options.items()}
    now = dict(best)

    def without(kernel):
        """The times that change if it leaves."""
        changed = {}
        for problem in users[kernel]:
            ms = next((ms for ms, needed in options[problem] if needed is None or (needed in left and needed != kernel)), math.inf)
            if ms != now[problem]:
                changed[problem] = ms
        return changed

    def price(kernel, changed):
        return sum(min(ms / best[p], 1e6) - now[p] / best[p] for p, ms in changed.items()) / sizes.get(kernel, 1)

    while True:
        trials = [(kernel, without(kernel)) for kernel in sorted(left - keep)]
        for kernel, changed in sorted(trials, key=lambda trial: price(*trial)):
            after = {**now, **changed}
            if limits.allow({problem: after[problem] / best[problem] - 1 for problem in after}):
                left.remove(kernel)
                now = after
                break
        else:
            return left, {problem: now[problem] / best[problem] - 1 for problem in now}


def table_lines(kernels):
    """Kernels as lines of the table have them: tiles by family, type, output order, strides and taps."""
    lines = collections.defaultdict(list)
    for name in sorted(kernels):
        family, dtype, order, strides, tile, taps = NAME.fullmatch(name).groups()
        lines[family, dtype, order, strides or "0", taps or ""].append(tile)
    return lines


def report(isa, sizes, stay, regrets):
    own = {name: size for (where, name), size in sizes.items() if where == isa and is_kernel(name)}
    for dtype, some in by_dtype(regrets).items():
        ordered = sorted(some)
        print(f"# {isa} {dtype}: {len(some)} layers; {sum(ordered) / len(ordered):.2%} behind on average, "
              f"19 of 20 at most {all_but_one_in_twenty(ordered):.1%}, {max(some):.1%} the most")
        if dtype.endswith(RUN_TIME):
            continue
        built = {name for name in own if NAME.fullmatch(name)[2] in types_of(dtype)}
        print(f"#   {len(built & stay)} of {len(built)} kernels stay, "
              f"with {sum(own[name] for name in built & stay) / 1e3:.0f} of {sum(own[name] for name in built) / 1e3:.0f} kB")
        for (*words, strides, taps), tiles in table_lines(built & stay).items():
            print("   ", *words, f"strides={strides}", *([f"taps={taps}"] if taps else []), "tiles:", *tiles)


def workload_problems(files, dtypes):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
    from layers import problem_line, read_workload  # which needs numpy
    return {problem_line(layer, dtype, layout) for file in files for layer in read_workload(file) for dtype in dtypes
            for layout in ("nchw", "nhwc")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", nargs="+", type=pathlib.Path, help="files of collect.py")
    parser.add_argument("--objects", default="build/runtime/kernels.txt", help="list of the kernels' object files (%(default)s)")
    parser.add_argument("--nm", default="nm")
    parser.add_argument("--mean", type=float, default=0.004, help="(%(default)s)")
    parser.add_argument("--worst", type=float, default=0.05, help="(%(default)s)")
    parser.add_argument("--most", type=float, default=0.15, help="(%(default)s)")
    parser.add_argument("--run-time", type=float, default=4, help="(%(default)s)")
    parser.add_argument("--workload", type=pathlib.Path, action="append", default=[], help="file of layers")
    parser.add_argument("--keep", type=pathlib.Path, help="file of names of kernels that stay")
    parser.add_argument("--output", type=pathlib.Path, help="JSON file of the kernels that stay, by ISA")
    options = parser.parse_args()
    sizes = kernel_bytes(options.objects, options.nm)
    # Kernels of the smallest tile for any strides compute what no other kernel does.
    keep = {name for _, name in sizes if is_kernel(name) and NAME.fullmatch(name).group(1, 4, 5) == ("oc_vectorized", None, "1x1")}
    if options.keep:
        keep.update(options.keep.read_text(encoding="utf-8").split())
    rows = collections.defaultdict(list)
    for file in options.times:
        for text in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(text)
            rows[row["isa"]].append(row)
    stay = {}
    for isa, some in sorted(rows.items()):
        own = {name: size for each in reversed(with_those_below(isa)) for (where, name), size in sizes.items() if where == each}
        found = choices(some)
        named = workload_problems(options.workload, {dtype_of(problem) for problem in found if not problem.endswith(RUN_TIME)})
        left, regrets = prune(found, own, keep, Limits(options.mean, options.worst, options.most, options.run_time, named))
        stay[isa] = sorted((left | keep) & own.keys())
        report(isa, sizes, left | keep, regrets)
    if options.output:
        options.output.write_text(json.dumps(stay, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
