#include "tools/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "runtime/base/half.h"
#include "tools/error.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

constexpr std::align_val_t kAlignment{64};

template<typename T>
T load(const std::byte *p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
}

template<typename T>
void store(std::byte *p, T value) {
    std::memcpy(p, &value, sizeof value);
}

// Rounds to f32 such that rounding on to 16 bits comes out as if it were done at once: of the two floats around a value it takes
// the one whose last bit is odd.
float rounded_to_odd(double value) {
    const auto nearest = static_cast<float>(value);
    if (double(nearest) == value || !std::isfinite(nearest)) return nearest;
    if (load<std::uint32_t>(reinterpret_cast<const std::byte *>(&nearest)) & 1) return nearest;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return std::nextafter(nearest, value > double(nearest) ? kInfinity : -kInfinity);
}

} // namespace

Buffer::Buffer(std::size_t size)
    : bytes_(static_cast<std::byte *>(::operator new(std::max<std::size_t>(size, 1), kAlignment))), size_(size) {}

void Buffer::Free::operator()(std::byte *p) const { ::operator delete(p, kAlignment); }

std::size_t element_count(const Shape &shape) {
    // An empty tensor may have any other extents, so a zero is looked for before multiplying.
    const bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
    const std::int64_t most = std::numeric_limits<std::int64_t>::max() / 8;
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent < 0) throw Rejected("shape " + to_string(shape) + " has a negative extent");
        if (empty) continue;
        if (extent > most / count)
            throw Rejected("shape " + to_string(shape) + " has more elements than memory can hold");
        count *= extent;
    }
    return empty ? 0 : std::size_t(count);
}

Tensor::Tensor(convt_dtype dtype_, Shape shape_)
    : dtype(dtype_), shape(std::move(shape_)), data(element_count(shape) * convt_dtype_size(dtype_)) {}

double Tensor::at(std::size_t i) const {
    const std::byte *p = data.data() + i * convt_dtype_size(dtype);
    switch (dtype) {
    case CONVT_F16: return double(float(load<F16>(p)));
    case CONVT_BF16: return double(float(load<Bf16>(p)));
    case CONVT_F32: return double(load<float>(p));
    case CONVT_F64: return load<double>(p);
    case CONVT_U8: return double(load<std::uint8_t>(p));
    case CONVT_S8: return double(load<std::int8_t>(p));
    case CONVT_S32: return double(load<std::int32_t>(p));
    }
    return std::numeric_limits<double>::quiet_NaN();
}

void Tensor::set(std::size_t i, double value) {
    std::byte *p = data.data() + i * convt_dtype_size(dtype);
    switch (dtype) {
    case CONVT_F16: store(p, to_f16(rounded_to_odd(value))); break;
    case CONVT_BF16: store(p, to_bf16(rounded_to_odd(value))); break;
    case CONVT_F32: store(p, float(value)); break;
    case CONVT_F64: store(p, value); break;
    case CONVT_U8: store(p, static_cast<std::uint8_t>(value)); break;
    case CONVT_S8: store(p, static_cast<std::int8_t>(value)); break;
    case CONVT_S32: store(p, static_cast<std::int32_t>(value)); break;
    }
}

Tensor with_channels_moved(const Tensor &tensor, convt_layout to) {
    Shape shape = tensor.shape;
    move_channels(&shape, to);
    Tensor moved(tensor.dtype, shape);
    if (shape.size() < 3 || tensor.count() == 0) {
        std::memcpy(moved.data.data(), tensor.data.data(), tensor.data.size());
        return moved;
    }
    const std::size_t bytes = convt_dtype_size(tensor.dtype);
    const bool to_last = to == CONVT_CHANNELS_LAST;
    const std::size_t batch = std::size_t(shape[0]), channels = std::size_t(to_last ? shape.back() : shape[1]);
    const std::size_t positions = tensor.count() / batch / channels;
    const std::size_t rows = to_last ? channels : positions, columns = to_last ? positions : channels;
    for (std::size_t n = 0; n < batch; n++) {
        const std::byte *from = tensor.data.data() + n * rows * columns * bytes;
        std::byte *const image = moved.data.data() + n * rows * columns * bytes;
        for (std::size_t row = 0; row < rows; row++) {
            for (std::size_t column = 0; column < columns; column++, from += bytes) {
                std::memcpy(image + (column * rows + row) * bytes, from, bytes);
            }
        }
    }
    return moved;
}

} // namespace convtranspose::tools
