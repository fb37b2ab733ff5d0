"""Layers of 8-bit integers: each result must be that of exact sums, and within one unit of what the CPU provider computes."""
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import convtranspose
import ml_dtypes
import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper
from support import TYPES, TestCase, left_to_others, model, node, nodes_run, ours, plain, setUpModule  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent.parent / "conformance"))
import expected

X_SHAPE, W_SHAPE, CHANNELS = (2, 6, 5, 7), (6, 4, 3, 3), 4


class Chain(TestCase):
    def draw_layer(self, x_type, w_type, y_type, per_channel, bias, group=1):
        """The tensors and the quantization of a layer: a conformance case, with its values."""
        x, w = self.integers(X_SHAPE, TYPES[x_type][1]), self.integers(W_SHAPE, TYPES[w_type][1])
        scales = CHANNELS if per_channel else 1
        limits = {t: np.iinfo(TYPES[t][1]) for t in (x_type, w_type, y_type)}

        def zero(t, size=None):
            return self.rng.integers(limits[t].min, limits[t].max, size, endpoint=True)

        case = {"dtype": x_type, "x_shape": list(X_SHAPE), "w_shape": list(W_SHAPE), "bias": bias,
                "attrs": {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": group},
                "quant": {"w": w_type, "y": y_type, "x_scale": 0.013, "x_zero_point": int(zero(x_type)),
                          "w_scale": self.rng.uniform(0.001, 0.02, scales).astype(np.float32),
                          "w_zero_point": zero(w_type, scales), "y_scale": 0.7, "y_zero_point": int(zero(y_type))}}
        b = self.rng.integers(-9999, 9999, CHANNELS * group).astype(np.int32) if bias else None
        case["b_shape"] = None if b is None else list(b.shape)
        return case, x, w, b

    def chain(self, case, w, b, between=(), quantizes=True, y="y"):
        """The nodes and constants of DequantizeLinear -> ConvTranspose -> between -> QuantizeLinear."""
        q = case["quant"]
        per_channel = len(q["w_scale"]) > 1
        w_scale = q["w_scale"] if per_channel else q["w_scale"][0]
        w_zero = q["w_zero_point"].astype(w.dtype)
        constants = {"w": w, "xs": np.float32(q["x_scale"]), "xz": TYPES[case["dtype"]][1](q["x_zero_point"]),
                     "ws": w_scale, "wz": w_zero if per_channel else w_zero[0], "ys": np.float32(q["y_scale"]),
                     "yz": TYPES[q["y"]][1](q["y_zero_point"])}
        nodes = [node("DequantizeLinear", "x xs xz", "xf"),
                 node("DequantizeLinear", "w ws wz", "wf", axis=1),
                 node("ConvTranspose", "xf wf bf" if b is not None else "xf wf", "c", **case["attrs"])]
        if b is not None:
            groups = case["attrs"]["group"] if per_channel else 1
            b_scale = np.float32(q["x_scale"]) * np.tile(q["w_scale"], groups)
            constants |= {"b": b, "bs": b_scale if per_channel else b_scale[0]}
            nodes.insert(0, node("DequantizeLinear", "b bs", "bf", axis=0))
        last = "c"
        for n in between:
            nodes.append(n)
            last = n.output[0]
        if quantizes:
            nodes.append(node("QuantizeLinear", f"{last} ys yz", y))
        return nodes, constants

    def exact(self, case, x, w, b):
        wide = {**case, "quant": {**case["quant"]}}
        if case["attrs"]["group"] > 1 and len(case["quant"]["w_scale"]) > 1:
            for name in ("w_scale", "w_zero_point"):
                wide["quant"][name] = np.tile(case["quant"][name], case["attrs"]["group"])
        return expected.quantized(wide, x.astype(np.int64), w.astype(np.int64), None if b is None else b.astype(np.int64),
                                  expected.geometry({**wide, "quant": {k: v.tolist() if isinstance(v, np.ndarray) else v
                                                                       for k, v in wide["quant"].items()}}))

    def inputs(self, case):
        return {"x": (TYPES[case["dtype"]][0], case["x_shape"])}

    def outputs(self, case):
        return {"y": (TYPES[case["quant"]["y"]][0], None)}


class Quantized(Chain):
    def test_types(self):
        for x_type in ("u8", "s8"):
            for w_type in ("u8", "s8"):
                for y_type in ("u8", "s8"):
                    for per_channel, bias, group in [(False, False, 1), (True, True, 1), (False, True, 2), (True, True, 3)]:
                        with self.subTest(x=x_type, w=w_type, y=y_type, per_channel=per_channel, bias=bias, group=group):
                            case, x, w, b = self.draw_layer(x_type, w_type, y_type, per_channel, bias, group)
                            proto = model(*self.graph(case, w, b))
                            y, ran = nodes_run(proto, {"x": x})
                            self.assertEqual(left_to_others(ran), [])
                            np.testing.assert_array_equal(y[0], self.exact(case, x, w, b))
                            off = y[0].astype(int) - plain(proto).run(None, {"x": x})[0]
                            self.assertLessEqual(np.abs(off).max(), 1)

    def graph(self, case, w, b, **options):
        nodes, constants = self.chain(case, w, b, **options)
        return nodes, self.inputs(case), self.outputs(case), constants

    def test_no_level_of_optimization_matters(self):
        case, x, w, b = self.draw_layer("u8", "s8", "u8", True, True)
        proto = model(*self.graph(case, w, b))
        for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
                      ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
            with self.subTest(level=level):
                y, ran = nodes_run(proto, {"x": x}, level)
                self.assertEqual(left_to_others(ran), [])
                np.testing.assert_array_equal(y[0], self.exact(case, x, w, b))

    def test_relu_and_clip_in_between(self):
        case, x, w, b = self.draw_layer("u8", "s8", "s8", True, True)
        case["quant"]["y_zero_point"] = -20
        y = self.exact(case, x, w, b)
        high = int(np.rint(np.float32(30) / np.float32(0.7))) - 20
        for op, low, top in [("Relu", -20, 127), ("Clip", -20, high)]:
            with self.subTest(op=op):
                between = [node(op, "c" if op == "Relu" else "c low high", "d")]
                nodes, inputs, outputs, constants = self.graph(case, w, b, between=between)
                proto = model(nodes, inputs, outputs, constants | {"low": np.float32(0), "high": np.float32(30)})
                actual, ran = nodes_run(proto, {"x": x})
                self.assertEqual(left_to_others(ran), [])
                np.testing.assert_array_equal(actual[0], np.clip(y, low, top))

    def test_weights_of_each_run(self):
        case, x, w, _ = self.draw_layer("s8", "u8", "u8", False, False)
        nodes, inputs, outputs, constants = self.graph(case, w, None)
        del constants["w"]
        proto = model(nodes, inputs | {"w": (TYPES["u8"][0], W_SHAPE)}, outputs, constants)
        y, ran = nodes_run(proto, {"x": x, "w": w})
        self.assertEqual(left_to_others(ran), [])
        np.testing.assert_array_equal(y[0], self.exact(case, x, w, None))

    def test_dynamic_shapes(self):
        case, x, w, b = self.draw_layer("u8", "s8", "u8", True, True)
        nodes, _, outputs, constants = self.graph(case, w, b)
        session = ours(model(nodes, {"x": (TYPES["u8"][0], ["n", 6, "h", "w"])}, outputs, constants))
        for shape in [(1, 6, 3, 4), (2, 6, 5, 7), (3, 6, 2, 9), (1, 6, 3, 4)]:
            x = self.integers(shape, np.uint8)
            case["x_shape"] = list(shape)
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], self.exact(case, x, w, b))

    def test_float_output(self):
        """Nothing quantizes y, or something that is not the layer's: y is f32, from exact sums."""
        for tail in ("none", "float bias", "LeakyRelu", "Add", "two readers", "16 bits"):
            with self.subTest(tail=tail):
                case, x, w, b = self.draw_layer("u8", "s8", "u8", True, True)
                nodes, constants = self.chain(case, w, b, quantizes=False)
                inputs, feeds, outputs, left = self.inputs(case), {"x": x}, {"y": (TensorProto.FLOAT, None)}, []
                if tail == "none":
                    nodes[-1].output[0] = "y"
                elif tail == "float bias":
                    nodes = [n for n in nodes if n.output[0] != "bf"]
                    nodes[-1].output[0] = "y"
                    constants = constants | {"bf": self.draw(CHANNELS)}
                elif tail == "LeakyRelu":
                    nodes += [node("LeakyRelu", "c", "d", alpha=0.25), node("QuantizeLinear", "d ys yz", "y")]
                    outputs, left = self.outputs(case), ["QuantizeLinear"]
                elif tail == "Add":
                    shape = [2, CHANNELS, 9, 13]
                    inputs, feeds = inputs | {"r": (TensorProto.FLOAT, shape)}, feeds | {"r": self.draw(shape)}
                    nodes += [node("Add", "c r", "d"), node("Relu", "d", "y")]
                elif tail == "two readers":
                    nodes += [node("QuantizeLinear", "c ys yz", "y"), node("Softmax", "c", "z")]
                    outputs, left = self.outputs(case) | {"z": (TensorProto.FLOAT, None)}, ["QuantizeLinear", "Softmax"]
                else:
                    nodes += [node("QuantizeLinear", "c ys yz16", "y")]
                    constants["yz16"] = np.uint16(1000)
                    outputs, left = {"y": (TensorProto.UINT16, None)}, ["QuantizeLinear"]
                proto = model(nodes, inputs, outputs, {n: v for n, v in constants.items()
                                                       if any(n in m.input for m in nodes)}, 21)
                y, ran = nodes_run(proto, feeds)
                self.assertEqual(left_to_others(ran), left)
                for actual, wanted in zip(y, plain(proto).run(None, feeds)):
                    if actual.dtype.kind == "f":
                        self.assert_close(actual, wanted, 1e-5)
                    else:
                        self.assertLessEqual(np.abs(actual.astype(int) - wanted).max(), 1)

    def test_dequantized_to_another_type(self):
        """A DequantizeLinear may make f16 by scales of f32. The layer is one of f16 then."""
        case, x, w, b = self.draw_layer("u8", "s8", "u8", True, True)
        nodes, constants = self.chain(case, w, b, quantizes=False, y="c")
        for n in nodes[:3]:
            n.attribute.append(helper.make_attribute("output_dtype", TensorProto.FLOAT16))
        del constants["ys"], constants["yz"]
        proto = model(nodes, self.inputs(case), {"c": (TensorProto.FLOAT16, None)}, constants, 23)
        y, ran = nodes_run(proto, {"x": x})
        self.assertEqual(left_to_others(ran), ["DequantizeLinear"] * 3)
        self.assert_close(y[0], plain(proto).run(None, {"x": x})[0], 2e-3)

    def test_a_bias_of_other_scales(self):
        """The bias is added to sums, so each of its scales must be theirs. Else y is f32."""
        case, x, w, b = self.draw_layer("u8", "s8", "u8", False, True)
        nodes, inputs, outputs, constants = self.graph(case, w, b)
        constants["bs"] = constants["bs"] * np.float32([1, 1, 1, 3])
        proto = model(nodes, inputs, outputs, constants)
        y, ran = nodes_run(proto, {"x": x})
        self.assertEqual(left_to_others(ran), ["QuantizeLinear"])
        off = y[0].astype(int) - plain(proto).run(None, {"x": x})[0]
        self.assertLessEqual(np.abs(off).max(), 1)

    def test_what_is_computed_in_floats(self):
        """A chain that breaks a rule is no layer of integers, and right all the same."""
        for what in ("scales of x of each run", "axis 0", "float weights of each run"):
            with self.subTest(what=what):
                case, x, w, b = self.draw_layer("u8", "s8", "u8", False, False)
                nodes, inputs, outputs, constants = self.graph(case, w, b)
                feeds = {"x": x}
                if what == "scales of x of each run":
                    del constants["xs"]
                    inputs, feeds = inputs | {"xs": (TensorProto.FLOAT, [])}, feeds | {"xs": np.array(0.02, np.float32)}
                elif what == "axis 0":
                    nodes[1].attribute[0].i = 0
                    constants |= {"ws": self.rng.uniform(0.001, 0.02, 6).astype(np.float32), "wz": np.zeros(6, np.int8)}
                else:
                    del nodes[1], constants["w"], constants["ws"], constants["wz"]
                    inputs, feeds = inputs | {"wf": (TensorProto.FLOAT, W_SHAPE)}, feeds | {"wf": self.draw(W_SHAPE)}
                proto = model(nodes, inputs, outputs, constants)
                y, ran = nodes_run(proto, feeds)
                self.assertEqual(left_to_others(ran), ["DequantizeLinear", "QuantizeLinear"])
                off = y[0].astype(int) - plain(proto).run(None, feeds)[0]
                self.assertLessEqual(np.abs(off).max(), 1)

    def test_groups_that_no_layer_has(self):
        """Scales are repeated for each group only if there are such groups."""
        for group in (0, -1, 7, 10**12):
            with self.subTest(group=group):
                case, _, w, b = self.draw_layer("u8", "s8", "u8", True, True)
                nodes, inputs, outputs, constants = self.graph(case, w, b)
                next(a for a in nodes[3].attribute if a.name == "group").i = group
                with self.assertRaisesRegex(Exception, "group"):
                    ours(model(nodes, inputs, outputs, constants))

    def test_no_output_channels(self):
        case, x, _, _ = self.draw_layer("u8", "s8", "u8", False, False)
        case["w_shape"] = [6, 0, 3, 3]
        nodes, inputs, outputs, constants = self.graph(case, np.zeros(case["w_shape"], np.int8), np.zeros(0, np.int32))
        constants |= {"ws": np.zeros(0, np.float32), "wz": np.zeros(0, np.int8)}
        y = ours(model(nodes, inputs, outputs, constants)).run(None, {"x": x})[0]
        self.assertEqual(y.shape, (2, 0, 9, 13))

    def test_a_constant_x(self):
        case, x, w, b = self.draw_layer("u8", "s8", "u8", True, True)
        nodes, _, outputs, constants = self.graph(case, w, b)
        nodes.append(node("Identity", "unused", "used"))
        proto = model(nodes, {"unused": (TensorProto.FLOAT, [1])}, {**outputs, "used": (TensorProto.FLOAT, None)},
                      {**constants, "x": x})
        np.testing.assert_array_equal(ours(proto).run(None, {"unused": np.zeros(1, np.float32)})[0],
                                      self.exact(case, x, w, b))

    def test_few_channels_and_a_large_stride(self):
        """Floats are faster where some phases have no tap. No ConvTranspose is left to other providers."""
        floats = ["DequantizeLinear", "QuantizeLinear"]
        for stride, kernel, dilation, left in [(4, 20, 1, []), (8, 20, 1, []), (5, 20, 1, []), (16, 20, 1, []), (5, 20, 3, []),
                                               (5, 4, 1, floats), (6, 20, 2, floats)]:
            with self.subTest(stride=stride, kernel=kernel, dilation=dilation):
                proto = model([node("DequantizeLinear", "x xs xz", "xf"), node("DequantizeLinear", "w ws", "wf"),
                               node("ConvTranspose", "xf wf", "c", strides=[stride], dilations=[dilation]),
                               node("QuantizeLinear", "c ys yz", "y")],
                              {"x": (TYPES["u8"][0], (1, 6, 9))}, {"y": (TYPES["u8"][0], None)},
                              {"w": self.integers((6, 1, kernel), np.int8), "ws": np.float32(0.01), "xs": np.float32(0.02),
                               "xz": np.uint8(7), "ys": np.float32(0.3), "yz": np.uint8(128)})
                feeds = {"x": self.integers((1, 6, 9), np.uint8)}
                y, ran = nodes_run(proto, feeds)
                self.assertEqual(left_to_others(ran), left)
                self.assertLessEqual(np.abs(y[0].astype(int) - plain(proto).run(None, feeds)[0]).max(), 1)

    def test_another_reader_of_x(self):
        """ONNX Runtime gives each reader a DequantizeLinear of its own."""
        case, x, w, b = self.draw_layer("u8", "s8", "u8", False, True)
        nodes, inputs, outputs, constants = self.graph(case, w, b)
        proto = model([*nodes, node("Relu", "xf", "z")], inputs, outputs | {"z": (TensorProto.FLOAT, None)}, constants)
        y, ran = nodes_run(proto, {"x": x})
        self.assertEqual(left_to_others(ran), ["DequantizeLinear", "Relu"])
        np.testing.assert_array_equal(y[0], self.exact(case, x, w, b))
        np.testing.assert_array_equal(y[1], plain(proto).run(None, {"x": x})[1])

    def test_weights_alone_are_quantized(self):
        x, w = self.draw(X_SHAPE), self.integers(W_SHAPE, np.int8)
        proto = model([node("DequantizeLinear", "w ws wz", "wf", axis=1), node("ConvTranspose", "x wf", "y", strides=[2, 2])],
                      {"x": (TensorProto.FLOAT, X_SHAPE)}, {"y": (TensorProto.FLOAT, None)},
                      {"w": w, "ws": self.rng.uniform(0.01, 0.1, CHANNELS).astype(np.float32),
                       "wz": self.integers(CHANNELS, np.int8)})
        y, ran = nodes_run(proto, {"x": x})
        self.assertEqual(left_to_others(ran), [])
        self.assert_close(y[0], plain(proto).run(None, {"x": x})[0], 1e-5)

    def test_weights_alone_of_other_types(self):
        """Weights of integers are turned into floats once, others in each run."""
        x = self.draw(X_SHAPE)
        scales = self.rng.uniform(0.01, 0.1, CHANNELS).astype(np.float32)
        for dtype, zero, scale, left in [(np.int16, None, scales, []), (np.uint16, np.uint16([1, 2, 3, 4]), scales, []),
                                         (ml_dtypes.int4, None, np.float32(0.1), []),
                                         (ml_dtypes.uint4, np.array([0, 7, 9, 15], ml_dtypes.uint4), scales, []),
                                         (ml_dtypes.float8_e4m3fn, np.zeros((), ml_dtypes.float8_e4m3fn), np.float32(2),
                                          ["DequantizeLinear"])]:
            with self.subTest(dtype=np.dtype(dtype).name):
                is_float = dtype == ml_dtypes.float8_e4m3fn
                limits = None if is_float else ml_dtypes.iinfo(dtype)
                w = self.draw(W_SHAPE) if is_float else self.rng.integers(limits.min, int(limits.max) + 1, W_SHAPE)
                constants = {"w": w.astype(dtype), "ws": scale} | ({} if zero is None else {"wz": zero})
                proto = model([node("DequantizeLinear", " ".join(constants), "wf", axis=1),
                               node("ConvTranspose", "x wf", "y", strides=[2, 2])],
                              {"x": (TensorProto.FLOAT, X_SHAPE)}, {"y": (TensorProto.FLOAT, None)}, constants, 21)
                y, ran = nodes_run(proto, {"x": x})
                self.assertEqual(left_to_others(ran), left)
                self.assert_close(y[0], plain(proto).run(None, {"x": x})[0], 1e-5)

    def test_scales_of_blocks(self):
        """Those of a bias look like scales of its axis."""
        x, w, b = self.draw(X_SHAPE), self.draw(W_SHAPE), self.integers(CHANNELS, np.int8)
        proto = model([node("DequantizeLinear", "b bs", "bf", axis=0, block_size=2),
                       node("ConvTranspose", "x w bf", "y", strides=[2, 2])],
                      {"x": (TensorProto.FLOAT, X_SHAPE)}, {"y": (TensorProto.FLOAT, None)},
                      {"w": w, "b": b, "bs": np.float32([0.1, 0.2])}, 21)
        y, ran = nodes_run(proto, {"x": x})
        self.assertEqual(left_to_others(ran), ["DequantizeLinear"])
        self.assert_close(y[0], plain(proto).run(None, {"x": x})[0], 1e-5)

    def test_qlinear_of_channels_last(self):
        case, x, w, b = self.draw_layer("u8", "u8", "u8", False, True)
        q = case["quant"]
        last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        proto = model([node("QLinearConvTranspose", "x xs xz w ws wz ys yz b", "y", domain="com.ms.internal.nhwc",
                            **case["attrs"])],
                      {"x": (TYPES["u8"][0], last.shape)}, {"y": (TYPES["u8"][0], None)},
                      {"xs": np.float32(q["x_scale"]), "xz": np.uint8(q["x_zero_point"]), "w": w, "ws": q["w_scale"][0],
                       "wz": np.uint8(q["w_zero_point"][0]), "ys": np.float32(q["y_scale"]), "yz": np.uint8(q["y_zero_point"]),
                       "b": b}, domains=["com.ms.internal.nhwc"])
        y = ours(proto).run(None, {"x": last})[0]
        np.testing.assert_array_equal(np.moveaxis(y, -1, 1), self.exact(case, x, w, b))


