// Reads and writes whole files.
#ifndef CONVTRANSPOSE_TOOLS_FILES_H_
#define CONVTRANSPOSE_TOOLS_FILES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace convtranspose::tools {

// The size of a regular file. Throws Error for anything else.
std::uint64_t size_of_file(const std::filesystem::path &file);

// Reads `size` bytes from `offset` on, or all that follow it. Throws Error.
std::string read_file(const std::filesystem::path &file, std::uint64_t offset = 0,
                      std::optional<std::uint64_t> size = std::nullopt);

// Reads a file that holds one protobuf message. Throws Error, before reading it, if it exceeds the 2 GiB that one may have.
std::string read_message(const std::filesystem::path &file);

// Creates the folder that holds `file`, then `file` itself, whole or not at all. Throws Error.
void write_file(const std::filesystem::path &file, const std::string &bytes);

// Creates the folder that an option names, where there is none. Throws UsageError if a file has its name, or none can be made.
void make_folder(const std::filesystem::path &folder, const char *option);

// The file that `location` names relative to the folder of `file`. Throws Rejected if that would leave the folder, because a model
// from elsewhere must not be able to read any file of the machine. Links are followed before looking. If `file` is a link too, the
// folder that it leads to is as good: caches of models keep all files in one folder, and links to them in others.
std::filesystem::path beside(const std::filesystem::path &file, const std::string &location);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_FILES_H_
