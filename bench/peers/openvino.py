"""OpenVINO's CPU plugin: the model as it is, which includes reordering to the channels-last layout that it computes in and
back, and with channels last outside too, as it is within a network.
"""
import numpy as np
import openvino as ov
from openvino.preprocess import PrePostProcessor

from . import Runner, channels_first, channels_last

PACKAGE = "openvino"

CORE = ov.Core()


def _kernel(compiled):
    for node in compiled.get_runtime_model().get_ordered_ops():
        info = node.get_rt_info()
        if info["layerType"].astype(str) == "Deconvolution":
            return info["primitiveType"].astype(str)
    return "no Deconvolution node"


def _runner(model, x, threads, output):
    compiled = CORE.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "ENABLE_CPU_PINNING": False,
        "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    request.set_input_tensor(ov.Tensor(x, shared_memory=True))
    runner = Runner(lambda: request.infer(share_outputs=True),  # without it, each call copies the result
                    lambda: output(np.array(request.get_output_tensor().data)), note=_kernel(compiled))
    runner.x = x  # which the tensor does not own
    return runner


def nchw(layer, threads):
    return _runner(CORE.read_model(layer.model), layer.x, threads, lambda y: y)


def nhwc(layer, threads):
    # One axis has no fast kernel, so it becomes two. A model of the layer by hand, since that one's shapes have changed.
    layer = layer.as_two_axes()
    w = layer.w
    x = ov.opset8.parameter(list(layer.x.shape), ov.Type.f32, name="x")
    geometry = {"strides": layer.strides, "pads_begin": layer.pads, "pads_end": layer.pads,
                "dilations": layer.dilations, "output_padding": layer.output_padding}
    if layer.group == 1:
        y = ov.opset8.convolution_backprop_data(x, ov.opset8.constant(w), **geometry)
    else:
        w = w.reshape(layer.group, w.shape[0] // layer.group, *w.shape[1:])
        y = ov.opset8.group_convolution_backprop_data(x, ov.opset8.constant(w), **geometry)
    y = ov.opset8.add(y, ov.opset8.constant(layer.b.reshape(1, -1, *[1] * layer.axes)))
    process = PrePostProcessor(ov.Model([y], [x], "layer"))
    inside = "NCDHW" if layer.axes == 3 else "NCHW"
    for end in (process.input(), process.output()):
        end.tensor().set_layout(ov.Layout(inside.replace("C", "") + "C"))
        end.model().set_layout(ov.Layout(inside))
    return _runner(process.build(), channels_last(layer.x), threads, channels_first)


SETTINGS = {"openvino": nchw, "openvino nhwc": nhwc}
