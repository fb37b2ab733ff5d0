"""conv_transpose() and qlinear_conv_transpose() against the definition."""

import unittest

import cases
import convtranspose as ct
import ml_dtypes
import numpy as np

RNG = np.random.default_rng(7)


def small(shape, dtype=np.float32):
    """Integers, whose sums every type here holds exactly."""
    return RNG.integers(-3, 4, shape).astype(dtype)


class Floats(unittest.TestCase):
    def test_types_and_layouts(self):
        for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
            for layout in ("nchw", "nhwc"):
                with self.subTest(dtype=np.dtype(dtype).name, layout=layout):
                    x, w, b = small((2, 3, 5, 4), dtype), small((3, 2, 3, 3), dtype), small(2, dtype)
                    wanted = cases.definition(x, w, b, strides=[2, 1], pads=[1, 0, 1, 2])
                    given = x if layout == "nchw" else cases.to_last(x)
                    y = ct.conv_transpose(given, w, b, strides=[2, 1], pads=[1, 0, 1, 2], layout=layout)
                    self.assertEqual(y.dtype, np.dtype(dtype))
                    np.testing.assert_array_equal(y.astype(np.float64), wanted if layout == "nchw" else cases.to_last(wanted))

    def test_attributes_as_onnx_has_them(self):
        x, w = small((1, 4, 6, 7)), small((4, 1, 3, 2))
        for attributes in ({"group": 2, "dilations": [2, 3]}, {"strides": [3, 2], "output_padding": [2, 1]},
                           {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, {"strides": [2, 2], "auto_pad": "SAME_LOWER"},
                           {"strides": [3, 3], "output_shape": [17, 20]}, {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}):
            with self.subTest(**attributes):
                np.testing.assert_array_equal(ct.conv_transpose(x, w, **attributes), cases.definition(x, w, **attributes))

    def test_one_integer_stands_for_all_axes(self):
        x, w = small((1, 2, 4, 5)), small((2, 3, 4, 4))
        wanted = cases.definition(x, w, strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1], output_padding=[1, 1])
        np.testing.assert_array_equal(ct.conv_transpose(x, w, strides=2, pads=1, dilations=1, output_padding=1), wanted)
        np.testing.assert_array_equal(ct.conv_transpose(x, w, strides=np.array([2, 2]), pads=(1, 1, 1, 1),
                                                        output_padding=np.int64(1)), wanted)
        for two in (np.int64(2), np.array(2)):
            self.assertEqual(ct.Plan(w, x_shape=x.shape, strides=two).y_shape, (1, 3, 10, 12))

    def test_wrong_kinds_are_refused_whatever_was_called_before(self):
        x, w = small((1, 2, 5, 6)), small((2, 3, 3, 3))
        ct.conv_transpose(x, w, strides=2)
        with self.assertRaisesRegex(TypeError, "strides must be an integer"):
            ct.conv_transpose(x, w, strides=2.0)

    def test_what_has_no_hash_is_refused_by_name(self):
        x, w = small((1, 8, 5)), small((8, 6, 3))
        for words, arguments in (("strides must be .* not dict", {"strides": {}}), ("dilations must be", {"dilations": {2.5}}),
                                 ("activation must be", {"activation": {}}), ("auto_pad must be a string", {"auto_pad": [[], {}]})):
            with self.subTest(**arguments), self.assertRaisesRegex(TypeError, words):
                ct.conv_transpose(x, w, **arguments)

    def test_integers_are_refused(self):
        for dtype in (np.uint8, np.int8, np.int32):
            with self.subTest(dtype=dtype), self.assertRaisesRegex(TypeError, f"x holds {dtype.__name__}; conv_transpose takes"):
                ct.conv_transpose(np.ones((1, 2, 3), dtype), np.ones((2, 2, 3), dtype))

    def test_any_number_of_axes(self):
        for axes in (1, 2, 3, 4):
            with self.subTest(axes=axes):
                x, w = small((1, 2, *[3] * axes)), small((2, 2, *[2] * axes))
                np.testing.assert_array_equal(ct.conv_transpose(x, w, strides=2), cases.definition(x, w, strides=[2] * axes))

    def test_what_follows(self):
        x, w = small((1, 2, 4, 4)), small((2, 3, 3, 3))
        r = small((1, 3, 6, 6))
        plain = cases.definition(x, w)
        np.testing.assert_array_equal(ct.conv_transpose(x, w, activation="relu"), np.maximum(plain, 0))
        halved = np.where(plain < 0, plain / 2, plain)
        np.testing.assert_array_equal(ct.conv_transpose(x, w, activation=("leaky_relu", 0.5)), halved)
        np.testing.assert_array_equal(ct.conv_transpose(x, w, activation=("clip", -2, 5)), np.clip(plain, -2, 5))
        np.testing.assert_array_equal(ct.conv_transpose(x, w, residual=r, activation="relu"), np.maximum(plain + r, 0))
        np.testing.assert_allclose(ct.conv_transpose(x, w, activation="tanh"), np.tanh(plain), rtol=1e-6)
        np.testing.assert_allclose(ct.conv_transpose(x, w, activation="sigmoid"), 1 / (1 + np.exp(-plain)), rtol=1e-6)

    def test_an_activation_may_be_a_list(self):
        x, w = small((1, 2, 5)), small((2, 3, 3))
        y = ct.conv_transpose(x, w, activation=("leaky_relu", 0.5))
        np.testing.assert_array_equal(ct.conv_transpose(x, w, activation=["leaky_relu", 0.5]), y)
        np.testing.assert_array_equal(ct.Plan(w, x_shape=x.shape, activation=["leaky_relu", 0.5])(x), y)

    def test_slopes_of_either_zero_are_remembered_apart(self):
        x, w = np.full((1, 1, 1), -1, np.float32), np.ones((1, 1, 1), np.float32)
        for slope in (0.0, -0.0, 0.0):
            y = ct.conv_transpose(x, w, activation=("leaky_relu", slope))
            self.assertEqual(np.signbit(y.item()), np.signbit(-slope))

    def test_a_layer_is_remembered_with_other_weights(self):
        for _ in range(3):
            x, w, b = small((1, 3, 8, 8)), small((3, 4, 4, 4)), small(4)
            np.testing.assert_array_equal(ct.conv_transpose(x, w, b, strides=2, pads=1),
                                          cases.definition(x, w, b, strides=[2, 2], pads=[1, 1, 1, 1]))


