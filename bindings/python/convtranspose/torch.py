"""Transposed convolutions of PyTorch models by this library.

    import convtranspose.torch

    print(convtranspose.torch.replace_(model))   # all layers of a model, in place
    y = convtranspose.torch.conv_transpose(x, weight, bias, stride=2, padding=1)

The operator behind both is torch.ops.convtranspose.conv_transpose, which torch.compile, torch.export and autograd know.
docs/pytorch.md says more.
"""

from __future__ import annotations

from typing import Any

from . import _torch_version  # noqa: F401 (the first of all)
from ._torch_fuse import fuse_
from ._torch_modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Report, repack_, replace_, restore_
from ._torch_operator import operator as _operator
from ._torch_operator import per_axis

__all__ = [
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "Report",
    "conv_transpose",
    "fuse_",
    "repack_",
    "replace_",
    "restore_",
]


def conv_transpose(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    *,
    activation: Any = None,
    winograd: bool = False,
    sums_in_f16: bool = False,
    isa: str | None = None,
    measure: bool = False,
    threads: int | None = None,
    constant: bool = False,
) -> Any:
    """Computes a transposed convolution of any number of spatial axes, with gradients.

    Args:
        input: (N, C, D1..Dn), or (C, D1..Dn). float16, bfloat16, float32 or float64.
        weight: (C, M/groups, K1..Kn), of the input's type.
        bias: (M), of the input's type; or None.
        stride, padding, output_padding, groups, dilation: As in torch.nn.functional.conv_transpose2d.
        activation: "relu", "sigmoid", "tanh", ("leaky_relu", slope), ("clip", least, greatest) or None.
        winograd, sums_in_f16, isa, measure, threads: As in replace_().
        constant: True allows packed weights to be kept for further calls with the same tensors. Changes that PyTorch counts are
            noticed; those by `.data` or numpy are not.

    Returns:
        y: (N, M, O1..On), or (M, O1..On), of the input's type; in channels_last memory format if the input is.

    Raises:
        RuntimeError: A shape, a type, a device or an attribute breaks a rule; the message names both.
        ValueError: The value of an option is out of range.
        NotImplementedError: This CPU or build lacks the instruction set.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.conv_transpose2d.html
    """
    axes = weight.dim() - 2
    name, *parameters = (activation,) if activation is None or isinstance(activation, str) else activation
    return _operator(input, weight, bias, per_axis(stride, axes), per_axis(padding, axes), per_axis(output_padding, axes),
                     groups, per_axis(dilation, axes), name, [float(value) for value in parameters], winograd, sums_in_f16, isa,
                     measure, threads or 0, None, False, constant)
