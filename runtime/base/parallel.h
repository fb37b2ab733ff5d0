// Independent tasks run on several threads, the caller's or the library's own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/float_mode.h"
#include "convtranspose/convtranspose.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

// These replace the parts of the C++ library that are missing on systems without threads.
#ifdef CONVTRANSPOSE_NO_THREADS
#define CONVTRANSPOSE_THREAD_LOCAL
struct Mutex {
    void lock() {}
    void unlock() {}
};
#else
#define CONVTRANSPOSE_THREAD_LOCAL thread_local
using Mutex = std::mutex;
#endif

// Divides tasks into equal shares, one for each worker, so that a worker reads and writes the same memory in each run, which
// its caches then hold. A worker that has finished its own share helps the others.
class WorkShares {
  public:
    WorkShares(std::size_t tasks, std::size_t workers) : count_(std::min(workers, kMost)) {
        for (std::size_t s = 0; s < count_; s++) {
            shares_[s].next.store(begin_of(tasks, s), std::memory_order_relaxed);
            shares_[s].end = begin_of(tasks, s + 1);
        }
    }

    // Calls task(i) for every i that nobody has taken, beginning with the worker's own share, and returns the number of calls.
    // Several threads may be the same worker.
    template<typename Task>
    std::size_t work(std::size_t worker, const Task &task) {
        std::size_t taken = 0;
        for (std::size_t s = 0; s < count_; s++) {
            Share &share = shares_[(worker + s) % count_];
            for (;;) {
                const std::size_t i = share.next.fetch_add(1, std::memory_order_relaxed);
                if (i >= share.end) break;
                task(i);
                taken++;
            }
        }
        return taken;
    }

  private:
    // Beyond this number, workers share shares, so that no memory needs to be allocated.
    static constexpr std::size_t kMost = 64;

    // Each share has a cache line of its own.
    struct alignas(kCacheLine) Share {
        std::atomic<std::size_t> next;
        std::size_t end;
    };

    // The product tasks * share may overflow, so it is not computed.
    std::size_t begin_of(std::size_t tasks, std::size_t share) const {
        return tasks / count_ * share + tasks % count_ * share / count_;
    }

    const std::size_t count_;
    std::array<Share, kMost> shares_;
};

struct Parallel {
    int threads = 1;
    convt_parallel_for hook = nullptr; // null: the library's own threads
    void *user = nullptr;

    // Calls body(i) once for each i in 0..count-1, in any order, and returns when all calls have ended.
    template<typename Body>
    void for_each(std::int64_t count, const Body &body) const {
        if (threads <= 1 || count <= 1) {
            for (std::int64_t i = 0; i < count; i++) body(i);
            return;
        }
        // The other threads use the floating-point mode of the caller's thread.
        const auto as_the_caller = [&body, mode = FloatMode::of_this_thread()](std::size_t i) {
            const FloatMode::Scope scope(mode);
            body(static_cast<std::int64_t>(i));
        };
        const auto task = [](void *context, std::size_t i) { (*static_cast<decltype(&as_the_caller)>(context))(i); };
        run(static_cast<std::size_t>(count), task, const_cast<void *>(static_cast<const void *>(&as_the_caller)));
    }

    // Calls body(i, worker) once for each i in 0..count-1. One worker makes the calls in this order. Several workers, each on a
    // thread of its own, begin with equal shares and then help each other, so that the order varies.
    template<typename Body>
    void for_each_by(int workers, std::int64_t count, const Body &body) const {
        if (workers <= 1) {
            for (std::int64_t i = 0; i < count; i++) body(i, std::int64_t{0});
            return;
        }
        WorkShares shares(static_cast<std::size_t>(count), static_cast<std::size_t>(workers));
        for_each(workers, [&](std::int64_t worker) {
            shares.work(static_cast<std::size_t>(worker),
                        [&](std::size_t i) { body(static_cast<std::int64_t>(i), worker); });
        });
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
