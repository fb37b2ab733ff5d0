#!/usr/bin/env python3
"""Writes one ONNX model per layer of a workload: a ConvTranspose node (opset 11, of bf16 22) of static shapes with constant random
weights and bias, or with --dtype u8 a QLinearConvTranspose node (com.ms.internal.nhwc): channels last, u8 x and y with
zero points in the middle, s8 weights with a scale for each output channel.

A layer is an object with name, n (batch), c (input channels), spatial (input extents), m (output channels), k (kernel
extents), and s, p, op, g, d: stride, pad at begin and end, output_padding, group, dilation. Each of s, p, op and d is
one number for all axes, or a list with one per axis. A source may say where its figures are from.
"""
import argparse
import json
import math
import pathlib
import zlib

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f16": (TensorProto.FLOAT16, np.float16), "f32": (TensorProto.FLOAT, np.float32),
         "f64": (TensorProto.DOUBLE, np.float64), "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16)}


def per_axis(layer, key):
    value = layer[key]
    return list(value) if isinstance(value, list) else [value] * len(layer["spatial"])


def output_extents(layer):
    axes = zip(layer["spatial"], layer["k"], *(per_axis(layer, key) for key in ("s", "p", "op", "d")))
    return [s * (i - 1) + op + (k - 1) * d + 1 - 2 * p for i, k, s, p, op, d in axes]


def make_model(layer, dtype):
    onnx_type, numpy_type = TYPES[dtype]
    random = np.random.default_rng(zlib.crc32(layer["name"].encode()))  # the same values whatever else is written
    w = random.random((layer["c"], layer["m"] // layer["g"], *layer["k"]), dtype=np.float32) - np.float32(0.5)
    w *= np.float32(4 / math.sqrt(layer["c"] / layer["g"]))  # y of order 1
    b = random.random(layer["m"], dtype=np.float32)
    pads = per_axis(layer, "p")
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], name=layer["name"], group=layer["g"],
                            kernel_shape=layer["k"], strides=per_axis(layer, "s"), pads=pads + pads,
                            output_padding=per_axis(layer, "op"), dilations=per_axis(layer, "d"))
    graph = helper.make_graph(
        [node], layer["name"],
        [helper.make_tensor_value_info("x", onnx_type, [layer["n"], layer["c"], *layer["spatial"]])],
        [helper.make_tensor_value_info("y", onnx_type, [layer["n"], layer["m"], *output_extents(layer)])],
        [numpy_helper.from_array(w.astype(numpy_type), "w"), numpy_helper.from_array(b.astype(numpy_type), "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22 if dtype == "bf16" else 11)],
                             ir_version=10 if dtype == "bf16" else 8)


def make_quantized_model(layer):
    random = np.random.default_rng(zlib.crc32(layer["name"].encode()))
    w = random.integers(-127, 128, (layer["c"], layer["m"] // layer["g"], *layer["k"]), dtype=np.int8)
    terms = max(layer["c"] / layer["g"] * math.prod(layer["k"]) / math.prod(per_axis(layer, "s")), 1)  # of one output
    constants = {
        "x_scale": np.float32(0.02), "x_zero_point": np.uint8(128), "w": w,
        "w_scale": random.uniform(0.005, 0.02, layer["m"]).astype(np.float32), "w_zero_point": np.int8(0),
        "y_scale": np.float32(0.02 * 0.01 * 74 * 74 * math.sqrt(terms) / 42),  # y fills its 8 bits
        "y_zero_point": np.uint8(128), "b": random.integers(-9999, 10000, layer["m"], dtype=np.int32)}
    pads = per_axis(layer, "p")
    node = helper.make_node("QLinearConvTranspose", ["x", *constants], ["y"], name=layer["name"],
                            domain="com.ms.internal.nhwc", group=layer["g"], kernel_shape=layer["k"],
                            strides=per_axis(layer, "s"), pads=pads + pads, output_padding=per_axis(layer, "op"),
                            dilations=per_axis(layer, "d"))
    u8 = TensorProto.UINT8
    graph = helper.make_graph(
        [node], layer["name"],
        [helper.make_tensor_value_info("x", u8, [layer["n"], *layer["spatial"], layer["c"]])],
        [helper.make_tensor_value_info("y", u8, [layer["n"], *output_extents(layer), layer["m"]])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.ms.internal.nhwc", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("layers", metavar="LAYERS.json", type=pathlib.Path)
    parser.add_argument("out", metavar="OUT", type=pathlib.Path, help="folder for NAME.onnx")
    parser.add_argument("--dtype", choices=[*TYPES, "u8"], default="f32")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the layers whose name contains this")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    layers = [layer for layer in json.loads(arguments.layers.read_text()) if arguments.only in layer["name"]]
    for layer in layers:
        quantized = arguments.dtype == "u8"
        model = make_quantized_model(layer) if quantized else make_model(layer, arguments.dtype)
        onnx.save(model, arguments.out / f"{layer['name']}.onnx")
    print(f"{len(layers)} models in {arguments.out}")


if __name__ == "__main__":
    main()
