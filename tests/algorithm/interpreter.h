// An interpreter of lowered pipelines, by which tests compare the loops before a lowering pass with those after it, whatever
// machine they are for: also those of blocks and threads of a GPU, and the tile registers of AMX.
#ifndef CONVTRANSPOSE_TESTS_ALGORITHM_INTERPRETER_H_
#define CONVTRANSPOSE_TESTS_ALGORITHM_INTERPRETER_H_

#include <map>
#include <string>
#include <vector>

#include <Halide.h>

namespace convtranspose::test {

// A dense buffer of a pipeline: its extents, innermost first, and its elements. All minima are 0.
struct Memory {
    std::vector<int> extents;
    std::vector<double> elements; // exact for all numbers that tests have

    explicit Memory(std::vector<int> extents_);
};

using Memories = std::map<std::string, Memory>; // by the names of buffers

// Adds a pass to a pipeline that changes nothing, but keeps the loops that it is given when the pipeline is compiled.
void keep_loops(Halide::Pipeline pipeline, Halide::Internal::Stmt *loops);

// Runs loops on buffers. The threads of a block run one after the other, each from one barrier to the next, so that a barrier that
// is missing gives other results. What is read before it was written is a NaN. Throws std::runtime_error for what it does not know,
// and for indices outside of a buffer.
void interpret(const Halide::Internal::Stmt &loops, Memories *buffers);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ALGORITHM_INTERPRETER_H_
