#!/usr/bin/env python3
"""Looks at a program for another system: that it is one, its format and architecture, and that it needs no library but the
system's own.

usage: check_program.py FILE PE|MachO|wasm MACHINE
"""
import re
import sys

import lief
import wasmtime

FORMATS = {  # class of a program, its field that names the machine, the libraries of the system
    "PE": (lief.PE.Binary, "machine", r"(kernel32|ntdll|api-ms-win-crt-.*)\.dll"),
    "MachO": (lief.MachO.Binary, "cpu_type", r"/usr/lib/libSystem\.B\.dylib"),
}


def check_wasm(file, machine):
    """A WebAssembly module names no libraries but the interfaces that it is to be given."""
    module = wasmtime.Module.from_file(wasmtime.Engine(), file)
    if "_start" not in [export.name for export in module.exports]:
        sys.exit(f"{file} begins nowhere: it is no program")
    [memory] = [export.type for export in module.exports if isinstance(export.type, wasmtime.MemoryType)]
    found = "wasm64" if memory.is_64 else "wasm32"
    if found != machine:
        sys.exit(f"{file} is for {found}, not {machine}")
    interfaces = {imported.module for imported in module.imports}
    if interfaces != {"wasi_snapshot_preview1"}:
        sys.exit(f"{file} needs {sorted(interfaces)}, not WASI alone")
    print(f"a program for {machine} that needs WASI")


def main(file, form, machine):
    if form == "wasm":
        check_wasm(file, machine)
        return
    kind, field, system = FORMATS[form]
    binary = lief.parse(file)
    if not isinstance(binary, kind):
        sys.exit(f"{file} is {type(binary)}, not {kind}")
    found = str(getattr(binary.header, field)).split(".")[-1]
    if found != machine:
        sys.exit(f"{file} is for {found}, not {machine}")
    if not binary.entrypoint:
        sys.exit(f"{file} begins nowhere: it is no program")
    libraries = [getattr(library, "name", library) for library in binary.libraries]
    others = [name for name in libraries if not re.fullmatch(system, name, re.IGNORECASE)]
    if others or not libraries:
        sys.exit(f"{file} needs {others or 'nothing'}, not only the system's libraries")
    print(f"a program for {machine} that needs {', '.join(libraries)}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
