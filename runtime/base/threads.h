// These replace the parts of the C++ library that are missing on systems without threads.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_THREADS_H_
#define CONVTRANSPOSE_RUNTIME_BASE_THREADS_H_

#include <mutex>

#ifdef CONVTRANSPOSE_NO_THREADS
#define CONVTRANSPOSE_THREAD_LOCAL
#else
#define CONVTRANSPOSE_THREAD_LOCAL thread_local
#endif

namespace convtranspose {

#ifdef CONVTRANSPOSE_NO_THREADS
struct Mutex {
    void lock() {}
    void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_THREADS_H_
