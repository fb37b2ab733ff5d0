"""The cores, the scheduling models that stand for them, and where those need help."""
import collections
import functools
import re
import subprocess

import in_order
from in_order import registers
from loops import accumulates

KINDS = ("fmla", "sdot", "smlal")
# As many independent ones as hide the latency: their rate is the limit of a model.
EXAMPLES = {"fmla": "fmla v{}.4s, v30.4s, v31.s[0]", "sdot": "sdot v{}.4s, v30.16b, v31.16b",
            "smlal": "smlal v{}.4s, v30.4h, v31.4h"}


@functools.cache
def run(mca, model, options, body, iterations):
    line = [mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={model}", "-mattr=+dotprod", f"-iterations={iterations}", *options]
    result = subprocess.run(line, input=body + "\n", check=False, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{' '.join(line)}: {result.stderr}")
    return result.stdout


def cycles_by_mca(mca, model, options, texts):
    """The cycles that llvm-mca gives for one iteration, with the loop long in progress."""
    few, many = (int(re.search(r"^Total Cycles:\s+(\d+)", run(mca, model, options, "\n".join(texts), iterations),
                               re.MULTILINE)[1]) for iterations in (100, 300))
    return (many - few) / 200


def latencies(mca, model, texts):
    """The latency of each instruction, in cycles."""
    rows = run(mca, model, ("-instruction-info",), "\n".join(texts), 1).split("Instructions:\n")[1].split("\n\n")[0]
    return [int(row.split()[1]) for row in rows.splitlines()]


def model_name(mca, model):
    """LLVM's name of the model, taken from the names of its units: A57UnitV belongs to A57."""
    return re.search(r"- (\w+?)Unit", run(mca, model, (), "nop", 1))[1]


def as_fmla(text):
    """An smlal as an fmla of the same registers."""
    return re.sub(r"^[su]ml[as]l2?\s+v(\d+)\.4s, v(\d+)\.\w+, v(\d+)\.(?:h\[(\d+)\]|\w+)$",
                  lambda m: f"fmla v{m[1]}.4s, v{m[2]}.4s, v{m[3]}.{'4s' if m[4] is None else f's[{int(m[4]) % 4}]'}", text)


class OutOfOrder:
    """By llvm-mca, with the model of a core that is like it. Arm's guides limit what enters that part of a core twice: so many
    instructions a cycle (width), and so many micro-operations that they are split into. A model of LLVM has one number for both.

    rewrite: turns instructions that this core is faster at into others that it is as fast at. chain: cycles from one
    multiply-accumulate to the next into the same sum, by kind, where they are more than in the model."""

    def __init__(self, name, stand_in, limits, width, micro_ops, rewrite=None, chain=(0, 0, 0)):
        self.name, self.model, self.limits = name, stand_in, dict(zip(KINDS, limits))
        self.width, self.micro_ops, self.rewrite = width, micro_ops, rewrite or (lambda text: text)
        self.chain = dict(zip(KINDS, chain))

    def cycles(self, mca, texts):
        body = [self.rewrite(text) for text in texts]
        chains = collections.Counter()
        for text in texts:
            if kind := accumulates(text):
                chains[registers(text)[0]] += self.chain[kind]
        return max(cycles_by_mca(mca, self.model, (f"-dispatch={self.micro_ops}",), body), len(texts) / self.width,
                   *chains.values())

    def how(self, mca):
        by = f"llvm-mca, {model_name(mca, self.model)}"
        return by + (", smlal taken for fmla" if self.rewrite is as_fmla else "")


class InOrder:
    """By in_order.py, with the latencies of LLVM's model."""

    def __init__(self, name, limits):
        self.name, self.model, self.limits = name, name, dict(zip(KINDS, limits))

    def cycles(self, mca, texts):
        return in_order.cycles(texts, latencies(mca, self.model, texts))

    def how(self, mca):
        return f"in_order.py, latencies of {model_name(mca, self.model)}"


CORES = [
    InOrder("cortex-a55", (1, 1, 1)),
    OutOfOrder("cortex-a76", "neoverse-n1", (2, 2, 1), width=4, micro_ops=8),
    OutOfOrder("neoverse-v2", "neoverse-v2", (4, 4, 2), width=8, micro_ops=16),
    OutOfOrder("apple-m1", "neoverse-v2", (4, 4, 4), width=8, micro_ops=16, rewrite=as_fmla,
               chain=(4, 3, 3)),
]


def rates(cycles):
    """Multiply-accumulates a cycle, by kind, of what gives the cycles of a loop."""
    return {kind: 24 / cycles([EXAMPLES[kind].format(r) for r in range(24)]) for kind in KINDS}


def check_models(mca):
    """A model that disagrees with the limits of its core is no evidence of anything."""
    for core in CORES:
        for kind, rate in rates(lambda texts, core=core: core.cycles(mca, texts)).items():
            if abs(rate / core.limits[kind] - 1) > 0.03:
                raise SystemExit(f"{core.name}: {rate:.2f} {kind} a cycle by the model, not {core.limits[kind]}")
