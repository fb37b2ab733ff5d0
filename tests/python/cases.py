"""The conformance cases and the definition, which tests/conformance/expected.py computes in numpy."""

import json
import pathlib
import sys

CONFORMANCE = pathlib.Path(__file__).resolve().parent.parent / "conformance"
sys.path.insert(0, str(CONFORMANCE))

import expected  # noqa: E402
import numpy as np  # noqa: E402

DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "u8": np.uint8, "s8": np.int8}


def read(name):
    """The cases of cases.json, reports.json or huge.json."""
    return json.loads((CONFORMANCE / name).read_text())["cases"]


def to_last(array):
    """Channels first to channels last, as a dense array."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1))


def definition(x, w, b=None, **attributes):
    """ConvTranspose by the scatter definition in float64: x and w channels first."""
    case = {"x_shape": list(x.shape), "w_shape": list(w.shape), "dtype": "f64", "attrs": attributes, "bias": b is not None}
    y = expected.scatter(x.astype(np.float64), w.astype(np.float64), expected.geometry(case))
    return y if b is None else y + expected.per_channel(b.astype(np.float64), y)
