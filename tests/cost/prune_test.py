#!/usr/bin/env python3
"""bench/cost/prune.py: which kernels stay, on times that can be reckoned by hand."""
import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "cost"))

import prune

WIDE, NARROW, ANY = "oc_vectorized_f32_planar_2x14", "oc_vectorized_f32_planar_s2_2x4", "oc_vectorized_f32_planar_1x1"
LAST = "oc_vectorized_f32_channels_2x14"
OTHER = "oc_vectorized_f32_channels_2x8"
LAYER = "f32 nchw n1 g1 ic8 oc8 i{} k2 s2 bias"
SIZES = {WIDE: 1000, NARROW: 1000, ANY: 100, LAST: 1000, OTHER: 1000}


def row(i, **ms):
    return {"problem": LAYER.format(i), "ms": {{"wide": WIDE, "narrow": NARROW, "any": ANY}[name]: t for name, t in ms.items()}}


def staying(rows, limits, keep=frozenset()):
    return prune.prune(prune.choices(rows), SIZES, set(keep), limits)


class Names(unittest.TestCase):
    def test_kernels_are_told_from_algorithms(self):
        for name in (WIDE, "small_oc_i16_f32_planar_s2x2_1x4_2s2p0", "amx_b16_channels_2x16x2", "depthwise_bf16_channels_1x1",
                     "oc_vectorized_f32_s8w_channels_4x2"):
            self.assertTrue(prune.is_kernel(name), name)
        for name in ("layout_transpose", "col2im", "copy_f32_planar_1", "reference_f32"):
            self.assertFalse(prune.is_kernel(name), name)

    def test_types_of_layers_and_kernels(self):
        self.assertEqual(prune.types_of(prune.dtype_of("u8 nhwc n1 bias")), {"i8", "i16"})
        self.assertEqual(prune.types_of(prune.dtype_of("s8 nhwc n1 bias yf32" + prune.RUN_TIME)), {"i8_f32", "i16_f32"})
        self.assertEqual(prune.types_of(prune.dtype_of("f16 nchw n1")), {"f16"})
        self.assertEqual(prune.types_of(prune.dtype_of("f32 nchw n1 bias wu8" + prune.RUN_TIME)), {"f32_s8w"})

    def test_lines_of_the_table(self):
        lines = prune.table_lines([WIDE, NARROW, ANY, "small_oc_f32_planar_s2x2_3x2_2s2p0"])
        self.assertEqual(lines["oc_vectorized", "f32", "planar", "0", ""], ["1x1", "2x14"])
        self.assertEqual(lines["small_oc", "f32", "planar", "2x2", "2s2p0"], ["3x2"])


class Pruning(unittest.TestCase):
    def test_a_kernel_that_is_never_the_best_leaves(self):
        left, regrets = staying([row(i, wide=1.0, narrow=1.5, any=3.0) for i in range(20)], prune.Limits(0.0, 0.0, 0.0))
        self.assertEqual(left, {WIDE})
        self.assertEqual(set(regrets.values()), {0.0})

    def test_a_kernel_stays_that_some_layer_needs(self):
        rows = [row(i, wide=1.0, narrow=1.02) for i in range(19)] + [row(19, wide=2.0, narrow=1.0)]
        self.assertEqual(staying(rows, prune.Limits(1.0, 1.0, 0.5))[0], {NARROW})  # 19 layers lose 2%, and none 100%
        self.assertEqual(staying(rows, prune.Limits(0.01, 1.0, 0.5))[0], {WIDE, NARROW})  # 1.9% would be too much on average
        self.assertEqual(staying(rows, prune.Limits(1.0, 0.01, 0.5))[0], {WIDE, NARROW})  # as 2% on all but one in twenty
        self.assertEqual(staying(rows, prune.Limits(1.0, 1.0, 1.0))[0], {NARROW})

    def test_layers_that_are_named_fall_behind_less(self):
        rows = [row(i, wide=1.0, narrow=1.5) for i in range(2)] + [row(i, wide=1.1, narrow=1.0) for i in range(2, 40)]
        self.assertEqual(staying(rows, prune.Limits(1.0, 0.2, 1.0))[0], {NARROW})
        self.assertEqual(staying(rows, prune.Limits(1.0, 0.2, 1.0, named=[LAYER.format(0)]))[0], {WIDE})

    def test_a_kernel_that_is_told_to_stay_does(self):
        self.assertEqual(staying([row(0, wide=1.0, any=9.0)], prune.Limits(0.0, 0.0, 0.0), keep={ANY})[0], {WIDE, ANY})

    def test_a_layer_always_has_a_kernel(self):
        left, regrets = staying([row(0, any=1.0)], prune.Limits(1e9, 1e9, 1e9))
        self.assertEqual(left, {ANY})
        self.assertTrue(all(map(math.isfinite, regrets.values())))

    def test_each_type_is_within_the_limits(self):
        rows = [row(i, wide=1.0, narrow=1.0) for i in range(99)]
        rows.append({"problem": "f16 nchw n1 g1 ic8 oc8 i9 k2 s2", "ms": {WIDE: 1.0, NARROW: 1.3}})
        self.assertEqual(staying(rows, prune.Limits(0.1, 1.0, 1.0))[0], {WIDE})


TRANSPOSED = {"problem": LAYER.format(9), "ms": {"layout_transpose": 1.2, ANY: 3.0}, "inner": {"layout_transpose": [LAST]}}
TWIN = {"problem": LAYER.format(9).replace("nchw", "nhwc"), "ms": {LAST: 1.0, OTHER: 1.1}}


class Algorithms(unittest.TestCase):
    def test_an_algorithm_needs_its_kernel(self):
        self.assertEqual(prune.choices([TRANSPOSED])[LAYER.format(9)], [(1.2, LAST), (3.0, ANY)])

    def test_a_transposition_takes_what_the_other_layout_takes(self):
        found = prune.choices([TRANSPOSED, TWIN])[LAYER.format(9)]
        self.assertEqual([kernel for _, kernel in found], [LAST, OTHER, ANY])
        self.assertAlmostEqual(found[1][0], 1.3)

    def test_no_transposition_without_constant_weights(self):
        self.assertEqual(prune.choices([TRANSPOSED])[LAYER.format(9) + prune.RUN_TIME], [(3.0, ANY)])

    def test_a_kernel_that_was_not_timed_counts_by_its_estimate(self):
        row = {**TRANSPOSED, "cycles": {"layout_transpose": 12e5, ANY: 30e5, WIDE: 25e5}}
        found = prune.choices([row])[LAYER.format(9) + prune.RUN_TIME]
        self.assertEqual([kernel for _, kernel in found], [WIDE, ANY])
        self.assertAlmostEqual(found[0][0], 2.5)

    def test_times_of_a_layer_that_was_timed_twice_are_the_best(self):
        again = {**TRANSPOSED, "ms": {"layout_transpose": 1.4, ANY: 2.0}}
        self.assertEqual(prune.choices([TRANSPOSED, again])[LAYER.format(9)], [(1.2, LAST), (2.0, ANY)])


if __name__ == "__main__":
    unittest.main()
