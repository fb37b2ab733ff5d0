"""TensorFlow Lite models of one f32 TRANSPOSE_CONV or CONV_3D_TRANSPOSE, by the schema that comes with LiteRT."""
import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {np.dtype("float32"): schema.TensorType.FLOAT32, np.dtype("int32"): schema.TensorType.INT32}


def _tensor(model, name, shape, dtype, values=None):
    """Adds one to the model, and gives its number. Without values it is computed, or fed."""
    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type = name, [int(extent) for extent in shape], TYPES[np.dtype(dtype)]
    if values is not None:
        tensor.buffer = len(model.buffers)
        model.buffers.append(schema.BufferT())
        model.buffers[-1].data = np.frombuffer(np.ascontiguousarray(values, dtype).tobytes(), np.uint8)
    model.subgraphs[0].tensors.append(tensor)
    return len(model.subgraphs[0].tensors) - 1


def make(x_shape, w, b, y_shape, strides, padding):
    """Makes a model of one layer, channels last. w is (M, kh, kw, C) for two axes and (kd, kh, kw, M, C) for three; padding is SAME
    or VALID."""
    three = len(strides) == 3
    model = schema.ModelT()
    model.version, model.description = 3, "one transposed convolution"
    model.buffers = [schema.BufferT()]  # the first is that of tensors without values
    graph = schema.SubGraphT()
    graph.name, graph.tensors, model.subgraphs = "main", [], [graph]
    inputs = [_tensor(model, "output_shape", [len(y_shape)], np.int32, y_shape),
              _tensor(model, "w", w.shape, np.float32, w), _tensor(model, "x", x_shape, np.float32),
              _tensor(model, "b", b.shape, np.float32, b)]
    y = _tensor(model, "y", y_shape, np.float32)

    code = schema.OperatorCodeT()
    code.builtinCode = schema.BuiltinOperator.CONV_3D_TRANSPOSE if three else schema.BuiltinOperator.TRANSPOSE_CONV
    code.version = 1 if three else 3
    code.deprecatedBuiltinCode = min(code.builtinCode, 127)  # a byte, from before there were as many
    model.operatorCodes = [code]
    options = schema.Conv3DOptionsT() if three else schema.TransposeConvOptionsT()
    options.padding = getattr(schema.Padding, padding)
    if three:
        options.strideD, options.strideH, options.strideW = strides
    else:
        options.strideH, options.strideW = strides
    node = schema.OperatorT()
    node.inputs, node.outputs = inputs, [y]
    kind = schema.BuiltinOptions
    node.builtinOptionsType = kind.Conv3DOptions if three else kind.TransposeConvOptions
    node.builtinOptions = options
    graph.operators, graph.inputs, graph.outputs = [node], [inputs[2]], [y]
    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())
