"""Writes a compile_commands.json for clang-tidy: `tidy_commands.py FROM TO`.

The headers that the compiler has precompiled, in a form of its own, are left out, and each source of a batch that is compiled
together gets the command of its batch.
"""
import json
import pathlib
import re
import sys


def main():
    commands = []
    for entry in json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")):
        command = re.sub(r"-Winvalid-pch -include \S+", "", entry["command"])
        batch = pathlib.Path(entry["file"])
        sources = [entry["file"]]
        if batch.parent.name == "Unity":
            sources = re.findall(r'#include "(.*)"', batch.read_text(encoding="utf-8"))
        commands += [{**entry, "file": source, "command": command.replace(entry["file"], source)} for source in sources]
    pathlib.Path(sys.argv[2]).write_text(json.dumps(commands, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
