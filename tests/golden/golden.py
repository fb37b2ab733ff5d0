#!/usr/bin/env python3
"""Shows that a change of structure or names changes no choice: what `explain` says of 600 layers, before and after.

    tests/golden/golden.py write before.txt          builds and runs explain_layers
    tests/golden/golden.py write after.txt           the same, after the change
    tests/golden/golden.py compare before.txt after.txt --names tests/golden/names.txt

layers.txt holds the layers, each of which is tried in four types and one of both layouts, on every ISA that the CPU runs, with
Winograd and without, with constant weights and without. A file of names has one "old new" a line: names that the change gave on
purpose. For another target, --program names its explain_layers and --runner what runs it:

    tests/golden/golden.py write zen3.txt --cost-profile zen3      by estimates of another core, on the ISAs of this CPU
    tests/golden/golden.py write arm.txt --program build-aarch64/bin/explain_layers \\
        --runner "qemu-aarch64 -L /usr/aarch64-linux-gnu"
"""
import argparse
import difflib
import json
import pathlib
import re
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CHOICES = HERE / "choices.json"
TYPES = [("f32", "f16", "bf16", "u8"), ("f32", "f16", "f64", "s8")]  # of every other layer


def lines():
    for number, line in enumerate((HERE / "layers.txt").read_text().splitlines()):
        for i, dtype in enumerate(TYPES[number % 2]):
            layout = ("nchw", "nhwc")[(number // 2 + i) % 2]
            yield " ".join([dtype, layout, *line.split()[2:]])


def write(options):
    program = options.program
    if not program:
        program = ROOT / "build/bin/explain_layers"
        subprocess.run([ROOT / "build/venv/bin/cmake", "--build", ROOT / "build", "--target", "explain_layers"], check=True)
    chosen = list(lines())[::options.every]
    with open(options.file, "w", encoding="utf-8") as file:
        subprocess.run([*shlex.split(options.runner), program, "1", options.cost_profile], input="\n".join(chosen), text=True,
                       check=True, stdout=file)
    print(f"what explain says of {len(chosen)} layers is in {options.file}")
    return 0


def choices_by(program, profile, layers):
    """{isa: what is chosen for each layer} by estimates of a profile, on the ISAs that this CPU runs."""
    said = subprocess.run([program, "1", profile], input="\n".join(layers), text=True, check=True, capture_output=True).stdout
    found = {}
    for block in said.split("== ")[1:]:
        isa = re.match(r".* \| (\w+)$", block.splitlines()[0])
        if isa:  # neither Winograd nor weights of each run
            found.setdefault(isa[1], []).append(re.search(r"^  \* (\S+)", block, re.MULTILINE)[1])
    return found


def choices(options):
    """Compares with choices.json what is chosen by each profile that ships, or writes it. ISAs of other CPUs stay as they are."""
    layers = list(lines())[7::29]
    expected = json.loads(CHOICES.read_text(encoding="utf-8")) if CHOICES.exists() else {}
    profiles = sorted(path.stem for path in (ROOT / "runtime/cost/profiles").glob("*.json") if path.stem != "fields")
    found = {profile: choices_by(options.program, profile, layers) for profile in profiles}
    if options.write:
        merged = {profile: {**expected.get(profile, {}), **found[profile]} for profile in profiles}
        CHOICES.write_text(json.dumps(merged, indent=1) + "\n", encoding="utf-8")
        return 0
    wrong = sum(profile not in expected for profile in profiles)
    for profile, of_isa in expected.items():
        for isa, names in of_isa.items():
            if isa not in found.get(profile, {}):
                print(f"skipped: {profile} on {isa}, which this CPU does not run")
                continue
            for layer, name, other in zip(layers, names, found[profile][isa]):
                if name != other:
                    wrong += 1
                    print(f"{profile} on {isa} chooses {other}, not {name}, for {layer}")
    print(f"{wrong} choices differ from those in {CHOICES}")
    return 1 if wrong else 0


def compare(options):
    before, after = (pathlib.Path(file).read_text(encoding="utf-8") for file in (options.before, options.after))
    if options.names:
        names = dict(line.split() for line in pathlib.Path(options.names).read_text().splitlines() if line.strip())
        pattern = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        before = re.sub(rf"(?<![A-Za-z0-9])({pattern})(?![A-Za-z0-9])", lambda match: names[match[1]], before)
    if before == after:
        print(f"the same: {before.count(chr(10) + '== ') + 1} explanations")
        return 0
    different = list(difflib.unified_diff(before.splitlines(), after.splitlines(), options.before, options.after, lineterm="", n=2))
    print("\n".join(different[:options.most]))
    print(f"different: {len(different)} lines of a diff")
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    writes = commands.add_parser("write")
    writes.add_argument("file")
    writes.add_argument("--program", type=pathlib.Path, help="explain_layers of another build (default: build's, built first)")
    writes.add_argument("--runner", default="", help="command before it, such as qemu's")
    writes.add_argument("--cost-profile", default="", metavar="NAME", help="a profile that ships (default: this CPU's)")
    writes.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth layer")
    writes.set_defaults(run=write)
    compares = commands.add_parser("compare")
    compares.add_argument("before")
    compares.add_argument("after")
    compares.add_argument("--names", help="file of old and new names")
    compares.add_argument("--most", type=int, default=60, metavar="LINES", help="lines of a difference to print (default 60)")
    compares.set_defaults(run=compare)
    chooses = commands.add_parser("choices", help="of each cost profile that ships, compared with choices.json")
    chooses.add_argument("--program", type=pathlib.Path, default=ROOT / "build/bin/explain_layers")
    chooses.add_argument("--write", action="store_true", help="write that file, after a change of choices that is meant")
    chooses.set_defaults(run=choices)
    options = parser.parse_args()
    return options.run(options)


if __name__ == "__main__":
    sys.exit(main())
