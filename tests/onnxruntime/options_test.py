"""Options, bad input, and the messages that they give."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import convtranspose.onnxruntime as ct
import numpy as np
import onnxruntime as ort
from onnx import TensorProto
from support import TestCase, model, node, ours, plain, session_options, setUpModule  # noqa: F401

FLOAT = TensorProto.FLOAT
KNOWN = "dynamic_quantization, explain, fuse, isa, planning, threads, tuning, weights, winograd"


def up(x_shape=(1, 8, 12, 12), **attributes):
    weights = np.random.default_rng(1).standard_normal((8, 16, 4, 4)).astype(np.float32)
    return model([node("ConvTranspose", "x w", "y", name="up", **({"strides": [2, 2]} | attributes))],
                 {"x": (FLOAT, x_shape)}, {"y": (FLOAT, None)}, {"w": weights})


def in_a_process(code):
    """Runs Python code in a process of its own; what it prints."""
    result = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60, check=False,
                            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])})
    return result.returncode, result.stdout + result.stderr


class Options(TestCase):
    def refused(self, message, **options):
        with self.assertRaises(Exception) as caught:
            ours(up(), **options)
        self.assertIn(message, str(caught.exception))

    def test_wrong_ones_are_refused(self):
        self.refused(f"there is no option 'thread', only {KNOWN}", thread=2)
        for value in (0, -1, 4097, "two", ""):
            with self.subTest(threads=value):
                self.refused(f"option threads is '{value}', must be a number from 1 to 4096", threads=value)
        for name in ("dynamic_quantization", "explain", "fuse", "winograd"):
            self.refused(f"option {name} is 'yes', must be 0 or 1", **{name: "yes"})
        self.refused("option planning is 'patient', must be estimate or measure", planning="patient")
        self.refused("option weights is 'f32', must be as_given, f16, bf16 or s8", weights="f32")
        self.refused("option isa is 'avx3', must be one that this CPU runs: ", isa="avx3")
        self.refused("option tuning is '/nowhere/file', must be a file of tuning records", tuning="/nowhere/file")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "broken.jsonl")
            file.write_text("no record\n", encoding="ascii")
            rule = "', must be a file of tuning records: "
            self.refused(f"option tuning is '{file}{rule}line 1 of the tuning records", tuning=file)
            self.refused(f"option tuning is '{folder}{rule}it is no regular file", tuning=folder)
            os.truncate(file, (64 << 20) + 1)
            self.refused(f"option tuning is '{file}{rule}it has more than 67108864 bytes", tuning=file)
            fifo = Path(folder, "fifo")
            os.mkfifo(fifo)
            self.refused(f"option tuning is '{fifo}{rule}it is no regular file", tuning=fifo)

    def test_right_ones_are_taken(self):
        x = {"x": self.draw((1, 8, 12, 12))}
        y = plain(up()).run(None, x)[0]
        for options in [{"threads": 3}, {"winograd": True}, {"winograd": 0}, {"fuse": False}, {"isa": "x86_64"},
                        {"planning": "measure"}]:
            if options.get("isa") and os.uname().machine != "x86_64":
                continue
            with self.subTest(**options):
                self.assert_close(ours(up(), **options).run(None, x)[0], y, 1e-5)

    def test_explain(self):
        code = """if True:
            import numpy as np, options_test
            proto = options_test.up()
            session = options_test.ours(proto, threads=1, isa="x86_64", winograd=1, explain=1, planning="measure")
            bad = options_test.up((1, 8, 70000, 70000))
            options_test.ours(bad, explain=True)
        """
        status, text = in_a_process(code)
        self.assertEqual(status, 0, text)
        self.assertIn("takes ConvTranspose 'up'", text)
        self.assertIn("threads 1; isa x86_64", text)
        self.assertIn("measured to be the fastest of ", text)
        self.assertIn("leaves it to the next provider: ConvTranspose 'up': ", text)

    def test_what_is_left_is_logged(self):
        code = """if True:
            import onnxruntime as ort, options_test, convtranspose.onnxruntime as ct
            ct.session(options_test.up((1, 8, 70000, 70000)), ort.SessionOptions())
        """
        status, text = in_a_process(code)
        self.assertEqual(status, 0, text)
        self.assertRegex(text, "W:onnxruntime:.*leaves it to the next provider: ConvTranspose 'up': .*elements")

    def test_a_wrong_node_fails(self):
        for attributes in ({"output_padding": [2, 0]}, {"group": 0}):
            with self.assertRaises(Exception) as caught:
                ours(up(**attributes))
            # ONNX Runtime's own inference finds a wrong group from 1.32 on.
            self.assertRegex(str(caught.exception), f"ConvTranspose( '|.*InferenceError).*{next(iter(attributes))}")

    def test_a_failing_run_says_why(self):
        """A kernel_shape that contradicts weights which the model does not know beforehand."""
        proto = model([node("ConvTranspose", "x w", "y", name="up", kernel_shape=[3, 3])],
                      {"x": (FLOAT, ["n", "c", "h", "w"]), "w": (FLOAT, ["c", "m", "k", "k"])}, {"y": (FLOAT, None)})
        session = ours(proto)
        right = {"x": self.draw((1, 2, 3, 3)), "w": self.draw((2, 2, 3, 3))}
        for wrong in ({"w": self.draw((2, 2, 4, 4))}, {"x": self.draw((1, 3, 3, 3))}):
            with self.assertRaises(Exception) as caught:
                session.run(None, right | wrong)
            self.assertIn("ConvTranspose 'up': ", str(caught.exception))
            self.assertEqual(session.run(None, right)[0].shape, (1, 2, 5, 5)) # nothing is lost

    def test_options_of_another_session(self):
        options = session_options()
        ct.session(up(), options)
        with self.assertRaises(ValueError) as caught:
            ct.session(up(), options)
        self.assertIn("give each session options of its own", str(caught.exception))

    def test_writing_a_compiled_model_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            options = session_options()
            options.add_session_config_entry("ep.context_enable", "1")
            options.add_session_config_entry("ep.context_file_path", str(Path(folder, "context.onnx")))
            with self.assertRaises(Exception) as caught:
                ct.session(up(), options)
        self.assertIn("ep.context_enable is '1', but this provider has no compiled form", str(caught.exception))

    def test_registering_again_does_nothing(self):
        ct.register()
        ct.register()
        self.assertEqual(sum(device.ep_name == ct.PROVIDER for device in ort.get_ep_devices()), 1)
        self.assertEqual(ct.get_ep_name(), ct.PROVIDER)
        self.assertTrue(Path(ct.get_library_path()).is_file())

    def test_providers_by_name(self):
        if tuple(map(int, ort.__version__.split(".")[:2])) < (1, 25):
            self.skipTest("ONNX Runtime knows such providers by name from 1.25 on")
        ct.register()
        x = {"x": self.draw((1, 8, 12, 12))}
        providers = [(ct.PROVIDER, {"threads": "2"}), "CPUExecutionProvider"]
        session = ort.InferenceSession(up().SerializeToString(), session_options(), providers=providers)
        self.assertEqual(session.get_providers()[0], ct.PROVIDER)
        self.assert_close(session.run(None, x)[0], plain(up()).run(None, x)[0], 1e-5)
        with self.assertRaises(Exception) as caught:
            ort.InferenceSession(up().SerializeToString(), session_options(), enable_fallback=False,
                                 providers=[(ct.PROVIDER, {"treads": "2"}), "CPUExecutionProvider"])
        self.assertIn(KNOWN, str(caught.exception))

    def test_models_by_path_and_bytes(self):
        x = {"x": self.draw((1, 8, 12, 12))}
        y = plain(up()).run(None, x)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "net.onnx")
            path.write_bytes(up().SerializeToString())
            for given in (path, str(path), path.read_bytes(), up()):
                self.assert_close(ct.session(given).run(None, x)[0], y, 1e-5)
            with self.assertRaises(Exception) as caught:
                ct.session(Path(folder, "none.onnx"))
            self.assertIn("none.onnx", str(caught.exception))

    def test_weights_in_a_file_of_their_own(self):
        import onnx
        x = {"x": self.draw((1, 8, 12, 12))}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "net.onnx")
            onnx.save_model(up(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
            self.assert_close(ct.session(path).run(None, x)[0], plain(up()).run(None, x)[0], 1e-5)


if __name__ == "__main__":
    unittest.main()
