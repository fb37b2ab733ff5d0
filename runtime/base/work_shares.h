// Divides tasks into equal shares, one for each worker, so that a worker reads and writes the same memory in each run, which
// its caches then hold. A worker that has finished its own share helps the others.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_WORK_SHARES_H_
#define CONVTRANSPOSE_RUNTIME_BASE_WORK_SHARES_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "kernel_contract/fetching.h"

namespace convtranspose {

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

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_WORK_SHARES_H_
