"""The parts of the table (table.py), families, element types, ISAs and architectures; and the kernels that come out of it."""
from __future__ import annotations

import re
from dataclasses import dataclass, field


class TableError(Exception):
    """A mistake in the table, in an option of the build or in a tuned kernel; its text says which."""


@dataclass(frozen=True)
class Family:
    """Kernels that share a schedule (schedules/cpu) and a program that compiles them, NAME_generator."""

    name: str  # in names of kernels, in CONVTRANSPOSE_FAMILIES, in tuning records
    enumerator: str  # of convtranspose::Family
    # By output order, the side of a tile that is counted in vectors: oc or q.
    in_vectors: dict[str, str] = field(default_factory=dict)
    tap_offset_order: tuple[str, ...] = ()  # output orders whose built-in taps are taken in the order of input offsets
    one_channel: bool = False  # layers have one channel of x and one of y per group
    always_built: bool = False  # CONVTRANSPOSE_FAMILIES does not leave it out


@dataclass(frozen=True)
class Dtype:
    """A type as the table names it: that of y, and how x and w are multiplied."""

    y: str  # as tuning records and kernels.json call it; u8 stands for s8 too
    x: str = "float32"  # the type of x as Halide calls it, in all families but the reference, which reads x as it is
    arithmetic: str = "float"
    selected_by: str = ""  # the word of CONVTRANSPOSE_TYPES; empty: the type's own name
    component: str = "float"
    lanes: float = 1  # of a vector, relative to f32
    strict: bool = False  # no fused multiply-add: a product of sums and its addend are rounded one after the other everywhere


@dataclass(frozen=True)
class Isa:
    name: str
    enumerator: str  # of convtranspose::Isa
    lanes: int  # of a vector of f32
    target: str  # as Halide calls it, {os} standing for the operating system
    adds_to: str = ""  # the ISA that has the kernels which this one does not improve on
    systems: tuple[str, ...] = ()  # operating systems that have it, as Halide calls them; empty: all
    copies_as: str = ""  # another ISA, whose target copies of x are compiled for
    f16_target: str = ""  # the target of kernels whose names match f16_kernels
    f16_kernels: str = ""


@dataclass(frozen=True)
class Architecture:
    name: str
    processors: str  # a pattern of what CMake calls its processors, in lower case
    isas: tuple[str, ...]  # best first
    groups: dict[str, str]  # names that lines of the table have for several of its ISAs
    lines: list  # of the table, beside those of every architecture
    keeps_llvm: str = ""  # a pattern of kernels whose LLVM code tests/kernels looks at


@dataclass
class Kernel:
    """One object file, and one row of a C++ table."""

    name: str  # the same for every ISA
    isa: str  # or the device
    kind: str  # which table the row belongs to (source.py)
    component: str  # of the library
    generator: str  # that compiles it
    parameters: list[str]  # of the generator
    row: dict  # what the row says, in the words of the table
    strict: bool = False
    target: str = ""  # for Halide; filled in by Build.complete()
    program: str = ""  # that has the generator; empty: the one of the same name
    block: tuple[int, int] = (0, 0)  # of threads, for a device

    @property
    def function(self) -> str:
        return f"convt_{self.name}_{self.isa}"


@dataclass
class Build:
    """The platform that CMake builds for, and the kernels that its options ask for."""

    architecture: Architecture
    os: str  # as Halide calls it
    isas: dict[str, Isa]  # that are built
    dtypes: dict[str, Dtype]  # all there are
    types: tuple[str, ...]
    families: tuple[str, ...]

    def pairs(self, isas: str, dtypes: str):
        """The ISAs and types of a line that are built."""
        names = self.architecture.groups.get(isas, isas).split()
        unknown = set(names) - set(self.architecture.isas)
        if unknown:
            raise TableError(f"{self.architecture.name} has no ISA or group '{' '.join(sorted(unknown))}'")
        for isa in names:
            for name in dtypes.split():
                if name not in self.dtypes:
                    raise TableError(f"there is no type '{name}'")
                dtype = self.dtypes[name]
                if isa in self.isas and (dtype.selected_by or name) in self.types:
                    yield self.isas[isa], name, dtype

    def has_family(self, family: Family) -> bool:
        return family.always_built or family.name in self.families

    def complete(self, kernel: Kernel) -> Kernel:
        """Adds Halide's target. Nothing checks arguments, as the dispatcher has, and nothing needs a Halide runtime."""
        isa = self.isas[kernel.isa]
        target = isa.target
        if kernel.kind == "copy" and isa.copies_as:
            target = self.isas[isa.copies_as].target
        elif isa.f16_target and re.search(isa.f16_kernels, kernel.name):
            target = isa.f16_target
        strict = "-strict_float" if kernel.strict else ""
        kernel.target = f"{target.format(os=self.os)}{strict}-no_runtime-no_asserts-no_bounds_query"
        return kernel

    def emits(self, kernel: Kernel) -> str:
        """The kinds of output that the generator is asked for."""
        keeps_llvm = self.architecture.keeps_llvm
        return "object,llvm_assembly" if keeps_llvm and re.search(keeps_llvm, kernel.name) else "object"
