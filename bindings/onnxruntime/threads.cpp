#include "threads.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "failure.h"

namespace convtranspose::provider {

namespace {

constexpr std::chrono::milliseconds kPatience{3};
constexpr unsigned kMostCounted = 256;

// Tasks that wait until as many have begun as there are, or until the time is over. Those that have begun by then each had a
// thread of its own.
struct Meeting {
    std::size_t expected;
    std::chrono::steady_clock::time_point end;
    std::atomic<std::size_t> met{0};
};

void meet(void *user, std::size_t) {
    auto &meeting = *static_cast<Meeting *>(user);
    if (std::chrono::steady_clock::now() >= meeting.end) return;
    ++meeting.met;
    while (meeting.met < meeting.expected && std::chrono::steady_clock::now() < meeting.end) std::this_thread::yield();
}

} // namespace

void parallel_for(void *run_threads, std::size_t count, convt_task task, void *task_context) {
    const auto &threads = *static_cast<const RunThreads *>(run_threads);
    // With 0 batches each task is one of ONNX Runtime's.
    check(threads.api, threads.api.KernelContext_ParallelFor(threads.context, task, count, 0, task_context));
}

int ThreadCount::get(const RunThreads &threads) {
    if (count_ > 0) return count_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (count_ > 0) return count_;
    Meeting meeting{std::clamp(std::thread::hardware_concurrency(), 1u, kMostCounted),
                    std::chrono::steady_clock::now() + kPatience};
    if (meeting.expected > 1) {
        check(threads.api, threads.api.KernelContext_ParallelFor(threads.context, meet, meeting.expected, 0, &meeting));
    }
    return count_ = std::max(1, static_cast<int>(meeting.met.load()));
}

} // namespace convtranspose::provider
