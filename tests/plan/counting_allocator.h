// Memory hooks that watch: what is allocated is counted, must come back once and whole, and may be made to fail.
#ifndef CONVTRANSPOSE_TESTS_PLAN_COUNTING_ALLOCATOR_H_
#define CONVTRANSPOSE_TESTS_PLAN_COUNTING_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"
#include "runtime/base/parallel.h"

namespace convtranspose::test {

class CountingAllocator {
  public:
    CountingAllocator() = default;
    CountingAllocator(const CountingAllocator &) = delete;
    CountingAllocator &operator=(const CountingAllocator &) = delete;
    ~CountingAllocator() {
        EXPECT_EQ(live_blocks(), 0u) << "leaked";
        for (const auto &block : sizes_) std::free(block.first);
    }

    Options options() {
        Options options{};
        options.allocate = [](void *user, std::size_t size, std::size_t alignment) {
            return static_cast<CountingAllocator *>(user)->allocate(size, alignment);
        };
        options.deallocate = [](void *user, void *pointer) {
            static_cast<CountingAllocator *>(user)->deallocate(pointer);
        };
        options.allocate_user = this;
        return options;
    }

    // Only allocation number i from now on fails, counting from 0.
    void fail_at(std::size_t i) {
        const std::lock_guard<Mutex> lock(mutex_);
        until_failure_ = static_cast<std::ptrdiff_t>(i);
        failed_ = false;
    }
    void stop_failing() {
        const std::lock_guard<Mutex> lock(mutex_);
        until_failure_ = -1;
    }
    bool failed() const { return failed_; }

    std::size_t allocations() const { return allocations_; }
    std::size_t live_blocks() const { return sizes_.size(); }
    std::size_t live_bytes() const { return live_bytes_; }

  private:
    static constexpr std::size_t kGuard = 64; // bytes behind each block that nobody may write
    static constexpr unsigned char kFill = 0xa5;

    void *allocate(std::size_t size, std::size_t alignment) {
        const std::lock_guard<Mutex> lock(mutex_);
        EXPECT_LE(alignment, 64u);
        EXPECT_NE(alignment, 0u);
        EXPECT_EQ(alignment & (alignment - 1), 0u) << "a power of two";
        if (until_failure_ >= 0 && until_failure_-- == 0) {
            failed_ = true;
            return nullptr;
        }
        // 64 is the most that may be asked for. Nothing may rely on more, or on zeros.
        const std::size_t whole = (size + kGuard + 63) / 64 * 64;
        unsigned char *block = static_cast<unsigned char *>(std::aligned_alloc(64, whole));
        if (!block) return nullptr;
        std::memset(block, kFill, whole);
        sizes_[block] = size;
        live_bytes_ += size;
        ++allocations_;
        return block;
    }

    void deallocate(void *pointer) {
        const std::lock_guard<Mutex> lock(mutex_);
        const auto found = sizes_.find(pointer);
        if (found == sizes_.end()) {
            ADD_FAILURE() << "deallocated what was not allocated, or twice";
            return;
        }
        const unsigned char *end = static_cast<unsigned char *>(pointer) + found->second;
        for (std::size_t i = 0; i < kGuard; ++i) {
            if (end[i] == kFill) continue;
            ADD_FAILURE() << "byte " << i << " behind a block of " << found->second << " bytes was written";
            break;
        }
        live_bytes_ -= found->second;
        sizes_.erase(found);
        std::free(pointer);
    }

    Mutex mutex_;
    std::map<void *, std::size_t> sizes_;
    std::size_t allocations_ = 0, live_bytes_ = 0;
    std::ptrdiff_t until_failure_ = -1;
    bool failed_ = false;
};

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_COUNTING_ALLOCATOR_H_
