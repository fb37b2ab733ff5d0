"""Tap tables of one axis, for kernels that have their taps built in."""
from __future__ import annotations

import re
from dataclasses import dataclass

from kernels.model import TableError


@dataclass(frozen=True)
class Tap:
    """The kernel elements of one residue: `count` of them, which read neighbouring input positions from `offset` on."""

    offset: int
    count: int
    first: int  # among packed weights


@dataclass(frozen=True)
class Taps:
    """An axis "KERNELsSTRIDEpPAD_BEGIN" without dilation (runtime/problem/axis_plan.h)."""

    stride: int
    residues: tuple[Tap, ...]

    @property
    def count(self) -> int:
        """How many taps every residue has; 0 if they differ."""
        counts = {tap.count for tap in self.residues}
        return counts.pop() if len(counts) == 1 else 0

    @property
    def text(self) -> str:
        """The table as generators read it (generators/built_in.h): the step between taps is always 1 here."""
        return "1/" + ",".join(f"{tap.offset}:{tap.count}:{tap.first}" for tap in self.residues)

    @property
    def numbers(self) -> list[int]:
        """The table as the runtime has it: rows of offset, count, first weight and output position."""
        return [n for residue, tap in enumerate(self.residues) for n in (tap.offset, tap.count, tap.first, residue)]


def parse_taps(spec: str) -> Taps:
    match = re.fullmatch(r"(\d+)s(\d+)p(\d+)", spec)
    if not match:
        raise TableError(f"taps '{spec}' are not of the form KERNELsSTRIDEpPAD")
    kernel, stride, pad = map(int, match.groups())
    # Element k belongs to a residue if residue + pad - k is a multiple of the stride: `least`, least + stride and so on. Packed
    # weights have the elements of one remainder together, and the last of them, which reads the first input position, first.
    sizes = [len(range(remainder, kernel, stride)) for remainder in range(stride)]
    residues = []
    for residue in range(stride):
        quotient, least = divmod(residue + pad, stride)
        if sizes[least] == 0:
            raise TableError(f"taps '{spec}' have a residue without any")
        residues.append(Tap(quotient - sizes[least] + 1, sizes[least], sum(sizes[:least])))
    return Taps(stride, tuple(residues))
