#!/usr/bin/env python3
"""bench/mca: the loops that are found in a listing, and cycles that can be counted by hand."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "mca"))

import analyse
import cores
import in_order
import loops

LISTING = """
kernel.o:     file format elf64-littleaarch64


Disassembly of section .text.kernel:

0000000000000000 <kernel>:
   0:\tcbz\tw1, 3c <kernel+0x3c>
   4:\tmov\tx9, x2
   8:\tldp\ts1, s2, [x11, #-12]
   c:\tfmla\tv5.4s, v13.4s, v1.s[0]
  10:\tfmla\tv6.4s, v13.4s, v2.s[0]
  14:\tsubs\tx22, x22, #0x1
  18:\tb.ne\t8 <kernel+0x8>  // b.any
  1c:\tldr\tq7, [sp, #16]
  20:\tfmla\tv5.4s, v7.4s, v1.s[0]
  24:\tfmla\tv6.4s, v7.4s, v1.s[0]
  28:\tfmul\tv6.4s, v7.4s, v1.s[0]
  2c:\tfmadd\ts8, s9, s9, s8
  30:\tstr\tq6, [sp, #16]
  34:\tcbnz\tw3, 1c <kernel+0x1c>
  38:\tb.ne\t4 <kernel+0x4>  // b.any
  3c:\tret

0000000000000040 <integer>:
  40:\tsmlal\tv0.4s, v1.4h, v2.4h
  44:\tsmlal2\tv0.4s, v1.8h, v2.h[3]
  48:\tfmla\tv3.4s, v4.4s, v5.4s
  4c:\tb\t40 <integer>
"""


class Listing(unittest.TestCase):
    def setUp(self):
        self.found = [loop for name, code in loops.functions(LISTING).items() for loop in loops.inner_loops(name, code)]

    def test_inner_loops_only(self):
        self.assertEqual([(loop.function, loop.address, len(loop.instructions)) for loop in self.found],
                         [("kernel", 0x8, 5), ("kernel", 0x1C, 7), ("integer", 0x40, 4)])

    def test_multiply_accumulates_of_vectors(self):
        self.assertEqual([dict(loop.kinds) for loop in self.found], [{"fmla": 2}, {"fmla": 2}, {"smlal": 2, "fmla": 1}])

    def test_spills(self):
        self.assertEqual([(loop.on_stack, loop.vector_stores) for loop in self.found], [(0, 0), (2, 1), (0, 0)])

    def test_hottest_are_those_with_most(self):
        self.assertEqual([loop.address for loop in loops.hottest(self.found, "fmla")], [0x8, 0x1C])
        self.assertEqual([loop.address for loop in loops.hottest(self.found, "smlal")], [0x40])
        self.assertEqual(loops.hottest(self.found, "sdot"), [])

    def test_text_for_an_assembler(self):
        self.assertEqual(self.found[0].instructions[-1].text, "b.ne .")
        self.assertEqual(self.found[1].instructions[-1].text, "cbnz w3, .")
        self.assertEqual(self.found[0].instructions[0].text, "ldp s1, s2, [x11, #-12]")


class InOrder(unittest.TestCase):
    def cycles(self, *code):
        return in_order.cycles([text for text, _ in code], [latency for _, latency in code])

    def test_one_vector_operation_a_cycle(self):
        self.assertEqual(self.cycles(*[(f"fmla v{r}.4s, v30.4s, v31.4s", 4) for r in range(8)]), 8)

    def test_narrow_loads_go_along(self):
        code = [("fmla v0.4s, v30.4s, v31.4s", 4), ("ldr d8, [x1], #8", 3), ("fmla v1.4s, v30.4s, v31.4s", 4),
                ("ldr x2, [x1]", 3), ("fmla v2.4s, v30.4s, v31.4s", 4), ("mov v8.d[1], x3", 4),
                ("fmla v3.4s, v30.4s, v31.4s", 4)]
        self.assertEqual(self.cycles(*code), 4)

    def test_wide_loads_go_alone(self):
        accumulates = [(f"fmla v{r}.4s, v30.4s, v31.4s", 4) for r in range(8)]
        self.assertEqual(self.cycles(*accumulates, ("ldp q8, q9, [x1]", 6)), 8 + 4)
        self.assertEqual(self.cycles(*accumulates, ("ldr q8, [x1]", 3)), 8 + 2)

    def test_waits_for_operands(self):
        self.assertEqual(self.cycles(("fmla v0.4s, v30.4s, v31.4s", 4)), 4)
        self.assertEqual(self.cycles(("ldr s1, [x1]", 3), ("fmul v0.4s, v30.4s, v1.s[0]", 4), ("add x1, x1, x2", 3)), 4)


class Names(unittest.TestCase):
    def test_smlal_as_fmla(self):
        self.assertEqual(cores.as_fmla("smlal2 v0.4s, v1.8h, v2.h[7]"), "fmla v0.4s, v1.4s, v2.s[3]")
        self.assertEqual(cores.as_fmla("smlal v0.4s, v1.4h, v2.4h"), "fmla v0.4s, v1.4s, v2.4s")
        self.assertEqual(cores.as_fmla("ldp q0, q1, [x2]"), "ldp q0, q1, [x2]")

    def test_kernels_together(self):
        names = ["ow_vectorized_f32_planar_s1_8x3", "ow_vectorized_f32_planar_s2_8x3", "ow_vectorized_f64_planar_s1_8x3",
                 "ow_vectorized_f64_planar_s2_8x3", "ow_vectorized_f16_planar_s1_8x3", "oc_vectorized_i8_f32_planar_2x4x2"]
        self.assertEqual(list(analyse.together(names)),
                         ["ow_vectorized_{f32,f64}_planar_{s1,s2}_8x3", "ow_vectorized_f16_planar_s1_8x3",
                          "oc_vectorized_i8_f32_planar_2x4x2"])

    def test_kind_by_type(self):
        self.assertEqual([analyse.kind_of(name) for name in ("small_oc_f16_planar_s2x2_1x5", "ow_vectorized_i8_planar_s1_8x3",
                                                             "depthwise_i16_f32_channels_1x4")], ["fmla", "sdot", "smlal"])


if __name__ == "__main__":
    unittest.main()
