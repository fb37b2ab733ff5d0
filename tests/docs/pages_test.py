"""Runs or compiles what the pages show, so that they stay true.

    pages_test.py --source DIR --build DIR --prefix DIR --work DIR
                  --cmake CMAKE --cxx CXX --cc CC --generator G --make-program M

Blocks of code are fenced and name their language:

    sh      run, in a scratch folder that holds model.onnx, open.onnx and x.npy and links to the source tree
    cpp     compiled; a block without main() is a fragment of a function, whose parameters are in FRAGMENT
    c       compiled, linked and run
    python  run, all of a page as one program, in the same folder, if the Python package was built, and, for a page that imports
            convtranspose.onnxruntime, the execution provider
    cmake   configured and built against the installed package, with the first program of README.md as app.cpp, which is run

A comment `<!-- not run: REASON -->` before a block of sh, python or cmake says why it is not run. All that a block of sh names is
checked all the same: scripts, their options, options of the command line, presets and labels of tests. Links between pages must
lead somewhere.
"""
import argparse
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FRAGMENT = """
void fragment_{index}(convtranspose::Problem problem, convtranspose::Plan &plan, convtranspose::Status status,
                      const float *x, float *y, const float *weights, const float *residual) {{
    (void)problem, (void)plan, (void)status, (void)x, (void)y, (void)weights, (void)residual;
{text}
}}
"""
C_MAIN = """
#include <stdlib.h>
int main(void) {
    float *x = calloc(256 * 16 * 12, 4), *weights = calloc(256 * 128 * 4 * 4, 4), *y = calloc(128 * 32 * 24, 4);
    return upsample(x, weights, y) == CONVT_OK ? 0 : 1;
}
"""
LONGEST_README = 150  # lines


