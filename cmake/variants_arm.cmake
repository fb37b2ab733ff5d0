# Rows of the table (variants.cmake) for 64-bit ARM: 32 registers of four f32.
function(convtranspose_architecture_table)
    # Deep channels. 16 sums hide the latency of four multiply-adds a cycle; narrow images take the tiles of fewer.
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f32 f64 STORES channels STRIDES 0
                           TILES 4x6 2x8 4x4 2x4x2 2x2x3 4x2 8x1 1x8 1x1)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f32 f64 STORES planar STRIDES 0 TILES 4x6 2x8 2x4 2x2x3 8x1 1x1)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f32 STORES planar STRIDES 1 4 TILES 4x6)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f32 STORES planar STRIDES 2 TILES 4x6 2x4x2)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f16 bf16 STORES channels planar STRIDES 0 TILES 4x6 2x8 4x2 1x1)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES f16 bf16 STORES planar STRIDES 1 2 4 TILES 2x8)

    # Sums in f16, where they are asked for.
    convtranspose_copies(ISAS neon_fp16 DTYPES h16 BLOCK 1 ORDERS planar channels transposed tiles)
    convtranspose_variants(FAMILY channels ISAS neon_fp16 DTYPES h16 STORES channels STRIDES 0 TILES 4x6 2x12 2x8 2x4x2 2x1 1x8 1x1)
    convtranspose_variants(FAMILY channels ISAS neon_fp16 DTYPES h16 STORES planar STRIDES 0 TILES 2x8 1x1)
    convtranspose_variants(FAMILY channels ISAS neon_fp16 DTYPES h16 STORES planar STRIDES 1 2 4 TILES 2x12 2x4x2)
    convtranspose_variants(FAMILY wide ISAS neon_fp16 DTYPES h16 STORES planar STRIDES 1 2 4 TILES 8x3 8x1)
    convtranspose_variants(FAMILY few ISAS neon_fp16 DTYPES h16 STORES planar STRIDES 2x2 TILES 1x4)
    convtranspose_variants(FAMILY depthwise ISAS neon_fp16 DTYPES h16 STORES planar STRIDES 1 2 4 TILES 1x2 1x1)
    convtranspose_variants(FAMILY depthwise ISAS neon_fp16 DTYPES h16 STORES channels STRIDES 0 TILES 1x8 1x1)
    convtranspose_variants(FAMILY reference ISAS neon_fp16 DTYPES h16 STORES channels STRIDES 0 TILES 1x1)

    # Wide rows of planar images; few output channels of any.
    convtranspose_variants(FAMILY wide ISAS neon DTYPES f32 f64 STORES planar STRIDES 1 2 TILES 8x3 8x2 16x1 8x1 3x4)
    convtranspose_variants(FAMILY wide ISAS neon DTYPES f32 f64 STORES planar STRIDES 3 4 TILES 8x3 8x2 16x1 3x4)
    convtranspose_variants(FAMILY wide ISAS neon DTYPES f16 bf16 STORES planar STRIDES 1 2 4 TILES 8x3 8x1)
    convtranspose_variants(FAMILY wide ISAS neon DTYPES f16 bf16 f32 STORES channels STRIDES 1 2 4 TILES 3x4)

    # Few output channels: a tile holds the residues of both axes, and leaves registers for the weights of two input channels.
    convtranspose_variants(FAMILY few ISAS neon DTYPES f16 bf16 f32 f64 STORES planar STRIDES 1x1 2x1 TILES 1x8)
    convtranspose_variants(FAMILY few ISAS neon DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 4x1 TILES 1x4)
    convtranspose_variants(FAMILY few ISAS neon DTYPES f16 bf16 f32 f64 STORES planar STRIDES 3x3 8x1 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS neon DTYPES f16 bf16 f32 f64 STORES planar STRIDES 4x4 TILES 1x1)

    # One input channel per group: two vectors of groups to an address, where an addition for each would be as many instructions
    # as there are multiply-adds.
    convtranspose_variants(FAMILY depthwise ISAS neon DTYPES f16 bf16 f32 f64 i16 i16_f32 STORES channels STRIDES 0 TILES 2x8)

    # Quantized: sdot where there is one, else smlal.
    convtranspose_copies(ISAS neon_dotprod DTYPES i8 BLOCK 4 ORDERS planar channels transposed tochannels)

    # 20 sums are the most that leave registers for two blocks of input channels.
    convtranspose_variants(FAMILY channels ISAS neon_dotprod DTYPES i8 STORES channels planar STRIDES 0
                           TILES 2x8 4x4 2x4x2 8x1 1x8 1x1)
    convtranspose_variants(FAMILY channels ISAS neon_dotprod DTYPES i8 STORES channels STRIDES 0 TILES 2x7)
    convtranspose_variants(FAMILY channels ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 1 2 4 TILES 2x8 4x4 2x4x2)
    convtranspose_variants(FAMILY channels ISAS neon_dotprod DTYPES i8_f32 STORES channels planar STRIDES 0 TILES 2x8 2x4 1x1)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES i16 STORES channels planar STRIDES 0
                           TILES 4x6 2x8 2x4x2 8x1 1x8 1x1)
    convtranspose_variants(FAMILY channels ISAS neon DTYPES i16_f32 STORES channels planar STRIDES 0 TILES 4x4 1x1)

    convtranspose_variants(FAMILY wide ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 1 2 3 TILES 8x3 8x1 3x4)
    convtranspose_variants(FAMILY wide ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 4 TILES 3x4)
    convtranspose_variants(FAMILY wide ISAS neon_dotprod DTYPES i8 STORES channels STRIDES 1 2 4 TILES 3x4)
    convtranspose_variants(FAMILY wide ISAS neon DTYPES i16 STORES planar STRIDES 1 2 TILES 8x2 3x4)
    convtranspose_variants(FAMILY wide ISAS neon DTYPES i16 STORES channels STRIDES 1 2 4 TILES 3x4)

    convtranspose_variants(FAMILY few ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 1x1 2x1 TILES 1x8)
    convtranspose_variants(FAMILY few ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 2x2 4x1 TILES 1x4)
    convtranspose_variants(FAMILY few ISAS neon_dotprod DTYPES i8 STORES planar STRIDES 3x3 8x1 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS neon DTYPES i16 STORES planar STRIDES 1x1 2x1 2x2 TILES 1x4)
endfunction()
