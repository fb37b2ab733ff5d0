"""Layers of floats: types, shapes that are known late, weights that come with each run, and numbers of threads."""
import sys
import threading
import unittest
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from support import TYPES, TestCase, left_to_others, model, node, nodes_run, ours, plain, run, setUpModule  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))
import expected

ATTRIBUTES = {"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]}
# Units in the last place, times the 24 sums of a value of y.
TOLERANCE = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 1e-5, "f64": 1e-14}


def reference(x, w, b, **attributes):
    """y in f64 by the program that checks the conformance cases."""
    case = {"dtype": "f64", "x_shape": list(x.shape), "w_shape": list(w.shape), "attrs": attributes, "bias": b is not None,
            "b_shape": None if b is None else list(b.shape)}
    y = expected.scatter(x.astype(np.float64), w.astype(np.float64), expected.geometry(case))
    return y if b is None else y + expected.per_channel(b.astype(np.float64), y)


class Floats(TestCase):
    def layer(self, name, opset, constant, x_shape=(2, 6, 5, 7), w_shape=(6, 4, 3, 3), **attributes):
        element, dtype = TYPES[name]
        x, w, b = self.draw(x_shape, dtype), self.draw(w_shape, dtype), self.draw(w_shape[1], dtype)
        values = {"w": w, "b": b}
        inputs = {"x": (element, x_shape)} | ({} if constant else {n: (element, v.shape) for n, v in values.items()})
        proto = model([node("ConvTranspose", "x w b", "y", **(attributes or ATTRIBUTES))], inputs, {"y": (element, None)},
                      values if constant else {}, opset)
        return proto, {"x": x} | ({} if constant else values), reference(x, w, b, **(attributes or ATTRIBUTES))

    def test_types_and_versions(self):
        for name, opset in [("f32", 1), ("f32", 11), ("f32", 22), ("f64", 11), ("f64", 22), ("f16", 1), ("f16", 22),
                            ("bf16", 22)]:
            for constant in (True, False):
                with self.subTest(type=name, opset=opset, constant=constant):
                    # ONNX Runtime refuses models of the operator sets before 7.
                    proto, feeds, y = self.layer(name, max(opset, 7), constant)
                    actual = run(ours(proto), feeds)[0]
                    self.assert_close(actual, y.astype(TYPES[name][1]), TOLERANCE[name])

    def test_one_and_three_axes(self):
        for extents, kernel in [((9,), (4,)), ((3, 4, 5), (2, 3, 2)), ((2, 3, 2, 3), (2, 2, 1, 2))]:
            with self.subTest(extents=extents):
                proto, feeds, y = self.layer("f32", 17, True, (1, 3, *extents), (3, 5, *kernel),
                                             strides=[2] * len(extents))
                self.assert_close(ours(proto).run(None, feeds)[0], y.astype(np.float32), TOLERANCE["f32"])

    def test_dynamic_shapes(self):
        for constant in (True, False):
            w, b = self.draw((6, 4, 3, 3)), self.draw(4)
            inputs = {"x": (TensorProto.FLOAT, ["n", 6, "h", "w"])}
            if not constant:
                inputs |= {"w": (TensorProto.FLOAT, [6, "m", "kh", "kw"]), "b": (TensorProto.FLOAT, ["m"])}
            proto = model([node("ConvTranspose", "x w b", "y", **ATTRIBUTES)], inputs, {"y": (TensorProto.FLOAT, None)},
                          {"w": w, "b": b} if constant else {})
            session = ours(proto)
            # More shapes than plans are kept, and the first once more.
            sizes = [(1 + i % 3, 4 + i, 9 - i % 5) for i in range(11)]
            for n, height, width in sizes + sizes[:2]:
                with self.subTest(constant=constant, size=(n, height, width)):
                    x = self.draw((n, 6, height, width))
                    feeds = {"x": x} | ({} if constant else {"w": w, "b": b})
                    self.assert_close(session.run(None, feeds)[0], reference(x, w, b, **ATTRIBUTES).astype(np.float32),
                                      TOLERANCE["f32"])

    def test_other_weights_with_each_run(self):
        proto = model([node("ConvTranspose", "x w", "y")],
                      {"x": (TensorProto.FLOAT, [1, 3, 5, 5]), "w": (TensorProto.FLOAT, [3, "m", "kh", "kw"])},
                      {"y": (TensorProto.FLOAT, None)})
        session = ours(proto)
        for m, kernel in [(4, (3, 3)), (2, (1, 4)), (4, (3, 3))]:
            x, w = self.draw((1, 3, 5, 5)), self.draw((3, m, *kernel))
            self.assert_close(session.run(None, {"x": x, "w": w})[0], reference(x, w, None).astype(np.float32), 1e-5)

    def test_constant_weights_with_a_bias_of_each_run(self):
        x, w, b = self.draw((1, 3, 5, 5)), self.draw((3, 4, 3, 3)), self.draw(4)
        proto = model([node("ConvTranspose", "x w b", "y")],
                      {"x": (TensorProto.FLOAT, [1, 3, 5, 5]), "b": (TensorProto.FLOAT, [4])},
                      {"y": (TensorProto.FLOAT, None)}, {"w": w})
        y, ran = nodes_run(proto, {"x": x, "b": b})
        self.assert_close(y[0], reference(x, w, b).astype(np.float32), 1e-5)
        self.assertEqual(left_to_others(ran), [])

    def test_a_constant_x(self):
        """Nothing computes it once if there is no kernel of the type, or no optimization."""
        for dtype, level in [("f16", None), ("f32", ort.GraphOptimizationLevel.ORT_DISABLE_ALL)]:
            with self.subTest(dtype=dtype):
                element, numpy_type = TYPES[dtype]
                x, w = self.draw((1, 3, 5, 5)).astype(numpy_type), self.draw((3, 4, 3, 3)).astype(numpy_type)
                bias = self.draw(4).astype(numpy_type)
                proto = model([node("ConvTranspose", "x w b", "y")], {"b": (element, [4])}, {"y": (element, None)},
                              {"x": x, "w": w})
                y = ours(proto, level).run(None, {"b": bias})[0]
                self.assert_close(y.astype(np.float32), reference(x, w, bias).astype(np.float32), TOLERANCE[dtype])

    def test_same_bits_for_any_number_of_threads(self):
        proto, feeds, _ = self.layer("f32", 17, True, (1, 16, 24, 24), (16, 16, 4, 4), strides=[2, 2])
        one = ours(proto, session_threads=1).run(None, feeds)[0]
        for options in [{"session_threads": 2}, {"session_threads": 2, "threads": 5}, {"session_threads": 1, "threads": 3}, {}]:
            with self.subTest(**options):
                np.testing.assert_array_equal(ours(proto, **options).run(None, feeds)[0], one)

    def test_one_session_in_many_threads(self):
        w = self.draw((8, 8, 3, 3))
        proto = model([node("ConvTranspose", "x w", "y")], {"x": (TensorProto.FLOAT, [1, 8, "h", "h"])},
                      {"y": (TensorProto.FLOAT, None)}, {"w": w})
        session = ours(proto)
        inputs = [self.draw((1, 8, 3 + i, 3 + i)) for i in range(12)]
        wanted = [reference(x, w, None).astype(np.float32) for x in inputs]
        failures = []

        def work(first):
            try:
                for i in list(range(first, 12)) + list(range(first)):
                    y = session.run(None, {"x": inputs[i]})[0]
                    np.testing.assert_allclose(y, wanted[i], rtol=0, atol=1e-4)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(3 * i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_in_a_subgraph(self):
        w = self.draw((3, 2, 3, 3))
        taken = [node("ConvTranspose", "x w", "up"), node("Relu", "up", "then_y")]
        left = [node("ConvTranspose", "x w", "else_y")]
        branches = [helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(y, TensorProto.FLOAT, [1, 2, 7, 7])])
                    for nodes, name, y in [(taken, "then", "then_y"), (left, "else", "else_y")]]
        proto = model([helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])],
                      {"c": (TensorProto.BOOL, []), "x": (TensorProto.FLOAT, [1, 3, 5, 5])}, {"y": (TensorProto.FLOAT, None)},
                      {"w": w})
        x = self.draw((1, 3, 5, 5))
        session, y = ours(proto), reference(x, w, None).astype(np.float32)
        self.assert_close(session.run(None, {"c": np.array(True), "x": x})[0], np.maximum(y, 0), 1e-5)
        self.assert_close(session.run(None, {"c": np.array(False), "x": x})[0], y, 1e-5)

    def test_a_layer_that_nothing_reads(self):
        x, w = self.draw((1, 3, 5, 5)), self.draw((3, 2, 3, 3))
        inputs = {"x": (TensorProto.FLOAT, ["n", 3, "h", "w"])}
        unread, copy = node("ConvTranspose", "x w", "up"), node("Neg", "x", "y")
        for nodes in ([unread, copy], [unread, node("Relu", "up", "positive"), copy]):
            session = ours(model(nodes, inputs, {"y": (TensorProto.FLOAT, None)}, {"w": w}))
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], -x)

    def test_as_the_cpu_provider(self):
        for group, auto_pad in [(1, "NOTSET"), (2, "SAME_UPPER"), (3, "SAME_LOWER"), (6, "VALID")]:
            with self.subTest(group=group, auto_pad=auto_pad):
                x, w = self.draw((2, 6, 6, 5)), self.draw((6, 2, 3, 4))
                proto = model([node("ConvTranspose", "x w", "y", strides=[3, 2], group=group, auto_pad=auto_pad)],
                              {"x": (TensorProto.FLOAT, x.shape)}, {"y": (TensorProto.FLOAT, None)}, {"w": w})
                self.assert_close(ours(proto).run(None, {"x": x})[0], plain(proto).run(None, {"x": x})[0], 1e-5)

    def test_infinite_and_subnormal_numbers(self):
        x, w = self.draw((1, 2, 4, 4)), self.draw((2, 2, 2, 2))
        x[0, 0, 1, 2], x[0, 1, 3, 3], x[0, 0, 0, 0] = np.inf, np.nan, 1e-40
        proto = model([node("ConvTranspose", "x w", "y", strides=[2, 2])], {"x": (TensorProto.FLOAT, x.shape)},
                      {"y": (TensorProto.FLOAT, None)}, {"w": w})
        y = ours(proto).run(None, {"x": x})[0]
        with np.errstate(invalid="ignore"):
            expected_y = reference(x, w, None, strides=[2, 2]).astype(np.float32)
        np.testing.assert_allclose(y, expected_y, rtol=1e-5, atol=1e-5)


if __name__ == "__main__":
    unittest.main()
