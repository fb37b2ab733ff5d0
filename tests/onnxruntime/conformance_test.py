"""The conformance cases of tests/conformance through ONNX Runtime: y must be exactly as listed."""
import json
import sys
import unittest
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import TensorProto
from support import TYPES, TestCase, left_to_others, model, node, nodes_run, ours, setUpModule  # noqa: F401

CASES = Path(__file__).parent.parent / "conformance"
sys.path.insert(0, str(CASES))
import expected

DOMAIN = "com.ms.internal.nhwc"


def cases(file):
    return json.loads((CASES / file).read_text(encoding="ascii"))["cases"]


def is_model(case):
    """True if a model can be made of the case; others are about the library's own interface."""
    types = [case["dtype"], *(case["quant"][t] for t in "wy" if "quant" in case)]
    return all(t in TYPES for t in types) and case.get("w_dtype", case["dtype"]) == case["dtype"] and "drop_input" not in case


def model_of(case, dynamic):
    """The model, and x. Where `dynamic`, ONNX Runtime does not know the spatial extents before it runs."""
    element, dtype = TYPES[case["dtype"]]
    x, w, b = expected.inputs_of(case)
    quant, attributes = case.get("quant"), dict(case.get("attrs", {}))
    x = x.astype(dtype)
    if quant:
        x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        tensors = {"xs": np.float32(quant["x_scale"]), "xz": dtype(quant["x_zero_point"]),
                   "w": w.astype(TYPES[quant["w"]][1]), "ws": np.float32(quant["w_scale"]),
                   "wz": np.array(quant["w_zero_point"], TYPES[quant["w"]][1]), "ys": np.float32(quant["y_scale"]),
                   "yz": TYPES[quant["y"]][1](quant["y_zero_point"])}
        nodes = [node("QLinearConvTranspose", "x xs xz w ws wz ys yz" + (" b" if b is not None else ""), "y", domain=DOMAIN,
                      **attributes)]
        output = TYPES[quant["y"]][0]
    else:
        tensors, output = {"w": w.astype(dtype)}, element
        nodes = [node("ConvTranspose", "x w" + (" b" if b is not None else ""), "y", **attributes)]
    if b is not None:
        tensors["b"] = b.astype(np.int32 if quant else dtype)
    # ONNX Runtime refuses operator sets before 7, where the operator is still that of version 1.
    opset = 8 if case["opset"] == 1 else 17
    shape = [name for name, _ in zip("abcdefgh", x.shape)] if dynamic else x.shape
    return model(nodes, {"x": (element, shape)}, {"y": (output, None)}, tensors, opset, [DOMAIN] if quant else []), x


class Conformance(TestCase):
    def right(self, case, dynamic):
        """True if the provider computed the case, and exactly; None if ONNX Runtime refuses the model before it asks a provider."""
        proto, x = model_of(case, dynamic)
        try:
            y, ran = nodes_run(proto, {"x": x})
        except Exception as error: # noqa: BLE001
            text = str(error)
            self.assertNotIn("ConvTransposeExecutionProvider", text)
            # Rules of ONNX Runtime's own shape inference and schemas, not of this provider; docs/semantics.md lists them.
            self.assertRegex(text, "ShapeInferenceError|Type Error|INVALID_GRAPH|INVALID_ARGUMENT|allocate memory for requested buffer|Mismatch")
            return None
        self.assertEqual(left_to_others(ran), [])
        y = np.moveaxis(y[0], -1, 1) if "quant" in case else y[0]
        self.assertEqual(list(y.shape), case["y_shape"])
        summary = expected.summary(y)
        self.assertEqual(summary, case["y"])
        return True

    def check(self, file, at_least):
        right = refused = 0
        for case in cases(file):
            if not is_model(case) or case.get("expect"):
                continue
            for dynamic in (False, True):
                with self.subTest(case["name"], dynamic=dynamic):
                    if self.right(case, dynamic):
                        right += 1
                    else:
                        refused += 1
                        print(f"  refused by ONNX Runtime itself: {case['name']}{', dynamic' if dynamic else ''}", file=sys.stderr)
        print(f"{file}: {right} right, {refused} refused by ONNX Runtime {ort.__version__} itself", file=sys.stderr)
        self.assertGreaterEqual(right, at_least)

    def test_cases(self):
        self.check("cases.json", 200)

    def test_reports(self):
        self.check("reports.json", 30)

    def test_wrong_nodes_are_errors(self):
        """Where ONNX Runtime's own inference lets one pass, the message is the library's."""
        for case in cases("cases.json"):
            if not is_model(case) or not case.get("expect"):
                continue
            with self.subTest(case["name"]):
                with self.assertRaises(Exception) as caught:
                    ours(model_of(case, False)[0])
                self.assertRegex(str(caught.exception), "InferenceError|ConvTranspose: ")


if __name__ == "__main__":
    unittest.main()
