#include "models.h"

#include <cstring>
#include <stdexcept>

#include "files.h"
#include "runtime/base/half.h"

namespace convtranspose::test {

namespace {

template<typename T>
void append(std::string *bytes, T value) {
    bytes->append(reinterpret_cast<const char *>(&value), sizeof value);
}

template<typename T>
T element(const std::string &bytes, std::size_t i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    return value;
}

std::size_t product(const Dims &dims) {
    std::size_t count = 1;
    for (const std::int64_t dim : dims) count *= std::size_t(dim);
    return count;
}

} // namespace

bool operator==(const Values &a, const Values &b) { return a.dims == b.dims && a.data == b.data; }

std::ostream &operator<<(std::ostream &stream, const Values &values) {
    stream << "dims";
    for (const std::int64_t dim : values.dims) stream << ' ' << dim;
    stream << ", data";
    for (const double value : values.data) stream << ' ' << value;
    return stream;
}

Values counting(const Dims &dims, double first) {
    Values values{dims, {}};
    for (std::size_t i = 0; i < product(dims); i++) values.data.push_back(first + double(i));
    return values;
}

onnx::TensorProto tensor(const std::string &name, int data_type, const Values &values, Storage storage) {
    onnx::TensorProto proto;
    proto.set_name(name);
    proto.set_data_type(data_type);
    for (const std::int64_t dim : values.dims) proto.add_dims(dim);
    const bool typed = storage == Storage::typed;
    std::string raw;
    for (const double value : values.data) {
        switch (data_type) {
        case onnx::TensorProto::FLOAT16:
            typed ? proto.add_int32_data(to_f16(float(value)).bits) : append(&raw, to_f16(float(value)).bits);
            break;
        case onnx::TensorProto::BFLOAT16:
            typed ? proto.add_int32_data(to_bf16(float(value)).bits) : append(&raw, to_bf16(float(value)).bits);
            break;
        case onnx::TensorProto::FLOAT: typed ? proto.add_float_data(float(value)) : append(&raw, float(value)); break;
        case onnx::TensorProto::DOUBLE: typed ? proto.add_double_data(value) : append(&raw, value); break;
        case onnx::TensorProto::INT32:
            typed ? proto.add_int32_data(std::int32_t(value)) : append(&raw, std::int32_t(value));
            break;
        case onnx::TensorProto::INT16: append(&raw, std::int16_t(value)); break;
        case onnx::TensorProto::UINT8:
            typed ? proto.add_int32_data(std::int32_t(value)) : append(&raw, std::uint8_t(value));
            break;
        case onnx::TensorProto::INT8:
            typed ? proto.add_int32_data(std::int32_t(value)) : append(&raw, std::int8_t(value));
            break;
        default: throw std::logic_error("no such type in these tests");
        }
    }
    if (!typed) proto.set_raw_data(raw);
    return proto;
}

Values values_of(const onnx::TensorProto &proto) {
    Values values{Dims(proto.dims().begin(), proto.dims().end()), {}};
    const std::string &raw = proto.raw_data();
    for (std::size_t i = 0; i < product(values.dims); i++) {
        switch (proto.data_type()) {
        case onnx::TensorProto::FLOAT16: values.data.push_back(double(float(element<F16>(raw, i)))); break;
        case onnx::TensorProto::BFLOAT16: values.data.push_back(double(float(element<Bf16>(raw, i)))); break;
        case onnx::TensorProto::FLOAT: values.data.push_back(double(element<float>(raw, i))); break;
        case onnx::TensorProto::DOUBLE: values.data.push_back(element<double>(raw, i)); break;
        case onnx::TensorProto::UINT8: values.data.push_back(element<std::uint8_t>(raw, i)); break;
        case onnx::TensorProto::INT8: values.data.push_back(element<std::int8_t>(raw, i)); break;
        default: throw std::logic_error("no such type in these tests");
        }
    }
    return values;
}

std::string npy(const std::string &descr, const Dims &dims, const std::string &data, int version) {
    std::string shape;
    for (const std::int64_t dim : dims) shape += std::to_string(dim) + ", ";
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    const std::size_t bytes_of_size = version == 1 ? 2 : 4, in_front = 8 + bytes_of_size;
    header.resize((header.size() + in_front) / 64 * 64 + 63 - in_front, ' ');
    header += '\n';
    std::string size;
    for (std::size_t i = 0; i < bytes_of_size; i++) size += char(header.size() >> 8 * i & 0xff);
    return std::string("\x93NUMPY") + char(version) + '\0' + size + header + data;
}

Values expected(const Values &x, const Values &w, const Values *b) {
    const std::int64_t n = x.dims[0], c = x.dims[1], ih = x.dims[2], iw = x.dims[3];
    const std::int64_t m = w.dims[1], kh = w.dims[2], kw = w.dims[3];
    const std::int64_t oh = kStride * (ih - 1) + kh, ow = kStride * (iw - 1) + kw;
    Values y{{n, m, oh, ow}, std::vector<double>(std::size_t(n * m * oh * ow), 0.0)};
    for (std::int64_t i = 0; i < n * m * oh * ow; i++) y.data[i] = b ? b->data[i / (oh * ow) % m] : 0.0;
    for (std::int64_t in = 0; in < n; in++)
        for (std::int64_t ic = 0; ic < c; ic++)
            for (std::int64_t oc = 0; oc < m; oc++)
                for (std::int64_t h = 0; h < ih; h++)
                    for (std::int64_t v = 0; v < iw; v++)
                        for (std::int64_t p = 0; p < kh; p++)
                            for (std::int64_t q = 0; q < kw; q++)
                                y.data[((in * m + oc) * oh + h * kStride + p) * ow + v * kStride + q] +=
                                    x.data[((in * c + ic) * ih + h) * iw + v] *
                                    w.data[((ic * m + oc) * kh + p) * kw + q];
    return y;
}

void add_ints(onnx::NodeProto *node, const std::string &name, const Dims &values) {
    onnx::AttributeProto *const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute->add_ints(value);
}

void add_value(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> *list, const std::string &name, int data_type,
               const Dims *dims) {
    onnx::ValueInfoProto *const info = list->Add();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(data_type);
    if (!dims) return;
    onnx::TensorShapeProto *const shape = info->mutable_type()->mutable_tensor_type()->mutable_shape();
    for (const std::int64_t dim : *dims) {
        onnx::TensorShapeProto::Dimension *const entry = shape->add_dim();
        if (dim >= 0) {
            entry->set_dim_value(dim);
        } else {
            entry->set_dim_param("unknown");
        }
    }
}

onnx::NodeProto *add_node(onnx::GraphProto *graph, const std::string &op, const std::string &name,
                          const std::vector<std::string> &inputs, const std::string &output) {
    onnx::NodeProto *const node = graph->add_node();
    node->set_op_type(op);
    node->set_name(name);
    for (const std::string &input : inputs) node->add_input(input);
    node->add_output(output);
    return node;
}

void add_int(onnx::NodeProto *node, const std::string &name, std::int64_t value) {
    onnx::AttributeProto *const attribute = node->add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(value);
}

onnx::ModelProto model(const ModelOptions &options) {
    onnx::ModelProto model;
    model.set_ir_version(10);
    model.add_opset_import()->set_version(22);
    onnx::GraphProto *const graph = model.mutable_graph();
    graph->set_name("test");
    onnx::NodeProto *const node = graph->add_node();
    node->set_op_type("ConvTranspose");
    node->add_input("X");
    node->add_input("W");
    if (options.bias) node->add_input("B");
    node->add_output("Y");
    add_ints(node, "strides", {kStride, kStride});

    add_value(graph->mutable_input(), "X", options.data_type, options.shapes ? &kX.dims : nullptr);
    if (options.constant_w) {
        *graph->add_initializer() = tensor("W", options.data_type, kW, options.storage);
    } else {
        add_value(graph->mutable_input(), "W", options.data_type, options.shapes ? &kW.dims : nullptr);
    }
    if (options.bias && options.constant_b) {
        *graph->add_initializer() = tensor("B", options.data_type, kB, options.storage);
    } else if (options.bias) {
        add_value(graph->mutable_input(), "B", options.data_type, options.shapes ? &kB.dims : nullptr);
    }
    const Dims y_dims = expected(kX, kW, nullptr).dims;
    add_value(graph->mutable_output(), "Y", options.data_type, options.shapes ? &y_dims : nullptr);
    return model;
}

void write(const std::filesystem::path &file, const google::protobuf::MessageLite &message) {
    write_text(file, message.SerializeAsString());
}

void write_test(const std::filesystem::path &folder, const onnx::ModelProto &model,
                const std::vector<onnx::TensorProto> &inputs, const std::vector<onnx::TensorProto> &outputs) {
    write(folder / "model.onnx", model);
    const std::filesystem::path set = folder / "test_data_set_0";
    std::filesystem::create_directories(set);
    for (std::size_t i = 0; i < inputs.size(); i++) write(set / ("input_" + std::to_string(i) + ".pb"), inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); i++) write(set / ("output_" + std::to_string(i) + ".pb"), outputs[i]);
}

void write_test(const std::filesystem::path &folder, const ModelOptions &options) {
    std::vector<onnx::TensorProto> inputs = {tensor("X", options.data_type, kX, options.storage)};
    if (!options.constant_w) inputs.push_back(tensor("W", options.data_type, kW, options.storage));
    if (options.bias && !options.constant_b) inputs.push_back(tensor("B", options.data_type, kB, options.storage));
    write_test(folder, model(options), inputs,
               {tensor("Y", options.data_type, expected(kX, kW, options.bias ? &kB : nullptr))});
}

onnx::TensorProto read_tensor(const std::filesystem::path &file) {
    onnx::TensorProto proto;
    if (!proto.ParseFromString(read_text(file))) throw std::runtime_error(file.string() + " is not a TensorProto");
    return proto;
}

} // namespace convtranspose::test
