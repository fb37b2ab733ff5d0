#include "reference/random_problem.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "geometry.h"
#include "reference/built_types.h"

namespace convtranspose::test {

namespace {

// Multiply-adds that the reference does in a moment.
constexpr double kMaxMacs = 2e6;

bool chance(Random *random, int one_in) { return random->integer(1, one_in) == 1; }

Problem propose(Random *random) {
    Problem problem;
    Attributes &a = problem.attributes;
    static const std::vector<convt_dtype> dtypes =
        built_floats().empty() ? std::vector<convt_dtype>{CONVT_F32}
                               : built_of({CONVT_F16, CONVT_BF16, CONVT_F32, CONVT_F32, CONVT_F64});
    problem.opset = random->pick<int>({1, 11, 22});
    problem.dtype = random->pick(dtypes);
    problem.layout = random->pick<convt_layout>({CONVT_CHANNELS_FIRST, CONVT_CHANNELS_LAST});
    const std::int64_t axes = random->pick<std::int64_t>({1, 2, 2, 2, 2, 3, 3, 4});

    // Channels around vector and tile sizes; a third of the problems is grouped, half of these depthwise.
    const std::vector<std::int64_t> channels = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65};
    std::int64_t ic_per_group = random->pick(channels), oc_per_group = random->pick(channels);
    if (chance(random, 3)) {
        a.group = random->pick(channels);
        ic_per_group = chance(random, 2) ? 1 : random->integer(1, 9);
        oc_per_group = chance(random, 2) ? 1 : random->integer(1, 9);
    }

    const std::int64_t longest = axes == 1 ? 300 : axes == 2 ? 40 : axes == 3 ? 9 : 5;
    Shape in, kernel, strides, dilations, begins, ends, output_padding, output_shape;
    for (std::int64_t i = 0; i < axes; ++i) {
        in.push_back(random->integer(1, longest));
        kernel.push_back(chance(random, 12) ? random->integer(6, axes == 1 ? 40 : 9)
                                            : random->integer(1, axes > 2 ? 3 : 5));
        strides.push_back(random->pick<std::int64_t>({1, 1, 2, 2, 2, 3, 4, 5, 8}));
        dilations.push_back(random->pick<std::int64_t>({1, 1, 1, 1, 2, 3, 4, 6}));
        const std::int64_t span = (kernel.back() - 1) * dilations.back();
        begins.push_back(random->integer(0, chance(random, 8) ? span + 7 : span));
        ends.push_back(random->integer(0, chance(random, 8) ? span + 7 : span));
        output_padding.push_back(random->integer(0, std::max(strides.back(), dilations.back()) - 1));
        const std::int64_t natural = strides.back() * (in.back() - 1) + span + 1;
        output_shape.push_back(std::max<std::int64_t>(1, natural + random->integer(-span, 9)));
    }

    // Each attribute is absent at times.
    if (!chance(random, 6)) a.strides = strides;
    if (chance(random, 3)) a.dilations = dilations;
    if (chance(random, 4)) a.output_padding = output_padding;
    if (chance(random, 6)) a.output_shape = output_shape;
    if (chance(random, 6)) {
        a.auto_pad = random->pick<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"});
    } else if (!chance(random, 4)) {
        a.pads = begins;
        a.pads->insert(a.pads->end(), ends.begin(), ends.end());
    }

    problem.x_shape = in;
    problem.x_shape.insert(problem.layout == CONVT_CHANNELS_FIRST ? problem.x_shape.begin() : problem.x_shape.end(),
                           a.group * ic_per_group);
    problem.x_shape.insert(problem.x_shape.begin(), random->pick<std::int64_t>({1, 1, 1, 2, 3}));
    problem.w_shape = {a.group * ic_per_group, oc_per_group};
    problem.w_shape.insert(problem.w_shape.end(), kernel.begin(), kernel.end());
    if (chance(random, 2)) problem.b_shape = Shape{a.group * oc_per_group};
    return problem;
}

} // namespace

Problem random_problem(Random *random) {
    for (;;) {
        Problem problem = propose(random);
        Geometry geometry;
        if (!resolve(detail::view(problem), &geometry)) continue; // more is cropped than there is
        if (count_macs(geometry) > kMaxMacs || element_count(geometry.y_shape) > 300000) continue;
        return problem;
    }
}

} // namespace convtranspose::test
