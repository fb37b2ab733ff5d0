#!/usr/bin/env python3
"""Fits a cost profile to times, and says how well profiles choose on layers that nothing was fitted to:

    build/venv/bin/python bench/cost/fit.py build/times.jsonl --output build/profile.jsonl

Two of three layers are fitted to, by `convtranspose calibrate --fit-only`, the third is held out; times of several types and ISAs
are fitted to together. The regret of a profile is how much longer its choices take than the fastest candidates that were timed, as
a share, in the geometric mean. Prints the regret of the profiles that ship and of the fitted one, also for each ISA and type; what
each field saves on held-out layers, against its value in the generic profile; and the held-out layers whose choice is furthest
behind. A choice that was not timed counts as the slowest that was. --report fits nothing. --sweep does so too, with a field of the
profile that ships at each of some values, as a new field gets its own.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from worker import Worker

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAYS = 0.005  # of regret that a field saves, or else it is named


class Layers:
    """Layers with times, and what profiles choose for them."""

    def __init__(self, lines, worker):
        self.lines, self.worker = [line for line in lines if len(line["ms"]) > 1], worker

    def slowdowns(self, profile):
        answer = self.worker.ask(do="choose", problems=[line["problem"] for line in self.lines],
                                 isa=[line["isa"] for line in self.lines], threads=1, profile=profile)
        return [(line["ms"].get(choice, max(line["ms"].values())) / min(line["ms"].values()), choice, line)
                for line, choice in zip(self.lines, answer["choices"])]

    def regret(self, profile):
        """The regret of a profile; the share of layers whose choice is within 10% of the fastest; that of choices not timed."""
        found = self.slowdowns(profile)
        return (math.exp(sum(math.log(slowdown) for slowdown, _, _ in found) / len(found)) - 1,
                sum(slowdown <= 1.1 for slowdown, _, _ in found) / len(found),
                sum(choice not in line["ms"] for _, choice, line in found) / len(found))

    def kinds(self):
        """The layers of each ISA and type, by both."""
        kinds = {}
        for line in self.lines:
            kinds.setdefault((line["isa"], line["problem"].split()[0]), []).append(line)
        return {kind: Layers(lines, self.worker) for kind, lines in sorted(kinds.items())}


def calibrate(options, train):
    """The profile that calibrate fits to the layers, whose line is added to the output; None if it chooses no better than the one
    that ships."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "profile.jsonl"
        times = pathlib.Path(f"{output}.calibration") / "times.jsonl"
        times.parent.mkdir()
        times.write_text("".join(json.dumps(line) + "\n" for line in train), encoding="utf-8")
        subprocess.run([options.convtranspose, "calibrate", "--output", output, "--fit-only", "--seconds", str(options.seconds),
                        "--worker", str(pathlib.Path(options.worker).resolve()), "--isa", train[0]["isa"]],
                       check=True, stdout=subprocess.DEVNULL)
        if not output.exists():
            return None
        line = output.read_text(encoding="utf-8")
    with options.output.open("a", encoding="utf-8") as file:
        file.write(line)
    return json.loads(line)["cost_profile"]


def ablation(layers, profile, generic):
    """(regret that the field saves, name, value, value in the generic profile) of fields that differ from that."""
    whole = layers.regret(profile)[0]
    rows = []
    for name, value in profile.items():
        if value != generic[name]:
            rows.append((layers.regret({**profile, name: generic[name]})[0] - whole, name, value, generic[name]))
    return sorted(rows, reverse=True)


