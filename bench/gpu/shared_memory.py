"""Bank conflicts of a kernel's loads from and stores to shared memory, by its PTX: what each thread of a warp adds to an address is
a function of its number alone, which is computed here.
"""
import re

BANKS, WARP, WORD, LINE = 32, 32, 4, 16

WIDTH = re.compile(r"(?:\.v(\d))?\.[a-z](\d+)$")


class Addresses:
    def __init__(self, ptx):
        self.definitions = {}
        for line in ptx.splitlines():
            if found := re.match(r"\s+(?:@!?%p\d+ )?([a-z][\w.]*)\s+(%\w+), (.*);", line):
                self.definitions.setdefault(found[2], []).append((found[1], [part.strip() for part in found[3].split(",")]))

    def value(self, operand, thread):
        """The value of an operand in that thread. A part that is the same for all threads counts as 0."""
        if operand in thread:
            return thread[operand]
        if not operand.startswith("%"):
            return int(operand, 0)
        definitions = self.definitions.get(operand, [])
        if len(definitions) != 1:
            raise ValueError(f"{operand} has {len(definitions)} definitions")
        opcode, sources = definitions[0]
        name = opcode.split(".")[0]
        if name == "ld":
            return 0
        values = [self.value(source, thread) for source in sources]
        if name in ("mov", "cvt"):
            return values[0]
        if name == "add":
            return values[0] + values[1]
        if name == "mul":
            return values[0] * values[1]
        if name == "mad":
            return values[0] * values[1] + values[2]
        if name == "shl":
            return values[0] << values[1]
        if name == "shr":
            return values[0] >> values[1]
        if name == "and":
            return values[0] & values[1]
        if name == "or":
            return values[0] | values[1]
        if name == "bfe":
            return values[0] >> values[1] & ((1 << values[2]) - 1)
        raise ValueError(f"{opcode} is not known here")


def ways(addresses, width):
    """Into how many turns a warp's access is split beyond what its bytes take: 1 is none."""
    threads = WARP * WORD // max(width, WORD)  # that are served at a time
    worst = 1
    for begin in range(0, len(addresses), threads):
        words = {address // WORD + i for address in addresses[begin : begin + threads] for i in range(max(width // WORD, 1))}
        banks = [word % BANKS for word in words]
        worst = max(worst, *(banks.count(bank) for bank in set(banks)))
    return worst


def accesses(ptx):
    """(kind, register, offset, bytes) of each; loads of all of 16 aligned bytes are one, as ptxas makes of them."""
    found = set()
    for line in ptx.splitlines():
        if match := re.match(r"\s+(?:@!?%p\d+ )?(ld|st)\.shared(\S+)\s.*\[(%\w+)(?:\+(\d+))?\]", line):
            kind, type_, register, offset = match.groups()
            vector = WIDTH.search(type_)
            found.add((kind, register, int(offset or 0), int(vector[1] or 1) * int(vector[2]) // 8))
    lines = {}
    for access in found:
        lines.setdefault((*access[:2], access[2] // LINE), set()).add(access)
    for (kind, register, line), parts in lines.items():
        if kind == "ld" and sum(part[3] for part in parts) == LINE:
            found = found - parts | {(kind, register, line * LINE, LINE)}
    return found


def examine(ptx, block):
    """(conflicts of loads, of stores, bytes that are used); block: threads along x and y."""
    of = Addresses(ptx)
    worst, end = {"ld": 1, "st": 1}, 0
    for kind, register, offset, width in accesses(ptx):
        threads = [{"%tid.x": i % block[0], "%tid.y": i // block[0], "%tid.z": 0} for i in range(block[0] * block[1])]
        addresses = [of.value(register, thread) for thread in threads]
        for begin in range(0, len(addresses), WARP):
            worst[kind] = max(worst[kind], ways(addresses[begin : begin + WARP], width))
        end = max(end, max(addresses) + offset + width)
    return worst["ld"], worst["st"], end
