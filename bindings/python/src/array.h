// Arrays of Python as tensors of the library.
#pragma once

#include <convtranspose/convtranspose.hpp>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace convtranspose::python {

/// The purpose of an array.
enum class Use {
    input,  ///< x and the residual are read, with strides where the library takes them.
    dense,  ///< Weights and bias are read, and must be dense.
    output, ///< y is written where it is.
    named,  ///< It is only asked for its type, its shape and its place, and never copied.
};

/// A view of an object that has the buffer protocol, as numpy's arrays have, or `__dlpack__`, or of a capsule of DLPack, which can
/// be taken once. It keeps the object's memory.
///
/// An input whose strides the library does not take is copied, once its shape is known to be right: a view of any size may stand
/// on a single number. An output is never copied: it is refused by the library's rule.
class Array {
  public:
    /// @param object  The array.
    /// @param name    What messages call it, such as "x".
    /// @param use     What it is for.
    /// Raises TypeError for an object that is no array, or whose elements are of a type that the library has not.
    Array(nanobind::handle object, const char *name, Use use);
    Array(const Array &) = delete;
    Array &operator=(const Array &) = delete;

    /// The tensor, valid as long as this object is.
    const convt_tensor &tensor() const { return tensor_; }
    /// Its extents.
    Shape shape() const { return Shape(extents_.data(), extents_.data() + tensor_.rank); }
    /// True if it is memory of a device.
    bool on_device() const { return tensor_.memory == CONVT_DEVICE_MEMORY; }
    /// Raises ValueError if it is memory of a device that is not the given one, or that another array on a device, which is
    /// written, may share.
    void check_place(const char *name, const std::string &device, const Array &written) const;
    /// The stream that the array was handed over in, for memory of CUDA.
    void *stream() const { return stream_; }
    /// Copies an input whose strides the library does not take, or that may share host memory with the output. One that has not the
    /// shape that it must have stays as it is: it is only good for being refused by its shape.
    void prepare(const Shape &wanted, const Array *written);

  private:
    bool take_buffer(nanobind::handle object, const char *name, Use use);
    bool take_dlpack(nanobind::handle object, const char *name, Use use);
    void set_strides(const std::int64_t *strides_in_bytes, std::size_t element, Use use);
    bool overlaps(const Array &written) const;
    void copy();

    convt_tensor tensor_{};
    std::vector<std::int64_t> extents_; // and, behind them, strides in elements
    bool is_to_be_copied_ = false;
    std::vector<std::int64_t> strides_to_copy_; // in bytes
    void *stream_ = nullptr;
    int device_index_ = 0; // of a device of CUDA
    struct Buffer {
        Buffer() = default;
        Buffer(const Buffer &) = delete;
        Buffer &operator=(const Buffer &) = delete;
        ~Buffer() {
            if (view.obj != nullptr) PyBuffer_Release(&view);
        }
        Py_buffer view{};
    };
    // One of these keeps the memory.
    Buffer buffer_;
    nanobind::ndarray<nanobind::ro> dlpack_;
    std::unique_ptr<std::byte[]> copied_;
};

/// The name of a type of elements as numpy has it, such as "float32".
const char *numpy_name(convt_dtype dtype);

/// The type of a name, which is numpy's or the library's ("float32" or "f32"). Raises ValueError for another one.
convt_dtype dtype_of_name(const std::string &name);

} // namespace convtranspose::python
