"""The lines of the table (table.py), and the kernels that each stands for: one for each combination of what it lists.

Lists are words with spaces between them. A list of ISAs may be the name of a group of the architecture.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernels.model import Build, Dtype, Family, Isa, Kernel, TableError
from kernels.taps import Taps, parse_taps

# Types as Halide calls them.
HALIDE_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "u8": "uint8", "s32": "int32"}
AXES = "whd"


def _numbers(text: str, most: int, default: int) -> list[int]:
    """"2x4" as numbers, with the default for those that are left out."""
    words = text.split("x")
    if len(words) > most or not all(word.isdecimal() for word in words):
        forms = " or ".join("x".join("ABC"[:count]) for count in range(1, most + 1))
        raise TableError(f"'{text}' is not {forms}, of numbers")
    return [*map(int, words)] + [default] * (most - len(words))


@dataclass(frozen=True)
class Variants:
    """Kernels that convolve. A tile is AxB or AxBxC: output channels, positions along w and along h; the family says which of the
    first two are counted in vectors. Strides are those of w, "W", or of w and h, "WxH", which are built in; 0 is any.

    taps: for layers of such taps alone, a list of "KERNELsSTRIDEpPAD_BEGIN" of w and h, or two of them, "WxH", without dilation;
    extents and channels are any. The taps are constants and unrolled. "tWxH" is for layers of two axes at most, whose phases of w
    and of h have so many taps. oc: for so many output channels of a group alone; 0: any.
    """

    family: Family
    isas: str
    dtypes: str
    output_orders: str
    strides: str
    tiles: str
    taps: str = ""
    oc: int = 0

    def kernels(self, build: Build) -> Iterator[Kernel]:
        if not build.has_family(self.family):
            return
        for isa, name, dtype in build.pairs(self.isas, self.dtypes):
            for output_order in self.output_orders.split():
                for strides in self.strides.split():
                    for taps in self.taps.split() or [""]:
                        for tile in self.tiles.split():
                            yield self._kernel(isa, name, dtype, output_order, strides, taps, tile)

    def _kernel(self, isa: Isa, dtype_name: str, dtype: Dtype, output_order: str, strides: str, taps: str, tile: str) -> Kernel:
        lanes = int(isa.lanes * dtype.lanes)
        stride_w, stride_h = _numbers(strides, 2, 0)
        tile_oc, tile_q, tile_qh = _numbers(tile, 3, 1)
        if self.family.in_vectors.get(output_order) == "oc":
            tile_oc *= lanes
        elif self.family.in_vectors.get(output_order) == "q" and stride_w > 0:  # else vectors are of phases
            tile_q *= lanes
        words = [self.family.name, dtype_name]
        if not self.family.always_built:  # there is one reference of each type
            words += [output_order] + ([] if strides == "0" else [f"s{strides}"]) + [tile] + ([taps] if taps else [])
            words += [f"m{self.oc}"] if self.oc else []
        y_type = HALIDE_TYPES[dtype.y]
        row = {"name": "_".join(words), "isa": isa.name, "family": self.family.name, "output_order": output_order,
               "arithmetic": dtype.arithmetic, "dtype": dtype.y, "stride_w": stride_w, "stride_h": stride_h,
               "tile_oc": tile_oc, "tile_q": tile_q, "tile_qh": tile_qh, "lanes": lanes}
        parameters = [f"output_order={output_order}", f"arithmetic={dtype.arithmetic}",
                      f"x_type={y_type if self.family.always_built else dtype.x}", f"y_type={y_type}"]
        parameters += [f"{key}={row[key]}" for key in ("stride_w", "stride_h", "tile_oc", "tile_q", "tile_qh")]
        if taps.startswith("t"):
            row["built_in"] = self._build_in_counts([*map(int, taps[1:].split("x")), 1], parameters)
        elif taps:
            row["built_in"] = self._build_in(taps.split("x"), row, parameters)
        return Kernel(row["name"], isa.name, "variant", dtype.component, self.family.name, parameters, row, dtype.strict)

    def _build_in_counts(self, counts: list[int], parameters: list[str]) -> dict:
        """The numbers of taps of w, h and d as the row has them; adds them to the parameters too."""
        ic = int(self.family.one_channel)
        parameters += [*(f"count_{axis}={count}" for axis, count in zip(AXES, counts)), f"ic={ic}", "unrolled_axes=3"]
        return {"ic": ic, "oc": 0, "axes": [_axis_of_count(count) for count in counts], "x_in_place": False}

    def _build_in(self, specs: list[str], row: dict, parameters: list[str]) -> dict:
        """The built-in taps as the row has them; adds them to the parameters too. specs: of w and h, or one for both."""
        tap_offset_order = row["output_order"] in self.family.tap_offset_order
        ic = int(self.family.one_channel)
        oc = self.oc or ic
        axes = []
        for axis, taps in zip(AXES, (parse_taps(specs[0]), parse_taps(specs[-1]))):
            stride = row[f"stride_{axis}"]
            if stride and stride != taps.stride:
                raise TableError(f"{row['name']}: the stride of its taps is {taps.stride}")
            has_table = bool(stride or taps.stride == 1 or tap_offset_order)
            if has_table:
                parameters.append(f"table_{axis}={taps.text}")
            if taps.count:
                parameters.append(f"count_{axis}={taps.count}")
            axes.append(_axis(taps, has_table))
        parameters += [f"ic={ic}", f"oc={oc}", "unrolled_axes=2",
                       f"tap_offset_order={'true' if tap_offset_order else 'false'}"]
        axes.append(_axis_of_count(0))
        return {"ic": ic, "oc": oc, "axes": axes, "x_in_place": tap_offset_order}


def _axis_of_count(count: int) -> dict:
    return {"table": [], "phases": 0, "step": 0, "count": count, "out": 0}


def _axis(taps: Taps, has_table: bool) -> dict:
    return {"table": taps.numbers if has_table else [], "phases": taps.stride if has_table else 0, "step": 1,
            "count": taps.count, "out": 0}


@dataclass(frozen=True)
class Copies:
    """Copies of x in the orders that families read (CopyOrder in kernel_contract/kernel_types.h), in blocks of so many channels."""

    isas: str
    dtypes: str
    block: int
    orders: str

    def kernels(self, build: Build) -> Iterator[Kernel]:
        for isa, name, dtype in build.pairs(self.isas, self.dtypes):
            x = "u8" if dtype.component == "quantized" else dtype.y
            for order in self.orders.split():
                row = {"isa": isa.name, "order": order, "arithmetic": dtype.arithmetic, "dtype": x, "block": self.block}
                parameters = [f"arithmetic={dtype.arithmetic}", f"x_type={HALIDE_TYPES[x]}", f"order={order}",
                              f"block={self.block}"]
                yield Kernel(f"copy_{name}_{order}_{self.block}", isa.name, "copy", dtype.component, "copy_input", parameters,
                             row)


@dataclass(frozen=True)
class PostOps:
    """Activations after the convolution, each with and without a residual."""

    isas: str
    dtypes: str
    activations: str

    def kernels(self, build: Build) -> Iterator[Kernel]:
        for isa, name, dtype in build.pairs(self.isas, self.dtypes):
            for activation in self.activations.split():
                for residual in (False, True):
                    row = {"isa": isa.name, "dtype": dtype.y, "activation": activation, "adds_residual": residual}
                    parameters = [f"activation={activation}", f"y_type={HALIDE_TYPES[dtype.y]}",
                                  f"adds_residual={'true' if residual else 'false'}"]
                    suffix = "_residual" if residual else ""
                    # NaNs, and sums whose order matters.
                    yield Kernel(f"post_{name}_{activation}{suffix}", isa.name, "post_ops", dtype.component, "post_ops",
                                 parameters, row, strict=True)


@dataclass(frozen=True)
class Col2im:
    """Products of positions with kernel elements, added up. Strides are those of w that are built in; 0 is any; `channels` is any,
    for columns in the order of y (generators/col2im_channels_generator.cpp).
    """

    isas: str
    dtypes: str
    strides: str
    vectors: int = 0  # of a row, added up at once; 0: one, and the name does not say so

    def kernels(self, build: Build) -> Iterator[Kernel]:
        vectors = self.vectors or 1
        for isa, name, dtype in build.pairs(self.isas, self.dtypes):
            for stride in self.strides.split():
                y_type = f"y_type={HALIDE_TYPES[dtype.y]}"
                row = {"isa": isa.name, "dtype": dtype.y, "output_order": "planar", "stride_w": 0, "vectors": vectors,
                       "lanes": int(isa.lanes * dtype.lanes) * vectors}
                if stride == "channels":
                    row["output_order"] = "channels"
                    yield Kernel(f"col2im_{name}_channels", isa.name, "col2im", dtype.component, "col2im_channels", [y_type], row)
                    continue
                row["stride_w"] = int(stride)
                suffix = f"_{vectors}" if self.vectors else ""
                yield Kernel(f"col2im_{name}_s{stride}{suffix}", isa.name, "col2im", dtype.component, "col2im",
                             [y_type, f"stride_w={stride}", f"vectors={vectors}"], row)


@dataclass(frozen=True)
class Winograd:
    """The transforms of Winograd's algorithm (runtime/algorithms/winograd/winograd.h): of x, by the entries of w and h, "any",
    "W" of a single axis or "WxH" (generators/winograd_input_generator.cpp); and of the products, by the taps of a phase along w
    and h, 0 without w.
    """

    family: Family  # that computes the products
    isas: str
    dtypes: str
    entries: str
    counts_w: str = ""
    counts_h: str = ""

    def kernels(self, build: Build) -> Iterator[Kernel]:
        if not build.has_family(self.family):
            return
        for isa, name, dtype in build.pairs(self.isas, self.dtypes):
            for entries in self.entries.split():
                *along_w, entries_h = entries.split("x")
                entries_w = along_w[0] if along_w else "any" if entries == "any" else "none"
                yield self._kernel("input", entries.lower(), isa, name, dtype, {"built_in_w": entries_w, "built_in_h": entries_h})
            for count_w in self.counts_w.split():
                for count_h in self.counts_h.split():
                    yield self._kernel("output", f"{count_w}x{count_h}", isa, name, dtype,
                                       {"count_w": int(count_w), "count_h": int(count_h)})

    def _kernel(self, side: str, suffix: str, isa: Isa, name: str, dtype: Dtype, facts: dict) -> Kernel:
        parameters = [f"{key}={value}" for key, value in facts.items()] + [f"type={HALIDE_TYPES[dtype.y]}"]
        return Kernel(f"winograd_{name}_{side}_{suffix}", isa.name, f"winograd_{side}", dtype.component, f"winograd_{side}",
                      parameters, {"isa": isa.name, "dtype": dtype.y, **facts})


@dataclass(frozen=True)
class Only:
    """A line that is for some architectures alone."""

    architectures: str
    line: Variants | Copies | PostOps | Col2im | Winograd

    def kernels(self, build: Build) -> Iterator[Kernel]:
        if build.architecture.name in self.architectures.split():
            yield from self.line.kernels(build)


def _side(prefix: str, text: str) -> tuple[list[str], int, int]:
    """A side of a block of threads, "VECTORxTHREADSxUNROLLED": its parameters, its elements and its threads."""
    vector, threads, unrolled = _numbers(text, 3, 1)
    parameters = [f"{prefix}_vector={vector}", f"{prefix}_threads={threads}", f"{prefix}_unrolled={unrolled}"]
    return parameters, vector * threads * unrolled, threads


def _arithmetic(x: str, dots: bool = False) -> str:
    return "float" if x != "u8" else "int8" if dots else "int16"


def _device_kernel(name: str, generator: str, parameters: list[str], row: dict, block: tuple[int, int], strict: bool = False):
    return Kernel(name, "", "device", "", generator, parameters, {"name": name, **row}, strict, program="gpu", block=block)


@dataclass(frozen=True)
class Tiled:
    """A kernel of the families `tiled` and `small_oc` (schedules/gpu). oc and p are the output channels and the positions of a
    block of threads, each as elements of a vector x threads x vectors of a thread; a vector is 16 bytes, which is what a thread
    loads from shared memory at once.
    """

    family: str
    dtype: str
    tile: str
    oc: str
    p: str
    chunk: int = 8
    y: str = ""  # its type, where that is another one
    channels_last: bool = False
    dots: bool = False  # four products at a time

    def kernels(self) -> Iterator[Kernel]:
        y = self.y or self.dtype
        oc_parameters, tile_oc, oc_threads = _side("oc", self.oc)
        p_parameters, tile_p, p_threads = _side("p", self.p)
        integers = self.dtype == "u8"
        block = 4 if self.dots else 1
        threads, vector = oc_threads * p_threads, int(self.oc.split("x")[0])
        if self.family == "tiled" and (self.chunk * tile_oc % (vector * threads) or self.chunk * tile_p % threads):
            raise TableError(f"a chunk of {self.tile} cannot be staged by {threads} threads alike: it needs more channels")
        flags = {"integers": integers, "channels_last": self.channels_last}
        row = {"call": "kByPhase", "arithmetic": _arithmetic(self.dtype, self.dots), "channels_last": self.channels_last,
               "x": self.dtype, "y": y, "tile_oc": tile_oc, "tile_p": tile_p, "chunk": self.chunk * block, "threads": threads}
        parameters = [f"family={self.family}", *(f"{key}={str(flag).lower()}" for key, flag in flags.items()),
                      f"x_type={HALIDE_TYPES[self.dtype]}", f"y_type={HALIDE_TYPES[y]}", f"chunk={self.chunk}", f"block={block}"]
        yield _device_kernel(f"{self.family}_{self.dtype}_{self.tile}", "gpu_by_phase",
                             parameters + oc_parameters + p_parameters, row, (p_threads, oc_threads))


@dataclass(frozen=True)
class Each:
    """One thread an output: a kernel for neighbours along w and one for neighbours along channels."""

    dtypes: str  # of x; "X_Y" where y has another one

    def kernels(self) -> Iterator[Kernel]:
        for dtype in self.dtypes.split():
            x, y = dtype.split("_")[0], dtype.split("_")[-1]
            for order, channel_threads, position_threads in (("planar", 1, 256), ("channels", 32, 8)):
                integers = x == "u8"
                row = {"call": "kByOutput", "arithmetic": _arithmetic(x), "channels_last": order == "channels", "x": x, "y": y,
                       "tile_oc": channel_threads, "tile_p": position_threads, "chunk": 1, "threads": 256}
                parameters = [f"integers={str(integers).lower()}", f"x_type={HALIDE_TYPES[x]}", f"y_type={HALIDE_TYPES[y]}",
                              f"channel_threads={channel_threads}", f"position_threads={position_threads}"]
                yield _device_kernel(f"each_{dtype}_{order}", "gpu_by_output", parameters, row,
                                     (channel_threads, position_threads))


@dataclass(frozen=True)
class Combine:
    """Adds up sums in parts, and does the post-ops."""

    parts: str  # their type
    y: str

    def kernels(self) -> Iterator[Kernel]:
        name = f"combine_{self.y}" if self.parts == self.y else f"combine_{self.parts}_{self.y}"
        row = {"call": "kCombine", "arithmetic": "float", "channels_last": False, "x": self.parts, "y": self.y,
               "tile_oc": 1, "tile_p": 1, "chunk": 1, "threads": 256}
        # NaNs, and sums whose order matters.
        yield _device_kernel(name, "gpu_combine", [f"part_type={HALIDE_TYPES[self.parts]}", f"y_type={HALIDE_TYPES[self.y]}"],
                             row, (256, 1), strict=True)
