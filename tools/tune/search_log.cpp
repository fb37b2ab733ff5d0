#include "search_log.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "tools/error.h"

namespace convtranspose::tools {

namespace {

std::string describe(const std::string &package, const std::string &kernels) {
    return "version " + package + " and kernels " + kernels;
}

} // namespace

SearchLog::SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume, LineFields fields)
    : file_(std::move(file)), stamp_(stamp), fields_(std::move(fields)) {
    if (resume) read();
    std::ofstream stream(file_, resume ? std::ios::app : std::ios::trunc);
    if (!stream) throw Error("cannot write " + file_.string());
}

void SearchLog::require_sound(const nlohmann::json &line, const std::string &where) const {
    if (!line.is_object()) throw Error(where + "it is no record, an object of JSON");
    const auto has = [&](const char *name, auto is_right) { return line.contains(name) && is_right(line.at(name)); };
    const auto is_text = [](const nlohmann::json &value) { return value.is_string(); };
    const auto is_number = [](const nlohmann::json &value) { return value.is_number() && value.get<double>() >= 0; };
    if (!has("package", is_text) || !has("kernels", is_text) || line.at("package") != stamp_.package ||
        line.at("kernels") != stamp_.kernels) {
        const auto text = [&](const char *name) { return has(name, is_text) ? line.at(name).get<std::string>() : "?"; };
        throw Error(where + "it is stale, of " + describe(text("package"), text("kernels")) + "; these are " +
                    describe(stamp_.package, stamp_.kernels) + ": tune anew, without --resume, or name another file");
    }
    for (const char *const name : fields_.texts)
        if (!has(name, is_text)) throw Error(where + "its \"" + name + "\" must be a text");
    for (const char *const name : fields_.numbers)
        if (!has(name, is_number)) throw Error(where + "its \"" + name + "\" must be a number, at least 0");
}

void SearchLog::read() {
    std::ifstream stream(file_);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin), line_begin = begin;
        const bool cut_off = end == std::string::npos;
        const std::string line = text.substr(begin, end - begin);
        begin = cut_off ? text.size() : end + 1;
        number++;
        const std::string where = file_.string() + ", line " + std::to_string(number) + ": ";
        nlohmann::json entry;
        try {
            entry = nlohmann::json::parse(line);
        } catch (const nlohmann::json::exception &) {
            // A line that was written when the program was ended begins as others do; no other file must lose its end.
            if (!cut_off || line.front() != '{') throw Error(where + "it is not JSON");
            std::filesystem::resize_file(file_, line_begin);
            return;
        }
        require_sound(entry, where);
        lines_.push_back(std::move(entry));
        if (cut_off) std::ofstream(file_, std::ios::app) << '\n';
    }
}

void SearchLog::add(nlohmann::json line) {
    line["package"] = stamp_.package;
    line["kernels"] = stamp_.kernels;
    std::ofstream stream(file_, std::ios::app);
    stream << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    if (!stream) throw Error("cannot write " + file_.string());
    lines_.push_back(std::move(line));
}

} // namespace convtranspose::tools
