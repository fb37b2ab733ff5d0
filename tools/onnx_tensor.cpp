#include "tools/onnx_tensor.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/npy.h"
#include "tools/text.h"

namespace fs = std::filesystem;

namespace convtranspose::tools {

namespace {

std::string quoted(const onnx::TensorProto &proto) { return "tensor '" + proto.name() + "'"; }

std::uint64_t parse_unsigned(const std::string &text, const std::string &key, const onnx::TensorProto &proto) {
    std::uint64_t value = 0;
    const char *const end = text.data() + text.size();
    const std::from_chars_result result = std::from_chars(text.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end) {
        throw Rejected(quoted(proto) + ": external data " + key + " '" + text + "' is not a number of bytes");
    }
    return value;
}

void refuse_segment(const onnx::TensorProto &proto) {
    if (proto.has_segment()) throw Error(quoted(proto) + " is a segment of a larger one, which is not supported");
}

[[noreturn]] void throw_size_mismatch(const onnx::TensorProto &proto, std::size_t found, const char *unit,
                                      std::size_t wanted) {
    throw Rejected(quoted(proto) + " holds " + std::to_string(found) + " " + unit + ", but its dims " +
                   to_string(shape_of(proto)) + " need " + std::to_string(wanted));
}

std::size_t count_of(const onnx::TensorProto &proto) {
    try {
        return element_count(shape_of(proto));
    } catch (const Rejected &e) {
        throw Rejected(quoted(proto) + ": " + e.what());
    }
}

// Reads the `wanted` bytes of a tensor. A file may go on behind them, because other tensors may share it; a length, where one is
// given, must be theirs.
std::string external_data(const onnx::TensorProto &proto, const fs::path &file, std::size_t wanted) {
    std::string location;
    std::uint64_t offset = 0;
    std::optional<std::uint64_t> length;
    for (const onnx::StringStringEntryProto &entry : proto.external_data()) {
        if (entry.key() == "location") location = entry.value();
        if (entry.key() == "offset") offset = parse_unsigned(entry.value(), "offset", proto);
        if (entry.key() == "length") length = parse_unsigned(entry.value(), "length", proto);
    }
    if (length && *length != wanted) throw_size_mismatch(proto, *length, "bytes", wanted);
    return read_file(beside(file, location), offset, wanted);
}

// Returns the data if they are bytes, raw or in a file, of which *loaded keeps those; null: they are in a typed field.
const std::string *bytes_of(const onnx::TensorProto &proto, const fs::path &file, std::size_t wanted,
                            std::string *loaded) {
    const bool external = proto.data_location() == onnx::TensorProto::EXTERNAL;
    const bool raw = !proto.raw_data().empty();
    const int kinds = int(external) + int(raw) + int(proto.float_data_size() > 0) + int(proto.double_data_size() > 0) +
                      int(proto.int32_data_size() > 0) + int(proto.int64_data_size() > 0) +
                      int(proto.uint64_data_size() > 0) + int(proto.string_data_size() > 0);
    if (kinds > 1) throw Rejected(quoted(proto) + " keeps its data in more than one field");
    if (!external && !raw) return nullptr;
    if (external) *loaded = external_data(proto, file, wanted);
    const std::string &bytes = external ? *loaded : proto.raw_data();
    if (bytes.size() != wanted) throw_size_mismatch(proto, bytes.size(), "bytes", wanted);
    return &bytes;
}

// Reads one of the typed fields, whose elements (int32 for types of 8 and 16 bits) hold one element each. Throws Rejected for one
// that its type cannot hold. The bits of a 16-bit float may be those of a negative number: some programs write them so.
template<typename T, typename Field>
void copy_elements(const onnx::TensorProto &proto, const Field &field, Tensor *tensor) {
    std::byte *to = tensor->data.data();
    for (const auto element : field) {
        const T value = static_cast<T>(element);
        if constexpr (std::is_integral_v<T>) {
            const bool are_bits = std::is_same_v<T, std::uint16_t> && element == static_cast<std::int16_t>(element);
            if (value != element && !are_bits) {
                throw Rejected(quoted(proto) + " holds " + std::to_string(element) + ", which its type " +
                               onnx_type_name(proto.data_type()) + " cannot");
            }
        }
        std::memcpy(to, &value, sizeof value);
        to += sizeof value;
    }
}

onnx::TensorProto::DataType onnx_type_of(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return onnx::TensorProto::FLOAT16;
    case CONVT_BF16: return onnx::TensorProto::BFLOAT16;
    case CONVT_F32: return onnx::TensorProto::FLOAT;
    case CONVT_F64: return onnx::TensorProto::DOUBLE;
    case CONVT_U8: return onnx::TensorProto::UINT8;
    case CONVT_S8: return onnx::TensorProto::INT8;
    case CONVT_S32: return onnx::TensorProto::INT32;
    }
    return onnx::TensorProto::UNDEFINED;
}

} // namespace

