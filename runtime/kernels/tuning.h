// Tuning records: what was measured to be the fastest for a problem, on a CPU. One JSON object a line:
//
//     {"package": "0.1.0", "kernels": "1f0c...", "cpu": "AMD EPYC ...", "isa": "avx512", "threads": 1,
//      "problem": "f32 nchw n1 g1 ic256 oc128 i16x16 k4x4 s2x2 p1x1_1x1 op0x0 d1x1",
//      "variant": "channels_f32_planar_s2_2x8", "ms": 0.273}
//
// The ISA of floats is the one that those for integers add to: avx512, not avx512_vnni. What else an object holds is for people.
// A record of another package or of other kernels is refused when it is read: what it says was measured of something else. One
// of another CPU, ISA or number of threads waits for those; the CPU "*" is any, and so is the number of threads 0.
#ifndef CONVTRANSPOSE_RUNTIME_KERNELS_TUNING_H_
#define CONVTRANSPOSE_RUNTIME_KERNELS_TUNING_H_

#include <string>
#include <string_view>
#include <vector>

#include "kernel_contract/kernel_table.h"
#include "problem/geometry.h"

namespace convtranspose {

struct TuningRecord {
    std::string cpu, isa, problem, variant;
    int threads = 1;
    double ms = 0;
};

std::string to_string(const TuningRecord &record); // why what it names is used, for a person

class Tuning {
  public:
    // Reads all of it or nothing. The message names the line.
    static Status read(std::string_view text, Tuning *tuning);

    // Of several the last. Null: there is none.
    const TuningRecord *find(const std::string &problem, const char *cpu, const char *isa, int threads) const;

    const std::vector<TuningRecord> &records() const { return records_; }

  private:
    std::vector<TuningRecord> records_;
};

// The first that there is of: those of `tuning`; where that is null, those of the file that the environment variable
// CONVTRANSPOSE_TUNING names, read once; those that come with kernels. *why: not empty if a source could not be used.
const TuningRecord *tuning_record(const Tuning *tuning, const Geometry &geometry, Isa isa, int threads,
                                  std::string *why);
// Likewise for a device: its name stands for the CPU, its kind ("cuda") for the ISA, and there is one thread.
const TuningRecord *device_tuning_record(const Tuning *tuning, const Geometry &geometry, const char *kind,
                                         const char *name, std::string *why);

// What records know a problem by: everything that decides which variants can compute it, and how fast. A line that the command
// line takes, too (tools/problem_line.h).
std::string tuning_key(const Geometry &geometry);

const char *kernels_version(); // of generators, schedules and table: a hash

} // namespace convtranspose

// What convt_tuning_read makes.
struct convt_tuning {
    convtranspose::Tuning records;
};

#endif // CONVTRANSPOSE_RUNTIME_KERNELS_TUNING_H_
