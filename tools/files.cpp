#include "files.h"

#include <algorithm>
#include <fstream>
#include <system_error>

#include "error.h"

namespace fs = std::filesystem;

namespace convtranspose::tools {

std::string read_file(const fs::path &file, std::uint64_t offset, std::optional<std::uint64_t> size) {
    std::error_code code;
    if (!fs::is_regular_file(file, code)) {
        throw Error("'" + file.string() + "' " + (fs::exists(file, code) ? "is not a file" : "does not exist"));
    }
    const std::uint64_t available = fs::file_size(file, code);
    if (code) throw Error("'" + file.string() + "' cannot be read: " + code.message());
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

bool is_inside(const fs::path &folder, const fs::path &file) {
    return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

} // namespace

fs::path beside(const fs::path &file, const std::string &location) {
    const fs::path relative(location);
    if (location.empty() || relative.is_absolute() || relative.has_root_path()) {
        throw Rejected("external data location '" + location + "' is not relative to the model's folder");
    }
    const fs::path base = fs::weakly_canonical(fs::absolute(file).parent_path());
    fs::path target = fs::weakly_canonical(base / relative);
    if (!is_inside(base, target) && !is_inside(fs::weakly_canonical(file).parent_path(), target)) {
        throw Rejected("external data location '" + location + "' leaves the model's folder");
    }
    return target;
}

} // namespace convtranspose::tools
