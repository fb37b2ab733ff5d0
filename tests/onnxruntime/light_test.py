"""Layers of f32 with constant weights of fewer bytes, and those that quantize x with each run."""
import re
import subprocess
import sys
import unittest

import convtranspose.onnxruntime as ct
import ml_dtypes
import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto
from support import TestCase, left_to_others, model, node, nodes_run, ours, plain, setUpModule  # noqa: F401

FLOAT, INT8 = TensorProto.FLOAT, np.int8
X, W = (2, 6, 5, 7), (6, 4, 3, 3)
BARE = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
DYNAMIC = [node("DynamicQuantizeLinear", "x", "xq xs xz"), node("DequantizeLinear", "xq xs xz", "xf")]


def printed(proto, **options):
    """The text that the provider prints while a session of the model is made in a process of its own."""
    code = "import sys, convtranspose.onnxruntime as ct\nct.session(sys.stdin.buffer.read(), explain=1, **eval(sys.argv[1]))"
    result = subprocess.run([sys.executable, "-B", "-c", code, repr(options)], input=proto.SerializeToString(),
                            capture_output=True, timeout=60, check=True)
    return result.stderr.decode()


def explained(proto, **options):
    """The lines of it about weights."""
    return "".join(re.findall(f"{ct.PROVIDER}: (ConvTranspose .*: .*\n)", printed(proto, **options)))


