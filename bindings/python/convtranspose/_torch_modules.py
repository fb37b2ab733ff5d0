"""The modules of convtranspose.torch, and what puts them in the place of PyTorch's."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from ._native import Plan
from ._torch_operator import TYPES, Differentiable, Packed, activate, forget, operator, owns_memory, per_axis

_OPTIONS = ("threads", "winograd", "sums_in_f16", "isa", "measure", "weights", "quantizes_x")
_LIGHT = ("float16", "bfloat16", "int8")


def _probe() -> Any:
    """Makes a function that says whether a mode or a tracer watches calls of operators.

    Neither has a public interface. Where a version of PyTorch lacks one of them, all calls go by the operator.
    """
    try:
        modes, tracing = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state
    except AttributeError:
        return lambda: True
    return lambda: modes() or tracing() is not None


_watched = _probe()
_transforms: Any = torch._C._functorch.peek_interpreter_stack


def _by_aten(input: Any, weight: Any) -> bool:
    """Whether a call must be left to ATen: for what only it takes, and for derivatives that custom operators do not have."""
    if not isinstance(input, torch.Tensor) or weight.dtype not in TYPES or not (
            input.layout is weight.layout is torch.strided):
        return True
    return not torch.compiler.is_compiling() and (_transforms() is not None or torch.autograd.forward_ad._current_level >= 0)


def _tuple(value: Any, weight: Any) -> tuple[Any, ...]:
    """An attribute of a module as plans are remembered by: a tuple, as the module's constructor makes it, whatever it is now."""
    return value if type(value) is tuple and len(value) > 1 else per_axis(value, weight.dim() - 2)


class _Constant:
    """A tensor that was packed, and how a change of it is noticed.

    Parameters count their changes. The alias keeps their memory, so that no other tensor gets its address. Compared by its
    elements is a tensor that is computed at each call, such as by weight_norm, and one whose memory others write too: a part of a
    longer tensor, as vector_to_parameters() makes it, or what processes share.
    """

    __slots__ = ("_address", "_alias", "_copy", "_tensor", "_version")

    def __init__(self, tensor: Any) -> None:
        self._copy = None
        if type(tensor) is torch.nn.Parameter and not tensor.is_inference() and owns_memory(tensor):
            self._tensor, self._alias = tensor, tensor.detach()
            self._version, self._address = tensor._version, tensor.data_ptr()
        else:
            self._copy = tensor.detach().clone()

    def equals(self, tensor: Any) -> bool:
        if self._copy is not None:
            return bool(tensor.dtype == self._copy.dtype and torch.equal(tensor, self._copy))
        return bool(tensor is self._tensor and tensor._version == self._version and tensor.data_ptr() == self._address)


class _State:
    """The state of a module of ours beside PyTorch's: options, an activation, and plans, which copies and pickles do without."""

    def __init__(self, options: dict[str, Any], activation: str | None = None, parameters: tuple[float, ...] = ()) -> None:
        self.options, self.activation, self.parameters = options, activation, parameters
        self.threads = options.get("threads") or 0
        self.arguments = (activation, list(parameters), options.get("winograd", False), options.get("sums_in_f16", False),
                          options.get("isa"), options.get("measure", False), self.threads, options.get("weights"),
                          options.get("quantizes_x", False))
        self.forget()

    def __reduce__(self) -> Any:
        return _State, (self.options, self.activation, self.parameters)

    def __deepcopy__(self, memo: Any) -> _State:
        return _State(self.options, self.activation, self.parameters)

    def forget(self) -> None:
        """Drops all plans, so that the next call packs the weights."""
        # Replaced as a whole, because threads read it while others replace it.
        self._kept: tuple[_Constant, _Constant | None, Packed] | None = None

    def packed(self, w: Any, b: Any) -> Packed:
        """The plans of these weights, which are dropped if the weights have changed."""
        kept = self._kept
        if kept is not None and kept[0].equals(w) and (
                b is None if kept[1] is None else b is not None and kept[1].equals(b)):
            return kept[2]
        activation, parameters, winograd, sums_in_f16, isa, measure, _, light, quantizes_x = self.arguments
        packed = Packed((activation, tuple(parameters), winograd, sums_in_f16, isa, measure, light, quantizes_x, "cpu"))
        self._kept = _Constant(w), None if b is None else _Constant(b), packed
        return packed


