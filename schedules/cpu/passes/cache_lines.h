// The cache lines that a piece of lowered code accesses.
#ifndef CONVTRANSPOSE_SCHEDULES_CPU_PASSES_CACHE_LINES_H_
#define CONVTRANSPOSE_SCHEDULES_CPU_PASSES_CACHE_LINES_H_

#include <string>
#include <vector>

#include <Halide.h>

namespace convtranspose {

// The first and the last element of each load or store of a buffer, in bytes from where the buffer begins.
struct Accesses {
    std::string buffer;
    std::vector<Halide::Expr> at;
    int bytes = 0; // of an element

    void add(Halide::Expr index, int element_bytes);
};

// One address for each cache line that is accessed. Among accesses at constant distances these are the first, those from there on
// that are a line further, and the last, as lines may begin anywhere; not the last if the next step goes on there (dense).
std::vector<Halide::Expr> lines(const Accesses &accesses, bool dense);

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_CPU_PASSES_CACHE_LINES_H_
