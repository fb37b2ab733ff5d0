"""Makes layers behind a transposed convolution a part of it: batch normalizations and activations."""

from __future__ import annotations

import collections
import functools
import inspect
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import torch.fx  # type: ignore[import-not-found, unused-ignore]

from ._torch_modules import Report, _Module, _State, replace_
from ._torch_source import Uses, uses_of_children

_F = torch.nn.functional
_NORMS = {1: torch.nn.BatchNorm1d, 2: torch.nn.BatchNorm2d, 3: torch.nn.BatchNorm3d}
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

# Functions and methods of tensors that are activations, by the operator's name and the arguments that they take.
_FUNCTIONS: dict[Any, Any] = {
    **dict.fromkeys((_F.relu, torch.relu, torch.relu_, "relu", "relu_"), ("relu", ())),
    **dict.fromkeys((_F.tanh, torch.tanh, "tanh", "tanh_"), ("tanh", ())),
    **dict.fromkeys((_F.sigmoid, torch.sigmoid, "sigmoid", "sigmoid_"), ("sigmoid", ())),
    **dict.fromkeys((_F.leaky_relu,), ("leaky_relu", (("negative_slope", 0.01),))),
    **dict.fromkeys((_F.hardtanh,), ("clip", (("min_val", -1.0), ("max_val", 1.0)))),
    **dict.fromkeys((_F.relu6,), ("clip6", ())),
    **dict.fromkeys((torch.clamp, torch.clip, "clamp", "clip", "clamp_"), ("clip", (("min", None), ("max", None)))),
}


class _Tracer(torch.fx.Tracer):  # type: ignore[misc, unused-ignore]
    """Takes our layers as one step, as torch.fx does with those of torch.nn."""

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return isinstance(m, _Module) or bool(super().is_leaf_module(m, module_qualified_name))


def _is_slope(value: Any) -> bool:
    return isinstance(value, (int, float)) and value >= 0


def _in_float32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float64).to(torch.float32).item())


def _module_activation(module: Any) -> Any:
    """(name, parameters) of a module that is an activation, a text that says why it is not taken, or None."""
    kind = type(module)
    if kind is torch.nn.ReLU:
        return "relu", ()
    if kind is torch.nn.Tanh:
        return "tanh", ()
    if kind is torch.nn.Sigmoid:
        return "sigmoid", ()
    if kind is torch.nn.LeakyReLU:
        slope = module.negative_slope
        return ("leaky_relu", (float(slope),)) if _is_slope(slope) else f"the slope of LeakyReLU is {slope}, less than 0"
    if kind in (torch.nn.Hardtanh, torch.nn.ReLU6):
        return "clip", (float(module.min_val), float(module.max_val))
    return None


def _function_activation(node: Any) -> Any:
    """(name, parameters) of a call of a function or method that is an activation, or None."""
    if node.op not in ("call_function", "call_method") or node.target not in _FUNCTIONS:
        return None
    name, wanted = _FUNCTIONS[node.target]
    if name == "clip6":
        return "clip", (0.0, 6.0)
    given = dict(node.kwargs)
    values = []
    for place, (argument, default) in enumerate(wanted, 1):
        value = node.args[place] if place < len(node.args) else given.get(argument, default)
        if not isinstance(value, (int, float)):
            return None
        values.append(float(value))
    if name == "leaky_relu" and not _is_slope(values[0]):
        return None
    return name, tuple(values)


def _norm_problem(layer: Any, norm: Any) -> str | None:
    """Why a batch normalization cannot become a part of the weights, or None."""
    kind = type(norm).__name__
    if norm.training or norm.running_mean is None:
        return f"{kind} computes statistics of each batch: call model.eval() first" if norm.training else \
               f"{kind} has no running statistics"
    if layer._convtranspose.activation is not None:
        return f"{layer._convtranspose.activation} comes before {kind}"
    if "weight" not in layer._parameters or "bias" not in layer._parameters:
        return f"{kind} cannot be a part of weights or a bias that are computed at each call"
    if layer.weight.dtype not in (torch.float32, torch.float64):
        return f"{kind} would be rounded with weights of {layer.weight.dtype}"
    if norm.num_features != layer.out_channels:
        return f"{kind} has {norm.num_features} channels, its input {layer.out_channels}"
    return None


