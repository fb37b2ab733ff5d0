// `convtranspose run` refuses what is broken: every refusal is one line that says why, exit status 1, and no output.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "files.h"
#include "models.h"
#include "process.h"

namespace fs = std::filesystem;

namespace convtranspose::test {
namespace {

void expect_refused(const fs::path &folder, const std::string &why) {
    const TemporaryFolder out;
    const Outcome outcome = convtranspose({"run", folder.string(), "--output-dir", out.path().string()});
    EXPECT_EQ(outcome.status, 1) << outcome;
    EXPECT_EQ(outcome.err.rfind("error: " + folder.stem().string() + ": ", 0), 0u) << outcome;
    EXPECT_NE(outcome.err.find(why), std::string::npos) << "expected: " << why << '\n' << outcome;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << "one line\n" << outcome;
    EXPECT_TRUE(fs::is_empty(out.path()));
}

struct BrokenModel {
    std::string name, why;
    std::function<void(onnx::ModelProto *)> breaks;
};

void PrintTo(const BrokenModel &broken, std::ostream *stream) { *stream << broken.name; }

onnx::NodeProto *node(onnx::ModelProto *m) { return m->mutable_graph()->mutable_node(0); }
onnx::TensorProto *weights(onnx::ModelProto *m) { return m->mutable_graph()->mutable_initializer(0); }

void make_external(onnx::TensorProto *tensor, const std::vector<std::pair<std::string, std::string>> &entries) {
    tensor->clear_raw_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
        onnx::StringStringEntryProto *const entry = tensor->add_external_data();
        entry->set_key(key);
        entry->set_value(value);
    }
}

void declare_weights(onnx::ModelProto *m, int type, const Dims &dims) {
    add_value(m->mutable_graph()->mutable_input(), "W", type, &dims);
}

onnx::AttributeProto *add_attribute(onnx::ModelProto *m, const char *name, onnx::AttributeProto::AttributeType type) {
    onnx::AttributeProto *const attribute = node(m)->add_attribute();
    attribute->set_name(name);
    attribute->set_type(type);
    return attribute;
}

std::vector<BrokenModel> broken_models() {
    using M = onnx::ModelProto *;
    return {
        // The graph.
        {"no_node", "it has no nodes", [](M m) { m->mutable_graph()->clear_node(); }},
        {"axis_of_a_constant", "DequantizeLinear: its attribute axis is no integer",
         [](M m) {
             onnx::GraphProto *const graph = m->mutable_graph();
             const onnx::NodeProto layer = graph->node(0);
             graph->clear_node();
             weights(m)->set_name("w");
             add_int(add_node(graph, "DequantizeLinear", "", {"w", "B"}, "W"), "axis", 1);
             graph->mutable_node(0)->mutable_attribute(0)->set_type(onnx::AttributeProto::FLOAT);
             *graph->add_node() = layer;
         }},
        {"forged_line", "it has Relu?error: another", [](M m) { node(m)->set_op_type("Relu\nerror: another"); }},
        {"other_node", "it has Relu", [](M m) { node(m)->set_op_type("Relu"); }},
        {"two_nodes", "it has 2 ConvTranspose",
         [](M m) {
             const onnx::NodeProto first = *node(m);
             *m->mutable_graph()->add_node() = first;
             m->mutable_graph()->mutable_node(1)->set_output(0, "Z");
         }},
        {"more_nodes", "it has ConvTranspose, Relu", [](M m) { m->mutable_graph()->add_node()->set_op_type("Relu"); }},
        {"quantized_of_onnx", "QLinearConvTranspose of domain '' is not supported",
         [](M m) { node(m)->set_op_type("QLinearConvTranspose"); }},
        {"quantized_without_opset", "no opset_import for domain 'com.ms.internal.nhwc'",
         [](M m) {
             node(m)->set_op_type("QLinearConvTranspose");
             node(m)->set_domain("com.ms.internal.nhwc");
         }},
        {"other_domain", "ConvTranspose of domain 'com.example'", [](M m) { node(m)->set_domain("com.example"); }},
        {"no_opset", "no opset_import", [](M m) { m->clear_opset_import(); }},
        {"opset_0", "opset_import has version 0", [](M m) { m->mutable_opset_import(0)->set_version(0); }},
        {"opset_huge", "opset_import has version", [](M m) { m->mutable_opset_import(0)->set_version(INT64_MAX); }},
        {"same_output", "value 'Y' is defined twice",
         [](M m) {
             const onnx::NodeProto first = *node(m);
             *m->mutable_graph()->add_node() = first;
         }},
        {"no_output", "one output", [](M m) { m->mutable_graph()->clear_output(); }},
        {"other_output", "it has 'Z'", [](M m) { m->mutable_graph()->mutable_output(0)->set_name("Z"); }},
        {"input_of_an_initializer", "'W' is FLOAT 2x3x2x2, but the graph input of that name is declared FLOAT 2x3x2x3",
         [](M m) {
             declare_weights(m, onnx::TensorProto::FLOAT, {2, 3, 2, 3});
         }},
        {"type_of_an_initializer", "'W' is FLOAT 2x3x2x2, but the graph input of that name is declared DOUBLE",
         [](M m) { declare_weights(m, onnx::TensorProto::DOUBLE, kW.dims); }},
        {"output_type", "graph output 'Y' is declared DOUBLE",
         [](M m) { m->mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(11); }},

        // The node.
        {"no_x", "input X is missing", [](M m) { node(m)->set_input(0, ""); }},
        {"no_w", "input W is missing", [](M m) { node(m)->mutable_input()->DeleteSubrange(1, 2); }},
        {"four_inputs", "4 inputs", [](M m) { node(m)->add_input("X"); }},
        {"unknown_w", "'V' is not an input, initializer or Constant", [](M m) { node(m)->set_input(1, "V"); }},
        {"two_outputs", "2 outputs", [](M m) { node(m)->add_output("Z"); }},
        {"unknown_attribute", "padding is not one of ConvTranspose", [](M m) { add_ints(node(m), "padding", {1}); }},
        {"attribute_twice", "strides is given twice",
         [](M m) {
             add_ints(node(m), "strides", {1, 1});
         }},
        {"group_type", "group has type FLOAT, must be INT",
         [](M m) { add_attribute(m, "group", onnx::AttributeProto::FLOAT)->set_f(1); }},
        {"pads_type", "pads has type INT, must be INTS",
         [](M m) { add_attribute(m, "pads", onnx::AttributeProto::INT)->set_i(1); }},
        {"auto_pad_type", "auto_pad has type INTS, must be STRING", [](M m) { add_ints(node(m), "auto_pad", {}); }},
        {"auto_pad_nul", "NUL",
         [](M m) { add_attribute(m, "auto_pad", onnx::AttributeProto::STRING)->set_s(std::string("VALID\0?", 7)); }},
        {"reference", "refers to a function's attribute",
         [](M m) { add_attribute(m, "group", onnx::AttributeProto::INT)->set_ref_attr_name("g"); }},
        {"group_0", "group", [](M m) { add_attribute(m, "group", onnx::AttributeProto::INT)->set_i(0); }},
        {"stride_0", "strides", [](M m) { node(m)->mutable_attribute(0)->set_ints(0, 0); }},

        // Types.
        {"x_declared_int", "graph input 'X' is INT32",
         [](M m) { m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(6); }},
        {"x_declared_int16", "graph input 'X' has type INT16",
         [](M m) { m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(5); }},
        {"x_declared_double", "graph input 'X' is DOUBLE",
         [](M m) { m->mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(11); }},
        {"w_double", "W is f64, X is f32", [](M m) { *weights(m) = tensor("W", onnx::TensorProto::DOUBLE, kW); }},
        {"b_half", "B is f16, X is f32",
         [](M m) { *m->mutable_graph()->mutable_initializer(1) = tensor("B", onnx::TensorProto::FLOAT16, kB); }},
        {"w_int", "W is s32, X is f32", [](M m) { *weights(m) = tensor("W", onnx::TensorProto::INT32, kW); }},
        {"w_untyped", "tensor 'W' has type UNDEFINED", [](M m) { weights(m)->clear_data_type(); }},
        {"w_of_no_type", "tensor 'W' has type number 99", [](M m) { weights(m)->set_data_type(99); }},

        // Tensors.
        {"x_declared_shape", "graph input 'X' is 1x3x2x3",
         [](M m) {
             const Dims dims = {1, 3, 2, 3};
             m->mutable_graph()->clear_input();
             add_value(m->mutable_graph()->mutable_input(), "X", onnx::TensorProto::FLOAT, &dims);
         }},
        {"w_short", "holds 92 bytes, but its dims 2x3x2x2 need 96",
         [](M m) { weights(m)->mutable_raw_data()->resize(92); }},
        {"w_no_data", "holds 0 elements", [](M m) { weights(m)->clear_raw_data(); }},
        {"w_wrong_field", "holds 0 elements",
         [](M m) {
             weights(m)->clear_raw_data();
             for (int i = 0; i < 24; i++) weights(m)->add_double_data(i);
         }},
        {"w_two_fields", "more than one field", [](M m) { weights(m)->add_float_data(1); }},
        {"w_bytes_out_of_range", "tensor 'W' holds 300, which its type INT8 cannot",
         [](M m) {
             *weights(m) = tensor("W", onnx::TensorProto::INT8, kW, Storage::typed);
             weights(m)->set_int32_data(0, 300);
         }},
        {"w_halves_out_of_range", "tensor 'W' holds 70000, which its type FLOAT16 cannot",
         [](M m) {
             *weights(m) = tensor("W", onnx::TensorProto::FLOAT16, kW, Storage::typed);
             weights(m)->set_int32_data(0, 70000);
         }},
        {"w_negative_dim", "tensor 'W': shape -2x3x2x2 has a negative extent",
         [](M m) { weights(m)->set_dims(0, -2); }},
        {"w_huge", "more elements than memory can hold",
         [](M m) { weights(m)->set_dims(0, int64_t{1} << 62), weights(m)->set_dims(1, int64_t{1} << 62); }},
        {"w_large", "need", [](M m) { weights(m)->set_dims(0, int64_t{1} << 50); }}, // must not be allocated first
        {"w_segment", "segment", [](M m) { weights(m)->mutable_segment()->set_begin(0); }},
        {"w_rank", "w_shape", [](M m) { weights(m)->add_dims(1); }},
        {"output_huge", "",
         [](M m) {
             m->mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
             add_ints(node(m), "output_shape", {1 << 20, 1 << 20});
         }},

        // External data.
        {"external_absent", "does not exist",
         [](M m) {
             make_external(weights(m), {{"location", "absent.bin"}});
         }},
        {"external_no_location", "is not relative",
         [](M m) {
             make_external(weights(m), {{"offset", "0"}});
         }},
        {"external_absolute", "is not relative",
         [](M m) {
             make_external(weights(m), {{"location", "/etc/hostname"}});
         }},
        {"external_parent", "leaves the model's folder",
         [](M m) {
             make_external(weights(m), {{"location", "../outside.bin"}});
         }},
        {"external_deep_parent", "leaves the model's folder",
         [](M m) {
             make_external(weights(m), {{"location", "test_data_set_0/../../outside.bin"}});
         }},
        {"external_link", "leaves the model's folder",
         [](M m) {
             make_external(weights(m), {{"location", "link/outside.bin"}});
         }},
        {"external_folder", "is not a file",
         [](M m) {
             make_external(weights(m), {{"location", "test_data_set_0"}});
         }},
        {"external_wrong_length", "holds 97 bytes, but its dims 2x3x2x2 need 96",
         [](M m) {
             make_external(weights(m), {{"location", "w.bin"}, {"length", "97"}});
         }},
        {"external_nul", "'w.bin...' contains a NUL character",
         [](M m) {
             make_external(weights(m), {{"location", std::string("w.bin\0x", 7)}});
         }},
        {"external_long_name", "has 5000 characters, must have at most",
         [](M m) {
             make_external(weights(m), {{"location", std::string(5000, 'w')}});
         }},
        {"external_long_part", "cannot be followed",
         [](M m) {
             make_external(weights(m), {{"location", std::string(300, 'w')}});
         }},
        {"external_short", "ends at byte 96",
         [](M m) {
             make_external(weights(m), {{"location", "w.bin"}, {"offset", "1"}});
         }},
        {"external_offset", "ends at byte",
         [](M m) {
             make_external(weights(m), {{"location", "w.bin"}, {"offset", "18446744073709551615"}});
         }},
        {"external_bad_offset", "not a number of bytes",
         [](M m) {
             make_external(weights(m), {{"location", "w.bin"}, {"offset", "-1"}});
         }},
    };
}

class Refuses : public testing::TestWithParam<BrokenModel> {};

TEST_P(Refuses, Model) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer";
    onnx::ModelProto m = model();
    write_text(folder.path() / "outside.bin", weights(&m)->raw_data());
    write_text(layer / "w.bin", weights(&m)->raw_data());
    fs::create_directory_symlink(folder.path(), layer / "link");
    GetParam().breaks(&m);
    write_test(layer, m, {tensor("X", onnx::TensorProto::FLOAT, kX)});
    expect_refused(layer, GetParam().why);
}

