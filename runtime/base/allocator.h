// Memory through the caller's hooks.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_ALLOCATOR_H_
#define CONVTRANSPOSE_RUNTIME_BASE_ALLOCATOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"
#include "convtranspose/convtranspose.h"

namespace convtranspose {

constexpr std::size_t kAlignment = 64;

// Bytes are counted with 64 bits: what a plan needs may be more than an address space of 32 bits holds, and then is not to be had.
// PTRDIFF_MAX is the most that any C library gives.
inline std::uint64_t round_up(std::uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Allocator {
    convt_allocate allocate = nullptr;
    convt_deallocate deallocate = nullptr;
    void *user = nullptr;

    // Null: there is none to be had. What the hook throws is the caller's to catch.
    void *get(std::uint64_t bytes) const {
        if (bytes > static_cast<std::uint64_t>(PTRDIFF_MAX)) return nullptr;
        const auto size = static_cast<std::size_t>(bytes);
        if (allocate) return allocate(user, size, kAlignment);
        // Not std::aligned_alloc, which Windows and older Android lack.
        return ::operator new (size, std::align_val_t{kAlignment}, std::nothrow);
    }
    void release(void *p) const noexcept {
        if (deallocate) {
            attempt([&] { deallocate(user, p); }, [] {}); // destructors call this, and have nobody to tell
        } else {
            ::operator delete (p, std::align_val_t{kAlignment});
        }
    }
};

// A block from an allocator; empty if there was none to be had.
class Block {
  public:
    Block() = default;
    Block(const Allocator &allocator, std::uint64_t size)
        : allocator_(allocator), data_(allocator.get(size ? size : 1)),
          size_(data_ ? static_cast<std::size_t>(size) : 0) {}
    Block(const Allocator &allocator, void *data, std::size_t size)
        : allocator_(allocator), data_(data), size_(data ? size : 0) {}
    Block(Block &&other) noexcept { swap(other); }
    Block &operator=(Block &&other) noexcept {
        swap(other);
        return *this;
    }
    ~Block() {
        if (data_) allocator_.release(data_);
    }

    explicit operator bool() const { return data_ != nullptr; }
    void *data() const { return data_; }
    std::size_t size() const { return size_; }
    void *release() { return std::exchange(data_, nullptr); } // whoever calls it must see to its end

  private:
    void swap(Block &other) {
        std::swap(allocator_, other.allocator_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
    }

    Allocator allocator_;
    void *data_ = nullptr;
    std::size_t size_ = 0;
};

// A block for what is named, or the status that there is no memory for it.
inline Status get_block(const Allocator &allocator, std::uint64_t size, const char *what, Block *block) {
    *block = Block(allocator, size);
    return *block ? Status() : out_of_memory(size, what);
}

// The same, of what is at `from`. Null: nothing, and no block.
inline Status copy_block(const Allocator &allocator, const void *from, std::uint64_t size, const char *what,
                         Block *block) {
    if (!from) return Status();
    Status status = get_block(allocator, size, what, block);
    if (status) std::memcpy(block->data(), from, block->size());
    return status;
}

// Blocks of one size and allocator that wait for their next use, from any thread. There is no lock, because a process that forks
// while another thread holds one has a child in which nobody ever lets go of it.
class SpareBlocks {
  public:
    explicit SpareBlocks(const Allocator &allocator) : allocator_(allocator) {}
    SpareBlocks(const SpareBlocks &) = delete;
    SpareBlocks &operator=(const SpareBlocks &) = delete;
    ~SpareBlocks() {
        for (std::atomic<void *> &place : places_) Block(allocator_, place.load(), 0);
    }

    // A spare one, or else a new one; empty if there was none to be had.
    Block take(std::uint64_t size) {
        for (std::atomic<void *> &place : places_) {
            if (!place.load(std::memory_order_relaxed)) continue;
            if (void *const data = place.exchange(nullptr, std::memory_order_acquire)) {
                return Block(allocator_, data, static_cast<std::size_t>(size));
            }
        }
        return Block(allocator_, size);
    }

    // More than there are places for are released. An empty one is nothing.
    void put(Block block) {
        if (!block) return;
        for (std::atomic<void *> &place : places_) {
            void *none = nullptr;
            if (!place.compare_exchange_strong(none, block.data(), std::memory_order_release)) continue;
            block.release();
            return;
        }
    }

  private:
    const Allocator allocator_;
    std::array<std::atomic<void *>, 32> places_ = {};
};

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_ALLOCATOR_H_
