"""THE table of kernels: what is listed here is compiled, dispatched to, tested and benchmarked.

One line makes one kernel for each combination of what it lists; lines.py says what the words of a line mean, and
docs/kernel-names.md how the kernels are called. To add a variant, add a line, or a tile to one; nothing else lists kernels.

Tiles leave a register or two for operands: AVX-512 and 64-bit ARM have 32 vector registers; AVX2, plain x86-64 and 32-bit ARM
have 16, and engines of WebAssembly map its own to those. Where several kernels are estimated to be equally fast, the first in
the table is chosen. Kernels for x86-64 are those that bench/cost/prune.py found to pay for their bytes. Layers of 16-bit types
are computed by kernels of f32 too, whose results are rounded; the few of their own are for layers with few multiply-adds for an
element of y.
"""
from __future__ import annotations

from kernels.lines import Col2im, Combine, Copies, Each, Only, PostOps, Tiled, Variants, Winograd
from kernels.model import Architecture, Dtype, Family, Isa

# The name of a family is used in names of kernels and of generators, in CONVTRANSPOSE_FAMILIES and in tuning records.
REFERENCE = Family("reference", "kReference", always_built=True)
OC_VECTORIZED = Family("oc_vectorized", "kOcVectorized", in_vectors={"channels": "oc", "planar": "oc"})
AMX = Family("amx", "kAmx", in_vectors={"channels": "oc", "planar": "oc"})
OW_VECTORIZED = Family("ow_vectorized", "kOwVectorized", in_vectors={"channels": "q", "planar": "q"})
SMALL_OC = Family("small_oc", "kSmallOc", in_vectors={"planar": "q"}, tap_offset_order=("planar",))
# Channels last, the first number of a tile is vectors of groups.
DEPTHWISE = Family("depthwise", "kDepthwise", in_vectors={"planar": "q"}, tap_offset_order=("planar",), one_channel=True)
FAMILIES = [OC_VECTORIZED, AMX, OW_VECTORIZED, SMALL_OC, DEPTHWISE, REFERENCE]

TYPES = ["f16", "bf16", "f32", "light", "f64", "quantized"]  # the words of CONVTRANSPOSE_TYPES
DTYPES = {
    "f16": Dtype("f16"),
    "bf16": Dtype("bf16"),
    "f32": Dtype("f32"),
    "f64": Dtype("f64", x="float64", lanes=0.5),
    # f16 with sums in f16, and bf16 that is multiplied as such.
    "h16": Dtype("f16", x="float16", arithmetic="half", selected_by="f16", lanes=2),
    "b16": Dtype("bf16", arithmetic="bf16", selected_by="bf16"),
    # f32 that is rounded to 16 bits.
    "f32_to_f16": Dtype("f32", arithmetic="half", selected_by="f16"),
    "f32_to_bf16": Dtype("f32", arithmetic="bf16", selected_by="bf16"),
    # f32 with light weights. Without these kernels such weights are widened to f32 when a plan is made.
    "f32_f16w": Dtype("f32", arithmetic="f16_weights", selected_by="light"),
    "f32_bf16w": Dtype("f32", arithmetic="bf16_weights", selected_by="light"),
    "f32_s8w": Dtype("f32", arithmetic="s8_weights", selected_by="light"),
    # Integer arithmetic (generators/numerics.h): y of 8 bits, y in f32, and the bare
    # sums, in f64 where 32 bits may not hold them.
    "i8": Dtype("u8", arithmetic="int8", selected_by="quantized", component="quantized"),
    "i8_f32": Dtype("f32", arithmetic="int8", selected_by="quantized", component="quantized", strict=True),
    "i16": Dtype("u8", arithmetic="int16", selected_by="quantized", component="quantized"),
    "i16_f32": Dtype("f32", arithmetic="int16", selected_by="quantized", component="quantized", strict=True),
    "i16_s32": Dtype("s32", arithmetic="int16", selected_by="quantized", component="quantized"),
    "i16_f64": Dtype("f64", arithmetic="int16", selected_by="quantized", component="quantized"),
}

OPERATING_SYSTEMS = {"Linux": "linux", "Android": "android", "Darwin": "osx", "iOS": "ios", "Windows": "windows",
                     "WASI": "wasmrt", "Emscripten": "wasmrt"}  # what CMake calls them, and what Halide does

AVX2 = "x86-64-{os}-sse41-avx-avx2-f16c-fma"
AVX512 = f"{AVX2}-avx512-avx512_skylake"
VNNI = f"{AVX512}-avx512_cannonlake-avx512_zen4"
ISAS = {isa.name: isa for isa in [
    # AMX is for Linux alone, because on other systems nothing asks for leave to use its tiles (runtime/cpu/isa.cpp). Copies for AMX
    # and VNNI are compiled as for AVX-512, because the compiler would choose AMD's own instructions for them, and those of f16.
    Isa("amx", "kAmx", 16, f"{VNNI}-avx512_sapphirerapids", adds_to="avx512_vnni", systems=("linux",), copies_as="avx512"),
    Isa("avx512_vnni", "kAvx512Vnni", 16, VNNI, adds_to="avx512", copies_as="avx512"),
    Isa("avx512", "kAvx512", 16, AVX512),
    # AVX2 with the dot products of AVX-VNNI, for which Halide has no target of its own (generators/main.cpp).
    Isa("avx_vnni", "kAvxVnni", 8, f"{VNNI}-avxvnni", adds_to="avx2", copies_as="avx2"),
    Isa("avx2", "kAvx2", 8, AVX2),
    Isa("x86_64", "kX86_64", 4, "x86-64-{os}"),
    Isa("neon_dotprod", "kNeonDotprod", 4, "arm-64-{os}-arm_dot_prod", adds_to="neon"),
    Isa("neon_fp16", "kNeonFp16", 4, "arm-64-{os}-arm_fp16", adds_to="neon"),
    # Plain NEON converts between f16 and f32, but Halide uses those instructions only where it is told arm_fp16: kernels whose
    # names match are compiled so. Other kernels store f16 one by one or compare what they load, and would hold more of arm_fp16
    # than conversions; they do without (tests/kernels sees to it).
    Isa("neon", "kNeon", 4, "arm-64-{os}", f16_target="arm-64-{os}-arm_fp16",
        f16_kernels=f"^((copy|{OW_VECTORIZED.name}|{SMALL_OC.name}|{DEPTHWISE.name}|col2im)_f16|post_f16_(clip|.*_residual)"
                    f"|copy_f32_to_f16|{OC_VECTORIZED.name}_(f32_f16w|f16_(channels|planar_s)))"),
    Isa("neon32", "kNeon32", 4, "arm-32-{os}"),
    Isa("wasm_simd128", "kWasmSimd128", 4, "wasm-32-{os}-wasm_simd128"),
]}

