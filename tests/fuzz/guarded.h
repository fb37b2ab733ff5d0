// Memory between two pages that may not be touched, with garbage inside that shows: floats are NaN.
#ifndef CONVTRANSPOSE_TESTS_FUZZ_GUARDED_H_
#define CONVTRANSPOSE_TESTS_FUZZ_GUARDED_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "convtranspose/convtranspose.hpp"
#include "fuzz/fail.h"

namespace convtranspose::fuzz {

// A block ends at the page behind it, or as near as its alignment allows: what lies between must stay as it is.
class Guarded {
  public:
    Guarded(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t room = (bytes + alignment - 1) / alignment * alignment;
        const std::size_t inside = (room + page - 1) / page * page;
        size_ = inside + 2 * page;
        pages_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages_ == MAP_FAILED) fail("no memory for a block of " + std::to_string(bytes) + " bytes");
        char *const first = static_cast<char *>(pages_) + page;
        if (inside && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) fail("mprotect");
        std::memset(first, 0xff, inside);
        data_ = first + inside - room;
        slack_ = room - bytes;
        std::memset(data_ + bytes, kSlack, slack_);
    }
    ~Guarded() {
        for (std::size_t i = 0; i < slack_; ++i) {
            if (static_cast<unsigned char>(data_[bytes_ + i]) != kSlack) fail("a byte behind a block was written");
        }
        munmap(pages_, size_);
    }
    Guarded(const Guarded &) = delete;
    Guarded &operator=(const Guarded &) = delete;

    char *data() const { return data_; }
    std::size_t size() const { return bytes_; }

  private:
    static constexpr unsigned char kSlack = 0xa5;
    void *pages_;
    char *data_;
    std::size_t bytes_, size_, slack_;
};

// The hooks of a plan: every block guarded, no more than a budget in all, and one allocation that may be made to fail.
class GuardedAllocator {
  public:
    explicit GuardedAllocator(std::size_t budget) : budget_(budget) {}
    ~GuardedAllocator() {
        if (!blocks_.empty()) fail(std::to_string(blocks_.size()) + " blocks leaked");
    }
    GuardedAllocator(const GuardedAllocator &) = delete;
    GuardedAllocator &operator=(const GuardedAllocator &) = delete;

    void add_to(Options *options) {
        options->allocate = [](void *self, std::size_t size, std::size_t alignment) {
            return static_cast<GuardedAllocator *>(self)->allocate(size, alignment);
        };
        options->deallocate = [](void *self, void *block) { static_cast<GuardedAllocator *>(self)->deallocate(block); };
        options->allocate_user = this;
    }
    void fail_at(int allocation) { until_failure_ = allocation; } // counted from 0; negative: none
    bool failed() const { return failed_; }

  private:
    void *allocate(std::size_t size, std::size_t alignment) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (alignment == 0 || alignment > 64 || (alignment & (alignment - 1)) != 0)
            fail("an alignment that no one has");
        if (until_failure_ >= 0 && until_failure_-- == 0) {
            failed_ = true;
            return nullptr;
        }
        if (size > budget_) fail("small tensors take " + std::to_string(size) + " bytes in one block");
        budget_ -= size;
        auto block = std::make_unique<Guarded>(size, alignment);
        void *const data = block->data();
        blocks_.emplace(data, std::move(block));
        return data;
    }
    void deallocate(void *data) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = blocks_.find(data);
        if (found == blocks_.end()) fail("a block is released that is none, or twice");
        budget_ += found->second->size();
        blocks_.erase(found);
    }

    std::mutex mutex_;
    std::size_t budget_;
    std::map<void *, std::unique_ptr<Guarded>> blocks_;
    int until_failure_ = -1;
    bool failed_ = false;
};

} // namespace convtranspose::fuzz

#endif // CONVTRANSPOSE_TESTS_FUZZ_GUARDED_H_
