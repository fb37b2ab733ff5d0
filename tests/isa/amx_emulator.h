// Matrices of AMX computed in software, so that kernels that use them can be run on a CPU that has AVX-512 but no tiles.
#ifndef CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_
#define CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_

#include <string>

namespace convtranspose::test {

// From now on SIGILL of an instruction of AMX computes what the instruction would. Empty, or why that cannot be: the kernels
// need the rest of what such a CPU has. Where the CPU has tiles nothing is emulated.
std::string emulate_amx();

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_
