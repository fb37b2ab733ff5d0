#!/usr/bin/env python3
"""Runs a WebAssembly program with its arguments, in a host that offers WASI: its own standard streams, and the folders that
are named, under their own names.

Compiled once: what came of it stays beside the program.

usage: run_wasi.py [--dir FOLDER]... PROGRAM [ARGUMENT...]
"""
import os
import pathlib
import sys

import wasmtime


def load(engine, program):
    program = pathlib.Path(program)
    compiled = program.with_name(program.name + ".compiled")
    if not compiled.exists() or compiled.stat().st_mtime_ns < program.stat().st_mtime_ns:
        mine = program.with_name(f"{program.name}.{os.getpid()}") # others may be doing the same
        mine.write_bytes(wasmtime.Module.from_file(engine, program).serialize())
        mine.replace(compiled)
    return wasmtime.Module.deserialize_file(engine, str(compiled))


def main(arguments):
    wasi = wasmtime.WasiConfig()
    while arguments[:1] == ["--dir"]:
        wasi.preopen_dir(arguments[1], arguments[1])
        arguments = arguments[2:]
    if not arguments:
        raise SystemExit(__doc__)
    wasi.argv = arguments
    wasi.inherit_env()
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    engine = wasmtime.Engine()
    store = wasmtime.Store(engine)
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    program = linker.instantiate(store, load(engine, arguments[0]))
    try:
        program.exports(store)["_start"](store)
    except wasmtime.ExitTrap as end:
        return end.code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
