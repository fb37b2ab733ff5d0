#include "settings.h"

#include <cctype>
#include <cstdlib>
#include <functional>
#include <map>
#include <vector>

#include "failure.h"
#include "runtime/kernels/tuning_file.h"

namespace convtranspose::provider {

namespace {

constexpr int kMostThreads = 4096;
constexpr const char *kIntraOpThreads = "session.intra_op_num_threads", *kWritesContext = "ep.context_enable";

using Entries = std::map<std::string, std::string>;

// All entries of a session's configuration.
Entries entries_of(const Api &api, const OrtSessionOptions *options) {
    OrtKeyValuePairs *pairs = nullptr;
    check(api, api.GetSessionOptionsConfigEntries(options, &pairs));
    struct Release {
        const Api &api;
        OrtKeyValuePairs *pairs;
        ~Release() { api.ReleaseKeyValuePairs(pairs); }
    } const release{api, pairs};
    const char *const *keys = nullptr, *const *values = nullptr;
    std::size_t count = 0;
    api.GetKeyValuePairs(pairs, &keys, &values, &count);
    Entries entries;
    for (std::size_t i = 0; i < count; i++) entries[keys[i]] = values[i];
    return entries;
}

[[noreturn]] void refuse(const std::string &name, const std::string &value, const std::string &rule) {
    throw Failure(kInvalidArgument,
                  std::string(kProviderName) + ": option " + name + " is '" + value + "', must be " + rule);
}

bool read_switch(const std::string &name, const std::string &value) {
    if (value != "0" && value != "1") refuse(name, value, "0 or 1");
    return value == "1";
}

bool read_planning(const std::string &name, const std::string &value) {
    if (value != "estimate" && value != "measure") refuse(name, value, "estimate or measure");
    return value == "measure";
}

std::optional<convt_dtype> read_weights(const std::string &name, const std::string &value) {
    if (value == "as_given") return std::nullopt;
    for (const convt_dtype dtype : {CONVT_F16, CONVT_BF16, CONVT_S8}) {
        if (value == convt_dtype_name(dtype)) return dtype;
    }
    refuse(name, value, "as_given, f16, bf16 or s8");
}

// A number of at least 0, or -1 if the text is none.
int number_of(const std::string &text) {
    if (text.empty() || text.size() > 6) return -1;
    for (const char c : text) {
        if (!std::isdigit(static_cast<unsigned char>(c))) return -1;
    }
    return std::atoi(text.c_str());
}

int read_threads(const std::string &name, const std::string &value) {
    const int threads = number_of(value);
    if (threads < 1 || threads > kMostThreads) {
        refuse(name, value, "a number from 1 to " + std::to_string(kMostThreads));
    }
    return threads;
}

std::string read_isa(const std::string &name, const std::string &value) {
    std::string names;
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        if (!convt_isa_supported(i)) continue;
        if (value == convt_isa_name(i)) return value;
        names += (names.empty() ? "" : ", ") + std::string(convt_isa_name(i));
    }
    refuse(name, value, "one that this CPU runs: " + names);
}

std::shared_ptr<const convt_tuning> read_tuning(const std::string &name, const std::string &value) {
    std::string text;
    const std::string why = read_tuning_file(value.c_str(), &text);
    if (!why.empty()) refuse(name, value, "a file of tuning records: " + why);
    convt_tuning *tuning = nullptr;
    check(Status::from(convt_tuning_read(text.data(), text.size(), &tuning)),
          std::string(kProviderName) + ": option " + name + " is '" + value + "', must be a file of tuning records");
    return {tuning, [](const convt_tuning *t) { convt_tuning_destroy(const_cast<convt_tuning *>(t)); }};
}

// "ep.NAME." with the name in lower case, which stands before our options among the session's.
std::string prefix() {
    std::string text = "ep." + std::string(kProviderName) + ".";
    for (char &c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

} // namespace

Settings settings_of(const Api &api, const OrtSessionOptions *options) {
    using Read = std::function<void(Settings &, const std::string &name, const std::string &value)>;
    static const std::map<std::string, Read> readers = {
        {"dynamic_quantization",
         [](Settings &s, const auto &name, const auto &value) { s.quantizes_x = read_switch(name, value); }},
        {"explain", [](Settings &s, const auto &name, const auto &value) { s.explain = read_switch(name, value); }},
        {"fuse", [](Settings &s, const auto &name, const auto &value) { s.fuse = read_switch(name, value); }},
        {"isa", [](Settings &s, const auto &name, const auto &value) { s.isa = read_isa(name, value); }},
        {"planning", [](Settings &s, const auto &name, const auto &value) { s.measures = read_planning(name, value); }},
        {"threads", [](Settings &s, const auto &name, const auto &value) { s.threads = read_threads(name, value); }},
        {"tuning", [](Settings &s, const auto &name, const auto &value) { s.tuning = read_tuning(name, value); }},
        {"weights", [](Settings &s, const auto &name, const auto &value) { s.weights = read_weights(name, value); }},
        {"winograd", [](Settings &s, const auto &name, const auto &value) { s.winograd = read_switch(name, value); }},
    };
    const Entries entries = entries_of(api, options);
    Settings settings;
    const auto session_threads = entries.find(kIntraOpThreads);
    if (session_threads != entries.end()) {
        const int threads = number_of(session_threads->second);
        if (threads > 0 && threads <= kMostThreads) settings.threads = threads; // 0 leaves it to ONNX Runtime
    }
    // ONNX Runtime would fail without saying which node it misses.
    if (const auto writes = entries.find(kWritesContext); writes != entries.end() && writes->second == "1") {
        throw Failure(kNotImplemented, std::string(kProviderName) + ": " + kWritesContext +
                                           " is '1', but this provider has no compiled form of a layer to write: "
                                           "leave it out, or make the context without this provider");
    }
    const std::string before = prefix();
    for (const auto &[key, value] : entries) {
        if (key.compare(0, before.size(), before) != 0) continue;
        const std::string name = key.substr(before.size());
        const auto reader = readers.find(name);
        if (reader == readers.end()) {
            std::string names;
            for (const auto &[known, unused] : readers) names += (names.empty() ? "" : ", ") + known;
            std::string message = std::string(kProviderName) + ": there is no option '";
            throw Failure(kInvalidArgument, message.append(name).append("', only ").append(names));
        }
        reader->second(settings, name, value);
    }
    return settings;
}

} // namespace convtranspose::provider
