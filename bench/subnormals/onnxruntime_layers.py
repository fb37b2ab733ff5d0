#!/usr/bin/env python3
"""CPU time of the runs of layers.cpp, by ONNX Runtime: the least of 60, one thread."""
import time

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper


def session(w):
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", "c", "h", "w"])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "layer", [x], [y], [numpy_helper.from_array(w, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def time_of(ic, oc, extent, x_scale, w_scale):
    random = np.random.default_rng(1)
    x = (random.uniform(-1, 1, (1, ic, extent, extent)) * x_scale).astype(np.float32)
    layer = session((random.uniform(-1, 1, (ic, oc, 4, 4)) * w_scale).astype(np.float32))
    times = []
    for _ in range(60):
        begin = time.thread_time()
        layer.run(None, {"x": x})
        times.append(time.thread_time() - begin)
    return min(times) * 1e3


for channels_in, channels_out, side in (64, 64, 32), (256, 128, 16), (64, 3, 64):
    scales = (1, 1), (1e-40, 1), (1, 1e-40), (1e-20, 1e-20)
    measured = " ".join(f"{time_of(channels_in, channels_out, side, *scale):.3f}" for scale in scales)
    print(f"{channels_in} to {channels_out} channels of {side}x{side}: {measured} ms")
