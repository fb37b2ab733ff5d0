// The library's own threads.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_POOL_H_
#define CONVTRANSPOSE_RUNTIME_BASE_POOL_H_

#include <cstddef>
#include <mutex>

#include "convtranspose/convtranspose.h"

namespace convtranspose {

// Runs task(context, i) for each i in 0..count-1 and returns when all have ended, on the calling thread and on up to workers - 1
// threads of the process's pool, which has as many as the process may use besides. Tasks must not throw.
void run_on_own_threads(std::size_t count, std::size_t workers, convt_task task, void *context);

// How many CPUs the process may use: those of the calling thread's affinity, fewer if its control group grants less time.
std::size_t usable_cpus();

// CPUs' worth of time that control groups grant the process (Linux); 0: there is no limit. root: what paths begin with, "" but in
// tests.
double granted_cpus(const char *root);

#ifndef CONVTRANSPOSE_NO_THREADS
// Threads that help callers with their jobs. The rules by which it is right:
//  1. A helper is in the list of idle ones, or belongs to the one caller who took it from there and who puts it back.
//  2. Its caller offers it a job. Either the helper accepts, or its caller withdraws the offer: one atomic exchange decides.
//  3. A caller returns when each of its helpers has had its offer withdrawn or has ended what it accepted, so that none looks at
//     a job after that. Jobs are on their callers' stacks.
//  4. Nothing throws or allocates from the first offer until then. The pool's lock is held to change the list or to start a
//     thread, not while anyone works or waits.
//  5. No pool or helper is ever destroyed: helpers wait for work until the process ends.
class Pool {
  public:
    // most: helpers, which are started when they are first needed. abandoned: see below.
    explicit Pool(std::size_t most, const Pool *abandoned = nullptr) : most_(most), abandoned_(abandoned) {}
    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    void run(std::size_t count, std::size_t workers, convt_task task, void *context);
    std::size_t started() const;

  private:
    class Helper;

    Helper *take(std::size_t wanted, std::size_t *taken);
    void put_back(Helper *first);
    bool start_one();

    const std::size_t most_;
    // The parent's pool, in a process that was forked: kept so that it counts as no leak.
    [[maybe_unused]] const Pool *const abandoned_;
    mutable std::mutex mutex_; // of all below
    Helper *idle_ = nullptr;   // a list; the first of them worked last
    std::size_t started_ = 0;
    std::size_t jobs_until_next_try_ = 0; // to start a thread, where one could not be started
};
#endif

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_POOL_H_
