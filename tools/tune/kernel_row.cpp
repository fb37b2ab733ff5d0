#include "tools/tune/kernel_row.h"

#include <utility>
#include <vector>

#include "kernel_contract/table_columns.h"
#include "tools/error.h"

namespace convtranspose::tools {

namespace {

constexpr Named<convt_dtype> kDtypes[] = {{"f16", CONVT_F16}, {"bf16", CONVT_BF16}, {"f32", CONVT_F32},
                                          {"f64", CONVT_F64}, {"u8", CONVT_U8},     {"s32", CONVT_S32}};

// Kernels have no y of other types.
const char *name_of(convt_dtype dtype) {
    for (const Named<convt_dtype> &one : kDtypes) {
        if (one.value == dtype) return one.name;
    }
    throw Error("a value without a name");
}

template<typename Row, std::size_t count>
const Row &named(const Row (&all)[count], const nlohmann::json &from, const char *what) {
    const auto name = from.at(what).get<std::string>();
    for (const Row &one : all) {
        if (name == one.name) return one;
    }
    throw Error("there is no " + std::string(what) + " '" + name + "'");
}

constexpr std::pair<const char *, int Variant::*> kNumbers[] = {
    {"stride_w", &Variant::stride_w}, {"stride_h", &Variant::stride_h}, {"tile_oc", &Variant::tile_oc},
    {"tile_q", &Variant::tile_q},     {"tile_qh", &Variant::tile_qh},   {"lanes", &Variant::lanes}};

constexpr std::pair<const char *, std::int32_t BuiltInAxis::*> kAxisNumbers[] = {{"phases", &BuiltInAxis::phases},
                                                                                 {"step", &BuiltInAxis::step},
                                                                                 {"count", &BuiltInAxis::count},
                                                                                 {"out", &BuiltInAxis::out}};

} // namespace

void read_kernel_row(const nlohmann::json &from, KernelRow *row) {
    Variant &v = row->variant;
    row->name = from.at("name").get<std::string>();
    row->function = from.at("function").get<std::string>();
    v.name = row->name.c_str();
    v.isa = named(kIsas, from, "isa").value;
    v.family = named(kFamilies, from, "family").value;
    v.output_order = named(kOutputOrders, from, "output_order").value;
    v.arithmetic = named(kArithmetics, from, "arithmetic").value;
    v.dtype = named(kDtypes, from, "dtype").value;
    for (const auto &[name, number] : kNumbers) v.*number = from.at(name).get<int>();
    if (!from.contains("built_in")) return;
    const nlohmann::json &built_in = from.at("built_in");
    row->built_in.ic = built_in.at("ic").get<std::int32_t>();
    row->built_in.oc = built_in.at("oc").get<std::int32_t>();
    row->built_in.x_in_place = built_in.at("x_in_place").get<bool>();
    for (std::size_t a = 0; a < 3; a++) {
        const nlohmann::json &axis = built_in.at("axes").at(a);
        row->tables[a] = axis.at("table").get<std::vector<std::int32_t>>();
        BuiltInAxis &to = row->built_in.axes[a];
        to.table = row->tables[a].empty() ? nullptr : row->tables[a].data();
        for (const auto &[name, number] : kAxisNumbers) to.*number = axis.at(name).get<std::int32_t>();
        if (to.table && row->tables[a].size() != kTapColumns * static_cast<std::size_t>(to.phases)) {
            throw Error("the tap table of " + row->name + " must have a row for each phase");
        }
    }
    v.built_in = &row->built_in;
}

nlohmann::json json_of(const Variant &v, const std::string &function) {
    nlohmann::json row = {{"name", v.name},
                          {"function", function},
                          {"isa", isa_name(v.isa)},
                          {"family", family_name(v.family)},
                          {"output_order", row_of(kOutputOrders, v.output_order).name},
                          {"arithmetic", row_of(kArithmetics, v.arithmetic).name},
                          {"dtype", name_of(v.dtype)}};
    for (const auto &[name, number] : kNumbers) row[name] = v.*number;
    if (!v.built_in) return row;
    nlohmann::json axes = nlohmann::json::array();
    for (const BuiltInAxis &axis : v.built_in->axes) {
        nlohmann::json to = {{"table", nlohmann::json::array()}};
        for (std::int32_t i = 0; axis.table && i < kTapColumns * axis.phases; i++) to["table"].push_back(axis.table[i]);
        for (const auto &[name, number] : kAxisNumbers) to[name] = axis.*number;
        axes.push_back(to);
    }
    row["built_in"] = {
        {"ic", v.built_in->ic}, {"oc", v.built_in->oc}, {"x_in_place", v.built_in->x_in_place}, {"axes", axes}};
    return row;
}

Isa isa_of(const std::string &name) { return named(kIsas, {{"isa", name}}, "isa").value; }

} // namespace convtranspose::tools