INSTANTIATE_TEST_SUITE_P(Broken, Refuses, testing::ValuesIn(broken_models()),
                         [](const auto &test) { return test.param.name; });

TEST(BrokenFiles, ModelsCutShort) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer";
    write_test(layer, model(), {tensor("X", onnx::TensorProto::FLOAT, kX)});
    const std::string whole = read_text(layer / "model.onnx");
    for (std::size_t size = 0; size < whole.size(); size += 37) {
        write_text(layer / "model.onnx", whole.substr(0, size));
        expect_refused(layer, "");
    }
}

TEST(BrokenFiles, InputsCutShort) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer", input = layer / "test_data_set_0" / "input_0.pb";
    write_test(layer, model(), {tensor("X", onnx::TensorProto::FLOAT, kX)});
    const std::string whole = read_text(input);
    for (std::size_t size = 0; size < whole.size(); size += 7) {
        write_text(input, whole.substr(0, size));
        expect_refused(layer, "");
    }
}

TEST(BrokenFiles, Garbage) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer";
    write_test(layer, model(), {tensor("X", onnx::TensorProto::FLOAT, kX)});
    write_text(layer / "test_data_set_0" / "input_0.pb", "this is no tensor");
    expect_refused(layer, "is not a TensorProto");
    write_text(layer / "model.onnx", std::string(1000, '\xff'));
    expect_refused(layer, "is not an ONNX model");
    fs::remove(layer / "model.onnx");
    expect_refused(layer, "has no model.onnx");
    expect_refused(folder.path() / "absent", "does not exist");
    expect_refused(folder.path() / "absent" / "model.onnx", "model.onnx' does not exist");
    expect_refused("/dev/null", "is neither a .onnx model nor a folder with one; tensors are .pb or .npy files");
}

