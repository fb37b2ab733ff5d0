#!/usr/bin/env python3
"""Times layers in `convtranspose` and in every installed peer, layer by layer and in turns, with the same number of threads,
after comparing each result with the definition. Writes for each workload file NAME.json of bench/workloads, into OUT/NAME:

    results.json    everything, with the machine, its peaks, versions and date
    table.md        the same to read
    ratio-T.png     time of the best peer, and of ONNX Runtime, over ours, for each layer; T: threads
    roofline-T.png  GFLOP/s over arithmetic intensity, under the machine's multiply-add peak and copy bandwidth

With --isa ISA ours is forced to that ISA, and so are the peers that can be, into OUT/NAME-ISA; ratios are to those alone. f32, or
with --dtype bf16 that, into OUT/NAME-bf16, beside PyTorch. In the same turns also ours by other plans: with --winograd such as may
take Winograd's algorithm, into OUT/NAME-winograd; with --measured such as measure, into OUT/NAME-measured; and with --calibrated
FILE such as estimate by the cost profile that `convtranspose calibrate` wrote there, into OUT/NAME-calibrated.

Inputs, constant weights, and where a library lets one the outputs too, are there beforehand. Times are the best of many runs in
several rounds. A ratio is the median over the rounds of that of the best times in the round: clocks wander by a tenth and more
within seconds, and whoever had the fastest of them would win.
GFLOP/s count the multiply-adds of the definition, two operations each. Ours and the peers that can run channels first and
channels last. The best peer is the fastest in either layout, and meets ours in its own; a second ratio has ours channels first, as
the models say, against the best in either. ONNX Runtime, which has channels first alone, meets ours channels first, and by the
faster layout.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import contenders
import machine
import plots
import table
from contest import measure, our_version
from layers import bytes_touched, read_workload, shape_text

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

# Its time is that of a call: what of a small layer's time is not the layer.
SMALLEST = {"name": "smallest", "n": 1, "c": 1, "spatial": [1, 1], "m": 1, "k": [1, 1], "s": 1, "p": 0, "op": 0, "g": 1,
            "d": 1}


def ratio(theirs, ours):
    """How many times ours is as fast."""
    return statistics.median(their / our for their, our in zip(theirs["turns_ms"], ours["turns_ms"]))


def row_of(layer, threads, results, dtype, plans=None, fair=None):
    """fair: the settings that may be best peer, beside which ratios are taken; all, if not given."""
    ours, ours_nhwc = (results[contenders.our_name(layout, plans)] for layout in (None, "nhwc"))
    results = {name: result for name, result in results.items() if not name.startswith(contenders.our_name())}
    figures = {key: value for key, value in layer.items() if key != "name"}
    row = {"layer": layer["name"], "shape": shape_text(layer), "figures": figures, "threads": threads,
           "convtranspose": ours, "convtranspose nhwc": ours_nhwc, "peers": results}
    if "best_ms" not in ours or "best_ms" not in ours_nhwc:
        return row
    ours["peak_percent"] = 100 * ours["gflops"] / ours["peak_gflops"]
    row["flops_per_byte"] = ours["gflops"] * ours["best_ms"] * 1e6 / bytes_touched(layer, dtype)
    timed = {name: result for name, result in results.items() if "best_ms" in result and (fair is None or name in fair)}
    if timed:
        row["best_peer"] = min(timed, key=lambda name: ratio(timed[name], ours))
        same_layout = ours_nhwc if row["best_peer"] in contenders.CHANNELS_LAST else ours
        row["ratio_best_peer"] = ratio(timed[row["best_peer"]], same_layout)
        row["ratio_channels_first"] = ratio(timed[row["best_peer"]], ours)
    if "ort" in timed:
        row["ratio_ort"] = ratio(timed["ort"], ours)
        row["ratio_ort_faster"] = max(row["ratio_ort"], ratio(timed["ort"], ours_nhwc))
    return row


def print_row(row, plans):
    ours, ours_nhwc = row["convtranspose"], row["convtranspose nhwc"]
    if "flops_per_byte" not in row:
        print(f"{row['layer']}: {ours}, nhwc {ours_nhwc}", file=sys.stderr, flush=True)
        return
    text = f"{row['layer']:<28} {row['threads']} {ours['best_ms']:9.4f} ms {ours['gflops']:7.1f} GFLOP/s {ours['variant']}"
    text += f"; nhwc {ours_nhwc['best_ms']:.4f} ms" + (f", {plans}" if plans else "")
    if "best_peer" in row:
        text += f"; {row['best_peer']} {row['ratio_best_peer']:.2f}"
    if "ratio_ort" in row and row["best_peer"] != "ort":
        text += f", ort {row['ratio_ort']:.2f}"
    print(text, flush=True)


def settings_of(dtype):
    """By peer."""
    return contenders.BF16_PEERS if dtype == "bf16" else {peer: about[1] for peer, about in contenders.PEERS.items()}


def choose_peers(asked, all_peers):
    """Those that are there, and why others are not."""
    unknown = set(asked or []) - set(all_peers)
    if unknown:
        sys.exit(f"no peer {', '.join(sorted(unknown))}: there are {', '.join(all_peers)}")
    reasons = {peer: contenders.why_missing(peer) for peer in asked or all_peers}
    missing = {peer: reason for peer, reason in reasons.items() if reason}
    if missing and asked:
        sys.exit("; ".join(missing.values()))
    for peer, reason in missing.items():
        print(f"left out: {peer}: {reason}", file=sys.stderr)
    return [peer for peer in reasons if peer not in missing], missing


def check_isa(arguments):
    """That this CPU runs it: `targets` lists one in a line, "  avx2  supported by this CPU"."""
    listed = subprocess.run([arguments.convtranspose, "targets"], check=True, capture_output=True, text=True).stdout
    supported = [line.split()[0] for line in listed.splitlines() if line.endswith(" supported by this CPU") and " not " not in line]
    if arguments.isa not in supported:
        sys.exit(f"no ISA {arguments.isa} on this CPU: there are {', '.join(supported)}")


def run_layers(layers, threads, peers, kinds, arguments, log):
    """Rows by kind of plans of ours; and what was measured of the machine with so many threads."""
    takers = [contenders.Ours(arguments.convtranspose, threads, layout=layout, plans=plans, isa=arguments.isa,
                              tuning=arguments.calibrated if plans == "calibrated" else None)
              for plans in kinds for layout in (None, "nhwc")]
    settings = settings_of(arguments.dtype)
    takers += [contenders.Peer(peer, setting, threads, log, arguments.isa) for peer in peers for setting in settings[peer]]
    fair = {setting for peer in peers for setting in settings[peer] if not arguments.isa or peer in contenders.CAPPED}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        calls = measure(SMALLEST, takers, folder / "smallest", arguments)
        calls = {name: result["best_ms"] * 1e3 for name, result in calls.items() if "best_ms" in result}
        rows = {plans: [] for plans in kinds}
        for layer in layers:
            results = measure(layer, takers, folder / "layer", arguments)
            for plans in kinds:
                rows[plans].append(row_of(layer, threads, results, arguments.dtype, plans, fair))
                print_row(rows[plans][-1], plans)
    for taker in takers:
        taker.close()
    peaks = [row["convtranspose"]["peak_gflops"] for row in rows[None] if "best_ms" in row["convtranspose"]]
    if not peaks:
        sys.exit(f"{arguments.convtranspose} ran none of the layers")
    return rows, {"threads": threads, "fma_gflops": max(peaks),
                  "copy_gb_per_s": machine.copy_bandwidth(threads), "microseconds_of_a_call": calls,
                  "load_average_after": machine.load_average()}


def measure_workload(workload, layers, peers, missing, threads, arguments):
    """Whether all layers were timed."""
    kinds = [arguments.dtype] if arguments.dtype != "f32" else []
    stem = "-".join([workload.stem, *kinds, *([arguments.isa] if arguments.isa else [])])
    outs = {None: arguments.out / stem}
    outs.update({plans: arguments.out / f"{stem}-{plans}" for plans in contenders.PLANS if getattr(arguments, plans)})
    print(f"\n{workload.name}: {len(layers)} layers", flush=True)
    about = {"workload": workload.name, "machine": machine.describe(),
             "versions": {"convtranspose": our_version(), **{peer: contenders.version(peer) for peer in peers},
                          "python": sys.version.split()[0]},
             "isa": arguments.isa, "capped": [peer for peer in peers if arguments.isa and peer in contenders.CAPPED],
             "missing": missing, "dtype": arguments.dtype, "rounds": arguments.rounds, "seconds": arguments.seconds}
    rows, measured = {plans: [] for plans in outs}, []
    for out in outs.values():
        out.mkdir(parents=True, exist_ok=True)
    with open(outs[None] / "peers.log", "w") as log:
        for count in threads:
            timed, of_machine = run_layers(layers, count, peers, list(outs), arguments, log)
            for plans in outs:
                rows[plans] += timed[plans]
            measured.append(of_machine)
    for plans, out in outs.items():
        results = {**about, "plans": plans, "measured": measured, "rows": rows[plans]}
        (out / "results.json").write_text(json.dumps(results, indent=1, allow_nan=False) + "\n")
        (out / "table.md").write_text(table.markdown(results))
        plots.draw(results, out)
        print(f"\n{table.summary(results)}\nwritten to {out}")
    return all("flops_per_byte" in row for of_kind in rows.values() for row in of_kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", metavar="FILE", type=pathlib.Path, action="append",
                        help="this one; may be repeated (default: all of bench/workloads)")
    parser.add_argument("--peers", metavar="LIST", type=lambda text: text.split(","),
                        help=f"of {','.join(contenders.PEERS)} (default: all that are installed)")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32", help="of the tensors (default: f32)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only layers whose name contains this")
    parser.add_argument("--threads", metavar="N", type=int, nargs="+", help="thread counts (default: 1, and all CPUs)")
    parser.add_argument("--winograd", action="store_true", help="time ours with Winograd's algorithm allowed too")
    parser.add_argument("--measured", action="store_true", help="time ours with plans that measure too")
    parser.add_argument("--calibrated", metavar="FILE", type=pathlib.Path,
                        help="time ours by the cost profile that `convtranspose calibrate` wrote there, too")
    parser.add_argument("--isa", metavar="ISA", choices=contenders.CAPS,
                        help=f"force ours to this ISA, of {', '.join(contenders.CAPS)}, and cap the peers that have a switch "
                             "for it; the others are timed, but are not the best peer")
    parser.add_argument("--rounds", type=int, default=5, help="turns that each takes per layer (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.6,
                        help="to run each layer for in each library, over all rounds (default: 0.6)")
    parser.add_argument("--out", metavar="OUT", type=pathlib.Path, default=ROOT / "build" / "bench",
                        help="folder for the results (default: build/bench)")
    parser.add_argument("--convtranspose", metavar="FILE", type=pathlib.Path,
                        default=ROOT / "build" / "bin" / "convtranspose", help="ours (default: the one in build/)")
    arguments = parser.parse_args()
    for file in [arguments.convtranspose, arguments.calibrated, *(arguments.workload or [])]:
        if file and not file.is_file():
            sys.exit(f"there is no {file}")
    arguments.convtranspose = arguments.convtranspose.resolve()
    arguments.calibrated = arguments.calibrated and arguments.calibrated.resolve()
    if arguments.isa:
        check_isa(arguments)
    peers, missing = choose_peers(arguments.peers, settings_of(arguments.dtype))
    threads = arguments.threads or sorted({1, os.cpu_count()})

    failed, none = False, True
    for workload in arguments.workload or sorted((HERE / "workloads").glob("*.json")):
        layers = [layer for layer in read_workload(workload) if arguments.only in layer["name"]]
        if not layers:
            print(f"{workload.name}: no such layer", file=sys.stderr)
            continue
        none = False
        failed = not measure_workload(workload, layers, peers, missing, threads, arguments) or failed
    sys.exit(1 if failed or none else 0)


if __name__ == "__main__":
    main()
