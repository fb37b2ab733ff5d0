// Values of the whole process.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_ONCE_H_
#define CONVTRANSPOSE_RUNTIME_BASE_ONCE_H_

#include <atomic>
#include <memory>

namespace convtranspose {

// A value that is made when it is first asked for and never destroyed, as threads may still need it while the process ends.
// Threads that race to make it each make one, and all take the one that was stored first. There is no lock, because a process
// that forks while another thread holds one has a child in which nobody ever lets go of it. Declared static.
template<typename T>
class Once {
  public:
    // Returns what make() returned first. If it throws, the next call tries again.
    template<typename Make>
    T &get(const Make &make) {
        T *value = value_.load(std::memory_order_acquire);
        if (value) return *value;
        std::unique_ptr<T> made(new T(make()));
        if (value_.compare_exchange_strong(value, made.get(), std::memory_order_acq_rel)) value = made.release();
        return *value;
    }

  private:
    std::atomic<T *> value_{nullptr};
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_ONCE_H_