// Takes no room on the disk.
void make_large(const fs::path &file, std::uintmax_t size) {
    write_text(file, "");
    fs::resize_file(file, size);
}

TEST(BrokenFiles, LargeFilesAreNotRead) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer", input = layer / "test_data_set_0" / "input_0.pb";
    write_test(layer, model(), {tensor("X", onnx::TensorProto::FLOAT, kX)});
    constexpr std::uintmax_t kLarge = std::uintmax_t{1} << 40;
    make_large(input, kLarge);
    expect_refused(layer, "input_0.pb' has 1099511627776 bytes, more than the 2 GiB of a protobuf message");
    write_text(input.parent_path() / "input_0.npy", npy("<f4", kX.dims, ""));
    fs::resize_file(input.parent_path() / "input_0.npy", kLarge);
    fs::remove(input);
    expect_refused(layer, "bytes of data, but its shape 1x2x2x3 needs 48");
    make_large(layer / "model.onnx", kLarge);
    expect_refused(layer, "model.onnx' has 1099511627776 bytes, more than the 2 GiB of a protobuf message");
}

TEST(BrokenFiles, WrongNumberOfInputs) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer";
    write_test(layer, model(), {});
    expect_refused(layer, "graph input 'X' has no file");
    const onnx::TensorProto x = tensor("X", onnx::TensorProto::FLOAT, kX);
    write_test(layer, model(), {x, x});
    expect_refused(layer, "there are 2 input files, the model takes 1");
}

