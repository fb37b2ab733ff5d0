// Instructions that this CPU lacks computed in software, so that kernels that use them can be run on it.
#ifndef CONVTRANSPOSE_TESTS_ISA_EMULATOR_H_
#define CONVTRANSPOSE_TESTS_ISA_EMULATOR_H_

#include <string>

namespace convtranspose::test {

// From now on SIGILL of an instruction that is there for the ISA, "amx" or "avx_vnni", does what the instruction would, and the
// library takes the CPU for one that has the ISA. Returns why that cannot be: the kernels need the rest of what such a CPU has;
// empty if it can. Nothing is emulated for ISAs that the CPU has, or that have no emulation.
std::string emulate(const std::string &isa);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ISA_EMULATOR_H_
