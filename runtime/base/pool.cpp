#include "base/pool.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <new>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "base/usable_cpus.h"

#if defined(_WIN32)
#include <windows.h>
#elif defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <pthread.h>
#endif

namespace convtranspose {

namespace {

using Clock = std::chrono::steady_clock;

// The steps of a layer follow each other closely and end together, so a short spin is cheaper than a sleep.
constexpr std::chrono::microseconds kSpin{50};

// After a thread could not be started, this many jobs do without another try.
constexpr std::size_t kPatience = 1000;

// Returns true if condition() became true before the deadline.
template<typename Condition>
bool spin(Clock::time_point deadline, const Condition &condition) {
    do {
        if (condition()) return true;
    } while (Clock::now() < deadline);
    return false;
}

} // namespace

struct Pool::Job {
    Job(std::size_t count, std::size_t workers, convt_task task_, void *context_)
        : shares(count, workers), task(task_), context(context_) {}

    void work(std::size_t worker) {
        shares.work(worker, [this](std::size_t i) { task(context, i); });
    }

    WorkShares shares;
    const convt_task task;
    void *const context;
};

class Pool::Helper {
  public:
    // The caller offers a job.
    void offer(Job *job, std::size_t worker) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            job_ = job;
            worker_ = worker;
            state_.store(kOffered, std::memory_order_release);
        }
        changed_.notify_one();
    }

    // The caller withdraws its offer, or waits for the end of the job if the helper has accepted it.
    void finish(Clock::time_point deadline) {
        State offered = kOffered;
        if (state_.compare_exchange_strong(offered, kIdle, std::memory_order_acq_rel)) return;
        const auto has_ended = [this] { return state_.load(std::memory_order_acquire) == kIdle; };
        if (spin(deadline, has_ended)) return;
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, has_ended);
    }

    // The helper's thread runs this.
    [[noreturn]] void loop() {
        const auto accepts = [this] {
            State offered = kOffered;
            return state_.load(std::memory_order_relaxed) == kOffered &&
                   state_.compare_exchange_strong(offered, kWorking, std::memory_order_acq_rel);
        };
        for (;;) {
            if (!spin(Clock::now() + kSpin, accepts)) {
                std::unique_lock<std::mutex> lock(mutex_);
                changed_.wait(lock, accepts);
            }
            job_->work(worker_);
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                state_.store(kIdle, std::memory_order_release);
            }
            changed_.notify_one();
        }
    }

    Helper *next = nullptr; // in the list of idle helpers, or in its caller's list

  private:
    enum State { kIdle, kOffered, kWorking };

    std::atomic<State> state_{kIdle};
    Job *job_ = nullptr; // the caller may change this and worker_ while the helper is idle
    std::size_t worker_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_; // kIdle to kOffered wakes the helper; kWorking to kIdle wakes its caller
};

// Starts one helper; the caller holds mutex_. A failure only means that the job runs with fewer helpers.
bool Pool::start_one() {
    if (started_ == most_) return false;
    if (jobs_until_next_try_ > 0) {
        jobs_until_next_try_--;
        return false;
    }
    auto *const helper = new (std::nothrow) Helper;
    bool started = helper != nullptr;
    const auto start = [helper] { std::thread([helper] { helper->loop(); }).detach(); };
    if (started) attempt(start, [&] { started = false; });
    if (!started) {
        delete helper;
        jobs_until_next_try_ = kPatience;
        return false;
    }
    started_++;
    helper->next = idle_;
    idle_ = helper;
    return true;
}

Pool::Helper *Pool::take(std::size_t wanted, std::size_t *taken) {
    Helper *first = nullptr, **end = &first;
    const std::lock_guard<std::mutex> lock(mutex_);
    while (*taken < wanted && (idle_ || start_one())) {
        *end = idle_;
        end = &idle_->next;
        idle_ = idle_->next;
        ++*taken;
    }
    *end = nullptr;
    return first;
}

// Puts the helpers back in the order in which they were taken, so that the next job gives its shares to the same threads.
void Pool::put_back(Helper *first) {
    Helper *last = first;
    while (last->next) last = last->next;
    const std::lock_guard<std::mutex> lock(mutex_);
    last->next = idle_;
    idle_ = first;
}

void Pool::run(std::size_t count, std::size_t workers, convt_task task, void *context) {
    std::size_t helpers = 0;
    Helper *const first = take(workers - 1, &helpers);
    Job job(count, helpers + 1, task, context);
    std::size_t worker = 0;
    for (Helper *h = first; h; h = h->next) h->offer(&job, ++worker);
    job.work(0);
    const Clock::time_point deadline = Clock::now() + kSpin;
    for (Helper *h = first; h; h = h->next) h->finish(deadline);
    if (first) put_back(first);
}

std::size_t Pool::started() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return started_;
}

namespace {

std::atomic<Pool *> process_pool{nullptr}, abandoned_pool{nullptr};

// A forked child has none of its parent's helpers, and a lock may be held by a thread that it does not have. It therefore
// abandons the pool and makes one of its own. Before the first thread starts, this module is pinned in memory, as the threads
// run its code.
bool prepare_process() {
    static std::atomic<bool> is_prepared{false};
    if (is_prepared.load(std::memory_order_acquire)) return true;
#if defined(_WIN32)
    HMODULE module = nullptr;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                       reinterpret_cast<LPCWSTR>(&process_pool), &module);
#elif defined(__unix__) || defined(__APPLE__)
    const auto in_child = [] {
        if (Pool *const parents = process_pool.exchange(nullptr)) abandoned_pool = parents;
    };
    if (pthread_atfork(nullptr, nullptr, in_child) != 0) return false;
    Dl_info module = {};
    // dlopen() finds no program by its name, but a program stays in memory anyway.
    if (dladdr(&process_pool, &module) != 0) (void)dlopen(module.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
#endif
    is_prepared.store(true, std::memory_order_release);
    return true;
}

// Returns the process's pool, or null if there is no memory for one.
Pool *pool_of_process() {
    Pool *pool = process_pool.load(std::memory_order_acquire);
    if (pool || !prepare_process()) return pool;
    auto *const made = new (std::nothrow) Pool(usable_cpus() - 1, abandoned_pool);
    if (!made || process_pool.compare_exchange_strong(pool, made, std::memory_order_acq_rel)) return made;
    delete made;
    return pool;
}

} // namespace

void run_on_own_threads(std::size_t count, std::size_t workers, convt_task task, void *context) {
    if (Pool *const pool = pool_of_process()) {
        pool->run(count, workers, task, context);
    } else {
        for (std::size_t i = 0; i < count; i++) task(context, i);
    }
}

} // namespace convtranspose
