#!/usr/bin/env python3
"""bench/table.py: what a table says of plans of ours, and of peers that were capped, could not be, or are missing."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench"))

import table

VERSIONS = {"convtranspose": "v", "onednn": "1", "ort": "2", "python": "3"}


class Contests(unittest.TestCase):
    def test_nothing_is_said_of_a_run_with_all_peers_and_no_isa(self):
        self.assertEqual(table.contest_lines({"versions": VERSIONS, "isa": None, "capped": [], "missing": {}}), [])

    def test_results_of_before_say_nothing(self):
        self.assertEqual(table.contest_lines({"versions": VERSIONS}), [])

    def test_other_plans_than_those_by_estimate_are_named(self):
        (line,) = table.contest_lines({"versions": VERSIONS, "plans": "measured"})
        self.assertEqual(line, "plans of convtranspose: measured")

    def test_missing_peers_are_named_with_the_reason(self):
        (line,) = table.contest_lines({"versions": VERSIONS, "missing": {"mnn": "MNN is not installed: no wheel"}})
        self.assertEqual(line, "mnn did not take part: MNN is not installed: no wheel")

    def test_peers_are_told_apart_by_whether_they_were_capped(self):
        capped, free = table.contest_lines({"versions": VERSIONS, "isa": "avx2", "capped": ["onednn"], "missing": {}})
        self.assertEqual(capped, "all with avx2: convtranspose, onednn")
        self.assertTrue(free.endswith("never the best peer: ort"), free)

    def test_without_a_peer_that_can_be_capped_that_is_said(self):
        versions = {"convtranspose": "v", "ort": "2", "python": "3"}
        capped, _ = table.contest_lines({"versions": versions, "isa": "avx2", "capped": [], "missing": {}})
        self.assertEqual(capped, "all with avx2: convtranspose, and no peer")


if __name__ == "__main__":
    unittest.main()
