# THE table of kernels for devices, CUDA and OpenCL alike: what is listed here is compiled, dispatched to and tested.
#
#   convtranspose_tiled(DTYPE tile SIDES oc p [CHUNK n] [Y type] [CHANNELS_LAST] [DOTS])   families tiled and few (schedules/gpu)
#   convtranspose_each(DTYPE ...)            one for neighbours along w and one for neighbours along channels
#   convtranspose_combine(PARTS type Y type) adds up sums in parts, and does post-ops
#
# SIDES: output channels and positions of a block of threads, as elements of a vector x threads x vectors of a thread.
# A vector is 16 bytes, which is what a thread loads from shared memory at once.
function(convtranspose_device_table)
    # 64 sums in a thread; 256 threads for layers that fill the device, 64 for those that do not. Narrow tiles of channels for
    # layers that have few.
    foreach(dtype f32 f16 bf16)
        convtranspose_tiled(tiled ${dtype} 128x128 SIDES 4x16x2 4x16x2)
        convtranspose_tiled(tiled ${dtype} 64x64 SIDES 4x8x2 4x8x2)
        convtranspose_tiled(few ${dtype} 4x512 SIDES 4x1x1 1x128x4 CHUNK 4)
    endforeach()
    convtranspose_tiled(tiled f32 32x64 SIDES 4x4x2 4x16x1)
    convtranspose_tiled(tiled f32 channels_64x32 SIDES 4x8x2 4x8x1 CHANNELS_LAST)
    # Sums in parts are f32.
    convtranspose_tiled(tiled f16 parts_64x64 SIDES 4x8x2 4x8x2 Y f32)
    convtranspose_tiled(tiled bf16 parts_64x64 SIDES 4x8x2 4x8x2 Y f32)
    convtranspose_tiled(tiled f64 64x64 SIDES 2x16x2 2x16x2)
    convtranspose_tiled(tiled u8 64x64 SIDES 4x8x2 4x8x2)
    convtranspose_tiled(tiled u8 f32_64x64 SIDES 4x8x2 4x8x2 Y f32)
    # Where weights fit in 8 bits: four products at a time.
    convtranspose_tiled(tiled u8 dots_128x128 SIDES 4x16x2 4x16x2 DOTS)
    convtranspose_tiled(tiled u8 dots_64x64 SIDES 4x8x2 4x8x2 DOTS)
    convtranspose_tiled(tiled u8 dots_channels_64x32 SIDES 4x8x2 4x8x1 CHANNELS_LAST DOTS)
    convtranspose_tiled(tiled u8 dots_f32_64x64 SIDES 4x8x2 4x8x2 Y f32 DOTS)

    convtranspose_each(f32 f16 bf16 f64 u8 u8_f32)

    foreach(dtype f32 f16 bf16 f64)
        convtranspose_combine(PARTS ${dtype} Y ${dtype})
    endforeach()
    convtranspose_combine(PARTS f32 Y f16)
    convtranspose_combine(PARTS f32 Y bf16)
endfunction()
