"""The command line of the package: `python -m convtranspose` and `convtranspose` run the same program."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Runs the command line with this process's arguments, and ends with its status."""
    program = os.path.join(os.path.dirname(__file__), "bin", "convtranspose" + (".exe" if os.name == "nt" else ""))
    if not os.path.exists(program):
        sys.exit(f"{program} is missing: this package was built without the command line")
    arguments = [program, *sys.argv[1:]]
    if os.name == "nt":
        sys.exit(subprocess.call(arguments))
    os.execv(program, arguments)


if __name__ == "__main__":
    main()
