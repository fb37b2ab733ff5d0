"""MNN: f32, the model converted from ONNX, x and y in its layout of blocks of channels, as within a network. A layer of one
axis is one of two, which needs no other operators. MNN uses the memory of x for more, so that x is copied before each run: that
time is not counted.
"""
import pathlib
import tempfile
import time

import _tools  # MNN's converter: its command line would send a log of its use, and install packages for that
import MNN
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import Runner

PACKAGE = "MNN"


def _model(layer):
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], group=layer.group, kernel_shape=layer.w.shape[2:],
                            strides=layer.strides, pads=[*layer.pads, *layer.pads], output_padding=layer.output_padding,
                            dilations=layer.dilations)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, shape in (("x", layer.x.shape), ("y", (layer.x.shape[0], len(layer.b), *layer.out)))]
    constants = [numpy_helper.from_array(array, name) for name, array in (("w", layer.w), ("b", layer.b))]
    graph = helper.make_graph([node], "layer", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=8)


def _network(layer):
    with tempfile.TemporaryDirectory() as folder:
        files = [str(pathlib.Path(folder) / name) for name in ("layer.onnx", "layer.mnn")]
        onnx.save(_model(layer), files[0])
        # 0: x is not channels first, as in ONNX, but as the first operator has it.
        _tools.mnnconvert(["MNNConvert", "-f", "ONNX", "--modelFile", files[0], "--MNNModel", files[1], "--keepInputFormat=0",
                           "--bizCode", "bench"])
        return MNN.Interpreter(files[1])


def packed(layer, threads):
    layer = layer.as_two_axes()
    network = _network(layer)
    session = network.createSession({"backend": "CPU", "numThread": threads, "precision": "high", "memory": "high"})
    x, y = network.getSessionInput(session), network.getSessionOutput(session)
    channels_first, f32 = MNN.Tensor_DimensionType_Caffe, MNN.Halide_Type_Float
    source = MNN.Tensor(layer.x.shape, f32, layer.x, channels_first)

    def time_run():
        x.copyFrom(source)
        begin = time.perf_counter()
        network.runSession(session)
        return time.perf_counter() - begin

    def time_runs(seconds):
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            times.append(time_run())
        return times

    def output():
        shape = (layer.x.shape[0], len(layer.b), *layer.out)
        host = MNN.Tensor(shape, f32, np.zeros(shape, np.float32), channels_first)
        y.copyToHostTensor(host)
        return np.array(host.getNumpyData())

    operators = []
    x.copyFrom(source)
    network.runSessionWithCallBackInfo(session, lambda _, operator: (operators.append(operator.getType()), True)[1],
                                       lambda _, operator: True)
    return Runner(time_run, output, times=time_runs, note=" ".join(operators))


SETTINGS = {"mnn": packed}
