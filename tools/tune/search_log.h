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

// Fields that each line must have: texts, and numbers that are not negative.
struct LineFields {
    std::vector<const char *> texts, numbers;
};

class SearchLog {
  public:
    // With `resume`, reads the lines that are there, and leaves them as they are; otherwise the file begins anew. Throws Error, with
    // the line, for a line that is no record, lacks a field or has another stamp. A last line that was cut off is dropped.
    SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume, LineFields fields = {});

    const std::vector<nlohmann::json> &lines() const { return lines_; }
    void add(nlohmann::json line); // stamps it, and writes it at once

  private:
    void read();
    void require_sound(const nlohmann::json &line, const std::string &where) const;

    std::filesystem::path file_;
    Stamp stamp_;
    LineFields fields_;
    std::vector<nlohmann::json> lines_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SEARCH_LOG_H_
