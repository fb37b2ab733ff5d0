// Files and folders of a test.
#ifndef CONVTRANSPOSE_TESTS_CLI_FILES_H_
#define CONVTRANSPOSE_TESTS_CLI_FILES_H_

#include <filesystem>
#include <string>

namespace convtranspose::test {

// An empty folder of its own, removed with everything in it at the end.
class TemporaryFolder {
  public:
    TemporaryFolder();
    ~TemporaryFolder();
    TemporaryFolder(const TemporaryFolder &) = delete;
    TemporaryFolder &operator=(const TemporaryFolder &) = delete;

    const std::filesystem::path &path() const { return path_; }

  private:
    std::filesystem::path path_;
};

std::string read_text(const std::filesystem::path &file);
void write_text(const std::filesystem::path &file, const std::string &bytes); // and the folders above it

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_CLI_FILES_H_