class Page:
    def __init__(self, root, path):
        self.path, self.name = path, str(path.relative_to(root))
        self.lines = path.read_text().splitlines()
        self.blocks = []  # (line, language, text, reason why it is not run)
        self.prose = []   # lines outside of blocks
        block, reason = None, None
        for number, line in enumerate(self.lines, 1):
            fence = re.match(r"\s*```(\w*)", line)
            if block is None and fence:
                block = (number, fence[1], [])
            elif block is not None and fence:
                self.blocks.append((block[0], block[1], "\n".join(block[2]) + "\n", reason))
                block = reason = None
            elif block is not None:
                block[2].append(line)
            else:
                self.prose.append((number, line))
                comment = re.match(r"\s*<!-- not run: (.+) -->$", line)
                if comment or line.strip():
                    reason = comment[1] if comment else None

    def anchors(self):
        headings = [re.sub(r"[`*]", "", line.lstrip("# ")) for _, line in self.prose if line.startswith("#")]
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Checks:
    def __init__(self, options):
        self.options = options
        self.root, self.build, self.work = options.source, options.build, options.work
        self.failures, self.counts, self.helps = [], {"run": 0, "compiled": 0, "not run": 0}, {}
        self.package = options.build / "bindings" / "python"
        path = [self.build / "bin", os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": os.pathsep.join(map(str, path)),
                            "PYTHONPATH": str(self.package), "PKG_CONFIG_LIBDIR": str(options.prefix / "lib" / "pkgconfig")}

    def fail(self, where, message):
        self.failures.append(f"{where}: {message}")

    def call(self, where, command, **keywords):
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              env=self.environment, **keywords)
        if done.returncode:
            self.fail(where, f"ended with {done.returncode}:\n{done.stdout[-3000:]}")
        return done.returncode == 0

    def links(self, page):
        for number, line in page.prose:
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                if re.match(r"https?:", target):
                    continue
                file, _, anchor = target.partition("#")
                path = (page.path.parent / file).resolve() if file else page.path
                if not path.exists():
                    self.fail(f"{page.name}:{number}", f"there is no {target}")
                elif anchor and anchor not in Page(self.root, path).anchors():
                    self.fail(f"{page.name}:{number}", f"there is no heading {target}")

    def help_of(self, command):
        if command not in self.helps:
            done = subprocess.run([self.build / "bin" / "convtranspose", command, "--help"], check=False, capture_output=True,
                                  text=True)
            self.helps[command] = done.stdout if done.returncode == 0 else None
        return self.helps[command]

    def names_of_script(self, words, by_python):
        """Returns the fault of a call, or None. The script, or the program that gets its options, must know each option."""
        script = self.root / words[0]
        if not os.access(script, os.R_OK if by_python else os.X_OK):
            return f"{words[0]} is not a program"
        text = script.read_text()
        if words[0] == "scripts/bench.sh":
            text += "".join((self.root / "bench" / name).read_text() for name in ("compare.py", "gpu/compare.py"))
        unknown = [word for word in words[1:] if word.startswith("--") and word.partition("=")[0] not in text]
        if unknown:
            return f"{words[0]} knows no {' '.join(unknown)}"
        for option, value in itertools.pairwise(words):
            if option == "-L" and not all((self.root / "tests" / label.strip("^$")).is_dir() for label in value.split("|")):
                return f"no folder of tests is called {value}"
            if option == "--preset" and value not in self.presets():
                return f"there is no preset {value}"
        return None

    def presets(self):
        return {preset["name"] for preset in json.loads((self.root / "CMakePresets.json").read_text())["configurePresets"]}

    def names(self, words):
        """Returns the fault of a command that is not run, or None."""
        while words and re.match(r"\w+=", words[0]):
            words = words[1:]
        if not words:
            return None
        by_python = re.fullmatch(r"build/[a-z-]*venv/bin/python", words[0]) is not None and words[1:] != []
        words = words[by_python:]
        if re.match(r"(scripts|bench|tests)/", words[0]):
            return self.names_of_script(words, by_python)
        if pathlib.Path(words[0]).name == "convtranspose":
            text = self.help_of(words[1])
            if text is None:
                return f"convtranspose has no command {words[1]}"
            unknown = [word for word in words[2:] if word.startswith("--") and word not in text]
            return f"convtranspose {words[1]} knows no {' '.join(unknown)}" if unknown else None
        if "--preset" in words and words[words.index("--preset") + 1] not in self.presets():
            return f"there is no preset {words[words.index('--preset') + 1]}"
        return None

    def shell(self, page):
        for number, language, text, reason in page.blocks:
            if language != "sh":
                continue
            where = f"{page.name}:{number}"
            if reason is None:
                self.counts["run"] += self.call(where, ["bash", "-euo", "pipefail", "-c", text], cwd=self.work / "scratch")
                continue
            self.counts["not run"] += 1
            for line in text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if wrong := self.names(words):
                    self.fail(where, f"{wrong}: {line.strip()}")

    def python(self, page):
        blocks = [text for _, language, text, reason in page.blocks if language == "python" and reason is None]
        needed = self.package
        if any("convtranspose.onnxruntime" in text for text in blocks):
            needed = self.package / "convtranspose" / "libconvtranspose_onnxruntime.so"
        if blocks and needed.exists():
            done = self.call(page.name, [sys.executable, "-B", "-c", "\n".join(blocks)], cwd=self.work / "scratch")
            self.counts["run"] += len(blocks) * done

    def fragments(self, page):
        texts = [(number, text) for number, language, text, _ in page.blocks if language == "cpp" and "int main(" not in text]
        if not texts:
            return
        source = self.work / f"{page.path.stem}_fragments.cpp"
        parts = ["#include <convtranspose/convtranspose.hpp>\n#include <iostream>\n"]
        for number, text in texts:
            parts.append(FRAGMENT.format(index=number, text=f'#line {number + 1} "{page.name}"\n{text}'))
        source.write_text("".join(parts))
        if self.call(page.name, [self.options.cxx, "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers",
                                 "-fsyntax-only", f"-I{self.options.prefix / 'include'}", source]):
            self.counts["compiled"] += len(texts)

    def project(self, page, name, cmake, files, runs):
        folder = self.work / name
        folder.mkdir(parents=True)
        for file, text in files.items():
            (folder / file).write_text(text)
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.28)\nproject(page LANGUAGES C CXX)\n"
                                               f"set(CMAKE_CXX_STANDARD 17)\n{cmake}")
        o = self.options
        configure = [o.cmake, "-S", folder, "-B", folder / "build", "-G", o.generator, f"-DCMAKE_MAKE_PROGRAM={o.make_program}",
                     f"-DCMAKE_CXX_COMPILER={o.cxx}", f"-DCMAKE_C_COMPILER={o.cc}", "-DCMAKE_BUILD_TYPE=Release",
                     f"-DCMAKE_PREFIX_PATH={o.prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror",
                     "-DCMAKE_C_FLAGS=-Wall -Werror"]
        where = f"{page.name}, as {name}"
        if self.call(where, configure) and self.call(where, [o.cmake, "--build", folder / "build"]) and \
                self.call(where, [folder / "build" / runs]):
            self.counts["compiled"] += 1

    def lists(self):
        """The architecture page lists the rooms, from the top, and all algorithms."""
        text = (self.root / "docs" / "architecture.md").read_text()
        rooms = re.search(r"^ROOMS = (\[.*?\])", (self.root / "tests" / "rooms" / "rooms_test.py").read_text(), re.M | re.S)[1]
        table = text.partition("### The run half")[2]
        listed = [name for name in re.findall(r"^\| `(\w+)/` \|", table, re.M) if name != "include"]
        drawn = re.findall(r'^    \("(\w+)", ', (self.root / "docs" / "pictures" / "draw.py").read_text(), re.M)
        for where, names in {"docs/architecture.md": listed, "docs/pictures/draw.py": drawn[1:]}.items():
            if names != json.loads(rooms):
                self.fail(where, f"has the rooms {names}, tests/rooms {rooms}")
        registry = (self.root / "runtime" / "algorithms" / "algorithm.cpp").read_text()
        names = re.findall(r'^        \{"(\w+)", (?:true|false), ', registry, re.M)
        if "direct" not in names:
            self.fail("tests/docs/pages_test.py", "finds no registry of algorithms")
        for name in names:
            if f"| `{name}` |" not in text:
                self.fail("docs/architecture.md", f"does not list the algorithm {name}")

    def programs(self, pages):
        readme = next(page for page in pages if page.name == "README.md")
        program = next(text for _, language, text, _ in readme.blocks if language == "cpp" and "int main(" in text)
        for page in pages:
            for number, language, text, reason in page.blocks:
                name = f"{page.path.stem}_{number}"
                if language == "cmake" and not reason:
                    self.project(page, name, text, {"app.cpp": program}, "app")
                elif language == "c":
                    cmake = ("find_package(ConvTranspose REQUIRED)\nadd_executable(app app.c)\n"
                             "target_link_libraries(app PRIVATE ConvTranspose::convtranspose)\n")
                    self.project(page, name, cmake, {"app.c": text + C_MAIN}, "app")