def rounded_to_s8(w, group=1):
    """Weights and scales as the option weights=s8 makes them, by numpy."""
    of_groups = w.reshape(group, w.shape[0] // group, w.shape[1], -1)
    most = np.abs(of_groups).max((1, 3))
    scales = np.where(most > 0, most / np.float32(127), np.float32(1))
    return np.rint(of_groups / scales[:, None, :, None]).astype(np.int8).reshape(w.shape), scales.reshape(-1)


def times_scales(w, scales, group):
    of_groups = w.reshape(group, w.shape[0] // group, w.shape[1], -1).astype(np.float32)
    return (of_groups * scales.reshape(group, 1, w.shape[1], 1)).reshape(w.shape)


def dynamically_quantized(x):
    """DynamicQuantizeLinear and DequantizeLinear, by numpy."""
    least, most = min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (most - least) / np.float32(255)
    zero = np.rint(np.clip(-least / scale, 0, 255))
    return (np.clip(np.rint(x / scale) + zero, 0, 255) - zero).astype(np.float32) * scale, scale


class Models(TestCase):
    def quantized(self, dtype=INT8, per_channel=True, zero=True, w_shape=W):
        """The constants of a DequantizeLinear of weights."""
        count = w_shape[1] if per_channel else None
        constants = {"w": self.integers(w_shape, dtype), "ws": np.float32(self.rng.uniform(0.001, 0.02, count))}
        return constants | ({"wz": np.array(self.integers(count or (), dtype))} if zero else {})

    def layer(self, constants, x_shape=X, front=(), x="x", **attributes):
        """DequantizeLinear of weights, then ConvTranspose."""
        weights = " ".join(name for name in ("w", "ws", "wz") if name in constants)
        return model([*front, node("DequantizeLinear", weights, "wf", axis=1),
                      node("ConvTranspose", f"{x} wf", "y", name="up", **{"strides": [2] * (len(x_shape) - 2)} | attributes)],
                     {"x": (FLOAT, x_shape)}, {"y": (FLOAT, None)}, constants, 21)

    def floats(self, w, x_shape=X, **attributes):
        return model([node("ConvTranspose", "x w", "y", name="up", **{"strides": [2, 2]} | attributes)], {"x": (FLOAT, x_shape)},
                     {"y": (FLOAT, None)}, {"w": w})

    def check(self, proto, left=(), tolerance=1e-5, wanted=None, level=None, x_shape=X, **options):
        feeds = {"x": self.draw(x_shape)}
        y, ran = nodes_run(proto, feeds, level, **options)
        self.assertEqual(left_to_others(ran), list(left))
        self.assert_close(y[0], plain(wanted or proto).run(None, feeds)[0], tolerance)
        return feeds["x"], y[0]


class Light(Models):
    def test_dequantized_weights(self):
        for dtype in (np.uint8, INT8):
            for per_channel, zero, group in [(False, False, 1), (False, True, 2), (True, False, 3), (True, True, 2)]:
                with self.subTest(dtype=dtype.__name__, per_channel=per_channel, zero=zero, group=group):
                    proto = self.layer(self.quantized(dtype, per_channel, zero), group=group)
                    self.check(proto)
                    how = "a scale for each output channel" if per_channel else "one scale"
                    name = "s8" if dtype is INT8 else "u8"
                    self.assertIn(f"ConvTranspose 'up': w is {name}, with {how}\n", explained(proto))

    def test_one_and_three_axes(self):
        for extents, kernel in [((9,), (4,)), ((3, 4, 5), (2, 3, 2))]:
            x_shape, w_shape = (1, 6, *extents), (6, 4, *kernel)
            for front, x in [((), "x"), (DYNAMIC, "xf")]:
                with self.subTest(extents=extents, x=x):
                    self.check(self.layer(self.quantized(w_shape=w_shape), x_shape, front, x), x_shape=x_shape)

    def test_weights_that_a_cast_makes(self):
        for dtype in (np.float16, ml_dtypes.bfloat16):
            for level in (BARE, None): # ONNX Runtime computes the Cast itself if it may optimize
                with self.subTest(dtype=np.dtype(dtype).name, level=level):
                    w = self.draw(W, dtype)
                    w[0, 0, 0, 0] = 1 if dtype is np.float16 else 2**20 # which f16 does not hold
                    proto = model([node("Cast", "w", "wf", to=FLOAT), node("Cast", "b", "bf", to=FLOAT),
                                   node("ConvTranspose", "x wf bf", "y", name="up")],
                                  {"x": (FLOAT, X)}, {"y": (FLOAT, None)}, {"w": w, "b": self.draw(4, dtype)})
                    self.check(proto, level=level)
                    name = "f16" if dtype is np.float16 else "bf16"
                    self.assertIn(f"w is {name}, which holds its f32 exactly\n", explained(proto))

    def test_plans_for_several_shapes(self):
        for front, x in [((), "x"), (DYNAMIC, "xf")]:
            proto = self.layer(self.quantized(), ("n", 6, "h", "w"), front, x)
            session, other = ours(proto), plain(proto)
            for shape in [(1, 6, 3, 4), (2, 6, 5, 7), (3, 6, 2, 9), (1, 6, 3, 4)]:
                feeds = {"x": self.draw(shape)}
                self.assert_close(session.run(None, feeds)[0], other.run(None, feeds)[0], 1e-5)

    def test_weights_of_two_layers(self):
        constants = self.quantized()
        proto = model([node("DequantizeLinear", "w ws wz", "wf"), node("ConvTranspose", "x wf", "y", name="a"),
                       node("ConvTranspose", "x wf", "z", name="b", strides=[2, 1])],
                      {"x": (FLOAT, X)}, {"y": (FLOAT, None), "z": (FLOAT, None)}, constants)
        self.check(proto)
        text = explained(proto)
        for name in "ab":
            self.assertIn(f"ConvTranspose '{name}': w is s8", text)

    def test_what_follows(self):
        """Activations are computed with the layer. The weights that a batch normalization becomes part of are f32."""
        constants = self.quantized()
        proto = self.layer(constants)
        proto.graph.node[-1].output[0] = "c"
        relu = onnx.ModelProto.FromString(proto.SerializeToString())
        relu.graph.node.append(node("Relu", "c", "y"))
        self.check(relu)
        self.assertIn("w is s8", explained(relu))
        norm = onnx.ModelProto.FromString(proto.SerializeToString())
        norm.graph.node.append(node("BatchNormalization", "c g g g g", "y", name="norm"))
        norm.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 2, 3, 4]), "g"))
        self.check(norm, level=BARE)
        self.assertIn("w is dequantized: BatchNormalization 'norm' is part of it\n", explained(norm))
        # Those are rounded only if the option says so.
        text = explained(norm, weights="s8", dynamic_quantization=1)
        self.assertRegex(text, "norm' is part of it\n.*w is s8, with a scale .*\n.*x is quantized to u8 by each run\n")

    def test_what_is_dequantized_all_the_same(self):
        """Scales of another axis, numbers that are no scales, and other types. So are weights beside a bias of each run."""
        along = self.quantized() | {"ws": self.rng.uniform(0.1, 1, 6).astype(np.float32), "wz": np.zeros(6, INT8)}
        negative = self.quantized() | {"ws": np.float32([1, 2, -1, 1])}
        wide = self.quantized(np.int16, zero=False)
        for constants, axis, reason in [(along, 0, "its weights have scales along axis 0"),
                                        (negative, 1, "a scale of its weights is -1"), (wide, 1, "it is not quantized to 8 bits")]:
            with self.subTest(reason=reason):
                proto = self.layer(constants)
                proto.graph.node[0].attribute[0].i = axis
                self.check(proto)
                self.assertIn(f"w is dequantized: {reason}", explained(proto))
        static = [node("QuantizeLinear", "x xs xz", "xq"), DYNAMIC[1]]
        constants = wide | {"xs": np.array(0.1, np.float32), "xz": np.array(7, np.uint8)}
        self.assertIn("computed in floats: its weights are quantized to INT16, not to 8 bits\n",
                      printed(self.layer(constants, front=static, x="xf")))
        proto = self.layer(self.quantized())
        proto.graph.node[-1].input.append("b")
        proto.graph.input.append(onnx.helper.make_tensor_value_info("b", FLOAT, [4]))
        feeds = {"x": self.draw(X), "b": self.draw(4)}
        self.assert_close(ours(proto).run(None, feeds)[0], plain(proto).run(None, feeds)[0], 1e-5)
        self.assertNotIn("w is s8", explained(proto))

    def test_a_quantized_bias(self):
        proto = self.layer(self.quantized(), front=[node("DequantizeLinear", "b bs", "bf")])
        proto.graph.node[-1].input.append("bf")
        for name, value in [("b", self.integers(4, np.int32) // 2**16), ("bs", np.float32(0.001))]:
            proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
        self.check(proto)
        self.assertIn("w is s8", explained(proto))


class Dynamic(Models):
    def exact(self, x, w, **attributes):
        quantized, _ = dynamically_quantized(x)
        return plain(self.floats(w, x.shape, **attributes)).run(None, {"x": quantized})[0]

    def test_dynamically_quantized(self):
        for dtype in (np.uint8, INT8):
            for per_channel, group in [(False, 1), (True, 2), (True, 3)]:
                with self.subTest(dtype=dtype.__name__, per_channel=per_channel, group=group):
                    constants = self.quantized(dtype, per_channel)
                    x, y = self.check(self.layer(constants, front=DYNAMIC, x="xf", group=group))
                    w = (constants["w"].astype(np.int32) - np.reshape(constants["wz"].astype(np.int32), (1, -1, 1, 1))).astype(
                        np.float32) * np.reshape(constants["ws"], (1, -1, 1, 1))
                    self.assert_close(y, self.exact(x, w, group=group), 1e-5)

    def test_what_is_not_taken(self):
        """Others read what the DynamicQuantizeLinear makes, the DequantizeLinear reads something else, or floats are faster."""
        both = ["DequantizeLinear", "DynamicQuantizeLinear"]
        for what in ("another reader", "an output", "no zero point", "another scale", "axis 0", "float weights"):
            with self.subTest(what=what):
                constants, left = self.quantized(), both
                proto = self.layer(constants, front=DYNAMIC, x="xf")
                graph = proto.graph
                if what == "another reader":
                    graph.node.append(node("Neg", "xs", "z"))
                    graph.output.append(onnx.helper.make_tensor_value_info("z", FLOAT, []))
                    left = [*both, "Neg"]
                elif what == "an output":
                    graph.output.append(onnx.helper.make_tensor_value_info("xs", FLOAT, []))
                elif what == "no zero point":
                    del graph.node[1].input[2]
                elif what == "another scale":
                    graph.node[1].input[1] = "s"
                    graph.initializer.append(onnx.numpy_helper.from_array(np.float32(0.5), "s"))
                elif what == "axis 0":
                    proto = self.layer(constants | {"ws": np.full(6, 0.01, np.float32), "wz": np.zeros(6, INT8)}, front=DYNAMIC,
                                       x="xf")
                    proto.graph.node[2].attribute[0].i = 0
                else:
                    proto = model([*DYNAMIC, node("ConvTranspose", "xf w", "y")], {"x": (FLOAT, X)}, {"y": (FLOAT, None)},
                                  {"w": self.draw(W)})
                self.check(proto, left)

    def test_what_follows_stays(self):
        """A batch normalization is not folded: that would make weights f32."""
        proto = self.layer(self.quantized(), front=DYNAMIC, x="xf")
        proto.graph.node[-1].output[0] = "c"
        proto.graph.node.extend([node("BatchNormalization", "c g g g g", "y")])
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.float32([1, 2, 3, 4]), "g"))
        self.check(proto, ["BatchNormalization"], level=BARE)


