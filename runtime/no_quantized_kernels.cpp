#include "variant.h"

namespace convtranspose {

const KernelTable convt_quantized_kernels = {};

} // namespace convtranspose
