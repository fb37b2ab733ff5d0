#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>

#include "base/error.h"
#include "base/pool.h"

namespace convtranspose {

namespace {

// Runs tasks on threads that do not expect exceptions. It keeps the first exception and skips the tasks that were not begun by
// then.
struct Tasks {
    const convt_task task;
    void *const context;
    std::atomic<bool> has_failed{false};
    std::exception_ptr failure;

    void run(std::size_t i) noexcept {
        if (has_failed.load(std::memory_order_relaxed)) return;
        attempt([&] { task(context, i); },
                [&] {
                    if (!has_failed.exchange(true)) failure = std::current_exception();
                });
    }
};

CONVTRANSPOSE_THREAD_LOCAL convt_parallel_for run_hook = nullptr;
CONVTRANSPOSE_THREAD_LOCAL void *run_user = nullptr;

} // namespace

RunHook::RunHook(convt_parallel_for hook, void *user) : hook_before_(run_hook), user_before_(run_user) {
    run_hook = hook;
    run_user = user;
}

RunHook::~RunHook() {
    run_hook = hook_before_;
    run_user = user_before_;
}

void Parallel::run(std::size_t count, convt_task task, void *context) const {
    Tasks tasks{task, context, {}, {}};
    const convt_task run_one = [](void *all, std::size_t i) { static_cast<Tasks *>(all)->run(i); };
    if (run_hook) {
        run_hook(run_user, count, run_one, &tasks);
    } else if (hook) {
        hook(user, count, run_one, &tasks);
    } else {
        run_on_own_threads(count, std::min(static_cast<std::size_t>(threads), count), run_one, &tasks);
    }
    if (tasks.failure) std::rethrow_exception(tasks.failure);
}

} // namespace convtranspose
