"""LiteRT (TensorFlow Lite) with XNNPACK: channels last, constant weights, tensors allocated. Layers of three axes run by its
built-in kernel, since XNNPACK has none.

Its operators know two paddings: VALID cuts nothing, SAME cuts evenly, the odd one at the end. Where that cuts otherwise
than the layer, Runner.begin says so: the work is the same, and the result is compared with that of the other cut.
"""
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from . import Runner, Unsupported, channels_first, channels_last, tflite_model

PACKAGE = "ai_edge_litert"


def _padding(layer):
    extents, kernel = layer.x.shape[2:], layer.w.shape[2:]
    axes = list(zip(extents, layer.out, kernel, layer.strides))
    if all(o == (i - 1) * s + k for i, o, k, s in axes):
        return "VALID", [0] * layer.axes
    if any(-(-o // s) != i for i, o, k, s in axes):
        raise Unsupported("padding is neither SAME nor VALID")
    return "SAME", [max(0, (i - 1) * s + k - o) // 2 for i, o, k, s in axes]


def xnnpack(layer, threads):
    if layer.group > 1:
        raise Unsupported("no groups")
    if set(layer.dilations) != {1}:
        raise Unsupported("no dilations")
    one_axis = layer.axes == 1
    layer = layer.as_two_axes()
    padding, begin = _padding(layer)
    x = channels_last(layer.x)
    # (C, M, k...) to (M, kh, kw, C) or (kd, kh, kw, M, C)
    w = layer.w.transpose(1, 2, 3, 0) if layer.axes == 2 else layer.w.transpose(2, 3, 4, 1, 0)
    model = tflite_model.make(x.shape, w, layer.b, [x.shape[0], *layer.out, len(layer.b)], layer.strides, padding)
    interpreter = Interpreter(model_content=model, num_threads=threads,
                              experimental_op_resolver_type=OpResolverType.AUTO)  # with XNNPACK
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    y = interpreter.get_output_details()[0]["index"]
    delegated = any(node["op_name"] == "DELEGATE" for node in interpreter._get_ops_details())
    return Runner(interpreter.invoke, lambda: channels_first(interpreter.get_tensor(y)), begin=begin[one_axis:],
                  note="XNNPACK" if delegated else "built-in kernel")


SETTINGS = {"litert": xnnpack}
