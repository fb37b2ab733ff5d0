#include "tools/tune/search_log.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "tools/error.h"
#include "tools/files.h"

namespace convtranspose::tools {

namespace {

using nlohmann::json;

std::string describe(const std::string &package, const std::string &kernels) {
    return "version " + package + " and kernels " + kernels;
}

bool is_text(const json &value) { return value.is_string(); }

// Returns what a field of the kind must be, if the value is something else.
const char *fault_of(const json &value, LineField::Kind kind) {
    const auto number = value.is_number() ? value.get<double>() : -1;
    switch (kind) {
    case LineField::kText: return is_text(value) ? nullptr : "a text";
    case LineField::kTexts:
        return value.is_array() && std::all_of(value.begin(), value.end(), is_text) ? nullptr : "a list of texts";
    case LineField::kNumber: return number >= 0 ? nullptr : "a number, at least 0";
    case LineField::kTime: return number > 0 ? nullptr : "a number above 0";
    case LineField::kFlag: return value.is_boolean() ? nullptr : "true or false";
    }
    return nullptr;
}

bool is_blank(const std::string &line) { return line.find_first_not_of(" \t\r") == std::string::npos; }

} // namespace

SearchLog::SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume, std::vector<LineField> fields)
    : file_(std::move(file)), stamp_(stamp), fields_(std::move(fields)) {
    std::error_code code;
    const std::string text = std::filesystem::exists(file_, code) ? read_file(file_) : "";
    if (resume) read(text);
    std::ofstream stream(file_, resume ? std::ios::app : std::ios::trunc);
    if (!resume) stream << profiles_in(text) << std::flush;
    if (!stream) throw Error("cannot write " + file_.string());
}

bool SearchLog::has_stamp(const json &line) const {
    return line.is_object() && line.value("package", json()) == stamp_.package &&
           line.value("kernels", json()) == stamp_.kernels;
}

// Returns the lines of cost profiles, byte for byte. Those of another stamp would make the whole file unusable.
std::string SearchLog::profiles_in(const std::string &text) const {
    std::istringstream stream(text);
    std::string kept;
    for (std::string line; std::getline(stream, line);) {
        const json entry = json::parse(line, nullptr, false);
        if (has_stamp(entry) && entry.contains("cost_profile")) kept += line + "\n";
    }
    return kept;
}

void SearchLog::require_sound(const json &line, const std::string &where) const {
    if (!line.is_object()) throw Error(where + "it is no record, an object of JSON");
    if (!has_stamp(line)) {
        const auto told = [&](const char *name) {
            return line.contains(name) && is_text(line.at(name)) ? line.at(name).get<std::string>() : "?";
        };
        throw Error(where + "it is stale, of " + describe(told("package"), told("kernels")) + "; these are " +
                    describe(stamp_.package, stamp_.kernels) + ": tune anew, without --resume, or name another file");
    }
    if (line.contains("cost_profile")) return;
    for (const LineField &field : fields_) {
        if (field.optional && !line.contains(field.name)) continue;
        const char *const fault = fault_of(line.value(field.name, json()), field.kind);
        if (fault) throw Error(where + "its \"" + field.name + "\" must be " + fault);
    }
}

void SearchLog::read(const std::string &text) {
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin), line_begin = begin;
        const bool cut_off = end == std::string::npos;
        const std::string line = text.substr(begin, end - begin);
        begin = cut_off ? text.size() : end + 1;
        number++;
        if (is_blank(line)) continue;
        const std::string where = file_.string() + ", line " + std::to_string(number) + ": ";
        json entry;
        try {
            entry = json::parse(line);
        } catch (const json::exception &) {
            // A line that was written when the program was ended begins as others do; no other file must lose its end.
            if (!cut_off || line.front() != '{') throw Error(where + "it is not JSON");
            std::filesystem::resize_file(file_, line_begin);
            return;
        }
        require_sound(entry, where);
        if (!entry.contains("cost_profile")) lines_.push_back(std::move(entry));
        if (cut_off) std::ofstream(file_, std::ios::app) << '\n';
    }
}

void SearchLog::add(json line) {
    line["package"] = stamp_.package;
    line["kernels"] = stamp_.kernels;
    const std::uint64_t size = size_of_file(file_);
    std::ofstream stream(file_, std::ios::app);
    stream << line.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
    stream.close();
    if (!stream) {
        std::error_code ignored; // what was written of the line would be refused by --resume
        std::filesystem::resize_file(file_, size, ignored);
        throw Error("cannot write " + file_.string());
    }
    lines_.push_back(std::move(line));
}

} // namespace convtranspose::tools
