// A kernel made by the AOT generator's own class, compiled in this process with Halide's checks of every buffer on.
#ifndef CONVTRANSPOSE_TESTS_ALGORITHM_JIT_KERNEL_H_
#define CONVTRANSPOSE_TESTS_ALGORITHM_JIT_KERNEL_H_

#include "runtime/cpu/cpu.h"
#include "runtime/kernels/variant.h"

namespace convtranspose::test {

// Those fields of a row of the variant table that a generator needs. Tiles are in elements.
struct JitKernel {
    const char *generator; // the family's
    Family family;
    OutputOrder output_order;
    int stride_w, stride_h;
    int tile_oc, tile_q, tile_qh;
    Arithmetic arithmetic = Arithmetic::kFloat;
};

// Compiles it for a dtype of y (u8: any of 8 bits), and returns the row of a table that would have it. The row's function runs the
// kernel compiled last, so one row can be used at a time. Halide's own errors are thrown.
Variant compile(const JitKernel &kernel, convt_dtype dtype);

// Lanes of a vector of the sums of a dtype on the machine that this runs on; of integers those of f32.
int lanes_of(convt_dtype dtype);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ALGORITHM_JIT_KERNEL_H_
