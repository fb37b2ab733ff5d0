#include "reference/tuned_problems.h"

#include <algorithm>

#include "runtime/cpu/cpu.h"
#include "runtime/kernels/kernel_tables.h"

namespace convtranspose::test {

std::vector<Problem> tuned_problems(Isa isa, const std::vector<std::string> &variants) {
    std::vector<Problem> problems;
    for (std::size_t i = 0; kernel_table(i); ++i) {
        std::string why;
        for (const TuningRecord &record : tuning_of_table(i, &why).records()) {
            const bool is_of_one = std::find(variants.begin(), variants.end(), record.variant) != variants.end();
            if (is_of_one && record.isa == isa_name(isa)) problems.push_back(parse_problem(record.problem));
        }
    }
    return problems;
}

} // namespace convtranspose::test
