// explain_layers [THREADS [PROFILE]]: reads layers, one a line (tools/problem_line.h), and prints what explain says of each: on
// every ISA that this CPU runs, with Winograd and without, with constant weights and with those that arrive with each run. PROFILE:
// the shipped cost profile that estimates go by, instead of this CPU's.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

#include "tools/problem_line.h"
#include "tools/profile_line.h"
#include "tools/random_layer.h"

namespace convtranspose::tools {

namespace {

std::string explanation(RandomLayer *layer, Options options, bool constant) {
    Plan plan;
    const void *const w = constant ? layer->w.data.data() : nullptr;
    const void *const b = constant && layer->problem.b_shape ? layer->b.data.data() : nullptr;
    Problem problem = layer->problem;
    if (!constant) problem.quantization.reset();
    const Status status = Plan::create(problem, options, w, b, &plan);
    return status ? plan.explain() : status.message() + "\n";
}

int run(int threads, const std::string &profile) {
    Options options = {};
    options.threads = threads;
    std::shared_ptr<convt_tuning> tuning;
    if (!profile.empty()) tuning = read_tuning(profile_line('"' + profile + '"'));
    options.tuning = tuning.get();
    for (std::string line; std::getline(std::cin, line);) {
        RandomLayer layer(problem_of_line(line));
        for (std::size_t i = 0; i < convt_isa_count(); i++) {
            options.isa = convt_isa_name(i);
            if (!convt_isa_supported(i)) continue;
            for (const bool constant : {true, false}) {
                for (const bool winograd : {false, true}) {
                    if (winograd && !constant) continue;
                    options.winograd = winograd ? 1 : 0;
                    std::cout << "== " << line << " | " << options.isa << (winograd ? " winograd" : "")
                              << (constant ? "" : " weights at run time") << "\n"
                              << explanation(&layer, options, constant);
                }
            }
        }
    }
    return 0;
}

} // namespace

} // namespace convtranspose::tools

int main(int argc, char **argv) {
    try {
        return convtranspose::tools::run(argc > 1 ? std::atoi(argv[1]) : 1, argc > 2 ? argv[2] : "");
    } catch (const std::exception &e) {
        std::fprintf(stderr, "explain_layers: %s\n", e.what());
        return 1;
    }
}
