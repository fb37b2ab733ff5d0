#include "tools/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

constexpr std::uint64_t kMostOfHeader = 65536; // bytes; that of a tensor has some hundred

[[noreturn]] void refuse(const std::string &file, const std::string &why) {
    throw Error("'" + file + "' is not a .npy file: " + why);
}

// Reads the header, a Python dict literal whose keys are descr, fortran_order and shape, each once, in any order.
class HeaderReader {
  public:
    HeaderReader(const std::string &header, const std::string &file)
        : p_(header.data()), end_(p_ + header.size()), file_(file) {}

    // Returns the literals of the three keys.
    std::map<std::string, std::string> read() {
        std::map<std::string, std::string> values;
        if (!take('{')) refuse(file_, "its header is not a dict");
        while (!take('}')) {
            const std::string key = text();
            if (key != "descr" && key != "fortran_order" && key != "shape")
                refuse(file_, "its header has an unknown key '" + key + "'");
            if (!take(':')) refuse(file_, "its header has no value of " + key);
            if (!values.emplace(key, value()).second) refuse(file_, "its header has " + key + " twice");
            if (take(',')) continue;
            if (!take('}')) refuse(file_, "its header has no comma behind " + key);
            break;
        }
        skip_space();
        if (p_ != end_) refuse(file_, "its header goes on behind its dict");
        for (const char *const key : {"descr", "fortran_order", "shape"}) {
            if (values.count(key) == 0) refuse(file_, std::string("its header has no ") + key);
        }
        return values;
    }

  private:
    void skip_space() {
        while (p_ != end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t')) ++p_;
    }

    bool take(char c) {
        skip_space();
        if (p_ == end_ || *p_ != c) return false;
        ++p_;
        return true;
    }

    std::string text() {
        skip_space();
        const char quote = p_ == end_ ? '\0' : *p_;
        if (quote != '\'' && quote != '"') refuse(file_, "its header has a key that is no text");
        const char *const begin = ++p_, *const last = std::find(begin, end_, quote);
        if (last == end_) refuse(file_, "its header has a text without an end");
        p_ = last + 1;
        return std::string(begin, last);
    }

    // Returns a text with single quotes, a tuple or a list as it stands, or a word.
    std::string value() {
        skip_space();
        if (p_ != end_ && (*p_ == '\'' || *p_ == '"')) return "'" + text() + "'";
        const char *const begin = p_;
        const char closing = p_ == end_ ? '\0' : *p_ == '(' ? ')' : *p_ == '[' ? ']' : '\0';
        if (closing) {
            p_ = std::find(p_, end_, closing);
            if (p_ != end_) ++p_;
        } else {
            while (p_ != end_ && *p_ != ',' && *p_ != '}' && *p_ != ' ') ++p_;
        }
        return std::string(begin, p_);
    }

    const char *p_, *const end_;
    const std::string &file_;
};

// Reads a tuple of extents: "()", "(5,)", "(1, 4, 5, 5)".
Shape shape_of(const std::string &literal, const std::string &file) {
    if (literal.size() < 2 || literal.front() != '(' || literal.back() != ')') refuse(file, "its shape is not a tuple");
    Shape shape;
    const char *p = literal.data() + 1, *const last = literal.data() + literal.size() - 1;
    const auto skip_space = [&] {
        while (p != last && *p == ' ') ++p;
    };
    for (skip_space(); p != last; skip_space()) {
        std::int64_t extent = 0;
        const std::from_chars_result result = std::from_chars(p, last, extent);
        if (result.ec != std::errc()) refuse(file, "its shape is not of integers");
        shape.push_back(extent);
        p = result.ptr;
        skip_space();
        if (p != last && *p++ != ',') refuse(file, "its shape has no comma between extents");
        if (p == last && shape.size() == 1 && p[-1] != ',') refuse(file, "its shape is not a tuple");
    }
    return shape;
}

bool is_true(const std::string &literal, const std::string &file) {
    if (literal != "True" && literal != "False")
        refuse(file, "its fortran_order is '" + literal + "', must be True or False");
    return literal == "True";
}

convt_dtype dtype_of(const std::string &descr, const std::string &file) {
    if (descr == "'<f2'") return CONVT_F16;
    if (descr == "'<f4'") return CONVT_F32;
    if (descr == "'<f8'") return CONVT_F64;
    if (descr == "'<V2'" || descr == "'|V2'") return CONVT_BF16; // NumPy itself has no name for bfloat16
    if (descr == "'|u1'" || descr == "'<u1'" || descr == "'>u1'") return CONVT_U8;
    if (descr == "'|i1'" || descr == "'<i1'" || descr == "'>i1'") return CONVT_S8;
    if (descr == "'<i4'") return CONVT_S32;
    throw Error("'" + file + "' has the NumPy type " + descr +
                "; taken are float16, bfloat16, float32, float64, uint8, int8 and int32, little-endian");
}

} // namespace

Tensor load_npy(const std::filesystem::path &path) {
    const std::string file = path.string();
    const std::uint64_t size = size_of_file(path);
    const std::string begin = read_file(path, 0, std::min<std::uint64_t>(size, 12));
    if (size < 12 || begin.compare(0, 6, "\x93NUMPY") != 0) refuse(file, "it does not begin with its magic string");
    // Version 1 has a header size of 16 bits, and later ones of 32 bits. Both are little-endian.
    const bool wide = begin[6] != 1;
    std::uint64_t header_size = 0;
    for (std::size_t i = 0; i < (wide ? 4u : 2u); i++) {
        header_size |= std::uint64_t(static_cast<unsigned char>(begin[8 + i])) << 8 * i;
    }
    const std::uint64_t header_begin = wide ? 12 : 10;
    if (header_size > size - header_begin) throw Error("'" + file + "' ends within its header");
    if (header_size > kMostOfHeader) refuse(file, "its header has " + std::to_string(header_size) + " bytes");
    std::map<std::string, std::string> header = HeaderReader(read_file(path, header_begin, header_size), file).read();

    const convt_dtype dtype = dtype_of(header["descr"], file);
    const Shape shape = shape_of(header["shape"], file);
    if (is_true(header["fortran_order"], file) && shape.size() > 1) {
        throw Error("'" + file + "' is stored in Fortran order; save numpy.ascontiguousarray of it");
    }
    const std::uint64_t data_begin = header_begin + header_size, available = size - data_begin;
    const std::size_t wanted = element_count(shape) * convt_dtype_size(dtype);
    if (wanted != available) {
        throw Error("'" + file + "' holds " + std::to_string(available) + " bytes of data, but its shape " +
                    to_string(shape) + " needs " + std::to_string(wanted));
    }
    const std::string bytes = read_file(path, data_begin, wanted);
    Tensor tensor(dtype, shape);
    std::memcpy(tensor.data.data(), bytes.data(), wanted);
    return tensor;
}

} // namespace convtranspose::tools
