# THE table of kernels that are built: what is listed here is compiled, dispatched to, tested and benchmarked.
#
#   convtranspose_variants(FAMILY f ISAS ... DTYPES ... STORES ... STRIDES ... TILES ... [TAPS t])
#
# makes one variant for each combination. STRIDES: what is built in of the strides of w and h, "W" or "WxH"; 0 is any.
# TILES: AxB or AxBxC, the register tile, in vectors along the family's vector dimension:
#   channels, matrix  vectors of oc  x  positions along w  [x  positions along h]
#   wide, few         oc             x  vectors along w    [x  positions along h, not few]
#   depthwise planar  1              x  vectors along w;   depthwise channels: vectors of g  x  positions along w
#
# DTYPES: of y, and of x and w too. h16 is f16 whose sums are f16, b16 bf16 that is multiplied as such. i8 and i16 are integer
# arithmetic (generators/numerics.h) and 8-bit y; i8_f32 and i16_f32 f32 y; i8_s32 and i16_s32 the bare sums.
#
# TAPS: for layers of such taps alone, "KERNELsSTRIDEpPAD_BEGIN" of w and h, or "WxH", without dilation; any extents and channels.
# They are constants and unrolled, and those of few and of depthwise planar are taken by input offset (goes_by_offset).
#
# Name of a variant: family_dtype_store[_sSTRIDES]_tile[_TAPS]. Tiles leave a register or two for operands: AVX-512 has 32 vector
# registers, AVX2 and baseline x86-64 have 16, NEON 32, on 32-bit ARM 16; engines of WebAssembly map its own to those.
#
# Set before: architecture (x86, arm, arm32, wasm) and os, as Halide calls it.

# How Halide calls the ISAs (behind the operating system), and the lanes of an f32 vector there. neon_dotprod adds integer
# arithmetic to neon_fp16, that sums in f16 to neon, avx512_vnni integer arithmetic to avx512, and amx matrices to that:
# float_isas are what is left without them. int16_isas have 16-bit integer arithmetic of their own, in blocks of so many input
# channels. _of_32: those of each with 32 vector registers.
# Of isas_added, each adds to the one of isas_base.
if(architecture STREQUAL arm)
    set(isas neon_dotprod neon_fp16 neon)
    set(float_isas neon)
    set(float_isas_of_32) # variants_arm has other tiles for those
    set(int16_isas neon)
    set(int16_isas_of_32)
    set(int16_block 1)
    set(isas_added neon_dotprod neon_fp16)
    set(isas_base neon neon)
elseif(architecture MATCHES "^(arm32|wasm)$")
    set(isas_arm32 neon32)
    set(isas_wasm wasm_simd128)
    set(isas ${isas_${architecture}})
    set(float_isas ${isas})
    set(float_isas_of_32)
    set(int16_isas ${isas})
    set(int16_isas_of_32)
    set(int16_block_arm32 1)
    set(int16_block_wasm 2)
    set(int16_block ${int16_block_${architecture}})
    set(isas_added)
    set(isas_base)
else()
    set(isas avx512_vnni avx512 avx2 x86_64)
    set(float_isas avx512 avx2 x86_64)
    set(float_isas_of_32 avx512)
    set(int16_isas ${isas})
    set(isas_added)
    set(isas_base)
    if(os STREQUAL linux) # elsewhere nobody has asked yet for leave to use tiles (runtime/cpu/isa.cpp)
        list(PREPEND isas amx)
        set(isas_added amx)
        set(isas_base avx512_vnni)
    endif()
    set(int16_isas_of_32 avx512_vnni avx512)
    set(int16_block 2)
    list(APPEND isas_added avx512_vnni)
    list(APPEND isas_base avx512)
endif()
set(target_amx
    x86-64-${os}-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4-avx512_sapphirerapids)
set(target_avx512_vnni x86-64-${os}-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4)
set(target_avx512 x86-64-${os}-sse41-avx-avx2-f16c-fma-avx512-avx512_skylake)
set(target_avx2 x86-64-${os}-sse41-avx-avx2-f16c-fma)
set(target_x86_64 x86-64-${os})
set(target_neon_dotprod arm-64-${os}-arm_dot_prod)
set(target_neon_fp16 arm-64-${os}-arm_fp16)
set(target_neon arm-64-${os})
set(target_neon32 arm-32-${os})
set(target_wasm_simd128 wasm-32-${os}-wasm_simd128)
# Conversions between f16 and f32 are part of plain NEON, which Halide takes for a part of arm_fp16. Kernels that store f16 one
# by one, or compare what they load, would get more of arm_fp16 than those, and convert without; tests/kernels sees to it.
set(target_f16_neon arm-64-${os}-arm_fp16)
set(with_f16_neon "^((copy|wide|few|depthwise|col2im)_f16|post_f16_(clip|.*_residual)|channels_f16_(channels|planar_s))")
# Whether vectors of doubles can be stored in turns, as kernels do that interleave or transpose them. Halide 21 asks LLVM for
# vst2 of doubles there, which 32-bit ARM does not have, and LLVM compiles into something else without a word. Kernels that
# would hold one are left out; tests/kernels looks for others.
set(stores_f64_in_turns TRUE)
if(architecture STREQUAL arm32)
    set(stores_f64_in_turns FALSE)
