// A dense tensor in memory of its own.
#ifndef CONVTRANSPOSE_TOOLS_TENSOR_H_
#define CONVTRANSPOSE_TOOLS_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "convtranspose/convtranspose.hpp"
#include "runtime/base/shape.h"

namespace convtranspose::tools {

// Uninitialised bytes, aligned to a cache line. The pointer is never null, even for no bytes, because null means "absent" to a
// plan.
class Buffer {
  public:
    Buffer() : Buffer(0) {}
    explicit Buffer(std::size_t size);

    std::byte *data() { return bytes_.get(); }
    const std::byte *data() const { return bytes_.get(); }
    std::size_t size() const { return size_; }

  private:
    struct Free {
        void operator()(std::byte *p) const;
    };
    std::unique_ptr<std::byte, Free> bytes_;
    std::size_t size_;
};

// The product of the extents. Throws Rejected for a negative extent, and for a product whose bytes cannot be addressed.
std::size_t element_count(const Shape &shape);

struct Tensor {
    Tensor() = default;
    Tensor(convt_dtype dtype, Shape shape);

    std::size_t count() const { return data.size() / convt_dtype_size(dtype); }
    ConstTensorView view() const { return ConstTensorView(data.data(), dtype, shape); }
    TensorView view() { return TensorView{data.data(), dtype, shape, {}}; }

    // Element i in storage order. The value is exact, because double holds all values of every type.
    double at(std::size_t i) const;
    void set(std::size_t i, double value);

    convt_dtype dtype = CONVT_F32;
    Shape shape;
    Buffer data;
};

// The same tensor in the other layout.
Tensor with_channels_moved(const Tensor &tensor, convt_layout to);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TENSOR_H_
