"""The custom operator convtranspose::conv_transpose of PyTorch, and what runs plans on tensors."""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
from torch.optim.optimizer import register_optimizer_step_post_hook  # type: ignore[import-not-found, unused-ignore]
from torch.utils.dlpack import to_dlpack  # type: ignore[import-not-found, unused-ignore]

from ._native import Plan, devices

# Types that plans take, by the names that they have there.
TYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16", torch.float32: "float32", torch.float64: "float64"}

# How many kinds of x (shapes, numbers of threads) a layer keeps plans for.
KEPT = 8

# How many layers the operator remembers whose weights come with each call.
_OPEN_LAYERS = 64

_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}
_SCHEMA = (
    "(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] output_padding, SymInt groups, "
    "SymInt[] dilation, str? activation=None, float[] parameters=[], bool winograd=False, bool sums_in_f16=False, "
    "str? isa=None, bool measure=False, int threads=0, str? weights=None, bool quantizes_x=False, bool constant=False) -> Tensor"
)


def is_channels_last(x: Any) -> bool:
    """Whether x, which has a batch, lies in memory as channels last, and in no other way."""
    memory_format = _FORMATS.get(x.dim())
    return memory_format is not None and not x.is_contiguous() and x.is_contiguous(memory_format=memory_format)


def y_shape(x: Any, w: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any) -> list[Any]:
    """The shape of y for shapes of x with a batch and of w. Extents may be symbols.

    Raises RuntimeError, as PyTorch does, if a shape or an attribute breaks a rule. An extent may be 0, which PyTorch refuses for
    some types, groups and batches, and takes for others.
    """
    axes = len(w) - 2
    if axes < 1 or len(x) != len(w):
        raise RuntimeError(f"input has {len(x)} axes with its batch and weight {len(w)}; they must have one number, at least 3")
    for name, values in (("stride", stride), ("padding", padding), ("output_padding", output_padding), ("dilation", dilation)):
        least = 1 if name in ("stride", "dilation") else 0
        if len(values) != axes or any(value < least for value in values):
            raise RuntimeError(f"{name} is {list(values)}; it must have {axes} numbers, at least {least}")
    if groups < 1 or x[1] != w[0] or w[0] % groups != 0:
        raise RuntimeError(f"input has {x[1]} channels, weight {w[0]} and groups is {groups}; the channels must be equal, and "
                           "groups must divide them")
    shape = [x[0], w[1] * groups]
    for axis in range(axes):
        if output_padding[axis] >= stride[axis] and output_padding[axis] >= dilation[axis]:
            raise RuntimeError(f"output_padding is {list(output_padding)}; it must be less than the stride, {list(stride)}, or "
                               f"the dilation, {list(dilation)}")
        extent = ((x[axis + 2] - 1) * stride[axis] - 2 * padding[axis] + dilation[axis] * (w[axis + 2] - 1)
                  + output_padding[axis] + 1)
        if extent < 0:
            raise RuntimeError(f"output would have {extent} positions along axis {axis + 2}; input, kernel and output_padding "
                               f"are too small for padding {list(padding)}")
        shape.append(extent)
    return shape


def activation_of(name: str | None, parameters: Any) -> Any:
    """The activation as plans take it, from the operator's arguments."""
    return (name, *parameters) if parameters else name


def _empty(x: Any, shape: Any, last: bool, batched: bool) -> Any:
    """Makes y of a shape with a batch, without it if x had none. It is no view, so that it may be changed in place."""
    if last:
        return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=_FORMATS[len(shape)])
    return x.new_empty(shape if batched else shape[1:])


def _array(tensor: Any) -> Any:
    """Returns what plans take for a tensor. A capsule is made faster than numpy's view, which would forbid to resize the tensor."""
    if tensor.is_cpu:
        return to_dlpack(tensor)
    return tensor.detach() if tensor.requires_grad else tensor


def run(plan: Plan, shape: Any, x: Any, last: bool, batched: bool, **arrays: Any) -> Any:
    """Runs a plan on x with a batch, and returns y of that shape, or without the batch if x had none."""
    y = written = _empty(x, shape, last, batched)
    if not batched:
        written = y.unsqueeze(0)
    if last:
        x, written = x.movedim(1, -1), y.movedim(1, -1)
    elif not x.is_contiguous() and (x.stride(-1) != 1 or min(x.stride()) <= 0):
        x = x.contiguous()  # plans would copy it too, one element at a time
    plan(_array(x), out=_array(written), **arrays)
    return y


