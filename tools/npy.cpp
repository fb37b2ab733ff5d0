#include "npy.h"

#include <charconv>
#include <cstring>
#include <string>

#include "error.h"
#include "files.h"
#include "text.h"

namespace convtranspose::tools {

namespace {

// The text behind "'key':" in the header, which is a Python dict literal; spaces are skipped.
std::string value_of(const std::string &header, const std::string &key, const std::string &file) {
    const std::size_t at = header.find("'" + key + "':");
    const std::size_t value = at == std::string::npos ? at : header.find_first_not_of(' ', at + key.size() + 3);
    if (value == std::string::npos) throw Error("'" + file + "' is not a .npy file: its header has no " + key);
    return header.substr(value);
}

Shape shape_of(const std::string &literal, const std::string &file) {
    const std::size_t end = literal.find(')');
    if (literal.empty() || literal[0] != '(' || end == std::string::npos) {
        throw Error("'" + file + "' is not a .npy file: its shape is not a tuple");
    }
    Shape shape;
    const char *p = literal.data() + 1, *const last = literal.data() + end;
    while (p != last) {
        if (*p == ' ' || *p == ',') {
            ++p;
            continue;
        }
        std::int64_t extent = 0;
        const std::from_chars_result result = std::from_chars(p, last, extent);
        if (result.ec != std::errc()) throw Error("'" + file + "' is not a .npy file: its shape is not of integers");
        shape.push_back(extent);
        p = result.ptr;
    }
    return shape;
}

convt_dtype dtype_of(const std::string &literal, const std::string &file) {
    const std::string descr = literal.substr(0, 5);
    if (descr == "'<f2'") return CONVT_F16;
    if (descr == "'<f4'") return CONVT_F32;
    if (descr == "'<f8'") return CONVT_F64;
    if (descr == "'<V2'" || descr == "'|V2'") return CONVT_BF16; // NumPy itself has no name for bfloat16
    if (descr.substr(1, 3) == "|u1") return CONVT_U8;
    if (descr.substr(1, 3) == "|i1") return CONVT_S8;
    if (descr == "'<i4'") return CONVT_S32;
    throw Error("'" + file + "' has the NumPy type " + literal.substr(0, literal.find(',')) +
                "; taken are float16, bfloat16, float32, float64, uint8, int8 and int32, little-endian");
}

} // namespace

Tensor load_npy(const std::filesystem::path &path) {
    const std::string file = path.string();
    const std::string bytes = read_file(path);
    if (bytes.size() < 12 || bytes.compare(0, 6, "\x93NUMPY") != 0) {
        throw Error("'" + file + "' is not a .npy file: it does not begin with its magic string");
    }
    // Version 1 has a header size of 16 bits, and later ones of 32 bits. Both are little-endian.
    const bool wide = bytes[6] != 1;
    std::size_t header_size = 0;
    for (std::size_t i = 0; i < (wide ? 4u : 2u); i++) {
        header_size |= std::size_t(static_cast<unsigned char>(bytes[8 + i])) << 8 * i;
    }
    const std::size_t header_begin = wide ? 12 : 10;
    if (header_size > bytes.size() - header_begin) throw Error("'" + file + "' ends within its header");
    const std::string header = bytes.substr(header_begin, header_size);

    const convt_dtype dtype = dtype_of(value_of(header, "descr", file), file);
    const Shape shape = shape_of(value_of(header, "shape", file), file);
    const bool fortran_order = value_of(header, "fortran_order", file).compare(0, 4, "True") == 0;
    if (fortran_order && shape.size() > 1) {
        throw Error("'" + file + "' is stored in Fortran order; save numpy.ascontiguousarray of it");
    }
    const std::size_t data_begin = header_begin + header_size, available = bytes.size() - data_begin;
    const std::size_t wanted = element_count(shape) * convt_dtype_size(dtype);
    if (wanted != available) {
        throw Error("'" + file + "' holds " + std::to_string(available) + " bytes of data, but its shape " +
                    to_string(shape) + " needs " + std::to_string(wanted));
    }
    Tensor tensor(dtype, shape);
    std::memcpy(tensor.data.data(), bytes.data() + data_begin, wanted);
    return tensor;
}

} // namespace convtranspose::tools
