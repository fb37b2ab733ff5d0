// Random layers, to time kernels on when it is not known which layers a machine will compute.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_RANDOM_PROBLEMS_H_
#define CONVTRANSPOSE_TOOLS_TUNE_RANDOM_PROBLEMS_H_

#include <random>
#include <string>

namespace convtranspose::tools {

// Returns a layer of floats as a line (problem_line.h). It is like those of bench/random_layers.py, but small enough for the
// reference, which checks each candidate. The same state of the generator gives the same layer on every machine.
std::string random_problem(std::mt19937 *generator);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_RANDOM_PROBLEMS_H_
