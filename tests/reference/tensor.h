// Tensors of any type, kept as bytes and looked at as doubles: what the tests feed and what they get back.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_TENSOR_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_TENSOR_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

std::int64_t element_count(const Shape &shape);

// The 16-bit floats, rounded to nearest even.
std::uint16_t to_f16(double value);
std::uint16_t to_bf16(double value);
double from_f16(std::uint16_t bits);
double from_bf16(std::uint16_t bits);

// One element in memory.
double load(convt_dtype dtype, const void *data, std::int64_t i);
void store(convt_dtype dtype, void *data, std::int64_t i, double value);

// Dense, in C order. A new one is all NaN (integers: all ones), so that an element which nobody writes is noticed.
class Tensor {
  public:
    Tensor() = default;
    Tensor(convt_dtype dtype, Shape shape);

    convt_dtype dtype() const { return dtype_; }
    const Shape &shape() const { return shape_; }
    std::int64_t size() const { return element_count(shape_); }
    double get(std::int64_t i) const { return load(dtype_, bytes_.data(), i); }
    void set(std::int64_t i, double value) { store(dtype_, bytes_.data(), i, value); }

    const void *data() const { return bytes_.data(); }
    void *data() { return bytes_.data(); }
    TensorView view() { return {data(), dtype_, shape_, {}}; }
    ConstTensorView view() const { return {data(), dtype_, shape_}; }

    bool operator==(const Tensor &other) const { // bitwise
        return dtype_ == other.dtype_ && shape_ == other.shape_ && bytes_ == other.bytes_;
    }
    bool operator!=(const Tensor &other) const { return !(*this == other); }

  private:
    convt_dtype dtype_ = CONVT_F32;
    Shape shape_;
    std::vector<unsigned char> bytes_; // one more than needed: data() of an empty tensor is an address too
};

// A small generator whose numbers are the same with every standard library.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t bits();
    double uniform(double low, double high);
    std::int64_t integer(std::int64_t low, std::int64_t high); // both included
    template<typename T>
    const T &pick(const std::vector<T> &values) {
        return values[static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(values.size()) - 1))];
    }

  private:
    std::uint64_t state_;
};

// Values of floats. uniform: in [-1, 1). integers: in -3..3, so that sums are exact and no tolerance is needed.
enum class Values { uniform, integers };

struct Inputs {
    Tensor x, w;
    std::optional<Tensor> b;
};

// Inputs for a problem, by its shapes.
Inputs draw(const Problem &problem, std::uint64_t seed, Values values = Values::uniform);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_TENSOR_H_
