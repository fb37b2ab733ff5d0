"""Fast transposed convolution ("deconvolution") for numpy arrays and for arrays of any library that speaks DLPack.

    y = convtranspose.conv_transpose(x, w, strides=[2, 2], pads=[1, 1, 1, 1])

    plan = convtranspose.Plan(w, x_shape=x.shape, strides=[2, 2], pads=[1, 1, 1, 1])
    y = plan(x)

The first is one call of ONNX's ConvTranspose. A plan is the same with constant weights, which it packs once, and is faster. Both
take arguments by ONNX's names (https://onnx.ai/onnx/operators/onnx__ConvTranspose.html).

Arrays of x, y and residual are (N, C, D1..Dn) for the layout "nchw", whatever their number of spatial axes, and (N, D1..Dn, C)
for "nhwc". Weights are (C, M/group, K1..Kn) in both, and the bias is (M). Types are float16, bfloat16, float32 and float64, and
for quantized layers uint8 and int8, with a bias of int32. A float32 x also goes with light weights: float16, bfloat16, uint8, int8.

Errors: ValueError says which value broke which rule, TypeError that an argument is of the wrong kind, NotImplementedError that
this CPU or build lacks what was asked for, and MemoryError that memory ran out. BufferError comes from libraries that do not hand
out an array, such as PyTorch for a tensor that needs gradients. A call that fails writes nothing to out.
"""

from __future__ import annotations

import os

from ._functions import conv_transpose, qlinear_conv_transpose
from ._native import Plan, Tuning, algorithms, cpu_name, devices, infer_shape, isas, variants, version

__version__ = version()
__all__ = [
    "Plan",
    "Tuning",
    "algorithms",
    "conv_transpose",
    "cpu_name",
    "devices",
    "get_include",
    "get_library_dir",
    "infer_shape",
    "isas",
    "qlinear_conv_transpose",
    "variants",
    "version",
]


def get_include() -> str:
    """Returns the folder of the C and C++ headers, to be given to a compiler with -I."""
    return os.path.join(os.path.dirname(__file__), "include")


def get_library_dir() -> str:
    """Returns the folder of the shared library that the headers describe, to be given to a linker with -L (and -rpath)."""
    return os.path.join(os.path.dirname(__file__), "lib")