# Lines of every architecture, before and after its own. The groups of ISAs are those of ARCHITECTURES.
FIRST = [
    # Copies of x in the order that a family reads.
    Copies("floats", "f16 bf16 f32 f64", block=1, orders="planar channels transposed"),
    Copies("floats", "f32_to_f16 f32_to_bf16", block=1, orders="planar transposed tiles"),  # of a y of f32
    Copies("floats", "f16 bf16 f32", block=1, orders="tiles"),
    # Kernels that interleave or transpose doubles store them in turns. 32-bit ARM has no instruction for that, but Halide 21 asks
    # LLVM for one, which compiles it into something else without a word. Such kernels are left out there, and tests/kernels
    # looks for others.
    Only("x86 arm wasm", Copies("floats", "f64", block=1, orders="tiles")),
    # A block holds the input channels that 16-bit integer arithmetic multiplies at a time. The reference reads no blocks.
    Only("x86 wasm", Copies("int16s", "i16", block=2, orders="planar channels transposed tochannels tilestochannels")),
    Only("arm arm32", Copies("int16s", "i16", block=1, orders="planar channels transposed tochannels tilestochannels")),
    Only("x86 wasm", Copies("int16s", "i16", block=1, orders="planar channels")),

    # Activations and residuals after the convolution.
    PostOps("floats", "f16 bf16 f32 f64", activations="clip leaky_relu sigmoid tanh"),

    # Products of positions with kernel elements, added up.
    Col2im("floats", "f16 bf16 f32 f64", strides="0"),
    Col2im("floats", "f16 bf16 f32", strides="2"),
    Only("x86 arm wasm", Col2im("floats", "f64", strides="2")),
    Col2im("floats", "f32", strides="3 4"),

    # Winograd's algorithm, of layers that may be computed so.
    Winograd(OC_VECTORIZED, "floats", "f32 f64", entries="any", counts_w="0 1 2 3", counts_h="1 2 3"),
]

