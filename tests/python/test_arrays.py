"""Arrays that come in and go out: views, copies, types, and arrays of other libraries."""

import array
import ctypes
import sys
import unittest

import cases
import convtranspose as ct
import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

RNG = np.random.default_rng(3)


def small(shape, dtype=np.float32):
    return RNG.integers(-3, 4, shape).astype(dtype)


class OnlyDlpack:
    """An array of a library that is not numpy: it has nothing but DLPack."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **arguments):
        return self.values.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Views(unittest.TestCase):
    def setUp(self):
        self.w = small((2, 3, 4, 4))
        self.plan = ct.Plan(self.w, x_shape=(1, 2, 4, 5), strides=2, pads=1)
        self.x = small((1, 2, 4, 5))
        self.y = cases.definition(self.x, self.w, strides=[2, 2], pads=[1, 1, 1, 1])

    def test_a_crop_is_read_and_written_where_it_is(self):
        large = np.full((1, 4, 9, 9), np.nan, np.float32)
        x = large[:, 1:3, 2:6, 3:8]
        x[...] = self.x
        around = np.full((1, 5, 12, 16), 99, np.float32)
        out = around[:, 1:4, 2:10, 4:14]
        self.assertIs(self.plan(x, out=out), out)
        np.testing.assert_array_equal(out, self.y)
        out[...] = 99
        self.assertTrue((around == 99).all())

    def test_views_that_the_library_does_not_take_are_copied(self):
        for name, view in (("reversed", self.x[..., ::-1].copy()[..., ::-1]), ("transposed", np.asfortranarray(self.x)),
                           ("every other", np.repeat(self.x, 2, axis=-1)[..., ::2])):
            with self.subTest(name):
                np.testing.assert_array_equal(self.plan(view), self.y)
        broadcast = np.broadcast_to(self.x[:, :1], self.x.shape)
        np.testing.assert_array_equal(self.plan(broadcast), self.plan(np.ascontiguousarray(broadcast)))
        unaligned = np.frombuffer(b"." + self.x.tobytes(), np.uint8)[1:].view(np.float32).reshape(self.x.shape)
        self.assertFalse(unaligned.flags.aligned)
        np.testing.assert_array_equal(self.plan(unaligned), self.y)

    def test_weights_of_any_strides(self):
        for w in (np.asfortranarray(self.w), self.w[::-1].copy()[::-1], np.repeat(self.w, 2, axis=1)[:, ::2]):
            np.testing.assert_array_equal(ct.conv_transpose(self.x, w, strides=2, pads=1), self.y)
            np.testing.assert_array_equal(ct.Plan(w, x_shape=self.x.shape, strides=2, pads=1)(self.x), self.y)

    def test_weights_are_not_referred_to_after_planning(self):
        w = self.w.copy()
        plan = ct.Plan(w, x_shape=self.x.shape, strides=2, pads=1)
        w[...] = np.nan
        np.testing.assert_array_equal(plan(self.x), self.y)

    def test_out_that_cannot_be_written_where_it_is(self):
        base = np.zeros(self.y.shape, np.float32)
        frozen = base.copy()
        frozen.flags.writeable = False
        for out in (base[..., ::-1], np.broadcast_to(base[:, :1], base.shape), frozen, np.asfortranarray(base)):
            with self.assertRaises((ValueError, BufferError)):
                self.plan(self.x, out=out)
        unaligned = np.zeros(4 * base.size + 1, np.uint8)[1:].view(np.float32).reshape(base.shape)
        with self.assertRaisesRegex(ValueError, "aligned"):
            self.plan(self.x, out=unaligned)
        self.assertFalse(base.any())
        packed = np.zeros(base.shape, [("y", "f4"), ("other", "i1")])
        with self.assertRaisesRegex(ValueError, "no multiples of its elements"):
            self.plan(self.x, out=packed["y"])
        self.assertFalse(packed["other"].any())

    def test_out_that_shares_memory(self):
        w = small((4, 4, 3, 3))
        memory = small((1, 8, 40, 40))
        x, plan = memory[:, :4], ct.Plan(w, x_shape=(1, 4, 40, 40), pads=1, residual=True)
        for name, out, residual in (("residual", memory[:, 4:], memory[:, 4:]), ("x", x, memory[:, 4:]),
                                    ("part of x", memory[:, 2:6], memory[:, 4:])):
            with self.subTest(name):
                before = memory.copy()
                y = cases.definition(x, w, pads=[1, 1, 1, 1]) + residual
                self.assertIs(plan(x, residual=residual, out=out), out)
                np.testing.assert_array_equal(out, y)
                memory[...] = before

    def test_strides_that_reach_too_far(self):
        plan = ct.Plan(self.w, x_shape=(3, 2, 4, 5), strides=2, pads=1)
        x, y = small((3, 2, 4, 5)), np.zeros((3, 3, 8, 10), np.float32)
        for stride in (2**62, 2**60, 2**40):
            with self.subTest(stride):
                with self.assertRaisesRegex(ValueError, "x spans"):
                    plan(as_strided(x, x.shape, (stride, *x.strides[1:])), out=y)
                with self.assertRaisesRegex(ValueError, "^out spans"):
                    plan(x, out=as_strided(y, y.shape, (stride, *y.strides[1:])))
        self.assertFalse(y.any())

    def test_an_axis_of_one_position_has_any_stride(self):
        turned = self.x[..., ::-1].copy()[..., ::-1]  # which is copied
        for x in (self.x, turned):
            for stride in (-2**63, -4, 0, 2**63 - 4):
                with self.subTest(stride, strides=x.strides):
                    view = as_strided(x, x.shape, (stride, *x.strides[1:]))
                    np.testing.assert_array_equal(self.plan(view), self.y)
                    np.testing.assert_array_equal(self.plan(OnlyDlpack(view)), self.y)

    def test_no_positions(self):
        with self.assertRaises(ValueError):
            ct.conv_transpose(small((1, 2, 1)), small((2, 3, 1)), pads=1)
        y = ct.conv_transpose(small((0, 2, 4, 5)), self.w, strides=2, pads=1)
        self.assertEqual(y.shape, (0, 3, 8, 10))


class Others(unittest.TestCase):
    def setUp(self):
        self.x, self.w = small((1, 2, 6)), small((2, 3, 3))
        self.y = cases.definition(self.x, self.w)

    def test_dlpack(self):
        np.testing.assert_array_equal(ct.conv_transpose(OnlyDlpack(self.x), OnlyDlpack(self.w)), self.y)
        out = np.zeros(self.y.shape, np.float32)
        wrapped = OnlyDlpack(out)
        self.assertIs(ct.conv_transpose(OnlyDlpack(self.x), self.w, out=wrapped), wrapped)
        np.testing.assert_array_equal(out, self.y)
        view = np.repeat(self.x, 2, axis=-1)[..., ::2]
        np.testing.assert_array_equal(ct.conv_transpose(OnlyDlpack(view), self.w), self.y)

    def test_views_that_are_to_be_negated(self):
        class Negated(OnlyDlpack):
            """A view of PyTorch's that stands for the negative of its memory."""

            def is_neg(self):
                return True

            def resolve_neg(self):
                return OnlyDlpack(-self.values)

        np.testing.assert_array_equal(ct.conv_transpose(Negated(self.x), Negated(self.w)), self.y)
        with self.assertRaisesRegex(ValueError, "out is a view that negates"):
            ct.conv_transpose(self.x, self.w, out=Negated(np.zeros(self.y.shape, np.float32)))

    def test_buffers(self):
        flat = array.array("f", self.x.ravel().tolist())
        x = memoryview(flat).cast("B").cast("f", self.x.shape)
        y = ct.conv_transpose(x, self.w)
        self.assertIsInstance(y, np.ndarray)
        np.testing.assert_array_equal(y, self.y)

    def test_arrays_of_ctypes(self):
        # Their buffers tell no strides.
        x = np.ctypeslib.as_ctypes(self.x.copy())
        np.testing.assert_array_equal(ct.conv_transpose(x, np.ctypeslib.as_ctypes(self.w.copy())), self.y)
        out = np.ctypeslib.as_ctypes(np.zeros(self.y.shape, np.float32))
        ct.conv_transpose(x, self.w, out=out)
        np.testing.assert_array_equal(np.ctypeslib.as_array(out), self.y)

    def test_bfloat16(self):
        x, w = self.x.astype(ml_dtypes.bfloat16), self.w.astype(ml_dtypes.bfloat16)
        out = np.zeros(self.y.shape, ml_dtypes.bfloat16)
        self.assertIs(ct.Plan(w, x_shape=x.shape)(x, out=out), out)
        np.testing.assert_array_equal(out.astype(np.float64), self.y)
        np.testing.assert_array_equal(ct.Plan(w, x_shape=x.shape)(np.repeat(x, 2, axis=-1)[..., ::2]).astype(float), self.y)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        x, w = torch.from_numpy(self.x), torch.from_numpy(self.w)
        y = ct.conv_transpose(x, w)
        self.assertIsInstance(y, torch.Tensor)
        np.testing.assert_array_equal(y.numpy(), self.y)
        y = ct.conv_transpose(x.to(torch.bfloat16), w.to(torch.bfloat16))
        self.assertEqual(y.dtype, torch.bfloat16)
        np.testing.assert_array_equal(y.to(torch.float64).numpy(), self.y)
        y = ct.Plan(torch.zeros(0, 3, 3), torch.ones(3), x_shape=(1, 0, 6))(torch.zeros(1, 0, 6))
        self.assertTrue(torch.equal(y, torch.ones(1, 3, 8)))
        with self.assertRaisesRegex((RuntimeError, BufferError, ValueError), "grad"):
            ct.conv_transpose(x.requires_grad_(), w)

    def test_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("jax is not installed")
        y = ct.conv_transpose(jnp.asarray(self.x), jnp.asarray(self.w))
        self.assertIsInstance(y, jnp.ndarray)
        np.testing.assert_array_equal(np.asarray(y), self.y)


