"""The networks of networks.py as modules of PyTorch, with the same weights: torch_module(model)."""
import torch
from onnx import helper, numpy_helper
from torch import nn

_CONVOLUTIONS = {("Conv", 1): nn.Conv1d, ("Conv", 2): nn.Conv2d, ("Conv", 3): nn.Conv3d,
                 ("ConvTranspose", 1): nn.ConvTranspose1d, ("ConvTranspose", 2): nn.ConvTranspose2d,
                 ("ConvTranspose", 3): nn.ConvTranspose3d}
_NORMS = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
_POOLS = {2: nn.MaxPool2d, 3: nn.MaxPool3d}
_FUNCTIONS = {"Add": torch.add, "Mul": torch.mul, "Div": torch.div, "Exp": torch.exp, "Sin": torch.sin, "Cos": torch.cos}


def _one_sided(pads):
    if pads[:len(pads) // 2] != pads[len(pads) // 2:]:
        raise ValueError(f"pads {pads} differ at the two ends, which PyTorch's modules do not have")
    return pads[:len(pads) // 2]


def _filled(module, **values):
    """The module with these values in its parameters and buffers."""
    module.load_state_dict({**module.state_dict(), **{name: value for name, value in values.items() if value is not None}})
    return module


def _convolution(op, attributes, w, b):
    axes = w.dim() - 2
    transposed = op == "ConvTranspose"
    channels = (w.shape[0], w.shape[1]) if transposed else (w.shape[1], w.shape[0])
    more = {"output_padding": attributes.get("output_padding", 0)} if transposed else {}
    module = _CONVOLUTIONS[op, axes](*channels, tuple(w.shape[2:]), stride=attributes["strides"],
                                     padding=_one_sided(attributes["pads"]), dilation=attributes.get("dilations", [1] * axes),
                                     bias=b is not None, **more)
    return _filled(module, weight=w, bias=b)


def _norm(axes, scale, shift, mean, variance):
    return _filled(_NORMS[axes](len(scale)), weight=scale, bias=shift, running_mean=mean, running_var=variance)


def torch_module(model):
    """A torch.fx.GraphModule in eval mode that computes what the model does, each layer a module of its own.

    Raises:
        NotImplementedError: PyTorch's module for a node is not known here.
    """
    constants = {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy()) for tensor in model.graph.initializer}
    graph, root = torch.fx.Graph(), nn.Module()
    values = {value.name: graph.placeholder(value.name) for value in model.graph.input}
    axes = len(model.graph.input[0].type.tensor_type.shape.dim)
    for node in model.graph.node:
        attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
        tensors = [constants.get(name) for name in node.input]
        match node.op_type:
            case "Conv" | "ConvTranspose":
                module = _convolution(node.op_type, attributes, tensors[1], tensors[2] if len(tensors) > 2 else None)
            case "BatchNormalization":
                module = _norm(axes, *tensors[1:])
            case "PRelu":
                module = _filled(nn.PReLU(tensors[1].numel()), weight=tensors[1].flatten())
            case "LeakyRelu":
                module = nn.LeakyReLU(attributes["alpha"])
            case "Relu":
                module = nn.ReLU()
            case "Tanh":
                module = nn.Tanh()
            case "MaxPool":
                module = _POOLS[axes - 2](attributes["kernel_shape"], attributes["strides"],
                                          _one_sided(attributes.get("pads", [0] * 2 * (axes - 2))))
            case _:
                module = None
        inputs = [float(tensor) if tensor is not None and tensor.dim() == 0 else values.get(name)
                  for name, tensor in zip(node.input, tensors)]
        if module is not None:
            root.add_module(node.name, module)
            y = graph.call_module(node.name, (inputs[0],))
        elif node.op_type in _FUNCTIONS:
            y = graph.call_function(_FUNCTIONS[node.op_type], tuple(inputs))
        elif node.op_type == "Concat":
            y = graph.call_function(torch.cat, (inputs, attributes["axis"]))
        elif node.op_type == "Clip":
            y = graph.call_function(torch.clamp, (inputs[0],), {"min": inputs[1], "max": inputs[2]})
        else:
            raise NotImplementedError(f"{node.op_type} has no counterpart in PyTorch here")
        values[node.output[0]] = y
    graph.output(values[model.graph.output[0].name])
    return torch.fx.GraphModule(root, graph).eval()
