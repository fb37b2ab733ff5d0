// Running independent tasks on several threads: the caller's, or our own.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_
#define CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_

#include <cstddef>

#include "base/float_mode.h"
#include "base/work_shares.h"
#include "convtranspose/convtranspose.h"

namespace convtranspose {

struct Parallel {
    int threads = 1;
    convt_parallel_for hook = nullptr; // null: our own threads
    void *user = nullptr;

    // body(i) for i in 0..count-1, each once, in any order; returns when all are done.
    template<typename Body>
    void for_each(std::size_t count, const Body &body) const {
        if (threads <= 1 || count <= 1) {
            for (std::size_t i = 0; i < count; i++) body(i);
            return;
        }
        // Other threads compute as the caller's does.
        const auto as_the_caller = [&body, mode = FloatMode::of_this_thread()](std::size_t i) {
            const FloatMode::Scope scope(mode);
            body(i);
        };
        const auto task = [](void *context, std::size_t i) { (*static_cast<decltype(&as_the_caller)>(context))(i); };
        run(count, task, const_cast<void *>(static_cast<const void *>(&as_the_caller)));
    }

    // body(i, worker) for i in 0..count-1, each once: by one worker in this order; by several, each on a thread, in any, each
    // first an equal share.
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

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_PARALLEL_H_
