// Runs tests with kernels of one ISA, CONVTRANSPOSE_TEST_ISA, where the CPU would have others chosen; AMX and AVX-VNNI in software
// if need be.
// 77: neither runs here.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.h"
#include "isa/emulator.h"

int main(int argc, char **argv) {
    constexpr int kSkipped = 77;
    testing::InitGoogleTest(&argc, argv);
    const char *const isa = std::getenv("CONVTRANSPOSE_TEST_ISA");
    if (!isa) {
        std::fputs("CONVTRANSPOSE_TEST_ISA is not set: set it to the name of an ISA\n", stderr);
        return EXIT_FAILURE;
    }
    std::string why_not = convtranspose::test::emulate(isa);
    bool supported = false;
    for (std::size_t i = 0; i < convt_isa_count(); ++i) {
        if (std::string(convt_isa_name(i)) == isa) supported = convt_isa_supported(i) != 0;
    }
    if (!supported) {
        if (why_not.empty()) why_not = "this CPU does not run it, or it is not built";
        std::printf("SKIPPED: %s: %s\n", isa, why_not.c_str());
        return kSkipped;
    }
    return RUN_ALL_TESTS();
}
