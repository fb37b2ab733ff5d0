#!/usr/bin/env python3
"""The order of the sources (docs/architecture.md): which files include which, and how long a file and a function may be."""
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RUNTIME = ROOT / "runtime"
# The rooms of runtime/, the top floor first. Each includes only rooms below it.
ROOMS = ["api", "gpu", "plan", "algorithms", "direct", "selection", "cost", "kernels", "cpu", "problem", "base"]
# The headers of a room that others include. All others are private to it.
PUBLIC = {
    "gpu": ["device_plan.h"],
    "plan": ["explain.h", "problem_plan.h"],
    "algorithms": ["algorithm.h", "layer_plan.h"],
    "direct": ["copy_box.h", "direct_plan.h", "operands.h"],
    "selection": ["candidates.h"],
    "cost": ["cost.h"],
    "kernels": ["halide_buffer.h", "kernel_tables.h", "packed_weights.h", "post_ops.h", "tuning.h", "variant.h"],
    "cpu": ["cost_profile.h", "cpu.h"],
    "problem": ["axis_plan.h", "geometry.h", "quantization.h", "spatial_problem.h"],
    "base": ["allocator.h", "division.h", "error.h", "float_mode.h", "half.h", "number.h", "once.h", "parallel.h", "shape.h",
             "usable_cpus.h"],
}
# Folders that every room may include; the build makes the last from data of a room (runtime/cost/profiles.py).
OTHERS = ["convtranspose", "kernel_contract", "generated"]
# The folders in which an include may also be a path from there.
LIBRARIES = {"runtime": ["runtime", "runtime/include"], "generators": ["generators", "schedules", "runtime/include"],
             "schedules": ["generators", "schedules"], "kernel_contract": ["runtime/include"], "tools": ["runtime/include"],
             "tests": ["tests", "runtime/include"], "bench": ["runtime/include"], "bindings": ["runtime/include"]}
# The folders whose files may name another one of their own folder by its bare name.
BARE = {"tests", "bench", "bindings"}
# Projects of their own, which see the installed package and what they generate.
PROJECTS = ["tests/package/", "tests/tune/two_libraries/"]
MOST_FILES = 20  # of a folder of runtime/
MOST_LINES = 500  # of a file
MOST_LINES_OF_FUNCTION = 80
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)


def files_of(*folders):
    """The sources of C and C++ in some folders of the repository: pairs of path and text."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".h", ".hpp", ".c", ".cpp") and not name.startswith(tuple(PROJECTS)):
                # Text that the program writes is no code of the program.
                yield name, RAW_STRING.sub(lambda m: 'R"()"' + "\n" * m[0].count("\n"), path.read_text(encoding="utf-8"))


def sources():
    for name, text in files_of("runtime"):
        if not name.startswith("runtime/include/"):
            yield name.removeprefix("runtime/"), text


def long_blocks(text):
    """The blocks that are too long and neither a class nor a table: pairs of first line and length. By the layout of clang-format,
    a block ends at a line that begins with a brace, and begins at the last line before it that is indented as much."""
    last = {}  # the line that was seen last of each indentation
    for number, line in enumerate(text.split("\n")):
        code = line.lstrip(" ")
        if not code or code.startswith(("#", "//")):
            continue
        indentation = len(line) - len(code)
        begin, head = last.get(indentation, (number, ""))
        if (code.startswith("}") and number - begin + 1 > MOST_LINES_OF_FUNCTION and not head.endswith("= {")
                and not re.match(r"(template<.*> )?(class|struct|union|enum|namespace|extern) ", head)):
            yield head, number - begin + 1
        last[indentation] = number, code


class Rooms(unittest.TestCase):
    def test_every_source_is_in_a_room(self):
        for name, _ in sources():
            self.assertIn(name.split("/")[0], ROOMS, f"runtime/{name} is in no room")

    def test_no_room_is_crowded(self):
        files = collections.Counter(name.rsplit("/", 1)[0] for name, _ in sources())
        for folder, count in files.items():
            self.assertLessEqual(count, MOST_FILES, f"runtime/{folder} has {count} files")
        self.assertEqual(set(ROOMS), {folder.split("/")[0] for folder in files})

    def test_includes_lead_downwards(self):
        used = {room: set() for room in ROOMS}
        for name, text in sources():
            room = name.split("/")[0]
            for include in INCLUDE.findall(text):
                other, _, header = include.partition("/")
                self.assertIn(other, [*ROOMS, *OTHERS], f"runtime/{name} includes {include}, which is of no room")
                if other in OTHERS or other == room:
                    continue
                self.assertLess(ROOMS.index(room), ROOMS.index(other),
                                f"runtime/{name} includes {include}, of a room above its own")
                self.assertIn(header, PUBLIC.get(other, []), f"runtime/{name} includes {include}, which is private to {other}/")
                used[other].add(header)
        for room, headers in used.items():
            self.assertEqual(headers, set(PUBLIC.get(room, [])), f"headers of {room}/ that other rooms include")

    def test_the_contract_includes_neither_halide_nor_the_runtime(self):
        for path in sorted((ROOT / "kernel_contract").glob("*")):
            for include in re.findall(r'^\s*#\s*include\s+[<"]([^>"]+)', path.read_text(encoding="utf-8"), re.MULTILINE):
                allowed = include.startswith(("kernel_contract/", "convtranspose/")) or not set("/.") & set(include)
                self.assertTrue(allowed, f"kernel_contract/{path.name} includes {include}")


class Sources(unittest.TestCase):
    def test_includes_are_paths_from_a_root(self):
        """CONTRIBUTING.md has the rule: no include in quotes depends on a search path but those to a few roots."""
        for name, text in files_of(*LIBRARIES):
            top, folder = name.split("/")[0], name.rsplit("/", 1)[0]
            roots = [ROOT / root for root in LIBRARIES[top]]
            for include in INCLUDE.findall(text):
                if include.startswith("generated/"):  # the build makes it
                    continue
                found = any((root / include).is_file() for root in (roots if "/" not in include else [ROOT, *roots]))
                if top in BARE and "/" not in include:
                    found = (ROOT / folder / include).is_file()
                elif top == "runtime":
                    found = found and "/" in include
                self.assertTrue(found, f'{name} includes "{include}", which is no path from a root of {top}/')

    def test_no_file_or_function_is_long(self):
        for name, text in files_of(*LIBRARIES):
            self.assertLessEqual(text.count("\n"), MOST_LINES, f"{name} is too long")
            if not name.startswith("tests/"):
                self.assertEqual(list(long_blocks(text)), [], f"{name} has functions of more than {MOST_LINES_OF_FUNCTION} lines")

    def test_what_is_long_is_found(self):
        def function(lines, head="int f() {"):
            return f"{head}\n" + "    g();\n" * (lines - 2) + "}\n"

        self.assertEqual(list(long_blocks(function(MOST_LINES_OF_FUNCTION))), [])
        self.assertEqual(list(long_blocks(function(MOST_LINES_OF_FUNCTION + 1))), [("int f() {", MOST_LINES_OF_FUNCTION + 1)])
        self.assertEqual(list(long_blocks(function(200, "class C {"))), [])
        self.assertEqual(list(long_blocks(function(200, "constexpr int kTable[] = {"))), [])


if __name__ == "__main__":
    sys.exit(unittest.main())
