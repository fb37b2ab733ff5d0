"""The execution provider for ONNX Runtime, which computes the transposed convolutions of a model.

    import onnxruntime as ort
    import convtranspose.onnxruntime as ct

    ct.register()
    session = ort.InferenceSession("net.onnx", providers=[ct.PROVIDER, "CPUExecutionProvider"])

ONNX Runtime 1.23 and 1.24 do not know the provider by its name there; `session()` works with every version from 1.23.1 on.
docs/onnxruntime.md says which nodes it takes, and lists its options.
"""
from __future__ import annotations

import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import onnxruntime as _ort  # type: ignore[import-untyped]

__all__ = ["PROVIDER", "get_ep_name", "get_library_path", "register", "session"]

PROVIDER = "ConvTransposeExecutionProvider"
"""The provider's name, for `providers=` of `onnxruntime.InferenceSession`."""

_OLDEST = (1, 23, 1)
_lock = threading.Lock()


def get_ep_name() -> str:
    """The provider's name."""
    return PROVIDER


def get_library_path() -> str:
    """The path of the provider's library, for those who register it themselves.

    Raises FileNotFoundError if it does not lie beside this file.
    """
    suffix = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    # A link to this file counts as the file: in a build folder the package is made of links.
    path = Path(__file__).absolute().parent / f"libconvtranspose_onnxruntime{suffix}"
    if not path.is_file():
        raise FileNotFoundError(f"'{path}' is missing: this package was built without the execution provider "
                                "(CONVTRANSPOSE_BUILD_ONNXRUNTIME)")
    return str(path)


def _devices() -> list[Any]:
    return [device for device in _ort.get_ep_devices() if device.ep_name == PROVIDER]


def register() -> None:
    """Makes the provider known to ONNX Runtime. Further calls do nothing.

    Raises RuntimeError if ONNX Runtime is older than 1.23.1, FileNotFoundError if the library is missing, and ONNX Runtime's own
    errors if it cannot be loaded.
    """
    version = tuple(map(int, re.findall(r"\d+", _ort.__version__)[:3]))
    if version < _OLDEST:
        raise RuntimeError(f"the execution provider needs onnxruntime 1.23.1 or later; {_ort.__version__} is installed")
    with _lock:
        if not _devices():
            _ort.register_execution_provider_library(PROVIDER, get_library_path())


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def session(model: Any, sess_options: _ort.SessionOptions | None = None, **options: Any) -> _ort.InferenceSession:
    """An inference session in which this provider comes before the CPU provider.

    model         The path of a model, its bytes, or an onnx.ModelProto.
    sess_options  Options of the session. The provider is added to them, so that they serve for one session.
    options       Options of the provider, such as threads=2 or winograd=True. Without `threads`, the number is
                  that of `sess_options.intra_op_num_threads`, or if that is 0, what ONNX Runtime chooses.

    Registers the provider if need be. An option that there is not raises an error of ONNX Runtime that lists those that there are,
    and options of another session raise ValueError.
    """
    register()
    if sess_options is None:
        sess_options = _ort.SessionOptions()
    if "threads" not in options and sess_options.intra_op_num_threads > 0:
        options["threads"] = sess_options.intra_op_num_threads
    sess_options.add_provider_for_devices(_devices()[:1], {name: _text(value) for name, value in options.items()})
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    elif isinstance(model, os.PathLike):
        model = os.fspath(model)
    try:
        # Without this, a session that cannot be made with the provider would be made without it.
        return _ort.InferenceSession(model, sess_options, enable_fallback=False)
    except Exception as error:
        if f"{PROVIDER} has already been registered" not in str(error):
            raise
        raise ValueError(f"sess_options has {PROVIDER} already, from an earlier session or from elsewhere: give each session "
                         "options of its own, without it") from error
