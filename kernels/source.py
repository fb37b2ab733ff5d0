"""The C++ tables of kernels. Their text is made of templates, in which @key@ stands for the value of that name.

This is the only place that knows how a row looks in C++: kernels.json takes the templates along, and `convtranspose tune` fills in
the same ones (tools/tune/kernel_source.cpp).
"""
from __future__ import annotations

import re
from pathlib import Path

from kernels import table
from kernels.model import Kernel, TableError

HERE = Path(__file__).resolve().parent
TABLE = (HERE / "kernel_table.cpp.in").read_text(encoding="utf-8")
DEVICE_TABLE = (HERE / "device_table.cpp.in").read_text(encoding="utf-8")

# The words of the table that are enumerators in C++, by the key of the row that holds them.
_OUTPUT_ORDERS = {"channels": "OutputOrder::kChannels", "planar": "OutputOrder::kPlanar"}
_DTYPES = {name: f"CONVT_{name.upper()}" for name in ("f16", "bf16", "f32", "f64", "u8", "s32")}
ENUMERATORS = {
    "isa": {isa.name: f"Isa::{isa.enumerator}" for isa in table.ISAS.values()},
    "family": {family.name: f"Family::{family.enumerator}" for family in table.FAMILIES},
    "output_order": _OUTPUT_ORDERS,
    "arithmetic": {name: "Arithmetic::k" + name.title().replace("_", "")
                   for name in ("float", "half", "bf16", "int8", "int16", "f16_weights", "bf16_weights", "s8_weights")},
    "dtype": _DTYPES,
    "order": {"planar": "CopyOrder::kPlanar", "channels": "CopyOrder::kChannels", "transposed": "CopyOrder::kTransposed",
              "tiles": "CopyOrder::kTiles", "tochannels": "CopyOrder::kToChannels",
              "tilestochannels": "CopyOrder::kTilesToChannels"},
    "x": _DTYPES,
    "y": _DTYPES,
    "activation": {"clip": "PostKernel::kClip", "leaky_relu": "PostKernel::kLeakyRelu", "sigmoid": "PostKernel::kSigmoid",
                   "tanh": "PostKernel::kTanh"},
}

# For each kind of kernel the array that has its row, the declaration of its function, and the row (kernel_contract/kernel_table.h).
KINDS = {
    "variant": {
        "array": "variants",
        "declaration": "ConvSignature @function@;\n",
        "row": '    {"@name@", @isa@, @family@, @output_order@, @arithmetic@, @dtype@, @stride_w@, @stride_h@, @tile_oc@, '
               "@tile_q@, @tile_qh@, @lanes@, @function@@built_in@},\n",
    },
    "copy": {
        "array": "copies",
        "declaration": "CopySignature @function@;\n",
        "row": "    {@isa@, @order@, @arithmetic@, @dtype@, @block@, @function@},\n",
    },
    "post_ops": {
        "array": "post_ops",
        "declaration": "PostOpsSignature @function@;\n",
        "row": "    {@isa@, @dtype@, @activation@, @adds_residual@, @function@},\n",
    },
    "col2im": {
        "array": "col2im",
        "declaration": "Col2imSignature @function@;\n",
        "row": "    {@isa@, @dtype@, @output_order@, @stride_w@, @vectors@, @lanes@, @function@},\n",
    },
    "winograd_input": {
        "array": "winograd",
        "declaration": "WinogradInputSignature @function@;\n",
        "row": '    {@isa@, @dtype@, 0, 0, "@built_in_w@", "@built_in_h@", @function@, nullptr},\n',
    },
    "winograd_output": {
        "array": "winograd",
        "declaration": "WinogradOutputSignature @function@;\n",
        "row": '    {@isa@, @dtype@, @count_w@, @count_h@, "", "", nullptr, @function@},\n',
    },
}

# A row refers to this if its kernel is for some layers alone: the tap table of an axis, the axis, all three, and the reference.
BUILT_IN = {
    "axes": ["w", "h", "d"],
    "taps": "taps_@function@_@axis@",
    "no_taps": "nullptr",
    "table": "const std::int32_t @taps@[] = {@table@};\n",
    "axis": "{@taps@, @phases@, @step@, @count@, @out@}",
    "layer": "const BuiltIn built_in_@function@ = {@ic@, @oc@, {@axes@}, @x_in_place@};\n",
    "reference": ", &built_in_@function@",
}

# The arrays of a table, in the order of convt_kernels, and how it refers to them, with rows and without.
def _array(name: str, row_type: str, variable: str) -> dict:
    return {"name": name, "text": f"\nconst {row_type} {variable}[] = {{\n@rows@}};\n",
            "entry": f"{variable}, sizeof {variable} / sizeof {variable}[0]", "no_entry": "nullptr, 0"}


