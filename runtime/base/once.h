// Values that are made once, when they are first asked for: a Once for all of the process, a Lazy for an object that holds it.
#pragma once

#include <atomic>
#include <memory>

namespace convtranspose {

// The value is never destroyed, as threads may use it while the process ends: a Once that is no Lazy must be static. Threads that
// race to make the value make one each, and all use the one that was stored first. There is no lock: if a process forks while
// another thread holds a lock, nothing ever releases it in the child.
template<typename T>
class Once {
  public:
    // Returns the value that make() returned first. If make() throws, the next call tries again.
    template<typename Make>
    T &get(const Make &make) const {
        T *value = value_.load(std::memory_order_acquire);
        if (value) return *value;
        std::unique_ptr<T> made(new T(make()));
        if (value_.compare_exchange_strong(value, made.get(), std::memory_order_acq_rel)) value = made.release();
        return *value;
    }

  protected:
    mutable std::atomic<T *> value_{nullptr};
};

// The value is destroyed with the object.
template<typename T>
class Lazy : public Once<T> {
  public:
    ~Lazy() { delete this->value_.load(); }
};

} // namespace convtranspose
