"""The blocks of Python of docs/pytorch.md, run as one program, where PyTorch is installed: it brings several gigabytes."""

import contextlib
import importlib.util
import io
import pathlib
import re
import unittest

PAGE = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "pytorch.md"


@unittest.skipUnless(importlib.util.find_spec("torch"), "torch is not installed")
class Page(unittest.TestCase):
    def test_blocks_run(self):
        text = PAGE.read_text(encoding="utf-8")
        blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        self.assertEqual(len(blocks), text.count("```python"))
        self.assertGreaterEqual(len(blocks), 3)
        names, printed = {}, io.StringIO()
        for block in blocks:
            # The lines of a failure are those of the page.
            code = "\n" * text.count("\n", 0, block.start(1)) + block[1]
            with contextlib.redirect_stdout(printed):
                exec(compile(code, PAGE, "exec"), names)
        self.assertEqual(tuple(names["y"].shape), (1, 128, 32, 32))
        self.assertEqual(names["w"].grad.shape, names["w"].shape)
        self.assertIn("0: computes BatchNorm2d and LeakyReLU", printed.getvalue())


if __name__ == "__main__":
    unittest.main()
