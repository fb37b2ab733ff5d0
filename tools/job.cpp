#include "tools/job.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "tools/error.h"

namespace fs = std::filesystem;

namespace convtranspose::tools {

namespace {

constexpr const char *kDataSetPrefix = "test_data_set_";

bool is_folder(const fs::path &path) {
    std::error_code code;
    return fs::is_directory(path, code);
}

bool is_file(const fs::path &path) {
    std::error_code code;
    return fs::is_regular_file(path, code);
}

// The file STEM.pb or STEM.npy; empty if there is neither.
fs::path tensor_file(const fs::path &folder, const std::string &stem) {
    for (const char *extension : {".pb", ".npy"}) {
        fs::path file = folder / (stem + extension);
        if (is_file(file)) return file;
    }
    return {};
}

DataSet data_set_in(const fs::path &folder, const std::string &name) {
    DataSet set;
    set.name = name;
    for (std::size_t i = 0;; i++) {
        const fs::path file = tensor_file(folder, "input_" + std::to_string(i));
        if (file.empty()) break;
        set.inputs.push_back(file);
    }
    set.expected = tensor_file(folder, "output_0");
    set.tolerance = tensor_file(folder, "tolerance_0");
    return set;
}

std::string name_of(const fs::path &path) {
    const bool folder = is_folder(path);
    // "cases/a/" and "." have no file name of their own.
    fs::path plain = fs::absolute(path).lexically_normal();
    if (plain.filename().empty()) plain = plain.parent_path();
    if (folder) return plain.filename().string();
    if (plain.filename() == "model.onnx" && is_folder(plain.parent_path() / (std::string(kDataSetPrefix) + "0"))) {
        return plain.parent_path().filename().string();
    }
    // The stem of "...onnx" would name another folder.
    const std::string stem = plain.stem().string();
    return stem == "." || stem == ".." ? plain.filename().string() : stem;
}

} // namespace

fs::path Job::model() const {
    if (!is_folder(path)) {
        std::error_code code;
        if (!fs::exists(path, code)) throw Error("'" + path.string() + "' does not exist");
        if (path.extension() != ".onnx") {
            throw Error("'" + path.string() +
                        "' is neither a .onnx model nor a folder with one; tensors are .pb or .npy files");
        }
        return path;
    }
    if (is_file(path / "model.onnx")) return path / "model.onnx";
    std::vector<fs::path> models;
    for (const fs::directory_entry &entry : fs::directory_iterator(path)) {
        if (entry.path().extension() == ".onnx") models.push_back(entry.path());
    }
    if (models.size() != 1) {
        throw Error("folder '" + path.string() + "' has no model.onnx, and " + std::to_string(models.size()) +
                    " other .onnx files");
    }
    return models[0];
}

std::vector<DataSet> Job::data_sets() const {
    if (!inputs.empty()) return {DataSet{"", inputs, {}, {}}};
    const fs::path folder = is_folder(path) ? path : path.parent_path();
    std::vector<std::pair<int, fs::path>> numbered;
    const std::string prefix = kDataSetPrefix;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder)) {
        const std::string entry_name = entry.path().filename().string();
        if (entry_name.compare(0, prefix.size(), prefix) != 0 || !entry.is_directory()) continue;
        int number = 0;
        const char *const end = entry_name.data() + entry_name.size();
        const std::from_chars_result result = std::from_chars(entry_name.data() + prefix.size(), end, number);
        if (result.ec == std::errc() && result.ptr == end) numbered.emplace_back(number, entry.path());
    }
    if (numbered.empty()) return {data_set_in(folder, "")};
    std::sort(numbered.begin(), numbered.end());
    std::vector<DataSet> sets;
    sets.reserve(numbered.size());
    for (const auto &[number, path_of_set] : numbered) {
        sets.push_back(data_set_in(path_of_set, path_of_set.filename().string()));
    }
    return sets;
}

std::vector<fs::path> Job::files() const {
    std::vector<fs::path> all = inputs;
    // A missing file is told when the job runs; the others are found all the same.
    const auto found = [](const auto &add) {
        try {
            add();
        } catch (const std::exception &) {
        }
    };
    found([&] { all.push_back(model()); });
    found([&] {
        for (const DataSet &set : data_sets()) {
            all.insert(all.end(), set.inputs.begin(), set.inputs.end());
            for (const fs::path &file : {set.expected, set.tolerance}) {
                if (!file.empty()) all.push_back(file);
            }
        }
    });
    return all;
}

std::vector<Job> jobs_from(const std::vector<std::string> &arguments) {
    std::vector<Job> jobs;
    for (const std::string &argument : arguments) {
        const fs::path path(argument);
        const bool tensor = !is_folder(path) && (path.extension() == ".pb" || path.extension() == ".npy");
        if (!tensor) {
            jobs.push_back({name_of(path), path, {}});
        } else if (jobs.empty() || is_folder(jobs.back().path)) {
            throw UsageError("tensor file '" + argument + "' must follow the .onnx file of its model");
        } else {
            jobs.back().inputs.push_back(path);
        }
    }
    return jobs;
}

} // namespace convtranspose::tools
