#include "array.h"
#include "errors.h"
#include "unlocked.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace nb = nanobind;

namespace convtranspose::python {

namespace {

struct Type {
    convt_dtype dtype;
    const char *numpy;
    char format; // of the buffer protocol; 0: it has none
    nb::dlpack::dtype_code code;
};

constexpr Type kTypes[] = {
    {CONVT_F16, "float16", 'e', nb::dlpack::dtype_code::Float},
    {CONVT_BF16, "bfloat16", 0, nb::dlpack::dtype_code::Bfloat},
    {CONVT_F32, "float32", 'f', nb::dlpack::dtype_code::Float},
    {CONVT_F64, "float64", 'd', nb::dlpack::dtype_code::Float},
    {CONVT_U8, "uint8", 'B', nb::dlpack::dtype_code::UInt},
    {CONVT_S8, "int8", 'b', nb::dlpack::dtype_code::Int},
    {CONVT_S32, "int32", 'i', nb::dlpack::dtype_code::Int},
};

[[noreturn]] void wrong_type(const char *name, const std::string &found) {
    type_error(std::string(name) + " holds " + found +
               "; the types are float16, bfloat16, float32, float64, uint8, int8 and, for a bias, int32");
}

// Returns the name that NumPy has for elements of a format of one letter, or the format.
std::string name_of_format(const std::string &letter, Py_ssize_t element) {
    const auto is_one_of = [&](const char *letters) {
        return letter.size() == 1 && std::strchr(letters, letter[0]) != nullptr;
    };
    const char *const kind = is_one_of("bhilqn")   ? "int"
                             : is_one_of("BHILQN") ? "uint"
                             : is_one_of("efdg")   ? "float"
                                                   : nullptr;
    if (letter == "?") return "bool";
    return kind ? kind + std::to_string(8 * element) : "elements of the format '" + letter + "'";
}

// A format is a letter, behind a character for the order of bytes if there is one: '@', '=' and '<' are this machine's.
convt_dtype dtype_of_format(const char *name, const char *format, Py_ssize_t element) {
    const std::string whole = format ? format : "B";
    const std::string letter =
        !whole.empty() && (whole[0] == '@' || whole[0] == '=' || whole[0] == '<') ? whole.substr(1) : whole;
    if (letter == "l" && element == 4) return CONVT_S32;
    for (const Type &type : kTypes)
        if (type.format != 0 && letter == std::string(1, type.format)) return type.dtype;
    const bool turned = whole.size() > 1 && (whole[0] == '>' || whole[0] == '!');
    wrong_type(name,
               turned ? "elements of the format '" + whole + "', which have another order of bytes than this machine's"
                      : name_of_format(letter, element));
}

// True for an array of numpy.ma. Most arrays are numpy's own, which the name tells sooner than a look for what they lack.
bool is_masked(nb::handle object) {
    return std::strcmp(Py_TYPE(object.ptr())->tp_name, "numpy.ndarray") != 0 && nb::hasattr(object, "mask") &&
           nb::hasattr(object, "filled");
}

bool is_name_of_type(const std::string &name) {
    return std::any_of(std::begin(kTypes), std::end(kTypes), [&](const Type &type) { return name == type.numpy; });
}

bool is_bfloat16(nb::handle object) {
    const nb::object dtype = nb::getattr(object, "dtype", nb::none());
    const nb::object name = nb::getattr(dtype, "name", nb::none());
    return nb::isinstance<nb::str>(name) && nb::cast<std::string>(name) == "bfloat16";
}

} // namespace

const char *numpy_name(convt_dtype dtype) {
    for (const Type &type : kTypes)
        if (type.dtype == dtype) return type.numpy;
    return "";
}

convt_dtype dtype_of_name(const std::string &name) {
    for (const Type &type : kTypes)
        if (name == type.numpy || name == convt_dtype_name(type.dtype)) return type.dtype;
    value_error("there is no type '" + name +
                "'; the types are float16, bfloat16, float32, float64, uint8, int8 and int32");
}

Array::Array(nb::handle object, const char *name, Use use) {
    if (is_masked(object))
        type_error(std::string(name) + " is a " + name_of_type(object) +
                   ", whose mask would not be looked at: give an array without one, as its filled() makes it");
    if (!take_buffer(object, name, use) && !take_dlpack(object, name, use))
        type_error(std::string(name) + " is a " + name_of_type(object) +
                   ", not an array: it has neither the buffer protocol nor __dlpack__");
    static char nothing = 0; // an array without elements may have no memory, but null would mean that there is no array
    if (tensor_.data == nullptr) tensor_.data = &nothing;
    tensor_.struct_size = sizeof tensor_;
    tensor_.shape = extents_.data();
}

bool Array::take_buffer(nb::handle object, const char *name, Use use) {
    if (!PyObject_CheckBuffer(object.ptr())) return false;
    const int flags = use == Use::output ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
    Py_buffer &view = buffer_.view;
    if (PyObject_GetBuffer(object.ptr(), &view, flags) == 0) {
        tensor_.dtype = dtype_of_format(name, view.format, view.itemsize);
    } else {
        // numpy's buffers have no format for ml_dtypes.bfloat16: such an array is looked at as integers.
        nb::python_error failed;
        const nb::object dtype = nb::getattr(object, "dtype", nb::none());
        if (!is_bfloat16(object)) {
            if (use == Use::output || dtype.is_none()) throw failed;
            const auto type = nb::cast<std::string>(nb::str(dtype));
            if (!is_name_of_type(type)) wrong_type(name, type);
            if (!nb::hasattr(object, "__dlpack__")) throw failed;
            return false; // jax's arrays on a device have no buffer, but DLPack
        }
        const nb::object integers = object.attr("view")("uint16");
        if (PyObject_GetBuffer(integers.ptr(), &view, flags) != 0) throw nb::python_error();
        tensor_.dtype = CONVT_BF16;
    }
    tensor_.data = view.buf;
    tensor_.rank = static_cast<std::size_t>(view.ndim);
    extents_.reserve(2 * tensor_.rank);
    extents_.assign(view.shape, view.shape + view.ndim);
    std::vector<std::int64_t> strides(tensor_.rank, view.itemsize);
    if (view.strides != nullptr) {
        strides.assign(view.strides, view.strides + view.ndim);
    } else { // as the arrays of ctypes have it, although strides were asked for
        for (std::size_t i = tensor_.rank; i-- > 1;) strides[i - 1] = strides[i] * extents_[i];
    }
    set_strides(strides.data(), static_cast<std::size_t>(view.itemsize), use);
    return true;
}

bool Array::take_dlpack(nb::handle object, const char *name, Use use) {
    // PyTorch makes a capsule faster than its __dlpack__() does.
    const bool is_capsule = PyCapsule_CheckExact(object.ptr()) != 0;
    if (!is_capsule && !nb::hasattr(object, "__dlpack__")) return false;
    // PyTorch's tensors may be views that are still to be negated, of which DLPack says nothing.
    if (nb::hasattr(object, "is_neg") && nb::cast<bool>(object.attr("is_neg")())) {
        if (use == Use::output) value_error("out is a view that negates its memory; it must be a plain tensor");
        return take_dlpack(object.attr("resolve_neg")(), name, use);
    }
    // The stream that reads it; the array's library makes that one wait for what writes it.
    const nb::object stream = is_capsule ? nb::none() : call_framework("stream_of", object);
    const nb::object capsule = is_capsule         ? nb::borrow(object)
                               : stream.is_none() ? object.attr("__dlpack__")()
                                                  : object.attr("__dlpack__")(nb::arg("stream") = stream);
    if (!nb::try_cast(capsule, dlpack_))
        type_error(std::string(name) + (is_capsule ? " is a capsule that holds no array of DLPack, or was taken before"
                                                   : ".__dlpack__() gives no array"));
    const auto &array = dlpack_;
    const nb::dlpack::dtype found = array.dtype();
    for (const Type &type : kTypes)
        if (found.lanes == 1 && found.code == static_cast<std::uint8_t>(type.code) &&
            found.bits == 8 * convt_dtype_size(type.dtype))
            tensor_.dtype = type.dtype;
    if (tensor_.dtype == 0)
        wrong_type(name, "elements of DLPack's type " + std::to_string(found.code) + " with " +
                             std::to_string(found.bits) + " bits");
    const int device = array.device_type();
    if (device == nb::device::cuda::value || device == nb::device::cuda_managed::value) {
        tensor_.memory = CONVT_DEVICE_MEMORY;
        device_index_ = array.device_id();
        if (!stream.is_none()) stream_ = reinterpret_cast<void *>(nb::cast<std::uintptr_t>(stream));
        if (use == Use::dense)
            value_error(std::string(name) + " is in the memory of a device; weights and bias must be in the host's");
    } else if (device != nb::device::cpu::value && device != nb::device::cuda_host::value) {
        type_error(std::string(name) + " is on a device of DLPack's number " + std::to_string(device) +
                   "; arrays may be in host memory or in that of CUDA");
    }
    tensor_.data = const_cast<void *>(static_cast<const void *>(array.data()));
    tensor_.rank = array.ndim();
    extents_.reserve(2 * tensor_.rank);
    std::vector<std::int64_t> strides;
    for (std::size_t i = 0; i < array.ndim(); ++i) {
        extents_.push_back(static_cast<std::int64_t>(array.shape(i)));
        std::int64_t stride = 0; // in bytes; not looked at for an axis of one position, where it may be anything
        if (extents_.back() > 1 &&
            __builtin_mul_overflow(array.stride(i), static_cast<std::int64_t>(array.itemsize()), &stride))
            value_error(std::string(name) + " has strides that do not fit in 64 bits");
        strides.push_back(stride);
    }
    set_strides(strides.data(), array.itemsize(), use);
    return true;
}

// Sets strides where they are not those of a dense tensor; axes of one position have any.
void Array::set_strides(const std::int64_t *strides_in_bytes, std::size_t element, Use use) {
    const std::size_t rank = tensor_.rank;
    const auto size = static_cast<std::int64_t>(element);
    const bool aligned = reinterpret_cast<std::uintptr_t>(tensor_.data) % element == 0;
    bool is_dense = aligned, taken = aligned, in_elements = true; // the last: all strides are multiples of elements
    std::vector<std::int64_t> strides(rank);
    std::int64_t dense = 1;
    for (std::size_t i = rank; i-- > 0;) {
        const std::int64_t extent = extents_[i];
        strides[i] = extent > 1 ? strides_in_bytes[i] / size : dense;
        in_elements = in_elements && (extent <= 1 || strides_in_bytes[i] % size == 0);
        is_dense = is_dense && strides[i] == dense;
        taken = taken && (extent <= 1 || strides_in_bytes[i] > 0);
        if (__builtin_mul_overflow(dense, extent > 0 ? extent : 1, &dense)) dense = INT64_MAX;
    }
    for (std::size_t i = 0; i < rank; ++i)
        if (extents_[i] == 0) return; // nothing is read or written
    if (is_dense && in_elements) return;
    taken = taken && in_elements && rank > 0 && strides[rank - 1] == 1;
    if (use == Use::output && !aligned) value_error("out is not aligned to its elements");
    if (use == Use::output && !in_elements) value_error("out has strides that are no multiples of its elements");
    const bool may_copy = (use == Use::input || use == Use::dense) && !on_device();
    if (may_copy && (!taken || use == Use::dense)) {
        is_to_be_copied_ = true;
        strides_to_copy_.assign(strides_in_bytes, strides_in_bytes + rank);
        return;
    }
    extents_.insert(extents_.end(), strides.begin(), strides.end());
    tensor_.strides = extents_.data() + rank;
}

namespace {

// The bytes from a tensor's first element to its last one. There are none if the library refuses the tensor,
// because its last element comes before its first one or too far behind it.
std::pair<const std::byte *, const std::byte *> span_of(const convt_tensor &tensor) {
    std::int64_t last = 0, dense = 1;
    for (std::size_t i = tensor.rank; i-- > 0;) {
        if (tensor.shape[i] == 0) return {nullptr, nullptr};
        std::int64_t step = 0;
        if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides != nullptr ? tensor.strides[i] : dense, &step) ||
            __builtin_add_overflow(last, step, &last) ||
            (tensor.strides == nullptr && __builtin_mul_overflow(dense, tensor.shape[i], &dense)))
            return {nullptr, nullptr};
    }
    if (last < 0 || last >= std::numeric_limits<std::int32_t>::max()) return {nullptr, nullptr};
    const auto *const first = static_cast<const std::byte *>(tensor.data);
    return {first, first + (last + 1) * static_cast<std::int64_t>(convt_dtype_size(tensor.dtype))};
}

} // namespace

