// A Once holds a value that a process computes once.
#pragma once

#include <atomic>
#include <memory>

namespace convtranspose {

// The value is made when it is first asked for. It is never destroyed, as threads may use it while the process ends. Threads
// that race to make it make one each, and all use the one that was stored first. There is no lock: if a process forks while
// another thread holds a lock, nothing ever releases it in the child. Objects of this class must be static.
template<typename T>
class Once {
  public:
    // Returns the value that make() returned first. If make() throws, the next call tries again.
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