class Quantized(unittest.TestCase):
    def test_u8_and_s8(self):
        x = RNG.integers(0, 256, (1, 3, 4, 5)).astype(np.uint8)
        w = RNG.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
        b = RNG.integers(-999, 999, 2).astype(np.int32)
        case = {"dtype": "u8", "x_shape": list(x.shape), "w_shape": list(w.shape), "bias": True, "attrs": {"strides": [2, 2]},
                "quant": {"w": "s8", "y": "u8", "x_scale": 0.02, "x_zero_point": 120, "w_scale": [0.01, 0.03],
                          "w_zero_point": [0, 0], "y_scale": 0.5, "y_zero_point": 128}}
        q = case["quant"]
        wanted = cases.expected.quantized(case, *(t.astype(np.int64) for t in (x, w, b)), cases.expected.geometry(case))
        scales = (np.float32(0.02), np.uint8(120)), (np.array(q["w_scale"], np.float32), np.zeros(2, np.int8)), (0.5, 128)
        y = ct.qlinear_conv_transpose(cases.to_last(x), *scales[0], w, *scales[1], *scales[2], b, strides=[2, 2])
        np.testing.assert_array_equal(y, cases.to_last(wanted))
        y = ct.qlinear_conv_transpose(x, *scales[0], w, *scales[1], *scales[2], b, strides=[2, 2], layout="nchw")
        np.testing.assert_array_equal(y, wanted)
        plan = ct.Plan(w, b, x_shape=x.shape, x_dtype="uint8", strides=2, **{name: q[name] for name in q if "_" in name})
        np.testing.assert_array_equal(plan(x), wanted)

    def test_float_y(self):
        x = RNG.integers(0, 256, (1, 3, 4, 5)).astype(np.uint8)
        w = RNG.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
        sums = cases.definition(x.astype(np.float64) - 7, w)
        for y_dtype in ("float32", np.dtype(np.float32), np.float32):
            y = ct.qlinear_conv_transpose(x, 0.5, 7, w, 0.25, 0, None, None, layout="nchw", y_dtype=y_dtype)
            self.assertEqual(y.dtype, np.float32)
            np.testing.assert_array_equal(y, (sums * 0.125).astype(np.float32))
        plan = ct.Plan(w, x_shape=x.shape, x_dtype=np.uint8, y_dtype=np.float32, x_scale=0.5, x_zero_point=7, w_scale=0.25)
        np.testing.assert_array_equal(plan(x), y)

    def test_range(self):
        x, w = np.full((1, 1, 1, 3), 100, np.uint8), np.array([[[[1, 2]]]], np.int8)
        y = ct.qlinear_conv_transpose(x, 1, 0, w, 1, 0, 2, 10, layout="nchw", y_range=(0, 120))
        np.testing.assert_array_equal(y, [[[[60, 70, 70, 70]]]])


