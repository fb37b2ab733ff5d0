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

SearchLog::SearchLog(std::filesystem::path file, const Stamp &stamp, bool resume)
    : file_(std::move(file)), stamp_(stamp) {
    if (resume) read();
    std::ofstream stream(file_, std::ios::trunc);
    for (const nlohmann::json &line : lines_) stream << line.dump() << '\n';
    if (!stream) throw Error("cannot write " + file_.string());
}

void SearchLog::read() {
    std::ifstream stream(file_);
    const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        const bool cut_off = end == std::string::npos;
        const std::string line = text.substr(begin, end - begin);
        begin = cut_off ? text.size() : end + 1;
        number++;
        const auto where = [&] { return file_.string() + ", line " + std::to_string(number) + ": "; };
        nlohmann::json json;
        try {
            json = nlohmann::json::parse(line);
        } catch (const nlohmann::json::exception &) {
            if (cut_off) return; // written when the program was ended
            throw Error(where() + "it is not JSON");
        }
        const std::string package = json.value("package", ""), kernels = json.value("kernels", "");
        if (package != stamp_.package || kernels != stamp_.kernels) {
            throw Error(where() + "it is stale, of " + describe(package, kernels) + "; these are " +
                        describe(stamp_.package, stamp_.kernels) + ": tune anew, without --resume");
        }
        lines_.push_back(std::move(json));
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
