// Memory blocks come from the caller's allocation hooks, or from operator new.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "base/error.h"
#include "convtranspose/convtranspose.h"

namespace convtranspose {

constexpr std::size_t kAlignment = 64;

// Sizes have 64 bits because a plan may need more than a 32-bit address space holds; such a request then fails. No C library
// gives a block of more than PTRDIFF_MAX bytes.
inline std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Allocator {
    convt_allocate allocate = nullptr;
    convt_deallocate deallocate = nullptr;
    void *user = nullptr;

    // Returns null if the memory cannot be had. Exceptions of the hook pass through to the caller.
    void *get(std::uint64_t bytes) const {
        if (bytes > static_cast<std::uint64_t>(PTRDIFF_MAX)) return nullptr;
        const auto size = static_cast<std::size_t>(bytes);
        if (allocate) return allocate(user, size, kAlignment);
        // std::aligned_alloc is missing on Windows and on older Android.
        return ::operator new (size, std::align_val_t{kAlignment}, std::nothrow);
    }
    void operator()(void *p) const noexcept { // releases it
        if (deallocate) {
            attempt([&] { deallocate(user, p); }, [] {}); // destructors call this and cannot report an exception
        } else {
            ::operator delete (p, std::align_val_t{kAlignment});
        }
    }
};

// A block of memory is released with its owner. It is empty if the allocator had no memory.
class Block {
  public:
    Block() = default;
    Block(const Allocator &allocator, std::uint64_t size)
        : data_(allocator.get(size ? size : 1), allocator), size_(data_ ? static_cast<std::size_t>(size) : 0) {}
    Block(const Allocator &allocator, void *data, std::size_t size) : data_(data, allocator), size_(data ? size : 0) {}

    explicit operator bool() const { return data_ != nullptr; }
    void *data() const { return data_.get(); }
    std::size_t size() const { return size_; }
    void *release() { return data_.release(); } // the caller must release it

  private:
    std::unique_ptr<void, Allocator> data_;
    std::size_t size_ = 0;
};

// Allocates a block for `what`; returns a status that names it if there is no memory.
inline Status get_block(const Allocator &allocator, std::uint64_t size, const char *what, Block *block) {
    *block = Block(allocator, size);
    return *block ? Status() : out_of_memory(size, what);
}

// Allocates a block and copies the bytes at `from` to it. If `from` is null, *block stays as it is.
inline Status copy_block(const Allocator &allocator, const void *from, std::uint64_t size, const char *what,
                         Block *block) {
    if (!from) return Status();
    TRY(get_block(allocator, size, what, block));
    std::memcpy(block->data(), from, block->size());
    return Status();
}

// Returns a status that says so if no workspace can have so many bytes.
inline Status check_workspace(std::uint64_t bytes) {
    if (bytes <= static_cast<std::uint64_t>(PTRDIFF_MAX)) return Status();
    return Status(CONVT_OUT_OF_MEMORY, concat("a workspace of ", bytes, " bytes does not fit in memory"));
}

// Keeps blocks of one size and allocator for their next use, by any thread. It has no lock: if a process forks while another
// thread holds a lock, nothing ever releases it in the child.
class SpareBlocks {
  public:
    explicit SpareBlocks(const Allocator &allocator) : allocator_(allocator) {}
    ~SpareBlocks() {
        for (std::atomic<void *> &place : places_) Block(allocator_, place.load(), 0);
    }

    // Returns a spare block or else a new one, which is empty if there is no memory.
    Block take(std::uint64_t size) {
        for (std::atomic<void *> &place : places_) {
            if (!place.load(std::memory_order_relaxed)) continue;
            if (void *const data = place.exchange(nullptr, std::memory_order_acquire)) {
                return Block(allocator_, data, static_cast<std::size_t>(size));
            }
        }
        return Block(allocator_, size);
    }

    // Keeps the block, or releases it if all places are taken. An empty block is ignored.
    void put(Block block) {
        if (!block) return;
        for (std::atomic<void *> &place : places_) {
            void *none = nullptr;
            if (!place.compare_exchange_strong(none, block.data(), std::memory_order_release)) continue;
            block.release();
            return;
        }
    }

    // Calls f with the workspace of so many bytes, or with a spare block if that is null.
    template<typename F>
    Status lend(void *workspace, std::uint64_t bytes, const F &f) {
        Block block;
        if (!workspace && bytes) {
            block = take(bytes);
            if (!block) return out_of_memory(bytes, "workspace");
            workspace = block.data();
        }
        Status status = f(static_cast<char *>(workspace));
        put(std::move(block));
        return status;
    }

  private:
    const Allocator allocator_;
    std::array<std::atomic<void *>, 32> places_ = {};
};

} // namespace convtranspose