def quantized_as_onnx_does(x):
    """DynamicQuantizeLinear-11: its scale, its zero point, and its integers."""
    scale = np.float32(max(x.max(), 0) - min(x.min(), 0)) / np.float32(255)
    zero_point = np.rint(-min(x.min(), np.float32(0)) / scale)
    return scale, int(zero_point), np.clip(np.rint(x / scale) + zero_point, 0, 255).astype(np.uint8)


class LightWeights(unittest.TestCase):
    def test_16_bits(self):
        x, b = RNG.standard_normal((2, 5, 6, 7), np.float32), RNG.standard_normal(4, np.float32)
        for dtype in (np.float16, ml_dtypes.bfloat16):
            w = RNG.standard_normal((5, 4, 3, 3), np.float32).astype(dtype)
            wanted = ct.Plan(w.astype(np.float32), b, x_shape=x.shape, strides=2)(x)
            plan = ct.Plan(w, b, x_shape=x.shape, x_dtype="float32", strides=2)
            self.assertEqual((plan.x_dtype, plan.y_dtype), ("float32", "float32"))
            np.testing.assert_allclose(plan(x), wanted, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(plan.reshape((1, 5, 6, 7))(x[:1]), wanted[:1], rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(ct.conv_transpose(x, w, b, strides=2), wanted, rtol=1e-5, atol=1e-5)

    def test_8_bits(self):
        x = small((1, 6, 5, 4))
        scales = {"one": (0.25, 3), "per channel": (np.array([0.5, 0.25, 2, 1], np.float32), [1, 0, 2, 90])}
        for dtype in (np.uint8, np.int8):
            w = RNG.integers(0, 128, (6, 2, 3, 3)).astype(dtype)
            for name, (w_scale, w_zero_point) in scales.items():
                with self.subTest(dtype=dtype, scales=name):
                    # Output channel m of group g is column m % 2 of the input channels of g.
                    of = [np.broadcast_to(v, 4).reshape(2, 1, 2, 1, 1) for v in (w_scale, w_zero_point)]
                    real = ((w.reshape(2, 3, 2, 3, 3) - np.float64(of[1])) * of[0]).reshape(w.shape)
                    wanted = cases.definition(x, real, strides=[2, 2], group=2)
                    given = {"w_scale": w_scale, "w_zero_point": w_zero_point}
                    layer = {"strides": 2, "group": 2}
                    np.testing.assert_array_equal(ct.conv_transpose(x, w, **given, **layer), wanted)
                    plan = ct.Plan(w, x_shape=x.shape, x_dtype="float32", **given, **layer)
                    np.testing.assert_array_equal(plan(x), wanted)
                    plan = ct.Plan(None, x_shape=x.shape, x_dtype=np.float32, w_shape=w.shape, w_dtype=dtype, **layer)
                    np.testing.assert_array_equal(plan(x, w=w, **given), wanted)

    def test_quantizing_x(self):
        b = RNG.standard_normal(4, np.float32)
        w = RNG.integers(-128, 128, (5, 4, 3, 3)).astype(np.int8)
        w_scale = RNG.uniform(0.01, 0.02, 4).astype(np.float32)
        for x in (RNG.standard_normal((2, 5, 6, 7), np.float32), RNG.uniform(2, 3, (1, 5, 3, 3)).astype(np.float32),
                  RNG.uniform(-3, -2, (1, 5, 3, 3)).astype(np.float32)):
            scale, zero_point, integers = quantized_as_onnx_does(x)
            # Factors are float32: x_scale * w_scale.
            sums = cases.definition(integers.astype(np.float64) - zero_point, w, strides=[2, 2]).astype(np.float32)
            wanted = sums * (scale * w_scale).reshape(4, 1, 1) + b.reshape(4, 1, 1)
            plan = ct.Plan(w, b, x_shape=x.shape, x_dtype="float32", w_scale=w_scale, quantizes_x=True, strides=2)
            self.assertEqual((plan.x_dtype, plan.y_dtype), ("float32", "float32"))
            np.testing.assert_array_equal(plan(x), wanted)
            np.testing.assert_array_equal(ct.conv_transpose(x, w, b, w_scale=w_scale, quantizes_x=True, strides=2), wanted)
            exact = ct.qlinear_conv_transpose(integers, scale, zero_point, w, w_scale, 0, None, None, b, strides=2, layout="nchw",
                                              y_dtype="float32")
            np.testing.assert_array_equal(exact, wanted)

    def test_quantizing_special_values(self):
        w = small((2, 3, 3), np.int8)
        zeros = np.zeros((1, 2, 5), np.float32)
        call = {"w_scale": 0.5, "quantizes_x": True}
        np.testing.assert_array_equal(ct.conv_transpose(zeros, w, np.ones(3, np.float32), **call), np.ones((1, 3, 7)))
        for special in (np.nan, np.inf):
            x = zeros.copy()
            x[0, 1, 2] = special
            self.assertTrue(np.isnan(ct.conv_transpose(x, w, **call)).all())

    def test_errors(self):
        x, w = small((1, 2, 5)), small((2, 3, 3), np.int8)
        for error, words, arguments in ((ValueError, "x_scale is given, but x is float32: .* only w_scale", {"x_scale": 1}),
                                        (ValueError, "x_zero_point is given", {"x_zero_point": 0}),
                                        (ValueError, "y_scale is given", {"y_scale": 1}),
                                        (ValueError, "y_zero_point is given", {"y_zero_point": 0}),
                                        (ValueError, "y_range is given", {"y_range": (0, 6)}),
                                        (ValueError, "w_scale", {"w_scale": [1, 2]}), (ValueError, "y_dtype", {"y_dtype": "int8"}),
                                        (ValueError, "w_scale has 0 elements", {"w_scale": []}),
                                        (ValueError, "w_zero_point has 0 elements", {"w_zero_point": []})):
            with self.subTest(**arguments), self.assertRaisesRegex(error, words):
                ct.Plan(w, x_shape=x.shape, x_dtype="float32", **{"w_scale": 1, **arguments})
        with self.assertRaisesRegex(TypeError, "w_scale is missing"):
            ct.Plan(w, x_shape=x.shape, x_dtype="float32", w_zero_point=1)
        with self.assertRaisesRegex(TypeError, "w_scale is missing: w holds int8"):
            ct.conv_transpose(x, w)
        with self.assertRaisesRegex(ValueError, "w_dtype = f64 must be f32, f16, bf16, u8 or s8, as x is f32"):
            ct.conv_transpose(x, w.astype(np.float64))
        with self.assertRaisesRegex(ValueError, "w_dtype = f16 must be that of x, f64"):
            ct.conv_transpose(x.astype(np.float64), w.astype(np.float16))
        with self.assertRaisesRegex(ValueError, "quantizes_x = 1 is for x of f32 and w of u8 or s8"):
            ct.conv_transpose(x, x.reshape(2, 5, 1), quantizes_x=True)
        with self.assertRaisesRegex(ValueError, "quantization is given, but w is f32"):
            ct.conv_transpose(x, x.reshape(2, 5, 1), w_scale=1)
        plan = ct.Plan(w, x_shape=x.shape, x_dtype="float32", w_scale=1)
        with self.assertRaisesRegex(ValueError, "x_scale is given, but x is float32"):
            plan(x, x_scale=1)


class Conformance(unittest.TestCase):
    """The cases that the C++ tests run, by the function and by a plan, in both layouts."""

    def check(self, case):
        if "expect" in case:
            self.check_refused(case)
            return
        inputs = cases.expected.inputs_of(case)
        wanted = cases.expected.compute(case)
        quant = case.get("quant")
        types = (case["dtype"], quant["w"], None) if quant else (case["dtype"],) * 3
        x, w, b = (None if array is None else array.astype(cases.DTYPES.get(dtype, np.int32))
                   for array, dtype in zip(inputs, types))
        attributes = case.get("attrs", {})
        opset = case.get("opset", 22)
        for layout in ("nchw", "nhwc"):
            given = x if layout == "nchw" else cases.to_last(x)
            right = wanted if layout == "nchw" else cases.to_last(wanted)
            if quant:
                scales = [quant[n] for n in ("x_scale", "x_zero_point", "w_scale", "w_zero_point", "y_scale", "y_zero_point")]
                y_dtype = np.dtype(cases.DTYPES[quant["y"]]).name
                y = ct.qlinear_conv_transpose(given, *scales[:2], w, *scales[2:], b, layout=layout, y_dtype=y_dtype, **attributes)
                names = ("x_scale", "x_zero_point", "w_scale", "w_zero_point", "y_scale", "y_zero_point")
                planned = ct.Plan(w, b, x_shape=given.shape, x_dtype=given.dtype, y_dtype=y_dtype, layout=layout,
                                  **dict(zip(names, scales)), **attributes)(given)
            else:
                y = ct.conv_transpose(given, w, b, layout=layout, opset=opset, **attributes)
                planned = ct.Plan(w, b, x_shape=given.shape, layout=layout, opset=opset, **attributes)(given)
            np.testing.assert_array_equal(y, right)
            np.testing.assert_array_equal(planned, right)

    def check_refused(self, case):
        if "drop_input" in case or "quant" in case or "w_dtype" in case:
            return  # a node of a model, which the importer refuses
        try:
            x = np.zeros(case["x_shape"], cases.DTYPES[case["dtype"]])
            w = np.zeros(case["w_shape"], cases.DTYPES[case.get("w_dtype", case["dtype"])])
        except (KeyError, ValueError, MemoryError):
            return  # no array is like that
        b = np.zeros(cases.expected.bias_shape(case), x.dtype) if case.get("bias") else None
        with self.assertRaises((ValueError, TypeError)) as caught:
            ct.conv_transpose(x, w, b, opset=case.get("opset", 22), **case.get("attrs", {}))
        self.assertTrue(str(caught.exception))

    def test_cases(self):
        for name in ("cases.json", "reports.json", "huge.json"):
            for case in cases.read(name):
                with self.subTest(file=name, case=case["name"]):
                    self.check(case)


if __name__ == "__main__":
    unittest.main()
