// The problems that every variant is run on, those that it can do: sizes around the tiles, each attribute, each way of
// grouping, in every type and layout.
#ifndef CONVTRANSPOSE_TESTS_VARIANTS_PROBLEMS_H_
#define CONVTRANSPOSE_TESTS_VARIANTS_PROBLEMS_H_

#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

std::vector<Problem> variant_problems(convt_dtype dtype, convt_layout layout);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_VARIANTS_PROBLEMS_H_
