// Where candidates for one layer are checked and timed against each other, on the device.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_MEASUREMENT_SESSION_H_
#define CONVTRANSPOSE_TOOLS_TUNE_MEASUREMENT_SESSION_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernel_builder.h"
#include "subprocess.h"

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

    // The first worker's words about the layer: worker_main.cpp, "plan". Later workers do not change them.
    const nlohmann::json &layer() const { return layer_; }

    // Kernels to be measured by name: a shared object, and its rows. Empty: they are there; else why not.
    std::string add(const std::string &shared_object, const nlohmann::json &rows);

    // Plans one, runs it once and checks it, by which it is ready to be measured; ms: that run. It has `patience` seconds, and no
    // more than the time that any answer has: one that takes longer, crashes or is wrong has failed.
    Measured try_out(const std::string &name, double patience);

    // In turns, each for that long: one result for each name, in order. Those that were not tried since the last measurement are
    // tried now. One that crashes or hangs is told as failed, and the rest is measured all the same.
    std::vector<Measured> measure(const std::vector<std::string> &names, double seconds);

    // The next measurement is by a worker of its own, whose memory lies elsewhere.
    void restart();

    // What could be made for the layer, best first: worker_main.cpp, "space".
    nlohmann::json space(const std::string &search);

    // Names of the kernels that run where that is the choice.
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
