// A row of the table of kernels (kernel_contract/kernel_table.h) as JSON: how the command, its worker and kernels/generate.py tell
// each other of kernels.
//
//     {"name": "oc_vectorized_f32_planar_s2_2x14", "isa": "avx512", "family": "oc_vectorized", "output_order": "planar",
//      "arithmetic": "float", "dtype": "f32", "stride_w": 2, "stride_h": 0, "tile_oc": 32, "tile_q": 14, "tile_qh": 1,
//      "lanes": 16, "function": "convt_oc_vectorized_f32_planar_s2_2x14_avx512"}
//
// and of a kernel that is built for one layer (BuiltIn in kernel_contract/kernel_table.h, axes w, h, d)
//
//      "built_in": {"ic": 64, "oc": 0, "x_in_place": false,
//                   "axes": [{"table": [0, 2, 0, 0, ...], "phases": 2, "step": 1, "count": 2, "out": 64}, ...]}
#ifndef CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_
#define CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runtime/kernels/variant.h"

namespace convtranspose::tools {

// Owns what the variant points to.
struct KernelRow {
    KernelRow() = default;
    KernelRow(const KernelRow &) = delete;
    KernelRow &operator=(const KernelRow &) = delete;

    std::string name, function;
    std::array<std::vector<std::int32_t>, 3> tables;
    BuiltIn built_in = {};
    Variant variant = {}; // but for run
};

// Throws nlohmann::json::exception for what is missing, and Error for names that there are not.
void read_kernel_row(const nlohmann::json &json, KernelRow *row);

nlohmann::json json_of(const Variant &variant, const std::string &function);

Isa isa_of(const std::string &name); // throws Error

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_
