#include "kernel_row.h"

#include <utility>
#include <vector>

#include "error.h"

namespace convtranspose::tools {

namespace {

template<typename E>
struct Named {
    const char *json;
    const char *cpp;
    E value;
};

const std::vector<Named<Isa>> kIsas = {{"x86_64", "Isa::kX86_64", Isa::kX86_64},
                                       {"avx2", "Isa::kAvx2", Isa::kAvx2},
                                       {"avx512", "Isa::kAvx512", Isa::kAvx512},
                                       {"avx512_vnni", "Isa::kAvx512Vnni", Isa::kAvx512Vnni},
                                       {"neon", "Isa::kNeon", Isa::kNeon},
                                       {"neon_fp16", "Isa::kNeonFp16", Isa::kNeonFp16},
                                       {"neon_dotprod", "Isa::kNeonDotprod", Isa::kNeonDotprod},
                                       {"neon32", "Isa::kNeon32", Isa::kNeon32},
                                       {"wasm_simd128", "Isa::kWasmSimd128", Isa::kWasmSimd128}};
const std::vector<Named<Family>> kFamilies = {{"reference", "Family::kReference", Family::kReference},
                                              {"channels", "Family::kChannels", Family::kChannels},
                                              {"wide", "Family::kWide", Family::kWide},
                                              {"few", "Family::kFew", Family::kFew},
                                              {"depthwise", "Family::kDepthwise", Family::kDepthwise}};
const std::vector<Named<Store>> kStores = {{"channels", "Store::kChannels", Store::kChannels},
                                           {"planar", "Store::kPlanar", Store::kPlanar}};
const std::vector<Named<Arithmetic>> kArithmetics = {{"float", "Arithmetic::kFloat", Arithmetic::kFloat},
                                                     {"half", "Arithmetic::kHalf", Arithmetic::kHalf},
                                                     {"int8", "Arithmetic::kInt8", Arithmetic::kInt8},
                                                     {"int16", "Arithmetic::kInt16", Arithmetic::kInt16}};
const std::vector<Named<convt_dtype>> kDtypes = {
    {"f16", "CONVT_F16", CONVT_F16}, {"bf16", "CONVT_BF16", CONVT_BF16}, {"f32", "CONVT_F32", CONVT_F32},
    {"f64", "CONVT_F64", CONVT_F64}, {"u8", "CONVT_U8", CONVT_U8},       {"s32", "CONVT_S32", CONVT_S32}};

template<typename E>
const Named<E> &named(const std::vector<Named<E>> &all, const nlohmann::json &json, const char *what) {
    const auto name = json.at(what).get<std::string>();
    for (const Named<E> &one : all) {
        if (name == one.json) return one;
    }
    throw Error("there is no " + std::string(what) + " '" + name + "'");
}

constexpr std::pair<const char *, int Variant::*> kNumbers[] = {
    {"stride_w", &Variant::stride_w}, {"stride_h", &Variant::stride_h}, {"tile_oc", &Variant::tile_oc},
    {"tile_q", &Variant::tile_q},     {"tile_qh", &Variant::tile_qh},   {"lanes", &Variant::lanes}};

} // namespace

KernelRow kernel_row_of(const nlohmann::json &json) {
    KernelRow row;
    row.name = json.at("name").get<std::string>();
    row.function = json.at("function").get<std::string>();
    row.variant = {};
    row.variant.isa = named(kIsas, json, "isa").value;
    row.variant.family = named(kFamilies, json, "family").value;
    row.variant.store = named(kStores, json, "store").value;
    row.variant.arithmetic = named(kArithmetics, json, "arithmetic").value;
    row.variant.dtype = named(kDtypes, json, "dtype").value;
    for (const auto &[name, number] : kNumbers) row.variant.*number = json.at(name).get<int>();
    return row;
}

std::string to_cpp(const nlohmann::json &json) {
    std::string text = "{\"" + json.at("name").get<std::string>() + "\", ";
    text += named(kIsas, json, "isa").cpp + std::string(", ");
    text += named(kFamilies, json, "family").cpp + std::string(", ");
    text += named(kStores, json, "store").cpp + std::string(", ");
    text += named(kArithmetics, json, "arithmetic").cpp + std::string(", ");
    text += named(kDtypes, json, "dtype").cpp + std::string(", ");
    for (const auto &[name, number] : kNumbers) text += std::to_string(json.at(name).get<int>()) + ", ";
    return text + json.at("function").get<std::string>() + "},";
}

} // namespace convtranspose::tools