X86 = [
    # Deep channels. Narrow images take the narrow tiles, which go over rows to fill the registers. Planar rows are stored
    # in runs if the stride is built in. Channels last, tiles of one row need no copy of x but at the ends of rows.
    Variants(OC_VECTORIZED, "avx512", "f32", "channels", strides="0",
             tiles="2x14 2x12 2x10 2x8 2x5 2x4 2x6x2 2x5x2 2x4x3 2x3x4 3x8 3x2x4 4x6 4x4 4x2 4x3x2 4x2x2 4x1x2 2x2 2x2x4 "
                   "8x1 2x1 1x14 1x12 1x8x2 1x6x2 1x4x2 1x4 1x1"),
    Variants(OC_VECTORIZED, "avx512", "f64", "channels", strides="0",
             tiles="2x14 2x12 2x10 2x8 2x7 2x5 2x4 3x8 4x4 4x3x2 2x2 8x1 1x14 1x12 1x8x2 1x6x2 1x4x2 1x4 1x1"),
    Variants(OC_VECTORIZED, "avx512", "f32", "planar", strides="0", tiles="2x14 2x4 2x2 8x1 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx512", "f64", "planar", strides="0", tiles="2x7 2x4 2x2 8x1 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx512", "f32", "planar", strides="1", tiles="2x12 2x10 2x8"),
    Variants(OC_VECTORIZED, "avx512", "f32", "planar", strides="2", tiles="2x14 2x7x2 2x4x2"),
    Variants(OC_VECTORIZED, "avx512", "f32", "planar", strides="3 4", tiles="2x4x2 1x8"),
    Variants(OC_VECTORIZED, "avx512", "f32", "planar", strides="8", tiles="2x14 2x12 2x10 1x8"),
    Variants(OC_VECTORIZED, "avx512", "f64", "planar", strides="2", tiles="2x12 2x4x2"),
    Variants(OC_VECTORIZED, "avx512", "f16 bf16", "channels", strides="0", tiles="2x14 2x8 2x4x3 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx512", "f16 bf16", "planar", strides="0", tiles="1x1"),
    Variants(OC_VECTORIZED, "avx2", "f32", "channels", strides="0", tiles="2x6 2x5 2x4 3x4 2x3x2 2x2x3 2x1 1x6 1x1"),
    Variants(OC_VECTORIZED, "avx2", "f64", "channels", strides="0", tiles="2x6 2x5 2x4 2x3x2 2x2x3 2x1 1x6 1x1"),
    Variants(OC_VECTORIZED, "avx2", "f32", "planar", strides="0", tiles="2x6 2x4 2x2x3 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx2", "f64", "planar", strides="0", tiles="2x6 2x2x3 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx2", "f32", "planar", strides="1 2", tiles="2x6 2x4"),
    Variants(OC_VECTORIZED, "avx2", "f64", "planar", strides="1", tiles="2x6 2x4"),
    Variants(OC_VECTORIZED, "avx2", "f32", "planar", strides="4", tiles="2x6"),
    Variants(OC_VECTORIZED, "avx2", "f64", "planar", strides="2", tiles="2x6"),
    Variants(OC_VECTORIZED, "avx2", "f16 bf16", "channels", strides="0", tiles="2x6 2x4 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx2", "f16 bf16", "planar", strides="0", tiles="1x1"),

    # Light weights, for layers that read their weights from memory, as they have few positions.
    Variants(OC_VECTORIZED, "avx512", "f32_f16w f32_bf16w f32_s8w", "channels", strides="0", tiles="2x8 1x4x4 4x2x2 8x1"),
    Variants(OC_VECTORIZED, "avx2", "f32_f16w f32_bf16w f32_s8w", "channels", strides="0", tiles="3x4 4x2 8x1"),

    # Wide rows of planar images. Few output channels take the flat tiles, which also serve channels last (their stores are
    # scattered, but few). Where the elements of a kernel of 3x3 are output channels, there are multiples of nine of them.
    Variants(OW_VECTORIZED, "avx512", "f32", "planar", strides="1", tiles="8x3 12x2 8x2 14x1 4x6 3x8 9x3"),
    Variants(OW_VECTORIZED, "avx512", "f32", "planar", strides="2", tiles="8x2 8x1 4x6"),
    Variants(OW_VECTORIZED, "avx512", "f32", "planar", strides="3 4", tiles="8x1"),
    Variants(OW_VECTORIZED, "avx512", "f64", "planar", strides="1", tiles="8x3 8x2"),
    Variants(OW_VECTORIZED, "avx512", "f64", "planar", strides="2 3 4", tiles="8x1"),
    Variants(OW_VECTORIZED, "avx512", "f16 bf16", "planar", strides="1 2 3 4", tiles="8x1"),
    Variants(OW_VECTORIZED, "avx2", "f32 f64", "planar", strides="1", tiles="4x3 6x2 3x3"),
    Variants(OW_VECTORIZED, "avx2", "f32", "planar", strides="2", tiles="4x3 6x2 6x1 3x3"),
    Variants(OW_VECTORIZED, "avx2", "f64", "planar", strides="2", tiles="4x3 6x2"),
    Variants(OW_VECTORIZED, "avx2", "f32", "planar", strides="3", tiles="4x3 6x2"),
    Variants(OW_VECTORIZED, "avx2", "f64", "planar", strides="3", tiles="4x3"),
    Variants(OW_VECTORIZED, "avx2", "f16 bf16", "planar", strides="1 2 3 4", tiles="4x3"),
    Variants(OW_VECTORIZED, "avx512", "f32", "channels", strides="1", tiles="3x8 3x2x4"),
    Variants(OW_VECTORIZED, "avx2", "f32", "channels", strides="1 2", tiles="4x3 2x2x2"),
    Variants(OW_VECTORIZED, "avx2", "f16 bf16", "channels", strides="1", tiles="2x2x2"),

    # Few output channels: a tile holds the phases of both axes.
    Variants(SMALL_OC, "avx512", "f32", "planar", strides="2x1", tiles="1x6"),
    Variants(SMALL_OC, "avx512", "f32 f64", "planar", strides="4x1", tiles="1x6"),
    Variants(SMALL_OC, "avx512", "f32", "planar", strides="2x2", tiles="1x4 1x2"),
    Variants(SMALL_OC, "avx512", "f32", "planar", strides="3x3", tiles="1x3"),
    Variants(SMALL_OC, "avx2", "f32", "planar", strides="2x2 4x1", tiles="1x3"),

    # Kernels of common taps, which searches for the layers of networks found to be the fastest.
    Variants(SMALL_OC, "avx512", "f16 bf16 f32 f64", "planar", strides="2x2", taps="2s2p0", tiles="3x2 1x4"),
    Variants(SMALL_OC, "avx512", "f32 f64", "planar", strides="2x2", taps="4s2p1", tiles="3x2"),
    Variants(SMALL_OC, "avx512", "f32 f64", "planar", strides="2x2", taps="9s2p4", tiles="1x4"),
    Variants(SMALL_OC, "avx512", "f32", "planar", strides="2x1", taps="4s2p1x1s1p0", tiles="4x2"),
    Variants(OW_VECTORIZED, "avx512", "f32", "planar", strides="2", taps="2s2p0", tiles="6x1x2"),
    Variants(SMALL_OC, "avx512 avx2", "f32", "planar", strides="2x2", taps="2s2p0", tiles="1x2", oc=1),
    Variants(SMALL_OC, "avx2", "f32", "planar", strides="2x2", taps="2s2p0 4s2p1 3s2p1 9s2p4", tiles="1x3"),
    Variants(SMALL_OC, "avx2", "f16 bf16 f32", "planar", strides="2", taps="2s2p0", tiles="3x2"),
    Variants(SMALL_OC, "avx2", "f32", "planar", strides="2", taps="4s2p1 3s2p1", tiles="3x2"),
    Variants(SMALL_OC, "avx2", "f32", "planar", strides="3", taps="9s3p4", tiles="1x3"),

    # The same, of one input channel per group. Rows of a tile share the rows of x that they read.
    Variants(DEPTHWISE, "avx512", "f16 bf16 f32 f64", "planar", strides="1", taps="3s1p1", tiles="1x1x4"),
    Variants(DEPTHWISE, "avx512", "f16 bf16 f32 f64", "planar", strides="2", taps="4s2p1 3s2p1 2s2p0", tiles="1x1x4"),
    Variants(DEPTHWISE, "avx2", "f32 f64", "planar", strides="1", taps="3s1p1", tiles="1x1x4"),
    Variants(DEPTHWISE, "avx2", "f32 f64", "planar", strides="2", taps="4s2p1 3s2p1 2s2p0", tiles="1x1x4"),
    Variants(DEPTHWISE, "avx512 avx2", "f32", "planar", strides="1", taps="5s1p2", tiles="1x1x4"),
    Variants(DEPTHWISE, "avx512 avx2", "f32", "planar", strides="2", taps="4s2p1x1s1p0 3s2p1x1s1p0", tiles="1x4"),
    Variants(DEPTHWISE, "avx512", "f32", "planar", strides="2x2", taps="3s2p1", tiles="1x2"),
    Variants(DEPTHWISE, "avx512", "f32", "planar", strides="4", taps="8s4p2", tiles="1x2"),
    Variants(DEPTHWISE, "avx2", "f32", "planar", strides="4", taps="8s4p2", tiles="1x1"),
    Variants(DEPTHWISE, "avx512", "f16 bf16 f32 f64", "planar", strides="8", taps="16s8p4", tiles="1x1"),

    # Rows of columns of more than two vectors are added up by four at once (AVX2 gains nothing by that).
    Col2im("avx512", "f32", strides="0 2 3", vectors=4),
    # Columns in the order of y, for which x is not transposed (AVX2 gains nothing by that).
    Col2im("avx512", "f16 bf16 f32 f64", strides="channels"),

    # Winograd's algorithm for kernels of 4x4 and 3x3 with stride 2, for 3x3 with stride 1, and for a single axis, as 16 with
    # stride 8.
    Winograd(OC_VECTORIZED, "avx512 avx2", "f32 f64",
             entries="D0X1D1X2D2xD0X1D1X2D2 X0D0X1D1xX0D0X1D1 E0D1S1E1xE0D1S1E1 D0X1D1X2D2 X0D0X1D1 D0X1D1"),

    # Matrix instructions, for bf16.
    Copies("amx", "b16", block=1, orders="transposed tiles"),
    Copies("amx", "b16", block=2, orders="planar channels"),
    Variants(AMX, "amx", "b16", "channels", strides="0",
             tiles="2x16x2 2x14x2 2x12x2 2x32 2x28 2x24 2x16 2x8x2 2x4x2 2x1"),
    Variants(AMX, "amx", "b16", "planar", strides="1 2 4", tiles="2x32 2x16x2 2x16"),
    Variants(AMX, "amx", "b16", "planar", strides="8", tiles="2x16"),

    # Quantized.
    Copies("avx512_vnni", "i8", block=4, orders="planar channels transposed tochannels tilestochannels"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8", "channels", strides="0",
             tiles="2x12 2x8 2x7 2x6 2x5 2x4x2 2x4x3 2x3x4 2x2 2x2x4 8x1 2x1 1x14 1x8 1x4 1x1"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8", "planar", strides="0", tiles="2x8 2x4x3 2x2 8x1 1x1"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8", "planar", strides="1", tiles="2x4x3"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8", "planar", strides="2 8", tiles="2x12 2x4x2 2x4x3 1x8"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8", "planar", strides="4", tiles="2x4x2 2x4x3"),
    Variants(AMX, "amx", "i8", "channels", strides="0",
             tiles="2x16x2 2x14x2 2x12x2 2x32 2x28 2x24 2x16 2x8x2 2x4x2 2x1"),
    Variants(AMX, "amx", "i8_f32", "channels", strides="0", tiles="2x16x2 2x16 2x8x2 2x1"),
    Variants(OC_VECTORIZED, "avx512_vnni", "i8_f32", "channels planar", strides="0", tiles="2x8 2x4x3 2x2 8x1 1x1"),
    Variants(OC_VECTORIZED, "avx512_vnni avx512", "i16", "channels planar", strides="0", tiles="2x12 2x8 2x4x3 2x2 8x1 1x1"),
    Variants(OC_VECTORIZED, "avx512_vnni avx512", "i16_f32", "channels planar", strides="0", tiles="2x12 2x4x2 1x1"),
    Variants(OC_VECTORIZED, "avx2 x86_64", "i16 i16_f32", "channels planar", strides="0", tiles="2x5 2x4 2x2x2 2x1 1x6 1x1"),
    Variants(OW_VECTORIZED, "avx512_vnni", "i8", "planar", strides="1", tiles="8x2 8x1 3x8"),
    Variants(OW_VECTORIZED, "avx512_vnni", "i8", "planar", strides="2 3", tiles="12x2 8x1 3x8"),
    Variants(OW_VECTORIZED, "avx512_vnni", "i8", "planar", strides="4", tiles="8x1 3x4x2"),
    Variants(OW_VECTORIZED, "avx512_vnni", "i8", "channels", strides="1 2", tiles="3x8 3x2x4"),
    Variants(OW_VECTORIZED, "avx512_vnni", "i8", "channels", strides="2 3 4", tiles="1x4"),
    Variants(OW_VECTORIZED, "avx512_vnni avx512", "i16", "planar", strides="1 2", tiles="8x2 3x4x2"),
    Variants(OW_VECTORIZED, "avx512", "i16", "channels", strides="1 2 3 4", tiles="3x4x2"),
    Variants(OW_VECTORIZED, "avx2", "i16", "planar", strides="1", tiles="4x2 6x1"),
    Variants(OW_VECTORIZED, "avx2", "i16", "planar", strides="2", tiles="4x2 6x1 3x3"),
    Variants(OW_VECTORIZED, "avx2", "i16", "channels", strides="1 2 3", tiles="3x3 2x2x2"),
    Variants(OW_VECTORIZED, "avx2", "i16", "channels", strides="4", tiles="2x2x2"),
    Variants(OW_VECTORIZED, "x86_64", "i16", "planar", strides="1", tiles="3x3"),
    Variants(OW_VECTORIZED, "x86_64", "i16", "planar", strides="2", tiles="4x2 3x3"),
    Variants(OW_VECTORIZED, "x86_64", "i16", "channels", strides="1 2", tiles="3x3 2x2x2"),
    Variants(SMALL_OC, "avx512_vnni", "i8", "planar", strides="2x2", tiles="1x4 1x2 3x2 3x1"),
    Variants(SMALL_OC, "avx512_vnni", "i8", "planar", strides="3x3 8x1", tiles="1x3"),
    Copies("avx_vnni", "i8", block=4, orders="planar channels transposed tochannels tilestochannels"),
    Variants(OC_VECTORIZED, "avx_vnni", "i8", "channels", strides="0", tiles="2x6 2x5 2x4 2x3x2 2x2x2 2x1 1x6 1x1"),
    Variants(OC_VECTORIZED, "avx_vnni", "i8", "planar", strides="0", tiles="2x6 2x4 2x2x2 2x1 1x1"),
    Variants(OC_VECTORIZED, "avx_vnni", "i8", "planar", strides="1", tiles="2x4"),
    Variants(OC_VECTORIZED, "avx_vnni", "i8", "planar", strides="2 4", tiles="2x6 2x4"),
    Variants(OC_VECTORIZED, "avx_vnni", "i8_f32", "channels planar", strides="0", tiles="2x6 2x2x2 1x1"),
    Variants(OW_VECTORIZED, "avx_vnni", "i8", "planar", strides="1", tiles="4x3"),
    Variants(OW_VECTORIZED, "avx_vnni", "i8", "planar", strides="2", tiles="4x3 6x1 3x3"),
    Variants(OW_VECTORIZED, "avx_vnni", "i8", "planar", strides="3 4", tiles="3x3"),
    Variants(OW_VECTORIZED, "avx_vnni", "i8", "channels", strides="1 2 3 4", tiles="3x3 2x2x2"),
    Variants(SMALL_OC, "avx_vnni", "i8", "planar", strides="2x1", tiles="1x6"),
    Variants(SMALL_OC, "avx_vnni", "i8", "planar", strides="2x2", tiles="1x2"),
    Variants(SMALL_OC, "avx_vnni", "i8", "planar", strides="3x3 8x1", tiles="1x1"),
    Variants(SMALL_OC, "avx512", "i16", "planar", strides="1x1 2x1", tiles="1x6"),
    Variants(SMALL_OC, "avx512", "i16", "planar", strides="2x2", tiles="1x4"),
    Variants(SMALL_OC, "avx512", "i16", "planar", strides="3x3 8x1", tiles="1x2"),
    Variants(SMALL_OC, "avx2", "i16", "planar", strides="2x1", tiles="1x6"),
    Variants(SMALL_OC, "avx2", "i16", "planar", strides="2x2 4x1", tiles="1x2"),
    Variants(SMALL_OC, "avx2", "i16", "planar", strides="3x3 8x1", tiles="1x1"),
    Variants(SMALL_OC, "x86_64", "i16", "planar", strides="2x2", tiles="1x2"),
    Variants(SMALL_OC, "x86_64", "i16", "planar", strides="8x1", tiles="1x1"),

    # One input channel per group.
    Variants(DEPTHWISE, "avx2", "f32", "planar", strides="0", tiles="1x4"),
    Variants(DEPTHWISE, "avx2", "f32", "planar", strides="0", taps="t2x2", tiles="1x4"),
    Variants(DEPTHWISE, "avx512 avx2", "f32 f64", "planar", strides="2 4", tiles="1x4"),
    Variants(DEPTHWISE, "avx512 avx2", "f32", "planar", strides="2 4", tiles="1x1"),
    Variants(DEPTHWISE, "avx512", "f32 f64", "planar", strides="8", tiles="1x2"),
    Variants(DEPTHWISE, "avx512", "f32", "planar", strides="8", tiles="1x1"),
    Variants(DEPTHWISE, "avx2", "f32", "planar", strides="8", tiles="1x4 1x1"),
    Variants(DEPTHWISE, "avx2", "f64", "planar", strides="8", tiles="1x4"),
    Variants(DEPTHWISE, "avx512 avx2", "f16 bf16", "channels", strides="0", tiles="1x8 1x1"),
    Variants(DEPTHWISE, "avx512 avx2", "f16 bf16", "planar", strides="2", tiles="1x4"),
    Variants(DEPTHWISE, "avx512", "f16 bf16", "planar", strides="8", tiles="1x2"),
    Variants(DEPTHWISE, "avx512 avx2", "f16 bf16 f32 f64", "planar", strides="1 3", tiles="1x4"),
    Variants(DEPTHWISE, "avx512", "f16 bf16 f32 f64", "channels", strides="0", tiles="1x16"),
    Variants(DEPTHWISE, "avx512_vnni avx512 avx2", "i16", "planar", strides="2 3", tiles="1x4 1x1"),
    Variants(DEPTHWISE, "avx512_vnni avx512 avx2", "i16", "planar", strides="4", tiles="1x4"),
    Variants(DEPTHWISE, "avx512_vnni avx512", "i16", "planar", strides="4", tiles="1x1"),
    Variants(DEPTHWISE, "avx512_vnni avx512", "i16", "planar", strides="8", tiles="1x2"),
    Variants(DEPTHWISE, "avx512", "i16", "planar", strides="8", tiles="1x1"),
    Variants(DEPTHWISE, "avx2", "i16", "planar", strides="8", tiles="1x4"),
    Variants(DEPTHWISE, "x86_64", "i16", "planar", strides="2 3 8", tiles="1x4"),
    Variants(DEPTHWISE, "avx512_vnni avx512 avx2 x86_64", "i16", "planar", strides="1", tiles="1x4"),
    Variants(DEPTHWISE, "avx512_vnni avx512", "i16 i16_f32", "channels", strides="0", tiles="1x16"),
    Variants(DEPTHWISE, "avx2", "i16", "channels", strides="0", tiles="2x5 4x2"),

    # Plain x86-64 is for CPUs from before 2013. It has the kernels without which their layers would take some percent longer.
    Variants(OC_VECTORIZED, "x86_64", "f32 f64", "channels", strides="0", tiles="2x6 2x5 2x4 2x3x2 2x1 1x6 1x1"),
    Variants(OC_VECTORIZED, "x86_64", "f32 f64", "planar", strides="0", tiles="2x6 2x2x3 2x1 1x1"),
    Variants(OC_VECTORIZED, "x86_64", "f32", "planar", strides="1", tiles="2x6 2x4"),
    Variants(OC_VECTORIZED, "x86_64", "f64", "planar", strides="1", tiles="2x6"),
    Variants(OC_VECTORIZED, "x86_64", "f32", "planar", strides="2 4", tiles="2x6"),
    Variants(OC_VECTORIZED, "x86_64", "f16 bf16", "channels", strides="0", tiles="2x6 2x4 1x1"),
    Variants(OC_VECTORIZED, "x86_64", "f16 bf16", "planar", strides="0", tiles="1x1"),
    Variants(OW_VECTORIZED, "x86_64", "f32", "planar", strides="1", tiles="4x3 6x2 3x3"),
    Variants(OW_VECTORIZED, "x86_64", "f64", "planar", strides="1", tiles="6x2 3x3"),
    Variants(OW_VECTORIZED, "x86_64", "f32", "planar", strides="2 3", tiles="6x2 3x3"),
    Variants(OW_VECTORIZED, "x86_64", "f64", "planar", strides="2 3", tiles="3x3"),
    Variants(OW_VECTORIZED, "x86_64", "f16 bf16", "channels", strides="1", tiles="4x3"),
    Variants(OW_VECTORIZED, "x86_64", "f32", "channels", strides="1 2", tiles="2x2x2"),
    Variants(SMALL_OC, "x86_64", "f32", "planar", strides="4x1", tiles="1x3"),
    Variants(DEPTHWISE, "x86_64", "f32", "planar", strides="2 3 8", tiles="1x4"),
    Variants(DEPTHWISE, "x86_64", "f64", "planar", strides="3 8", tiles="1x4"),
    Variants(DEPTHWISE, "x86_64", "f32", "planar", strides="4", tiles="1x1"),
]