def _convolve_by_aten(x: Any, w: Any, b: Any, geometry: tuple[Any, ...], activation: str | None, parameters: Any, shape: Any,
                      last: bool, batched: bool) -> Any:
    """Has ATen compute y of that shape from x with a batch, or refuse to; y is without the batch if x had none.

    The layout of y is what the fake implementation says, whatever ATen chooses.
    """
    stride, padding, output_padding, groups, dilation = geometry
    convolved = torch.ops.aten.convolution(x, w, b, stride, padding, dilation, True, output_padding, groups)
    y = _empty(x, shape, last, batched)
    y.copy_(activate(convolved if batched else convolved.squeeze(0), activation, parameters))
    return y


def per_axis(value: Any, axes: int) -> tuple[Any, ...]:
    """An attribute as a number for each axis: of one number, or of one or more in a list or tuple, as PyTorch takes them."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return values * axes if len(values) == 1 else values


def _arguments(x_shape: Any, last: bool, threads: int, geometry: tuple[Any, ...], options: tuple[Any, ...]) -> dict[str, Any]:
    stride, padding, output_padding, groups, dilation = geometry
    activation, parameters, winograd, sums_in_f16, isa, measure, _, _, device = options
    n, c, *extents = x_shape
    return {
        "x_shape": (n, *extents, c) if last else tuple(x_shape),
        "strides": list(stride),
        "pads": [*padding, *padding],
        "output_padding": list(output_padding),
        "group": groups,
        "dilations": list(dilation),
        "layout": "nhwc" if last else "nchw",
        "activation": activation_of(activation, parameters),
        "threads": threads,
        "winograd": winograd,
        "sums_in_f16": sums_in_f16,
        "isa": isa or None,
        "measure": measure,
        "device": device,
    }


def _lightened(w: Any, groups: int, options: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
    """Weights of float32 in the type that the options ask for, and the arguments of a plan that go with them.

    They stay as they are where that type does not hold them. Those of int8 have one scale for each output channel.
    """
    *_, weights, quantizes_x, device = options
    if weights is None or w.dtype is not torch.float32 or device != "cpu":
        return w, {}
    if weights != "int8":
        light = w.to(getattr(torch, weights))
        return (light, {"x_dtype": "float32"}) if bool(light.isfinite().all()) else (w, {})
    by_group = w.unflatten(0, (groups, -1))
    scales = by_group.abs().amax((1, *range(3, by_group.dim())), keepdim=True) / 127
    if not bool(scales.isfinite().all()):
        return w, {}
    scales[scales == 0] = 1
    # Scales that are subnormal are rounded so much that 127 of them may be less than the weight.
    light = (by_group / scales).round().clamp(-127, 127).to(torch.int8).flatten(0, 1)
    return light, {"x_dtype": "float32", "w_scale": scales.flatten(), "quantizes_x": quantizes_x}


class Packed:
    """Plans of one layer whose weights do not change, for the last kinds of x."""

    __slots__ = ("_plans", "options")

    def __init__(self, options: tuple[Any, ...]) -> None:
        """Takes (activation, its parameters, winograd, sums_in_f16, isa, measure, weights, quantizes_x, device)."""
        self.options = options
        self._plans: dict[Any, tuple[Plan | None, list[int]]] = {}  # None: y is empty, which plans refuse

    def __call__(self, x: Any, w: Any, b: Any, threads: int, geometry: tuple[Any, ...]) -> Any:
        """Computes y for x of the type that the weights are packed in."""
        batched = x.dim() == w.dim()
        if not batched:
            x = x.unsqueeze(0)
        last = batched and is_channels_last(x)
        key = (x.shape, x.dtype, last, threads, geometry)
        found = self._plans.get(key)
        if found is None:
            found = self._make(key, w, b)
        plan, shape = found
        if plan is None:
            w, b = (t if t is None else t.to(x.dtype) for t in (w, b))
            return _convolve_by_aten(x, w, b, geometry, self.options[0], self.options[1], shape, last, batched)
        return run(plan, shape, x, last, batched)

    def _make(self, key: Any, w: Any, b: Any) -> tuple[Plan | None, list[int]]:
        x_shape, dtype, last, threads, geometry = key
        shape = y_shape(x_shape, w.shape, *geometry)
        arguments = _arguments(x_shape, last, threads, geometry, self.options)
        plans = self._plans.copy()  # other threads may read and replace it
        packed = next((plan for other, (plan, _) in plans.items() if plan is not None and other[1:] == key[1:]), None)
        plan: Plan | None
        if 0 in shape:
            plan = None
        elif packed is not None:
            plan = packed.reshape(arguments["x_shape"])
        else:
            w, b = (t if t is None else t.detach().to("cpu", dtype).contiguous() for t in (w, b))
            w, light = _lightened(w, geometry[3], self.options)
            plan = Plan(w, b, **light, **arguments)
        while len(plans) >= KEPT:
            del plans[next(iter(plans))]
        plans[key] = plan, shape
        self._plans = plans
        return plan, shape


def owns_memory(tensor: Any) -> bool:
    """Whether writes to a tensor's memory are counted: it is all of its storage, which no other process writes."""
    return bool(tensor.untyped_storage().nbytes() == tensor.nbytes and not (tensor.is_cpu and tensor.is_shared()))


