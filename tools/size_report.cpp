#include "tools/size_report.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel_contract/kernel_types.h"
#include "tools/error.h"
#include "tools/kernel_name.h"
#include "tools/kernel_sizes.h"
#include "tools/text.h"

namespace convtranspose::tools {

namespace {

// The families of schedules, and what surrounds a convolution.
const std::vector<const char *> &columns() {
    static const std::vector<const char *> all = [] {
        std::vector<const char *> names;
        for (const auto &family : kFamilies) names.push_back(family.name);
        names.insert(names.end(), {"copy", "col2im", "post", "winograd"});
        return names;
    }();
    return all;
}

// Columns are as wide as their family's name, and at least as the numbers below it.
std::size_t width_of(const char *family) { return std::max<std::size_t>(9, std::string_view(family).size()); }

std::size_t before_sum() {
    std::size_t width = 22;
    for (const char *family : columns()) width += width_of(family) + 1;
    return width;
}

struct Kernel {
    std::string family, type, isa;
    std::size_t bytes;
};

// Reads "family_type...". Types that begin with i are the arithmetic of quantized layers, h16 is f16 summed in f16, and b16 is bf16
// multiplied as such. Types such as f32_s8w are those of light weights, and f32_to_f16 is f32 that is rounded to f16.
std::pair<std::string, std::string> family_and_type(const std::string &name) {
    const auto [family, type] = kernel_name(name);
    if (type[0] == 'i') return {family, "quantized"};
    const std::size_t behind_type = family.size() + type.size() + 2; // and two underscores
    for (const std::string_view weights : {"f16w_", "bf16w_", "s8w_"})
        if (name.compare(std::min(behind_type, name.size()), weights.size(), weights) == 0) return {family, "light"};
    for (const std::string rounded : {"f16", "bf16"})
        if (name.find("_f32_to_" + rounded) == family.size()) return {family, rounded};
    return {family, type == "h16" ? "f16" : type == "b16" ? "bf16" : type};
}

std::string isa_of(const std::string &name) {
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        std::string isa = convt_isa_name(i);
        const std::string end = "_" + isa;
        if (name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0) return isa;
    }
    throw Error("no ISA that is built in has the kernel " + name);
}

std::vector<Kernel> kernels() {
    if (kernel_sizes().empty()) throw Error("the size of kernels is not known: this system's symbols have none");
    std::vector<Kernel> list;
    for (const KernelSize &kernel : kernel_sizes()) {
        const auto [family, type] = family_and_type(kernel.name);
        list.push_back({family, type, isa_of(kernel.name), kernel.bytes});
    }
    return list;
}

std::string kilobytes(std::size_t bytes) {
    char text[32];
    std::snprintf(text, sizeof text, "%9.1f", static_cast<double>(bytes) / 1000);
    return text;
}

std::string list_of(const std::set<std::string> &words) {
    std::string list;
    for (const std::string &word : words) list += (list.empty() ? "" : ";") + word;
    return list;
}

} // namespace

void Selection::add(const Plan &plan, convt_dtype x, convt_dtype y, bool has_post_ops) {
    for (std::size_t i = 0; i < convt_plan_kernel_count(plan.get()); i++) {
        const auto [family, type] = family_and_type(convt_plan_kernel(plan.get(), i));
        types.insert(type);
        if (family != "reference") families.insert(family); // which is always built
    }
    const auto is_integer = [](convt_dtype dtype) { return dtype == CONVT_U8 || dtype == CONVT_S8; };
    types.insert(is_integer(x) ? "quantized" : convt_dtype_name(x));
    if (!is_integer(x) || has_post_ops) types.insert(is_integer(y) ? "quantized" : convt_dtype_name(y));
    for (const char *type : {"f16", "bf16", "light"})
        if (types.count(type) != 0) types.insert("f32"); // which a build of these types has too
}

std::string size_report() {
    std::map<std::pair<std::string, std::string>, std::map<std::string, std::size_t>> rows; // ISA and type
    std::size_t total = kRuntimeSize;
    for (const Kernel &kernel : kernels()) {
        rows[{kernel.isa, kernel.type}][kernel.family] += kernel.bytes;
        total += kernel.bytes;
    }
    std::string text = "kB of code           ";
    for (const char *family : columns())
        text += std::string(width_of(family) + 1 - std::string_view(family).size(), ' ') + family;
    text += "       sum\n";
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        for (const auto &[key, bytes] : rows) {
            if (key.first != convt_isa_name(i)) continue;
            text += padded(key.first, 13) + padded(key.second, 9);
            std::size_t sum = 0;
            for (const char *family : columns()) {
                const auto found = bytes.find(family);
                const std::string number = found == bytes.end() ? "        -" : kilobytes(found->second);
                text += std::string(width_of(family) - number.size(), ' ') + number;
                text += ' ';
                if (found != bytes.end()) sum += found->second;
            }
            text += kilobytes(sum) + "\n";
        }
    }
    text += padded("dispatcher", before_sum()) + kilobytes(kRuntimeSize) + "\n";
    text += padded("all", before_sum()) + kilobytes(total) + "\n";
    text += "A build has the rows and columns that CONVTRANSPOSE_ISAS, _TYPES and _FAMILIES name, and always\n"
            "reference, copy, col2im and post; winograd comes with oc_vectorized. An ISA may add to another one:\n";
    std::string added;
    for (const IsaFacts &isa : kIsas) {
        if (isa.adds_to == isa.value) continue;
        added += (added.empty() ? "" : ", ") + std::string(isa.name) + " to " + isa_name(isa.adds_to);
    }
    return text + added + ".\n";
}

std::string size_report(const Selection &selection) {
    std::map<std::string, std::size_t> by_isa;
    for (const Kernel &kernel : kernels()) {
        const bool always = kernel.family == "reference" || kernel.family == "copy" || kernel.family == "col2im" ||
                            kernel.family == "post";
        const std::string comes_with = kernel.family == "winograd" ? "oc_vectorized" : kernel.family;
        if (selection.types.count(kernel.type) == 0 || (!always && selection.families.count(comes_with) == 0)) continue;
        by_isa[kernel.isa] += kernel.bytes;
    }
    std::string text = "These layers need CONVTRANSPOSE_TYPES=\"" + list_of(selection.types) +
                       "\" CONVTRANSPOSE_FAMILIES=\"" + list_of(selection.families) + "\",\nkB of code for each ISA:\n";
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        const std::string isa = convt_isa_name(i);
        if (by_isa.count(isa) != 0) text += "  " + padded(isa, 13) + kilobytes(by_isa[isa]) + "\n";
    }
    return text + "  " + padded("dispatcher", 13) + kilobytes(kRuntimeSize) + "\n";
}

} // namespace convtranspose::tools