TEST(BrokenFiles, Npy) {
    const TemporaryFolder folder;
    const fs::path layer = folder.path() / "layer", input = layer / "test_data_set_0" / "input_0.npy";
    write_test(layer, model(), {});
    const std::string data = tensor("X", onnx::TensorProto::FLOAT, kX).raw_data();
    const std::string good = npy("<f4", kX.dims, data);
    const auto with = [&](const std::string &from, const std::string &to) {
        std::string changed = good;
        return changed.replace(changed.find(from), from.size(), to);
    };
    const std::vector<std::pair<std::string, std::string>> files = {
        {npy("<i4", kX.dims, data), "graph input 'X' is FLOAT"},
        {npy("<i2", kX.dims, data), "NumPy type '<i2'"},
        {npy(">f4", kX.dims, data), "little-endian"},
        {npy("<f4", kX.dims, data.substr(1)), "holds 47 bytes"},
        {npy("<f4", {1, 2, -2, 3}, data), "negative"},
        {npy("<f4", {1, int64_t{1} << 61, int64_t{1} << 61, 3}, data), "more elements"},
        {with("False", "True "), "Fortran order"},
        {with("'shape': (", "'shape': ["), "no comma behind shape"},
        {with("(1, 2, 2, 3, )", "[1, 2, 2, 3, ]"), "its shape is not a tuple"},
        {with("(1, 2", "(1, x"), "integers"},
        {with("(1, 2", "(1  2"), "no comma between extents"},
        {with("2, 3, )", "2, 3; )"), "no comma between extents"},
        {with("'descr'", "'other'"), "unknown key 'other'"},
        {with("'fortran_order': False, ", "'descr': '<f4',         "), "has descr twice"},
        {with("'fortran_order': False, ", "                        "), "has no fortran_order"},
        {with("False", "0    "), "fortran_order is '0', must be True or False"},
        {with(", 'fortran", "  'fortran"), "no comma behind descr"},
        {with("), }", "), x"), "text"},
        {with("), }", ") }}"), "goes on behind its dict"},
        {with("{'", "('"), "not a dict"},
        {good.substr(0, 40), "ends within its header"},
        {good.substr(0, 9), "magic"},
        {"", "magic"},
    };
    for (const auto &[bytes, why] : files) {
        write_text(input, bytes);
        expect_refused(layer, why);
    }
}

} // namespace
} // namespace convtranspose::test
