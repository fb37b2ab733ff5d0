// Matrices of AMX computed in software.
#ifndef CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_
#define CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_

#include "isa/vex.h"

namespace convtranspose::test {

// Does what the instruction would; false if it is not one of AMX, or if the CPU would refuse it too.
bool execute_amx(const VexInstruction &instruction);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ISA_AMX_EMULATOR_H_
