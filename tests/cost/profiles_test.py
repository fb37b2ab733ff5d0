#!/usr/bin/env python3
"""runtime/cost/profiles.py: the profiles that ship are read, and files that break a rule are refused by name."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "runtime" / "cost"))
import profiles

SHIPPED = pathlib.Path(profiles.__file__).parent / "profiles"


class Profiles(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="profiles_test_"))
        self.addCleanup(shutil.rmtree, self.folder)
        for path in SHIPPED.glob("*.json"):
            shutil.copy(path, self.folder)

    def refusal(self, **changes):
        profile = {"core": "a core", "fitted_to": "nothing", "matches": {"isa": "amx"}, "fields": {}, **changes}
        (self.folder / "new.json").write_text(json.dumps({key: value for key, value in profile.items() if value is not None}))
        with self.assertRaises(profiles.ProfileError) as refused:
            profiles.in_order(profiles.read(self.folder)[1])
        return str(refused.exception)

    def test_shipped_profiles_are_in_order(self):
        names = profiles.in_order(profiles.read(self.folder)[1])
        self.assertEqual(names[-1], "generic")
        self.assertEqual(names[0], "zen4")

    def test_conditions(self):
        self.assertIn("new.json: matches: vendor = 'amd' is not one of intel, other", self.refusal(matches={"vendor": "amd"}))
        self.assertIn("isa = 'avx1024' is not one of", self.refusal(matches={"isa": "avx1024"}))
        self.assertIn("there is no condition 'caches'", self.refusal(matches={"caches": "large"}))
        self.assertIn("may match the same CPU", self.refusal(matches={"isa": "avx2"}))

    def test_bases(self):
        self.assertIn("new.json: based_on: there is no profile 'nope'; there are ", self.refusal(based_on="nope"))
        self.assertIn("new.json: based_on: it is based on itself: new on new", self.refusal(based_on="new"))
        shipped = json.loads((self.folder / "zen3.json").read_text())
        (self.folder / "zen3.json").write_text(json.dumps({**shipped, "based_on": "new"}))
        self.assertRegex(self.refusal(based_on="zen3"), "it is based on itself: (new on zen3 on new|zen3 on new on zen3)")
        (self.folder / "generic.json").unlink()
        self.assertIn("there is no generic.json", self.refusal())

    def test_what_it_says(self):
        (self.folder / "new.json").write_text(json.dumps({"core": "a core", "fitted_to": "nothing", "fields": {}}))
        said = subprocess.run([sys.executable, profiles.__file__, "--profiles", self.folder, "--output", self.folder / "out"],
                              capture_output=True, text=True, check=False)
        self.assertEqual((said.returncode, said.stderr), (1, f"{self.folder}: new.json has no 'matches'\n"))

    def test_heads_and_fields(self):
        self.assertIn("new.json has no 'matches'", self.refusal(matches=None))
        self.assertIn("new.json has no 'core'", self.refusal(core=None))
        self.assertIn("there is no 'date' in a profile", self.refusal(date="today"))
        self.assertIn("there is no field 'speed'", self.refusal(fields={"speed": 1}))
        self.assertIn("latency = -1 is not from", self.refusal(fields={"latency": -1}))


if __name__ == "__main__":
    unittest.main()
