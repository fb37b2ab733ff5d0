// An input as a file, for readers that take a path.
#ifndef CONVTRANSPOSE_TESTS_FUZZ_INPUT_FILE_H_
#define CONVTRANSPOSE_TESTS_FUZZ_INPUT_FILE_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

#include "fuzz/fail.h"

namespace convtranspose::fuzz {

// In a folder of its own, which stays empty but for it; in memory where the system has such a folder.
class InputFile {
  public:
    InputFile(const std::uint8_t *data, std::size_t size, const std::string &extension) {
        namespace fs = std::filesystem;
        const fs::path folder = (fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path()) /
                                ("convtranspose-fuzz-" + std::to_string(getpid()));
        fs::create_directories(folder);
        path_ = folder / ("input" + extension);
        std::FILE *const file = std::fopen(path_.c_str(), "wb");
        if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) fail("no room for the input");
    }
    ~InputFile() {
        std::error_code ignored;
        std::filesystem::remove_all(path_.parent_path(), ignored);
    }
    InputFile(const InputFile &) = delete;
    InputFile &operator=(const InputFile &) = delete;

    const std::filesystem::path &path() const { return path_; }

  private:
    std::filesystem::path path_;
};

} // namespace convtranspose::fuzz

#endif // CONVTRANSPOSE_TESTS_FUZZ_INPUT_FILE_H_
