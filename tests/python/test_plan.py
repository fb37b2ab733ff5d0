"""Plans: what they say, share and refuse, threads, forks and the end of the interpreter."""

import concurrent.futures
import copy
import os
import pickle
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

import cases
import convtranspose as ct
import numpy as np

RNG = np.random.default_rng(5)


def small(shape, dtype=np.float32):
    return RNG.integers(-3, 4, shape).astype(dtype)


class Plans(unittest.TestCase):
    def setUp(self):
        self.w, self.b = small((8, 6, 4, 4)), small(6)
        self.plan = ct.Plan(self.w, self.b, x_shape=(2, 8, 7, 9), strides=2, pads=1, threads=2)

    def test_what_it_says(self):
        plan = self.plan
        self.assertEqual(plan.x_shape, (2, 8, 7, 9))
        self.assertEqual(plan.y_shape, (2, 6, 14, 18))
        self.assertEqual(plan.y_shape, ct.infer_shape((2, 8, 7, 9), self.w.shape, strides=2, pads=1))
        self.assertEqual((plan.x_dtype, plan.y_dtype, plan.device, plan.threads), ("float32", "float32", "cpu", 2))
        self.assertIn(plan.isa, ct.isas())
        self.assertGreater(plan.macs, 0)
        self.assertGreaterEqual(plan.packed_bytes, 4 * self.w.size)
        self.assertEqual(plan.algorithm, "direct")
        self.assertIn(plan.variant, plan.explain())
        self.assertTrue(plan.candidates())
        self.assertIn(plan.problem, repr(plan))
        self.assertIn("x_shape", ct.Plan.__init__.__doc__)

    @unittest.skipUnless(hasattr(os, "sched_getaffinity"), "the system has no affinity")
    def test_threads_are_counted_by_the_library(self):
        # It knows quotas of control groups too, which Python does not tell.
        with unittest.mock.patch("os.sched_getaffinity", lambda _: set(range(1000))):
            plan = ct.Plan(self.w, x_shape=(2, 8, 7, 9))
        self.assertLessEqual(plan.threads, len(os.sched_getaffinity(0)))

    def test_reshape_shares_weights(self):
        for shape in ((1, 8, 3, 3), (3, 8, 12, 5)):
            x = small(shape)
            wanted = cases.definition(x, self.w, self.b, strides=[2, 2], pads=[1, 1, 1, 1])
            np.testing.assert_array_equal(self.plan.reshape(shape)(x), wanted)
        reshaped = self.plan.reshape([1, 8, 3, 3])
        del self.plan
        self.assertEqual(reshaped(small((1, 8, 3, 3))).shape, (1, 6, 6, 6))
        with self.assertRaisesRegex(ValueError, "7"):
            reshaped.reshape((1, 7, 3, 3))

    def test_every_candidate(self):
        x = small(self.plan.x_shape)
        wanted = self.plan(x)
        ran = 0
        for name in self.plan.candidates():
            try:
                plan = ct.Plan(self.w, self.b, x_shape=x.shape, strides=2, pads=1, variant=name)
            except NotImplementedError:
                continue  # an algorithm may turn out not to be able to
            ran += 1
            np.testing.assert_array_equal(plan(x), wanted)
        self.assertGreater(ran, 2)

    def test_weights_with_each_call(self):
        plan = ct.Plan(None, w_shape=self.w.shape, x_shape=(1, 8, 5, 5), x_dtype="float32", bias=True)
        x = small((1, 8, 5, 5))
        np.testing.assert_array_equal(plan(x, w=self.w, b=self.b), cases.definition(x, self.w, self.b))
        with self.assertRaises(ValueError):
            plan(x)
        with self.assertRaises(ValueError):
            plan(x, w=self.w)

    def test_copies_and_pickles(self):
        self.assertIs(copy.copy(self.plan), self.plan)
        self.assertIs(copy.deepcopy(self.plan), self.plan)
        with self.assertRaisesRegex(TypeError, "cannot be pickled"):
            pickle.dumps(self.plan)

    def test_tuning_records(self):
        with self.assertRaisesRegex(ValueError, "line 1"):
            ct.Tuning("nonsense\n")
        with self.assertRaisesRegex(NotImplementedError, r'^isa "z80" is not built in: isas\(\) and'):
            ct.Plan(self.w, x_shape=(1, 8, 5, 5), isa="z80")
        plan = ct.Plan(self.w, x_shape=(1, 8, 5, 5), tuning=ct.Tuning(""))
        self.assertEqual(plan(small((1, 8, 5, 5))).shape, (1, 6, 8, 8))

    def test_measuring(self):
        x = small((1, 8, 7, 9))
        for measure in (True, 3):
            plan = ct.Plan(self.w, x_shape=x.shape, threads=1, measure=measure)
            self.assertIn("measured to be the fastest of ", plan.explain())
            np.testing.assert_array_equal(plan(x), cases.definition(x, self.w))
            again = ct.Plan(self.w, x_shape=x.shape, threads=1, tuning=ct.Tuning(plan.record))
            self.assertEqual((again.variant, again.record), (plan.variant, plan.record))
        for options in ({}, {"measure": False}, {"measure": np.False_}):
            self.assertNotIn("measured", ct.Plan(self.w, x_shape=x.shape, threads=1, **options).explain())
        np.testing.assert_array_equal(ct.conv_transpose(x, self.w, measure=True), cases.definition(x, self.w))

    def test_wrong_arguments(self):
        shape = (1, 8, 5, 5)
        for error, words, arguments in ((ValueError, "strides.*0", {"strides": [0, 1]}),
                                        (ValueError, "3", {"strides": [1, 2, 3]}),
                                        (TypeError, "strides must be an integer or a sequence .*, not str", {"strides": "2"}),
                                        (TypeError, "pads must be .* not float", {"pads": [1.5] * 4}),
                                        (TypeError, "pads must be .* not list", {"pads": np.ones((2, 2), int)}),
                                        (ValueError, "more than 64 bits", {"dilations": 2**64}),
                                        (ValueError, "FULL", {"auto_pad": "FULL"}), (TypeError, "auto_pad", {"auto_pad": 1}),
                                        (ValueError, "auto_pad is 'VALID' and more behind a NUL", {"auto_pad": "VALID\0x"}),
                                        (ValueError, "isa is .* NUL", {"isa": ct.isas()[0] + "\0"}),
                                        (ValueError, "variant is .* NUL", {"variant": "col2im\0x"}),
                                        (ValueError, "device is .* NUL", {"device": "cpu\0x"}),
                                        (ValueError, "activation", {"activation": "relu\0x"}),
                                        (ValueError, "surrogate", {"auto_pad": "\ud800"}),
                                        (ValueError, "surrogate", {"activation": "\ud800"}),
                                        (ValueError, "surrogate", {"x_dtype": "\ud800"}),
                                        (ValueError, "device is ':0'", {"device": ":0"}),
                                        (ValueError, "dtype = s32 is not one of", {"x_dtype": "int32"}),
                                        (ValueError, "layout", {"layout": "nchw\0x"}),
                                        (ValueError, "type", {"x_dtype": "float32\0x"}),
                                        (ValueError, "layout is 'chwn'", {"layout": "chwn"}),
                                        (ValueError, "activation is 'gelu'", {"activation": "gelu"}),
                                        (ValueError, "leaky_relu", {"activation": "leaky_relu"}),
                                        (TypeError, "activation must be", {"activation": 3}),
                                        (ValueError, "activation holds an integer that is too large for a float",
                                         {"activation": ("leaky_relu", 10**400)}),
                                        (TypeError, "^group must be an integer or an array of one, not float$", {"group": 1.0}),
                                        (TypeError, "^opset must be an integer or an array of one, not str$", {"opset": "22"}),
                                        (ValueError, "^opset is 1099511627776, which is not", {"opset": 2**40}),
                                        (TypeError, "^layout must be 'nchw' or 'nhwc' .*, not int$", {"layout": 1}),
                                        *((TypeError, f"^{name} must be True or False, not int$", {name: 1})
                                          for name in ("bias", "quantizes_x", "residual", "winograd", "sums_in_f16")),
                                        (TypeError, "^tuning must be a Tuning or None, not str$", {"tuning": "text"}),
                                        (NotImplementedError, "sse9", {"isa": "sse9"}),
                                        (NotImplementedError, "fastest", {"variant": "fastest"}),
                                        (ValueError, "device is 'cuda:x'", {"device": "cuda:x"}),
                                        (NotImplementedError, "tpu", {"device": "tpu"}), (ValueError, "5000", {"threads": 5000}),
                                        (TypeError, "threads", {"threads": "two"}),
                                        (ValueError, "measure must be .* at least 1", {"measure": 0}),
                                        (TypeError, "measure", {"measure": "yes"}), (ValueError, "group.*3", {"group": 3}),
                                        (ValueError, "there is no type 'int4'", {"x_dtype": "int4"}),
                                        (TypeError, "w_scale is missing", {"x_dtype": "uint8", "x_scale": 1.0})):
            with self.subTest(**arguments), self.assertRaisesRegex(error, words):
                ct.Plan(self.w, x_shape=shape, **arguments)
        for call, words in ((lambda: ct.Plan(self.w, x_shape=None), "^x_shape is missing$"),
                            (lambda: ct.infer_shape(None, self.w.shape), "^x_shape is missing$"),
                            (lambda: ct.infer_shape(shape, None), "^w_shape is missing$"),
                            (lambda: ct.infer_shape(shape, self.w.shape, group=1.0), "^group must be an integer"),
                            (lambda: ct.infer_shape(shape, self.w.shape, layout=1), "^layout must be"),
                            (lambda: ct.Tuning(3), "^text must be a string, not int$")):
            with self.assertRaisesRegex(TypeError, words):
                call()
        ct.Plan(self.w, x_shape=shape, winograd=np.True_, group=np.int64(1), opset=np.array([22]))
        with self.assertRaisesRegex(TypeError, "b was given without w"):
            ct.Plan(None, self.b, x_shape=shape)
        for channels in (2**61, 2**62, 2**63 - 1):
            with self.assertRaisesRegex(ValueError, "w_shape.1. = .* exceeds"):
                ct.Plan(None, x_shape=shape, w_shape=(8, channels, 3, 3), group=4, bias=True, x_dtype="float32")


