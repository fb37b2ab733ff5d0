"""Shows what the compiler of CUDA's driver makes of each kernel, without a GPU: registers, spills, how many threads
of a multiprocessor that leaves, bank conflicts of shared memory, and the instructions of the inner loop.

static_evidence.py FOLDER [--arch sm_90] [--check] [--output table.md]: FOLDER has the PTX, *.device_code. --check fails where a
kernel spills more than a few bytes, leaves too few threads or has bank conflicts; with status 77 where ptxas is not installed
(requirements-gpu.txt).
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tempfile

import shared_memory

SKIPPED = 77
REGISTERS, THREADS, BLOCKS, SHARED = 65536, 2048, 32, 65536  # of a multiprocessor: the least of sm_70, 80 and 90 each
OLDEST_DISASSEMBLED = "sm_75"  # by the pinned nvdisasm
REGISTER_LIMIT = 128  # what runtime/gpu/cuda_backend.cpp asks for
ACCEPTED_SPILLS = 64  # bytes of a thread, outside of the inner loop
# Instructions that multiply and add terms, by type. IMAD also moves and computes addresses, so its share is at most that.
MATH = {"f64": ("DFMA", "DADD"), "dots": ("IDP",), "u8": ("IMAD",)}


def tool(name):
    """A tool of the wheels: they come with no launcher."""
    folder = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
    return next(iter(sorted(folder.glob(f"*/bin/{name}"))), None)


def math_of(kernel, opcodes):
    # The first type that is in the name.
    kinds = next((kinds for dtype, kinds in MATH.items() if f"_{dtype}" in kernel), ("FFMA", "FADD"))
    return sum(o.split(".")[0] in kinds for o in opcodes)


def inner_loop(kernel, sass):
    """Opcodes of the loop with the most multiply-adds: from the target of a backward branch to that branch."""
    labels, instructions = {}, []
    for line in sass.splitlines():
        if label := re.match(r"(\.L_x?_?\w+):", line):
            labels[label[1]] = len(instructions)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+ )?([A-Z][\w.]*)([^;]*);", line):
            instructions.append((found[1], found[2]))
    least = 1 if "_f64" in kernel else 4  # loops of f64 are not unrolled by ptxas
    best, best_share = [], 0
    for at, (opcode, operands) in enumerate(instructions):
        if opcode != "BRA":
            continue
        target = re.search(r"`\((\.L\w+)\)", operands)
        begin = labels.get(target[1], at) if target else at
        body = [o for o, _ in instructions[begin : at + 1]]
        share = math_of(kernel, body) / max(len(body), 1)
        if begin < at and math_of(kernel, body) >= least and share > best_share:
            best, best_share = body, share
    return best


def examine(ptxas, nvdisasm, path, block, arch, folder):
    ptx, cubin = folder / "k.ptx", folder / "k.cubin"
    ptx.write_bytes(path.read_bytes())
    said = subprocess.run(
        [ptxas, "-v", f"-arch={arch}", f"-maxrregcount={REGISTER_LIMIT}", ptx, "-o", cubin],
        check=True, capture_output=True, text=True,
    ).stderr

    def number(pattern):
        return int((re.search(pattern, said) or [0, 0])[1])

    registers = number(r"Used (\d+) registers")
    loads, stores, shared = shared_memory.examine(path.read_text(errors="replace"), block)
    row = {
        "kernel": path.stem,
        "registers": registers,
        "spills": number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads"),
        "threads": block[0] * block[1],
        "shared": shared,
        "conflicts": max(loads, stores),
    }
    blocks = min(REGISTERS // (-(-registers // 8) * 8 * row["threads"]), BLOCKS, SHARED // max(shared, 1))
    row["resident"] = min(blocks * row["threads"], THREADS)
    if nvdisasm:
        sass = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
        loop = inner_loop(path.stem, sass)
        row["loop"], row["math"] = len(loop), math_of(path.stem, loop)
        row["loads"] = sum(o.startswith(("LDS", "LDG")) for o in loop)
        row["local"] = sum(o.startswith(("LDL", "STL")) for o in loop)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", default="sm_80")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=pathlib.Path)
    options = parser.parse_args()
    ptxas, nvdisasm = tool("ptxas"), tool("nvdisasm")
    if not ptxas:
        print("ptxas is not installed: pip install -r requirements-gpu.txt")
        must_be_there = "ptxas" in os.environ.get("CONVTRANSPOSE_TEST_DEVICES", "").split()
        return 1 if must_be_there else SKIPPED
    paths = sorted(options.folder.glob("*.device_code"))
    if not paths:
        sys.exit(f"there is no PTX in {options.folder}")
    blocks = json.loads((options.folder.parent / "blocks.json").read_text())
    if nvdisasm and options.arch < OLDEST_DISASSEMBLED:
        print(f"nvdisasm knows nothing older than {OLDEST_DISASSEMBLED}: inner loops are not looked at")
        nvdisasm = None
    lines = [
        f"| kernel ({options.arch}) | registers | spilled bytes | threads of a block | resident threads | shared bytes | "
        "bank conflicts | inner loop | multiply-adds | loads | local |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    bad = []
    with tempfile.TemporaryDirectory() as temporary:
        for path in paths:
            row = examine(ptxas, nvdisasm, path, blocks[path.stem], options.arch, pathlib.Path(temporary))
            share = f"{row['math']} ({100 * row['math'] // max(row['loop'], 1)}%)" if nvdisasm else "-"
            lines.append(
                f"| {row['kernel']} | {row['registers']} | {row['spills']} | {row['threads']} | {row['resident']} | "
                f"{row['shared']} | {'none' if row['conflicts'] == 1 else row['conflicts']} | "
                f"{row.get('loop', '-')} | {share} | {row.get('loads', '-')} | {row.get('local', '-')} |"
            )
            if row["spills"] > ACCEPTED_SPILLS or row.get("local", 0) or row["resident"] < 256 or row["conflicts"] > 1:
                bad.append(row["kernel"])
    table = "\n".join(lines) + "\n"
    print(table)
    if options.output:
        options.output.write_text(table)
    if options.check and bad:
        sys.exit("spills, too few threads, or bank conflicts: " + ", ".join(bad))
    return 0


if __name__ == "__main__":
    sys.exit(main())
