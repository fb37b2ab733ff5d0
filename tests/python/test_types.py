"""The package's types: a program is checked by mypy --strict, and the stubs against what is there at run time."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def run(*command):
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MYPYPATH": os.environ["PYTHONPATH"], "MYPY_CACHE_DIR": cache}
        return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)


class Types(unittest.TestCase):
    def test_strict_program(self):
        done = run("-m", "mypy", "--strict", str(HERE / "typed_sample.py"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_strict_package(self):
        done = run("-m", "mypy", "--strict", "-p", "convtranspose")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_wrong_program_is_seen(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "wrong.py"
            program.write_text("import convtranspose\nconvtranspose.conv_transpose(1, 2, stride=2)\n"
                               "x: int = convtranspose.version()\n")
            done = run("-m", "mypy", "--strict", str(program))
        self.assertIn('"stride"', done.stdout)
        self.assertIn("Incompatible types in assignment", done.stdout)

    def test_stubs(self):
        done = run("-m", "mypy.stubtest", "convtranspose", "--ignore-disjoint-bases", "--concise")
        # The extension's functions and classes are of types of their own; stubtest knows those of Python alone. The provider is
        # no module.
        foreign = ["is not a function", "metaclass differs", "convtranspose._functions._plan is", "libconvtranspose_onnxruntime"]
        if importlib.util.find_spec("torch") is None:  # stubtest imports all modules
            foreign.append("No module named 'torch'")
        lines = done.stdout.splitlines() + done.stderr.splitlines()
        self.assertTrue(any("convtranspose._native.Plan" in line for line in lines), lines)
        self.assertEqual([line for line in lines if not any(words in line for words in foreign)], [])


if __name__ == "__main__":
    unittest.main()
