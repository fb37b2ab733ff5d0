// Copying x into the order in which a kernel reads it.
#pragma once

#include <HalideRuntime.h>

#include <array>
#include <cstdint>

#include "base/parallel.h"
#include "kernels/kernel_tables.h"
#include "problem/quantization.h"

namespace convtranspose {

// The box of x that a call of a copy kernel copies: dimensions c0, w, h, d, c1, g, n. Strides are in elements.
struct CopyBox {
    struct Axis {
        std::int64_t extent = 1, from = 0, to = 0; // from, to: strides
    };
    std::array<Axis, 7> axes;
    bool fetches_from = false, fetches_to = false; // ahead: fetches_copied() of the tensors that it is part of
};

// An end of a copy: the first element of the box there, and the type of elements.
template<typename Data>
struct Typed {
    Data *data;
    halide_type_t type;
};
// Copies the box on all threads, in parts of its longest dimension other than c0 and w.
void run_copy(const Copier &copy, const CopyBox &box, const Typed<const void> &from, const Typed<void> &to,
              const ByteX &byte_x, const Parallel &parallel);

} // namespace convtranspose
