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

// A field that each line is checked for. Lines may lack those that are optional.
struct LineField {
    enum Kind { kText, kTexts, kNumber, kTime, kFlag }; // numbers are not negative, times are above 0

    const char *name;
    Kind kind = kText;
    bool optional = false;
};

class SearchLog {
  public:
    // With `resume`, reads the lines that are there, and leaves them as they are; otherwise the file begins anew, with the cost
    // profiles of the same stamp that it had. Throws Error, with the line, for a line that is no record, has a wrong field or
    // another stamp. A last line that was cut off is dropped.
    SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume, std::vector<LineField> fields = {});

    // The lines, without cost profiles, which records may share a file with.
    const std::vector<nlohmann::json> &lines() const { return lines_; }
    void add(nlohmann::json line); // stamps it, and writes it at once

  private:
    void read(const std::string &text);
    bool has_stamp(const nlohmann::json &line) const;
    std::string profiles_in(const std::string &text) const;
    void require_sound(const nlohmann::json &line, const std::string &where) const;

    std::filesystem::path file_;
    Stamp stamp_;
    std::vector<LineField> fields_;
    std::vector<nlohmann::json> lines_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SEARCH_LOG_H_
