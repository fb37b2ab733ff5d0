#include "plan/counting_new.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::ptrdiff_t kNever = std::numeric_limits<std::ptrdiff_t>::max();

std::atomic<std::size_t> count{0}, deleted{0}, largest{0};
std::atomic<std::ptrdiff_t> until_failure{kNever};
std::atomic<convtranspose::test::Failure> failure{};

void *get(std::size_t size) {
    if (until_failure.load(std::memory_order_relaxed) != kNever && until_failure.fetch_sub(1) == 0) return nullptr;
    void *const p = std::malloc(size ? size : 1);
    if (p) count.fetch_add(1, std::memory_order_relaxed);
    std::size_t before = largest.load(std::memory_order_relaxed);
    while (size > before && !largest.compare_exchange_weak(before, size, std::memory_order_relaxed)) {
    }
    return p;
}

void release(void *p) {
    if (p) deleted.fetch_add(1, std::memory_order_relaxed);
    std::free(p);
}

} // namespace

void *operator new(std::size_t size) {
    if (void *const p = get(size)) return p;
    failure = convtranspose::test::Failure::kThrew;
    throw std::bad_alloc();
}
// As the standard library's own does, which the address sanitizer replaces.
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    void *const p = get(size);
    if (!p) failure = convtranspose::test::Failure::kReturnedNull;
    return p;
}
void operator delete(void *p) noexcept { release(p); }
void operator delete(void *p, std::size_t) noexcept { release(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { release(p); }

namespace convtranspose::test {

std::size_t news() { return count; }
std::size_t largest_new() { return largest; }
void forget_largest_new() { largest = 0; }
std::size_t live_news() { return count - deleted; }
void fail_new_at(std::size_t i) {
    failure = Failure::kNotReached;
    until_failure = static_cast<std::ptrdiff_t>(i);
}
Failure stop_failing_news() {
    until_failure = kNever;
    return failure;
}

} // namespace convtranspose::test
