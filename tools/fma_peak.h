// The machine's multiply-add peak, which is the most that any kernel could reach.
#ifndef CONVTRANSPOSE_TOOLS_FMA_PEAK_H_
#define CONVTRANSPOSE_TOOLS_FMA_PEAK_H_

#include <string>

#include "convtranspose/convtranspose.h"

namespace convtranspose::tools {

// GFLOP/s (a multiply and an add are two) that `threads` threads, or one for each CPU if those are fewer, reach together in loops
// that touch no memory, with the vectors of `isa`, an ISA that this CPU runs. It is the best of many rounds, and takes about 0.1 s.
// f16 and bf16 are summed in f32, so they have the peak of f32, except bf16 on amx, which has instructions for it. The peak of u8
// and s8 is that of 8-bit products if the ISA has VNNI or AMX, and else of 16-bit ones, summed in 32 bits.
double fma_peak_gflops(const std::string &isa, convt_dtype dtype, int threads);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_FMA_PEAK_H_