class _Module:
    """The part that the three modules share. Each stands before a class of torch.nn among the bases, and has its attributes."""

    _convtranspose: _State

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._convtranspose = _State({})

    def forward(self: Any, input: Any, output_size: Any = None) -> Any:
        """Computes y as the class of torch.nn does.

        Args:
            input: (N, C, D1..Dn), or (C, D1..Dn).
            output_size: Extents of y, from which output_padding is computed; None: the module's output_padding.

        Returns:
            y: (N, M, O1..On), or (M, O1..On).

        Raises:
            RuntimeError: A shape, a type or a device does not fit the weights.
            ValueError: output_size cannot be had.

        Source: torch.nn.ConvTranspose1d, 2d and 3d.
        """
        state, weight, bias = self._convtranspose, self.weight, self.bias
        if _by_aten(input, weight):
            return activate(super().forward(input, output_size), state.activation, state.parameters)  # type: ignore[misc]
        output_padding = self.output_padding
        if output_size is not None:
            output_padding = tuple(self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size,
                                                        len(self.kernel_size), self.dilation))
        geometry = (_tuple(self.stride, weight), _tuple(self.padding, weight), _tuple(output_padding, weight), self.groups,
                    _tuple(self.dilation, weight))
        # Training changes weights at each step, and checks of gradients change them without counting.
        constant = not (self.training and torch.is_grad_enabled())
        if not torch.compiler.is_compiling() and type(input) in _TENSORS and not _watched():
            y = _directly(state, input, weight, bias, geometry, constant)
            if y is not None:
                return y
        return operator(input, weight, bias, *geometry, *state.arguments, constant)

    def _apply(self: Any, fn: Any, recurse: bool = True) -> Any:
        forget(self._parameters.values())  # PyTorch may swap them, which weak references prevent
        return super()._apply(fn, recurse)  # type: ignore[misc]

    def _load_from_state_dict(self: Any, *arguments: Any) -> None:
        forget(self._parameters.values())
        super()._load_from_state_dict(*arguments)  # type: ignore[misc]

    def extra_repr(self: Any) -> str:
        text = super().extra_repr()  # type: ignore[misc]
        activation = self._convtranspose.activation
        return f"{text}, by convtranspose" + (f", activation={activation}" if activation else "")


_TENSORS = (torch.Tensor, torch.nn.Parameter)


def _directly(state: _State, x: Any, w: Any, b: Any, geometry: tuple[Any, ...], constant: bool) -> Any:
    """Runs a plan without the operator, whose calls cost more than a small layer; None where the operator is needed."""
    if not (x.is_cpu and w.is_cpu) or x.numel() == 0 or any(t is not None and t.is_neg() for t in (x, w, b)):
        return None
    dtype, autocast = w.dtype, torch.is_autocast_enabled("cpu")
    gradients = torch.is_grad_enabled() and (x.requires_grad or w.requires_grad or (b is not None and b.requires_grad))
    if autocast:
        if gradients or x.dtype not in TYPES or x.dtype == torch.float64 or dtype == torch.float64:
            return None
        dtype = torch.get_autocast_dtype("cpu")
        x = x.to(dtype)
    if x.dtype is not dtype or dtype not in TYPES or x.layout is not torch.strided:
        return None
    packed = state.packed(w, b) if constant else None
    threads = state.threads or torch.get_num_threads()
    if gradients:
        return Differentiable.apply(x, w, b, packed, threads, geometry, state.arguments)
    return (packed or state.packed(w, b))(x, w, b, threads, geometry)


class ConvTranspose1d(_Module, torch.nn.ConvTranspose1d):  # type: ignore[misc, unused-ignore]
    """torch.nn.ConvTranspose1d, computed by plans. Arguments and errors are those of the base."""


class ConvTranspose2d(_Module, torch.nn.ConvTranspose2d):  # type: ignore[misc, unused-ignore]
    """torch.nn.ConvTranspose2d, computed by plans. Arguments and errors are those of the base."""


class ConvTranspose3d(_Module, torch.nn.ConvTranspose3d):  # type: ignore[misc, unused-ignore]
    """torch.nn.ConvTranspose3d, computed by plans. Arguments and errors are those of the base."""


_OURS = {torch.nn.ConvTranspose1d: ConvTranspose1d, torch.nn.ConvTranspose2d: ConvTranspose2d,
         torch.nn.ConvTranspose3d: ConvTranspose3d}
_STOCK = {ours: stock for stock, ours in _OURS.items()}
for _class in _STOCK:
    _class.__module__ = "convtranspose.torch"  # where pickles look for them


@dataclasses.dataclass
class Report:
    """Names of modules, "" for the model itself, each with what was done or the reason why nothing was."""

    replaced: dict[str, str] = dataclasses.field(default_factory=dict)
    left: dict[str, str] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f"{name or '(the model)'}: {text}" for name, text in self.replaced.items()]
        return "\n".join(lines + [f"{name or '(the model)'}: left, because {text}" for name, text in self.left.items()])


def _is_parametrized(module: Any) -> bool:
    return bool(torch.nn.utils.parametrize.is_parametrized(module))


def _swap(module: Any, classes: dict[Any, Any]) -> bool:
    """Gives a module the class that stands in for its own. A parametrized one has a class of its own, made from that one."""
    kind = type(module)
    if kind in classes:
        module.__class__ = classes[kind]
        return True
    if _is_parametrized(module) and kind.__bases__[0] in classes:
        members = {name: value for name, value in vars(kind).items() if name not in ("__dict__", "__weakref__", "__doc__")}
        module.__class__ = type(kind.__name__, (classes[kind.__bases__[0]],), members)
        return True
    return False


