#include "variant.h"

namespace convtranspose {

const KernelTable convt_float_kernels = {};

} // namespace convtranspose
