// Copying x into the order in which a kernel reads it.
#ifndef CONVTRANSPOSE_RUNTIME_DIRECT_COPY_BOX_H_
#define CONVTRANSPOSE_RUNTIME_DIRECT_COPY_BOX_H_

#include <HalideRuntime.h>

#include <array>
#include <cstdint>

#include "base/parallel.h"
#include "kernels/kernel_tables.h"
#include "problem/quantization.h"

namespace convtranspose {

// Extents and strides (c0, w, h, d, c1, g, n), in elements, of what a copy kernel copies.
struct CopyBox {
    std::array<std::int64_t, 7> extents, from, to;
};

// On all threads, in parts of the longest dimension but c0 and w.
template<typename Data>
struct Typed {
    Data *data; // of the box's first element
    halide_type_t type;
};
void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel);

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_DIRECT_COPY_BOX_H_
