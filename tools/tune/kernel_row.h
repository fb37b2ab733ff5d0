// A row of the table of kernels (runtime/variant.h) as JSON: how the command, its worker and cmake/kernels.cmake tell each other
// of kernels.
//
//     {"name": "channels_f32_planar_s2_2x8", "isa": "avx512", "family": "channels", "store": "planar",
//      "arithmetic": "float", "dtype": "f32", "stride_w": 2, "stride_h": 0, "tile_oc": 32, "tile_q": 8, "tile_qh": 1,
//      "lanes": 16, "function": "convt_channels_f32_planar_s2_2x8_avx512"}
#ifndef CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_
#define CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_

#include <string>

#include <nlohmann/json.hpp>

#include "runtime/variant.h"

namespace convtranspose::tools {

// Owns what the variant points to.
struct KernelRow {
    std::string name, function;
    Variant variant; // whose name and run are not set
};

// Throws nlohmann::json::exception for what is missing, and Error for names that there are not.
KernelRow kernel_row_of(const nlohmann::json &json);

// The row as C++, for a table that is compiled: "{"name", Isa::kAvx512, ..., function},".
std::string to_cpp(const nlohmann::json &json);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_KERNEL_ROW_H_
