"""Refuses, when it is imported, a PyTorch that convtranspose.torch cannot work with."""

from __future__ import annotations

import torch  # type: ignore[import-not-found, unused-ignore]

# All else that is used is older than this function.
if not hasattr(getattr(torch, "library", None), "register_vmap"):
    raise ImportError(f"convtranspose.torch needs PyTorch 2.5 or later, and this is {torch.__version__}")
