// The search for the fastest way to compute one layer.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_TUNER_H_
#define CONVTRANSPOSE_TOOLS_TUNE_TUNER_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/commands.h"
#include "tools/tune/kernel_builder.h"
#include "tools/tune/measurement_session.h"
#include "tools/tune/search_log.h"

namespace convtranspose::tools {

// Something to try. A kernel that is built in has a name only.
struct Candidate {
    std::string name;
    std::string generator; // empty: built in
    std::string object;    // that it is in, which several may share
    std::string target;    // Halide's; empty: that of the ISA
    nlohmann::json parameters = nlohmann::json::array();
    nlohmann::json row; // kernel_row.h
};

// Watches the search. `best` is the time of the fastest so far over that of the default choice.
using Watch = std::function<void(std::size_t tried, double best, double seconds_left)>;

// True if a line of a log or a record is of the layer that a worker describes, and of a search with these options.
bool is_of_search(const nlohmann::json &line, const nlohmann::json &layer, const TuneOptions &options);

class Tuner {
  public:
    // `log` gets each candidate's result, and is asked for those that were tried before.
    Tuner(const TuneOptions &options, const KernelBuilder &builder, MeasurementSession *session, SearchLog *log);

    // Returns a tuning record (runtime/kernels/tuning.h). It also has default, default_ms and the number of candidates tried, and
    // for a kernel that is not built in, how it is made: generator, target, parameters, row.
    nlohmann::json tune(const Watch &watch);

  private:
    struct Result {
        double ratio = 0; // to the default choice, measured beside it; 0: it failed
        double ms = 0;
    };

    double left() const; // seconds of the budget
    void note(const Candidate &candidate, const Result &result, double default_ms, const std::string &error);
    void measure(const std::vector<Candidate> &candidates, double seconds, double until);
    void select(double until);
    void search(double until);
    std::vector<Candidate> make(const std::vector<Candidate> &candidates);
    std::vector<std::string> fastest(std::size_t most) const;
    std::vector<Candidate> finalists(std::size_t most);

    const TuneOptions &options_;
    const KernelBuilder &builder_;
    MeasurementSession *session_;
    SearchLog *log_;
    double begin_, budget_;
    std::string default_;
    double default_ms_ = 0, best_first_ms_ = 0; // the least so far
    std::size_t made_ = 0;                      // kernels that are not built in, failed ones too
    bool ran_ = false;                          // one of those did
    std::string first_error_;                   // of those
    std::map<std::string, Candidate> known_;
    std::map<std::string, Result> results_;
    std::set<std::string> compiled_; // names of objects
    const Watch *watch_ = nullptr;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_TUNER_H_
