// Jobs that the command line names: models with tensors for them, and ONNX backend test folders.
#ifndef CONVTRANSPOSE_TOOLS_JOB_H_
#define CONVTRANSPOSE_TOOLS_JOB_H_

#include <filesystem>
#include <string>
#include <vector>

namespace convtranspose::tools {

// Inputs, in the order of the graph inputs that are not initializers, and the results that are expected.
struct DataSet {
    std::string name;                          // "test_data_set_0"; empty where there are no such folders
    std::vector<std::filesystem::path> inputs; // input_0.pb, input_1.npy ...
    std::filesystem::path expected;            // output_0.pb or .npy; empty: none
    std::filesystem::path tolerance;           // tolerance_0.pb or .npy; empty: none
};

// One positional argument, with the tensor files that follow it.
struct Job {
    std::string name;           // of the folder, or of the model file without .onnx
    std::filesystem::path path; // as given
    std::vector<std::filesystem::path> inputs;

    // The model file. Throws Error if there is none.
    std::filesystem::path model() const;
    // The data sets, at least one. Without input files on the command line they are the test_data_set_N folders beside the model,
    // or else the files beside it are one data set.
    std::vector<DataSet> data_sets() const;
    // The files that are read of it, as far as they are found: the model, inputs, expected results and tolerances.
    std::vector<std::filesystem::path> files() const;
};

// Throws UsageError for a tensor file that follows no model file.
std::vector<Job> jobs_from(const std::vector<std::string> &arguments);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_JOB_H_
