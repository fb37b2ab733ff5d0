# Rows of the table (variants.cmake) for sixteen registers of four f32 and one ISA: WebAssembly, and 32-bit ARM.
function(convtranspose_architecture_table)
    # Deep channels.
    convtranspose_variants(FAMILY channels ISAS ${isas} DTYPES f32 f64 STORES channels planar STRIDES 0
                           TILES 2x6 2x5 2x4 2x3x2 2x2x3 2x1 1x6 1x1)
    convtranspose_variants(FAMILY channels ISAS ${isas} DTYPES f32 f64 STORES planar STRIDES 1 2 4 TILES 2x6 2x4 2x2x3)
    convtranspose_variants(FAMILY channels ISAS ${isas} DTYPES f16 bf16 STORES channels planar STRIDES 0 TILES 2x6 2x4 2x1 1x1)

    # Wide rows of planar images; few output channels of any.
    convtranspose_variants(FAMILY wide ISAS ${isas} DTYPES f32 f64 STORES planar STRIDES 1 2 3 4 TILES 4x3 6x2 6x1 3x3)
    convtranspose_variants(FAMILY wide ISAS ${isas} DTYPES f16 bf16 STORES planar STRIDES 1 2 3 4 TILES 4x3 6x1)
    convtranspose_variants(FAMILY wide ISAS ${isas} DTYPES f16 bf16 f32 STORES channels STRIDES 1 2 3 4 TILES 4x3 2x2x2)

    # Few output channels: a tile holds the residues of both axes.
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES f16 bf16 f32 f64 STORES planar STRIDES 1x1 2x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 4x1 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES f16 bf16 f32 f64 STORES planar STRIDES 3x3 8x1 TILES 1x1)

    # Quantized.
    convtranspose_variants(FAMILY channels ISAS ${isas} DTYPES i16 i16_f32 STORES channels planar STRIDES 0
                           TILES 2x5 2x4 2x2x2 2x1 1x6 1x1)
    convtranspose_variants(FAMILY wide ISAS ${isas} DTYPES i16 STORES planar STRIDES 1 2 TILES 4x2 6x1 3x3)
    convtranspose_variants(FAMILY wide ISAS ${isas} DTYPES i16 STORES channels STRIDES 1 2 3 4 TILES 3x3 2x2x2)
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES i16 STORES planar STRIDES 1x1 2x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES i16 STORES planar STRIDES 2x2 4x1 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS ${isas} DTYPES i16 STORES planar STRIDES 3x3 8x1 TILES 1x1)
endfunction()