def _why_left(module: Any) -> str | None:
    """Why a module cannot be replaced, or None."""
    kind = type(module)
    base = kind.__bases__[0] if _is_parametrized(module) else kind
    if isinstance(module, torch.jit.ScriptModule):
        return "it is a ScriptModule, whose code cannot be changed"
    if isinstance(module, torch.nn.modules.lazy.LazyModuleMixin):
        return "its channels are not known before it has run once"
    if base not in _OURS:
        return f"{kind.__name__} is a class of its own, which may compute something else"
    if "forward" in vars(module):
        return "its forward was replaced by another function"
    if _is_parametrized(module) or "weight" not in module._parameters:
        return None  # what the weights will be shows when they are computed
    weight = module.weight
    return None if weight.dtype in TYPES else f"its weights hold {weight.dtype}; the types are {', '.join(TYPES.values())}"


def check_options(options: dict[str, Any]) -> None:
    """Raises what a plan does for a wrong option, and TypeError for one that there is not."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"there is no option '{name}'; there are {', '.join(_OPTIONS)}")
    if not isinstance(options.get("measure", False), bool):
        raise TypeError(f"measure is {options['measure']!r}; it must be True or False")
    weights, quantizes_x = options.get("weights"), options.get("quantizes_x", False)
    if weights is not None and weights not in _LIGHT:
        raise ValueError(f"weights is {weights!r}; it must be None or one of {', '.join(_LIGHT)}")
    if not isinstance(quantizes_x, bool) or (quantizes_x and weights != "int8"):
        raise ValueError(f"quantizes_x is {quantizes_x!r} and weights {weights!r}; it must be True or False, and True only with "
                         "weights='int8'")
    others = {name: value for name, value in options.items() if name not in ("weights", "quantizes_x")}
    Plan(None, x_shape=(1, 1, 1), w_shape=(1, 1, 1), x_dtype="float32", **others)


def replace_(model: Any, **options: Any) -> Report:
    """Has every ConvTranspose1d, 2d and 3d of a model computed by this library, in place.

    The modules stay the same objects, with the same parameters and hooks; their class becomes one of convtranspose.torch.
    Modules that are ours already get the new options.

    Args:
        model: An nn.Module, which may itself be such a layer.
        threads: How many threads may compute; None: torch.get_num_threads() at each call.
        winograd: True allows Winograd's algorithm, whose rounding errors differ from those of the definition.
        sums_in_f16: True allows float16 layers to be summed in float16, where the CPU computes with it.
        isa: The name of the instruction set to use, of convtranspose.isas(); None: the best that this CPU runs.
        measure: True takes what is fastest of the candidates, which are run for 50 milliseconds when a layer is first called.
        weights: The type that float32 weights are packed in: "float16", "bfloat16" or "int8", whose scales are the largest weight
            of each output channel by 127; None: their own. x, bias, y and the parameters stay float32.
        quantizes_x: True quantizes x to 8 bits in each call, for weights="int8".

    Returns:
        The names of the modules that were replaced, and of those that were left, with the reason.

    Raises:
        TypeError: There is no such option, or its value is of the wrong kind.
        ValueError: The value of an option is out of range.
        NotImplementedError: This CPU or build lacks the instruction set.
    """
    check_options(options)
    report = Report()
    for name, module in model.named_modules():
        if isinstance(module, _Module):
            state = module._convtranspose
            module._convtranspose = _State(options, state.activation, state.parameters)
            report.replaced[name] = f"{type(module).__name__} has the new options"
            continue
        scripted = isinstance(module, torch.jit.ScriptModule) and getattr(module, "original_name", "").startswith("ConvTranspose")
        if not isinstance(module, tuple(_OURS)) and not scripted:
            continue
        if why := _why_left(module):
            report.left[name] = why
        elif _swap(module, _OURS):
            module._convtranspose = _State(options)
            report.replaced[name] = f"{type(module).__name__} is computed by plans"
    return report


def restore_(model: Any) -> Report:
    """Gives the layers that replace_() has replaced their classes of torch.nn back, in place.

    Returns:
        The names of those that were changed back, and of those that were left, because fuse_() made others a part of them.
    """
    report = Report()
    for name, module in model.named_modules():
        if not isinstance(module, _Module):
            continue
        if module._convtranspose.activation is not None:
            report.left[name] = f"{module._convtranspose.activation} is a part of it, which fuse_() cannot take out"
        elif _swap(module, _STOCK):
            del module._convtranspose
            report.replaced[name] = f"{type(module).__name__} is computed by PyTorch"
        else:
            report.left[name] = f"{type(module).__name__} is a class of its own"
    return report


def repack_(model: Any) -> None:
    """Has the weights packed again at the next call, after they were changed behind PyTorch's back: by `.data` or by numpy."""
    forget(model.parameters())
    for module in model.modules():
        if isinstance(module, _Module):
            module._convtranspose.forget()
