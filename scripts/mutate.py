#!/usr/bin/env python3
"""Makes small mistakes in a scratch copy of the sources, one at a time, and lists those that no test notices.

    scripts/mutate.py --count 40 --seed 7                          in runtime/
    scripts/mutate.py tools/npy.cpp --labels cli                   in these files only, seen by these tests
    scripts/mutate.py --list --count 200                           what would be tried

Each mistake is built and given to the tests of each label in turn, until one fails. Mistakes that do not compile are left out,
and so are those that the compiler makes the same code of. Those that survive are for a person to judge. Run by hand: a mistake
takes about a minute.

The scratch copy (build/mutants, or --scratch) is made of the files that git tracks and of build/, which must be finished
(scripts/build.sh); later runs use it again. Its commands see it in this repository's place, by a mount namespace of Linux, so
that what was built here fits there, and little is built anew.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By folder: the labels that see its mistakes, the quick ones first.
LABELS = {
    "runtime": ["geometry", "conformance", "random", "post_ops", "plan", "nonfinite", "process", "variants"],
    "tools": ["cli", "tune"],
    "generators": ["algorithm", "kernels"],
}
BUILD_TIMEOUT, TEST_TIMEOUT = 3600, 1800  # seconds

NAME = r"[A-Za-z_][\w.]*(?:->\w+|\(\)|\[\w+\])*"
CALL = r"(?<=\w\()(?<!min\()(?<!max\()(?<!swap\()"  # of what gives something else for swapped arguments
# kind: (what is replaced, by what)
PATTERNS = [
    ("comparison", r"(?<=[\w)\]]) <= (?=[\w(])", " < "),
    ("comparison", r"(?<=[\w)\]]) < (?=[\w(])", " <= "),
    ("comparison", r"(?<=[\w)\]]) >= (?=[\w(])", " > "),
    ("comparison", r"(?<=[\w)\]]) > (?=[\w(])", " >= "),
    ("comparison", r" == ", " != "),
    ("comparison", r" != ", " == "),
    ("condition", r" && ", " || "),
    ("condition", r" \|\| ", " && "),
    ("condition", r"(?<=if \()!(?=\w)", ""),
    ("bound", r"std::min\b", "std::max"),
    ("bound", r"std::max\b", "std::min"),
    ("bound", r"\bceil_div\b", "floor_div"),
    ("bound", r" \+ 1\b(?!\.)", ""),
    ("bound", r" - 1\b(?!\.)", ""),
    ("index", r"\[0\]", "[1]"),
    ("index", r"(?<!\[)\[(?!this\b)([a-z_]\w*)\](?!\])", r"[\1 ? \1 - 1 : 0]"),
    ("index", r"\.front\(\)", ".back()"),
    ("index", r"\.back\(\)", ".front()"),
    ("term", rf" \+ {NAME}(?=[;,)])", ""),
    ("term", rf" - {NAME}(?=[;,)])", ""),
    ("term", rf" \* {NAME}(?=[;,)])", ""),
    ("term", r" \+= ", " = "),
    ("arguments", rf"{CALL}({NAME}), ({NAME})(?=\))", r"\2, \1"),
    ("arguments", rf"{CALL}({NAME}), ({NAME})(?=, )", r"\2, \1"),
    ("status", r"\breturn overflow\(", "return invalid("),
    ("status", r"\bCONVT_(OUT_OF_MEMORY|UNSUPPORTED|OVERFLOW)\b", "CONVT_INTERNAL"),
    ("status", r"if \(!status\) return status;", ""),
    ("status", r"\breturn true;", "return false;"),
    ("status", r"\breturn false;", "return true;"),
]

Mutant = collections.namedtuple("Mutant", "file line kind old new")


def code_lines(text):
    """(index, line) of lines that are code: no comments, directives, includes, or lines that only declare."""
    in_comment = False
    for i, line in enumerate(text.split("\n")):
        stripped = line.strip()
        if in_comment or stripped.startswith("/*"):
            in_comment = "*/" not in stripped
            continue
        if stripped and not stripped.startswith(("//", "#", "namespace", "using", "template", "static_assert")):
            yield i, line


def mutants_of(path, text):
    for i, line in code_lines(text):
        # Neither comments nor what is said to people.
        quiet = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: "\0" * len(m[0]), line.split("//")[0])
        for kind, pattern, replacement in PATTERNS:
            for match in re.finditer(pattern, quiet):
                new = line[:match.start()] + match.expand(replacement) + line[match.end():]
                if "\0" not in match.expand(replacement) and new != line:
                    yield Mutant(path, i, kind, line, new)


def choose(mutants, count, seed):
    """As many of each kind as of any other, while there are some, in an order that the seed gives."""
    by_kind = collections.defaultdict(list)
    for mutant in mutants:
        by_kind[mutant.kind].append(mutant)
    source = random.Random(seed)
    for kind in sorted(by_kind):
        source.shuffle(by_kind[kind])
    chosen = []
    while len(chosen) < count and any(by_kind.values()):
        for kind in sorted(by_kind):
            if by_kind[kind]:
                chosen.append(by_kind[kind].pop())
    return chosen[:count]


def told(mutant):
    return f"{mutant.file}:{mutant.line + 1}: {mutant.kind}\n    {mutant.old.strip()}\n    {mutant.new.strip()}"


class Scratch:
    # Puts $1 in the place of $2. If memory runs out, a mistake is the first that the system ends.
    ENTER = 'mount --bind "$1" "$2" && cd "$2" && shift 2 && echo 1000 >/proc/self/oom_score_adj && exec "$@"'

    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs
        self.timeouts, self.originals = {}, {}  # by label; by file, its objects without a mistake
        if not (folder / "build/build.ninja").exists():
            self.make()
        # The scratch copy follows this repository, in case it was left with a mistake, or the repository went on.
        for file in self.tracked():
            source, target = ROOT / file, folder / file
            if source.is_file() and (not target.exists() or source.read_bytes() != target.read_bytes()):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)  # newer than what was built of it

    @staticmethod
    def tracked():
        files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
        return files.splitlines()

    def make(self):
        if not (ROOT / "build/build.ninja").exists():
            sys.exit("there is no build to begin with: run scripts/build.sh")
        print(f"copying this repository and its build to {self.folder}", flush=True)
        for file in self.tracked():
            (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, self.folder / file)
        left_out = ("build.ninja", "mutants", "fuzz", "log", "torch-venv", "lint-venv")
        parts = [part for part in (ROOT / "build").iterdir() if part.name not in left_out and part.resolve() != self.folder]
        (self.folder / "build").mkdir(exist_ok=True)
        for part in [*parts, ROOT / "build/build.ninja"]:  # the one that says that all is there comes last
            subprocess.run(["cp", "-a", "--reflink=auto", part, self.folder / "build"], check=True)

    def run(self, command, timeout):
        """"ok", "failed" or "timed out", and the output. What it started ends with it."""
        namespace = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])
        process = subprocess.Popen([*namespace, "sh", "-c", self.ENTER, "sh", self.folder, ROOT, *command], cwd="/",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
        try:
            output, _ = process.communicate(timeout=timeout)
            return ("ok" if process.returncode == 0 else "failed"), output
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            return "timed out", output
        except BaseException:  # this program ends
            os.killpg(process.pid, signal.SIGKILL)
            raise

    def program(self, label):
        """The one that holds all tests of a label; None: there are more, or other tests."""
        program = pathlib.Path("build/bin") / f"{label}_test"
        return program if (self.folder / program).exists() and label not in ("cli", "tune", "kernels") else None

    def compile(self, label):
        program = self.program(label)
        only = [program.name] if program else []
        return self.run(["build/venv/bin/ninja", "-C", "build", f"-j{self.jobs}", *only], BUILD_TIMEOUT)

    def test(self, label):
        """A program is run by itself, which takes far less than a process for each test."""
        timeout = self.timeouts.get(label, TEST_TIMEOUT)
        if program := self.program(label):
            return self.run([program, "--gtest_fail_fast", "--gtest_brief=1"], timeout)
        return self.run(["build/venv/bin/ctest", "--test-dir", "build", "-L", f"^{label}$", "--stop-on-failure",
                         f"-j{self.jobs}", "--output-on-failure", "--timeout", "120"], timeout)

    def begin(self, labels):
        """Builds what the labels need, and sees that they pass without a mistake, and how long that takes."""
        for label in labels:
            for step in (self.compile, self.test):
                started = time.monotonic()
                result, output = step(label)
                if result != "ok":
                    sys.exit(f"{output}\n{label} {result} without any mistake")
            took = time.monotonic() - started
            self.timeouts[label] = 60 + 10 * took
            print(f"{label}: {took:.1f} s", flush=True)

    def objects(self, file):
        """The objects that were compiled of a file, by path."""
        return {path: path.read_bytes() for path in self.folder.glob(f"build/{file.split('/')[0]}/CMakeFiles/*.dir/**/*.o")
                if f"{path}".endswith(f"/{file.split('/', 1)[1]}.o")}

    def attempt(self, mutant, labels):
        """"survived", "does not compile", "is the same code", or how it was caught."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        lines = original.split("\n")
        assert lines[mutant.line] == mutant.old
        if mutant.file not in self.originals:
            self.originals[mutant.file] = self.objects(mutant.file)
        lines[mutant.line] = mutant.new
        path.write_text("\n".join(lines), encoding="utf-8")
        try:
            for label in labels:
                result, output = self.compile(label)
                if result != "ok":
                    return "does not compile"
                objects = self.originals[mutant.file]
                if objects and all(path.read_bytes() == code for path, code in objects.items()):
                    return "is the same code"
                result, output = self.test(label)
                if result != "ok":
                    failed = re.search(r"(?m)^\[  FAILED  \] ([^\s,]+)|^\s*\d+ - (\S+) \(", output)
                    name = f"{label}, {failed[1] or failed[2]}" if failed else f"{label}, which ended"
                    return f"caught by {name}" + (" (time)" if result == "timed out" else "")
            return "survived"
        finally:
            path.write_text(original, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="of runtime/, tools/ or generators/ (default: all of runtime/)")
    parser.add_argument("--count", type=int, default=20, help="mistakes that compile (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds make other mistakes (default 1)")
    parser.add_argument("--labels", help="of ctest, separated by commas, in this order (default: by folder)")
    parser.add_argument("--exclude", default="cost|cpu_name|explain|fltused|no_|gpu/",
                        help="files that are left out, as a regular expression: what only estimates, or is not built here")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build/mutants", help="folder (default build/mutants)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="at a time (default: one for each CPU)")
    parser.add_argument("--list", action="store_true", help="only print the mistakes")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # so that what was changed is put back

    files = options.files or [str(path.relative_to(ROOT)) for path in sorted((ROOT / "runtime").rglob("*.cpp"))]
    all_mutants = []
    for file in files:
        if file.split("/")[0] not in LABELS or not (ROOT / file).is_file():
            parser.error(f"{file} is not a file of {', '.join(LABELS)}")
        if not options.files and re.search(options.exclude, file):
            continue
        all_mutants += mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))
    # More than are asked for, as some do not compile.
    chosen = choose(all_mutants, 3 * options.count, options.seed)
    if options.list:
        for mutant in chosen[:options.count]:
            print(told(mutant))
        return 0

    def labels_of(file):
        return options.labels.split(",") if options.labels else LABELS[file.split("/")[0]]

    scratch = Scratch(options.scratch.resolve(), options.jobs)
    scratch.begin(dict.fromkeys(label for mutant in chosen for label in labels_of(mutant.file)))
    survivors, tried, caught = [], 0, 0
    try:
        while tried < options.count and chosen:
            # File by file, so that what is put back is compiled together with the next mistake.
            batch, chosen = chosen[:options.count - tried], chosen[options.count - tried:]
            for mutant in sorted(batch, key=lambda mutant: mutant.file):
                started = time.monotonic()
                result = scratch.attempt(mutant, labels_of(mutant.file))
                print(f"{told(mutant)}\n    {result} ({time.monotonic() - started:.0f} s)", flush=True)
                tried += result == "survived" or result.startswith("caught")
                caught += result.startswith("caught")
                if result == "survived":
                    survivors.append(mutant)
    finally:
        print(f"\n{caught} of {tried} caught; survivors:")
        for mutant in survivors:
            print(told(mutant))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