bool Array::overlaps(const Array &written) const {
    if (on_device() != written.on_device()) return false;
    const auto [begin, end] = span_of(tensor_);
    const auto [written_begin, written_end] = span_of(written.tensor_);
    return begin < written_end && written_begin < end;
}

void Array::check_place(const char *name, const std::string &device, const Array &written) const {
    if (!on_device()) return;
    const std::string place = "cuda:" + std::to_string(device_index_);
    if (place != device)
        value_error(std::string(name) + " is in the memory of " + place + ", but the plan is for " + device);
    if (this != &written && overlaps(written))
        value_error(std::string(name) + " and out may share memory of a device, where nothing is copied");
}

void Array::prepare(const Shape &wanted, const Array *written) {
    if (!std::equal(wanted.begin(), wanted.end(), extents_.begin(),
                    extents_.begin() + static_cast<std::ptrdiff_t>(tensor_.rank)))
        return;
    if (!is_to_be_copied_) {
        if (written == nullptr || on_device() || !overlaps(*written)) return;
        const auto element = static_cast<std::int64_t>(convt_dtype_size(tensor_.dtype));
        strides_to_copy_.resize(tensor_.rank);
        std::int64_t dense = 1;
        for (std::size_t i = tensor_.rank; i-- > 0; dense *= extents_[i])
            strides_to_copy_[i] = (tensor_.strides != nullptr ? tensor_.strides[i] : dense) * element;
    }
    copy();
}

