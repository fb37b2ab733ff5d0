#!/usr/bin/env python3
"""bench/benchdnn.py: problems of oneDNN's benchdnn as its documentation describes them (knobs_desc.md, driver_conv.md)."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import benchdnn


def figures(text, **more):
    layer = benchdnn.parse(text, **more)
    return [layer[key] for key in ("n", "g", "c", "spatial", "m", "k", "s", "p", "op", "d")]


class Problems(unittest.TestCase):
    def test_all_entries_in_the_canonical_order(self):
        self.assertEqual(
            figures('g2mb3_ic4id5ih6iw7_oc8od10oh13ow31_kd2kh3kw4_sd2sh2sw4_pd0ph0pw0_dd0dh0dw1_n"name"'),
            [3, 2, 4, [5, 6, 7], 8, [2, 3, 4], [2, 2, 4], [0, 0, 0], [0, 0, 0], [1, 1, 2]])

    def test_defaults_are_one_group_a_batch_of_two_strides_of_one_and_no_dilation(self):
        self.assertEqual(figures("ic16ih5iw7oc3kh3kw3"), [2, 1, 16, [5, 7], 3, [3, 3], [1, 1], [0, 0], [0, 0], [1, 1]])

    def test_underscores_and_order_say_nothing(self):
        self.assertEqual(figures("mb1_ic16_oc32_ih8_kh4_sh2_ph1"), figures("sh2kh4oc32ph1ic16mb1ih8"))

    def test_height_stands_for_the_width_that_is_missing(self):
        self.assertEqual(figures("ic1ih8oc1kh4sh2ph1dh1"), figures("ic1ih8iw8oc1kh4kw4sh2sw2ph1pw1dh1dw1"))

    def test_depth_stands_for_height_and_width(self):
        self.assertEqual(figures("ic1id8oc1kd4sd2pd1"), figures("ic1id8ih8iw8oc1kd4kh4kw4sd2sh2sw2pd1ph1pw1"))

    def test_width_alone_is_one_axis(self):
        self.assertEqual(figures("mb50ic256iw28oc512ow56kw2sw2pw0"), [50, 1, 256, [28], 512, [2], [2], [0], [0], [1]])

    def test_entries_of_an_axis_that_is_not_there_say_nothing(self):
        self.assertEqual(figures("ic1oc1sh1dh0ph0_iw9kw3pw1"), figures("ic1oc1iw9kw3pw1"))

    def test_padding_follows_from_the_output(self):
        self.assertEqual(figures("ic1oc1ih8oh16kh4sh2"), figures("ic1oc1ih8kh4sh2ph1"))

    def test_output_that_is_longer_has_output_padding(self):
        self.assertEqual(figures("g1mb96ic64ih112oc3oh224kh7sh2ph3")[7:9], [[3, 3], [1, 1]])

    def test_batch_can_be_set(self):
        self.assertEqual(figures("mb256ic1oc1ih8kh3", mb=4)[0], 4)

    def test_name_is_the_rest_with_or_without_quotes(self):
        self.assertEqual(benchdnn.parse('ic1oc1ih8kh3n"alexnet:deconv1"')["name"], "alexnet_deconv1")
        self.assertEqual(benchdnn.parse("ic1oc1ih8kh3_nunet_3d")["name"], "unet_3d")

    def test_what_no_layer_can_say_is_told(self):
        for text in ("ic1oc1iw5ow4kw1", "ic1oc1iw5ow9kw3pw1", "ic8iw5oc8ow2kw3pw3dw2"):
            with self.subTest(text), self.assertRaises(benchdnn.Unsayable):
                benchdnn.parse(text)

    def test_other_text_is_an_error(self):
        for text in ("ic1oc1", "ic1oc1ih8", "ic1oc1ih8kh3x4", "ic1oc1id8iw8kd3kw3"):
            with self.subTest(text), self.assertRaises(ValueError):
                benchdnn.parse(text)


class Lists(unittest.TestCase):
    def read(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                pathlib.Path(folder, name).write_text(text)
            return benchdnn.read(pathlib.Path(folder, "all"))

    def test_comments_options_and_other_lists(self):
        layers, reasons = self.read(
            all='# a comment\n\n--reset --dt=f32,f16 --dir=FWD_B\n--mb=5 --batch=more\n--mb=0\nic1oc2ih3kh1n"b"\n',
            more='#ic1oc1ih3kh1\n--stag=axb ic1oc1ih3kh1n"a"\n')
        self.assertEqual([(layer["name"], layer["n"]) for layer in layers], [("a", 5), ("b", 2)])
        self.assertEqual(reasons, {})

    def test_the_same_problem_is_read_once_and_the_same_name_gets_a_number(self):
        layers, _ = self.read(all='ic1oc1ih3kh1n"a"\nic1oc1ih3kh1n"b"\nic1oc1ih4kh1n"a"\n')
        self.assertEqual([(layer["name"], layer["spatial"]) for layer in layers], [("a", [3, 3]), ("a 2", [4, 4])])

    def test_problems_that_are_left_out_are_counted(self):
        layers, reasons = self.read(all="ic1oc1iw5ow4kw1\nic1oc1iw5kw1\n")
        self.assertEqual((len(layers), sum(map(len, reasons.values()))), (1, 1))


if __name__ == "__main__":
    unittest.main()
