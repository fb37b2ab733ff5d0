#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace convtranspose {

namespace {

constexpr std::chrono::microseconds kSpin{50};

// One for_each under way. Helpers take indices from it until none are left; whoever called waits for the last.
struct Job {
    Job(std::size_t count_, std::size_t workers, convt_task task_, void *context_)
        : count(count_), task(task_), context(context_), shares(count_, workers) {}

    void work(std::size_t worker) {
        const std::size_t taken = shares.work(worker, [&](std::size_t i) { task(context, i); });
        if (taken != 0 && done.fetch_add(taken, std::memory_order_acq_rel) + taken == count) {
            const std::lock_guard<std::mutex> lock(mutex);
            finished.notify_all();
        }
    }

    void wait() {
        // The last tasks are usually about to end: a short spin is cheaper than a sleep.
        const auto end = std::chrono::steady_clock::now() + kSpin;
        while (std::chrono::steady_clock::now() < end) {
            if (done.load(std::memory_order_acquire) == count) return;
        }
        std::unique_lock<std::mutex> lock(mutex);
        finished.wait(lock, [&] { return done.load(std::memory_order_acquire) == count; });
    }

    const std::size_t count;
    const convt_task task;
    void *const context;
    Shares shares;
    std::atomic<std::size_t> done{0};
    std::mutex mutex;
    std::condition_variable finished;
};

// The library's own threads: as many as any plan asked for, less the caller's, started when first needed.
class Pool {
  public:
    ~Pool() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stop_ = true;
        }
        wake_.notify_all();
        for (std::thread &t : threads_) t.join();
    }

    void help(const std::shared_ptr<Job> &job, std::size_t helpers) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            try {
                while (threads_.size() < helpers) {
                    threads_.emplace_back([this, worker = threads_.size() + 1] { loop(worker); });
                }
            } catch (const std::system_error &) {
                // No more threads to be had: those that are there, and the caller, do the work.
            }
            for (std::size_t i = 0; i < helpers && i < threads_.size(); i++) queue_.push_back(job);
            waiting_.store(queue_.size(), std::memory_order_release);
        }
        wake_.notify_all();
    }

  private:
    // The caller of a job is its worker 0.
    void loop(std::size_t worker) {
        for (;;) {
            std::shared_ptr<Job> job;
            // One layer's steps follow each other closely: stay awake for the next for a moment.
            const auto end = std::chrono::steady_clock::now() + kSpin;
            while (waiting_.load(std::memory_order_acquire) == 0 && std::chrono::steady_clock::now() < end) {
            }
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
                if (stop_) return;
                job = std::move(queue_.front());
                queue_.pop_front();
                waiting_.store(queue_.size(), std::memory_order_release);
            }
            job->work(worker);
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_;
    std::deque<std::shared_ptr<Job>> queue_;
    std::vector<std::thread> threads_;
    std::atomic<std::size_t> waiting_{0}; // jobs in the queue, to be looked at without the mutex
    bool stop_ = false;
};

Pool &pool() {
    static Pool instance;
    return instance;
}

} // namespace

void Parallel::run(std::size_t count, convt_task task, void *context) const {
    if (hook) {
        hook(user, count, task, context);
        return;
    }
    const std::size_t workers = std::min(static_cast<std::size_t>(threads), count);
    const auto job = std::make_shared<Job>(count, workers, task, context);
    pool().help(job, workers - 1);
    job->work(0);
    job->wait();
}

} // namespace convtranspose
