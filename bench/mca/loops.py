"""Finds the inner loops of compiled 64-bit ARM code, in a listing by objdump, and what multiplies in them."""
import collections
import dataclasses
import re
import subprocess

# Multiply-accumulates of vectors, by what limits their rate.
KINDS = {"fmla": "fmla", "fmls": "fmla", "sdot": "sdot", "udot": "sdot",
         **{f"{sign}ml{what}l{half}": "smlal" for sign in "su" for what in "as" for half in ("", "2")}}
BRANCH = re.compile(r"b|b\.\w+|cbn?z|tbn?z")
FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*([^/]*)")  # up to a comment
TARGET = re.compile(r"\b([0-9a-f]+) <[^>]*>$")
VECTOR = re.compile(r"\{?\s*[vq]\d")


def accumulates(text):
    """The kind of multiply-accumulate, if an instruction is one of 128-bit vectors."""
    mnemonic, _, operands = text.partition(" ")
    return KINDS.get(mnemonic) if re.match(r"v\d+\.(4s|2d)", operands) else None


@dataclasses.dataclass
class Instruction:
    address: int
    mnemonic: str
    operands: str
    target: int | None = None  # of a branch

    @property
    def text(self):
        """For an assembler; where a branch goes does not matter to it."""
        return f"{self.mnemonic} {TARGET.sub('.', self.operands) if self.target is not None else self.operands}".strip()

    @property
    def kind(self):
        return accumulates(self.text)

    @property
    def on_stack(self):
        return re.match(r"ld|st", self.mnemonic) is not None and re.search(r"\[sp\b", self.operands) is not None

    @property
    def stores_vector(self):
        return self.mnemonic.startswith("st") and VECTOR.match(self.operands) is not None


@dataclasses.dataclass
class Loop:
    function: str
    instructions: list[Instruction]

    @property
    def address(self):
        return self.instructions[0].address

    @property
    def kinds(self):
        return collections.Counter(i.kind for i in self.instructions if i.kind)

    @property
    def on_stack(self):
        return sum(i.on_stack for i in self.instructions)

    @property
    def vector_stores(self):
        return sum(i.stores_vector for i in self.instructions)


def functions(listing):
    """The instructions of each function of a listing by objdump -d --no-show-raw-insn."""
    found = {}
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            code = found.setdefault(match[1], [])
        elif match := INSTRUCTION.match(line):
            mnemonic, operands = match[2], match[3].strip()
            target = int(TARGET.search(operands)[1], 16) if BRANCH.fullmatch(mnemonic) else None
            code.append(Instruction(int(match[1], 16), mnemonic, operands, target))
    return found


def inner_loops(function, code):
    """The innermost loops: stretches between a backward branch and its target that hold no other such stretch."""
    at = {instruction.address: place for place, instruction in enumerate(code)}
    stretches = {(at[i.target], place) for place, i in enumerate(code) if i.target in at and i.target <= i.address}
    inner = [s for s in stretches if not any(s[0] <= o[0] and o[1] <= s[1] and o != s for o in stretches)]
    return [Loop(function, code[first:last + 1]) for first, last in sorted(inner)]


def hottest(loops, kind):
    """The loops with most multiply-accumulates of a kind, if any has some: reductions of a full tile, with all taps that its
    phases share. Tails and the rest have fewer. They are several where the compiler made copies, for a dense x say."""
    most = max((loop.kinds[kind] for loop in loops), default=0)
    return [loop for loop in loops if most and loop.kinds[kind] == most]


def loops_of(objects, objdump):
    """The inner loops of each object file."""
    for file in objects:
        listing = subprocess.run([objdump, "-d", "--no-show-raw-insn", file], check=True, stdout=subprocess.PIPE,
                                 text=True).stdout
        yield file, [loop for name, code in functions(listing).items() for loop in inner_loops(name, code)]
