"""Nodes that are computed with a layer, and those that must not be."""
import unittest

import numpy as np
import onnxruntime as ort
from onnx import TensorProto
from support import TYPES, TestCase, left_to_others, model, node, nodes_run, ours, plain, setUpModule  # noqa: F401

X, W, Y = (2, 6, 5, 7), (6, 4, 3, 3), (2, 4, 11, 15)
FLOAT = TensorProto.FLOAT
# As few of ONNX Runtime's own fusions as possible.
BARE = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
NORM = {"gamma": 4, "beta": 4, "mean": 4, "variance": 4}


class Fusing(TestCase):
    def up(self, group=1, b=False):
        return node("ConvTranspose", "x w b" if b else "x w", "c", strides=[2, 2], group=group)

    def norm(self, y="d", **attributes):
        return node("BatchNormalization", "c gamma beta mean variance", y, **attributes)

    def norm_constants(self, channels=4, dtype=np.float32):
        values = self.rng.uniform(0.5, 2, (4, channels)).astype(dtype)
        return dict(zip(NORM, values)) | {"beta": self.draw(channels, dtype), "mean": self.draw(channels, dtype)}

    def check(self, nodes, left, constants=None, inputs=None, outputs=None, element="f32", level=BARE, tolerance=1e-5,
              **options):
        """Runs the nodes with x and constant w. `left` are the operators that other providers must have run."""
        onnx_type, dtype = TYPES[element]
        constants = {"w": self.draw(W, dtype)} | (constants or {})
        types = {"x": (onnx_type, X)} | {name: (onnx_type, shape) for name, shape in (inputs or {}).items()}
        proto = model(nodes, types, {"y": (onnx_type, None)} | (outputs or {}), constants)
        feeds = {name: self.draw([n if isinstance(n, int) else 2 for n in shape], dtype) for name, (_, shape) in types.items()}
        y, ran = nodes_run(proto, feeds, level, **options)
        self.assertEqual(left_to_others(ran), sorted(left))
        if element == "f32":
            for actual, wanted in zip(y, plain(proto, level).run(None, feeds)):
                self.assert_close(actual, wanted, tolerance)
        return proto, feeds, y

    def test_activations(self):
        bounds = {"low": np.float32(-0.5), "high": np.float32(0.75)}
        for op, inputs, constants, attributes in [
                ("Relu", "c", {}, {}), ("LeakyRelu", "c", {}, {"alpha": 0.2}), ("LeakyRelu", "c", {}, {}),
                ("Clip", "c low high", bounds, {}), ("Clip", "c", {}, {}), ("Sigmoid", "c", {}, {}), ("Tanh", "c", {}, {}),
                ("PRelu", "c slope", {"slope": np.float32(0.3)}, {}), ("PRelu", "c slope", {"slope": np.float32([[[0.3]]])}, {})]:
            with self.subTest(op=op, inputs=inputs):
                nodes = [self.up(), node(op, inputs, "y", **attributes)]
                if "low" in inputs:
                    self.check(nodes, [], constants)
                    nodes[1] = node(op, "c  high", "y")
                    nodes[1].input[:] = ["c", "", "high"]
                    self.check(nodes, [], {"high": bounds["high"]})
                else:
                    self.check(nodes, [], constants)

    def test_a_clip_without_bounds_is_one_to_finite_numbers(self):
        for element, greatest in [("f32", np.finfo(np.float32).max), ("f16", np.finfo(np.float16).max)]:
            onnx_type, dtype = TYPES[element]
            for inputs, low, high in [("c", -greatest, greatest), ("c zero", 0, greatest), ("c  zero", -greatest, 0)]:
                with self.subTest(element=element, inputs=inputs):
                    proto = model([node("ConvTranspose", "x w", "c"), node("Clip", "c", "y")], {"x": (onnx_type, (1, 1, 4))},
                                  {"y": (onnx_type, None)}, {"w": np.ones((1, 1, 1), dtype), "zero": dtype(0)})
                    proto.graph.node[1].input[:] = inputs.split(" ")
                    x = np.array([[[np.inf, -np.inf, np.nan, 3]]], dtype)
                    y, ran = nodes_run(proto, {"x": x}, BARE)
                    self.assertEqual(left_to_others(ran), [])
                    np.testing.assert_array_equal(y[0], np.clip(x, dtype(low), dtype(high)))

    def test_activations_of_other_types(self):
        for element, tolerance in [("f16", 2e-3), ("f64", 1e-7)]:
            for op, function in [("Relu", lambda c: np.maximum(c, 0)), ("Tanh", np.tanh)]:
                with self.subTest(element=element, op=op):
                    proto, feeds, y = self.check([self.up(), node(op, "c", "y")], [], element=element)
                    bare = model([node("ConvTranspose", "x w", "y", strides=[2, 2])], {"x": (TYPES[element][0], X)},
                                 {"y": (TYPES[element][0], None)}, {"w": self.weights_of(proto)})
                    wanted = function(ours(bare).run(None, feeds)[0].astype(np.float64)).astype(TYPES[element][1])
                    self.assert_close(y[0], wanted, tolerance)

    def weights_of(self, proto):
        from onnx import numpy_helper
        return numpy_helper.to_array(proto.graph.initializer[0])

    def test_an_infinite_slope(self):
        """The library takes none, so the activation stays a node of its own."""
        proto = model([self.up(), node("LeakyRelu", "c", "y", alpha=np.inf)], {"x": (FLOAT, X)}, {"y": (FLOAT, None)},
                      {"w": self.draw(W)})
        feeds = {"x": self.draw(X)}
        y, ran = nodes_run(proto, feeds)
        self.assertEqual(left_to_others(ran), ["LeakyRelu"])
        np.testing.assert_allclose(y[0], plain(proto).run(None, feeds)[0], 1e-4, 1e-4)

    def test_batch_normalization(self):
        for group, bias in [(1, False), (1, True), (2, True), (3, False)]:
            with self.subTest(group=group, bias=bias):
                constants = self.norm_constants(4 * group)
                if bias:
                    constants["b"] = self.draw(4 * group)
                self.check([self.up(group, bias), self.norm(epsilon=0.01), node("Relu", "d", "y")], [], constants)

    def test_batch_normalization_of_f64(self):
        proto, feeds, y = self.check([self.up(), self.norm("y")], [], self.norm_constants(dtype=np.float64), element="f64")
        from onnx import numpy_helper
        c = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
        bare = model([node("ConvTranspose", "x w", "y", strides=[2, 2])], {"x": (TensorProto.DOUBLE, X)},
                     {"y": (TensorProto.DOUBLE, None)}, {"w": c["w"]})
        per_channel = {name: c[name].reshape(1, 4, 1, 1) for name in NORM}
        wanted = (ours(bare).run(None, feeds)[0] - per_channel["mean"]) / np.sqrt(per_channel["variance"] + np.float32(1e-5))
        self.assert_close(y[0], wanted * per_channel["gamma"] + per_channel["beta"], 1e-12)

    def test_residual(self):
        for nodes in ([self.up(), node("Add", "c r", "y")], [self.up(), node("Add", "r c", "d"), node("Relu", "d", "y")]):
            self.check(nodes, [], inputs={"r": Y})
        with self.subTest("all three"):
            self.check([self.up(), self.norm(), node("Add", "d r", "e"), node("Sigmoid", "e", "y")], [], self.norm_constants(),
                       {"r": Y})

    def test_residual_of_a_dynamic_batch(self):
        nodes = [self.up(), node("Add", "c r", "y")]
        proto = model(nodes, {"x": (FLOAT, ["n", *X[1:]]), "r": (FLOAT, ["n", *Y[1:]])}, {"y": (FLOAT, None)},
                      {"w": self.draw(W)})
        for n in (1, 3):
            feeds = {"x": self.draw((n, *X[1:])), "r": self.draw((n, *Y[1:]))}
            y, ran = nodes_run(proto, feeds)
            self.assertEqual(left_to_others(ran), [])
            self.assert_close(y[0], plain(proto).run(None, feeds)[0], 1e-5)

    def test_two_layers_added(self):
        nodes = [self.up(), node("ConvTranspose", "x v", "d", strides=[2, 2]), node("Add", "c d", "e"), node("Relu", "e", "y")]
        self.check(nodes, [], {"v": self.draw(W)})

    def test_chain_of_layers(self):
        """One layer's output is x of the next, and a residual."""
        nodes = [node("ConvTranspose", "x v", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "a1"),
                 node("ConvTranspose", "a1 u", "b", pads=[1, 1, 1, 1]), node("Add", "b a1", "b1"), node("Relu", "b1", "y")]
        self.check(nodes, [], {"v": self.draw((6, 6, 3, 3)), "u": self.draw((6, 6, 3, 3)), "w": self.draw(1)})

    def test_what_is_not_fused(self):
        z = {"z": (FLOAT, None)}
        relu, again = node("Relu", "c", "y"), node("Relu", "c", "z")
        high = {"high": np.float32(-1), "low": np.float32(1)}
        cases = {
            "y is a graph output": ([self.up(), node("Relu", "c", "y")], ["Relu"], {}, {}, {"c": (FLOAT, None)}),
            "two readers": ([self.up(), node("Tanh", "c", "y"), again], ["Relu", "Tanh"], {}, {}, z),
            "a residual that is broadcast": ([self.up(), node("Add", "c r", "y")], ["Add"], {}, {"r": (1, 4, 1, 1)}, {}),
            "a constant residual": ([self.up(), node("Add", "c r", "y")], ["Add"], {"r": self.draw(Y)}, {}, {}),
            "y twice": ([self.up(), node("Add", "c c", "y")], ["Add"], {}, {}, {}),
            "a second residual": ([self.up(), node("Add", "c r", "d"), node("Add", "d s", "y")], ["Add"], {}, {"r": Y, "s": Y},
                                  {}),
            "an activation, then a residual": ([self.up(), node("Relu", "c", "d"), node("Add", "d r", "y")], ["Add"], {},
                                               {"r": Y}, {}),
            "slopes for each channel": ([self.up(), node("PRelu", "c s", "y")], ["PRelu"], {"s": self.draw((4, 1, 1))}, {}, {}),
            "an empty range": ([self.up(), node("Clip", "c low high", "y")], ["Clip"], high, {}, {}),
            "a normalization behind a residual": ([self.up(), node("Add", "c r", "e"),
                                                   node("BatchNormalization", "e gamma beta mean variance", "y")],
                                                  ["BatchNormalization"], self.norm_constants(), {"r": Y}, {}),
            "a normalization of each run": ([self.up(), self.norm("y")], ["BatchNormalization"],
                                            {n: v for n, v in self.norm_constants().items() if n != "gamma"}, {"gamma": (4,)},
                                            {}),
            "a hard sigmoid": ([self.up(), node("HardSigmoid", "c", "y", alpha=0.3, beta=0.4)], ["HardSigmoid"], {}, {}, {}),
            "another operator": ([self.up(), node("Softmax", "c", "y")], ["Softmax"], {}, {}, {}),
        }
        for what, (nodes, left, constants, inputs, outputs) in cases.items():
            with self.subTest(what):
                self.check(nodes, left, constants, inputs, outputs)
        with self.subTest("switched off"):
            self.check([self.up(), relu], ["Relu"], fuse=False)

    def test_read_in_a_subgraph(self):
        """A branch of If reads y, so that y must exist."""
        from onnx import helper
        branches = [helper.make_graph([node(op, "c", f"{op}_y")], op, [], [helper.make_tensor_value_info(f"{op}_y", FLOAT, Y)])
                    for op in ("Relu", "Neg")]
        choice = helper.make_node("If", ["p"], ["y"], then_branch=branches[0], else_branch=branches[1])
        proto = model([self.up(), choice], {"x": (FLOAT, X), "p": (TensorProto.BOOL, [])}, {"y": (FLOAT, None)},
                      {"w": self.draw(W)})
        for p in (True, False):
            feeds = {"x": self.draw(X), "p": np.array(p)}
            self.assert_close(ours(proto).run(None, feeds)[0], plain(proto).run(None, feeds)[0], 1e-5)

    def test_as_onnx_runtime_optimizes(self):
        nodes = [self.up(b=True), self.norm(), node("Add", "d r", "e"), node("LeakyRelu", "e", "y", alpha=0.1)]
        self.check(nodes, [], self.norm_constants() | {"b": self.draw(4)}, {"r": Y},
                   level=ort.GraphOptimizationLevel.ORT_ENABLE_ALL)


if __name__ == "__main__":
    unittest.main()