std::string onnx_type_name(int data_type) {
    if (!onnx::TensorProto::DataType_IsValid(data_type)) return "number " + std::to_string(data_type);
    return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(data_type));
}

std::optional<convt_dtype> find_dtype(int data_type) {
    switch (data_type) {
    case onnx::TensorProto::FLOAT16: return CONVT_F16;
    case onnx::TensorProto::BFLOAT16: return CONVT_BF16;
    case onnx::TensorProto::FLOAT: return CONVT_F32;
    case onnx::TensorProto::DOUBLE: return CONVT_F64;
    case onnx::TensorProto::UINT8: return CONVT_U8;
    case onnx::TensorProto::INT8: return CONVT_S8;
    case onnx::TensorProto::INT32: return CONVT_S32;
    default: return std::nullopt;
    }
}

convt_dtype dtype_from_onnx(int data_type, const std::string &what) {
    if (const std::optional<convt_dtype> dtype = find_dtype(data_type)) return *dtype;
    throw Rejected(what + " has type " + onnx_type_name(data_type) +
                   "; ConvTranspose takes FLOAT16, BFLOAT16, FLOAT and DOUBLE, QLinearConvTranspose UINT8 and INT8, "
                   "with an INT32 bias");
}

Shape shape_of(const onnx::TensorProto &proto) { return Shape(proto.dims().begin(), proto.dims().end()); }

Tensor tensor_from_proto(const onnx::TensorProto &proto, const fs::path &file) {
    const convt_dtype dtype = dtype_from_onnx(proto.data_type(), quoted(proto));
    refuse_segment(proto);

    // The data is found before anything is allocated, because dims alone must not be able to ask for any amount of memory.
    const Shape shape = shape_of(proto);
    const std::size_t count = count_of(proto);
    std::string loaded;
    const std::string *const bytes = bytes_of(proto, file, count * convt_dtype_size(dtype), &loaded);
    if (!bytes) {
        const int elements = dtype == CONVT_F32   ? proto.float_data_size()
                             : dtype == CONVT_F64 ? proto.double_data_size()
                                                  : proto.int32_data_size();
        if (std::size_t(elements) != count) throw_size_mismatch(proto, std::size_t(elements), "elements", count);
    }

    Tensor tensor(dtype, shape);
    if (bytes) {
        std::memcpy(tensor.data.data(), bytes->data(), bytes->size());
    } else if (dtype == CONVT_F32) {
        copy_elements<float>(proto, proto.float_data(), &tensor);
    } else if (dtype == CONVT_F64) {
        copy_elements<double>(proto, proto.double_data(), &tensor);
    } else if (dtype == CONVT_U8) {
        copy_elements<std::uint8_t>(proto, proto.int32_data(), &tensor);
    } else if (dtype == CONVT_S8) {
        copy_elements<std::int8_t>(proto, proto.int32_data(), &tensor);
    } else if (dtype == CONVT_S32) {
        copy_elements<std::int32_t>(proto, proto.int32_data(), &tensor);
    } else {
        copy_elements<std::uint16_t>(proto, proto.int32_data(), &tensor);
    }
    return tensor;
}

bool is_short_integer(int data_type) {
    return data_type == onnx::TensorProto::INT16 || data_type == onnx::TensorProto::UINT16 ||
           data_type == onnx::TensorProto::INT4 || data_type == onnx::TensorProto::UINT4;
}

