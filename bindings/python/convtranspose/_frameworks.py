"""The array libraries whose arrays come in: what is asked of them without importing any that is not there already."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

_LIBRARIES = ("numpy", "torch", "cupy", "jax", "jaxlib")


def _library_of(array: object) -> str:
    """The library of an array, whose class may be made from that library's own, or ""."""
    modules = ((kind.__module__ or "").partition(".")[0] for kind in type(array).__mro__)  # ctypes' arrays are in no module
    return next((module for module in modules if module in _LIBRARIES), "")


def stream_of(array: Any) -> int | None:
    """Returns the number, as DLPack has it, of the stream that the caller works in on the array's device; None for the CPU."""
    library = _library_of(array)
    if library == "torch" and array.is_cuda:
        # DLPack: 1 is the default stream, and 0 is forbidden as it may mean either of two.
        return int(sys.modules["torch"].cuda.current_stream(array.device).cuda_stream) or 1
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr) or 1
    return None


def device_of(array: Any) -> str:
    """Returns the name of the device whose memory holds the array, such as "cuda:0"."""
    return f"cuda:{array.__dlpack_device__()[1]}"


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns numpy's type of that name; bfloat16 is that of ml_dtypes."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError as error:
        raise TypeError("numpy has no bfloat16: install ml_dtypes, or give out") from error
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


def empty(like: Any, shape: tuple[int, ...], dtype: str) -> tuple[Any, Callable[[Any], Any] | None]:
    """Makes an array to write to.

    Returns:
        An array of the shape and type on the device of `like`, of the same library where that has arrays that can be written
        to, and what then makes one of that library of it, or None.
    """
    library = _library_of(like)
    if library == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device), None
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(like.device):
            return cupy.empty(shape, dtype=numpy_dtype(dtype)), None
    array = np.empty(shape, numpy_dtype(dtype))
    if library == "numpy":
        return array, None
    if library in ("jax", "jaxlib"):
        return array, sys.modules["jax"].numpy.asarray
    namespace = like.__array_namespace__() if hasattr(like, "__array_namespace__") else None
    return array, getattr(namespace, "from_dlpack", None)
