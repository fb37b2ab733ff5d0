// A program that the linker gave no kernels, as the wrong order of archives does, says so when it plans.
#include <cstdio>
#include <string>

#include "convtranspose/convtranspose.hpp"

int main() {
    convtranspose::Problem problem;
    problem.x_shape = {1, 4, 5, 5};
    problem.w_shape = {4, 4, 3, 3};
    convtranspose::Plan plan;
    const convtranspose::Status status = convtranspose::Plan::create(problem, {}, nullptr, nullptr, &plan);
    std::printf("%s\n", status.message().c_str());
    return status.code() == CONVT_UNSUPPORTED && status.message().find("no kernels for the CPU are linked") == 0 ? 0
                                                                                                                 : 1;
}