class _Seen:
    """Weights that the operator has met, by weak references, and their plans once it has met them twice.

    The aliases keep the memory, so that no other tensor gets its address.
    """

    __slots__ = ("aliases", "bias", "packed", "state", "weight")

    def __init__(self, w: Any, b: Any, state: Any) -> None:
        key = id(w)
        self.weight = weakref.ref(w, lambda _: _seen.pop(key, None))
        self.bias = None if b is None else weakref.ref(b)
        self.aliases = w.detach(), None if b is None else b.detach()
        self.state = state
        self.packed: Packed | None = None

    def holds(self, w: Any, b: Any, state: Any) -> bool:
        return self.weight() is w and (None if self.bias is None else self.bias()) is b and self.state == state


_seen: dict[int, _Seen] = {}


def forget(tensors: Any) -> None:
    """Drops the plans of weights, and the weak references to them, with which torch.utils.swap_tensors() refuses to swap."""
    for tensor in tensors:
        _seen.pop(id(tensor), None)


# In a compiled step it would count nothing. torch.compiler.disable() does the same, but imports the compiler, which takes seconds.
_increment_version: Any = torch._disable_dynamo(torch.autograd.graph.increment_version)


def _count_changes(optimizer: Any, *_: Any) -> None:
    """Counts what a fused optimizer has changed in a step, which its kernels do not."""
    changed = [p for group in optimizer.param_groups if group.get("fused") for p in group["params"] if p.grad is not None]
    if changed:
        _increment_version(changed)


register_optimizer_step_post_hook(_count_changes)


def _packed_of(w: Any, b: Any, options: tuple[Any, ...]) -> Packed | None:
    """The plans of weights that were met before and have not changed since; None for all others.

    Weights that are computed anew for each call, or that a step of an optimizer changes between two calls, are not worth
    packing. Tensors that were made in inference mode do not count their changes, nor do those whose memory others write.
    """
    if w.is_inference() or (b is not None and b.is_inference()):
        return None
    state = (w._version, w.data_ptr(), w.dtype, None if b is None else (b._version, b.data_ptr()), options)
    seen = _seen.get(id(w))
    if seen is None or not seen.holds(w, b, state):
        if owns_memory(w) and (b is None or owns_memory(b)):
            _seen[id(w)] = _Seen(w, b, state)
        else:
            _seen.pop(id(w), None)
        return None
    if seen.packed is None:
        seen.packed = Packed(options)
    return seen.packed


@functools.lru_cache(maxsize=_OPEN_LAYERS)
def _open_plan(x_shape: Any, w_shape: Any, dtype: Any, bias: bool, last: bool, threads: int, geometry: Any, options: Any) -> Plan:
    return Plan(None, w_shape=w_shape, x_dtype=TYPES[dtype], bias=bias, **_arguments(x_shape, last, threads, geometry, options))


@functools.cache
def _device_names() -> tuple[str, ...]:
    return devices()


def _device_of(x: Any) -> str | None:
    """The name of the device that computes where x is, or None if ATen must."""
    if x.is_cpu:
        return "cpu"
    name = f"cuda:{x.device.index}"
    return name if x.is_cuda and name in _device_names() else None


