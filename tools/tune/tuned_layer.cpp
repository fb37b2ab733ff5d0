#include "tools/tune/tuned_layer.h"

#include <algorithm>
#include <filesystem>

#include "convtranspose/convtranspose.h"
#include "tools/files.h"

namespace convtranspose::tools {

using nlohmann::json;

std::size_t write_rows(const std::vector<TunedLayer> &layers, const std::string &folder) {
    std::filesystem::create_directories(folder);
    std::size_t written = 0;
    for (const TunedLayer &layer : layers) {
        const json &r = layer.record;
        if (r.at("variant") == r.at("default")) continue;
        const auto problem = r.at("problem").get<std::string>(), isa = r.at("isa").get<std::string>();
        json file = {
            {"record", {{"isa", isa}, {"problem", problem}, {"variant", r.at("variant")}}},
            {"measured", {{"layer", layer.names.front()}, {"package", CONVT_VERSION}}},
        };
        for (const char *const key : {"cpu", "threads", "default", "default_ms", "ms"}) {
            file["measured"][key] = r.at(key);
        }
        if (r.contains("row")) {
            file["kernel"] = {
                {"generator", r.at("generator")}, {"parameters", r.at("parameters")}, {"row", r.at("row")}};
            file["kernel"]["row"].erase("function"); // which goes by what it is built for
        }
        std::string name = problem;
        std::replace(name.begin(), name.end(), ' ', '_');
        name.append("_").append(isa).append(".json");
        std::string text;
        for (const auto &[key, value] : file.items()) { // a line each; names of layers need not be UTF-8
            text += (text.empty() ? "{\"" : ",\n \"") + key + "\": ";
            text += value.dump(-1, ' ', false, json::error_handler_t::replace);
        }
        write_file(std::filesystem::path(folder) / name, text + "}\n");
        written++;
    }
    return written;
}

} // namespace convtranspose::tools
