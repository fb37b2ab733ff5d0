// Workload files: layers of networks by name (bench/make_models.py says what is in one).
#ifndef CONVTRANSPOSE_BENCH_WORKLOAD_H_
#define CONVTRANSPOSE_BENCH_WORKLOAD_H_

#include <filesystem>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::bench {

struct Layer {
    std::string name;
    Problem problem; // f32, channels first, with a bias
};

// Throws std::runtime_error, which names the file.
std::vector<Layer> read_workload(const std::filesystem::path &file);

} // namespace convtranspose::bench

#endif // CONVTRANSPOSE_BENCH_WORKLOAD_H_
