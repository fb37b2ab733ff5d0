"""Networks that onnxruntime.quantization makes: their layers are computed in 8 bits, within one unit of ONNX Runtime's result."""
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from support import TestCase, left_to_others, model, node, nodes_run, plain, setUpModule  # noqa: F401

X = (1, 8, 6, 6)


class Random(CalibrationDataReader):
    def __init__(self, inputs):
        self.inputs = iter(inputs)

    def get_next(self):
        return next(self.inputs, None)


class QuantizeStatic(TestCase):
    def generator(self):
        """Two transposed convolutions with what stands around them in networks."""
        return model([node("ConvTranspose", "x w1 b1", "c1", strides=[2, 2], pads=[1, 1, 1, 1], name="up1"),
                      node("Relu", "c1", "r1"),
                      node("ConvTranspose", "r1 w2", "c2", strides=[2, 2], pads=[1, 1, 1, 1], name="up2"),
                      node("Tanh", "c2", "y")],
                     {"x": (TensorProto.FLOAT, X)}, {"y": (TensorProto.FLOAT, None)},
                     {"w1": self.draw((8, 16, 4, 4)) / 8, "b1": self.draw(16), "w2": self.draw((16, 3, 4, 4)) / 16}, 17)

    def quantized(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
            onnx.save(self.generator(), source)
            quantize_static(source, target, Random([{"x": self.draw(X)} for _ in range(4)]), **options)
            return onnx.load(target)

    def test_every_layer_is_computed_in_8_bits(self):
        for activation, weight in [(QuantType.QUInt8, QuantType.QInt8), (QuantType.QUInt8, QuantType.QUInt8),
                                   (QuantType.QInt8, QuantType.QInt8)]: # all that ONNX Runtime makes
            for per_channel in (False, True):
                with self.subTest(activation=activation, weight=weight, per_channel=per_channel):
                    proto = self.quantized(quant_format=QuantFormat.QDQ, activation_type=activation, weight_type=weight,
                                           per_channel=per_channel)
                    feeds = {"x": self.draw(X)}
                    y, ran = nodes_run(proto, feeds)
                    self.assertNotIn("ConvTranspose", left_to_others(ran))
                    # Nothing turns integers into floats for a ConvTranspose: DequantizeLinear stands before Tanh and y alone.
                    self.assertLessEqual(left_to_others(ran).count("DequantizeLinear"), 2)
                    # y is quantized to about 2/255; one unit in front of Tanh and of y moves it by two of these.
                    self.assert_close(y[0], plain(proto).run(None, feeds)[0], 2.5 * 2 / 255)

    def test_formats_that_leave_a_float_layer(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "float.onnx"), Path(folder, "quantized.onnx")
            onnx.save(self.generator(), source)
            quantize_dynamic(source, target)
            dynamic = onnx.load(target)
        for proto in (dynamic, self.quantized(quant_format=QuantFormat.QOperator)):
            feeds = {"x": self.draw(X)}
            y, ran = nodes_run(proto, feeds)
            self.assertNotIn("ConvTranspose", left_to_others(ran))
            self.assert_close(y[0], plain(proto).run(None, feeds)[0], 2.5 * 2 / 255)

    def test_as_near_to_floats(self):
        """The quantized network is no further from the float one with the provider than without."""
        proto, feeds = self.quantized(per_channel=True), {"x": self.draw(X)}
        y = nodes_run(proto, feeds)[0][0]
        other = plain(proto).run(None, feeds)[0]
        self.assertLessEqual(np.abs(y - other).mean(), 0.5 * 2 / 255)


if __name__ == "__main__":
    unittest.main()