class Threads(unittest.TestCase):
    def test_calls_at_once(self):
        w = small((16, 16, 3, 3))
        plan = ct.Plan(w, x_shape=(1, 16, 20, 20), strides=2, threads=2)
        xs = [small((1, 16, 20, 20)) for _ in range(8)]
        wanted = [cases.definition(x, w, strides=[2, 2]) for x in xs]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(5):
                for y, right in zip(pool.map(plan, xs), wanted):
                    np.testing.assert_array_equal(y, right)
                for y, right in zip(pool.map(lambda x: ct.conv_transpose(x, w, strides=2), xs), wanted):
                    np.testing.assert_array_equal(y, right)


class Processes(unittest.TestCase):
    """Programs that end or fork while there are plans: nothing is said, and nothing hangs."""

    def run_program(self, text):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", textwrap.dedent(text)], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_plans_at_the_end(self):
        self.run_program("""
            import convtranspose as ct, numpy as np
            x, w = np.ones((1, 8, 9, 9), np.float32), np.ones((8, 8, 3, 3), np.float32)
            plan = ct.Plan(w, x_shape=x.shape, threads=2)
            plan(x)
            ct.conv_transpose(x, w, threads=2)
        """)

    def test_a_thread_runs_at_the_end(self):
        self.run_program("""
            import threading
            import convtranspose as ct, numpy as np
            x, w = np.ones((1, 64, 64, 64), np.float32), np.ones((64, 64, 3, 3), np.float32)
            plan = ct.Plan(w, x_shape=x.shape, threads=2)
            def forever():
                while True:
                    plan(x)
            threading.Thread(target=forever, daemon=True).start()
            plan(x)
        """)

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork here")
    def test_fork(self):
        self.run_program("""
            import multiprocessing
            import convtranspose as ct, numpy as np
            x, w = np.ones((1, 32, 32, 32), np.float32), np.ones((32, 32, 3, 3), np.float32)
            plan = ct.Plan(w, x_shape=x.shape, threads=2)
            right = plan(x)
            def child(i):
                return all(np.array_equal(plan(x), right) for _ in range(5)) and np.array_equal(ct.conv_transpose(x, w), right)
            with multiprocessing.get_context("fork").Pool(3) as pool:
                assert all(pool.map(child, range(6)))
            assert np.array_equal(plan(x), right)
        """)

    @unittest.skipIf("asan" in os.environ.get("LD_PRELOAD", ""), "the address sanitizer keeps what is freed for a while")
    def test_memory_does_not_grow(self):
        self.run_program("""
            import resource
            import convtranspose as ct, numpy as np
            x, w = np.ones((1, 4, 8, 8), np.float32), np.ones((4, 4, 3, 3), np.float32)
            def cycle(count):
                for i in range(count):
                    plan = ct.Plan(w, x_shape=x.shape)
                    plan(x, out=plan(x[:, ::-1][:, ::-1]))
                    plan.reshape((1, 4, 5, 5)).explain()
                    ct.conv_transpose(x, w[::-1], pads=[i % 2] * 4)
                    try:
                        plan(x[0])
                    except ValueError:
                        pass
            cycle(300)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            cycle(1500)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2000
        """)


if __name__ == "__main__":
    unittest.main()
