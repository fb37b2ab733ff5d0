// Views of larger tensors.
#ifndef CONVTRANSPOSE_TESTS_PLAN_CROP_H_
#define CONVTRANSPOSE_TESTS_PLAN_CROP_H_

#include <cstddef>
#include <cstdint>

#include "convtranspose/convtranspose.hpp"
#include "reference/tensor.h"

namespace convtranspose::test {

// Where element i of a view is.
inline std::int64_t place(const Shape &shape, const Shape &strides, std::int64_t i) {
    std::int64_t at = 0;
    for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis]) at += i % shape[axis] * strides[axis];
    return at;
}

// A tensor that stands in a larger one, with `before` elements in front of and `after` behind it on each axis.
class Crop {
  public:
    Crop(convt_dtype dtype, const Shape &shape, const Shape &before, const Shape &after) : shape_(shape) {
        Shape parent = shape;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) parent[axis] += before[axis] + after[axis];
        parent_ = Tensor(dtype, parent); // all NaN
        strides_.assign(shape.size(), 1);
        for (std::size_t axis = shape.size() - 1; axis-- > 0;) strides_[axis] = strides_[axis + 1] * parent[axis + 1];
        for (std::size_t axis = 0; axis < shape.size(); ++axis) start_ += before[axis] * strides_[axis];
    }

    TensorView view() {
        return {static_cast<char *>(parent_.data()) +
                    static_cast<std::size_t>(start_) * convt_dtype_size(parent_.dtype()),
                parent_.dtype(), shape_, strides_};
    }

    void put(const Tensor &dense) {
        for (std::int64_t i = 0; i < dense.size(); ++i) parent_.set(at(i), dense.get(i));
    }
    Tensor get() const {
        Tensor dense(parent_.dtype(), shape_);
        for (std::int64_t i = 0; i < dense.size(); ++i) dense.set(i, parent_.get(at(i)));
        return dense;
    }
    const Tensor &parent() const { return parent_; }

  private:
    std::int64_t at(std::int64_t i) const { return start_ + place(shape_, strides_, i); }

    Tensor parent_;
    Shape shape_, strides_;
    std::int64_t start_ = 0;
};

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_CROP_H_
