// Memory of which the pages that are touched exist.
#ifndef CONVTRANSPOSE_TESTS_PLAN_SPARSE_H_
#define CONVTRANSPOSE_TESTS_PLAN_SPARSE_H_

#if defined(__linux__) && defined(__LP64__)

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace convtranspose::test {

// Zeros, aligned to 64 bytes, between two pages that may not be touched: the last ones are followed by one of those, but for
// what the alignment takes.
class Sparse {
  public:
    explicit Sparse(std::size_t bytes) {
        const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t inside = (bytes + page - 1) / page * page;
        size_ = inside + 2 * page;
        pages_ = mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages_ == MAP_FAILED) return;
        char *const first = static_cast<char *>(pages_) + page;
        if (inside && mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) return;
        data_ = first + (inside - bytes) / 64 * 64;
    }
    ~Sparse() {
        if (pages_ != MAP_FAILED) munmap(pages_, size_);
    }
    Sparse(const Sparse &) = delete;
    Sparse &operator=(const Sparse &) = delete;

    char *data() const { return data_; } // null: there is no room

  private:
    void *pages_ = MAP_FAILED;
    std::size_t size_ = 0;
    char *data_ = nullptr;
};

} // namespace convtranspose::test

#endif

#endif // CONVTRANSPOSE_TESTS_PLAN_SPARSE_H_
