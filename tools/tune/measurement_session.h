// Checks candidates for one layer and times them against each other, on the device.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_MEASUREMENT_SESSION_H_
#define CONVTRANSPOSE_TOOLS_TUNE_MEASUREMENT_SESSION_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/tune/kernel_builder.h"
#include "tools/tune/subprocess.h"

namespace convtranspose::tools {

struct Measured {
    std::string name;
    double ms = 0;     // the best; 0: it failed
    std::string error; // why
};

class MeasurementSession {
  public:
    MeasurementSession(const KernelBuilder &builder, const std::string &problem, const PlanOptions &options,
                       double timeout);

    // The first worker's answer to "plan" (worker_main.cpp). Later workers do not change it.
    const nlohmann::json &layer() const { return layer_; }

    // Adds kernels, which can then be measured by name, from a shared object and its rows. Returns why that failed, or nothing.
    // Half of those that were added before leave if there are too many.
    std::string add(const std::string &shared_object, const nlohmann::json &rows);

    // True if a kernel of that name was added and has not left.
    bool has(const std::string &name) const;

    // Plans a candidate, runs it once and checks it, so that it is ready to be measured; ms is the time of that run. A candidate
    // that crashes, is wrong, or takes longer than `patience` seconds or than any answer may take has failed.
    Measured try_out(const std::string &name, double patience);

    // Measures candidates in turns, each for so many seconds, and returns one result for each name, in order. Candidates that
    // were not tried since the last measurement are tried now. One that crashes or hangs has failed, and the rest is measured all
    // the same.
    std::vector<Measured> measure(const std::vector<std::string> &names, double seconds);

    // Starts a new worker for the next measurement, whose memory lies elsewhere.
    void restart();

    // The kernels that could be made for the layer, best first: the answer to "space" (worker_main.cpp).
    nlohmann::json space(const std::string &search);

    // The names of the kernels that run if the candidate is chosen.
    nlohmann::json kernels(const std::string &name);

  private:
    nlohmann::json ask(const nlohmann::json &question, double seconds);
    std::vector<Measured> time(const std::vector<std::string> &names, double seconds);
    void start();
    void load(const nlohmann::json &kernels);

    const KernelBuilder &builder_;
    nlohmann::json question_, layer_;
    std::vector<nlohmann::json> added_;
    double timeout_;
    std::unique_ptr<Subprocess> worker_;
    std::set<std::string> tried_; // by this worker, which keeps them
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_MEASUREMENT_SESSION_H_
