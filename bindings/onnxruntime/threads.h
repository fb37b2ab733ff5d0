// ONNX Runtime's threads, on which the tasks of a run are computed.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_THREADS_H_
#define CONVTRANSPOSE_ONNXRUNTIME_THREADS_H_

#include <atomic>
#include <cstddef>
#include <mutex>

#include "convtranspose/convtranspose.h"
#include "ort_api.h"

namespace convtranspose::provider {

// A run's threads: what convt_arguments takes as parallel_user of parallel_for().
struct RunThreads {
    const Api &api;
    const OrtKernelContext *context;
};

// A convt_parallel_for by ONNX Runtime's threads. Throws if ONNX Runtime fails.
void parallel_for(void *run_threads, std::size_t count, convt_task task, void *task_context);

// The number of threads of a session. ONNX Runtime tells providers only in some versions and settings, and is counted otherwise.
class ThreadCount {
  public:
    // threads: what is known; 0 for nothing.
    explicit ThreadCount(int threads) : count_(threads) {}

    bool is_known() const { return count_ > 0; }
    // Counts if it is not known yet: runs tasks that wait for each other, for three milliseconds at most.
    int get(const RunThreads &threads);

  private:
    std::mutex mutex_;
    std::atomic<int> count_;
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_THREADS_H_
