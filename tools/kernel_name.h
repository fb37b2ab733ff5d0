// The parts of a kernel's name that every kind of kernel has (docs/kernel-names.md).
#ifndef CONVTRANSPOSE_TOOLS_KERNEL_NAME_H_
#define CONVTRANSPOSE_TOOLS_KERNEL_NAME_H_

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace convtranspose::tools {

struct KernelName {
    std::string family; // of variants; the kind of other kernels: "copy", "post", "col2im", "winograd"
    std::string type;   // "f32", "i8" and so on; empty: the name has none, and is all family
};

// Splits "family_type..." at the first word that is a type. Families may be of several words.
inline KernelName kernel_name(std::string_view name) {
    constexpr std::array<std::string_view, 8> kTypes = {"f16", "bf16", "f32", "f64", "h16", "b16", "i8", "i16"};
    for (std::size_t at = name.find('_'); at != std::string_view::npos; at = name.find('_', at + 1)) {
        const std::string_view rest = name.substr(at + 1), word = rest.substr(0, rest.find('_'));
        if (std::find(kTypes.begin(), kTypes.end(), word) == kTypes.end()) continue;
        return {std::string(name.substr(0, at)), std::string(word)};
    }
    return {std::string(name), ""};
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_KERNEL_NAME_H_
