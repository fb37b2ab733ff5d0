#include "reference/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace convtranspose::test {

namespace {

// IEEE 754 binary formats of 16 bits: a sign, then an exponent, then `mantissa_bits` bits.
std::uint16_t encode(double value, int mantissa_bits) {
    const int bias = (1 << (14 - mantissa_bits)) - 1;
    const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
    const unsigned infinity = 0x7fffu >> mantissa_bits << mantissa_bits;
    if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1u << (mantissa_bits - 1));
    if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
    if (value == 0) return static_cast<std::uint16_t>(sign);
    const int exponent = std::max(std::ilogb(value), 1 - bias); // subnormals share the least exponent
    if (exponent > bias) return static_cast<std::uint16_t>(sign | infinity);
    // In units of the last place. A normal number has its leading bit at 2^mantissa_bits, which adds one to the
    // exponent field, and so does a carry.
    const double units = std::nearbyint(std::ldexp(std::fabs(value), mantissa_bits - exponent));
    const unsigned bits = (static_cast<unsigned>(exponent + bias - 1) << mantissa_bits) + static_cast<unsigned>(units);
    return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

double decode(std::uint16_t bits, int mantissa_bits) {
    const int bias = (1 << (14 - mantissa_bits)) - 1;
    const int field = (bits & 0x7fff) >> mantissa_bits;
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    double value = 0;
    if (field == 2 * bias + 1) {
        value = mantissa ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else if (field == 0) {
        value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
    } else {
        value = std::ldexp(mantissa + (1 << mantissa_bits), field - bias - mantissa_bits);
    }
    return bits & 0x8000 ? -value : value;
}

template<typename T>
T load_as(const void *data, std::int64_t i) {
    T value;
    std::memcpy(&value, static_cast<const char *>(data) + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    return value;
}

template<typename T>
void store_as(void *data, std::int64_t i, T value) {
    std::memcpy(static_cast<char *>(data) + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

Tensor draw_tensor(convt_dtype dtype, const Shape &shape, Values values, Random *random) {
    Tensor tensor(dtype, shape);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
        if (dtype == CONVT_U8 || dtype == CONVT_S8) { // the whole range
            tensor.set(i, static_cast<double>(random->integer(0, 255) - (dtype == CONVT_S8 ? 128 : 0)));
            continue;
        }
        if (dtype == CONVT_S32) { // a bias of 8-bit products
            tensor.set(i, static_cast<double>(random->integer(-9999, 9999)));
            continue;
        }
        tensor.set(i, values == Values::uniform ? random->uniform(-1, 1) : static_cast<double>(random->integer(-3, 3)));
    }
    return tensor;
}

} // namespace

std::int64_t element_count(const Shape &shape) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0; // the others may be of any size
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

std::uint16_t to_f16(double value) { return encode(value, 10); }
std::uint16_t to_bf16(double value) { return encode(value, 7); }
double from_f16(std::uint16_t bits) { return decode(bits, 10); }
double from_bf16(std::uint16_t bits) { return decode(bits, 7); }

double load(convt_dtype dtype, const void *data, std::int64_t i) {
    switch (dtype) {
    case CONVT_F16: return from_f16(load_as<std::uint16_t>(data, i));
    case CONVT_BF16: return from_bf16(load_as<std::uint16_t>(data, i));
    case CONVT_F32: return static_cast<double>(load_as<float>(data, i));
    case CONVT_F64: return load_as<double>(data, i);
    case CONVT_U8: return load_as<std::uint8_t>(data, i);
    case CONVT_S8: return load_as<std::int8_t>(data, i);
    case CONVT_S32: return load_as<std::int32_t>(data, i);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

void store(convt_dtype dtype, void *data, std::int64_t i, double value) {
    switch (dtype) {
    case CONVT_F16: store_as(data, i, to_f16(value)); break;
    case CONVT_BF16: store_as(data, i, to_bf16(value)); break;
    case CONVT_F32: store_as(data, i, static_cast<float>(value)); break;
    case CONVT_F64: store_as(data, i, value); break;
    case CONVT_U8: store_as(data, i, static_cast<std::uint8_t>(value)); break;
    case CONVT_S8: store_as(data, i, static_cast<std::int8_t>(value)); break;
    case CONVT_S32: store_as(data, i, static_cast<std::int32_t>(value)); break;
    }
}

Tensor::Tensor(convt_dtype dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)),
      bytes_(static_cast<std::size_t>(element_count(shape_)) * convt_dtype_size(dtype) + 1, 0xff) {
} // NaN in every type

std::uint64_t Random::bits() { // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
    return low + (high - low) * std::ldexp(static_cast<double>(bits() >> 11), -53);
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
    const std::uint64_t values = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    return low + static_cast<std::int64_t>(values == 0 ? bits() : bits() % values);
}

Inputs draw(const Problem &problem, std::uint64_t seed, Values values) {
    Random random(seed);
    Inputs inputs;
    inputs.x = draw_tensor(problem.dtype, problem.x_shape, values, &random);
    inputs.w = draw_tensor(problem.w_dtype.value_or(problem.dtype), problem.w_shape, values, &random);
    if (problem.b_shape) inputs.b = draw_tensor(bias_dtype(problem), *problem.b_shape, values, &random);
    return inputs;
}

} // namespace convtranspose::test
