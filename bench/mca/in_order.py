"""A core that issues up to two instructions a cycle, in order, like the Cortex-A55. llvm-mca's simulation of such cores also
makes results arrive in order, those of loads and of multiplications alike; in it, kernels that were written by hand for this
core come out slower than their siblings that were not.

The rules, as ncnn documents them (developer-guide/arm-a53-a55-dual-issue): one operation of 128-bit vectors a cycle, and with it
one other instruction, such as a load of up to 64 bits, an insertion of 64 bits into a vector, integer arithmetic, a branch. A
load of a 128-bit register goes alone, and takes two cycles. Latencies are LLVM's, but for two: integer results are forwarded to
the next cycle; and an insertion reads its integer register one cycle late and arrives after three, which are the distances that
XNNPACK's kernels for this core keep.
"""
import re

REGISTER = re.compile(r"\b([vqdshbxw])(\d+)\b|\b(sp)\b")
COMPARISONS = ("cmp", "cmn", "tst")
BITS = {"q": 128, "d": 64, "s": 32, "h": 16, "b": 8, "x": 64, "w": 32,
        "16b": 128, "8h": 128, "4s": 128, "2d": 128, "8b": 64, "4h": 64, "2s": 64, "1d": 64}


def registers(text):
    """In the order that they are named, whatever part of them."""
    return [m[3] or ("x" if m[1] in "xw" else "v") + m[2] for m in REGISTER.finditer(text)]


class Decoded:
    """An instruction, as the registers that it reads, writes and moves on, and the unit that it occupies."""

    def __init__(self, text, latency):
        self.mnemonic, _, rest = text.partition(" ")
        is_load, is_store = self.mnemonic.startswith("ld"), self.mnemonic.startswith(("st", "prfm"))
        named, _, address = rest.partition("[") if is_load or is_store else (rest, "", "")
        first, base = registers(named), registers(address)
        lane = re.match(r"\{.*\}\[|v\d+\.\w+\[", rest) is not None  # only a part of the first register is written
        self.is_insertion = re.match(r"v\d+\.d\[\d\], x", rest) is not None
        self.unit, self.busy, self.is_alone, self.latency = None, 1, False, latency
        self.moves = base[:1] if re.search(r"\]!|\],", address) else []
        self.reads, self.writes = first[1:], first[:1]
        if is_load:
            self.reads, self.writes = base + (first if lane else []), first
            self.unit = "load"
            widths = [BITS[m[0] or m[1]] for m in re.findall(r"\bv\d+\.([1-8]+[bhsd])|\b([qdshbxw])\d+", named)]
            if self.mnemonic != "ld1r" and not lane:
                self.busy = max(1, -(-sum(widths) // 64))
                self.is_alone = 128 in widths
        elif is_store:
            self.reads, self.writes, self.unit = first + base, [], "store"
        elif self.mnemonic in COMPARISONS:
            self.reads, self.writes = first, ["flags"]
        elif self.mnemonic.startswith(("b.", "cb", "tb")) or self.mnemonic == "b":
            self.reads, self.writes = first + ["flags"] * self.mnemonic.startswith("b."), []
        elif self.mnemonic in ("subs", "adds", "ands"):
            self.writes = first[:1] + ["flags"]
        elif self.mnemonic.startswith("cs"):
            self.reads = first[1:] + ["flags"]
        elif first and first[0][0] == "v":
            accumulates = re.match(r"fml|[su]?ml[as]|[su]dot|ins|bi[ft]|bsl", self.mnemonic) is not None
            self.reads = first[1:] + (first[:1] if accumulates or lane else [])
            self.unit = None if self.is_insertion else "vector"
        if self.is_insertion:
            self.latency = 3
        elif not is_load and all(r[0] != "v" for r in self.writes):
            self.latency = 1

    def ready(self, ready):
        """The first cycle at which all that it reads has arrived."""
        return max((ready.get(r, 0) - (self.is_insertion and r[0] == "x") for r in self.reads), default=0)


def cycles(texts, latencies, iterations=40):
    """The cycles of one iteration, with the loop long in progress."""
    code = [Decoded(text, latency) for text, latency in zip(texts, latencies, strict=True)]
    ready, free, ends = {}, {}, []
    now, issued = 0, 0
    for _ in range(iterations):
        for i in code:
            at = max(now, free.get(i.unit, 0), i.ready(ready))
            if at == now and (issued == 2 or (issued and i.is_alone)):
                at += 1
            now, issued = at, issued + 1 if at == now else 1
            if i.unit:
                free[i.unit] = now + i.busy
            ready |= dict.fromkeys(i.writes, now + i.latency)
            ready |= dict.fromkeys(i.moves, now + 1)
            if i.is_alone:
                now, issued = now + i.busy, 0
        ends.append(now)
    half = iterations // 2
    return (ends[-1] - ends[half - 1]) / (iterations - half)
