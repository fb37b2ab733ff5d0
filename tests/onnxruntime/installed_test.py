"""The provider as `cmake --install --component onnxruntime` leaves it, registered by its path from Python and from C++."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto
from options_test import in_a_process
from support import TestCase, model, node, plain, setUpModule  # noqa: F401

HEADERS = os.environ.get("ONNXRUNTIME_INCLUDE_DIR")


class Installed(TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.prefix = cls.folder / "prefix"
        subprocess.run([os.environ["CMAKE_COMMAND"], "--install", os.environ["BUILD_DIR"], "--component", "onnxruntime", "--prefix",
                        cls.prefix], check=True, stdout=subprocess.DEVNULL)
        cls.library = next(cls.prefix.glob("lib*/**/libconvtranspose_onnxruntime.so"))
        weights = np.random.default_rng(1).standard_normal((2, 3, 2, 2)).astype(np.float32)
        proto = model([node("ConvTranspose", "x w", "y", name="up", strides=[2, 2])], {"x": (TensorProto.FLOAT, [1, 2, 3, 3])},
                      {"y": (TensorProto.FLOAT, None)}, {"w": weights})
        cls.model = cls.folder / "model.onnx"
        onnx.save(proto, cls.model)
        cls.y = plain(proto).run(None, {"x": np.ones((1, 2, 3, 3), np.float32)})[0]

    def test_nothing_else_is_installed(self):
        names = [path.name for path in self.prefix.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertEqual([name for name in names if not name.startswith("libconvtranspose")], [])
        self.assertLessEqual(len(names), 2, names)  # the provider, and the shared library where one was built

    def test_from_python(self):
        code = f"""if True:
            import numpy as np, onnxruntime as ort
            ort.register_execution_provider_library("ours", "{self.library}")
            options = ort.SessionOptions()
            devices = [device for device in ort.get_ep_devices() if device.ep_name == "ConvTransposeExecutionProvider"]
            options.add_provider_for_devices(devices, {{"explain": "1"}})
            session = ort.InferenceSession("{self.model}", options)
            y = session.run(None, {{"x": np.ones((1, 2, 3, 3), np.float32)}})[0]
            np.save("{self.folder / 'y.npy'}", y)
        """
        status, text = in_a_process(code)
        self.assertEqual(status, 0, text)
        self.assertIn("takes ConvTranspose 'up'", text)
        self.assert_close(np.load(self.folder / "y.npy"), self.y, 1e-6)

    @unittest.skipUnless(HEADERS, "no folder of onnxruntime_c_api.h is given to CMake (ONNXRUNTIME_INCLUDE_DIR)")
    def test_from_cpp(self):
        program = self.folder / "register"
        subprocess.run([os.environ["CXX"], "-std=c++17", "-Wall", "-Wextra", "-Werror", f"-isystem{HEADERS}",
                        Path(__file__).parent / "register.cpp", "-o", program, "-ldl"], check=True)
        # The library that the wheel brings; any other of the version would do.
        runtime = next((Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.*"))
        done = subprocess.run([program, runtime, self.library, self.model], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("takes ConvTranspose 'up'", done.stderr)
        self.assert_close(np.float32(done.stdout.split()).reshape(self.y.shape), self.y, 1e-5)


if __name__ == "__main__":
    unittest.main()
