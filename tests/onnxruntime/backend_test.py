"""ONNX's own tests of ConvTranspose, through ONNX Runtime with this provider first."""
import unittest

import onnx.backend.test
from onnx.backend.base import Backend, BackendRep
from support import left_to_others, nodes_run, setUpModule  # noqa: F401

TESTS = r"test_.*conv_?transpose.*_cpu"
AT_LEAST = 10


class Prepared(BackendRep):
    def __init__(self, model):
        self.model = model

    def run(self, inputs, **kwargs):
        outputs, ran = nodes_run(self.model, dict(zip([value.name for value in self.model.graph.input], inputs)))
        assert "ConvTranspose" not in left_to_others(ran), ran
        return outputs


class Provider(Backend):
    @classmethod
    def is_compatible(cls, model, device="CPU", **kwargs):
        return True

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return Prepared(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


class Counted(unittest.TestCase):
    def test_there_are_tests(self):
        """A renaming in ONNX must not leave us with none."""
        names = [name for case in cases.values() for name in dir(case)
                 if name.startswith("test_") and not getattr(getattr(case, name), "__unittest_skip__", False)]
        self.assertGreaterEqual(len(names), AT_LEAST, names)


cases = onnx.backend.test.BackendTest(Provider, __name__).include(TESTS).test_cases
globals().update(cases)

if __name__ == "__main__":
    unittest.main()