def activate(y: Any, activation: str | None, parameters: Any) -> Any:
    """Applies an activation by ATen."""
    match activation:
        case None:
            return y
        case "relu":
            return torch.relu(y)
        case "leaky_relu":
            return torch.nn.functional.leaky_relu(y, *parameters)
        case "clip":
            return torch.clamp(y, *parameters)
        case "tanh":
            return torch.tanh(y)
        case "sigmoid":
            return torch.sigmoid(y)
    raise RuntimeError(f"there is no activation '{activation}'; there are relu, leaky_relu, clip, tanh and sigmoid")


def _check_types(x: Any, w: Any, b: Any) -> None:
    for name, other in (("weight", w), ("bias", b)):
        if other is not None and (other.dtype != x.dtype or other.device != x.device):
            raise RuntimeError(f"{name} holds {other.dtype} on {other.device} and input {x.dtype} on {x.device}; they must have "
                               "one type and one device")
    if x.dtype not in TYPES:
        raise RuntimeError(f"input holds {x.dtype}; the types are float16, bfloat16, float32 and float64")
    if b is not None and b.dim() != 1:
        raise RuntimeError(f"bias has {b.dim()} axes; it must have one")


def _checked_shape(x: Any, w: Any, b: Any, geometry: tuple[Any, ...]) -> list[Any]:
    shape = y_shape(x.shape, w.shape, *geometry)
    if b is not None and b.shape[0] != shape[1]:
        raise RuntimeError(f"bias has {b.shape[0]} elements; output has {shape[1]} channels")
    return shape


def _with_batch(x: Any, w: Any) -> Any:
    return x.unsqueeze(0) if x.dim() == w.dim() - 1 else x


def _compute(x: Any, w: Any, b: Any, stride: Any, padding: Any, output_padding: Any, groups: int, dilation: Any,
             activation: str | None = None, parameters: Any = (), winograd: bool = False, sums_in_f16: bool = False,
             isa: str | None = None, measure: bool = False, threads: int = 0, weights: str | None = None,
             quantizes_x: bool = False, constant: bool = False) -> Any:
    geometry = (tuple(stride), tuple(padding), tuple(output_padding), groups, tuple(dilation))
    options = (activation, tuple(parameters), winograd, sums_in_f16, isa, measure, weights, quantizes_x,
               device := _device_of(x))
    threads = threads or torch.get_num_threads()
    _check_types(x, w, b)
    if constant and device is not None and x.numel() > 0 and w.numel() > 0:
        packed = _packed_of(w, b, options)
        if packed is None and weights is not None:
            packed = Packed(options)  # for this call, whose result is that of later ones
        if packed is not None:
            return packed(x, w, b, threads, geometry)  # which checks shapes that it has not met
    batched = _with_batch(x, w)
    shape = _checked_shape(batched, w, b, geometry)
    has_batch = batched is x
    last = has_batch and is_channels_last(x)
    if device is None or 0 in shape or 0 in batched.shape or 0 in w.shape:
        return _convolve_by_aten(batched, w, b, geometry, activation, parameters, shape, last, has_batch)
    plan = _open_plan(batched.shape, w.shape, x.dtype, b is not None, last, threads, geometry, options)
    # Plans for devices, too, take weights and bias from the memory of the CPU.
    w, b = (None if t is None else _array(t.to("cpu").contiguous()) for t in (w, b))
    return run(plan, shape, batched, last, has_batch, w=w, b=b)


def _fake(x: Any, w: Any, b: Any, stride: Any, padding: Any, output_padding: Any, groups: Any, dilation: Any,
          *_: Any, **__: Any) -> Any:
    _check_types(x, w, b)
    batched = _with_batch(x, w)
    shape = _checked_shape(batched, w, b, (stride, padding, output_padding, groups, dilation))
    return _empty(x, shape, batched is x and is_channels_last(x), batched is x)


def _keep_for_backward(ctx: Any, inputs: Any, output: Any) -> None:
    x, w, b, stride, padding, output_padding, groups, dilation, activation, parameters, *_ = inputs
    ctx.save_for_backward(x, w, *([] if activation is None else [output]))
    ctx.bias_sizes = None if b is None else [b.shape[0]]
    ctx.attributes = stride, padding, dilation, True, output_padding, groups
    ctx.activation, ctx.parameters = activation, parameters


