#include "tools/tune/measurement_session.h"

#include <algorithm>
#include <map>

#include "tools/error.h"
#include "tools/files.h"
#include "tools/tune/base64.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

// Thrown for an answer of a worker that refuses something, as opposed to the worker's end.
class Refused : public Error {
  public:
    using Error::Error;
};

constexpr std::size_t kMostTables = 28; // that the library takes (runtime/kernels/kernel_tables.cpp)

} // namespace

MeasurementSession::MeasurementSession(const KernelBuilder &builder, const std::string &problem,
                                       const PlanOptions &options, double timeout)
    : builder_(builder), question_({{"do", "plan"},
                                    {"problem", problem},
                                    {"isa", options.isa},
                                    {"threads", options.threads},
                                    {"winograd", options.winograd},
                                    {"device", options.on_device() ? options.device : ""}}),
      timeout_(timeout) {
    start();
}

json MeasurementSession::ask(const json &question, double seconds) {
    json answer;
    try {
        answer = json::parse(worker_->ask(question.dump(), seconds));
    } catch (const json::exception &e) {
        restart(); // it is no worker, or confused
        throw Error(std::string("its answer makes no sense: ") + e.what());
    } catch (const Error &) {
        restart();
        throw;
    }
    if (answer.contains("error")) throw Refused(answer["error"].get<std::string>());
    return answer;
}

void MeasurementSession::restart() {
    worker_.reset();
    tried_.clear();
}

void MeasurementSession::start() {
    worker_ = builder_.start_worker();
    json said;
    try {
        said = ask(question_, 10 * timeout_); // weights are packed, and the peak is measured
        for (const char *const key : {"cpu", "package", "kernels", "isa", "problem", "variant", "candidates"}) {
            if (!said.contains(key)) throw Error(std::string("its answer makes no sense: it has no ") + key);
        }
    } catch (const Refused &) {
        throw;
    } catch (const Error &e) {
        throw Error(std::string("the worker: ") + e.what());
    }
    const std::string own = convt_kernels_version();
    if (said["package"] != CONVT_VERSION || said["kernels"] != own) {
        worker_.reset(); // it must not be asked again
        throw Error("the worker is of version " + said["package"].get<std::string>() + " and kernels " +
                    said["kernels"].get<std::string>() + ", this program of " CONVT_VERSION " and " + own);
    }
    // A caller that holds what layer() returned must not lose it because a candidate ended the worker.
    if (layer_.is_null()) layer_ = std::move(said);
    for (const json &kernels : added_) load(kernels);
}

void MeasurementSession::load(const json &kernels) {
    const std::string object = read_file(kernels.at("path").get<std::string>());
    ask({{"do", "load"}, {"object", to_base64(object)}, {"rows", kernels.at("rows")}}, timeout_);
}

std::string MeasurementSession::add(const std::string &shared_object, const json &rows) {
    json kernels = {{"path", shared_object}, {"rows", rows}};
    try {
        if (added_.size() >= kMostTables) {
            // The oldest tables leave. They are linked again if they are to be measured again.
            added_.erase(added_.begin(), added_.begin() + kMostTables / 2);
            restart();
        }
        if (!worker_) start();
        load(kernels);
    } catch (const Error &e) {
        return e.what();
    }
    added_.push_back(std::move(kernels));
    return "";
}

bool MeasurementSession::has(const std::string &name) const {
    for (const json &kernels : added_) {
        for (const json &row : kernels.at("rows"))
            if (row.at("name") == name) return true;
    }
    return false;
}

json MeasurementSession::space(const std::string &search) {
    if (!worker_) start();
    return ask({{"do", "space"}, {"search", search}}, timeout_).at("candidates");
}

json MeasurementSession::kernels(const std::string &name) {
    if (!worker_) start();
    return ask({{"do", "kernels"}, {"variant", name}}, timeout_).at("kernels");
}

Measured MeasurementSession::try_out(const std::string &name, double patience) {
    try {
        if (!worker_) start();
        const json answer = ask({{"do", "try"}, {"variant", name}}, std::min(patience, timeout_));
        if (!answer.contains("ms") || !answer["ms"].is_number()) {
            throw Error("its answer makes no sense: it has no ms");
        }
        tried_.insert(name);
        return {name, answer["ms"].get<double>(), ""};
    } catch (const Error &e) {
        return {name, 0, e.what()};
    }
}

std::vector<Measured> MeasurementSession::time(const std::vector<std::string> &names, double seconds) {
    if (names.empty()) return {};
    tried_.clear();
    const double patience = timeout_ + 20 * seconds * static_cast<double>(names.size());
    const json answer = ask({{"do", "time"}, {"variants", names}, {"seconds", seconds}}, patience);
    std::vector<Measured> all;
    try {
        for (const json &result : answer.at("results")) {
            all.push_back({result.at("variant").get<std::string>(), result.value("ms", 0.0),
                           result.value("error", std::string())});
        }
    } catch (const json::exception &e) {
        throw Error(std::string("its answer makes no sense: ") + e.what());
    }
    bool same = all.size() == names.size();
    for (std::size_t i = 0; same && i < all.size(); i++) same = all[i].name == names[i];
    if (!same) throw Error("its answer makes no sense: the results are of other candidates");
    return all;
}

std::vector<Measured> MeasurementSession::measure(const std::vector<std::string> &names, double seconds) {
    std::map<std::string, Measured> results;
    std::vector<std::string> ready;
    // If a candidate ends the worker, the next worker has to try the others again.
    do {
        ready.clear();
        for (const std::string &name : names) {
            if (!results.count(name) && !tried_.count(name)) {
                Measured tried = try_out(name, timeout_);
                if (!tried.error.empty()) results[name] = std::move(tried);
            }
            if (!results.count(name)) ready.push_back(name);
        }
    } while (std::any_of(ready.begin(), ready.end(), [this](const std::string &name) { return !tried_.count(name); }));
    try {
        for (Measured &measured : time(ready, seconds)) results[measured.name] = std::move(measured);
    } catch (const Error &e) {
        if (ready.size() == 1) {
            results[ready.front()] = {ready.front(), 0, e.what()};
        } else {
            // One of them failed, although its first run was fine. Each half is measured on its own, until that one is alone.
            const auto middle = ready.begin() + static_cast<std::ptrdiff_t>(ready.size() / 2);
            for (const auto &half : {std::vector<std::string>(ready.begin(), middle), {middle, ready.end()}}) {
                for (Measured &measured : measure(half, seconds)) results[measured.name] = std::move(measured);
            }
        }
    }
    std::vector<Measured> all;
    all.reserve(names.size());
    for (const std::string &name : names) all.push_back(results[name]);
    return all;
}

} // namespace convtranspose::tools
