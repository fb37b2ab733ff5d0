"""The conformance cases of tests/conformance through ONNX Runtime: y must be exactly as listed."""
import json
import sys
import unittest
from pathlib import Path

import numpy as np
import onnxruntime as ort
from support import TYPES, TestCase, left_to_others, model, node, nodes_run, setUpModule  # noqa: F401

CASES = Path(__file__).parent.parent / "conformance"
sys.path.insert(0, str(CASES))
import expected  # noqa: E402

DOMAIN = "com.ms.internal.nhwc"


def cases(file):
    return json.loads((CASES / file).read_text(encoding="ascii"))["cases"]


def is_model(case):
    """True if a model can be made of the case; others are about the library's own interface."""
    types = [case["dtype"], *(case["quant"][t] for t in "wy" if "quant" in case)]
    return all(t in TYPES for t in types) and case.get("w_dtype", case["dtype"]) == case["dtype"] and "drop_input" not in case


def quantized(case, form, w, b):
    """Nodes and constants of a quantized case: as one operator of channels last, or as a chain around ConvTranspose."""
    quant, attributes = case["quant"], case.get("attrs", {})
    tensors = {"xs": np.float32(quant["x_scale"]), "xz": TYPES[case["dtype"]][1](quant["x_zero_point"]),
               "w": w.astype(TYPES[quant["w"]][1]), "ws": np.float32(quant["w_scale"]),
               "wz": np.array(quant["w_zero_point"], TYPES[quant["w"]][1]), "ys": np.float32(quant["y_scale"]),
               "yz": TYPES[quant["y"]][1](quant["y_zero_point"])}
    if b is not None:
        tensors["b"] = b.astype(np.int32)
    if form == "operator":
        return [node("QLinearConvTranspose", "x xs xz w ws wz ys yz" + (" b" if b is not None else ""), "y", domain=DOMAIN,
                     **attributes)], tensors
    group, per_channel = attributes.get("group", 1), max(np.size(tensors["ws"]), np.size(tensors["wz"])) > 1
    channels = w.shape[1] * group
    if per_channel: # of the first group, which the others must have too
        for name in ("ws", "wz"):
            every = np.resize(tensors[name], channels)
            tensors[name] = every[:w.shape[1]]
            if not np.array_equal(np.tile(tensors[name], group), every):
                return None, None
    nodes = [node("DequantizeLinear", "x xs xz", "xf"), node("DequantizeLinear", "w ws wz", "wf", axis=1),
             node("ConvTranspose", "xf wf" + (" bf" if b is not None else ""), "c", **attributes),
             node("QuantizeLinear", "c ys yz", "y")]
    if b is not None:
        tensors["bs"] = tensors["xs"] * np.tile(tensors["ws"], group if per_channel else 1).astype(np.float32)
        if not per_channel:
            tensors["bs"] = tensors["bs"].reshape(())
        nodes.insert(0, node("DequantizeLinear", "b bs", "bf", axis=0))
    return nodes, tensors


def model_of(case, form):
    """The model, and x. Forms of floats: "static" and "dynamic", whose spatial extents are known when it runs; of quantized cases:
    "operator" and "chain". None: no such form."""
    element, dtype = TYPES[case["dtype"]]
    x, w, b = expected.inputs_of(case)
    x = x.astype(dtype)
    if "quant" in case:
        if form == "operator":
            x = np.ascontiguousarray(np.moveaxis(x, 1, -1))
        nodes, tensors = quantized(case, form, w, b)
        if nodes is None:
            return None, None
        output = TYPES[case["quant"]["y"]][0]
    else:
        tensors, output = {"w": w.astype(dtype)} | ({} if b is None else {"b": b.astype(dtype)}), element
        nodes = [node("ConvTranspose", "x w" + (" b" if b is not None else ""), "y", **case.get("attrs", {}))]
    # ONNX Runtime refuses operator sets before 7, where the operator is still that of version 1.
    opset = 8 if case["opset"] == 1 and "quant" not in case else 17
    shape = [name for name, _ in zip("abcdefgh", x.shape)] if form == "dynamic" else x.shape
    return model(nodes, {"x": (element, shape)}, {"y": (output, None)}, tensors, opset,
                 [DOMAIN] if form == "operator" else []), x


class Conformance(TestCase):
    def right(self, case, form):
        """True if the provider computed the case, and exactly; False if ONNX Runtime refuses the model before it asks a provider;
        None if there is no such model, or if it is computed in floats."""
        proto, x = model_of(case, form)
        if proto is None:
            return None
        try:
            y, ran = nodes_run(proto, {"x": x})
        except Exception as error:
            # Rules of ONNX Runtime's own inference of types and shapes, not of this provider; docs/semantics.md lists them.
            self.assertRegex(str(error), "(Shape|Type)InferenceError")
            return False
        if form == "chain" and left_to_others(ran) == ["DequantizeLinear", "QuantizeLinear"]:
            self.assertGreater(max(case["attrs"]["strides"]), 4) # floats are faster, and not exact
            return None
        self.assertEqual(left_to_others(ran), [])
        y = np.moveaxis(y[0], -1, 1) if form == "operator" else y[0]
        self.assertEqual(list(y.shape), case["y_shape"])
        self.assertEqual(expected.summary(y), case["y"])
        return True

    def check(self, file, at_least):
        counts = {True: 0, False: 0, None: 0}
        for case in cases(file):
            if not is_model(case) or case.get("expect"):
                continue
            for form in ("operator", "chain") if "quant" in case else ("static", "dynamic"):
                with self.subTest(case["name"], form=form):
                    right = self.right(case, form)
                    counts[right] += 1
                    if right is False:
                        print(f"  {case['name']}, {form}: refused by ONNX Runtime's own inference", file=sys.stderr)
        print(f"{file}: {counts[True]} right, {counts[False]} refused by ONNX Runtime {ort.__version__} itself, {counts[None]} "
              "that no chain can say or that are faster in floats", file=sys.stderr)
        self.assertGreaterEqual(counts[True], at_least)

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
                proto, x = model_of(case, "operator" if "quant" in case else "static")
                try:
                    _, ran = nodes_run(proto, {"x": x})
                except Exception as error:
                    # Sizes that overflow are left to the CPU provider, whose message is the last of these, if it has one.
                    self.assertRegex(str(error), "InferenceError|ConvTranspose: |Integer overflow")
                else:
                    self.assertEqual((case["name"], left_to_others(ran)), ("e_stride_overflow", ["ConvTranspose"]))


if __name__ == "__main__":
    unittest.main()
