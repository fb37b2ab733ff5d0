#!/usr/bin/env python3
"""Times layers on a GPU in `convtranspose` and in cuDNN through PyTorch, layer by layer and in turns, after comparing each result
with the definition. Writes for each workload file NAME.json of bench/workloads, into OUT:

    NAME.json    everything, with the machine, versions and date
    NAME.md      the same to read

f32; weights are packed, inputs and outputs are on the device, kernels are warm. On CUDA times are those of its events, the best of
many batches of runs. cuDNN runs channels first and channels last, with TF32 off; what it makes of TF32 and f16, on tensor cores,
which Halide has no way to use, is listed beside it and is in no ratio. With --device opencl there is no peer.
"""
import argparse
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import contenders
import machine
from contest import measure, our_version
from layers import bytes_touched, read_workload, shape_text
from table import geometric_mean

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

FEW_OUTPUTS = 4         # channels
COMPUTE_BOUND = 60      # operations for each byte: more than a GPU's ratio of f32 peak to bandwidth
LEAST, SPECIAL = 0.5, 2  # ratios to reach: of any layer, and of depthwise layers and those of few outputs


def kind_of(layer):
    if layer["g"] > 1 and layer["g"] == layer["c"]:
        return "depthwise"
    return "few outputs" if layer["m"] // layer["g"] <= FEW_OUTPUTS else "other"


def row_of(layer, batch, results):
    ours = results.pop("convtranspose")
    row = {"layer": layer["name"], "shape": shape_text(layer), "batch": batch, "kind": kind_of(layer), "convtranspose": ours,
           "peers": results}
    if "best_ms" not in ours:
        return row
    row["flops_per_byte"] = ours["gflops"] * ours["best_ms"] * 1e6 / bytes_touched(layer)
    if ours["peak_gflops"]:
        ours["peak_percent"] = 100 * ours["gflops"] / ours["peak_gflops"]
    timed = {name: result["best_ms"] for name, result in results.items() if "best_ms" in result}
    fair = {name: ms for name, ms in timed.items() if name not in contenders.UNITS}
    if fair:
        row["best_peer"] = min(fair, key=fair.get)
        row["ratio"] = fair[row["best_peer"]] / ours["best_ms"]
    for bits in ("tf32", "f16"):
        of_bits = [ms for name, ms in timed.items() if name in contenders.UNITS and bits in name]
        if of_bits:
            row[f"ratio_{bits}"] = min(of_bits) / ours["best_ms"]
    return row


def summary(rows):
    lines = []
    for batch in sorted({row["batch"] for row in rows}):
        of_batch = [row for row in rows if row["batch"] == batch and "ratio" in row]
        if of_batch:
            ratios = [row["ratio"] for row in of_batch]
            lines.append(f"batch {batch}, against cuDNN in f32: geometric mean {geometric_mean(ratios):.2f} of {len(ratios)} "
                         f"layers, least {min(ratios):.2f}, below {LEAST}: {sum(ratio < LEAST for ratio in ratios)}")
        for kind in ("depthwise", "few outputs"):
            ratios = [row["ratio"] for row in of_batch if row["kind"] == kind]
            if ratios:
                lines.append(f"batch {batch}, {kind}: least {min(ratios):.2f}, below {SPECIAL}: "
                             f"{sum(ratio < SPECIAL for ratio in ratios)} of {len(ratios)}")
        for bits in ("tf32", "f16"):
            ratios = [row[f"ratio_{bits}"] for row in of_batch if f"ratio_{bits}" in row]
            if ratios:
                lines.append(f"batch {batch}, against cuDNN's tensor cores in {bits}: geometric mean {geometric_mean(ratios):.2f}")
        shares = [row["convtranspose"]["peak_percent"] for row in rows if row["batch"] == batch
                  and "peak_percent" in row["convtranspose"] and row["flops_per_byte"] >= COMPUTE_BOUND]
        if shares:
            lines.append(f"batch {batch}, layers of {COMPUTE_BOUND} operations a byte and more: {min(shares):.0f} to "
                         f"{max(shares):.0f}% of the multiply-add peak, geometric mean {geometric_mean(shares):.0f}%")
    for row in rows:
        for name, result in [("convtranspose", row["convtranspose"]), *row["peers"].items()]:
            why = result.get("wrong") or result.get("failed")
            if why:
                lines.append(f"{row['layer']}, batch {row['batch']}, {name}: {why}")
    return "\n".join(lines)


def cell(result):
    if "best_ms" in result:
        return f"{result['best_ms']:.4g}"
    return next(key for key in ("wrong", "failed", "refused") if key in result)


