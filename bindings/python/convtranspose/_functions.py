"""The operators as functions of arrays."""

from __future__ import annotations

import functools
from typing import Any

from ._native import Plan, describe

# How many layers the functions remember. Each holds a workspace, and no weights.
_REMEMBERED = 64

_INTEGERS = frozenset(("uint8", "int8", "int32"))


@functools.lru_cache(maxsize=_REMEMBERED)
def _plan(arguments: tuple[tuple[str, Any], ...], types: Any) -> Plan:
    return Plan(None, **dict(arguments))


def _hashable(value: Any) -> Any:
    if type(value) in (int, str, bool):
        return value
    if hasattr(value, "tolist"):  # numpy's arrays
        value = value.tolist()
    return tuple([_hashable(v) for v in value]) if isinstance(value, (list, tuple)) else value


def _plan_of(**arguments: Any) -> Plan:
    key = tuple([(name, _hashable(value)) for name, value in arguments.items() if value is not None])
    # 2.0 equals 2, but is no integer.
    types: tuple[Any, ...] = tuple([tuple(map(type, value)) if type(value) is tuple else type(value) for _, value in key])
    activation = arguments.get("activation")
    if isinstance(activation, (list, tuple)):  # -0.0 equals 0.0, but gives other zeros
        types += (repr(_hashable(activation)),)
    try:
        return _plan(key, types)
    except TypeError:
        pass  # such as a set, which cannot be remembered: a plan refuses it by the argument's name
    return Plan(None, **dict(key))


def conv_transpose(
    x: Any,
    w: Any,
    b: Any = None,
    *,
    strides: Any = None,
    pads: Any = None,
    dilations: Any = None,
    group: int = 1,
    output_padding: Any = None,
    output_shape: Any = None,
    auto_pad: str | None = None,
    kernel_shape: Any = None,
    opset: int = 22,
    layout: str = "nchw",
    w_scale: Any = None,
    w_zero_point: Any = None,
    quantizes_x: bool = False,
    activation: Any = None,
    residual: Any = None,
    threads: int | None = None,
    winograd: bool = False,
    sums_in_f16: bool = False,
    variant: str | None = None,
    isa: str | None = None,
    measure: bool | int = False,
    device: str | None = None,
    out: Any = None,
) -> Any:
    """Computes ONNX's ConvTranspose, with weights that may differ at each call.

    Args:
        x: The input: (N, C, D1..Dn), or (N, D1..Dn, C) for the layout "nhwc". float16, bfloat16, float32 or float64.
        w: The weights: (C, M/group, K1..Kn), of x's type. For a float32 x also light ones: float16, bfloat16, uint8 or int8, which
            y is computed from as if they were the float32 of the same values; 8-bit ones are (w - w_zero_point) * w_scale.
        b: The bias: (M), of x's type; or None.
        strides: Distances in y between the outputs of neighbouring inputs. One integer stands for all axes, here and below.
        pads: Positions cut off from y: begins of all axes, then ends.
        dilations: Distances between kernel elements.
        group: Number of groups, which divides the input channels.
        output_padding: Positions added at the end of each axis.
        output_shape: Extents of y, from which pads are computed.
        auto_pad: "NOTSET", "SAME_UPPER", "SAME_LOWER" or "VALID".
        kernel_shape: Extents of the kernel, which must be those of w.
        opset: The operator's version, 1, 11 or 22, or the opset of a model.
        layout: Order of the axes of x, y and the residual: "nchw" or "nhwc", whatever their number of spatial axes; or
            "channels_first" or "channels_last", which mean the same.
        w_scale: Scales of w of 8 bits: one, or one for each of the M output channels.
        w_zero_point: Zero points of w of 8 bits, likewise; None: 0.
        quantizes_x: True quantizes x to uint8, as ONNX's DynamicQuantizeLinear does, for w of 8 bits: faster, and x is off by up to
            half its scale, which is (max(x, 0) - min(x, 0)) / 255.
        activation: What is applied last: "relu", "sigmoid", "tanh", ("leaky_relu", slope), ("clip", least, greatest) or None.
        residual: An array of y's shape and type that is added before the activation, or None.
        threads: How many threads may compute; None: as many as there are CPUs that this process may use.
        winograd: True allows Winograd's algorithm, whose rounding errors differ from those of the definition.
        sums_in_f16: True allows float16 layers to be summed in float16, where the CPU computes with it.
        variant: The name of what is to compute; None: it is chosen.
        isa: The name of the instruction set to use, of isas(); None: the best that this CPU runs.
        measure: True takes what is fastest of the candidates, which are run for 50 milliseconds when the layer is first planned; a
            number is another budget. False goes by estimates.
        device: "cuda", "cuda:1" or "opencl"; None: where x is.
        out: The array that y is written to, and that is returned; None: a new one, of the same library as x.

    Returns:
        y: (N, M, O1..On), or (N, O1..On, M) for "nhwc", of x's type.

    Raises:
        ValueError: A value breaks a rule of the operator; the message names both.
        TypeError: An argument is of the wrong kind, or an array of a type that the operator does not take.
        NotImplementedError: A variant, an instruction set or a device that cannot be had here was asked for.
        MemoryError: Memory ran out.

    Source: https://onnx.ai/onnx/operators/onnx__ConvTranspose.html
    """
    x_dtype, x_shape, x_device = describe(x, "x")
    w_dtype, w_shape, _ = describe(w, "w")
    if x_dtype in _INTEGERS:
        raise TypeError(f"x holds {x_dtype}; conv_transpose takes float16, bfloat16, float32 and float64, and "
                        "qlinear_conv_transpose uint8 and int8")
    if w_dtype in ("uint8", "int8") and w_scale is None:
        raise TypeError(f"w_scale is missing: w holds {w_dtype}, which has one scale, or one for each output channel")
    plan = _plan_of(
        x_shape=x_shape,
        w_shape=w_shape,
        x_dtype=x_dtype,
        w_dtype=w_dtype,
        quantizes_x=quantizes_x,
        bias=b is not None,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
        output_padding=output_padding,
        output_shape=output_shape,
        auto_pad=auto_pad,
        kernel_shape=kernel_shape,
        opset=opset,
        layout=layout,
        activation=activation,
        residual=residual is not None,
        threads=threads,
        winograd=winograd,
        sums_in_f16=sums_in_f16,
        variant=variant,
        isa=isa,
        measure=measure,
        device=x_device if device is None else device,
    )
    return plan(x, out=out, residual=residual, w=w, b=b, w_scale=w_scale, w_zero_point=w_zero_point)


