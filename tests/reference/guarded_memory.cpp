#ifdef __linux__

#include "reference/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/parallel.h"

namespace convtranspose::test {

BetweenPages::BetweenPages(std::size_t bytes, bool at_end) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = (bytes + page - 1) / page * page;
    size_ = inside + 2 * page;
    void *const pages = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return;
    pages_ = pages;
    char *const first = static_cast<char *>(pages_) + page;
    if (inside && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) return;
    data_ = at_end ? first + inside - bytes : first;
}

BetweenPages::~BetweenPages() {
    if (pages_) munmap(pages_, size_);
}

namespace {

Mutex mutex;

std::map<void *, std::unique_ptr<BetweenPages>> &blocks() {
    static auto *const all = new std::map<void *, std::unique_ptr<BetweenPages>>; // outlives plans of static storage
    return *all;
}

} // namespace

void guard_memory(Options *options) {
    options->allocate = [](void * /*user*/, std::size_t size, std::size_t alignment) -> void * {
        auto block = std::make_unique<BetweenPages>((size + alignment - 1) / alignment * alignment, true);
        void *const data = block->data();
        const std::lock_guard<Mutex> lock(mutex);
        if (data) blocks()[data] = std::move(block);
        return data;
    };
    options->deallocate = [](void * /*user*/, void *data) {
        const std::lock_guard<Mutex> lock(mutex);
        blocks().erase(data);
    };
}

} // namespace convtranspose::test

#endif // __linux__
