// Independent tasks run on several threads, the caller's or the library's own.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_
#define CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_

#include <cstddef>

#include "base/float_mode.h"
#include "base/work_shares.h"
#include "convtranspose/convtranspose.h"

namespace convtranspose {

struct Parallel {
    int threads = 1;
    convt_parallel_for hook = nullptr; // null: the library's own threads
    void *user = nullptr;

    // Calls body(i) once for each i in 0..count-1, in any order, and returns when all calls have ended.
    template<typename Body>
    void for_each(std::size_t count, const Body &body) const {
        if (threads <= 1 || count <= 1) {
            for (std::size_t i = 0; i < count; i++) body(i);
            return;
        }
        // The other threads use the floating-point mode of the caller's thread.
        const auto as_the_caller = [&body, mode = FloatMode::of_this_thread()](std::size_t i) {
            const FloatMode::Scope scope(mode);
            body(i);
        };
        const auto task = [](void *context, std::size_t i) { (*static_cast<decltype(&as_the_caller)>(context))(i); };
        run(count, task, const_cast<void *>(static_cast<const void *>(&as_the_caller)));
    }

    // Calls body(i, worker) once for each i in 0..count-1. One worker makes the calls in this order. Several workers, each on a
    // thread of its own, begin with equal shares and then help each other, so that the order varies.
    template<typename Body>
    void for_each_by(int workers, std::size_t count, const Body &body) const {
        if (workers <= 1) {
            for (std::size_t i = 0; i < count; i++) body(i, std::size_t{0});
            return;
        }
        WorkShares shares(count, static_cast<std::size_t>(workers));
        for_each(static_cast<std::size_t>(workers),
                 [&](std::size_t worker) { shares.work(worker, [&](std::size_t i) { body(i, worker); }); });
    }

  private:
    void run(std::size_t count, convt_task task, void *context) const;
};

// While it lives, this thread's tasks are run by a hook of their own, not by that of the Parallel. hook: null for none.
class RunHook {
  public:
    RunHook(convt_parallel_for hook, void *user);
    ~RunHook();
    RunHook(const RunHook &) = delete;
    RunHook &operator=(const RunHook &) = delete;

  private:
    const convt_parallel_for hook_before_;
    void *const user_before_;
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_
