// The types that this build has kernels for: all of them, unless CONVTRANSPOSE_TYPES selects some.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_BUILT_TYPES_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_BUILT_TYPES_H_

#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

// dtype is a type of x. Types that no kernel is ever built for, and so no selection leaves out, count as built.
bool is_built(convt_dtype dtype);

// Those of the list that are built, in its order.
std::vector<convt_dtype> built_of(const std::vector<convt_dtype> &dtypes);
inline std::vector<convt_dtype> built_floats() { return built_of({CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F64}); }

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_BUILT_TYPES_H_
