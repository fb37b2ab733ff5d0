// Tells an autoscheduler the extents of one layer (generators/auto_generator.cpp).
#ifndef CONVTRANSPOSE_SCHEDULES_AUTOSCHEDULER_ESTIMATES_H_
#define CONVTRANSPOSE_SCHEDULES_AUTOSCHEDULER_ESTIMATES_H_

#include <array>

#include <Halide.h>

#include "kernel_contract/table_columns.h"

namespace convtranspose {

// A call that computes all of y. Axes are w, h, d; channels are those of a group.
struct EstimatedCall {
    std::array<int, 3> x, y, kernel, phases;
    int ic, oc, group, batch;
};

// generator: has the inputs and the output of a kernel as members.
template<typename Generator>
void set_estimates(Generator *generator, const EstimatedCall &call) {
    Generator &k = *generator;
    k.x.set_estimates({{0, call.x[0]}, {0, call.x[1]}, {0, call.x[2]}, {0, call.ic}, {0, call.group}, {0, call.batch}});
    k.w.set_estimates({{0, 1},
                       {0, call.ic},
                       {0, call.kernel[0]},
                       {0, call.kernel[1]},
                       {0, call.kernel[2]},
                       {0, call.oc},
                       {0, call.group}});
    k.bias.set_estimates({{0, call.oc}, {0, call.group}});
    k.factors.set_estimates({{0, call.oc}, {0, 2}, {0, call.group}});
    Halide::Region result = {{0, call.oc}};
    for (int a = 0; a < 3; a++) {
        result.push_back({0, (call.y[a] + call.phases[a] - 1) / call.phases[a]});
        result.push_back({0, call.phases[a]});
    }
    result.push_back({0, call.group});
    result.push_back({0, call.batch});
    k.y.set_estimates(result);
    for (auto *taps : {&k.taps_w, &k.taps_h, &k.taps_d}) {
        taps->set_estimates({{0, 1}, {0, kTapColumns}});
    }
    for (auto *number : {&k.step_w, &k.step_h, &k.step_d, &k.max_count_w, &k.max_count_h, &k.max_count_d,
                         &k.shared_first_w, &k.shared_count_w, &k.shared_first_h, &k.shared_count_h, &k.y_zero_point}) {
        number->set_estimate(1);
    }
    k.y_min.set_estimate(0);
    k.y_max.set_estimate(0);
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_SCHEDULES_AUTOSCHEDULER_ESTIMATES_H_
