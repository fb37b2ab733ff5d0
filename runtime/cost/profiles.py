"""Writes the C++ of cost profiles: `python profiles.py --profiles FOLDER --output FOLDER`, run by runtime/CMakeLists.txt.

    cost_profile_fields.h   the fields of CostProfile
    cost_profiles.cpp       the values of every profile, as constants
    cost_fields.inc         rows of name, unit, least and most, for the command line, which calls exported functions only

The folder holds fields.json, which says what each field of CostProfile is, and a file for each profile: the core, what its values
were fitted to and when, the profile that it is based_on (generic, if none is named), which CPUs it matches, and the fields that
differ. generic.json has all fields. Of the profiles that match a CPU, the one with the most conditions is taken. A file that would
stay the same is not written, so nothing is compiled again for it. It needs no package but the table of kernels.
"""
import argparse
import itertools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from kernels.table import ISAS

# In the order of ShippedProfile, with the values that CpuFacts and plans have.
CONDITIONS = {"vendor": ("intel", "other"), "widest_isa": ("avx512", "avx2"), "multiplies_in_halves": ("yes", "no"),
              "isa": tuple(ISAS)}
MADE = "// Made of runtime/cost/profiles/ by runtime/cost/profiles.py."
HEADS = {"core", "fitted_to", "based_on", "matches", "fields"}


class ProfileError(ValueError):
    """A file of the folder breaks a rule."""


def number(value):
    return float("inf") if value == "infinite" else float(value)


def read(folder: Path):
    """The fields and the profiles, each with all of its values."""
    fields = {field["name"]: field for field in json.loads((folder / "fields.json").read_text(encoding="utf-8"))["fields"]}
    files = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))
             if path.stem != "fields"}
    if "generic" not in files:
        raise ProfileError("there is no generic.json")
    for name, profile in files.items():
        for key in profile.keys() - HEADS:
            raise ProfileError(f"{name}.json: there is no '{key}' in a profile")
        for key in sorted({"core", "fitted_to", "fields", *(["matches"] if name != "generic" else [])} - profile.keys()):
            raise ProfileError(f"{name}.json has no '{key}'")
        check_bases(name, files)
        for key, value in profile.get("matches", {}).items():
            if key not in CONDITIONS:
                raise ProfileError(f"{name}.json: matches: there is no condition '{key}'; there are {', '.join(CONDITIONS)}")
            if value not in CONDITIONS[key]:
                raise ProfileError(f"{name}.json: matches: {key} = '{value}' is not one of {', '.join(CONDITIONS[key])}")
        for key, value in profile["fields"].items():
            if key not in fields:
                raise ProfileError(f"{name}.json: there is no field '{key}'")
            if not number(fields[key]["least"]) <= number(value) <= number(fields[key]["most"]):
                raise ProfileError(f"{name}.json: {key} = {value} is not from {fields[key]['least']} to {fields[key]['most']}")
    for key in fields.keys() - files["generic"]["fields"].keys():
        raise ProfileError(f"generic.json has no '{key}'")
    return fields, files


def base_of(name, files):
    """The profile that a profile is based on; None for generic."""
    return None if name == "generic" else files[name].get("based_on", "generic")


def check_bases(name, files):
    """Refuses bases that there are not, and profiles that are based on themselves."""
    path = [name]
    while (base := base_of(path[-1], files)) is not None:
        if base not in files:
            raise ProfileError(f"{path[-1]}.json: based_on: there is no profile '{base}'; there are {', '.join(files)}")
        if base in path:
            raise ProfileError(f"{base}.json: based_on: it is based on itself: {' on '.join([*path[path.index(base):], base])}")
        path.append(base)


def values_of(name, files):
    base = base_of(name, files)
    return {**(values_of(base, files) if base else {}), **files[name]["fields"]}


def in_order(files):
    """The names, those of the most conditions first. Two of as many conditions must not match the same CPU."""
    names = sorted(files, key=lambda name: (-len(files[name].get("matches", {})), name))
    for one, other in itertools.combinations(names, 2):
        a, b = files[one].get("matches", {}), files[other].get("matches", {})
        if len(a) == len(b) and all(a[key] == b[key] for key in a.keys() & b.keys()):
            raise ProfileError(f"{one}.json and {other}.json may match the same CPU")
    return names


def literal(value):
    return "kInfinite" if value == "infinite" else repr(float(value))


def struct(fields, files) -> str:
    """The header with the fields of CostProfile."""
    guard = "CONVTRANSPOSE_GENERATED_COST_PROFILE_FIELDS_H_"
    text = [MADE, f"#ifndef {guard}", f"#define {guard}", "", "#include <cstddef>", "",
            "namespace convtranspose {", "", "struct CostProfile {"]
    text += [f"    double {name}; // {field['unit']}: {field['meaning']}" for name, field in fields.items()]
    text += ["};", f"constexpr std::size_t kCostFieldCount = {len(fields)}, kShippedProfileCount = {len(files)};", "",
             "} // namespace convtranspose", "", f"#endif // {guard}", ""]
    return "\n".join(text)


def table(fields, files) -> str:
    """The source with the values of all profiles."""
    text = [MADE, "#include <limits>", "", '#include "cpu/cost_profile.h"', "", "namespace convtranspose {", "",
            "static constexpr double kInfinite = std::numeric_limits<double>::infinity();",
            "const std::array<CostField, kCostFieldCount> kCostFields = {{"]
    for name, field in fields.items():
        text.append(f'    {{"{name}", "{field["unit"]}", {literal(field["least"])}, {literal(field["most"])}, '
                    f"&CostProfile::{name}}},")
    text += ["}};", "const std::array<ShippedProfile, kShippedProfileCount> kShippedProfiles = {{"]
    for name in in_order(files):
        matches, values = files[name].get("matches", {}), values_of(name, files)
        conditions = ", ".join(f'"{matches.get(key, "")}"' for key in CONDITIONS)
        text.append(f'    {{"{name}", {{{{{conditions}}}}}, {{{", ".join(literal(values[field]) for field in fields)}}}}},')
    return "\n".join([*text, "}};", "", "} // namespace convtranspose", ""])


def rows(fields) -> str:
    """The fields for the command line: it may link the shared library, which exports functions and no tables."""
    return "\n".join([MADE, *(f'{{"{name}", "{field["unit"]}", {float(number(field["least"]))!r}, '
                              f'{"1e300" if field["most"] == "infinite" else repr(float(field["most"]))}}},'
                              for name, field in fields.items()), ""])


def write(path: Path, text: str):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    try:
        fields, files = read(options.profiles)
        write(options.output / "cost_profile_fields.h", struct(fields, files))
        write(options.output / "cost_profiles.cpp", table(fields, files))
        write(options.output / "cost_fields.inc", rows(fields))
    except (ProfileError, KeyError, TypeError, json.JSONDecodeError) as error:
        sys.exit(f"{options.profiles}: {error}")


if __name__ == "__main__":
    main()