endif()
set(lanes_amx 16)
set(lanes_avx512_vnni 16)
set(lanes_avx512 16)
set(lanes_avx2 8)
set(lanes_x86_64 4)
set(lanes_neon_dotprod 4)
set(lanes_neon_fp16 4)
set(lanes_neon 4)
set(lanes_neon32 4)
set(lanes_wasm_simd128 4)

set(table_x86 variants_x86)
set(table_arm variants_arm)
set(table_arm32 variants_of_16)
set(table_wasm variants_of_16)
include(${table_${architecture}}) # convtranspose_architecture_table: the families that tile channels and rows

function(convtranspose_table)
    # x copied into the order that a family reads.
    convtranspose_copies(ISAS ${float_isas} DTYPES f16 bf16 f32 f64 BLOCK 1 ORDERS planar channels transposed)
    convtranspose_copies(ISAS ${float_isas} DTYPES f16 bf16 f32 BLOCK 1 ORDERS tiles)
    if(stores_f64_in_turns)
        convtranspose_copies(ISAS ${float_isas} DTYPES f64 BLOCK 1 ORDERS tiles)
    endif()
    convtranspose_copies(ISAS ${int16_isas} DTYPES i16 BLOCK ${int16_block} ORDERS planar channels transposed tochannels)
    if(NOT int16_block EQUAL 1) # for the reference
        convtranspose_copies(ISAS ${int16_isas} DTYPES i16 BLOCK 1 ORDERS planar channels)
    endif()

    # What may follow the convolution.
    convtranspose_post_ops(ISAS ${float_isas} DTYPES f16 bf16 f32 f64 ACTIVATIONS clip leaky_relu sigmoid tanh)

    # Products of positions with kernel elements, added up. STRIDES: of w.
    convtranspose_col2im(ISAS ${float_isas} DTYPES f16 bf16 f32 f64 STRIDES 0)
    convtranspose_col2im(ISAS ${float_isas} DTYPES f16 bf16 f32 STRIDES 2)
    if(stores_f64_in_turns)
        convtranspose_col2im(ISAS ${float_isas} DTYPES f64 STRIDES 2)
    endif()
    convtranspose_col2im(ISAS ${float_isas} DTYPES f32 STRIDES 3 4)

    # Winograd's algorithm, of layers that may be computed so.
    convtranspose_winograd(ISAS ${float_isas} DTYPES f32 f64 ENTRIES any COUNTS_W 0 1 2 3 COUNTS_H 1 2 3)

    convtranspose_architecture_table()

    # One input channel per group.
    convtranspose_variants(FAMILY depthwise ISAS ${float_isas} DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2 8
                           TILES 1x4 1x2 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${float_isas} DTYPES f16 bf16 f32 f64 STORES planar STRIDES 1 3 4 TILES 1x4 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${float_isas} DTYPES f16 bf16 f32 f64 STORES channels STRIDES 0 TILES 1x4 1x8 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${float_isas_of_32} DTYPES f16 bf16 f32 f64 STORES channels STRIDES 0 TILES 1x16)
    convtranspose_variants(FAMILY depthwise ISAS ${int16_isas} DTYPES i16 STORES planar STRIDES 1 2 8 TILES 1x4 1x2 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${int16_isas} DTYPES i16 STORES planar STRIDES 3 4 TILES 1x4 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${int16_isas} DTYPES i16 i16_f32 STORES channels STRIDES 0 TILES 1x4 1x8 1x1)
    convtranspose_variants(FAMILY depthwise ISAS ${int16_isas_of_32} DTYPES i16 i16_f32 STORES channels STRIDES 0 TILES 1x16)
    convtranspose_variants(FAMILY depthwise ISAS ${int16_isas} DTYPES i16_f32 STORES planar STRIDES 1 2 4 8 TILES 1x1)

    # Bare sums, to be added up over the axes beyond three.
    convtranspose_variants(FAMILY channels ISAS ${int16_isas} DTYPES i16_s32 STORES channels planar STRIDES 0 TILES 2x4 1x1)

    # Anything.
    convtranspose_variants(FAMILY reference ISAS ${float_isas} DTYPES f16 bf16 f32 f64 STORES channels STRIDES 0 TILES 1x1)
    convtranspose_variants(FAMILY reference ISAS ${int16_isas} DTYPES i16 i16_f32 i16_s32 STORES channels STRIDES 0 TILES 1x1)
endfunction()
