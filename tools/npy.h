// Reads NumPy's .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#ifndef CONVTRANSPOSE_TOOLS_NPY_H_
#define CONVTRANSPOSE_TOOLS_NPY_H_

#include <filesystem>

#include "tools/tensor.h"

namespace convtranspose::tools {

// Takes float16, float32, float64, uint8, int8, int32, and bfloat16 as ml_dtypes saves it. Throws Rejected for other types, and
// Error for a broken file.
Tensor load_npy(const std::filesystem::path &file);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_NPY_H_
