// Tuning records name the variant that was measured to be the fastest for a problem on a CPU, and cost profiles say what estimates
// go by. Each is a line, a JSON object; docs/tuning.md says which members it has and when it matches.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/cost_profile.h"
#include "kernel_contract/kernel_table.h"
#include "problem/geometry.h"

namespace convtranspose {

struct TuningRecord {
    std::string cpu, isa, problem, variant;
    int threads = 1;    // those that a plan may use; 0: any number
    int on_threads = 0; // those that it does use, if they are fewer; 0: all
    double ms = 0;      // 0: not measured
    std::string reason; // why what it names is used, for people
};

std::string to_json(const TuningRecord &record); // one line, without its end

struct ProfileLine {
    std::string cpu, isa;
    CostProfile profile;
};

class Tuning {
  public:
    // Reads all lines or none. The message of a failure names the line.
    static Status read(std::string_view text, Tuning *tuning);

    // Returns the last record that matches, or null.
    const TuningRecord *find(const std::string &problem, const char *cpu, const char *isa, int threads) const;
    // Returns the last profile that matches, or null.
    const CostProfile *find_profile(const char *cpu, const char *isa) const;

    const std::vector<TuningRecord> &records() const { return records_; }

  private:
    Status read_line(std::string_view line);

    std::vector<TuningRecord> records_;
    std::vector<ProfileLine> profiles_;
};

// Returns the first matching record of these sources: `tuning`, or if that is null the file that the environment variable
// CONVTRANSPOSE_TUNING names, which is read once; then the records that come with kernels. *why is set if a source could not be
// used. A device's name stands for the CPU and its kind ("cuda") for the ISA, and it has one thread.
const TuningRecord *tuning_record(const Tuning *tuning, const Geometry &geometry, const char *cpu, const char *isa,
                                  int threads, std::string *why);

// Records that plans measured are remembered as long as the process lives. The first one for a key stays.
void remember(const std::string &key, std::shared_ptr<const TuningRecord> record);
std::shared_ptr<const TuningRecord> remembered(const std::string &key); // null: there is none

// Returns the cost profile for plans that use the ISA: the first of the sources' that matches, or else that of this CPU.
const CostProfile &cost_profile(const Tuning *tuning, Isa isa);

// Returns the text that names a problem in records. It leaves out what records do not tell apart: whether weights are constant,
// what the options allow, and post-ops. A record of a variant that cannot compute the plan's problem is passed over. The command
// line takes such a text, too (tools/problem_line.h).
std::string tuning_key(const Geometry &geometry);

const char *kernels_version(); // hash of generators, schedules and the table of variants

} // namespace convtranspose

// convt_tuning_read() makes such an object.
struct convt_tuning {
    convtranspose::Tuning records;
};