class CommandLine(Chain):
    def takes_record_of_command_line(self, proto, threads="1"):
        """Writes a tuning record for the layer as the command line names it; True if the provider goes by it."""
        with tempfile.TemporaryDirectory() as folder:
            file, records = Path(folder, "model.onnx"), Path(folder, "tuning.jsonl")
            file.write_bytes(proto.SerializeToString())
            command = [sys.executable, "-B", "-m", "convtranspose", "explain", "--json", "--threads", threads, str(file)]
            layer, = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            chosen = layer["candidates"][1]["name"]  # which the estimate does not choose
            lines = []
            for dtype in ("float32", "uint8"):  # whose records may be of different ISAs
                record = json.loads(convtranspose.Plan(None, x_shape=(1, 1, 1), w_shape=(1, 1, 1), x_dtype=dtype).record)
                record |= {"problem": layer["problem"], "variant": chosen, "threads": 0, "ms": 1.5}
                lines.append(json.dumps(record) + "\n")
            records.write_text("".join(lines))
            code = ("import sys, convtranspose.onnxruntime as ct\n"
                    "ct.session(sys.stdin.buffer.read(), explain=1, threads=sys.argv[1], tuning=sys.argv[2])")
            told = subprocess.run([sys.executable, "-B", "-c", code, threads, str(records)], input=proto.SerializeToString(),
                                  capture_output=True, timeout=60, check=True).stderr.decode()
            return "says a tuning record: 1.5 ms" in told

    def test_it_tunes_the_layers_that_are_computed_here(self):
        for what in ("whole", "Relu", "Clip", "no QuantizeLinear", "float bias", "zero point of the bias", "large stride",
                     "dynamic", "large stride, dynamic"):
            with self.subTest(what):
                case, _, w, b = self.draw_layer("u8", "s8", "u8", True, True)
                if what.startswith("large stride"):
                    case["attrs"]["strides"] = [5, 5]
                between = {"Relu": [node("Relu", "c", "d")], "Clip": [node("Clip", "c low high", "d")]}.get(what, [])
                quantizes = what in ("whole", "Relu", "Clip", "zero point of the bias", "large stride")
                nodes, constants = self.chain(case, w, b, between=between, quantizes=quantizes)
                constants |= {"low": np.float32(0), "high": np.float32(30)} if what == "Clip" else {}
                inputs, outputs = self.inputs(case), self.outputs(case) if quantizes else {"c": (TensorProto.FLOAT, None)}
                if what == "float bias":
                    nodes = [n for n in nodes if n.output[0] != "bf"]
                    constants |= {"bf": self.draw(CHANNELS)}
                if what == "zero point of the bias":
                    nodes[0].input.append("bz")
                    constants |= {"bz": np.ones(CHANNELS, np.int32)}
                if what.endswith("dynamic"):
                    nodes[1:2] = [node("DynamicQuantizeLinear", "x", "xq s z"), node("DequantizeLinear", "xq s z", "xf")]
                    inputs = {"x": (TensorProto.FLOAT, case["x_shape"])}
                self.assertTrue(self.takes_record_of_command_line(model(nodes, inputs, outputs, constants)))


if __name__ == "__main__":
    unittest.main()
