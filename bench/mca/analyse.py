#!/usr/bin/env python3
"""How near the inner loops of the ARM kernels come to the multiply-accumulate limit of some cores, by models of those, and
whether anything is spilled in them: Markdown tables, on standard output. README.md says what they are worth.

usage: analyse.py BUILD_DIR [--xnnpack CHECKOUT]     the kernels that real layers take most, and XNNPACK's beside them
       analyse.py BUILD_DIR --all                    of all kernels, those below 85% on an out-of-order core or that spill
       analyse.py BUILD_DIR --loop KERNEL            the loop of one
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from cores import CORES, KINDS, check_models, cycles_by_mca, model_name, rates
from kernels.table import DTYPES, FAMILIES
from loops import hottest, loops_of

GOAL = 0.85
IN_ORDER = "cortex-a55"  # shown by llvm-mca too
KERNEL = re.compile(rf"({'|'.join(family.name for family in FAMILIES if not family.always_built)})_({'|'.join(DTYPES)})"
                    r"_(planar|channels)(?:_(s\d+(?:x\d+)?))?_(\d+x\d+(?:x\d+)?)")

# Kernels of each family and arithmetic: those that the cost model takes for most of the layers of
# bench/workloads/layers.json, and the largest tile of the table.
CHOSEN = """
oc_vectorized_f32_channels_2x8 oc_vectorized_f32_channels_4x6 oc_vectorized_f32_channels_4x4
oc_vectorized_f32_planar_2x8 oc_vectorized_f32_planar_s2_2x4x2 oc_vectorized_f32_planar_s4_4x6
ow_vectorized_f32_planar_s2_8x2 ow_vectorized_f32_planar_s2_8x3 ow_vectorized_f32_planar_s2_16x1 ow_vectorized_f32_channels_s2_3x4
small_oc_f32_planar_s2x2_1x4 small_oc_f32_planar_s3x3_1x2 small_oc_f32_planar_s8x1_1x2
depthwise_f32_planar_s2_1x4 depthwise_f32_channels_2x8
oc_vectorized_f64_channels_4x6 oc_vectorized_f64_planar_2x8 ow_vectorized_f64_planar_s2_8x2
oc_vectorized_f16_planar_s2_2x8 oc_vectorized_bf16_channels_4x6 ow_vectorized_f16_planar_s2_8x3
oc_vectorized_i8_channels_2x8 oc_vectorized_i8_channels_4x4 oc_vectorized_i8_channels_2x7 oc_vectorized_i8_planar_s2_2x8
oc_vectorized_i8_planar_s2_2x4x2 ow_vectorized_i8_planar_s2_8x3 ow_vectorized_i8_channels_s2_3x4 small_oc_i8_planar_s2x2_1x4
oc_vectorized_i16_channels_2x8 oc_vectorized_i16_channels_4x6 ow_vectorized_i16_planar_s2_8x2 small_oc_i16_planar_s2x2_1x4
depthwise_i16_planar_s2_1x4 depthwise_i16_channels_2x8
""".split()

XNNPACK = [  # the register tile in 128-bit vectors of outputs, as ours; the kind; the file
    ("2x6", "fmla", "src/f32-igemm/gen/f32-igemm-6x8-minmax-asm-aarch64-neonfma-ld128.S"),
    ("2x6", "fmla", "src/f32-igemm/gen/f32-igemm-6x8-minmax-asm-aarch64-neonfma-cortex-a75.S"),
    ("2x6", "fmla", "src/f32-igemm/f32-igemm-6x8-minmax-asm-aarch64-neonfma-cortex-a55.S"),
    ("4x4", "fmla", "src/f32-gemm/gen/f32-gemm-4x16-minmax-asm-aarch64-neonfma-ld128.S"),
    ("4x4", "sdot", "src/qs8-qc8w-igemm/gen/qs8-qc8w-igemm-4x16c4-minmax-fp32-asm-aarch64-neondot-ld128.S"),
    ("4x4", "sdot", "src/qs8-qc8w-igemm/gen/qs8-qc8w-igemm-4x16c4-minmax-fp32-asm-aarch64-neondot-cortex-a55.S"),
    ("4x4", "smlal", "src/qs8-qc8w-igemm/gen/qs8-qc8w-igemm-4x16-minmax-fp32-asm-aarch64-neon-mlal-lane-ld64.S"),
    ("4x4", "smlal", "src/qs8-qc8w-igemm/gen/qs8-qc8w-igemm-4x16-minmax-fp32-asm-aarch64-neon-mlal-lane-cortex-a53.S"),
    ("1", "fmla", "src/f32-dwconv/f32-dwconv-9p4c-minmax-asm-aarch64-neonfma.S"),
]


def kind_of(kernel):
    """The multiply-accumulate of its reduction; integer kernels have an fmla or two where they requantize."""
    dtype = KERNEL.fullmatch(kernel)[2]
    return "sdot" if dtype.startswith("i8") else "smlal" if dtype.startswith("i16") else "fmla"


class Figures:
    """The figures of a loop: cycles of an iteration on each core, and the share of its multiply-accumulate limit."""

    def __init__(self, loop, kind, mca):
        self.loop, self.kind = loop, kind
        texts = [i.text for i in loop.instructions]
        self.cycles = [core.cycles(mca, texts) for core in CORES]
        self.shares = [loop.kinds[kind] / core.limits[kind] / cycles for core, cycles in zip(CORES, self.cycles)]
        self.of_llvm = cycles_by_mca(mca, IN_ORDER, (), texts)

    @property
    def spills(self):
        found = [f"{self.loop.on_stack} on the stack"] * (self.loop.on_stack > 0)
        found += [f"{self.loop.vector_stores} stored"] * (self.loop.vector_stores > 0)
        return ", ".join(found) or "none"

    def row(self):
        cells = [f"{self.loop.kinds[self.kind]} {self.kind} of {len(self.loop.instructions)}", self.spills]
        cells += [f"{cycles:.1f}, {100 * share:.0f}%" for cycles, share in zip(self.cycles, self.shares)]
        return " | ".join([*cells, f"{self.of_llvm:.0f}"]) + " |"


def head(first):
    names = [first, "in the loop", "spilled", *(core.name for core in CORES), f"{IN_ORDER} in llvm-mca"]
    return "| " + " | ".join(names) + " |\n|" + "---|" * len(names)


def figures_of(loops, kind, mca):
    """Returns the figures of the hottest loop; among copies of it, those of the slowest."""
    return min((Figures(loop, kind, mca) for loop in hottest(loops, kind)), key=lambda figures: sum(figures.shares))


def kernels(build):
    """The object of each kernel by its name, from the list that the build keeps: objects of earlier builds may lie beside them."""
    objects = [pathlib.Path(line) for line in pathlib.Path(build, "runtime", "kernels.txt").read_text().splitlines()]
    return {file.stem: file for file in sorted(objects)
            if file.parent.name.startswith("neon") and KERNEL.fullmatch(file.stem)}


def analyse(files, args):
    """The figures of each kernel by name."""
    for file, loops in loops_of(files, args.objdump):
        kind = kind_of(file.stem)
        if not hottest(loops, kind):
            raise SystemExit(f"{file}: no loop has {kind}")
        yield file.stem, figures_of(loops, kind, args.llvm_mca)


def models(mca):
    version = subprocess.run([mca, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    print(f"llvm-mca of LLVM {re.search(r'LLVM version (.+)', version)[1]}; {', '.join(KINDS)} a cycle:\n")
    print("| core | it does | LLVM's model of that name | used here |\n|---|---|---|---|")

    def numbers(of_kind):
        return ", ".join(f"{value:.2g}" for value in of_kind.values())

    for core in CORES:
        own = rates(lambda texts, core=core: cycles_by_mca(mca, core.name, (), texts))
        print(f"| {core.name} | {numbers(core.limits)} | {model_name(mca, core.name)}: {numbers(own)} "
              f"| {core.how(mca)}: {numbers(rates(lambda texts, core=core: core.cycles(mca, texts)))} |")


def xnnpack(checkout, args):
    commit = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=True, stdout=subprocess.PIPE,
                            text=True).stdout.strip()
    print(f"\nXNNPACK's, at commit {commit}:\n\n" + head("kernel, tile"))
    with tempfile.TemporaryDirectory() as scratch:
        for tile, kind, source in XNNPACK:
            target = pathlib.Path(scratch) / "kernel.o"
            subprocess.run([args.gcc, "-c", "-x", "assembler-with-cpp", "-march=armv8.2-a+dotprod", "-I", checkout,
                            pathlib.Path(checkout) / source, "-o", target], check=True)
            [(_, loops)] = loops_of([target], args.objdump)
            print(f"| {pathlib.Path(source).stem} ({tile}) | {figures_of(loops, kind, args.llvm_mca).row()}")


def together(names):
    """Names of kernels that differ in types and strides alone, as one."""
    types = {}
    for name in names:
        family, dtype, store, stride, tile = KERNEL.fullmatch(name).groups()
        types.setdefault((family, store, tile), {}).setdefault(dtype, []).append(stride or "")
    for (family, store, tile), strides_of in types.items():
        dtypes = {}
        for dtype, strides in strides_of.items():
            dtypes.setdefault(tuple(strides), []).append(dtype)
        for strides, same in dtypes.items():
            braced = [part[0] if len(part) == 1 else "{" + ",".join(part) + "}" for part in (same, strides)]
            yield "_".join(filter(None, [family, braced[0], store, braced[1], tile]))


def every(files, args):
    groups, reached, spilling = {}, [0] * len(CORES), 0
    for name, figures in analyse(files.values(), args):
        reached = [count + (share >= GOAL) for count, share in zip(reached, figures.shares)]
        spilling += figures.spills != "none"
        least = min(share for share, core in zip(figures.shares, CORES) if core.name != IN_ORDER)
        if least < GOAL or figures.spills != "none":
            groups.setdefault((least, figures.row()), []).append(name)
    print(f"Of {len(files)} kernels, at {100 * GOAL:.0f}% of the limit or above: "
          + ", ".join(f"{count} on {core.name}" for count, core in zip(reached, CORES))
          + f"; {spilling} spill. Those below it on an out-of-order core, and those that spill, best first:\n\n{head('kernels')}")
    for (_, row), names in sorted(groups.items(), reverse=True):
        print(f"| {'<br>'.join(together(names))} | {row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the cross build: build-aarch64")
    parser.add_argument("--xnnpack", metavar="CHECKOUT")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--loop", metavar="KERNEL")
    parser.add_argument("--llvm-mca", default="llvm-mca-22")
    parser.add_argument("--objdump", default="aarch64-linux-gnu-objdump")
    parser.add_argument("--gcc", default="aarch64-linux-gnu-gcc")
    args = parser.parse_args()
    files = kernels(args.build)
    check_models(args.llvm_mca)
    if args.loop:
        [(_, figures)] = analyse([files[args.loop]], args)
        print(head("kernel"), f"| {args.loop} | {figures.row()}", "", *(i.text for i in figures.loop.instructions), sep="\n")
    elif args.all:
        every(files, args)
    else:
        models(args.llvm_mca)
        print("\n" + head("kernel"))
        for name, figures in analyse([files[name] for name in CHOSEN], args):
            print(f"| {name} | {figures.row()}")
        if args.xnnpack:
            xnnpack(args.xnnpack, args)


if __name__ == "__main__":
    main()
