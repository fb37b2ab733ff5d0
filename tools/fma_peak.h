// The machine's multiply-add peak: the most that any kernel could reach.
#ifndef CONVTRANSPOSE_TOOLS_FMA_PEAK_H_
#define CONVTRANSPOSE_TOOLS_FMA_PEAK_H_

#include <string>

#include "convtranspose/convtranspose.h"

namespace convtranspose::tools {

// GFLOP/s (a multiply and an add are two) of `threads` threads together, by loops that touch no memory, with the
// vectors of `isa`, an ISA that this CPU runs. f16 and bf16 accumulate in f32, so theirs is the f32 peak, but that of bf16
// products on amx. u8 and s8: of 8-bit products where the ISA has VNNI or is amx, else of 16-bit ones, summed in 32 bits. The best of many rounds, about 0.1 s
// in all.
double fma_peak_gflops(const std::string &isa, convt_dtype dtype, int threads);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_FMA_PEAK_H_
