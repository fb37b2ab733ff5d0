#!/usr/bin/env python3
"""Writes a few inputs for each fuzzing target, of which libFuzzer makes others: make_corpus.py FOLDER VERSION KERNELS

VERSION and KERNELS are those of the library and of its kernels, which records are of."""
import base64
import io
import json
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LAYER = "f32 nhwc n1 g1 ic16 oc16 i5x5 k4x4 s2x2 p1x1_1x1 op0x0 d1x1"

LINES = [
    LAYER,
    "f32 nchw n1 g1 ic16 oc8 i5x5 k3x3 s2x2 p1x1_1x1 op1x1 d1x1 bias",
    "u8 nhwc n2 g4 ic8 oc4 i5 k3 auto_SAME_UPPER v11 ws8 yf32 os9",
    "f32 nchw n1 g2 ic16 oc8 i5x5 k3x3 bias ws8 dynamic",
    "f64 nchw i3x4x5 k1x2x3 d9223372036854775807x1x1 v99999999999",
]

# Inputs of the target "interface" that showed a fault, which is mended: col2im with a stride of 2^60.
FOUND = [
    "AAcOW2JpcHd+hYyTmqGor7YwxMvS2eDnmgAAAAAAAAj8AAcOERwjKjE4P0ZNVEoAAAAAAAAAAIy2mqGvk6i9SgB+hYyTmqGor7Y=",
]

def records(version, kernels):
    record = {"package": version, "kernels": kernels, "cpu": "*", "isa": "avx2", "threads": 0, "problem": LAYER,
              "variant": "reference_f32", "ms": 0.273}
    yield json.dumps(record) + "\n"
    for key, value in (("variant", "col2im"), ("isa", "avx512"), ("threads", 2), ("ms", 1e308), ("kernels", "others")):
        record[key] = value
        yield "\n" + json.dumps(record) + "\n" + json.dumps(record)
    profile = {key: record[key] for key in ("package", "cpu")} | {"kernels": kernels, "isa": "*"}
    for value in ("zen3", "none", {}, {"latency": 1000, "far_from": "infinite", "loads": 0.01}, {"tiles_in_place": -1}):
        yield json.dumps({**profile, "cost_profile": value}) + "\n"

def arrays():
    yield np.arange(6, dtype=np.float32).reshape(2, 3)
    yield np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3))
    for dtype in (np.float16, np.uint8, np.int8, np.int32):
        yield np.array([[[1, 2]]], dtype=dtype)
    yield np.zeros((0, 4), dtype=np.float32)
    yield np.float32(3)

def tensors():
    """A byte that is odd for .npy and even for .pb, then the file."""
    for array in arrays():
        for version in ((1, 0), (2, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, np.asanyarray(array), version=version)
            yield b"\1" + file.getvalue()
        yield b"\0" + numpy_helper.from_array(np.ascontiguousarray(array), "t").SerializeToString()
    yield b"\0" + helper.make_tensor("t", TensorProto.BFLOAT16, [3], [1.0, 2.0, 3.0]).SerializeToString()
    external = TensorProto(name="t", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    external.external_data.add(key="location", value="../input.pb")
    external.external_data.add(key="offset", value="4")
    yield b"\0" + external.SerializeToString()

def models():
    w = numpy_helper.from_array(np.ones((2, 3, 2, 2), dtype=np.float32), "w")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[0, 0, 1, 1], dilations=[1, 1],
                            kernel_shape=[2, 2], output_padding=[1, 0], group=1)
    for opset in (1, 11, 22):
        graph = helper.make_graph([node], "g", [x], [y], [w])
        yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    constant = helper.make_node("Constant", [], ["w"], value=w)
    auto = helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="n", auto_pad="SAME_LOWER", output_shape=[7, 7])
    yield helper.make_model(helper.make_graph([constant, auto], "g", [x], [y]), ir_version=10)
    quant = {"x_scale": np.float32(0.1), "x_zp": np.uint8(3), "w": np.ones((2, 3, 2, 2), dtype=np.int8),
             "w_scale": np.float32(0.2), "w_zp": np.int8(0), "y_scale": np.float32(0.3), "y_zp": np.uint8(9)}
    node = helper.make_node("QLinearConvTranspose", ["x", "x_scale", "x_zp", "w", "w_scale", "w_zp", "y_scale", "y_zp"], ["y"],
                            domain="com.ms.internal.nhwc")
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 4, 4, 2])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, None)
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(np.array(v), n) for n, v in quant.items()])
    yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.ms.internal.nhwc", 1)])

def main():
    if len(sys.argv) != 4 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    corpora = {
        "interface": [bytes(range(0, 256, step)) * 2 for step in (1, 3, 7)] + [base64.b64decode(text) for text in FOUND],
        "input_shape": [b"x=1x3x224x224", b"a=b=0", b"x=1\nx=2x9223372036854775807"],
        "line": [line.encode() for line in LINES],
        "tuning": [text.encode() for text in records(sys.argv[2], sys.argv[3])],
        "tensor": list(tensors()),
        "onnx": [model.SerializeToString() for model in models()],
    }
    for name, inputs in corpora.items():
        folder = pathlib.Path(sys.argv[1], name)
        folder.mkdir(parents=True, exist_ok=True)
        for i, content in enumerate(inputs):
            (folder / f"{name}{i}").write_bytes(content)

if __name__ == "__main__":
    main()
