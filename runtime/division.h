// Division of integers that rounds down, or up. The divisor is positive.
#ifndef CONVTRANSPOSE_RUNTIME_DIVISION_H_
#define CONVTRANSPOSE_RUNTIME_DIVISION_H_

#include <cstdint>

namespace convtranspose {

inline std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }
// The latter, for estimates.
inline double parts_of(std::int64_t a, std::int64_t b) { return static_cast<double>(ceil_div(a, b)); }

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIVISION_H_