def markdown(results):
    rows = results["rows"]
    settings = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    heading = ["layer", "batch", "shape", "ours ms", *settings, "ratio", "GFLOP/s", "peak %", "variant"]
    lines = [f"# {results['workload']} on {results['device']}", "",
             ", ".join(f"{name} {version}" for name, version in results["versions"].items()) + f"; {results['machine']['date']}",
             "", "Best of many batches of runs, in ms. Ratio: the time of cuDNN in f32, channels first or last, over ours; above "
             "1, ours is faster.", "", *summary(rows).splitlines(), "",
             "| " + " | ".join(heading) + " |", "|---|--:|---|" + "--:|" * (len(heading) - 4) + "---|"]
    for row in rows:
        ours = row["convtranspose"]
        cells = [row["layer"], str(row["batch"]), row["shape"], cell(ours)]
        cells += [cell(row["peers"][name]) if name in row["peers"] else "" for name in settings]
        cells.append(f"{row['ratio']:.2f}" if "ratio" in row else "")
        if "best_ms" in ours:
            cells += [f"{ours['gflops']:.0f}", f"{ours['peak_percent']:.0f}" if "peak_percent" in ours else "-", ours["variant"]]
        else:
            cells += ["", "", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def run_workload(workload, arguments, log):
    takers = [contenders.Ours(arguments.convtranspose, 1, arguments.device)]
    if arguments.device == "cuda" and arguments.peers:
        for peer, (_, settings) in contenders.DEVICE_PEERS.items():
            takers += [contenders.Peer(peer, setting, 1, log) for setting in settings]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for layer in read_workload(workload):
            if arguments.only not in layer["name"] or layer["n"] != 1:
                continue
            for batch in arguments.batch:
                batched = {**layer, "n": batch}
                results = measure(batched, takers, pathlib.Path(folder) / "layer", arguments)
                rows.append(row_of(batched, batch, results))
                ours = rows[-1]["convtranspose"]
                if "best_ms" in ours:
                    print(f"{layer['name']:<28} {batch:2} {ours['best_ms']:9.4f} ms {ours['gflops']:8.1f} GFLOP/s {ours['variant']}"
                          + (f"; {rows[-1]['best_peer']} {rows[-1]['ratio']:.2f}" if "ratio" in rows[-1] else ""), flush=True)
                else:
                    print(f"{layer['name']}, batch {batch}: {ours}", file=sys.stderr, flush=True)
    for taker in takers:
        taker.close()
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "opencl"), required=True)
    parser.add_argument("--workload", metavar="FILE", type=pathlib.Path, action="append",
                        help="this one; may be repeated (default: all of bench/workloads)")
    parser.add_argument("--batch", metavar="N", type=int, nargs="+", default=[1, 16], help="images (default: 1 16)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only layers whose name contains this")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="ours alone")
    parser.add_argument("--rounds", type=int, default=3, help="turns that each takes per layer (default: 3)")
    parser.add_argument("--seconds", type=float, default=0.3,
                        help="to run each layer for in each setting, over all rounds (default: 0.3)")
    parser.add_argument("--out", metavar="OUT", type=pathlib.Path, help="folder for the results (default: build/bench/DEVICE)")
    parser.add_argument("--convtranspose", metavar="FILE", type=pathlib.Path,
                        default=ROOT / "build" / "bin" / "convtranspose", help="ours (default: the one in build/)")
    arguments = parser.parse_args()
    arguments.dtype = "f32"
    for file in [arguments.convtranspose, *(arguments.workload or [])]:
        if not file.is_file():
            sys.exit(f"there is no {file}")
    arguments.convtranspose = arguments.convtranspose.resolve()
    peers = list(contenders.DEVICE_PEERS) if arguments.device == "cuda" and arguments.peers else []
    missing = [reason for reason in map(contenders.why_missing, peers) if reason]
    if missing:
        sys.exit(f"{'; '.join(missing)} (--no-peers does without)")
    out = arguments.out or ROOT / "build" / "bench" / arguments.device
    out.mkdir(parents=True, exist_ok=True)

    failed, none = False, True
    for workload in arguments.workload or sorted((HERE.parent / "workloads").glob("*.json")):
        with open(out / "peers.log", "w") as log:
            rows = run_workload(workload, arguments, log)
        if not rows:
            print(f"{workload.name}: no such layer", file=sys.stderr)
            continue
        none = False
        results = {"workload": workload.name, "machine": machine.describe(),
                   "device": next((row["convtranspose"]["device"] for row in rows if "device" in row["convtranspose"]),
                                  arguments.device),
                   "versions": {"convtranspose": our_version(), **{peer: contenders.version(peer) for peer in peers}},
                   "dtype": "f32", "rounds": arguments.rounds, "seconds": arguments.seconds, "rows": rows}
        (out / f"{workload.stem}.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
        (out / f"{workload.stem}.md").write_text(markdown(results))
        print(summary(rows) or f"{len(rows)} measured, without a peer")
        print(f"written to {out}")
        failed = failed or any("best_ms" not in row["convtranspose"] for row in rows)
    sys.exit(1 if failed or none else 0)


if __name__ == "__main__":
    main()
