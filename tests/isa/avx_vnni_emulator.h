// Dot products of AVX-VNNI computed in software.
#ifndef CONVTRANSPOSE_TESTS_ISA_AVX_VNNI_EMULATOR_H_
#define CONVTRANSPOSE_TESTS_ISA_AVX_VNNI_EMULATOR_H_

#include <ucontext.h>

#include "isa/vex.h"

namespace convtranspose::test {

// Does what the instruction would, with the vector registers of the context; false if it is not one of AVX-VNNI.
bool execute_avx_vnni(const VexInstruction &instruction, ucontext_t *context);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_ISA_AVX_VNNI_EMULATOR_H_
