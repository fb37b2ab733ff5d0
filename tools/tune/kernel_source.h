// C++ tables of kernels, for the libraries that `convtranspose tune --emit` writes. How a table looks is said once, in
// kernels/source.py: kernels.json takes its templates along, in which @key@ stands for the value of that name.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_KERNEL_SOURCE_H_
#define CONVTRANSPOSE_TOOLS_TUNE_KERNEL_SOURCE_H_

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace convtranspose::tools {

class KernelSource {
  public:
    // "source" of kernels.json.
    explicit KernelSource(const nlohmann::json &templates) : templates_(templates) {}

    // The source file of the table of a component, float or quantized. A kernel has its kind, function and row, as in
    // kernels.json; records are lines of string literals. Throws Error where a row lacks something.
    std::string table(const std::string &component, const std::vector<nlohmann::json> &kernels,
                      const std::string &records) const;

  private:
    std::string filled(const nlohmann::json &text, const nlohmann::json &values) const;
    std::string text_of(const std::string &key, const nlohmann::json &value) const;
    std::string built_in(const nlohmann::json &layer, const std::string &function) const;

    const nlohmann::json &templates_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_KERNEL_SOURCE_H_