# 64-bit ARM has 32 registers of four f32.
ARM = [
    # Deep channels. 16 sums hide the latency of four multiply-adds a cycle; narrow images take the tiles of fewer.
    Variants(OC_VECTORIZED, "neon", "f32 f64", "channels", strides="0", tiles="4x6 2x8 4x4 2x4x2 2x2x3 4x2 8x1 1x8 1x1"),
    Variants(OC_VECTORIZED, "neon", "f32 f64", "planar", strides="0", tiles="4x6 2x8 2x4 2x2x3 8x1 1x1"),
    Variants(OC_VECTORIZED, "neon", "f32", "planar", strides="1 4", tiles="4x6"),
    Variants(OC_VECTORIZED, "neon", "f32", "planar", strides="2", tiles="4x6 2x4x2"),
    Variants(OC_VECTORIZED, "neon", "f16 bf16", "channels planar", strides="0", tiles="4x6 2x8 4x2 1x1"),
    Variants(OC_VECTORIZED, "neon", "f16 bf16", "planar", strides="1 2 4", tiles="2x8"),

    # Light weights, for layers that read their weights from memory.
    Variants(OC_VECTORIZED, "neon", "f32_f16w f32_bf16w f32_s8w", "channels", strides="0", tiles="2x8 4x2 8x1"),

    # Sums in f16, where they are asked for.
    Copies("neon_fp16", "h16", block=1, orders="planar channels transposed tiles"),
    Variants(OC_VECTORIZED, "neon_fp16", "h16", "channels", strides="0", tiles="4x6 2x12 2x8 2x4x2 2x1 1x8 1x1"),
    Variants(OC_VECTORIZED, "neon_fp16", "h16", "planar", strides="0", tiles="2x8 1x1"),
    Variants(OC_VECTORIZED, "neon_fp16", "h16", "planar", strides="1 2 4", tiles="2x12 2x4x2"),
    Variants(OW_VECTORIZED, "neon_fp16", "h16", "planar", strides="1 2 4", tiles="8x3 8x1"),
    Variants(SMALL_OC, "neon_fp16", "h16", "planar", strides="2x2", tiles="1x4"),
    Variants(DEPTHWISE, "neon_fp16", "h16", "planar", strides="1 2 4", tiles="1x2 1x1"),
    Variants(DEPTHWISE, "neon_fp16", "h16", "channels", strides="0", tiles="1x8 1x1"),
    Variants(REFERENCE, "neon_fp16", "h16", "channels", strides="0", tiles="1x1"),

    # Wide rows of planar images, and few output channels of either layout.
    Variants(OW_VECTORIZED, "neon", "f32 f64", "planar", strides="1 2", tiles="8x3 8x2 16x1 8x1 3x4"),
    Variants(OW_VECTORIZED, "neon", "f32 f64", "planar", strides="3 4", tiles="8x3 8x2 16x1 3x4"),
    Variants(OW_VECTORIZED, "neon", "f16 bf16", "planar", strides="1 2 4", tiles="8x3 8x1"),
    Variants(OW_VECTORIZED, "neon", "f16 bf16 f32", "channels", strides="1 2 4", tiles="3x4"),

    # Few output channels: a tile holds the phases of both axes, and leaves registers for the weights of two input channels.
    Variants(SMALL_OC, "neon", "f16 bf16 f32 f64", "planar", strides="1x1 2x1", tiles="1x8"),
    Variants(SMALL_OC, "neon", "f16 bf16 f32 f64", "planar", strides="2x2 4x1", tiles="1x4"),
    Variants(SMALL_OC, "neon", "f16 bf16 f32 f64", "planar", strides="3x3 8x1", tiles="1x2"),
    Variants(SMALL_OC, "neon", "f16 bf16 f32 f64", "planar", strides="4x4", tiles="1x1"),

    # One input channel per group: an address serves two vectors of groups, because an addition for each vector would be as many
    # instructions as there are multiply-adds.
    Variants(DEPTHWISE, "neon", "f16 bf16 f32 f64 i16 i16_f32", "channels", strides="0", tiles="2x8"),

    # Quantized: sdot where there is one, else smlal.
    Copies("neon_dotprod", "i8", block=4, orders="planar channels transposed tochannels tilestochannels"),

    # 20 sums are the most that leave registers for two blocks of input channels.
    Variants(OC_VECTORIZED, "neon_dotprod", "i8", "channels planar", strides="0", tiles="2x8 4x4 2x4x2 8x1 1x8 1x1"),
    Variants(OC_VECTORIZED, "neon_dotprod", "i8", "channels", strides="0", tiles="2x7"),
    Variants(OC_VECTORIZED, "neon_dotprod", "i8", "planar", strides="1 2 4", tiles="2x8 4x4 2x4x2"),
    Variants(OC_VECTORIZED, "neon_dotprod", "i8_f32", "channels planar", strides="0", tiles="2x8 2x4 1x1"),
    Variants(OC_VECTORIZED, "neon", "i16", "channels planar", strides="0", tiles="4x6 2x8 2x4x2 8x1 1x8 1x1"),
    Variants(OC_VECTORIZED, "neon", "i16_f32", "channels planar", strides="0", tiles="4x4 1x1"),

    Variants(OW_VECTORIZED, "neon_dotprod", "i8", "planar", strides="1 2 3", tiles="8x3 8x1 3x4"),
    Variants(OW_VECTORIZED, "neon_dotprod", "i8", "planar", strides="4", tiles="3x4"),
    Variants(OW_VECTORIZED, "neon_dotprod", "i8", "channels", strides="1 2 4", tiles="3x4"),
    Variants(OW_VECTORIZED, "neon", "i16", "planar", strides="1 2", tiles="8x2 3x4"),
    Variants(OW_VECTORIZED, "neon", "i16", "channels", strides="1 2 4", tiles="3x4"),

    Variants(SMALL_OC, "neon_dotprod", "i8", "planar", strides="1x1 2x1", tiles="1x8"),
    Variants(SMALL_OC, "neon_dotprod", "i8", "planar", strides="2x2 4x1", tiles="1x4"),
    Variants(SMALL_OC, "neon_dotprod", "i8", "planar", strides="3x3 8x1", tiles="1x2"),
    Variants(SMALL_OC, "neon", "i16", "planar", strides="1x1 2x1 2x2", tiles="1x4"),
]