def _activation_gradient(dy: Any, y: Any, activation: str, parameters: Any) -> Any:
    """The gradient before the activation, from y behind it: each of them can be told from y, for slopes that are not negative."""
    match activation:
        case "relu":
            return torch.where(y <= 0, 0, dy)
        case "leaky_relu":
            if parameters[0] < 0:
                raise RuntimeError(f"the gradient of leaky_relu of slope {parameters[0]}, which is negative, cannot be told from "
                                   "its result: apply torch.nn.functional.leaky_relu instead")
            return torch.where(y <= 0, dy * parameters[0], dy)
        case "clip":
            return torch.where((y <= parameters[0]) | (y >= parameters[1]), 0, dy)
        case "tanh":
            return dy * (1 - y * y)
        case _:
            return dy * y * (1 - y)


def _backward(ctx: Any, dy: Any) -> Any:
    x, w, *outputs = ctx.saved_tensors
    if outputs:
        dy = _activation_gradient(dy, outputs[0], ctx.activation, ctx.parameters)
    batched = _with_batch(x, w)
    if batched is not x:
        dy = dy.unsqueeze(0)
    dx, dw, db = torch.ops.aten.convolution_backward.default(dy, batched, w, ctx.bias_sizes, *ctx.attributes,
                                                             list(ctx.needs_input_grad[:3]))
    if dx is not None and batched is not x:
        dx = dx.squeeze(0)
    return (dx, dw, db, *[None] * 15)


class Differentiable(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The operator for eager mode with gradients, which costs less than its dispatch.

    apply() takes x, w and b, their plans or None where weights change at each call, the number of threads for plans, the
    geometry, and the operator's arguments after those.
    """

    @staticmethod
    def forward(ctx: Any, x: Any, w: Any, b: Any, packed: Packed | None, threads: int, geometry: Any, arguments: Any) -> Any:
        y = packed(x, w, b, threads, geometry) if packed else _compute(x, w, b, *geometry, *arguments)
        _keep_for_backward(ctx, (x, w, b, *geometry, *arguments), y)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return _backward(ctx, dy)[:7]


def _vmap(info: Any, in_dims: Any, x: Any, w: Any, b: Any, *rest: Any) -> Any:
    """Samples of x become a part of the batch if the weights are those of all; else they are computed one by one."""
    x_dim, w_dim, b_dim = in_dims[:3]
    if w_dim is None and b_dim is None:
        x = x.movedim(x_dim, 0)
        if x.dim() == w.dim():
            return operator(x, w, b, *rest), 0
        y = operator(x.flatten(0, 1), w, b, *rest)
        return y.unflatten(0, x.shape[:2]), 0

    def sample(tensor: Any, dim: int | None, index: int) -> Any:
        return tensor if tensor is None or dim is None else tensor.select(dim, index)

    ys = [operator(sample(x, x_dim, i), sample(w, w_dim, i), sample(b, b_dim, i), *rest) for i in range(info.batch_size)]
    return torch.stack(ys), 0


def _autocast(device: str, key: Any) -> Any:
    """The operator under autocast, which casts floats but float64 to its type, as it does for ATen's transposed convolutions."""

    def cast(tensor: Any) -> Any:
        if tensor is None or tensor.dtype not in TYPES or tensor.dtype == torch.float64:
            return tensor
        return tensor.to(torch.get_autocast_dtype(device))

    def with_casts(x: Any, w: Any, b: Any, *rest: Any) -> Any:
        x, w, b = cast(x), cast(w), cast(b)
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return operator(x, w, b, *rest)

    return with_casts


operator: Any = torch.library.custom_op("convtranspose::conv_transpose", _compute, mutates_args=(), schema=_SCHEMA)
operator.register_fake(_fake)
operator.register_autograd(_backward, setup_context=_keep_for_backward)
operator.register_vmap(_vmap)
_library: Any = torch.library.Library("convtranspose", "FRAGMENT")  # type: ignore[no-untyped-call, unused-ignore]
_library.impl("conv_transpose", _compute, "CPU")  # without what custom_op() wraps around it, which takes as long as a small layer
for _device, _key in (("cpu", torch._C.DispatchKey.AutocastCPU), ("cuda", torch._C.DispatchKey.AutocastCUDA)):
    _library.impl("conv_transpose", _autocast(_device, _key), _key.name, with_keyset=False)
operator = torch.ops.convtranspose.conv_transpose.default
