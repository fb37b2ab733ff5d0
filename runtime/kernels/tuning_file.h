// Reads files of tuning texts, for the runtime, the tools and the ONNX Runtime provider alike.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include <sys/stat.h>

namespace convtranspose {

constexpr std::size_t kMostBytesOfTuning = 64 << 20;

// Reads the whole file, and returns why it cannot; empty: it has. Only a regular file is opened: to open a FIFO is to wait for who
// writes to it. A large one must not take all memory.
inline std::string read_tuning_file(const char *path, std::string *text) {
    struct stat status = {};
    if (stat(path, &status) != 0) return std::string("it cannot be opened: ") + std::strerror(errno);
    if ((status.st_mode & S_IFMT) != S_IFREG) return "it is no regular file";
    std::string too_large = "it has more than " + std::to_string(kMostBytesOfTuning) + " bytes";
    if (static_cast<long long>(status.st_size) > static_cast<long long>(kMostBytesOfTuning)) return too_large;
    std::FILE *const file = std::fopen(path, "rb");
    if (!file) return std::string("it cannot be opened: ") + std::strerror(errno);
    char part[4096];
    for (std::size_t n; text->size() <= kMostBytesOfTuning && (n = std::fread(part, 1, sizeof part, file)) > 0;)
        text->append(part, n);
    const bool failed = std::ferror(file) != 0;
    std::fclose(file);
    if (text->size() > kMostBytesOfTuning) return too_large; // as of a file that grows
    return failed ? "it cannot be read" : "";
}

} // namespace convtranspose