def make_scratch(root, folder):
    """The files that commands of the pages name."""
    folder.mkdir(parents=True)
    for name in ("bench", "build", "scripts", "tests"):
        (folder / name).symlink_to(root / name)
    random = np.random.default_rng(1)
    w = numpy_helper.from_array(random.standard_normal((16, 8, 4, 4), dtype=np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])
    for name, shape in {"model": [1, 16, 8, 8], "open": ["n", 16, "h", "w"]}.items():
        graph = helper.make_graph([node], name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [w])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10),
                  folder / f"{name}.onnx")
    np.save(folder / "x.npy", random.standard_normal((1, 16, 8, 8), dtype=np.float32))


def main():
    parser = argparse.ArgumentParser()
    for name in ("source", "build", "prefix", "work"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name in ("cmake", "cxx", "cc", "generator", "make-program"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    root = options.source
    shutil.rmtree(options.work, ignore_errors=True)
    make_scratch(root, options.work / "scratch")
    checks = Checks(options)

    paths = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("bench/**/*.md")]
    pages = [Page(root, path) for path in sorted(paths)]
    for page in pages:
        checks.links(page)
        checks.shell(page)
        checks.python(page)
        checks.fragments(page)
    checks.programs(pages)
    checks.lists()
    for path in sorted(root.glob("docs/measurements/*.md")):  # records of what was run once
        checks.links(Page(root, path))
    checks.call("docs/pictures", [sys.executable, root / "docs" / "pictures" / "draw.py", "--check"])
    lines = len((root / "README.md").read_text().splitlines())
    if lines > LONGEST_README:
        checks.fail("README.md", f"has {lines} lines, at most {LONGEST_README} are wanted")

    print(", ".join(f"{count} {what}" for what, count in checks.counts.items()))
    for failure in checks.failures:
        print(failure)
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
