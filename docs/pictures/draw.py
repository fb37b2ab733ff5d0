#!/usr/bin/env python3
"""Draws the pictures of the pages as SVG, next to this file: draw.py [--check]

With --check nothing is written; the script fails where a picture is not what it would draw.
"""
import pathlib
import sys
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, PALE, LINE = "#1f2933", "#f4f6f8", "#9aa5b1"
PHASES = ["#d1495b", "#2e86ab", "#3a9d5d", "#c98a1b"]  # one colour for each pair of phases (h, w)


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
            "role='img'>",
            f"<title>{escape(title)}</title>",
            "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
            f"<path d='M0 0 L8 4 L0 8 z' fill='{INK}'/></marker></defs>",
            f"<rect width='{width}' height='{height}' fill='white'/>",
        ]

    def box(self, x, y, width, height, fill=PALE, stroke=LINE, radius=4):
        self.parts.append(f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='{radius}' "
                          f"fill='{fill}' stroke='{stroke}'/>")

    def text(self, x, y, text, size=13, anchor="middle", weight="normal", fill=INK):
        self.parts.append(f"<text x='{x}' y='{y}' {FONT} font-size='{size}' font-weight='{weight}' text-anchor='{anchor}' "
                          f"fill='{fill}'>{escape(text)}</text>")

    def line(self, x1, y1, x2, y2, stroke=INK, width=1.5, tip=False):
        marker = " marker-end='url(#tip)'" if tip else ""
        self.parts.append(f"<line x1='{x1}' y1='{y1}' x2='{x2}' y2='{y2}' stroke='{stroke}' stroke-width='{width}'{marker}/>")

    def end(self):
        return "\n".join([*self.parts, "</svg>", ""])


