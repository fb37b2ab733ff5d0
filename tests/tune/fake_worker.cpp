// A worker that plays candidates: what each does is told by the JSON in FAKE_WORKER, {"candidates": [{"name": ..., "ms": time,
// "try": "crash" or "hang", "time": "crash"}, ...], "log": file}. The first one is the default choice. The log gets a line for each
// question.
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "convtranspose/convtranspose.h"

namespace {

using nlohmann::json;

void play(const json &candidate, const char *part) {
    const std::string act = candidate.value(part, "");
    if (act == "crash") std::raise(SIGKILL);
    if (act == "hang") ::pause();
}

json answer(const json &candidates, const json &question) {
    const auto find = [&](const json &name) {
        for (const json &candidate : candidates) {
            if (candidate.at("name") == name) return candidate;
        }
        return json();
    };
    const std::string what = question.at("do");
    if (what == "plan") {
        json names = json::array();
        for (const json &candidate : candidates) names.push_back(candidate.at("name"));
        return {{"cpu", "fake"},
                {"package", CONVT_VERSION},
                {"kernels", convt_kernels_version()},
                {"isa", "none"},
                {"problem", question["problem"]},
                {"variant", names.front()},
                {"candidates", names},
                {"macs", 1e6},
                {"peak_gflops", 1.0}};
    }
    if (what == "try") {
        const json candidate = find(question.at("variant"));
        play(candidate, "try");
        return {{"ms", candidate.at("ms")}};
    }
    if (what == "time") {
        json results = json::array();
        for (const json &name : question.at("variants")) {
            const json candidate = find(name);
            play(candidate, "time");
            results.push_back({{"variant", name}, {"ms", candidate.at("ms")}});
        }
        return {{"results", results}};
    }
    if (what == "load") return json::object();
    if (what == "kernels") return {{"kernels", {question.at("variant")}}};
    return {{"error", "there is no command '" + what + "'"}};
}

} // namespace

int main() {
    const json script = json::parse(std::getenv("FAKE_WORKER"));
    for (std::string line; std::getline(std::cin, line);) {
        std::ofstream(script.at("log").get<std::string>(), std::ios::app) << line << std::endl;
        std::cout << answer(script.at("candidates"), json::parse(line)) << std::endl;
    }
    return 0;
}
