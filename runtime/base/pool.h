// The library has threads of its own, for callers that give it none.
#pragma once

#include <cstddef>
#include <mutex>

#include "convtranspose/convtranspose.h"

namespace convtranspose {

// Runs task(context, i) for each i in 0..count-1 and returns when all have ended. The calling thread takes part, with up to
// workers - 1 threads of the process's pool, which has one thread less than usable_cpus(). Tasks must not throw.
void run_on_own_threads(std::size_t count, std::size_t workers, convt_task task, void *context);

#ifndef CONVTRANSPOSE_NO_THREADS
// Threads that help callers with their jobs. A helper is idle, or belongs to the one caller who took it from the list of idle ones.
// It accepts the caller's offer of a job, or the caller withdraws the offer: one atomic exchange decides. A caller returns when all
// its helpers have ended the job or lost the offer, so jobs are on the stacks of callers; nothing throws or allocates until then.
// The lock is held to change the list or to start a thread, never while one works. Pools and helpers are never destroyed.
class Pool {
  public:
    // most: the number of helpers, which are started when they are first needed. abandoned: see the member.
    explicit Pool(std::size_t most, const Pool *abandoned = nullptr) : most_(most), abandoned_(abandoned) {}

    void run(std::size_t count, std::size_t workers, convt_task task, void *context);
    std::size_t started() const;

  private:
    struct Job;
    class Helper;

    Helper *take(std::size_t wanted, std::size_t *taken);
    void put_back(Helper *first);
    bool start_one();

    const std::size_t most_;
    [[maybe_unused]] const Pool *const abandoned_; // the parent's pool after a fork; kept so that leak checkers find it
    mutable std::mutex mutex_;                     // guards all members below
    Helper *idle_ = nullptr;                       // a list; its first helper worked last
    std::size_t started_ = 0;
    std::size_t jobs_until_next_try_ = 0; // after a thread could not be started
};
#endif

} // namespace convtranspose
