// This file replaces pool.cpp on systems without threads. It runs one task after the other.
#include "base/pool.h"
#include "base/usable_cpus.h"

namespace convtranspose {

void run_on_own_threads(std::size_t count, std::size_t, convt_task task, void *context) {
    for (std::size_t i = 0; i < count; i++) task(context, i);
}

std::size_t usable_cpus() { return 1; }

} // namespace convtranspose