def report_on_measured(lines):
    if not lines:
        return
    slowdowns = [line["ms"].get(line["measured"], math.inf) / min(line["ms"].values()) for line in lines]
    regret = math.exp(sum(map(math.log, slowdowns)) / len(slowdowns)) - 1
    shares = ", ".join(f"{sum(slowdown <= 1 + most for slowdown in slowdowns) / len(slowdowns):.0%} within {most:.0%}"
                       for most in (0.03, 0.05, 0.1))
    times = sorted(line["planning_ms"] for line in lines)
    print(f"\nplans that measure, {len(lines)} layers: regret {regret:.2%}; {shares}; worst {max(slowdowns):.2f}; planning took "
          f"{times[len(times) // 2]:.0f} ms in the median, {times[-1]:.0f} at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=pathlib.Path, nargs="+", help="what collect.py wrote")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("profile.jsonl"),
                        help="file that the line is added to (%(default)s)")
    parser.add_argument("--convtranspose", default="build/bin/convtranspose")
    parser.add_argument("--worker", default="build/bin/convtranspose-worker")
    parser.add_argument("--seconds", type=float, default=600, help="to fit for (%(default)s)")
    parser.add_argument("--report", action="store_true", help="fit nothing: only report on the profiles that ship")
    parser.add_argument("--also", type=pathlib.Path, help="a tuning text whose last profile is reported on too")
    parser.add_argument("--sweep", nargs="+", metavar=("FIELD", "VALUE"), help="report on these values of a field")
    parser.add_argument("--list", type=int, default=5, help="layers that are furthest behind (%(default)s)")
    options = parser.parse_args()
    lines = [json.loads(line) for file in options.times for line in file.read_text(encoding="utf-8").splitlines()]
    train, held_out = [line for i, line in enumerate(lines) if i % 3 != 2], lines[2::3]
    worker = Worker(options.worker)
    sets = [Layers(layers, worker) for layers in (train, held_out)]
    if not all(layers.lines for layers in sets):
        parser.error(f"{len(lines)} layers were timed, which leave none to fit to or to hold out: every third is held out, and "
                     "only those with two times count")
    generic, own = (worker.ask(do="choose", problems=[], isa=lines[0]["isa"], threads=1, profile=profile)["profile"]
                    for profile in ("generic", None))
    profiles = {path.stem: path.stem for path in sorted((ROOT / "runtime/cost/profiles").glob("*.json")) if path.stem != "fields"}
    profiles["that ships for this CPU and ISA"] = own
    if options.also:
        also = [json.loads(line) for line in options.also.read_text(encoding="utf-8").splitlines()]
        profiles[f"of {options.also.name}"] = [line["cost_profile"] for line in also if "cost_profile" in line][-1]
    if options.sweep:
        field, *values = options.sweep
        profiles = {f"{field} = {value}": {**own, field: float(value)} for value in values}
    elif not options.report:
        fitted = calibrate(options, train)
        if fitted is None:
            print("the fitted profile chooses no better on the third of the layers that calibrate holds out itself")
        else:
            profiles["fitted"] = fitted
    print(f"{lines[0]['cpu']}: {len(train)} layers fitted to, {len(held_out)} held out\n")
    print("| profile | regret, fitted to | regret, held out | within 10%, held out | choices not timed |\n|---|--:|--:|--:|--:|")
    for name, profile in profiles.items():
        (of_train, _, _), (of_held_out, near, unknown) = (layers.regret(profile) for layers in sets)
        print(f"| {name} | {of_train:.2%} | {of_held_out:.2%} | {near:.0%} | {unknown:.0%} |")
    print("\n| ISA | type | layers held out | regret of each of these profiles |\n|---|---|--:|---|")
    for (isa, dtype), layers in sets[1].kinds().items():
        regrets = ", ".join(f"{layers.regret(profile)[0]:.2%}" for profile in profiles.values())
        print(f"| {isa} | {dtype} | {len(layers.lines)} | {regrets} |")
    report_on_measured([line for line in lines if "measured" in line and len(line["ms"]) > 1])
    last = profiles.get("fitted", own)
    print("\n| field | value | generic | regret saved, held out |\n|---|--:|--:|--:|")
    for saved, name, value, other in ablation(sets[1], last, generic):
        print(f"| `{name}` | {value} | {other} | {saved:.2%}{'' if saved >= PAYS else ' (does not pay)'} |")
    print()
    for slowdown, choice, line in sorted(sets[1].slowdowns(last), key=lambda row: -row[0])[:options.list]:
        print(f"- {slowdown:.2f}: {choice}, {min(line['ms'], key=line['ms'].get)} is the fastest: {line['problem']}")


if __name__ == "__main__":
    main()
