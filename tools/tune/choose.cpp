#include "tools/tune/choose.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/error.h"
#include "tools/estimate_parts.h"
#include "tools/problem_line.h"
#include "tools/profile_line.h"
#include "tools/random_layer.h"

namespace convtranspose::tools {

using nlohmann::json;

namespace {

// The estimated cycles of all candidates that have an estimate.
json finite_estimates_of(const Plan &plan) {
    json finite = json::object();
    for (const auto &[name, cycles] : estimates_of(plan)) {
        if (std::isfinite(cycles)) finite[name] = cycles;
    }
    return finite;
}

// Calls task(0), ..., task(count - 1) on all CPUs. The first exception that one throws is thrown on.
template<typename Task>
void on_all_cpus(std::size_t count, const Task &task) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::mutex mutex;
    const auto work = [&] {
        try {
            for (std::size_t i = next++; i < count; i = next++) task(i);
        } catch (...) {
            const std::lock_guard lock(mutex);
            if (!error) error = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (unsigned i = 1; i < std::thread::hardware_concurrency(); i++) others.emplace_back(work);
    work();
    for (std::thread &other : others) other.join();
    if (error) std::rethrow_exception(error);
}

Problem problem_of(const std::string &line) {
    Problem problem = problem_of_line(line);
    if (is_integer(problem.w_dtype.value_or(problem.dtype))) {
        problem.quantization = Quantization{};
        problem.quantization->x_zero_point = problem.dtype == CONVT_U8 ? 128 : 0;
    }
    return problem;
}

// Returns the number of weights or of biases, whichever is greater. Each takes at most the bytes of a double.
std::size_t elements(const Problem &problem) {
    std::size_t count = 1;
    for (const std::int64_t extent : problem.w_shape) count *= static_cast<std::size_t>(extent);
    return problem.b_shape ? std::max(count, static_cast<std::size_t>(problem.b_shape->front())) : count;
}

} // namespace

std::string choice_of(const Plan &plan) { return json::parse(plan.record()).at("variant"); }

json choose(const json &job) {
    const json &profile = job.at("profile"), &isa = job.at("isa");
    const auto tuning = read_tuning(profile.is_null() ? "" : profile_line(profile.dump()));
    std::vector<Problem> problems;
    for (const json &line : job.at("problems")) problems.push_back(problem_of(line.get<std::string>()));
    const auto isas = isa.is_string() ? std::vector<std::string>(problems.size(), isa.get<std::string>())
                                      : isa.get<std::vector<std::string>>();
    if (isas.size() != problems.size()) throw Error("there must be as many ISAs as problems");
    const Problem any = problem_of("f32 nchw n1 g1 ic8 oc8 i8 k2 s2"); // for the profile
    std::vector<double> zeros(elements(any));
    for (const Problem &problem : problems) zeros.resize(std::max(zeros.size(), elements(problem)));
    const auto planned = [&](const Problem &problem, const std::string &name) {
        Options options = {};
        options.isa = name.empty() ? nullptr : name.c_str();
        options.threads = job.at("threads").get<int>();
        options.tuning = tuning.get();
        Plan made;
        throw_unless(Plan::create(problem, options, zeros.data(), problem.b_shape ? zeros.data() : nullptr, &made));
        return made;
    };
    std::vector<json> choices(problems.size()), estimates(problems.size());
    on_all_cpus(problems.size(), [&](std::size_t i) {
        const Plan made = planned(problems[i], isas[i]);
        choices[i] = choice_of(made);
        if (job.value("estimates", false)) estimates[i] = finite_estimates_of(made);
    });
    const std::string first = isa.is_string() ? isa.get<std::string>() : isas.empty() ? "" : isas.front();
    return {{"choices", choices}, {"estimates", estimates}, {"profile", profile_of(planned(any, first))}};
}

} // namespace convtranspose::tools
