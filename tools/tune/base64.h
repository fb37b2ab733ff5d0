// Writes bytes as a line of text (RFC 4648), and reads them.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_BASE64_H_
#define CONVTRANSPOSE_TOOLS_TUNE_BASE64_H_

#include <string>
#include <string_view>

namespace convtranspose::tools {

inline constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

inline std::string to_base64(std::string_view bytes) {
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        unsigned int bits = 0;
        for (std::size_t j = 0; j < 3; j++) {
            bits = bits << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
        }
        for (std::size_t j = 0; j < 4; j++) {
            text += i + j <= bytes.size() ? kBase64[bits >> (18 - 6 * j) & 63] : '=';
        }
    }
    return text;
}

// Reads up to the first character that is none of the alphabet.
inline std::string from_base64(std::string_view text) {
    std::string bytes;
    unsigned int bits = 0, count = 0;
    for (const char c : text) {
        const std::size_t value = kBase64.find(c);
        if (value == std::string_view::npos) break;
        bits = (bits << 6 | static_cast<unsigned int>(value)) & 0xffffff;
        if (++count % 4 != 1) bytes += static_cast<char>(bits >> (6 - 2 * ((count - 1) % 4)) & 255);
    }
    return bytes;
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_BASE64_H_
