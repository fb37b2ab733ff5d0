#!/usr/bin/env python3
"""Makes small mistakes in a scratch copy of the sources, one at a time, and lists those that no test notices.

    scripts/mutate.py --count 40 --seed 7                          in runtime/
    scripts/mutate.py tools/npy.cpp --labels cli                   in these files only, seen by these tests
    scripts/mutate.py --list --count 200                           what would be tried
    scripts/mutate.py --count 200 --results build/mutants.jsonl    notes each, and goes on, while the sources are the same

Each mistake is built and given to the tests of each label, until one fails: first all tests that take a moment. The others run
at the end, for what is left. Mistakes that do not compile are left out, and so are those that the compiler makes the same code
of; nothing is tried in what only estimates times. Those that survive are for a person to judge. Run by hand: what is caught takes
some 5 seconds of one core, what survives five minutes.

The scratch copy (build/mutants, or --scratch) is made of the files that git tracks and of build/, which must be finished
(scripts/build.sh); later runs use it again. Its commands see it in this repository's place, by a mount namespace of Linux, so
that what was built here fits there, and little is built anew.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# By folder: the labels that see its mistakes, in the order of a round of tests.
LABELS = {
    "runtime": ["golden", "geometry", "conformance", "plan", "units", "random", "post_ops", "process", "nonfinite", "variants"],
    "tools": ["cli", "tune"],
    "generators": ["algorithm", "kernels"],
}
PROGRAMS = {"golden": "explain_layers"}  # slow tests of ctest that need this program alone
STEPS = (0.1, 1, float("inf"))  # the most seconds of a test of the first round, of the second, of the last
# Every fourth of the many problems of nonfinite and variants is enough, after some for each kernel (tests/reference/effort.h).
EFFORT = {"CONVTRANSPOSE_TEST_ONE_IN": "4"}
BATCH = 50  # mistakes that are tried in the order of their files
QUICK, SLOW = [0], range(1, len(STEPS))  # what is tried with each mistake, and at the end with what is left
SURVIVED, SO_FAR = "survived", "survived so far"  # the latter means the quick round alone
STANDS_STILL = 60  # a program that does nothing for so many seconds waits for what never comes

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

FUNCTION = re.compile(r"(?:    )?(?!return |throw )[A-Za-z_][\w:<>,&* ]*[ &*]([\w:]+)\((?!.*;$)")  # not its declaration
# Functions that only estimate times, or only decide by them what is copied or dealt out at a time: no result depends on them.
ESTIMATES = re.compile(r"estimated?|cycles_\w+|parts_of_cost|least_cost|times_as_large|channels_at_once|are_worth_it|"
                       r"amounts|strips_of|give_strips_to_threads|share_strips|prefers_in_place|y_is_far")

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
    function = ""
    for i, line in code_lines(text):
        if match := FUNCTION.match(line):
            function = match[1].split("::")[-1]
        if ESTIMATES.fullmatch(function):
            continue
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


def activity(session):
    """The ticks of CPU that all processes of a session have used, and whether a signal stopped one of them."""
    ticks, is_stopped = 0, False
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
            is_stopped |= fields[0] == "T"
    return ticks, is_stopped


def cpu_seconds_so_far():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Scratch:
    # Puts $1 in the place of $2, for a command of at most $3 seconds of CPU. If memory runs out, a mistake is the first that the
    # system ends.
    ENTER = """mount --bind "$1" "$2" && cd "$2" && ulimit -S -t "$3" && shift 3 && echo 1000 >/proc/self/oom_score_adj &&
               exec "$@\""""

    TIMES = pathlib.Path("build/mutants_times.json")

    def __init__(self, folder, jobs):
        self.folder, self.jobs = folder, jobs
        self.rounds, self.originals = [], {}  # (index of STEPS, label, its tests or None, their seconds); by file, its objects
        if not (folder / "build/build.ninja").exists():
            self.make()
        self.environment = {**os.environ, **EFFORT}
        if lld := shutil.which("ld.lld"):  # links in a third of the time; the compiler looks for its linker there first
            linker = folder / "build/linker/ld"
            linker.parent.mkdir(exist_ok=True)
            linker.unlink(missing_ok=True)
            linker.symlink_to(lld)
            self.environment["COMPILER_PATH"] = str(ROOT / "build/linker")
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

    def run(self, command, cpu_limit="unlimited"):
        """"ok", "failed" or "timed out", and the output. What it started ends with it."""
        namespace = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])
        process = subprocess.Popen([*namespace, "sh", "-c", self.ENTER, "sh", self.folder, ROOT, str(cpu_limit), *command], cwd="/",
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True, env=self.environment)
        try:
            used, idle = 0, 0
            while True:
                try:
                    output, _ = process.communicate(timeout=5)
                    break
                except subprocess.TimeoutExpired:
                    # Other work on this machine may delay this, or stop it for a while.
                    before, (used, is_stopped) = used, activity(process.pid)
                    idle = 0 if used > before or is_stopped else idle + 5
                    if idle >= STANDS_STILL:
                        os.killpg(process.pid, signal.SIGKILL)
                        return "timed out", process.communicate()[0]
        except BaseException:  # this program ends
            os.killpg(process.pid, signal.SIGKILL)
            raise
        if process.returncode == -signal.SIGXCPU:
            return "timed out", output
        return ("ok" if process.returncode == 0 else "failed"), output

    def program(self, label):
        """The one that holds all tests of a label; None: there are more, or other tests."""
        program = pathlib.Path("build/bin") / f"{label}_test"
        return program if (self.folder / program).exists() and label not in ("cli", "tune", "kernels") else None

    def compile(self, label):
        program = self.program(label)
        only = [program.name] if program else [PROGRAMS[label]] if label in PROGRAMS else []
        return self.run(["build/venv/bin/ninja", "-C", "build", f"-j{self.jobs}", *only])

    def test(self, label, tests=None, seconds=60):
        """A program is run by itself, which takes far less than a process for each test."""
        limit = round(10 + 5 * seconds)
        if program := self.program(label):
            only = [f"--gtest_filter={':'.join(tests)}"] if tests else []
            return self.run([program, "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_output=json:{self.TIMES}", *only], limit)
        return self.run(["build/venv/bin/ctest", "--test-dir", "build", "-L", f"^{label}$", "--stop-on-failure",
                         f"-j{self.jobs}", "--output-on-failure", "--timeout", "600"], limit)

    def begin(self, labels, rounds):
        """Builds what the labels need. If no earlier run did, sees that they pass without a mistake, and for how long."""
        self.rounds = list(rounds)
        for label in labels:
            result, output = self.compile(label)
            if result == "ok" and not rounds:
                result, output = self.test(label)
            if result != "ok":
                sys.exit(f"{output}\n{label} {result} without any mistake")
            if rounds:
                continue
            if not self.program(label):
                self.rounds.append((len(STEPS) - 1 if label in PROGRAMS else 0, label, None, 60))
                continue
            times = json.loads((self.folder / self.TIMES).read_text(encoding="utf-8"))
            times = {f"{suite['name']}.{test['name']}": float(test["time"].rstrip("s"))
                     for suite in times["testsuites"] for test in suite["testsuite"] if test["status"] == "RUN"}
            for i, most in enumerate(STEPS):
                tests = {name: time for name, time in times.items() if (STEPS[i - 1] if i else -1) < time <= most}
                if tests:
                    self.rounds.append((i, label, list(tests), sum(tests.values())))
            print(f"{label}: {sum(times.values()):.1f} s", flush=True)
        self.rounds.sort(key=lambda part: part[0])

    def objects(self, file):
        """The objects that were compiled of a file, by path."""
        return {path: path.read_bytes() for path in self.folder.glob(f"build/{file.split('/')[0]}/CMakeFiles/*.dir/**/*.o")
                if f"{path}".endswith(f"/{file.split('/', 1)[1]}.o")}

    def attempt(self, mutant, labels, steps):
        """"survived", "survived so far", "does not compile", "is the same code", or how it was caught."""
        path = self.folder / mutant.file
        original = path.read_text(encoding="utf-8")
        lines = original.split("\n")
        assert lines[mutant.line] == mutant.old
        if mutant.file not in self.originals:
            self.originals[mutant.file] = self.objects(mutant.file)
        lines[mutant.line] = mutant.new
        path.write_text("\n".join(lines), encoding="utf-8")
        try:
            for step, label, tests, seconds in self.rounds:
                if label not in labels or step not in steps:
                    continue
                result, output = self.compile(label)
                if result != "ok":
                    return "does not compile"
                objects = self.originals[mutant.file]
                if objects and all(path.read_bytes() == code for path, code in objects.items()):
                    return "is the same code"
                result, output = self.test(label, tests, seconds)
                if result != "ok":
                    failed = re.search(r"(?m)^\[  FAILED  \] ([^\s,]+)|^\s*\d+ - (\S+) \(", output)
                    name = f"{label}, {failed[1] or failed[2]}" if failed else f"{label}, which ended"
                    return f"caught by {name}" + (" (time)" if result == "timed out" else "")
            return SURVIVED if steps is SLOW else SO_FAR
        finally:
            path.write_text(original, encoding="utf-8")


