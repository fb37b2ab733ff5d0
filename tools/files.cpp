#include "tools/files.h"

#include <algorithm>
#include <climits>
#include <fstream>
#include <system_error>

#include "tools/error.h"

namespace fs = std::filesystem;

namespace convtranspose::tools {

std::uint64_t size_of_file(const fs::path &file) {
    std::error_code code;
    if (!fs::is_regular_file(file, code)) {
        throw Error("'" + file.string() + "' " + (fs::exists(file, code) ? "is not a file" : "does not exist"));
    }
    const std::uint64_t size = fs::file_size(file, code);
    if (code) throw Error("'" + file.string() + "' cannot be read: " + code.message());
    return size;
}

std::string read_file(const fs::path &file, std::uint64_t offset, std::optional<std::uint64_t> size) {
    const std::uint64_t available = size_of_file(file);
    if (offset > available || (size && *size > available - offset)) {
        throw Error("'" + file.string() + "' ends at byte " + std::to_string(available) +
                    ", before what is wanted of it (" +
                    (size ? std::to_string(*size) + " bytes from byte " : "from byte ") + std::to_string(offset) + ")");
    }
    std::string bytes(std::size_t(size.value_or(available - offset)), '\0');
    std::ifstream in(file, std::ios::binary);
    in.seekg(std::streamoff(offset));
    in.read(bytes.data(), std::streamsize(bytes.size()));
    if (!in) throw Error("'" + file.string() + "' cannot be read");
    return bytes;
}

std::string read_message(const fs::path &file) {
    const std::uint64_t size = size_of_file(file);
    if (size > INT_MAX) {
        throw Error("'" + file.string() + "' has " + std::to_string(size) +
                    " bytes, more than the 2 GiB of a protobuf message");
    }
    return read_file(file, 0, size);
}

void write_file(const fs::path &file, const std::string &bytes) {
    std::error_code code;
    fs::create_directories(file.parent_path(), code);
    if (code) throw Error("folder '" + file.parent_path().string() + "' cannot be made: " + code.message());

    // The file has another name until it is complete, so that a reader never meets half of it.
    const fs::path partial = file.string() + ".partial";
    bool written = false;
    {
        std::ofstream out(partial, std::ios::binary | std::ios::trunc);
        out.write(bytes.data(), std::streamsize(bytes.size()));
        out.close();
        written = bool(out);
    }
    if (written) {
        fs::rename(partial, file, code);
        written = !code;
    }
    if (!written) {
        std::error_code ignored;
        fs::remove(partial, ignored);
        throw Error("'" + file.string() + "' cannot be written" + (code ? ": " + code.message() : ""));
    }
}

void make_folder(const fs::path &folder, const char *option) {
    std::error_code code;
    if (folder.empty() || (fs::exists(folder, code) && !fs::is_directory(folder, code)))
        throw UsageError(std::string(option) + ": '" + folder.string() +
                         "' is not a folder; name one, or one to be made");
    fs::create_directories(folder, code);
    if (code) throw UsageError(std::string(option) + ": '" + folder.string() + "' cannot be made: " + code.message());
}

namespace {

constexpr std::size_t kMostOfLocation = 4000; // of a path, on all systems

// As std::filesystem::weakly_canonical, with an Error that names the file.
fs::path followed(const fs::path &file) {
    std::error_code code;
    fs::path result = fs::weakly_canonical(file, code);
    if (code) throw Error("'" + file.string() + "' cannot be followed: " + code.message());
    return result;
}

bool is_inside(const fs::path &folder, const fs::path &file) {
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

} // namespace

fs::path beside(const fs::path &file, const std::string &location) {
    if (location.find('\0') != std::string::npos) {
        throw Rejected("external data location '" + location.substr(0, location.find('\0')) +
                       "...' contains a NUL character, which no name of a file can");
    }
    if (location.size() > kMostOfLocation) {
        throw Rejected("external data location '" + location.substr(0, 40) + "...' has " +
                       std::to_string(location.size()) + " characters, must have at most " +
                       std::to_string(kMostOfLocation));
    }
    const fs::path relative(location);
    if (location.empty() || relative.is_absolute() || relative.has_root_path()) {
        throw Rejected("external data location '" + location + "' is not relative to the model's folder");
    }
    const fs::path base = followed(fs::absolute(file).parent_path());
    fs::path target = followed(base / relative);
    if (!is_inside(base, target) && !is_inside(followed(file).parent_path(), target)) {
        throw Rejected("external data location '" + location + "' leaves the model's folder");
    }
    return target;
}

} // namespace convtranspose::tools
