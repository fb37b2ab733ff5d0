"""A program with types, for mypy --strict: tests/python/test_types.py."""

from __future__ import annotations

import convtranspose
import numpy as np
import numpy.typing as npt


def upsample(x: npt.NDArray[np.float32], w: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    plan = convtranspose.Plan(w, x_shape=x.shape, strides=[2, 2], pads=1, activation=("leaky_relu", 0.2), threads=2)
    y: npt.NDArray[np.float32] = plan(x, out=np.empty(plan.y_shape, np.float32))
    larger: convtranspose.Plan = plan.reshape((1, *plan.x_shape[1:]))
    print(larger.explain(), larger.variant, larger.workspace_bytes + 1, len(larger.candidates()))
    z: npt.NDArray[np.float32] = convtranspose.conv_transpose(x, w, strides=2, auto_pad="SAME_UPPER")
    return y + z


folder: str = convtranspose.get_include()
names: tuple[str, ...] = convtranspose.isas()
