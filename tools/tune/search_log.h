// Files of JSON lines that are only ever added to. Each line is stamped with what was measured, and a file is used again only if
// every stamp in it is still right.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_SEARCH_LOG_H_
#define CONVTRANSPOSE_TOOLS_TUNE_SEARCH_LOG_H_

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::tools {

struct Stamp {
    std::string package, kernels;
};

class SearchLog {
  public:
    // With `resume`, reads the lines that are there; otherwise the file begins anew. Throws Error, with the line, for a line that
    // is no record or has another stamp. A last line that was cut off is dropped.
    SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume);

    const std::vector<nlohmann::json> &lines() const { return lines_; }
    void add(nlohmann::json line); // stamps it, and writes it at once

  private:
    void read();

    std::filesystem::path file_;
    Stamp stamp_;
    std::vector<nlohmann::json> lines_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SEARCH_LOG_H_