class WrongArrays(unittest.TestCase):
    def setUp(self):
        self.x, self.w = small((1, 2, 6)), small((2, 3, 3))

    def test_not_an_array(self):
        for wrong in ([1.0, 2.0], None, 3, "x", object()):
            with self.subTest(wrong=wrong), self.assertRaises(TypeError) as caught:
                ct.conv_transpose(wrong, self.w)
            self.assertRegex(str(caught.exception), "^x is a .*, not an array")

    def test_no_dlpack(self):
        class Broken:
            def __dlpack__(self):
                return 3

        with self.assertRaisesRegex(TypeError, "__dlpack__.* gives no array"):
            ct.conv_transpose(Broken(), self.w)

    def test_a_capsule(self):
        plan, capsule = ct.Plan(self.w, x_shape=self.x.shape), self.x.__dlpack__()
        np.testing.assert_array_equal(plan(capsule, out=np.empty(plan.y_shape, np.float32)), plan(self.x))
        with self.assertRaisesRegex(TypeError, "^x is a capsule that .* was taken before"):
            plan(capsule, out=np.empty(plan.y_shape, np.float32))

    def test_memory_of_a_device(self):
        """A plan for the CPU refuses it, and any plan refuses an x that shares it with out."""
        class OnDevice(OnlyDlpack):
            def __dlpack__(self, **arguments):
                capsule = self.values.__dlpack__()
                pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
                pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
                place = pointer_of(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)  # behind the pointer to the elements
                (ctypes.c_int32 * 2).from_address(place)[:] = [2, 1]  # the second device of CUDA
                return capsule

        plan = ct.Plan(self.w, x_shape=self.x.shape)
        out = np.zeros(plan.y_shape, np.float32)
        for arguments, words in (((OnDevice(self.x),), "^x is in the memory of cuda:1, but the plan is for cpu$"),
                                 ((self.x,), "^out is in the memory of cuda:1, but the plan is for cpu$")):
            with self.subTest(words), self.assertRaisesRegex(ValueError, words):
                plan(*arguments, out=out if "^x" in words else OnDevice(out))

    def test_a_buffer_that_fails_is_no_wrong_type(self):
        class Deleted:
            dtype = np.dtype(np.float32)

            def __buffer__(self, flags):
                raise BufferError("it was deleted")

        if sys.version_info < (3, 12):
            self.skipTest("classes of Python have no buffers before 3.12")
        with self.assertRaisesRegex(BufferError, "it was deleted"):
            ct.conv_transpose(Deleted(), self.w)

    def test_types(self):
        for dtype in (np.int32, np.int64, np.complex64, np.bool_, ">f4", np.longdouble):
            with self.subTest(dtype=dtype), self.assertRaises((TypeError, ValueError)):
                ct.conv_transpose(self.x.astype(dtype), self.w.astype(dtype))
        for dtype, name in ((np.int64, "int64"), (np.uint16, "uint16"), (np.bool_, "bool"),
                            (np.complex64, "elements of the format 'Zf'")):
            with self.subTest(dtype=dtype), self.assertRaisesRegex(TypeError, f"^x holds {name}; the types are float16"):
                ct.conv_transpose(self.x.astype(dtype), self.w)
        with self.assertRaisesRegex(TypeError, "^x holds datetime64"):
            ct.conv_transpose(np.zeros((1, 2, 6), "M8[s]"), self.w)
        with self.assertRaisesRegex(TypeError, "^x holds elements of the format '>f', which have another order of bytes"):
            ct.conv_transpose(self.x.astype(">f4"), self.w)
        with self.assertRaisesRegex(ValueError, "^w_dtype = f64 must be f32, f16, bf16, u8 or s8, as x is f32"):
            ct.conv_transpose(self.x, self.w.astype(np.float64))
        with self.assertRaisesRegex(ValueError, "^b holds float64"):
            ct.Plan(self.w, np.zeros(3), x_shape=self.x.shape)
        with self.assertRaises((TypeError, ValueError)):
            ct.conv_transpose(np.array([["a"]], object), self.w)

    def test_views_of_another_shape_are_refused_before_they_are_copied(self):
        def view(*shape):  # of one number, however many elements it has
            return np.broadcast_to(np.float32(1), shape)

        plan = ct.Plan(None, x_shape=(1, 2, 6), w_shape=(2, 3, 3), x_dtype="float32", bias=True, residual=True)
        arrays = {"x": self.x, "w": self.w, "b": view(3), "residual": view(1, 3, 8)}
        plan(**arrays)
        for name, wrong, words in (("x", view(1, 2**38, 6), r"x has shape \(1, 274877906944, 6\), the plan has \(1, 2, 6\)"),
                                   ("w", view(2, 3, 2**38), r"w has shape \(2, 3, 274877906944\)"),
                                   ("b", view(2**38), r"b has shape \(274877906944\), the plan has \(3\)"),
                                   ("residual", view(2**38, 3, 8), r"residual has shape \(274877906944, 3, 8\)")):
            with self.subTest(name), self.assertRaisesRegex(ValueError, words):
                plan(**{**arrays, name: wrong})
        with self.assertRaisesRegex(ValueError, r"b_shape = \(274877906944\) must be \(3\)"):
            ct.Plan(self.w, view(2**38), x_shape=(1, 2, 6))
        with self.assertRaisesRegex(ValueError, r"w_shape\[0\] = 274877906944 does not match|w_shape\[0\] = 274877906944 exceeds"):
            ct.Plan(view(2**38, 3, 3), x_shape=(1, 2, 6))
        with self.assertRaisesRegex(ValueError, "w spans .* elements"):
            ct.Plan(view(2, 2**30, 3), x_shape=(1, 2, 6))
        with self.assertRaisesRegex(ValueError, "^out has shape"):
            plan(**arrays, out=np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (1, 3, 2**38), (0, 0, 0)))

    def test_masks_are_not_passed_over(self):
        masked = np.ma.masked_array(self.x, self.x > 0)
        for call in (lambda: ct.conv_transpose(masked, self.w), lambda: ct.Plan(self.w, x_shape=self.x.shape)(masked),
                     lambda: ct.Plan(np.ma.masked_array(self.w), x_shape=self.x.shape)):
            with self.assertRaisesRegex(TypeError, "^[xw] is a MaskedArray, whose mask would not be looked at"):
                call()
        ct.conv_transpose(masked.filled(0), self.w)

    def test_shapes(self):
        plan = ct.Plan(self.w, x_shape=self.x.shape)
        for x in (self.x[0], self.x[..., :5], self.x[:, :1], self.x.reshape(1, 2, 6, 1)):
            with self.subTest(shape=x.shape), self.assertRaisesRegex(ValueError, "x"):
                plan(x)
        with self.assertRaises(ValueError):
            plan(self.x, out=np.zeros((1, 3, 9), np.float32))
        with self.assertRaises(ValueError):
            plan(self.x, out=np.zeros((1, 3, 8), np.float64))


if __name__ == "__main__":
    unittest.main()
