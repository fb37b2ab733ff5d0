#!/usr/bin/env python3
"""bench/cost/fit.py and collect.py: what they write, and what they refuse, with commands and workers that are played."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

COST = pathlib.Path(__file__).parents[2] / "bench" / "cost"
sys.path.insert(0, str(COST))

import collect  # noqa: E402
import fit  # noqa: E402

LINE = {"cost_profile": {"latency": 4}}
CALIBRATE = f"""#!{sys.executable}
import pathlib, sys
output = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
assert pathlib.Path(f"{{output}}.calibration/times.jsonl").read_text().count("problem") == 2
output.write_text({json.dumps(json.dumps(LINE))} + "\\n")
"""


class Options:
    """Those of fit.py."""

    seconds, worker = 1, "no worker"

    def __init__(self, folder):
        self.output, self.convtranspose = folder / "tuning.jsonl", folder / "calibrate"
        self.convtranspose.write_text(CALIBRATE)
        self.convtranspose.chmod(0o755)


class PlayedWorker:
    """One whose records of floats are of another ISA than the kernels that a plan may take."""

    process = None

    def ask(self, do, **_):
        plan = {"package": "0", "kernels": "0", "cpu": "a CPU", "isa": "avx512", "allowed_isa": "amx", "variant": "fast",
                "candidates": ["fast", "slow"], "cycles": [1, 2]}
        return {"plan": plan, "try": {}, "time": {"results": [{"variant": "fast", "ms": 1.5}]}}[do]


class Fit(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def refusal(self, program, *arguments):
        done = subprocess.run([sys.executable, COST / program, *arguments], capture_output=True, text=True, timeout=30,
                              check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_the_line_is_added(self):
        options = Options(self.folder)
        kept = self.folder / "tuning.jsonl.calibration" / "times.jsonl"
        kept.parent.mkdir()
        for file in (options.output, kept):
            file.write_text("an earlier line\n")
        self.assertEqual(fit.calibrate(options, [{"problem": "a", "isa": "avx2"}] * 2), LINE["cost_profile"])
        self.assertEqual(options.output.read_text(), "an earlier line\n" + json.dumps(LINE) + "\n")
        self.assertEqual(kept.read_text(), "an earlier line\n")

    def test_too_few_layers_are_refused(self):
        times = self.folder / "times.jsonl"
        times.write_text("".join(json.dumps({"problem": "a", "isa": "avx2", "ms": {"a": 1, "b": 2}}) + "\n" for _ in range(2)))
        self.assertIn("2 layers were timed", self.refusal("fit.py", times, "--report", "--worker", "no worker"))

    def test_lines_name_the_isa_whose_kernels_were_timed(self):
        options = argparse.Namespace(measure=None, isa="", factor=4, most=12, each=0.01, alone=True, inner=False)
        self.assertEqual(collect.times_of(PlayedWorker(), "bf16 a", options)["isa"], "amx")

    def test_layers_that_there_are_none_of_are_refused(self):
        refusal = self.refusal("collect.py", self.folder / "times.jsonl", "--most-macs", "1000")
        self.assertIn("--most-macs 1000 must be 500000 at least", refusal)


if __name__ == "__main__":
    unittest.main()
