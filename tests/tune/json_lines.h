// Reads the files of one JSON object a line that `convtranspose tune` and `calibrate` write.
#ifndef CONVTRANSPOSE_TESTS_TUNE_JSON_LINES_H_
#define CONVTRANSPOSE_TESTS_TUNE_JSON_LINES_H_

#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::test {

inline std::vector<nlohmann::json> lines_of(const std::string &file) {
    std::ifstream stream(file);
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
}

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_TUNE_JSON_LINES_H_