def taps_of(kernel, stride, pad):
    """For each phase, the (kernel element, offset) pairs: the definition of runtime/problem/geometry.h, without dilation."""
    return [[(k, (r + pad - k) // stride) for k in range(kernel) if (r + pad - k) % stride == 0] for r in range(stride)]


def taps():
    kernel, stride, pad = 4, 2, 1
    table = taps_of(kernel, stride, pad)
    p = Picture(860, 400, "Taps of a 4x4 kernel of stride 2 and pad 1")
    p.text(215, 28, "One axis: which x and which w meet at an output", 14, weight="bold")
    size, left = 62, 60
    xs = {q: left + i * size * 2 for i, q in enumerate((-1, 0, 1))}
    for q, at in xs.items():
        p.box(at, 60, size, 40)
        p.text(at + size / 2, 85, "x[q]" if q == 0 else f"x[q{q:+d}]".replace("-", "\u2212"))
    ys = [left + size + 4 + r * (size * 2 - 8) for r in range(stride)]
    for r, taps_of_phase in enumerate(table):
        at, colour = ys[r], PHASES[3 * r]
        p.box(at, 240, size + 52, 40, fill="white", stroke=colour)
        p.text(at + size / 2 + 26, 265, "y[2q]" if r == 0 else f"y[2q+{r}]", fill=colour, weight="bold")
        for k, offset in taps_of_phase:
            x1, x2 = xs[offset] + size / 2, at + size / 2 + 26
            p.line(x1, 102, x2, 236, stroke=colour, width=2)
            where = 0.3
            p.box(x1 + (x2 - x1) * where - 19, 102 + 134 * where - 12, 38, 20, fill="white", stroke="white")
            p.text(x1 + (x2 - x1) * where, 102 + 134 * where + 4, f"w[{k}]", fill=colour)
    for r, taps_of_phase in enumerate(table):
        terms = []
        for k, offset in taps_of_phase:
            terms.append(f"w[{k}] x[q{offset:+d}]".replace("q+0", "q").replace("-", "\u2212"))
        left_side = "y[2q]" if r == 0 else f"y[2q+{r}]"
        p.text(60, 318 + 24 * r, f"phase {r}:   {left_side} = {' + '.join(terms)}", anchor="start", fill=PHASES[3 * r])
    p.text(30, 378, "No zero is inserted, no kernel is flipped, no column buffer is written.", 11, anchor="start")

    p.line(440, 20, 440, 385, stroke=LINE, width=1)
    p.text(650, 28, "Two axes: four pairs of phases, 2x2 taps each", 14, weight="bold")
    cell = 36
    # The kernel: each element belongs to one pair of phases alone.
    phase_of = {k: r for r, row in enumerate(table) for k, _ in row}
    for kh in range(kernel):
        for kw in range(kernel):
            colour = PHASES[2 * phase_of[kh] + phase_of[kw]]
            p.box(475 + kw * cell, 62 + kh * cell, cell, cell, fill=colour, stroke="white", radius=0)
            p.text(475 + kw * cell + cell / 2, 62 + kh * cell + 22, f"{kh},{kw}", 11, fill="white")
    p.text(475 + 2 * cell, 54, "w", weight="bold")
    for h in range(4):
        for w in range(4):
            colour = PHASES[2 * (h % 2) + w % 2]
            p.box(680 + w * cell, 62 + h * cell, cell, cell, fill=colour, stroke="white", radius=0)
    p.text(680 + 2 * cell, 54, "y", weight="bold")
    p.text(652, 62 + 2 * cell + 5, "\u2192", 22)
    # The elements of x that each pair of phases reads, around x[qh, qw].
    for index in range(4):
        rh, rw = divmod(index, 2)
        x0, y0, small = 478 + index * 92, 258, 20
        reads = {(oh, ow) for _, oh in table[rh] for _, ow in table[rw]}
        for h in (-1, 0, 1):
            for w in (-1, 0, 1):
                fill = PHASES[index] if (h, w) in reads else PALE
                p.box(x0 + (w + 1) * small, y0 + (h + 1) * small, small, small, fill=fill, stroke="white" if fill != PALE else LINE,
                      radius=0)
        p.box(x0 + small, y0 + small, small, small, fill="none", stroke=INK, radius=0)
        name = "y[2qh{}, 2qw{}]".format("+1" if rh else "", "+1" if rw else "")
        p.text(x0 + 30, y0 + 80, name, 10, fill=PHASES[index], weight="bold")
    p.text(650, 372, "each reads these four of x; the framed one is x[qh, qw]", 12)
    return p.end()


ROOMS = [
    ("include", "the public headers, which every room may include", "#dbe9f4"),
    ("api", "checks C arguments, contains exceptions", "#dbe9f4"),
    ("gpu", "plans for devices, and their drivers", "#e6e0f0"),
    ("plan", "of a problem: unit axes, conversions, measuring; explain", "#fdf0d5"),
    ("algorithms", "ways to compute a layer, and the choice among them", "#fdf0d5"),
    ("direct", "one kernel over one layer: blocking, packing of x, calls", "#fdf0d5"),
    ("selection", "which kernels can, how they read x, which is cheapest", "#e3f1e3"),
    ("cost", "estimates, and the profiles that they are computed from", "#e3f1e3"),
    ("kernels", "table of kernels, packed weights, post-ops, tuning records", "#e3f1e3"),
    ("cpu", "ISA, caches and name of this CPU", "#eceff1"),
    ("problem", "the layer, resolved: geometry, taps, quantization", "#eceff1"),
    ("base", "allocator, threads, shapes, status, 16-bit floats", "#eceff1"),
]


def rooms():
    p = Picture(860, 560, "The rooms of the source tree")
    p.text(225, 28, "runtime/: a room includes only rooms below it", 14, weight="bold")
    for i, (name, job, fill) in enumerate(ROOMS):
        y = 45 + i * 41
        p.box(20, y, 410, 35, fill=fill)
        p.text(32, y + 22, name, 13, anchor="start", weight="bold")
        p.text(115, y + 22, job, 10, anchor="start")
    p.text(670, 28, "what makes the kernels, as the library is built", 14, weight="bold")
    build = [
        (60, "generators/", ["the algorithm, once, from tap tables;", "the programs that compile it"], "#fbe3e4"),
        (150, "schedules/", ["families of schedules: loops, tiles, registers;", "cpu/passes/: the lowering passes"], "#fbe3e4"),
        (240, "kernels/", ["the table of kernels: one line, many variants", "\u2192 one object for each row and ISA"], "#fbe3e4"),
    ]
    for y, name, lines, fill in build:
        p.box(500, y, 340, 70, fill=fill)
        p.text(512, y + 22, name, 13, anchor="start", weight="bold")
        for i, text in enumerate(lines):
            p.text(512, y + 42 + 16 * i, text, 11, anchor="start")
    p.line(670, 130, 670, 148, tip=True)
    p.line(670, 220, 670, 238, tip=True)
    p.box(500, 350, 340, 70, fill="#fff7e0")
    p.text(512, 372, "kernel_contract/", 13, anchor="start", weight="bold")
    p.text(512, 392, "what a generated kernel and the runtime agree on;", 11, anchor="start")
    p.text(512, 408, "both include it, and it includes no Halide", 11, anchor="start")
    p.line(670, 310, 670, 348, tip=True)
    kernels = 45 + [name for name, _, _ in ROOMS].index("kernels") * 41 + 17
    p.line(498, 400, 434, kernels - 4, tip=True)
    p.box(500, 445, 340, 107, fill="white")
    p.text(512, 467, "around it", 13, anchor="start", weight="bold")
    for i, text in enumerate(["tools/    the command line: run, explain, bench, tune",
                              "bindings/ Python, and the provider for ONNX Runtime", "tests/    a folder for each ctest label",
                              "bench/    layers of real networks, and peers", "scripts/  set-up, build, test, lint, demo"]):
        name, what = text.split(None, 1)
        p.text(512, 485 + 15 * i, name, 11, anchor="start", weight="bold")
        p.text(575, 485 + 15 * i, what, 11, anchor="start")
    return p.end()


def run():
    p = Picture(860, 430, "The path of a plan and of a run")
    p.text(30, 30, "Plan: once for a layer", 15, anchor="start", weight="bold")
    steps = [
        ("resolve", ["attributes and shapes", "\u2192 extents, pads, taps", "or a status with the rule"], "problem/"),
        ("ask", ["every algorithm:", "can you, and at", "how many cycles?"], "algorithms/"),
        ("choose", ["forced by name,", "a tuning record,", "or the least estimate"], "algorithms/"),
        ("build", ["pack the weights once;", "plan strips and tasks", "for the threads"], "direct/"),
    ]
    for i, (name, lines, room) in enumerate(steps):
        x = 30 + i * 208
        p.box(x, 48, 176, 112, fill="#fdf0d5")
        p.text(x + 88, 72, name, 14, weight="bold")
        for j, text in enumerate(lines):
            p.text(x + 88, 94 + 17 * j, text, 11.5)
        p.text(x + 88, 150, room, 10.5, fill="#52606d")
        if i:
            p.line(x - 30, 104, x - 3, 104, tip=True)
    p.text(30, 205, "Run: as often as you like, from any threads", 15, anchor="start", weight="bold")
    steps = [
        ("check", ["types, shapes, strides", "of x and y; nothing is", "written if one is wrong"], "api/"),
        ("strip", ["cut y into strips whose", "x stays in the cache;", "threads take shares"], "direct/"),
        ("pack x", ["where taps leave x or a", "kernel needs it: a strip,", "with zeros around it"], "direct/"),
        ("call", ["the compiled kernel,", "tile by tile of y;", "each output written once"], "kernels/"),
    ]
    for i, (name, lines, room) in enumerate(steps):
        x = 30 + i * 208
        p.box(x, 222, 176, 112, fill="#dbe9f4")
        p.text(x + 88, 246, name, 14, weight="bold")
        for j, text in enumerate(lines):
            p.text(x + 88, 268 + 17 * j, text, 11.5)
        p.text(x + 88, 324, room, 10.5, fill="#52606d")
        if i:
            p.line(x - 30, 278, x - 3, 278, tip=True)
    after = [
        "Then, while a piece of y is still in the cache: the residual and the activation. A workspace comes from the caller,",
        "or is one that the plan keeps; a run allocates nothing else. Algorithms other than the direct one hand pieces of the",
        "layer, in another shape, to plans of their own, which take the same path.",
    ]
    for i, text in enumerate(after):
        p.text(30, 372 + 18 * i, text, 12, anchor="start")
    return p.end()


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name, draw in {"taps": taps, "rooms": rooms, "run": run}.items():
        path, text = HERE / f"{name}.svg", draw()
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"not as docs/pictures/draw.py draws them: {', '.join(stale)}")


if __name__ == "__main__":
    main()
