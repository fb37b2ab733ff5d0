"""Sessions are made and dropped in any order, from any thread, and leave nothing behind."""
import ctypes
import gc
import subprocess
import sys
import threading
import unittest
from pathlib import Path

import convtranspose.onnxruntime as ct
import numpy as np
from onnx import TensorProto
from options_test import in_a_process, up
from support import TestCase, model, node, ours, plain, setUpModule  # noqa: F401

SESSIONS, WARM_UP, MOST_GROWTH = 1000, 200, 3 << 20


def resident_bytes():
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the system does not say how much memory the process has")


class Lifecycle(TestCase):
    def test_a_thousand_sessions(self):
        """Memory does not grow. A leak of one packed layer a session, 200 KiB, would be 160 MiB."""
        weights = self.draw((32, 48, 4, 4))
        proto = model([node("ConvTranspose", "x w", "c", strides=[2, 2]), node("Relu", "c", "y")],
                      {"x": (TensorProto.FLOAT, [1, 32, "h", 4])}, {"y": (TensorProto.FLOAT, None)}, {"w": weights})
        x = self.draw((1, 32, 3, 4))
        y = plain(proto).run(None, {"x": x})[0]
        before = 0
        for i in range(SESSIONS):
            if i == WARM_UP:
                gc.collect()
                before = resident_bytes()
            session = ours(proto, session_threads=1)
            if i % 100 == 0:
                self.assert_close(session.run(None, {"x": x})[0], y, 1e-5)
        del session
        gc.collect()
        self.assertLess(resident_bytes() - before, MOST_GROWTH)

    def test_sessions_of_many_threads_in_any_order(self):
        proto, x = up(), {"x": self.draw((1, 8, 12, 12))}
        y = plain(proto).run(None, x)[0]
        ct.register()
        kept, failures = [], []

        def work(number):
            try:
                sessions = [ours(proto) for _ in range(4)]
                for session in sessions[::-1 if number % 2 else 1]:
                    np.testing.assert_allclose(session.run(None, x)[0], y, rtol=0, atol=1e-4)
                kept.append(sessions[number % 4]) # others go with the thread
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        for session in kept[::2] + kept[1::2]: # whose threads have ended
            self.assert_close(session.run(None, x)[0], y, 1e-5)

    def test_registering_from_many_threads(self):
        code = """if True:
            import threading, convtranspose.onnxruntime as ct, onnxruntime as ort
            threads = [threading.Thread(target=ct.register) for _ in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert sum(device.ep_name == ct.PROVIDER for device in ort.get_ep_devices()) == 1
        """
        self.assertEqual(in_a_process(code), (0, ""))

    def test_registered_by_other_means_before(self):
        code = """if True:
            import convtranspose.onnxruntime as ct, onnxruntime as ort, options_test
            ort.register_execution_provider_library("mine", ct.get_library_path())
            options_test.ours(options_test.up())
            try:
                ort.register_execution_provider_library("mine", ct.get_library_path())
            except Exception as error:
                print("refused" if "mine" in str(error) else error)
        """
        self.assertEqual(in_a_process(code), (0, "refused\n"))

    def test_unregistering_and_registering_again(self):
        code = """if True:
            import convtranspose.onnxruntime as ct, onnxruntime as ort, options_test
            for _ in range(3):
                session = options_test.ours(options_test.up())
                del session
                ort.unregister_execution_provider_library(ct.PROVIDER)
        """
        self.assertEqual(in_a_process(code), (0, ""))

    def test_the_process_ends_with_sessions(self):
        code = """if True:
            import numpy as np, options_test
            sessions = [options_test.ours(options_test.up()) for _ in range(3)]
            sessions[1].run(None, {"x": np.zeros((1, 8, 12, 12), np.float32)})
        """
        self.assertEqual(in_a_process(code), (0, ""))

    def test_a_missing_library(self):
        code = """if True:
            import convtranspose.onnxruntime as ct
            ct.__file__ = "/nowhere/onnxruntime.py"
            try:
                ct.register()
            except FileNotFoundError as error:
                print(error)
        """
        status, text = in_a_process(code)
        self.assertEqual(status, 0, text)
        self.assertIn("is missing: this package was built without the execution provider", text)

    def test_an_old_onnx_runtime(self):
        for version in ("1.23.0", "1.9.1", "1.22.2+cu12"):
            code = f"""if True:
                import convtranspose.onnxruntime as ct, onnxruntime as ort
                ort.__version__ = "{version}"
                try:
                    ct.register()
                except RuntimeError as error:
                    print(error)
            """
            wanted = f"the execution provider needs onnxruntime 1.23.1 or later; {version} is installed\n"
            self.assertEqual(in_a_process(code), (0, wanted))

    def test_the_library_in_an_old_onnx_runtime(self):
        """For programs that register it themselves: a table of functions as ONNX Runtime 1.22 has it, which knows no version 23."""
        statuses = []

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p)
        def create_status(code, message):
            statuses.append((code, message.decode()))
            return 1

        table = (ctypes.c_void_p * 1)(ctypes.cast(create_status, ctypes.c_void_p))
        get_api = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)(lambda n: ctypes.addressof(table) if n < 23 else None)
        get_version = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: ctypes.cast(version, ctypes.c_void_p).value)
        version = ctypes.create_string_buffer(b"1.22.2")
        base = (ctypes.c_void_p * 2)(ctypes.cast(get_api, ctypes.c_void_p), ctypes.cast(get_version, ctypes.c_void_p))
        factories, count = (ctypes.c_void_p * 4)(), ctypes.c_size_t(4)
        create = ctypes.CDLL(ct.get_library_path()).CreateEpFactories
        create.restype = ctypes.c_void_p
        self.assertEqual(create(b"ours", base, None, factories, ctypes.c_size_t(4), ctypes.byref(count)), 1)
        not_implemented = 9  # ORT_NOT_IMPLEMENTED
        self.assertEqual(statuses, [(not_implemented, f"{ct.PROVIDER} needs ONNX Runtime 1.23.1 or later; this is 1.22.2")])
        self.assertEqual((count.value, list(factories)), (0, [None] * 4))

    def test_only_its_entry_points_are_exported(self):
        symbols = subprocess.run(["nm", "-D", "--defined-only", ct.get_library_path()], capture_output=True, text=True,
                                 check=True).stdout.splitlines()
        self.assertEqual(sorted(line.split()[-1] for line in symbols), ["CreateEpFactories", "ReleaseEpFactory"])


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("memory is measured by Linux's means")
    unittest.main()
