// Memory that ends, or begins, at a page which may not be touched, where the system has such pages.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_GUARDED_MEMORY_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_GUARDED_MEMORY_H_
#ifdef __linux__

#include <cstddef>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

class BetweenPages {
  public:
    BetweenPages(std::size_t bytes, bool at_end);
    ~BetweenPages();
    BetweenPages(const BetweenPages &) = delete;
    BetweenPages &operator=(const BetweenPages &) = delete;

    char *data() const { return data_; } // null: no memory

  private:
    void *pages_ = nullptr;
    std::size_t size_ = 0;
    char *data_ = nullptr;
};

// Gives plans memory whose last 64 bytes, the alignment of all that they allocate, end at such a page.
void guard_memory(Options *options);

} // namespace convtranspose::test

#endif // __linux__
#endif // CONVTRANSPOSE_TESTS_REFERENCE_GUARDED_MEMORY_H_