def _fold(layer: Any, norm: Any) -> None:
    """Makes y = norm(layer(x)) the layer itself: each output channel of the weights is scaled. Computed in float64."""
    weight, groups = layer.weight, layer.groups
    scale = 1 / torch.sqrt(norm.running_var.double() + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.detach().double()
    bias = (layer.bias.detach().double() if layer.bias is not None else 0) - norm.running_mean.double()
    bias = bias * scale + (norm.bias.detach().double() if norm.bias is not None else 0)
    by_group = weight.detach().double().unflatten(0, (groups, -1))
    scales = scale.view(groups, 1, -1, *[1] * (weight.dim() - 2))
    layer.weight = torch.nn.Parameter((by_group * scales).flatten(0, 1).to(weight.dtype), weight.requires_grad)
    layer.bias = torch.nn.Parameter(bias.to(weight.dtype), weight.requires_grad)


def _calls(graph: Any) -> dict[str, list[Any]]:
    calls: dict[str, list[Any]] = collections.defaultdict(list)
    for node in graph.nodes:
        if node.op == "call_module":
            calls[node.target].append(node)
    return calls


class _Reads(torch.overrides.TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Collects the tensors that a trace computes with at once, of which its graph shows only the results, as constants."""

    def __init__(self, tensors: dict[int, Any]) -> None:
        super().__init__()
        self.tensors = tensors

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, (int, float, torch.Size, torch.dtype, torch.device)):
            self.tensors.update((id(leaf), leaf) for leaf in torch.utils._pytree.tree_leaves((args, kwargs)))
        return result


def _graphs(model: Any, read: dict[int, Any]) -> list[Any]:
    """Graphs of a model's forward: as it is called with all arguments, and with the defaults of those that have one.

    A trace takes one way through the code. What is not the same in both is not fused. Adds to the tensors that were read.
    """
    if isinstance(model, torch.fx.GraphModule):
        return [model.graph]
    parameters = inspect.signature(model.forward).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    kept = [(module, dict(vars(module))) for module in model.modules()]
    try:
        with _Reads(read):
            return [_Tracer().trace(model, concrete_args=given) for given in ([None, defaults] if defaults else [None])]
    finally:  # a trace runs the model's code, which may set attributes, and gives the model some for constants
        for module, attributes in kept:
            for name in vars(module).keys() - attributes.keys():
                del vars(module)[name]
            vars(module).update(attributes)


def _follower(model: Any, graph: Any, name: str) -> Any:
    """The only reader of the layer's output, if it is called once and nothing else reads the output; else why not."""
    calls = _calls(graph)[name]
    if len(calls) != 1:
        return f"it is called {len(calls)} times"
    users = list(calls[0].users)
    if len(users) != 1:
        return f"its output has {len(users)} readers"
    user = users[0]
    if user.op == "call_module" and len(_calls(graph)[user.target]) != 1:
        return f"{user.target} is called several times"
    # The output must be what is activated, not another argument.
    return user if user.args[:1] == (calls[0],) and list(user.all_input_nodes) == [calls[0]] else "its reader takes more inputs"


def _read_elsewhere(model: Any, graphs: list[Any], read: dict[int, Any], layer: Any, norm: str) -> str | None:
    """Why a norm cannot be folded into a layer: the code reads, besides calling the two, tensors that folding would replace."""
    for part in (layer, model.get_submodule(norm)):
        if any(id(tensor) in read for tensor in (*part._parameters.values(), *part._buffers.values()) if tensor is not None):
            return f"tensors of {type(part).__name__} are read besides"
    for node in (node for graph in graphs for node in graph.nodes if node.op == "get_attr"):
        # torch.fx has one name of a shared parameter. Constants of the trace are no attributes of the model.
        value = functools.reduce(lambda owner, name: getattr(owner, name, None), node.target.split("."), model)
        is_of_layer = value is layer.weight or (layer.bias is not None and value is layer.bias)
        if is_of_layer or node.target.startswith(f"{norm}."):
            return f"{node.target} is read besides"
    return None


def _has_hooks(module: Any, kinds: tuple[str, ...] = _HOOKS) -> bool:
    return any(getattr(module, kind) for kind in kinds)


def _containers(name: str) -> set[str]:
    """The names of the modules that a module of a model is in, but for the model itself."""
    parts = name.split(".")
    return {".".join(parts[:depth]) for depth in range(1, len(parts))}


class _Fusion:
    """The fusion of one model."""

    def __init__(self, model: Any) -> None:
        self.model, self.report = model, Report()
        self.read: dict[int, Any] = {}
        places = collections.Counter(
            id(child) for parent in model.modules() for child in parent._modules.values() if child is not None)
        # Modules that have several places, or are a part of one that has: they are called from where a trace does not show it.
        self.shared = {id(part) for module in model.modules() if places[id(module)] > 1 for part in module.modules()}

    def run(self, model: Any, prefix: str, elements_called: bool = False) -> None:
        """Fuses what one trace of a model shows or, if it cannot be traced, what traces of the children that it only calls show.

        elements_called: Whether the model is a list of modules that its owner only calls.
        """
        if not any(isinstance(module, _Module) for module in model.modules()) or isinstance(model, _Module):
            return
        try:
            graphs = _graphs(model, self.read)
        except Exception as error:  # whatever the model's own code raises when it is given no tensor
            why = (str(error).splitlines() or [type(error).__name__])[0]
            uses = Uses(called={name for name, _ in model.named_children()}) if elements_called else uses_of_children(model)
            for name, child in model.named_children():
                if isinstance(child, _Module):
                    self.report.left[prefix + name] = f"torch.fx cannot trace what calls it: {why}"
                elif name in uses.called or name in uses.elements_called:
                    self.run(child, f"{prefix}{name}.", name in uses.elements_called)
                else:
                    for part, layer in child.named_modules():
                        if isinstance(layer, _Module):
                            self.report.left[f"{prefix}{name}.{part}"] = (
                                f"torch.fx cannot trace what calls it, and its code may use {name} in other ways: {why}")
            return
        for name, layer in model.named_modules():
            if isinstance(layer, _Module) and name:
                self.fuse(model, graphs, name, layer, prefix)

    def fuse(self, model: Any, graphs: list[Any], name: str, layer: Any, prefix: str) -> None:
        taken: list[str] = []
        while True:
            why = self.step(model, graphs, name, layer, taken)
            if why is not None:
                break
        if taken:
            self.report.replaced[prefix + name] = "computes " + " and ".join(taken)
        else:
            self.report.left[prefix + name] = why

    def step(self, model: Any, graphs: list[Any], name: str, layer: Any, taken: list[str]) -> str | None:
        """Makes the layer's reader a part of it; returns why not, where it does not."""
        found = [_follower(model, graph, name) for graph in graphs]
        for reader in found:
            if isinstance(reader, str):
                return reader
        reader = found[0]
        if any((other.op, other.target) != (reader.op, reader.target) for other in found):
            return "what reads its output depends on the arguments"
        if id(layer) in self.shared:
            return "it has several places in the model"
        if _has_hooks(layer, ("_forward_hooks", "_backward_hooks", "_backward_pre_hooks")):
            return "it has hooks, which see its output"
        if reader.op != "call_module":
            return self.take_function(model, graphs, reader, layer, taken)
        module = model.get_submodule(reader.target)
        # A container that ends or begins between the two may have hooks that see what lies between.
        for container in sorted(_containers(name) ^ _containers(reader.target)):
            if _has_hooks(model.get_submodule(container)):
                return f"{container} has hooks, which see its output"
        if _has_hooks(module):
            return f"{reader.target} has hooks"
        if type(module) is torch.nn.Identity:
            return self.remove(model, graphs, found)
        if id(module) in self.shared:
            return f"{reader.target} has several places in the model"
        if type(module) in (_NORMS[layer.weight.dim() - 2], torch.nn.SyncBatchNorm):
            if problem := _norm_problem(layer, module) or _read_elsewhere(model, graphs, self.read, layer, reader.target):
                return problem
            _fold(layer, module)
            taken.append(type(module).__name__)
        else:
            activation = _module_activation(module)
            if isinstance(activation, str):
                return activation
            if activation is None:
                return f"{type(module).__name__} behind it is none that can be computed with it"
            if problem := self.activate(layer, *activation):
                return problem
            taken.append(type(module).__name__)
        parent, _, own = reader.target.rpartition(".")
        setattr(model.get_submodule(parent), own, torch.nn.Identity())
        return self.remove(model, graphs, found)

    def activate(self, layer: Any, activation: str, parameters: tuple[float, ...]) -> str | None:
        state = layer._convtranspose
        if state.activation is not None:
            return f"{state.activation} is a part of it already"
        if activation == "clip" and not parameters[0] <= parameters[1]:
            return f"its bounds are {parameters}"
        if layer.weight.dtype == torch.float64 and any(_in_float32(value) != value for value in parameters):
            return f"float32, in which layers take the parameters of {activation}, does not hold {parameters}"
        layer._convtranspose = _State(state.options, activation, parameters)
        return None

    def take_function(self, model: Any, graphs: list[Any], node: Any, layer: Any, taken: list[str]) -> str | None:
        activation = _function_activation(node)
        target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
        if activation is None:
            return f"{target} behind it is none that can be computed with it"
        if not isinstance(model, torch.fx.GraphModule):
            return f"{target} is called in the model's code; torch.fx.symbolic_trace(model) makes one that can be changed"
        if problem := self.activate(layer, *activation):
            return problem
        taken.append(target)
        return self.remove(model, graphs, [node])

    def remove(self, model: Any, graphs: list[Any], nodes: list[Any]) -> str | None:
        """Takes the reader out of the graphs, so that the next one shows."""
        for graph, node in zip(graphs, nodes):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        if isinstance(model, torch.fx.GraphModule):
            model.recompile()
        return None


def fuse_(model: Any, **options: Any) -> Report:
    """Replaces layers as replace_() does, and has each compute what comes behind it, if nothing else reads what lies between.

    Taken are BatchNorm in eval mode with running statistics, which becomes a part of weights of float32 and float64, and then one
    of ReLU, LeakyReLU, Tanh, Sigmoid, Hardtanh and ReLU6. Where these are modules, nn.Identity takes their place. Where they are
    functions, they are taken if the model is a torch.fx.GraphModule. Models that torch.fx cannot trace are looked at in parts.

    Call model.eval() before. The normalization's entries leave state_dict, and a layer without bias gets one. It cannot be undone.

    Args:
        model: An nn.Module.
        options: Those of replace_().

    Returns:
        The names of layers that compute more now, and of those that do not, with the reason.

    Raises:
        TypeError: There is no such option, or its value is of the wrong kind.
        ValueError: The value of an option is out of range.
        NotImplementedError: This CPU or build lacks the instruction set.
    """
    replaced = replace_(model, **options)
    fusion = _Fusion(model)
    fusion.run(model, "")
    fusion.report.left = {**replaced.left, **fusion.report.left}
    return fusion.report
