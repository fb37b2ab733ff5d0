#include "arena.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base64.h"
#include "error.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

// A worker's answer, as opposed to its end.
class Refused : public Error {
  public:
    using Error::Error;
};

constexpr std::size_t kMostTables = 28; // that the library takes (runtime/kernel_tables.cpp)

} // namespace

Arena::Arena(const Toolbox &toolbox, const std::string &problem, const PlanOptions &options, double timeout)
    : toolbox_(toolbox), question_({{"do", "plan"},
                                    {"problem", problem},
                                    {"isa", options.isa},
                                    {"threads", options.threads},
                                    {"winograd", options.winograd},
                                    {"device", options.on_device() ? options.device : ""}}),
      timeout_(timeout) {
    start();
}

json Arena::ask(const json &question, double seconds) {
    json answer;
    try {
        answer = json::parse(worker_->ask(question.dump(), seconds));
    } catch (const json::exception &e) {
        worker_.reset(); // it is no worker, or confused
        throw Error(std::string("it gave an answer that is none: ") + e.what());
    } catch (const Error &) {
        worker_.reset();
        throw;
    }
    if (answer.contains("error")) throw Refused(answer["error"].get<std::string>());
    return answer;
}

void Arena::start() {
    worker_ = toolbox_.start_worker();
    try {
        layer_ = ask(question_, 10 * timeout_); // weights are packed, and the peak is measured
        for (const char *const key : {"cpu", "package", "kernels", "isa", "problem", "variant", "candidates"}) {
            if (!layer_.contains(key)) throw Error(std::string("it gave an answer that is none: it has no ") + key);
        }
    } catch (const Refused &) {
        throw;
    } catch (const Error &e) {
        throw Error(std::string("the worker: ") + e.what());
    }
    for (const json &kernels : added_) load(kernels);
}

void Arena::load(const json &kernels) {
    std::ifstream file(kernels.at("path").get<std::string>(), std::ios::binary);
    const std::string object((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    ask({{"do", "load"}, {"object", to_base64(object)}, {"rows", kernels.at("rows")}}, timeout_);
}

std::string Arena::add(const std::string &shared_object, const json &rows) {
    json kernels = {{"path", shared_object}, {"rows", rows}};
    try {
        if (added_.size() >= kMostTables) {
            // The oldest leave: they are compiled again where they are to be measured again.
            added_.erase(added_.begin(), added_.begin() + kMostTables / 2);
            worker_.reset();
        }
        if (!worker_) start();
        load(kernels);
    } catch (const Error &e) {
        return e.what();
    }
    added_.push_back(std::move(kernels));
    return "";
}

json Arena::space(const std::string &search) {
    if (!worker_) start();
    return ask({{"do", "space"}, {"search", search}}, timeout_).at("candidates");
}

json Arena::kernels(const std::string &name) {
    if (!worker_) start();
    return ask({{"do", "kernels"}, {"variant", name}}, timeout_).at("kernels");
}

std::vector<Measured> Arena::measure(const std::vector<std::string> &names, double seconds) {
    std::vector<Measured> all;
    if (names.empty()) return all;
    try {
        if (!worker_) start();
        const double patience = timeout_ + 20 * seconds * static_cast<double>(names.size());
        const json answer = ask({{"do", "time"}, {"variants", names}, {"seconds", seconds}}, patience);
        for (const json &result : answer.at("results")) {
            Measured measured;
            measured.name = result.at("variant").get<std::string>();
            measured.ms = result.value("ms", 0.0);
            measured.error = result.value("error", "");
            all.push_back(measured);
        }
    } catch (const Error &e) {
        if (names.size() == 1) return {{names.front(), 0, e.what()}};
        // Some one of them took the worker along: each half on its own, until it is alone.
        const auto middle = names.begin() + static_cast<std::ptrdiff_t>(names.size() / 2);
        for (const auto &half : {std::vector<std::string>(names.begin(), middle), {middle, names.end()}}) {
            const std::vector<Measured> part = measure(half, seconds);
            all.insert(all.end(), part.begin(), part.end());
        }
    }
    return all;
}

} // namespace convtranspose::tools
