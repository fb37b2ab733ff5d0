#include "reference/built_types.h"

#include <cstddef>

#include "reference/quantized.h"
#include "runtime/kernels/variant.h"

namespace convtranspose::test {

bool is_built(convt_dtype dtype) {
    const bool quantized = is_quantized(dtype);
    if (!quantized && dtype != CONVT_F16 && dtype != CONVT_BF16 && dtype != CONVT_F32 && dtype != CONVT_F64)
        return true;
    for (std::size_t i = 0; i < variant_count(); ++i) {
        const Variant &v = variant_at(i);
        if (is_float(v.arithmetic) ? v.dtype == dtype : quantized) return true;
    }
    return false;
}

std::vector<convt_dtype> built_of(const std::vector<convt_dtype> &dtypes) {
    std::vector<convt_dtype> built;
    for (const convt_dtype dtype : dtypes) {
        if (is_built(dtype)) built.push_back(dtype);
    }
    return built;
}

} // namespace convtranspose::test