Tensor widened_from_proto(const onnx::TensorProto &proto, const fs::path &file) {
    refuse_segment(proto);
    const int type = proto.data_type();
    const bool is_signed = type == onnx::TensorProto::INT16 || type == onnx::TensorProto::INT4;
    // Two integers of 4 bits share a byte, the even one its low half.
    const bool is_4_bit = type == onnx::TensorProto::INT4 || type == onnx::TensorProto::UINT4;
    const std::size_t count = count_of(proto), units = is_4_bit ? (count + 1) / 2 : count;
    std::string loaded;
    const std::string *const bytes = bytes_of(proto, file, is_4_bit ? units : 2 * units, &loaded);
    if (!bytes && std::size_t(proto.int32_data_size()) != units)
        throw_size_mismatch(proto, std::size_t(proto.int32_data_size()), is_4_bit ? "bytes" : "elements", units);
    const int least = is_4_bit ? -128 : is_signed ? INT16_MIN : 0, most = least + (is_4_bit ? 383 : UINT16_MAX);
    Tensor tensor(CONVT_S32, shape_of(proto));
    for (std::size_t i = 0; i < count; i++) {
        const std::size_t unit = is_4_bit ? i / 2 : i;
        std::uint16_t bits = 0;
        if (bytes) {
            std::memcpy(&bits, bytes->data() + (is_4_bit ? unit : 2 * unit), is_4_bit ? 1 : 2);
        } else {
            const int element = proto.int32_data(int(unit));
            if (element < least || element > most) {
                throw Rejected(quoted(proto) + " holds " + std::to_string(element) + ", which its type " +
                               onnx_type_name(type) + " cannot");
            }
            bits = static_cast<std::uint16_t>(element);
        }
        const int number = is_4_bit ? bits >> i % 2 * 4 & 0xf : bits, half = is_4_bit ? 8 : 0x8000;
        tensor.set(i, is_signed && number >= half ? number - 2 * half : number);
    }
    return tensor;
}

std::vector<std::int64_t> integers_from_proto(const onnx::TensorProto &proto, const fs::path &file) {
    if (proto.data_type() != onnx::TensorProto::INT64)
        throw Rejected(quoted(proto) + " has type " + onnx_type_name(proto.data_type()) + ", must be INT64");
    refuse_segment(proto);
    const std::size_t count = count_of(proto);
    std::string loaded;
    const std::string *const bytes = bytes_of(proto, file, count * sizeof(std::int64_t), &loaded);
    if (!bytes && std::size_t(proto.int64_data_size()) != count)
        throw_size_mismatch(proto, std::size_t(proto.int64_data_size()), "elements", count);
    std::vector<std::int64_t> values(count);
    if (!bytes) {
        std::copy(proto.int64_data().begin(), proto.int64_data().end(), values.begin());
    } else if (count > 0) {
        std::memcpy(values.data(), bytes->data(), bytes->size());
    }
    return values;
}

namespace {

Tensor load(const fs::path &file) {
    if (file.extension() == ".npy") return load_npy(file);
    const std::string bytes = read_message(file);
    onnx::TensorProto proto;
    if (!proto.ParseFromArray(bytes.data(), int(bytes.size())) || !proto.has_data_type()) {
        throw Error("'" + file.string() + "' is not a TensorProto");
    }
    if (proto.name().empty()) proto.set_name(file.filename().string()); // for messages
    return tensor_from_proto(proto, file);
}

} // namespace

Tensor load_tensor(const fs::path &file) {
    try {
        return load(file);
    } catch (const Rejected &e) { // which is for what models say
        throw Error("'" + file.string() + "': " + e.what());
    }
}

void require_serializable(convt_dtype dtype, const Shape &shape, const std::string &name) {
    const std::size_t bytes = element_count(shape) * convt_dtype_size(dtype);
    const std::size_t room_for_the_rest = 65536; // dims and name
    if (bytes > std::size_t(INT_MAX) - room_for_the_rest) {
        throw Error("output '" + name + "' of shape " + to_string(shape) + " has " + bytes_to_string(bytes) +
                    ", more than a TensorProto can hold");
    }
}

std::string serialize(const Tensor &tensor, const std::string &name) {
    require_serializable(tensor.dtype, tensor.shape, name);
    onnx::TensorProto proto;
    proto.set_name(name);
    proto.set_data_type(onnx_type_of(tensor.dtype));
    for (const std::int64_t extent : tensor.shape) proto.add_dims(extent);
    proto.set_raw_data(tensor.data.data(), tensor.data.size());
    return proto.SerializeAsString();
}

} // namespace convtranspose::tools
