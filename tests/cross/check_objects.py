#!/usr/bin/env python3
"""Compiles a kernel of each kind for systems whose toolchains need not be at hand, and looks at the objects: their format and
architecture, that the kernel is defined, and that nothing is wanted but what any C library has.

usage: check_objects.py GENERATORS_DIR WORK_DIR TARGET
"""
import pathlib
import subprocess
import sys

import lief

FEATURES = "no_runtime-no_asserts-no_bounds_query"
X86 = "sse41-avx-avx2-f16c-fma-avx512-avx512_skylake"
TARGETS = {  # as Halide calls them: format, architecture, the features of the best ISA
    "arm-64-android": (lief.ELF.Binary, "AARCH64", "arm_dot_prod"),
    "x86-64-android": (lief.ELF.Binary, "X86_64", X86),
    "arm-64-ios": (lief.MachO.Binary, "ARM64", "arm_dot_prod"),
    "arm-64-osx": (lief.MachO.Binary, "ARM64", "arm_dot_prod"),
    "x86-64-osx": (lief.MachO.Binary, "X86_64", X86),
    "x86-64-windows": (lief.COFF.Binary, "AMD64", X86),
    "arm-64-windows": (lief.COFF.Binary, "ARM64", "arm_dot_prod"),
}
# Symbols of the C library that kernels may need; on Windows also its probe of large stack frames, and the mark of programs
# that use floating point.
WANTED = {"memcpy", "memmove", "memset", "__chkstk", "_fltused"}
FLOAT = ["arithmetic=float", "x_type=float32", "y_type=float32"]
INTEGER = ["arithmetic=int16", "x_type=uint8", "y_type=uint8"]
KERNELS = {
    "copy_input": [["order=transposed", "arithmetic=float", "x_type=float32"], ["order=planar", "arithmetic=int16"]],
    "reference": [[*FLOAT], ["arithmetic=int16", "y_type=int32"]],
    "oc_vectorized": [[*FLOAT, "output_order=planar", "stride_w=2", "tile_oc=8", "tile_q=8"],
                 [*INTEGER, "output_order=channels", "tile_oc=16", "tile_q=4"]],
    "ow_vectorized": [[*FLOAT, "output_order=planar", "stride_w=2", "tile_oc=4", "tile_q=16"]],
    "small_oc": [[*FLOAT, "output_order=planar", "stride_w=2", "stride_h=2", "tile_oc=1", "tile_q=16"]],
    "depthwise": [[*FLOAT, "output_order=channels", "tile_q=8"], [*INTEGER, "output_order=planar", "stride_w=2", "tile_q=16"]],
}


def architecture(binary):
    header = binary.header
    for field in ("machine_type", "cpu_type", "machine"):
        if hasattr(header, field):
            return str(getattr(header, field)).split(".")[-1]
    raise ValueError("the object names no architecture")


def symbols(binary):
    """The names that are defined, and those that are wanted."""
    defined, wanted = set(), set()
    for symbol in binary.symbols:
        name = symbol.name
        if isinstance(binary, lief.ELF.Binary):
            there, external = symbol.shndx != 0, symbol.binding == lief.ELF.Symbol.BINDING.GLOBAL
        elif isinstance(binary, lief.MachO.Binary):
            there, external = symbol.numberof_sections != 0, True
            name = name.removeprefix("_")
        else:
            there, external = symbol.section_idx != 0, symbol.storage_class.name == "EXTERNAL"
        if name and there:
            defined.add(name)
        elif name and external:
            wanted.add(name)
    return defined, wanted


def main(generators, work, target):
    kind, machine, features = TARGETS[target]
    work = pathlib.Path(work) / target
    work.mkdir(parents=True, exist_ok=True)
    count = 0
    for generator, variants in KERNELS.items():
        for i, parameters in enumerate(variants):
            name = f"{generator}_{i}"
            line = [pathlib.Path(generators) / f"{generator}_generator", "-g", generator, "-f", f"convt_{name}", "-n", name,
                    "-e", "object", "-o", work, f"target={target}-{features}-{FEATURES}", *parameters]
            result = subprocess.run(line, check=False, stderr=subprocess.PIPE, text=True)  # it warns of asserts that are not there
            if result.returncode:
                sys.exit(result.stderr)
            [file] = work.glob(f"{name}.o*")
            binary = lief.COFF.parse(str(file)) if kind is lief.COFF.Binary else lief.parse(str(file))
            if not isinstance(binary, kind):
                sys.exit(f"{file} is {type(binary)}, not {kind}")
            if architecture(binary) != machine:
                sys.exit(f"{file} is for {architecture(binary)}, not {machine}")
            defined, wanted = symbols(binary)
            if f"convt_{name}" not in defined:
                sys.exit(f"{file} does not define convt_{name}, but {sorted(defined)}")
            if not wanted <= WANTED:
                sys.exit(f"{file} wants {sorted(wanted - WANTED)}")
            count += 1
    print(f"{count} kernels for {target}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
