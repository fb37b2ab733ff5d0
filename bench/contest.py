"""A contest: contenders compute one layer, are judged, and are timed in turns."""
import pathlib
import subprocess
import time

import contenders
from layers import expected, judge

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAUSE = 0.02  # seconds for the last one's threads to stop spinning


def measure(layer, takers, folder, arguments):
    """Runs the layer with each taker, and returns their results by name."""
    rounds, seconds, dtype = arguments.rounds, arguments.seconds, arguments.dtype
    x, w, b = contenders.write_layer(layer, folder, dtype)
    exact = {None: expected(layer, x, w, b, dtype=dtype)}
    results, racing = {}, []
    for taker in takers:
        try:
            y, begin = taker.prepare(folder)
            begin = begin and tuple(begin)
            if begin not in exact:
                exact[begin] = expected(layer, x, w, b, begin, dtype)
            wrong = judge(y, exact[begin], contenders.looseness(taker.name))
            if wrong:
                results[taker.name] = {"wrong": wrong}
            else:
                racing.append(taker)
        except contenders.Refused as e:
            results[taker.name] = {"refused": str(e)}
        except contenders.Failed as e:
            results[taker.name] = {"failed": str(e)}
    for _ in range(rounds):
        for taker in racing[:]:
            time.sleep(PAUSE)
            try:
                taker.time(seconds / rounds)
            except contenders.Failed as e:
                results[taker.name] = {"failed": str(e)}
                racing.remove(taker)
    for taker in racing:
        results[taker.name] = taker.result()
    return results


def our_version():
    described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
    return described or "not in git"
