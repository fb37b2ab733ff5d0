#!/usr/bin/env python3
"""Times calls of a layer with two outputs, on one thread, which show what a call costs beside its work: tiny_calls.py [CXX]

The Python package must be importable. CXX compiles the call from C++; c++ by default. A time is the least mean of many rounds.
"""
import pathlib
import subprocess
import sys
import tempfile
import timeit

import convtranspose
import numpy as np

CALLS, ROUNDS = 20000, 15
HEADERS = pathlib.Path(__file__).resolve().parent.parent / "runtime" / "include"
CPP = r"""
#include <convtranspose/convtranspose.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
int main() {
    convtranspose::Problem problem;
    problem.x_shape = {1, 1, 1};
    problem.w_shape = {1, 1, 2};
    convtranspose::Options options{};
    options.threads = 1;
    const float x[] = {1}, w[] = {2, 3};
    float y[2];
    convtranspose::Plan plan;
    if (!convtranspose::Plan::create(problem, options, w, nullptr, &plan)) return 1;
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < CALLS; i++) {
            if (!plan.run(x, y)) return 1;
        }
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / CALLS);
    }
    std::printf("%g", least);
    return y[1] == 3 ? 0 : 1;
}
"""


def seconds_in_cpp(compiler):
    library = convtranspose.get_library_dir()
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "call.cpp"), pathlib.Path(folder, "call")
        source.write_text(CPP.replace("CALLS", str(CALLS)).replace("ROUNDS", str(ROUNDS)), encoding="ascii")
        subprocess.run([compiler, "-std=c++17", "-O2", source, "-o", program, f"-I{HEADERS}", f"-L{library}", "-lconvtranspose",
                        f"-Wl,-rpath,{library}"], check=True)
        return float(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        sys.exit(__doc__)
    x, w = np.ones((1, 1, 1), np.float32), np.full((1, 1, 2), 2, np.float32)
    plan = convtranspose.Plan(w, x_shape=x.shape, threads=1)
    y = plan(x)
    calls = {"`plan(x, out=y)`": lambda: plan(x, out=y), "`plan(x)`": lambda: plan(x),
             "`conv_transpose(x, w, out=y)`": lambda: convtranspose.conv_transpose(x, w, out=y, threads=1)}
    print("| call of a layer with two outputs | microseconds |\n|---|--:|")
    print(f"| C++, `plan.run(x, y)` | {1e6 * seconds_in_cpp(*sys.argv[1:] or ['c++']):.2f} |")
    for name, call in calls.items():
        print(f"| {name} | {1e6 * min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS:.2f} |")


if __name__ == "__main__":
    main()
