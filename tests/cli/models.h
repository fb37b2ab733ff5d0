// Small models and tensors, written as ONNX files.
#ifndef CONVTRANSPOSE_TESTS_CLI_MODELS_H_
#define CONVTRANSPOSE_TESTS_CLI_MODELS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <onnx-ml.pb.h>

namespace convtranspose::test {

using Dims = std::vector<std::int64_t>;
using Proto = onnx::TensorProto;

struct Values {
    Dims dims;
    std::vector<double> data;
};

bool operator==(const Values &a, const Values &b);
std::ostream &operator<<(std::ostream &stream, const Values &values);

// first, first + 1, ...
Values counting(const Dims &dims, double first = 0);

enum class Storage { raw, typed };

onnx::TensorProto tensor(const std::string &name, int data_type, const Values &values, Storage storage = Storage::raw);
Values values_of(const onnx::TensorProto &proto); // of raw data
std::string npy(const std::string &descr, const Dims &dims, const std::string &data, int version = 1);

// The layer that the tests use, computed by the definition in doubles: 2-D, stride 2, everything else by default. The
// values are small integers, so that every type holds all results exactly.
constexpr std::int64_t kStride = 2;
const Values kX = counting({1, 2, 2, 3}, -5);
const Values kW = counting({2, 3, 2, 2}, -11);
const Values kB = counting({3}, 1);
Values expected(const Values &x, const Values &w, const Values *b);

// X, and W and B either as graph inputs or as initializers.
struct ModelOptions {
    int data_type = onnx::TensorProto::FLOAT;
    bool bias = true;
    bool constant_w = true;
    bool constant_b = true;
    bool shapes = true; // of the graph inputs and output
    Storage storage = Storage::raw;
};
onnx::ModelProto model(const ModelOptions &options = {});
onnx::NodeProto *add_node(onnx::GraphProto *graph, const std::string &op, const std::string &name,
                          const std::vector<std::string> &inputs, const std::string &output);
void add_int(onnx::NodeProto *node, const std::string &name, std::int64_t value);
void add_ints(onnx::NodeProto *node, const std::string &name, const Dims &values);
void add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> *list, const std::string &name, int data_type,
               const Dims *dims);

void write(const std::filesystem::path &file, const google::protobuf::MessageLite &message);

// FOLDER/model.onnx and FOLDER/test_data_set_0/input_N.pb, output_0.pb.
void write_test(const std::filesystem::path &folder, const onnx::ModelProto &model,
                const std::vector<onnx::TensorProto> &inputs, const std::vector<onnx::TensorProto> &outputs = {});

// The test folder of model(options), expected output included.
void write_test(const std::filesystem::path &folder, const ModelOptions &options = {});

onnx::TensorProto read_tensor(const std::filesystem::path &file);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_CLI_MODELS_H_
