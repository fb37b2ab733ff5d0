"""Results of compare.py as Markdown."""
import math

WORST = 20          # are listed apart where there are more layers than FEW
FEW = 60
FAR_BEHIND = 0.8
RATIOS = (("ratio_best_peer", "the best peer, in its layout"), ("ratio_channels_first", "the best peer, ours channels first"),
          ("ratio_ort", "ONNX Runtime"), ("ratio_ort_faster", "ONNX Runtime, ours by the faster layout"))
PLOTTED = ("ratio_best_peer", "ratio_ort")
HEADINGS = {"ratio_best_peer": "ratio to best", "ratio_channels_first": "nchw to best", "ratio_ort": "ratio to ort",
            "ratio_ort_faster": "faster layout to ort"}
OURS = ("convtranspose", "convtranspose nhwc")


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def rows_of(results, threads):
    return [row for row in results["rows"] if row["threads"] == threads]


def peer_settings(results):
    return list(dict.fromkeys(name for row in results["rows"] for name in row["peers"]))


def ratio_kinds(results):
    """Those that say different things: with ONNX Runtime alone, it is the best peer."""
    return RATIOS[-2:] if peer_settings(results) == ["ort"] else RATIOS


def summary(results):
    lines = []
    for threads in (measured["threads"] for measured in results["measured"]):
        for key, who in ratio_kinds(results):
            ratios = [row[key] for row in rows_of(results, threads) if key in row]
            if not ratios:
                continue
            lines.append(f"{threads} thread{'s' * (threads > 1)}, against {who}: geometric mean "
                         f"{geometric_mean(ratios):.2f} of {len(ratios)} layers, least {min(ratios):.2f}, below 1: "
                         f"{sum(ratio < 1 for ratio in ratios)}, below {FAR_BEHIND}: "
                         f"{sum(ratio < FAR_BEHIND for ratio in ratios)}")
    wrong = [f"{row['layer']}, {row['threads']} threads, {name}: {result.get('wrong') or result['failed']}"
             for row in results["rows"] for name, result in [*((name, row[name]) for name in OURS), *row["peers"].items()]
             if "wrong" in result or "failed" in result]
    return "\n".join(lines + (["", f"wrong or failed ({len(wrong)}):", *wrong] if wrong else []))


def _cell(result):
    if "best_ms" in result:
        return f"{result['best_ms']:.4g}"
    return next(key for key in ("wrong", "failed", "refused") if key in result)


def _layers(rows, settings, keys):
    heading = ["layer", "shape", "ours ms", "ours nhwc", *settings, *(HEADINGS[key] for key in keys), "GFLOP/s", "peak %",
               "variant", "variant nhwc"]
    lines = ["| " + " | ".join(heading) + " |", "|---|---|" + "--:|" * (len(heading) - 4) + "---|---|"]
    for row in rows:
        ours = row["convtranspose"]
        cells = [row["layer"], row["shape"], _cell(ours), _cell(row["convtranspose nhwc"])]
        cells += [_cell(row["peers"][name]) if name in row["peers"] else "" for name in settings]
        cells += [f"{row[key]:.2f}" if key in row else "" for key in keys]
        cells += [f"{ours['gflops']:.1f}", f"{ours['peak_percent']:.0f}", f"{ours['variant']} {ours['isa']}",
                  row["convtranspose nhwc"]["variant"]] if "flops_per_byte" in row else [""] * 4
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def machine_lines(results):
    m = results["machine"]
    return [f"{m['cpu']}, {m['cpus']} CPUs ({', '.join(m['telling_cpu_flags'])}); {m['system']}; {m['date']}",
            ", ".join(f"{name} {version}" for name, version in results["versions"].items())]


def contest_lines(results):
    """Says which plans of ours took part, which peers were capped, and which are missing."""
    lines = [f"{peer} did not take part: {reason}" for peer, reason in results.get("missing", {}).items()]
    if results.get("plans"):
        lines.append(f"plans of convtranspose: {results['plans']}")
    if results.get("isa"):
        capped = results["capped"]
        free = [peer for peer in results["versions"] if peer not in ("convtranspose", "python", *capped)]
        lines.append(f"all with {results['isa']}: convtranspose, {', '.join(capped) or 'and no peer'}")
        if free:
            lines.append(f"have no such switch, so use what the CPU has and are never the best peer: {', '.join(free)}")
    return lines


def markdown(results):
    lines = [f"# {results['workload']}", ""]
    lines += [f"- {line}" for line in machine_lines(results) + contest_lines(results)]
    for measured in results["measured"]:
        calls = ", ".join(f"{name} {value:.1f}" for name, value in measured["microseconds_of_a_call"].items())
        lines.append(f"- {measured['threads']} thread{'s' * (measured['threads'] > 1)}: multiply-add peak "
                     f"{measured['fma_gflops']:.0f} GFLOP/s, copy {measured['copy_gb_per_s']:.1f} GB/s; load average at the "
                     f"end {measured['load_average_after']:.1f}; microseconds of a call (a layer of one multiply): {calls}")
    lines += ["", f"{results['dtype']}, best of many runs, in ms. Ratio: the time of the other over ours, the median of "
              f"{results['rounds']} rounds; above 1, ours is faster.", "", *summary(results).splitlines()]
    settings = peer_settings(results)
    for measured in results["measured"]:
        rows = rows_of(results, measured["threads"])
        title = f"{measured['threads']} thread{'s' * (measured['threads'] > 1)}"
        keys = [key for key, _ in ratio_kinds(results)]
        if len(rows) > FEW:
            ranked = sorted((row for row in rows if keys[0] in row), key=lambda row: row[keys[0]])
            lines += ["", f"## {title}, the {WORST} furthest behind", "", *_layers(ranked[:WORST], settings, keys)]
        lines += ["", f"## {title}", "", *_layers(rows, settings, keys)]
    return "\n".join(lines) + "\n"