# Sixteen registers of four f32, and one ISA: WebAssembly and 32-bit ARM.
OF_16 = [
    # Deep channels.
    Variants(OC_VECTORIZED, "all", "f32 f64", "channels planar", strides="0", tiles="2x6 2x5 2x4 2x3x2 2x2x3 2x1 1x6 1x1"),
    Variants(OC_VECTORIZED, "all", "f32 f64", "planar", strides="1 2 4", tiles="2x6 2x4 2x2x3"),
    Variants(OC_VECTORIZED, "all", "f16 bf16", "channels planar", strides="0", tiles="2x6 2x4 2x1 1x1"),

    # Wide rows of planar images, and few output channels of either layout.
    Variants(OW_VECTORIZED, "all", "f32 f64", "planar", strides="1 2 3 4", tiles="4x3 6x2 6x1 3x3"),
    Variants(OW_VECTORIZED, "all", "f16 bf16", "planar", strides="1 2 3 4", tiles="4x3 6x1"),
    Variants(OW_VECTORIZED, "all", "f16 bf16 f32", "channels", strides="1 2 3 4", tiles="4x3 2x2x2"),

    # Few output channels: a tile holds the phases of both axes.
    Variants(SMALL_OC, "all", "f16 bf16 f32 f64", "planar", strides="1x1 2x1", tiles="1x6"),
    Variants(SMALL_OC, "all", "f16 bf16 f32 f64", "planar", strides="2x2 4x1", tiles="1x3"),
    Variants(SMALL_OC, "all", "f16 bf16 f32 f64", "planar", strides="3x3 8x1", tiles="1x1"),

    # Quantized.
    Variants(OC_VECTORIZED, "all", "i16 i16_f32", "channels planar", strides="0", tiles="2x5 2x4 2x2x2 2x1 1x6 1x1"),
    Variants(OW_VECTORIZED, "all", "i16", "planar", strides="1 2", tiles="4x2 6x1 3x3"),
    Variants(OW_VECTORIZED, "all", "i16", "channels", strides="1 2 3 4", tiles="3x3 2x2x2"),
    Variants(SMALL_OC, "all", "i16", "planar", strides="1x1 2x1", tiles="1x6"),
    Variants(SMALL_OC, "all", "i16", "planar", strides="2x2 4x1", tiles="1x2"),
    Variants(SMALL_OC, "all", "i16", "planar", strides="3x3 8x1", tiles="1x1"),
]

