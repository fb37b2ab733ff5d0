"""ONNX's own tests of ConvTranspose, by the package's backend."""

import unittest
import warnings

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper

warnings.filterwarnings("ignore")  # of ONNX's makers of test data, about other operators

import convtranspose  # noqa: E402
from convtranspose import onnx_backend  # noqa: E402
from onnx.backend.test.runner import Runner  # noqa: E402

runner = Runner(onnx_backend, __name__)
SUITES = runner.test_cases
for suite in SUITES.values():
    for name in dir(suite):
        if name.startswith("test_") and not ("convtranspose" in name.lower() and name.endswith("_cpu")):
            delattr(suite, name)  # a test of another operator
globals().update(SUITES)


def model_of(*nodes, opset=22):
    graph = helper.make_graph(list(nodes), "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 2, 4))],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("n", "m", "o"))],
                              [onnx.numpy_helper.from_array(np.ones((2, 2, 3), np.float32), "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


class Models(unittest.TestCase):
    def test_how_many_of_onnxs_tests_ran(self):
        names = [name for suite in SUITES.values() for name in dir(suite) if name.startswith("test_")]
        self.assertGreaterEqual(len(names), 14, names)

    def test_a_chain(self):
        nodes = [helper.make_node("ConvTranspose", ["x", "w"], ["t"], strides=[2]),
                 helper.make_node("ConvTranspose", ["t", "w"], ["y"])]
        (y,) = onnx_backend.prepare(model_of(*nodes)).run({"x": np.ones((1, 2, 4), np.float32)})
        self.assertEqual(y.shape, (1, 2, 11))
        self.assertEqual(y.sum(), 8 * (2 * 3) * (2 * 3))  # each x meets each w

    def test_other_models(self):
        other = model_of(helper.make_node("Relu", ["x"], ["y"], name="act"))
        self.assertFalse(onnx_backend.is_compatible(other))
        with self.assertRaisesRegex(NotImplementedError, "node 'act' is a Relu"):
            onnx_backend.prepare(other)
        right = model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"]))
        with self.assertRaisesRegex(NotImplementedError, "TPU"):
            onnx_backend.prepare(right, "TPU")
        with self.assertRaisesRegex(ValueError, "inputs x are missing"):
            onnx_backend.prepare(right).run([])

    def test_inputs_that_nothing_takes(self):
        right = onnx_backend.prepare(model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"])))
        x = np.ones((1, 2, 4), np.float32)
        with self.assertRaisesRegex(ValueError, "there are 2 inputs; the model takes 1: x"):
            right.run([x, np.zeros((2, 2, 3), np.float32)])  # w is an initializer
        with self.assertRaisesRegex(ValueError, "nothing takes the inputs w, z; the model takes x"):
            right.run({"x": x, "w": np.zeros((2, 2, 3), np.float32), "z": x})

    def test_an_initializer_that_is_an_input_may_be_replaced(self):
        proto = model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"]))
        proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (2, 2, 3)))
        x = np.ones((1, 2, 4), np.float32)
        model = onnx_backend.prepare(proto)
        self.assertEqual(model.run([x])[0].sum(), 48)
        self.assertEqual(model.run({"x": x, "w": np.zeros((2, 2, 3), np.float32)})[0].sum(), 0)

    def test_types_that_the_operator_does_not_take(self):
        model = onnx_backend.prepare(model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"])))
        with self.assertRaisesRegex(ValueError, "'x' holds float64, 'w' holds float32; the inputs .* one type"):
            model.run([np.ones((1, 2, 4))])
        node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"])
        x, w, b = (np.ones(shape, np.float32) for shape in ((1, 2, 4), (2, 2, 3), 2))
        with self.assertRaisesRegex(ValueError, "'w' holds float16"):  # conv_transpose() takes such light weights
            onnx_backend.run_node(node, [x, w.astype(np.float16), b])
        x, w, b = (array.astype(ml_dtypes.bfloat16) for array in (x, w, b))
        with self.assertRaisesRegex(ValueError, "bfloat16 from opset 22 on, not in opset 11"):
            onnx_backend.run_node(node, [x, w, b], opset_version=11)
        self.assertEqual(onnx_backend.run_node(node, [x, w, b], opset_version=22)[0].dtype, ml_dtypes.bfloat16)

    def test_models_that_import_no_opset(self):
        proto = model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"]))
        proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (2, 2, 3)))
        proto.ir_version = 2
        del proto.opset_import[:]
        self.assertEqual(onnx_backend.prepare(proto).run([np.ones((1, 2, 4), np.float32)])[0].sum(), 48)

    def test_sparse_weights(self):
        w = np.zeros((2, 2, 3), np.float32)
        w[0, 1, 2], w[1, 0, 0] = 3, -2
        proto = model_of(helper.make_node("ConvTranspose", ["x", "w"], ["y"]))
        del proto.graph.initializer[:]
        values = onnx.numpy_helper.from_array(np.float32([3, -2]), "w")
        x = np.arange(8, dtype=np.float32).reshape(1, 2, 4)
        for indices in (np.array([5, 6]), np.array([[0, 1, 2], [1, 0, 0]])):
            proto.graph.ClearField("sparse_initializer")
            proto.graph.sparse_initializer.append(
                helper.make_sparse_tensor(values, onnx.numpy_helper.from_array(indices, "i"), w.shape))
            (y,) = onnx_backend.prepare(proto).run([x])
            np.testing.assert_array_equal(y, convtranspose.conv_transpose(x, w))

    def test_a_node(self):
        x, w = np.ones((1, 2, 4), np.float32), np.ones((2, 2, 3), np.float32)
        node = helper.make_node("ConvTranspose", ["x", "w", ""], ["y"], strides=[2])
        (y,) = onnx_backend.run_node(node, [x, w])
        self.assertEqual((y.shape, y.sum()), ((1, 2, 9), 8 * 6))
        self.assertEqual(onnx_backend.run_node(node, (x, w), opset_version=1)["y"].shape, (1, 2, 9))
        with self.assertRaisesRegex(ValueError, "there are 1 inputs; the node takes 2: x, w"):
            onnx_backend.run_node(node, [x])
        with self.assertRaisesRegex(NotImplementedError, "is a Relu"):
            onnx_backend.run_node(helper.make_node("Relu", ["x"], ["y"]), [x])
        with self.assertRaises(onnx.checker.ValidationError):
            onnx_backend.run_node(helper.make_node("ConvTranspose", ["x"], ["y"]), [x])


if __name__ == "__main__":
    unittest.main()
