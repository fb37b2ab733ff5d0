# Rows of the table (variants.cmake) for x86.
function(convtranspose_architecture_table)
    # Deep channels. Narrow images take the narrow tiles, which go over rows to fill the registers. Planar rows are stored
    # in runs if the stride is built in. Channels last, tiles of one row need no copy of x but at the ends of rows.
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 f64 STORES channels STRIDES 0
                           TILES 2x14 2x12 2x10 2x8 2x7 2x5 2x4 2x6x2 2x5x2 2x4x2 2x4x3 2x3x4
                                 3x8 3x4x2 3x2x4 4x6 4x4 4x2 4x3x2 4x2x2 4x1x2 4x2x3
                                 2x2 2x2x4 8x1 2x1 1x14 1x12 1x8x2 1x6x2 1x4x2 1x4 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 f64 STORES planar STRIDES 0
                           TILES 2x14 2x7 2x4x3 2x4 2x2 8x1 2x1 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 STORES planar STRIDES 1
                           TILES 2x14 2x12 2x10 2x8 2x7x2 2x4x2 2x4x3)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 STORES planar STRIDES 2
                           TILES 2x14 2x12 2x10 2x8 2x7x2 2x5x2 2x4x2 2x4x3 1x16 1x8x2)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 STORES planar STRIDES 3 4 8
                           TILES 2x14 2x12 2x10 2x8 2x4x2 1x8)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f16 bf16 f64 STORES planar STRIDES 1 2 4 TILES 2x12 2x8 2x4x2)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f64 STORES planar STRIDES 8 TILES 2x14 2x10 2x8)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f16 bf16 STORES channels planar STRIDES 0
                           TILES 2x14 2x8 2x4x3 2x2 2x1 1x1)
    convtranspose_variants(FAMILY channels ISAS avx2 x86_64 DTYPES f32 f64 STORES channels planar STRIDES 0
                           TILES 2x6 2x5 2x4 2x3x2 2x2x3 2x1 1x6 1x1)
    convtranspose_variants(FAMILY channels ISAS avx2 x86_64 DTYPES f32 f64 STORES planar STRIDES 1 2 4 TILES 2x6 2x4 2x2x3)
    convtranspose_variants(FAMILY channels ISAS avx2 x86_64 DTYPES f16 bf16 STORES channels planar STRIDES 0
                           TILES 2x6 2x4 2x1 1x1)

    # Wide rows of planar images. Few output channels take the flat tiles, which also serve channels last (their stores are
    # scattered, but few).
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f32 STORES planar STRIDES 1 2
                           TILES 8x3 12x2 8x2 14x1 8x1 4x6 3x8 3x4x2 3x2x4)
    # Of a kernel of 3x3, elements as output channels are multiples of nine.
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f32 STORES planar STRIDES 1 TILES 9x3)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f32 STORES planar STRIDES 3 4 TILES 8x3 8x2 8x1 3x8 3x4x2)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f16 bf16 f64 STORES planar STRIDES 1 2 3 4 TILES 8x3 8x2 8x1 3x4x2)
    convtranspose_variants(FAMILY wide ISAS avx2 x86_64 DTYPES f32 f64 STORES planar STRIDES 1 2 3 4 TILES 4x3 6x2 6x1 3x3)
    convtranspose_variants(FAMILY wide ISAS avx2 x86_64 DTYPES f16 bf16 STORES planar STRIDES 1 2 3 4 TILES 4x3 6x1)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f16 bf16 f32 STORES channels STRIDES 1 2 TILES 3x8 3x4x2 3x2x4)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f16 bf16 f32 STORES channels STRIDES 3 4 TILES 3x8 3x2x4)
    convtranspose_variants(FAMILY wide ISAS avx2 x86_64 DTYPES f16 bf16 f32 STORES channels STRIDES 1 2 3 4 TILES 4x3 2x2x2)

    # Few output channels: a tile holds the residues of both axes.
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 1x1 2x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 TILES 1x6 1x4 1x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f32 STORES planar STRIDES 2x2 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 3x3 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 8x1 TILES 1x3 1x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 4x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 4x4 TILES 1x1)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 1x1 2x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 4x1 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 3x3 8x1 TILES 1x1)

    # Kernels of common taps, as constants, unrolled: what searches for the layers of networks found to be the fastest.
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 TAPS 2s2p0 TILES 3x2 1x4)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 TAPS 4s2p1 TILES 3x2 1x4)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f32 STORES planar STRIDES 2x2 TAPS 3s2p1 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f32 f64 STORES planar STRIDES 2x2 TAPS 9s2p4 TILES 1x4)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f32 f64 STORES planar STRIDES 3x3 TAPS 9s3p4 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 8x1 TAPS 16s8p0x1s1p0 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES f32 STORES planar STRIDES 2x1 TAPS 4s2p1x1s1p0 TILES 4x2)
    convtranspose_variants(FAMILY depthwise ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2x2 TAPS 4s2p1 TILES 1x4 1x2)
    convtranspose_variants(FAMILY depthwise ISAS avx512 DTYPES f32 STORES planar STRIDES 2x2 TAPS 3s2p1 TILES 1x4 1x2)
    convtranspose_variants(FAMILY depthwise ISAS avx512 DTYPES f32 STORES planar STRIDES 1x1 TAPS 3s1p1 TILES 1x4)
    convtranspose_variants(FAMILY depthwise ISAS avx512 DTYPES f32 STORES planar STRIDES 4 TAPS 8s4p2 TILES 1x2)
    convtranspose_variants(FAMILY depthwise ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 8 TAPS 16s8p4 TILES 1x2)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f16 bf16 f32 f64 STORES planar STRIDES 2 TAPS 2s2p0 TILES 6x1x2)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES f32 STORES planar STRIDES 2 TAPS 4s2p1 TILES 8x1x2)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 f64 STORES planar STRIDES 2 TAPS 2s2p0 TILES 2x14 2x8)
    convtranspose_variants(FAMILY channels ISAS avx512 DTYPES f32 STORES planar STRIDES 4 TAPS 4s4p0 TILES 2x9 2x6)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 2s2p0 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f16 bf16 f32 STORES planar STRIDES 2 TAPS 2s2p0 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 4s2p1 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f16 bf16 f32 STORES planar STRIDES 2 TAPS 4s2p1 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 3s2p1 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f16 bf16 f32 STORES planar STRIDES 2 TAPS 3s2p1 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 5s2p2 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2 TAPS 5s2p2 TILES 3x2)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 9s2p4 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 3 TAPS 9s3p4 TILES 1x3)
    convtranspose_variants(FAMILY few ISAS avx2 DTYPES f32 STORES planar STRIDES 8x1 TAPS 16s8p0x1s1p0 TILES 1x1)
    convtranspose_variants(FAMILY depthwise ISAS avx2 DTYPES f32 STORES planar STRIDES 2x2 TAPS 4s2p1 TILES 1x2)
    convtranspose_variants(FAMILY depthwise ISAS avx2 DTYPES f32 STORES planar STRIDES 8 TAPS 16s8p4 TILES 1x1)
    convtranspose_variants(FAMILY wide ISAS avx2 DTYPES f32 STORES planar STRIDES 2 TAPS 2s2p0 TILES 6x1x2)
    convtranspose_variants(FAMILY channels ISAS avx2 DTYPES f32 STORES planar STRIDES 2 TAPS 2s2p0 TILES 2x6)

    # Rows of columns of more than two vectors are added up by four at once (on AVX2 that gained nothing).
    convtranspose_col2im(ISAS avx512 DTYPES f32 STRIDES 0 2 3 VECTORS 4)
    # Columns in the order of y: x is not transposed. 64 channels of 32x32 to 3, 4x4 stride 2, take 0.85 of the time, 128 of 128x128
    # 0.86, 256 of 4000 to 1, 16 stride 8, 0.8 (on AVX2 1.1, 0.99, 1).
    convtranspose_col2im(ISAS avx512 DTYPES f16 bf16 f32 f64 STRIDES channels)

    # Winograd's algorithm: of kernels of 4x4 and 3x3 of stride 2, and 3x3 of stride 1; and of a single axis, as of 16 stride 8.
    convtranspose_winograd(ISAS avx512 avx2 DTYPES f32 f64
                           ENTRIES D0X1D1X2D2xD0X1D1X2D2 X0D0X1D1xX0D0X1D1 E0D1S1E1xE0D1S1E1 D0X1D1X2D2 X0D0X1D1 D0X1D1)

    # Matrix instructions, for bf16.
    convtranspose_copies(ISAS amx DTYPES b16 BLOCK 1 ORDERS transposed tiles)
    convtranspose_copies(ISAS amx DTYPES b16 BLOCK 2 ORDERS planar channels)
    convtranspose_variants(FAMILY matrix ISAS amx DTYPES b16 STORES channels STRIDES 0
                           TILES 2x16x2 2x14x2 2x12x2 2x32 2x28 2x24 2x16 2x8x2 2x4x2 2x1)
    convtranspose_variants(FAMILY matrix ISAS amx DTYPES b16 STORES planar STRIDES 1 2 4 TILES 2x32 2x16x2 2x16)
    convtranspose_variants(FAMILY matrix ISAS amx DTYPES b16 STORES planar STRIDES 8 TILES 2x16)

    # Quantized.
    convtranspose_copies(ISAS avx512_vnni DTYPES i8 BLOCK 4 ORDERS planar channels transposed tochannels)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni DTYPES i8 STORES channels STRIDES 0
                           TILES 2x14 2x12 2x10 2x8 2x7 2x6 2x5 2x4x2 2x4x3 2x3x4 2x2 2x2x4 8x1 2x1 1x14 1x8 1x4 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 0 TILES 2x14 2x8 2x4x3 2x2 8x1 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 2 4 8
                           TILES 2x14 2x12 2x8 2x4x2 2x4x3 1x8)
    convtranspose_variants(FAMILY matrix ISAS amx DTYPES i8 STORES channels STRIDES 0
                           TILES 2x16x2 2x14x2 2x12x2 2x32 2x28 2x24 2x16 2x8x2 2x4x2 2x1)
    convtranspose_variants(FAMILY matrix ISAS amx DTYPES i8_f32 STORES channels STRIDES 0 TILES 2x16x2 2x16 2x8x2 2x1)
    # 2x14 of stride 1 would hold an instruction that is AMD's alone (tests/kernels).
    convtranspose_variants(FAMILY channels ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 1 TILES 2x12 2x8 2x4x2 2x4x3 1x8)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni DTYPES i8_f32 STORES channels planar STRIDES 0
                           TILES 2x14 2x8 2x4x3 2x2 8x1 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni avx512 DTYPES i16 STORES channels planar STRIDES 0
                           TILES 2x12 2x8 2x4x3 2x2 8x1 1x1)
    convtranspose_variants(FAMILY channels ISAS avx512_vnni avx512 DTYPES i16_f32 STORES channels planar STRIDES 0
                           TILES 2x12 2x4x2 1x1)
    convtranspose_variants(FAMILY channels ISAS avx2 x86_64 DTYPES i16 i16_f32 STORES channels planar STRIDES 0
                           TILES 2x5 2x4 2x2x2 2x1 1x6 1x1)
    convtranspose_variants(FAMILY wide ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 1 2 3 4
                           TILES 8x3 12x2 8x2 14x1 8x1 3x8 3x4x2)
    convtranspose_variants(FAMILY wide ISAS avx512_vnni DTYPES i8 STORES channels STRIDES 1 2 3 4 TILES 3x8 3x4x2 3x2x4 1x4)
    convtranspose_variants(FAMILY wide ISAS avx512_vnni avx512 DTYPES i16 STORES planar STRIDES 1 2 TILES 8x2 8x1 3x4x2)
    convtranspose_variants(FAMILY wide ISAS avx512 DTYPES i16 STORES channels STRIDES 1 2 3 4 TILES 3x4x2)
    convtranspose_variants(FAMILY wide ISAS avx2 x86_64 DTYPES i16 STORES planar STRIDES 1 2 TILES 4x2 6x1 3x3)
    convtranspose_variants(FAMILY wide ISAS avx2 x86_64 DTYPES i16 STORES channels STRIDES 1 2 3 4 TILES 3x3 2x2x2)
    convtranspose_variants(FAMILY few ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 1x1 2x1 2x2 TILES 1x6 1x4 1x2)
    convtranspose_variants(FAMILY few ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 2x2 TILES 3x2 3x1)
    convtranspose_variants(FAMILY few ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 3x3 8x1 TILES 1x3 1x2)
    convtranspose_variants(FAMILY few ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 4x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS avx512_vnni DTYPES i8 STORES planar STRIDES 4x4 TILES 1x1)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES i16 STORES planar STRIDES 1x1 2x1 2x2 TILES 1x6 1x4)
    convtranspose_variants(FAMILY few ISAS avx512 DTYPES i16 STORES planar STRIDES 3x3 8x1 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES i16 STORES planar STRIDES 1x1 2x1 TILES 1x6)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES i16 STORES planar STRIDES 2x2 4x1 TILES 1x2)
    convtranspose_variants(FAMILY few ISAS avx2 x86_64 DTYPES i16 STORES planar STRIDES 3x3 8x1 TILES 1x1)
endfunction()
