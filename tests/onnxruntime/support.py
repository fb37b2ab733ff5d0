"""Small models, and sessions that compute them with and without the provider."""
import ctypes
import json
import math
import os
import sys
import tempfile
import unittest

import convtranspose.onnxruntime as ct
import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

SEED = int(os.environ.get("CONVTRANSPOSE_TEST_SEED", "20261127"))
TYPES = {
    "f16": (TensorProto.FLOAT16, np.float16),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16),
    "f32": (TensorProto.FLOAT, np.float32),
    "f64": (TensorProto.DOUBLE, np.float64),
    "u8": (TensorProto.UINT8, np.uint8),
    "s8": (TensorProto.INT8, np.int8),
}


def setUpModule():
    print(f"onnxruntime {ort.__version__}, seed {SEED}", file=sys.stderr)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(nodes, inputs, outputs, constants=None, opset=17, domains=()):
    """A model of nodes. inputs: name to (element type, shape); outputs: the same, where None stands for an unknown shape."""
    graph = helper.make_graph(
        nodes, "test",
        [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()],
        [helper.make_tensor_value_info(name, *what) for name, what in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()])
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    # The least version of the format that knows all types, which the oldest ONNX Runtime reads too.
    return helper.make_model(graph, opset_imports=opsets, ir_version=8 if opset < 19 else 10)


def session_options(level=None, threads=0, profile=None):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if level is not None:
        options.graph_optimization_level = level
    options.intra_op_num_threads = threads
    if profile:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    return options


def ours(proto, level=None, session_threads=0, **options):
    return ct.session(proto, session_options(level, session_threads), **options)


def plain(proto, level=None):
    return ort.InferenceSession(proto.SerializeToString(), session_options(level), providers=["CPUExecutionProvider"])


def run(session, feeds):
    """Runs a session whose first output may be of bfloat16, which ONNX Runtime does not turn into a numpy array."""
    if not any(value.dtype == ml_dtypes.bfloat16 for value in feeds.values()):
        return session.run(None, feeds)
    values = {name: ort.OrtValue.ortvalue_from_numpy_with_onnx_type(value.view(np.uint16), TensorProto.BFLOAT16)
              for name, value in feeds.items()}
    outputs = session.run_with_ort_values([output.name for output in session.get_outputs()], values)
    arrays = []
    for output in outputs:
        bits = (ctypes.c_uint16 * math.prod(output.shape())).from_address(output.data_ptr())
        arrays.append(np.array(bits, dtype=np.uint16).view(ml_dtypes.bfloat16).reshape(output.shape()))
    return arrays


def nodes_run(proto, feeds, level=None, **options):
    """The outputs of one run, and the nodes that it ran: [(provider, operator)]."""
    with tempfile.TemporaryDirectory() as folder:
        session = ct.session(proto, session_options(level, profile=os.path.join(folder, "profile")), **options)
        outputs = session.run(None, feeds)
        with open(session.end_profiling(), encoding="utf-8") as file:
            events = json.load(file)
    ran = [(event["args"]["provider"], event["args"]["op_name"]) for event in events
           if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")]
    return outputs, ran


def left_to_others(ran):
    """The operators that other providers ran, sorted."""
    return sorted(op for provider, op in ran if provider != ct.PROVIDER)


class TestCase(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(SEED)

    def draw(self, shape, dtype=np.float32):
        return self.rng.standard_normal(shape).astype(dtype)

    def integers(self, shape, dtype):
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)

    def assert_close(self, actual, expected, tolerance, message=""):
        """Each element differs by at most `tolerance` times the largest magnitude that is expected."""
        self.assertEqual(actual.shape, expected.shape, message)
        self.assertEqual(actual.dtype, expected.dtype, message)
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
        bound = tolerance * max(1.0, np.abs(expected).max(initial=0))
        self.assertLessEqual(np.abs(actual - expected).max(initial=0), bound, message)
