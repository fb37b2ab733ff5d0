"""Kernels that were found for single layers: each file of schedules/tuned is what `convtranspose tune --rows` wrote of one.

    {"record": {"isa": "avx512", "problem": "f32 nchw n1 g1 ...", "variant": "small_oc_f32_planar_s2x2_1x4x1_0fc41dd3"},
     "measured": {"cpu": ..., "threads": 1, "default": ..., "default_ms": ..., "ms": ..., "package": ...},
     "kernel": {"generator": "small_oc", "parameters": ["output_order=planar", ...], "row": {...}}}

Plans for that layer, of any number of threads, then run what the record says. The kernel's row is as tools/tune/kernel_row.h has
it; there is no kernel where the variant is one of the table or an algorithm.
"""
from __future__ import annotations

import json
import math
from pathlib import Path

from kernels.model import Build, Kernel, TableError


def read_tuned(folder: Path, build: Build) -> tuple[list[Kernel], dict[str, list[str]]]:
    """The kernels that are built, and for each component its records, as string literals of C++."""
    kernels: list[Kernel] = []
    records: dict[str, list[str]] = {"float": [], "quantized": []}
    for file in sorted(folder.glob("*.json")):
        try:
            _read(json.loads(file.read_text(encoding="utf-8")), build, kernels, records)
        except (AttributeError, KeyError, TypeError, ValueError, TableError) as error:
            raise TableError(f"{file}: {error}") from error
    return kernels, records


def _read(layer: dict, build: Build, kernels: list[Kernel], records: dict[str, list[str]]) -> None:
    isa, problem, variant = (layer["record"][key] for key in ("isa", "problem", "variant"))
    dtype = problem.split()[0]
    component = "quantized" if dtype in ("u8", "s8") else "float"
    if isa not in build.isas or (dtype if component == "float" else component) not in build.types:
        return
    if "kernel" in layer:
        kernel = layer["kernel"]
        if kernel["generator"] not in build.families:
            return
        kernels.append(Kernel(variant, isa, "variant", component, kernel["generator"], kernel["parameters"], kernel["row"]))
    ms = layer["measured"]["ms"]
    if not 0 < ms < math.inf:
        raise TableError(f"ms is {ms}, must be a number above 0")
    records[component].append(_record(isa, problem, variant, ms))


def _record(isa: str, problem: str, variant: str, ms: float) -> str:
    """A tuning record. Its package and kernels are those of this build, because what is built here is what the record is of."""
    record = {"package": "@CONVT_VERSION@", "kernels": "@CONVTRANSPOSE_KERNELS_VERSION@", "cpu": "*", "isa": isa, "threads": 0,
              "problem": problem, "variant": variant, "ms": ms}
    text = json.dumps(record).replace("\\", "\\\\").replace('"', '\\"')
    for macro in ("CONVT_VERSION", "CONVTRANSPOSE_KERNELS_VERSION"):
        text = text.replace(f"@{macro}@", f'" {macro} "')
    return f'    "{text}\\n"\n'
