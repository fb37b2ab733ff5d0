"""Tap tables of one axis, for kernels that have their taps built in."""
from __future__ import annotations

import re
from dataclasses import dataclass

from kernels.model import TableError


@dataclass(frozen=True)
class Tap:
    """The kernel elements of one phase: `count` of them, which read neighbouring input positions from `offset` on."""

    offset: int
    count: int
    first: int  # among packed weights


@dataclass(frozen=True)
class Taps:
    """An axis "KERNELsSTRIDEpPAD_BEGIN" without dilation (runtime/problem/axis_plan.h)."""

    stride: int
    phases: tuple[Tap, ...]

    @property
    def count(self) -> int:
        """How many taps every phase has; 0 if they differ."""
        counts = {tap.count for tap in self.phases}
        return counts.pop() if len(counts) == 1 else 0

    @property
    def text(self) -> str:
        """The table as generators read it (generators/built_in.h): the step between taps is always 1 here."""
        return "1/" + ",".join(f"{tap.offset}:{tap.count}:{tap.first}" for tap in self.phases)

    @property
    def numbers(self) -> list[int]:
        """The table as the runtime has it: rows of offset, count, first weight and output position."""
        return [n for phase, tap in enumerate(self.phases) for n in (tap.offset, tap.count, tap.first, phase)]


def parse_taps(spec: str) -> Taps:
    match = re.fullmatch(r"(\d+)s(\d+)p(\d+)", spec)
    if not match:
        raise TableError(f"taps '{spec}' are not of the form KERNELsSTRIDEpPAD")
    kernel, stride, pad = map(int, match.groups())
    # Element k belongs to a phase if phase + pad - k is a multiple of the stride: `least`, least + stride and so on. Packed
    # weights have the elements of one remainder together, and the last of them, which reads the first input position, first.
    sizes = [len(range(remainder, kernel, stride)) for remainder in range(stride)]
    phases = []
    for phase in range(stride):
        quotient, least = divmod(phase + pad, stride)
        if sizes[least] == 0:
            raise TableError(f"taps '{spec}' have a phase without any")
        phases.append(Tap(quotient - sizes[least] + 1, sizes[least], sum(sizes[:least])))
    return Taps(stride, tuple(phases))