void Array::copy() {
    const std::size_t rank = tensor_.rank, element = convt_dtype_size(tensor_.dtype);
    std::int64_t count = 1;
    for (std::size_t i = 0; i < rank; ++i)
        if (__builtin_mul_overflow(count, extents_[i], &count)) count = INT64_MAX;
    if (count > std::numeric_limits<std::int32_t>::max()) return; // the library refuses it
    copied_.reset(new std::byte[static_cast<std::size_t>(count) * element]);
    const auto *const first = static_cast<const std::byte *>(tensor_.data);
    std::byte *to = copied_.get();
    std::vector<std::int64_t> position(rank);
    std::uint64_t from = 0; // in bytes; it may wrap around at axes of one position, whose strides may be anything
    for (std::int64_t n = 0; n < count; ++n) {
        std::memcpy(to, first + static_cast<std::int64_t>(from), element);
        to += element;
        for (std::size_t i = rank; i-- > 0;) {
            from += static_cast<std::uint64_t>(strides_to_copy_[i]);
            if (++position[i] < extents_[i]) break;
            from -= static_cast<std::uint64_t>(strides_to_copy_[i]) * static_cast<std::uint64_t>(extents_[i]);
            position[i] = 0;
        }
    }
    tensor_.data = copied_.get();
    tensor_.strides = nullptr;
    is_to_be_copied_ = false;
}

} // namespace convtranspose::python