def qlinear_conv_transpose(
    x: Any,
    x_scale: Any,
    x_zero_point: Any,
    w: Any,
    w_scale: Any,
    w_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    b: Any = None,
    *,
    strides: Any = None,
    pads: Any = None,
    dilations: Any = None,
    group: int = 1,
    output_padding: Any = None,
    output_shape: Any = None,
    auto_pad: str | None = None,
    kernel_shape: Any = None,
    layout: str = "nhwc",
    y_dtype: Any = None,
    y_range: Any = None,
    threads: int | None = None,
    variant: str | None = None,
    isa: str | None = None,
    measure: bool | int = False,
    device: str | None = None,
    out: Any = None,
) -> Any:
    """Computes QLinearConvTranspose: a transposed convolution of 8-bit integers, whose sums are exact.

    An integer stands for a real: real = (integer - zero_point) * scale.

    Args:
        x: The input, uint8 or int8: (N, D1..Dn, C), or (N, C, D1..Dn) for the layout "nchw".
        x_scale: Scale of x.
        x_zero_point: Zero point of x.
        w: The weights, uint8 or int8: (C, M/group, K1..Kn) in both layouts.
        w_scale: Scales of w: one, or one for each of the M output channels.
        w_zero_point: Zero points of w, likewise.
        y_scale: Scale of y; not looked at if y is float32, as y_zero_point then is.
        y_zero_point: Zero point of y.
        b: The bias: (M), int32 at the scale x_scale * w_scale, or float32 if y is; or None.
        layout: "nhwc", as the operator has it, or "nchw"; "channels_last" and "channels_first" mean the same.
        y_dtype: Type of y: that of x (None), "uint8", "int8" or "float32".
        y_range: (least, greatest) in reals, to which y is clamped, such as (0, 6); or None.

    The other arguments, and what is raised, are those of conv_transpose().

    Returns:
        y: (N, O1..On, M), or (N, M, O1..On) for "nchw".

    Source: com.ms.internal.nhwc QLinearConvTranspose-1 of ONNX Runtime.
    """
    x_dtype, x_shape, x_device = describe(x, "x")
    w_dtype, w_shape, _ = describe(w, "w")
    plan = _plan_of(
        x_shape=x_shape,
        w_shape=w_shape,
        x_dtype=x_dtype,
        w_dtype=w_dtype,
        y_dtype=getattr(y_dtype, "__name__" if isinstance(y_dtype, type) else "name", y_dtype),
        bias=b is not None,
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=group,
        output_padding=output_padding,
        output_shape=output_shape,
        auto_pad=auto_pad,
        kernel_shape=kernel_shape,
        layout=layout,
        threads=threads,
        variant=variant,
        isa=isa,
        measure=measure,
        device=x_device if device is None else device,
    )
    return plan(
        x,
        out=out,
        w=w,
        b=b,
        x_scale=x_scale,
        x_zero_point=x_zero_point,
        w_scale=w_scale,
        w_zero_point=w_zero_point,
        y_scale=y_scale,
        y_zero_point=y_zero_point,
        y_range=y_range,
    )
