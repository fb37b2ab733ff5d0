#!/usr/bin/env python3
"""Writes a workload of oneDNN's own deconvolution problems, read from a checkout of it:

    bench/benchdnn.py ONEDNN OUT.json              the lists of tests/benchdnn/inputs/deconv/set_all
    scripts/bench.sh --workload OUT.json

The syntax is that of oneDNN's tests/benchdnn/doc: driver_conv.md, knobs_desc.md and knobs_common.md. Of the options, --batch and
--mb are heeded; the others say nothing about shapes. Problems that no layer of ours can say, whose end is cut more than their begin
or whose output_padding ONNX forbids, are counted and left out.
"""
import argparse
import json
import pathlib
import re
import shlex
import sys

INPUTS = pathlib.Path("tests", "benchdnn", "inputs", "deconv")
ENTRY = re.compile(r"(mb|g|[io]c|[iokspd][dhw])(\d+)")
AXES = "dhw"


class Unsayable(Exception):
    """A problem that a layer of a workload cannot describe; the text says why."""


def entries(text):
    """The numbers of a problem by name, and its own name, which ends it."""
    numbers, name, at = {}, "", 0
    while at < len(text):
        if text[at] == "_":
            at += 1
        elif text[at] == "n":
            return numbers, re.sub(r"[^\w.]+", "_", text[at + 1:].strip('"'))
        elif found := ENTRY.match(text, at):
            numbers[found[1]], at = int(found[2]), found.end()
        else:
            raise ValueError(f"{text}: what is {text[at:]}?")
    return numbers, name


def axis_of(numbers, axis, text):
    """i, o, k, s, d and p of one axis, its dilation as oneDNN counts it, from 0; None if the problem has none there."""
    found = {key: numbers[key + axis] for key in "iokspd" if key + axis in numbers}
    if not any(found.get(key) for key in "iokdp") and found.get("s", 1) == 1:
        return None
    if not found.get("i") or not found.get("k"):
        raise ValueError(f"{text}: i{axis} and k{axis} are needed")
    found = {"s": 1, "d": 0, **found}
    whole = (found["i"] - 1) * found["s"] + (found["k"] - 1) * (found["d"] + 1) + 1
    if not found.get("o"):
        found["p"] = found.get("p", 0)
        found["o"] = whole - 2 * found["p"]
    return {"p": int((whole - found["o"]) / 2), **found, "whole": whole}


def parse(text, mb=0):
    """The layer of a problem such as mb1_ic16oc32_ih8oh16kh4sh2ph1_n"name". mb, if not 0, is its batch."""
    numbers, name = entries(text)
    axes = {axis: found for axis in AXES if (found := axis_of(numbers, axis, text))}
    # Depth alone stands for all three axes, height alone for two.
    if "d" in axes and len(axes) == 1:
        axes = dict.fromkeys(AXES, axes["d"])
    elif list(axes) == ["h"]:
        axes = dict.fromkeys("hw", axes["h"])
    if list(axes) not in (list("dhw"), list("hw"), list("w")):
        raise ValueError(f"{text}: these axes make no problem: {', '.join(axes) or 'none'}")
    axes = list(axes.values())
    padding = [a["o"] - (a["whole"] - 2 * a["p"]) for a in axes]
    for a, more in zip(axes, padding):
        if a["o"] < 1 or a["p"] < 0:
            raise Unsayable("its output has other extents than its figures give")
        if more < 0:
            raise Unsayable("its end is cut more than its begin")
        if more >= max(a["s"], a["d"] + 1):
            raise Unsayable("its output_padding is not below its stride or dilation")
    return {"name": name or text, "n": mb or numbers.get("mb", 2), "c": numbers["ic"], "spatial": [a["i"] for a in axes],
            "m": numbers["oc"], "k": [a["k"] for a in axes], "s": [a["s"] for a in axes], "p": [a["p"] for a in axes],
            "op": padding, "g": numbers.get("g", 1), "d": [a["d"] + 1 for a in axes]}


def problems(file, mb=0):
    """The problems of a list and of those that it names, each with the batch that --mb sets for it, or 0."""
    for line in file.read_text().splitlines():
        for word in shlex.split(line, comments=True):
            option, _, value = word.partition("=")
            if option == "--reset":
                mb = 0
            elif option == "--mb":
                mb = int(value.split(",")[0])
            elif option == "--batch":
                yield from problems(file.parent / pathlib.Path(value).name, mb)
            elif not word.startswith("-") and ENTRY.match(word):
                yield word, mb


def read(file, mb=0):
    """Layers, of which no two are the same but for the name, and the reasons why others are none."""
    layers, reasons, seen, names = [], {}, set(), set()
    for text, batch in problems(file):
        try:
            layer = parse(text, mb or batch)
        except Unsayable as e:
            reasons.setdefault(str(e), []).append(text)
            continue
        figures = json.dumps({**layer, "name": ""})
        if figures in seen:
            continue
        seen.add(figures)
        name, number = layer["name"], 2
        while layer["name"] in names:
            layer["name"], number = f"{name} {number}", number + 1
        names.add(layer["name"])
        layers.append(layer)
    return layers, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("onednn", metavar="ONEDNN", type=pathlib.Path, help="folder of a checkout")
    parser.add_argument("out", metavar="OUT.json", type=pathlib.Path)
    parser.add_argument("--list", metavar="NAME", default="set_all", help=f"a list in {INPUTS} (default: set_all)")
    parser.add_argument("--mb", metavar="N", type=int, default=0, help="batch of all problems, in place of their own")
    arguments = parser.parse_args()
    file = arguments.onednn / INPUTS / arguments.list
    if not file.is_file():
        sys.exit(f"there is no {file}")
    layers, reasons = read(file, arguments.mb)
    arguments.out.write_text("[\n" + ",\n".join(f"  {json.dumps(layer)}" for layer in layers) + "\n]\n")
    for reason, texts in reasons.items():
        print(f"left out, {reason}: {len(texts)}, the first {texts[0]}")
    print(f"{len(layers)} layers in {arguments.out}")


if __name__ == "__main__":
    main()