ARRAYS = [
    _array("variants", "Variant", "kVariants"),
    _array("copies", "CopyVariant", "kCopies"),
    _array("post_ops", "PostOpsVariant", "kPostOps"),
    _array("col2im", "Col2imVariant", "kCol2im"),
    _array("winograd", "WinogradVariant", "kWinograd"),
    {"name": "records", "text": "\nconst char kRecords[] =\n@rows@    ;\n", "entry": "kRecords", "no_entry": "nullptr"},
]

DEVICE_ROW = ('    {"@name@", DeviceCall::@call@, @arithmetic@, @channels_last@, @x@, @y@, @tile_oc@, @tile_p@, @chunk@, '
              "@threads@, {@costs@}, @function@_argv},\n")
VARIANT_COSTS = ("step_cycles", "step_latency", "block_latency", "resident_blocks")
DEVICE_COSTS = ("launch_cycles", "bytes_per_cycle", "strided")


def fill(template: str, values: dict) -> str:
    """Words become enumerators where their key has some, numbers and truth values what C++ calls them, and lists are joined."""

    def text(match: re.Match) -> str:
        key = match.group(1)
        if key not in values:
            raise TableError(f"a row has no {key}")
        value = values[key]
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list):
            return ", ".join(map(str, value))
        if key in ENUMERATORS and value not in ENUMERATORS[key]:
            raise TableError(f"there is no {key} '{value}'")
        return ENUMERATORS[key][value] if key in ENUMERATORS else str(value)

    return re.sub(r"@(\w+)@", text, template)


def built_in_text(row: dict, function: str) -> tuple[str, str]:
    """The constants that a row refers to if its kernel is for some layers alone, and the reference to them."""
    layer = row.get("built_in")
    if not layer:
        return "", ""
    tables, axes = "", []
    for name, axis in zip(BUILT_IN["axes"], layer["axes"]):
        values = {**axis, "function": function, "axis": name}
        values["taps"] = fill(BUILT_IN["taps" if axis["table"] else "no_taps"], values)
        tables += fill(BUILT_IN["table"], values) if axis["table"] else ""
        axes.append(fill(BUILT_IN["axis"], values))
    values = {**layer, "function": function, "axes": axes}
    return tables + fill(BUILT_IN["layer"], values), fill(BUILT_IN["reference"], values)


def kernel_table(component: str, kernels: list[Kernel], records: list[str]) -> str:
    """The source file of a component's table. records: lines of C++ that are string literals."""
    rows = {array["name"]: "" for array in ARRAYS}
    rows["records"] = "".join(records)
    declarations = built_ins = ""
    for kernel in kernels:
        kind = KINDS[kernel.kind]
        built_in, reference = built_in_text(kernel.row, kernel.function)
        values = {**kernel.row, "function": kernel.function, "built_in": reference}
        declarations += fill(kind["declaration"], values)
        built_ins += built_in
        rows[kind["array"]] += fill(kind["row"], values)
    arrays = "".join(fill(array["text"], {"rows": rows[array["name"]]}) for array in ARRAYS if rows[array["name"]])
    entries = [array["entry" if rows[array["name"]] else "no_entry"] for array in ARRAYS]
    return fill(TABLE, {"component": component, "declarations": declarations, "built_in": built_ins, "arrays": arrays,
                        "entries": entries})


def device_table(device: str, kernels: list[Kernel], costs: dict) -> str:
    """The source file of a device's table. costs: kernels/device_costs.json."""
    declarations = "".join(fill("int @function@_argv(void **);\n", {"function": kernel.function}) for kernel in kernels)
    rows = ""
    for kernel in kernels:
        if kernel.row["call"] == "kCombine":
            own = [0] * len(VARIANT_COSTS)
        elif kernel.name in costs["kernels"]:
            own = [costs["kernels"][kernel.name][key] for key in VARIANT_COSTS]
        else:
            raise TableError(f"kernels/device_costs.json has no costs of {kernel.name}: bench/gpu/README.md says how to get some")
        rows += fill(DEVICE_ROW, {**kernel.row, "function": kernel.function, "costs": own})
    return fill(DEVICE_TABLE, {"device": device, "declarations": declarations, "rows": rows,
                               "costs": [costs[key] for key in DEVICE_COSTS]})


def templates() -> dict:
    """All that `convtranspose tune` needs to write such a table."""
    return {"enumerators": ENUMERATORS, "kinds": KINDS, "built_in": BUILT_IN, "arrays": ARRAYS, "table": TABLE}
