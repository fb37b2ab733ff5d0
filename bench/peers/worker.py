"""One setting of one peer, in a process of its own, so that no thread pool, allocator or flag of one reaches another.

usage: python -m peers.worker MODULE SETTING THREADS

Reads one JSON object per line from standard input, and answers each with one:
    {"prepare": FOLDER}   loads the layer there (contenders.py wrote it), runs it and writes FOLDER/y.npy; {"note", "begin"}
    {"time": SECONDS}     runs it for so long; {"times_ms"}: of each run
An answer with "unsupported" or "error" says why there is none.
"""
import importlib
import json
import os
import pathlib
import sys
import time

import numpy as np

from . import Layer, Unsupported

FEWEST_RUNS = 5
SLOW = 1.0  # seconds: a run that takes so long is not repeated for their sake


def load(folder):
    arrays = {name: np.load(folder / f"{name}.npy") for name in ("x", "w", "b")}
    return Layer(model=(folder / "model.onnx").read_bytes(), **arrays, **json.loads((folder / "geometry.json").read_text()))


def prepare(setting, threads, folder):
    layer = load(folder)
    runner = setting(layer, threads)
    for _ in range(2):
        runner.run()
    np.save(folder / "y.npy", runner.output().reshape(layer.x.shape[0], len(layer.b), *layer.out))
    return runner, {"note": runner.note, "begin": runner.begin}


def time_runs(runner, seconds):
    runner.run()  # the turn of another has been in between
    if runner.times:
        return {"times_ms": [round(seconds * 1e3, 6) for seconds in runner.times(seconds)]}
    times = []
    start = now = time.perf_counter()
    while now - start < seconds or (len(times) < FEWEST_RUNS and times[0] < SLOW):
        begin = time.perf_counter()
        runner.run()
        now = time.perf_counter()
        times.append(now - begin)
    return {"times_ms": [round(seconds * 1e3, 6) for seconds in times]}


def main(module, setting, threads):
    # Answers go where standard output went; what a library prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runner = None
    setting = importlib.import_module(f"peers.{module}").SETTINGS[setting]
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                runner = None
                runner, answer = prepare(setting, int(threads), pathlib.Path(request["prepare"]))
            else:
                answer = time_runs(runner, request["time"])
        except Unsupported as e:
            answer = {"unsupported": str(e)}
        except Exception as e:  # a library's own; the layer is then reported as failed in that setting
            answer = {"error": f"{type(e).__name__}: {(str(e).strip() or '-').splitlines()[0]}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
