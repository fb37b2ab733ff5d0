"""Writes what CMake and `convtranspose tune` need to know of the kernels of the table (table.py), for one build. Run by
cmake/kernels.cmake as `python -m kernels.generate`:

    COMPONENT_kernels.cpp, DEVICE_kernels.cpp   the C++ tables of the library's components
    kernels.json                                every kernel for a CPU, and how its row is written, for `convtranspose tune`
    kernels.txt                                 the object files of those, for tests
    kernels.cmake                               one command for each kernel, and lists of what they make
    kernels/blocks.json                         the blocks of threads of kernels for devices, for bench/gpu

A file that would stay the same is not written, so nothing is built again for it.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from kernels import source, table
from kernels.model import Architecture, Build, Isa, Kernel, TableError
from kernels.tuned import read_tuned

COMPONENTS = ("float", "quantized")


def words(text: str) -> list[str]:
    """A list of CMake."""
    return [word for word in text.split(";") if word]


def selected(option: str, text: str, known: list[str]) -> list[str]:
    """The words of an option of the build, all of them if it says `all`."""
    chosen = known if text == "all" else words(text)
    for word in chosen:
        if word not in known:
            raise TableError(f"{option}: there is no '{word}'; there are {' '.join(known)}")
    return chosen


def architecture_of(processor: str, system: str) -> Architecture:
    """The architecture of a processor as CMake calls it."""
    if system == "Emscripten":  # which calls its processor x86
        processor = "wasm32"
    if len(words(processor)) > 1:
        raise TableError(f"CMAKE_OSX_ARCHITECTURES is '{processor}': build for each by itself, and put them together by lipo")
    for architecture in table.ARCHITECTURES:
        if re.fullmatch(architecture.processors, processor.lower()):
            return architecture
    raise TableError(f"no kernels for the processor '{processor.lower()}': there are some for x86_64, arm64, armv7 and wasm32")


def isas_of(architecture: Architecture, os: str, text: str) -> dict[str, Isa]:
    """The ISAs that are built: those that CONVTRANSPOSE_ISAS names, or all."""
    known = [isa for isa in map(table.ISAS.get, architecture.isas) if not isa.systems or os in isa.systems]
    chosen = selected("CONVTRANSPOSE_ISAS", text or "all", [isa.name for isa in known])
    for isa in known:
        if isa.adds_to and isa.name in chosen and isa.adds_to not in chosen:
            raise TableError(f"CONVTRANSPOSE_ISAS: {isa.name} adds to {isa.adds_to}, which must be in the list too")
    return {isa.name: isa for isa in known if isa.name in chosen}


def build_of(options: argparse.Namespace) -> Build:
    architecture = architecture_of(options.processor, options.system)
    if options.system not in table.OPERATING_SYSTEMS:
        raise TableError(f"no kernels for the system '{options.system}'")
    os = table.OPERATING_SYSTEMS[options.system]
    types = selected("CONVTRANSPOSE_TYPES", options.types, table.TYPES)
    if {"f16", "bf16", "light"} & set(types) and "f32" not in types:
        types.append("f32")  # whose kernels compute layers of 16-bit types, and those of light weights that have none of their own
    if not types:
        raise TableError("CONVTRANSPOSE_TYPES is empty")
    families = selected("CONVTRANSPOSE_FAMILIES", options.families,
                        [family.name for family in table.FAMILIES if not family.always_built])
    return Build(architecture, os, isas_of(architecture, os, options.isas), table.DTYPES, tuple(types), tuple(families))


def has_all_kernels(build: Build) -> bool:
    families = {family.name for family in table.FAMILIES if not family.always_built}
    isas = isas_of(build.architecture, build.os, "all")
    return set(build.types) == set(table.TYPES) and set(build.families) == families and set(build.isas) == set(isas)


def kernels_of(build: Build, tuned: Path | None) -> tuple[list[Kernel], dict[str, list[str]]]:
    """All kernels for the CPU, those of single layers first, because the table ends in the reference; and tuning records."""
    kernels, records = read_tuned(tuned, build) if tuned else ([], {component: [] for component in COMPONENTS})
    for line in [*table.FIRST, *build.architecture.lines, *table.LAST]:
        try:
            kernels.extend(line.kernels(build))
        except (TableError, ValueError) as error:
            raise TableError(f"{error}: {line}") from error
    seen = set()
    for kernel in kernels:
        if kernel.function in seen:
            raise TableError(f"the table has {kernel.name} for {kernel.isa} twice")
        seen.add(kernel.function)
        build.complete(kernel)
    return kernels, records


def device_kernels(device: str, os: str) -> list[Kernel]:
    """The kernels for a device. They keep assertions, which are how a kernel notices that its device failed."""
    kernels = [kernel for line in table.DEVICE_LINES for kernel in line.kernels()]
    for kernel in kernels:
        kernel.isa = device
        features = table.DEVICES[device] + (table.DEVICE_F64.get(device, "") if "_f64" in kernel.name else "")
        strict = "-strict_float" if kernel.strict else ""
        kernel.target = f"x86-64-{os}-{features}-user_context-no_runtime-no_bounds_query{strict}"
    return kernels


def quoted(argument: str) -> str:
    """An argument of a CMake command."""
    if re.search(r'[\s;"\\$()#]', argument):
        raise TableError(f"'{argument}' cannot be passed to a generator")
    return argument


def command(kernel: Kernel, emits: str) -> str:
    arguments = [kernel.isa, kernel.name, kernel.program or kernel.generator, kernel.generator, emits, f"target={kernel.target}",
                 *kernel.parameters]
    return f"convtranspose_kernel({' '.join(map(quoted, arguments))})\n"


def cmake_list(name: str, items) -> str:
    return f"set({name}" + "".join(f"\n    {item}" for item in items) + ")\n"


def json_of(kernels: list[Kernel]) -> str:
    rows = ({"component": kernel.component, "kind": kernel.kind, "name": kernel.name, "isa": kernel.isa,
             "generator": kernel.generator, "target": kernel.target, "function": kernel.function,
             "parameters": kernel.parameters, "row": kernel.row} for kernel in kernels)
    return ('{"source": ' + json.dumps(source.templates()) + ',\n"kernels": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def generate(options: argparse.Namespace) -> None:
    build = build_of(options)
    devices = selected("CONVTRANSPOSE_DEVICES", options.devices, list(table.DEVICES))
    if devices and (build.architecture.name, options.system) != ("x86", "Linux"):
        raise TableError("CONVTRANSPOSE_DEVICES: only for x86-64 Linux so far")
    kernels, records = kernels_of(build, options.tuned)
    suffix = ".obj" if options.system == "Windows" else ".o"
    folder = options.output / "kernels"
    for isa in [*build.isas, *devices]:
        (folder / isa).mkdir(parents=True, exist_ok=True)

    components = [component for component in COMPONENTS if any(kernel.component == component for kernel in kernels)]
    cmake = ["# Generated by kernels/generate.py.\n", f"set(architecture {build.architecture.name})\n",
             f"set(has_all_kernels {'TRUE' if has_all_kernels(build) else 'FALSE'})\n",
             f"set(kernel_suffix {suffix})\n", cmake_list("components", components)]
    objects = []
    for component in components:
        own = [kernel for kernel in kernels if kernel.component == component]
        write(options.output / f"{component}_kernels.cpp", source.kernel_table(component, own, records[component]))
        files = [f"{kernel.isa}/{kernel.name}{suffix}" for kernel in own]
        cmake.append(cmake_list(f"kernel_objects_{component}", files))
        objects += files
    commands = [command(kernel, build.emits(kernel)) for kernel in kernels]
    costs = json.loads((Path(__file__).parent / "device_costs.json").read_text(encoding="utf-8"))
    for device in devices:
        own = device_kernels(device, build.os)
        write(options.output / f"{device}_kernels.cpp", source.device_table(device, own, costs))
        cmake.append(cmake_list(f"kernel_objects_{device}", [f"{device}/{kernel.name}{suffix}" for kernel in own]))
        cmake.append(f"set(runtime_target_{device} x86-64-{build.os}-{table.DEVICES[device]})\n")
        emits = "object,device_code" if device == "cuda" else "object"  # PTX, for tests/gpu
        commands += [command(kernel, emits) for kernel in own]
    write(options.output / "kernels.cmake", "".join(cmake + commands))
    write(options.output / "kernels.json", json_of(kernels))
    write(options.output / "kernels.txt", "".join(f"{(folder / file).as_posix()}\n" for file in objects))
    blocks = {kernel.name: list(kernel.block) for kernel in device_kernels("cuda", build.os)}
    write(folder / "blocks.json", "{" + ",".join(f"\n{json.dumps(name)}: {block}" for name, block in blocks.items()) + "\n}\n")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, help="the folder that is written to")
    parser.add_argument("--system", required=True, help="CMAKE_SYSTEM_NAME")
    parser.add_argument("--processor", required=True, help="CMAKE_SYSTEM_PROCESSOR")
    parser.add_argument("--types", default="all", help="CONVTRANSPOSE_TYPES")
    parser.add_argument("--families", default="all", help="CONVTRANSPOSE_FAMILIES")
    parser.add_argument("--isas", default="", help="CONVTRANSPOSE_ISAS; empty: all of the architecture")
    parser.add_argument("--devices", default="", help="CONVTRANSPOSE_DEVICES")
    parser.add_argument("--tuned", type=Path, help="the folder of kernels for single layers")
    try:
        generate(parser.parse_args(arguments))
    except TableError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