LAST = [
    # One input channel per group.
    Only("arm arm32 wasm", Variants(DEPTHWISE, "floats", "f16 bf16 f32 f64", "planar", strides="2 8", tiles="1x4 1x2 1x1")),
    Only("arm arm32 wasm", Variants(DEPTHWISE, "floats", "f16 bf16 f32 f64", "planar", strides="1 3 4", tiles="1x4 1x1")),
    Variants(DEPTHWISE, "floats", "f32 f64", "channels", strides="0", tiles="1x4 1x8 1x1"),
    Only("arm arm32 wasm", Variants(DEPTHWISE, "floats", "f16 bf16", "channels", strides="0", tiles="1x4 1x8 1x1")),
    Only("arm arm32 wasm", Variants(DEPTHWISE, "int16s", "i16", "planar", strides="1 2 8", tiles="1x4 1x2 1x1")),
    Only("arm arm32 wasm", Variants(DEPTHWISE, "int16s", "i16", "planar", strides="3 4", tiles="1x4 1x1")),
    Variants(DEPTHWISE, "int16s", "i16 i16_f32", "channels", strides="0", tiles="1x4 1x8 1x1"),
    Variants(DEPTHWISE, "int16s", "i16_f32", "planar", strides="1 2 4 8", tiles="1x1"),

    # Bare sums, to be added up over the axes beyond three.
    Variants(OC_VECTORIZED, "int16s", "i16_s32", "channels planar", strides="0", tiles="2x4 1x1"),

    # Anything.
    Variants(REFERENCE, "floats", "f16 bf16 f32 f64", "channels", strides="0", tiles="1x1"),
    Variants(REFERENCE, "int16s", "i16 i16_f32 i16_s32 i16_f64", "channels", strides="0", tiles="1x1"),
]

