"""The package as it is installed: `cmake --install --component python`, which is what a wheel holds."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

C_PROGRAM = """
#include <convtranspose/convtranspose.h>
#include <stdio.h>
int main(void) { return puts(convt_version()) < 0; }
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.prefix = pathlib.Path(folder.name)
        subprocess.run([os.environ["CMAKE_COMMAND"], "--install", os.environ["BUILD_DIR"], "--component", "python", "--prefix",
                        cls.prefix], check=True, stdout=subprocess.DEVNULL)
        cls.environment = {**os.environ, "PYTHONPATH": str(cls.prefix)}

    def python(self, *arguments):
        done = subprocess.run([sys.executable, *arguments], env=self.environment, cwd=self.prefix, capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def test_import(self):
        said = self.python("-c", "import convtranspose as ct, numpy as np\n"
                           "print(ct.__file__, ct.conv_transpose(np.ones((1, 1, 2), np.float32), np.ones((1, 1, 3), np.float32)))")
        self.assertEqual(said, f"{self.prefix}/convtranspose/__init__.py [[[1. 2. 2. 1.]]]\n")

    def test_c_program(self):
        include, library = self.python(
            "-c", "import convtranspose as ct; print(ct.get_include()); print(ct.get_library_dir())").splitlines()
        (self.prefix / "program.c").write_text(C_PROGRAM)
        subprocess.run([os.environ["CC"], "program.c", f"-I{include}", f"-L{library}", "-lconvtranspose", f"-Wl,-rpath,{library}",
                        "-o", "program"], cwd=self.prefix, check=True)
        said = subprocess.run([self.prefix / "program"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said, self.python("-c", "import convtranspose; print(convtranspose.version())"))

    def test_command_line(self):
        graph = helper.make_graph([helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="up", strides=[2, 2])], "g",
                                  [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 9, 9))],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                                  [numpy_helper.from_array(np.ones((8, 4, 3, 3), np.float32), "w")])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)]), self.prefix / "model.onnx")
        self.assertIn("ConvTranspose 'up'", self.python("-m", "convtranspose", "explain", "model.onnx"))
        self.assertIn("GFLOP/s", self.python("-m", "convtranspose", "bench", "--min-time", "0.01", "model.onnx"))
        tuned = self.python("-m", "convtranspose", "tune", "--budget", "3", "--output", "tuned", "model.onnx")
        self.assertIn("up", tuned)
        self.assertTrue((self.prefix / "tuned").exists(), tuned)


if __name__ == "__main__":
    unittest.main()
