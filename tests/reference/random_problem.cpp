#include "reference/random_problem.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "reference/built_types.h"
#include "reference/layer.h"
#include "reference/reference.h"

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
        Layer layer;
        std::string reason;
        if (!derive(problem, &layer, &reason)) continue; // more is cropped than there is
        if (count_macs(geometry_of(problem)) > kMaxMacs || element_count(layer.y_shape) > 300000) continue;
        return problem;
    }
}

Problem large_problem(Random *random) {
    constexpr std::int64_t kLeastOfX = 80000, kLeast = 200000, kMost = 900000; // elements, of y unless x
    for (;;) {
        Problem problem = propose(random);
        problem.x_shape[0] = chance(random, 2) ? 1 : random->integer(2, 9);
        if (problem.attributes.group > 1) { // planes of many groups make strips of groups
            const std::int64_t times = random->integer(1, 5);
            problem.attributes.group *= times;
            problem.w_shape[0] *= times;
            problem.x_shape[problem.layout == CONVT_CHANNELS_FIRST ? 1 : problem.x_shape.size() - 1] *= times;
            if (problem.b_shape) problem.b_shape->front() *= times;
        }
        Layer layer;
        std::string reason;
        if (!derive(problem, &layer, &reason)) continue;
        const auto elements = static_cast<std::int64_t>(element_count(layer.y_shape));
        if (elements < kLeast || elements > kMost || element_count(problem.x_shape) < kLeastOfX) continue;
        if (count_macs(geometry_of(problem)) <= 2 * kMaxMacs) return problem;
    }
}

std::int64_t any_integer(Random *random) {
    const std::uint64_t high = std::uint64_t{1} << random->integer(0, 63);
    const std::uint64_t near = high + static_cast<std::uint64_t>(random->integer(-2, 2));
    const std::uint64_t value = chance(random, 2) ? near : random->bits() & (high - 1);
    return static_cast<std::int64_t>(chance(random, 8) ? 0 - value : value);
}

Problem far_problem(Random *random) {
    for (;;) {
        Problem problem = propose(random);
        Attributes &a = problem.attributes;
        const std::size_t axes = problem.w_shape.size() - 2;
        a.auto_pad = std::nullopt;
        a.output_shape = std::nullopt;
        a.pads = std::nullopt;
        Shape strides, dilations, begins, ends, sizes;
        for (std::size_t i = 0; i < axes; ++i) {
            const std::int64_t kernel = problem.w_shape[2 + i];
            const std::int64_t in = problem.x_shape[(problem.layout == CONVT_CHANNELS_FIRST ? 2 : 1) + i];
            const auto step = [random](std::int64_t count) { // so that `count` of them stay below 2^59
                const std::int64_t most = (std::int64_t{1} << 59) / std::max<std::int64_t>(count, 1);
                return chance(random, 2) ? random->integer(1, 4)
                                         : std::clamp<std::int64_t>(any_integer(random), 1, most);
            };
            strides.push_back(step(in));
            dilations.push_back(chance(random, 4) ? strides.back() : step(kernel));
            if (dilations.back() > (std::int64_t{1} << 59) / kernel) dilations.back() = 1;
            const std::int64_t natural = strides.back() * (in - 1) + dilations.back() * (kernel - 1) + 1;
            // A few positions around one that an input and an element of the kernel share.
            const std::int64_t meeting =
                strides.back() * random->integer(0, in - 1) + dilations.back() * random->integer(0, kernel - 1);
            const std::int64_t size = random->integer(1, std::min<std::int64_t>(natural, axes > 2 ? 5 : 20));
            begins.push_back(std::clamp<std::int64_t>(meeting - random->integer(0, size - 1), 0, natural - size));
            ends.push_back(natural - size - begins.back());
            sizes.push_back(size);
        }
        a.strides = strides;
        a.dilations = dilations;
        a.output_padding = std::nullopt;
        if (chance(random, 3)) {
            a.output_shape = sizes;
            if (chance(random, 2)) a.auto_pad = random->pick<std::string>({"SAME_UPPER", "SAME_LOWER", "VALID"});
        } else {
            a.pads = begins;
            a.pads->insert(a.pads->end(), ends.begin(), ends.end());
        }
        Layer layer;
        std::string reason;
        if (derive(problem, &layer, &reason) && count_macs(geometry_of(problem)) <= kMaxMacs / 4 &&
            element_count(problem.x_shape) <= 20000 && element_count(problem.w_shape) <= 20000) {
            return problem;
        }
    }
}

Problem any_problem(Random *random) {
    Problem problem = propose(random);
    Attributes &a = problem.attributes;
    const auto spoil = [random](Ints *list) {
        if (!*list) return;
        for (std::int64_t &value : **list) {
            if (chance(random, 3)) value = any_integer(random);
        }
        if (chance(random, 30)) (*list)->push_back(1);
        if (chance(random, 30) && !(*list)->empty()) (*list)->pop_back();
    };
    for (Ints *list : {&a.strides, &a.dilations, &a.output_padding, &a.output_shape, &a.pads}) {
        if (chance(random, 3)) spoil(list);
    }
    if (chance(random, 20)) a.group = any_integer(random);
    if (chance(random, 20)) a.auto_pad = "SAME";
    if (chance(random, 20)) {
        Shape &shape = chance(random, 2) ? problem.x_shape : problem.w_shape;
        shape[static_cast<std::size_t>(random->integer(0, static_cast<std::int64_t>(shape.size()) - 1))] =
            any_integer(random);
    }
    return problem;
}

} // namespace convtranspose::test
