"""PyTorch's own samples of conv_transpose1d, 2d and 3d, where PyTorch is installed: it brings several gigabytes."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import convtranspose as ct

# PyTorch's samples need the package expecttest too.
HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "expecttest"))


def attributes(torch, x, w, b=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The arguments of torch.nn.functional.conv_transpose*d by ONNX's names, and x with a batch."""
    axes = w.dim() - 2
    pads = [padding] * axes if isinstance(padding, int) else list(padding) * (axes if len(padding) == 1 else 1)
    return (x if x.dim() == w.dim() else x.unsqueeze(0)), w, b, {
        "strides": stride if isinstance(stride, int) else list(stride), "pads": [*pads, *pads], "group": groups,
        "output_padding": output_padding if isinstance(output_padding, int) else list(output_padding),
        "dilations": dilation if isinstance(dilation, int) else list(dilation)}


@unittest.skipUnless(HAS_TORCH, "torch or expecttest is not installed")
class Samples(unittest.TestCase):
    def test_samples(self):
        import torch
        from torch.testing._internal.common_methods_invocations import op_db

        ran = 0
        for op in op_db:
            if not op.name.startswith("nn.functional.conv_transpose"):
                continue
            for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
                for sample in op.sample_inputs("cpu", dtype, requires_grad=False):
                    x, w, b, given = attributes(torch, sample.input, *sample.args, **sample.kwargs)
                    with self.subTest(op=op.name, dtype=dtype, x=tuple(x.shape), w=tuple(w.shape), **given):
                        y = ct.conv_transpose(x, w, b, **given)
                        self.assertIsInstance(y, torch.Tensor)
                        others = (a.double() if isinstance(a, torch.Tensor) else a for a in sample.args)
                        exact = op.op(sample.input.double(), *others, **sample.kwargs)
                        # The least spacing near a value, twice: sums in float32 at least, rounded once.
                        close = 2 * torch.finfo(dtype).eps * (exact.abs() + w.double().abs().sum() * x.double().abs().max())
                        self.assertTrue(((y.reshape(exact.shape).double() - exact).abs() <= close).all())
                        ran += 1
        self.assertGreater(ran, 50)

    def test_a_class_made_from_tensors_gives_tensors(self):
        import torch

        class Image(torch.Tensor):
            pass

        y = ct.conv_transpose(torch.ones(1, 2, 3, 3).as_subclass(Image), torch.ones(2, 1, 2, 2))
        self.assertIsInstance(y, torch.Tensor)


class Versions(unittest.TestCase):
    def test_one_that_is_too_old(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "torch.py").write_text("__version__ = '2.4.1'\nclass library:\n    custom_op = print\n")
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            done = subprocess.run([sys.executable, "-c", "import convtranspose.torch"], env={**os.environ, "PYTHONPATH": path},
                                  capture_output=True, text=True, check=False)
        self.assertEqual(done.stderr.splitlines()[-1],
                         "ImportError: convtranspose.torch needs PyTorch 2.5 or later, and this is 2.4.1")


if __name__ == "__main__":
    unittest.main()
