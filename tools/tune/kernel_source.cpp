#include "tools/tune/kernel_source.h"

#include <map>

#include "tools/error.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

std::string joined(const json &list) {
    std::string text;
    for (const json &item : list)
        text += (text.empty() ? "" : ", ") + (item.is_string() ? item.get<std::string>() : item.dump());
    return text;
}

} // namespace

std::string KernelSource::text_of(const std::string &key, const json &value) const {
    if (value.is_array()) return joined(value);
    if (!value.is_string()) return value.dump();
    auto word = value.get<std::string>();
    const json &enumerators = templates_.at("enumerators");
    if (!enumerators.contains(key)) return word;
    if (!enumerators.at(key).contains(word)) throw Error("there is no " + key + " '" + word + "'");
    return enumerators.at(key).at(word).get<std::string>();
}

std::string KernelSource::filled(const json &text, const json &values) const {
    const auto from = text.get<std::string>();
    std::string result;
    std::size_t at = 0;
    for (std::size_t begin = 0; (begin = from.find('@', at)) != std::string::npos;) {
        const std::size_t end = from.find('@', begin + 1);
        if (end == std::string::npos) break;
        const std::string key = from.substr(begin + 1, end - begin - 1);
        if (!values.contains(key)) throw Error("a row has no " + key);
        result += from.substr(at, begin - at) + text_of(key, values.at(key));
        at = end + 1;
    }
    return result + from.substr(at);
}

// The constants that a row refers to if its kernel is for some layers alone.
std::string KernelSource::built_in(const json &layer, const std::string &function) const {
    const json &own = templates_.at("built_in");
    std::string tables;
    json values = layer;
    values["function"] = function;
    values["axes"] = json::array();
    for (std::size_t a = 0; a < own.at("axes").size(); a++) {
        json axis = layer.at("axes").at(a);
        const bool has_table = !axis.at("table").empty();
        axis["function"] = function;
        axis["axis"] = own.at("axes").at(a);
        axis["taps"] = filled(own.at(has_table ? "taps" : "no_taps"), axis);
        if (has_table) tables += filled(own.at("table"), axis);
        values["axes"].push_back(filled(own.at("axis"), axis));
    }
    return tables + filled(own.at("layer"), values);
}

std::string KernelSource::table(const std::string &component, const std::vector<json> &kernels,
                                const std::string &records) const {
    std::map<std::string, std::string> rows = {{"records", records}}; // by array
    std::string declarations, built_ins;
    for (const json &kernel : kernels) {
        const json &kind = templates_.at("kinds").at(kernel.at("kind").get<std::string>());
        json values = kernel.at("row");
        values["function"] = kernel.at("function");
        if (values.contains("built_in")) {
            built_ins += built_in(values.at("built_in"), kernel.at("function").get<std::string>());
            values["built_in"] = filled(templates_.at("built_in").at("reference"), values);
        } else {
            values["built_in"] = "";
        }
        declarations += filled(kind.at("declaration"), values);
        rows[kind.at("array").get<std::string>()] += filled(kind.at("row"), values);
    }
    std::string arrays;
    json entries = json::array();
    for (const json &array : templates_.at("arrays")) { // in the order of convt_kernels
        const std::string &text = rows[array.at("name").get<std::string>()];
        if (!text.empty()) arrays += filled(array.at("text"), {{"rows", text}});
        entries.push_back(array.at(text.empty() ? "no_entry" : "entry"));
    }
    return filled(templates_.at("table"), {{"component", component},
                                           {"declarations", declarations},
                                           {"built_in", built_ins},
                                           {"arrays", arrays},
                                           {"entries", entries}});
}

} // namespace convtranspose::tools