class Results:
    """The result of each mistake, and the rounds of tests. A path's file is read, and added to."""

    def __init__(self, path):
        self.path, self.rounds, self.of = path, [], {}
        for line in path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []:
            note = json.loads(line)
            if "rounds" in note:
                self.rounds = note["rounds"]
            else:
                self.of[Mutant(*(note[field] for field in Mutant._fields))] = note["result"]

    def note(self, **note):
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(note) + "\n")

    def find(self, mutant, scratch, labels, steps):
        known = self.of.get(mutant)
        if known is None or (known == SO_FAR and steps is SLOW):
            before = cpu_seconds_so_far()
            self.of[mutant] = result = scratch.attempt(mutant, labels, steps)
            took = round(cpu_seconds_so_far() - before)
            print(f"{told(mutant)}\n    {result} ({took} s)", flush=True)
            self.note(**mutant._asdict(), result=result, cpu_seconds=took)
        return self.of[mutant]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="of runtime/, tools/ or generators/ (default: all of runtime/)")
    parser.add_argument("--count", type=int, default=20, help="mistakes that compile (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds make other mistakes (default 1)")
    parser.add_argument("--labels", help="of ctest, separated by commas, in this order (default: by folder)")
    parser.add_argument("--exclude", default="cost|cpu_name|explain|fltused|no_|gpu/",
                        help="files that are left out, as a regular expression: what only estimates, or is not built here")
    parser.add_argument("--scratch", type=pathlib.Path, default=ROOT / "build/mutants", help="folder (default build/mutants)")
    parser.add_argument("--results", type=pathlib.Path,
                        help="file of JSON lines, one for each mistake: those in it count and are not tried again")
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
    results = Results(options.results)
    known = bool(results.rounds)
    scratch.begin(dict.fromkeys(label for mutant in chosen for label in labels_of(mutant.file)), results.rounds)
    if not known:
        results.note(rounds=scratch.rounds)
    survivors, caught = [], 0
    try:
        while caught + len(survivors) < options.count and chosen:
            # File by file, so that what is put back is compiled together with the next mistake.
            size = min(BATCH, options.count - caught - len(survivors))
            batch, chosen = chosen[:size], chosen[size:]
            for mutant in sorted(batch, key=lambda mutant: mutant.file):
                result = results.find(mutant, scratch, labels_of(mutant.file), QUICK)
                caught += result.startswith("caught")
                if result in (SURVIVED, SO_FAR):
                    survivors.append(mutant)
        for mutant in sorted(survivors, key=lambda mutant: mutant.file):
            if results.find(mutant, scratch, labels_of(mutant.file), SLOW) != SURVIVED:
                survivors.remove(mutant)
                caught += 1
    finally:
        print(f"\n{caught} of {caught + len(survivors)} caught; survivors:")
        for mutant in survivors:
            print(told(mutant))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