# Groups of ISAs: `floats` have kernels of floats, which serve the ISAs that add to them too; `int16s` have kernels of 16-bit
# integer arithmetic.
ARCHITECTURES = [
    Architecture("x86", "x86_64|amd64", ("amx", "avx512_vnni", "avx512", "avx_vnni", "avx2", "x86_64"),
                 {"floats": "avx512 avx2 x86_64", "int16s": "avx512_vnni avx512 avx2 x86_64"}, X86),
    Architecture("arm", "aarch64|arm64", ("neon_dotprod", "neon_fp16", "neon"),
                 {"floats": "neon", "int16s": "neon"}, ARM),
    Architecture("arm32", "arm(hf|v7(-?a|h?l|ve|s|k)?|v8l)?", ("neon32",),  # CMake calls it armv7, armv7-a, armv7l and so on
                 {"all": "neon32", "floats": "neon32", "int16s": "neon32"}, OF_16,
                 keeps_llvm="f64|reference"),
    Architecture("wasm", "wasm32", ("wasm_simd128",),
                 {"all": "wasm_simd128", "floats": "wasm_simd128", "int16s": "wasm_simd128"}, OF_16),
]

# Kernels for devices, CUDA and OpenCL alike. A thread keeps 64 sums if the layer fills the device, and down to 4 if it does not:
# more blocks of fewer threads then wait for memory at once. Layers of few channels take narrow tiles of them.
DEVICES = {"cuda": "cuda-cuda_capability_70", "opencl": "opencl"}  # and Halide's features of them
DEVICE_F64 = {"opencl": "-cl_doubles"}  # the feature of f64, which not every device has
DEVICE_LINES = [
    Tiled("tiled", "f32", "128x128", oc="4x16x2", p="4x16x2"),
    Tiled("tiled", "f32", "64x64", oc="4x8x2", p="4x8x2"),
    Tiled("small_oc", "f32", "4x512", oc="4x1x1", p="1x128x4", chunk=4),
    Tiled("tiled", "f16", "128x128", oc="4x16x2", p="4x16x2"),
    Tiled("tiled", "f16", "64x64", oc="4x8x2", p="4x8x2"),
    Tiled("small_oc", "f16", "4x512", oc="4x1x1", p="1x128x4", chunk=4),
    Tiled("tiled", "bf16", "128x128", oc="4x16x2", p="4x16x2"),
    Tiled("tiled", "bf16", "64x64", oc="4x8x2", p="4x8x2"),
    Tiled("small_oc", "bf16", "4x512", oc="4x1x1", p="1x128x4", chunk=4),
    Tiled("tiled", "f32", "32x64", oc="4x4x2", p="4x16x1"),
    Tiled("tiled", "f32", "channels_64x32", oc="4x8x2", p="4x8x1", channels_last=True),
    Tiled("tiled", "f32", "128x64", oc="4x16x2", p="4x8x2"),
    Tiled("tiled", "f32", "32x32", oc="4x8x1", p="4x8x1", chunk=16),
    Tiled("small_oc", "f32", "4x128", oc="4x1x1", p="1x128x1", chunk=4),
    # Sums in parts are f32.
    Tiled("tiled", "f16", "parts_64x64", oc="4x8x2", p="4x8x2", y="f32"),
    Tiled("tiled", "bf16", "parts_64x64", oc="4x8x2", p="4x8x2", y="f32"),
    Tiled("tiled", "f64", "64x64", oc="2x16x2", p="2x16x2"),
    Tiled("tiled", "u8", "64x64", oc="4x8x2", p="4x8x2"),
    Tiled("tiled", "u8", "f32_64x64", oc="4x8x2", p="4x8x2", y="f32"),
    # Where weights fit in 8 bits: four products at a time.
    Tiled("tiled", "u8", "dots_128x128", oc="4x16x2", p="4x16x2", dots=True),
    Tiled("tiled", "u8", "dots_64x64", oc="4x8x2", p="4x8x2", dots=True),
    Tiled("tiled", "u8", "dots_channels_64x32", oc="4x8x2", p="4x8x1", channels_last=True, dots=True),
    Tiled("tiled", "u8", "dots_f32_64x64", oc="4x8x2", p="4x8x2", y="f32", dots=True),

    Each("f32 f16 bf16 f64 u8 u8_f32"),

    Combine(parts="f32", y="f32"),
    Combine(parts="f16", y="f16"),
    Combine(parts="bf16", y="bf16"),
    Combine(parts="f64", y="f64"),
    Combine(parts="f32", y="f16"),
    Combine(parts="f32", y="bf16"),
]
