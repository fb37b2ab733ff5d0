#!/usr/bin/env python3
"""The rooms of runtime/: each has one job, and includes only rooms below it (docs/architecture.md)."""
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNTIME = ROOT / "runtime"
# The top floor first.
ROOMS = ["api", "gpu", "plan", "algorithms", "direct", "selection", "cost", "kernels", "cpu", "problem", "base"]
# Headers that only their own room includes.
PRIVATE = {"base/pool.h", "cost/cost_terms.h", "gpu/device_choice.h", "gpu/driver.h"}
MOST_FILES = 20  # of a folder
MOST_LINES = 500  # of a file
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def sources():
    for path in sorted(RUNTIME.rglob("*")):
        if path.suffix in (".h", ".cpp") and "include" not in path.relative_to(RUNTIME).parts:
            yield path.relative_to(RUNTIME).as_posix(), path.read_text(encoding="utf-8")


class Rooms(unittest.TestCase):
    def test_every_source_is_in_a_room(self):
        for name, _ in sources():
            self.assertIn(name.split("/")[0], ROOMS, f"runtime/{name} is in no room")

    def test_no_room_is_crowded(self):
        files = collections.Counter(name.rsplit("/", 1)[0] for name, _ in sources())
        for folder, count in files.items():
            self.assertLessEqual(count, MOST_FILES, f"runtime/{folder} has {count} files")
        self.assertEqual(set(ROOMS), {folder.split("/")[0] for folder in files})
        for name, text in sources():
            self.assertLessEqual(text.count("\n"), MOST_LINES, f"runtime/{name} is too long")

    def test_includes_lead_downwards(self):
        for name, text in sources():
            room = name.split("/")[0]
            for include in INCLUDE.findall(text):
                if include.startswith("convtranspose/"):
                    self.assertTrue((RUNTIME / "include" / include).is_file(), f"runtime/{name} includes {include}")
                    continue
                if include.startswith("generated/"):  # from data of a room (runtime/cost/profiles.py)
                    continue
                if include.startswith("kernel_contract/"):
                    self.assertTrue((ROOT / include).is_file(), f"runtime/{name} includes {include}")
                    continue
                self.assertTrue((RUNTIME / include).is_file() and "/" in include,
                                f'runtime/{name} includes "{include}", which is not of the form "room/header.h"')
                other = include.split("/")[0]
                self.assertLessEqual(ROOMS.index(room), ROOMS.index(other),
                                     f"runtime/{name} includes {include}, of a room above its own")
                if include in PRIVATE:
                    self.assertEqual(room, other, f"runtime/{name} includes {include}, which only {other}/ may")

    def test_what_is_listed_exists(self):
        for header in PRIVATE:
            self.assertTrue((RUNTIME / header).is_file(), header)

    def test_the_contract_includes_neither_halide_nor_the_runtime(self):
        for path in sorted((ROOT / "kernel_contract").glob("*")):
            for include in re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)', path.read_text(encoding="utf-8"), re.MULTILINE):
                allowed = include.startswith(("kernel_contract/", "convtranspose/")) or not set("/.") & set(include)
                self.assertTrue(allowed, f"kernel_contract/{path.name} includes {include}")


if __name__ == "__main__":
    sys.exit(unittest.main())