class Options(Models):
    def test_weights_of_16_bits(self):
        for name, dtype in [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)]:
            with self.subTest(weights=name):
                w = self.draw(W)
                proto = self.floats(w)
                self.check(proto, wanted=self.floats(w.astype(dtype).astype(np.float32)), weights=name)
                self.assertIn(f"ConvTranspose 'up': w is {name}\n", explained(proto, weights=name))
        self.assertNotIn("w is", explained(proto))
        self.assertNotIn("w is", explained(proto, weights="as_given"))

    def test_weights_of_s8(self):
        for group in (1, 2, 3):
            with self.subTest(group=group):
                w = self.draw(W)
                w[:, 2] = 0
                s8, scales = rounded_to_s8(w, group)
                wanted = self.floats(times_scales(s8, scales, group), group=group)
                x, y = self.check(self.floats(w, group=group), wanted=wanted, weights="s8")
                # The bound of docs/onnxruntime.md: half a scale for each |x|.
                ones = np.ones_like(w) * np.tile(scales.reshape(group, 1, -1, 1, 1), (1, 6 // group, 1, 3, 3)).reshape(w.shape) / 2
                bound = plain(self.floats(ones, group=group)).run(None, {"x": np.abs(x)})[0]
                off = np.abs(y - plain(self.floats(w, group=group)).run(None, {"x": x})[0])
                self.assertTrue((off <= bound * 1.001 + 1e-5).all())

    def test_dynamic_quantization(self):
        w = self.draw(W)
        s8, scales = rounded_to_s8(w)
        light = times_scales(s8, scales, 1)
        feeds = {"x": self.draw(X)}
        y = ours(self.floats(w), weights="s8", dynamic_quantization=True).run(None, feeds)[0]
        quantized, scale = dynamically_quantized(feeds["x"])
        self.assert_close(y, plain(self.floats(light)).run(None, {"x": quantized})[0], 1e-5)
        bound = plain(self.floats(np.abs(light))).run(None, {"x": np.full(X, scale / 2)})[0]
        off = np.abs(y - plain(self.floats(light)).run(None, feeds)[0])
        self.assertTrue((off <= bound * 1.001 + 1e-5).all())
        # Weights that the model gives as s8, too; floats stay.
        proto = self.layer(self.quantized())
        self.assertIn("x is quantized to u8 by each run\n", explained(proto, dynamic_quantization=1))
        self.assertNotIn("x is", explained(self.floats(w), dynamic_quantization=1))
        proto = self.floats(self.draw((6, 1, 4, 4)), strides=[5, 5])
        np.testing.assert_array_equal(ours(proto, weights="s8", dynamic_quantization=1).run(None, feeds)[0],
                                      ours(proto, weights="s8").run(None, feeds)[0])
        self.assertIn("x is not quantized: with 1 output channels in a group and a stride of 5 floats are faster\n",
                      explained(proto, weights="s8", dynamic_quantization=1))

    def test_numbers_that_other_types_do_not_hold(self):
        w = self.draw(W)
        for value, weights, reason in [(1e5, "f16", "some of it is too large for f16"), (3.4028e38, "bf16", "too large for bf16"),
                                       (np.inf, "s8", "some of it is infinite or NaN"), (np.nan, "s8", "infinite or NaN")]:
            w[0, 0, 0, 0] = value
            self.assertRegex(explained(self.floats(w), weights=weights), f"w is f32: .*{reason}\n")
        w[0, 0, 0, 0] = np.inf
        self.assertIn("w is f16\n", explained(self.floats(w), weights="f16"))
        w[:] = 1e-44 # whose scales would be subnormal
        np.testing.assert_array_equal(ours(self.floats(w), weights="s8").run(None, {"x": np.ones(X, np.float32)})[0], 0)

    def test_a_group_that_divides_nothing(self):
        """Shapes that are known late make a run fail, and no process."""
        session = ours(self.floats(self.draw(W), ("n", "c", "h", "w"), group=4), weights="s8")
        with self.assertRaises(Exception) as caught:
            session.run(None, {"x": self.draw(X)})
        self.assertIn("group", str(caught.exception))

    def test_as_onnx_files_have_them(self):
        """All options on a model with f16 layers, whose weights stay."""
        proto = model([node("ConvTranspose", "x w", "y")], {"x": (TensorProto.FLOAT16, X)}, {"y": (TensorProto.FLOAT16, None)},
                      {"w": self.draw(W, np.float16)})
        feeds = {"x": self.draw(X, np.float16)}
        np.testing.assert_array_equal(ours(proto, weights="s8", dynamic_quantization=1).run(None, feeds)[0],
                                      ours(proto).run(None, feeds)[0])


if __name__ == "__main__":
    unittest.main()
