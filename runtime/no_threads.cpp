// Instead of parallel.cpp, for systems without threads: what is not the caller's own runs one task after the other.
#include "parallel.h"

namespace convtranspose {

void Parallel::run(std::size_t count, convt_task task, void *context) const {
    if (hook) {
        hook(user, count, task, context);
        return;
    }
    for (std::size_t i = 0; i < count; i++) task(context, i);
}

} // namespace convtranspose
