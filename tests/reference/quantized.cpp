#include "reference/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace convtranspose::test {

namespace {

constexpr float kXScale = 0.05f, kWScale = 0.01f;

std::int32_t least_of(convt_dtype dtype) { return dtype == CONVT_S8 ? -128 : 0; }

std::int32_t into(convt_dtype dtype, std::int64_t value) {
    const std::int64_t least = least_of(dtype);
    return static_cast<std::int32_t>(std::clamp(value, least, least + 255));
}

std::int64_t out_channels(const Problem &problem) { return problem.w_shape.at(1) * problem.attributes.group; }

// The one of a list that belongs to an output channel.
template<typename T>
T of_channel(const std::vector<T> &values, std::int64_t m) {
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(m)];
}

// The output channel of weight i.
std::int64_t channel_of_weight(const Problem &problem, std::int64_t i) {
    const std::int64_t m_per_group = problem.w_shape.at(1);
    const std::int64_t per_c = element_count(problem.w_shape) / std::max<std::int64_t>(problem.w_shape[0], 1);
    const std::int64_t c_per_group = problem.w_shape[0] / problem.attributes.group;
    return i / per_c / c_per_group * m_per_group + i % per_c / (per_c / m_per_group);
}

} // namespace

void quantize(Problem *problem, const QuantizedAs &as) {
    problem->w_dtype = as.w;
    problem->y_dtype = as.y;
    Quantization q;
    q.x_scale = kXScale;
    q.x_zero_point = as.x_zero_point;
    q.w_scale = {kWScale};
    q.w_zero_point = {as.w_zero_point};
    const std::int64_t channels = out_channels(*problem);
    if (as.per_channel && channels > 0) {
        q.w_scale.clear();
        q.w_zero_point.clear();
        for (std::int64_t m = 0; m < channels; ++m) {
            q.w_scale.push_back(kWScale * (1 + static_cast<float>(m % 7) / 8));
            q.w_zero_point.push_back(into(as.w, as.w_zero_point + m * 3 % 7 - (as.w_zero_point ? 3 : 0)));
        }
    }
    double terms = 1;
    for (std::size_t i = 0; i < problem->w_shape.size(); ++i) {
        if (i != 1) terms *= static_cast<double>(problem->w_shape[i]);
    }
    terms /= static_cast<double>(std::max<std::int64_t>(problem->attributes.group, 1));
    // 90 is about the deviation of 8-bit values from a zero point; two deviations of the sum are to fill half the range.
    q.y_scale = static_cast<float>(kXScale * kWScale * 90 * 90 * std::sqrt(std::max(terms, 1.0)) / 64);
    q.y_zero_point = as.y_zero_point;
    if (as.relu) q.y_range = {{0.0f, std::numeric_limits<float>::infinity()}};
    problem->quantization = q;
}

QuantizedAs quantized_as(const Problem &problem) {
    const Quantization &q = *problem.quantization;
    QuantizedAs as;
    as.w = problem.w_dtype.value_or(problem.dtype);
    as.y = problem.y_dtype.value_or(problem.dtype);
    as.per_channel = q.w_scale.size() > 1;
    as.x_zero_point = q.x_zero_point;
    as.w_zero_point = q.w_zero_point[0]; // that of channel 0 is three less than what it was made from, unless 0
    if (as.per_channel && as.w_zero_point != 0) as.w_zero_point += 3;
    as.y_zero_point = q.y_zero_point;
    as.relu = q.y_range.has_value();
    return as;
}

QuantizedAs random_quantized_as(convt_dtype x, Random *random) {
    const auto zero_point = [&](convt_dtype dtype) {
        const std::int32_t least = least_of(dtype);
        return random->pick<std::int32_t>({0, least, least + 255, least + 128, least + 100,
                                           least + static_cast<std::int32_t>(random->integer(3, 252))});
    };
    QuantizedAs as;
    as.w = random->pick<convt_dtype>({CONVT_S8, CONVT_S8, CONVT_U8});
    as.y = random->pick<convt_dtype>({CONVT_U8, CONVT_S8});
    as.x_zero_point = zero_point(x);
    as.y_zero_point = zero_point(as.y);
    // Mostly symmetric, as weights are.
    const std::int32_t middle = least_of(as.w) + 128;
    as.w_zero_point = random->integer(1, 3) > 1 ? middle : static_cast<std::int32_t>(middle + random->integer(-60, 60));
    as.per_channel = random->integer(1, 3) == 1;
    as.relu = random->integer(1, 4) == 1;
    return as;
}

void spoil_bias(const Problem &problem, std::uint64_t seed, Inputs *inputs) {
    if (!is_quantized(problem.dtype) || !inputs->b || inputs->b->dtype() != CONVT_F32) return;
    if (seed % 3 == 0) inputs->b->set(0, std::numeric_limits<double>::quiet_NaN());
    if (seed % 3 == 1) inputs->b->set(inputs->b->size() - 1, -std::numeric_limits<double>::infinity());
}

void make_light(Problem *problem, convt_dtype w_dtype, std::int32_t zero_point) {
    problem->w_dtype = w_dtype;
    if (!is_quantized(w_dtype)) return;
    QuantizedAs as;
    as.w = w_dtype;
    as.y = CONVT_F32;
    as.w_zero_point = zero_point;
    as.per_channel = true;
    quantize(problem, as);
    // Around the middle, as of symmetric weights, all are alike: an s8 holds each weight less its zero point.
    if (zero_point == least_of(w_dtype) + 128) problem->quantization->w_zero_point = {zero_point};
    problem->y_dtype = std::nullopt;
}

Converted convert(const Problem &problem, const Inputs &inputs) {
    Converted to{problem, inputs};
    Problem &p = to.problem;
    if (problem.quantizes_x) {
        float least = 0, most = 0;
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) {
            least = std::min(least, static_cast<float>(inputs.x.get(i)));
            most = std::max(most, static_cast<float>(inputs.x.get(i)));
        }
        Quantization &q = *p.quantization;
        const float width = most - least; // infinite if f32 does not hold it
        q.x_scale = width / 255;
        if (std::isinf(width)) q.x_scale = static_cast<float>((static_cast<double>(most) - least) / 255);
        if (q.x_scale == 0) q.x_scale = 1;
        q.x_zero_point = static_cast<std::int32_t>(std::nearbyint(-least / q.x_scale));
        to.inputs.x = Tensor(CONVT_U8, problem.x_shape);
        for (std::int64_t i = 0; i < inputs.x.size(); ++i) {
            const float quotient = static_cast<float>(inputs.x.get(i)) / q.x_scale;
            to.inputs.x.set(i, std::clamp(std::nearbyint(quotient) + static_cast<float>(q.x_zero_point), 0.0f, 255.0f));
        }
        p.quantizes_x = 0;
        p.dtype = CONVT_U8;
        p.y_dtype = CONVT_F32;
        return to;
    }
    p.w_dtype = std::nullopt;
    p.quantization = std::nullopt;
    to.inputs.w = Tensor(CONVT_F32, problem.w_shape);
    for (std::int64_t i = 0; i < inputs.w.size(); ++i) {
        auto value = static_cast<float>(inputs.w.get(i));
        if (problem.quantization) {
            const std::int64_t m = channel_of_weight(problem, i);
            value = (value - static_cast<float>(of_channel(problem.quantization->w_zero_point, m))) *
                    of_channel(problem.quantization->w_scale, m);
        }
        to.inputs.w.set(i, value);
    }
    return to;
}

Expected quantized_reference(const Problem &problem, const Inputs &inputs) {
    const Quantization &q = *problem.quantization;
    const convt_dtype y_dtype = problem.y_dtype.value_or(problem.dtype);
    const bool real = y_dtype == CONVT_F32;

    // The sums are those of a layer of doubles whose numbers are the integers less their zero points.
    Problem doubles = problem;
    doubles.dtype = CONVT_F64;
    doubles.w_dtype = doubles.y_dtype = std::nullopt;
    doubles.quantization = std::nullopt;
    if (real) doubles.b_shape = std::nullopt;
    Inputs values;
    values.x = Tensor(CONVT_F64, problem.x_shape);
    for (std::int64_t i = 0; i < values.x.size(); ++i) values.x.set(i, inputs.x.get(i) - q.x_zero_point);
    values.w = Tensor(CONVT_F64, problem.w_shape);
    for (std::int64_t i = 0; i < values.w.size(); ++i) {
        values.w.set(i, inputs.w.get(i) - of_channel(q.w_zero_point, channel_of_weight(problem, i)));
    }
    if (inputs.b && !real) {
        values.b = Tensor(CONVT_F64, inputs.b->shape());
        for (std::int64_t i = 0; i < inputs.b->size(); ++i) values.b->set(i, inputs.b->get(i));
    }
    Expected expected = reference(doubles, values);
    expected.dtype = y_dtype;

    const std::int64_t channels = out_channels(problem);
    const bool last = problem.layout == CONVT_CHANNELS_LAST;
    std::int64_t positions = 1;
    for (std::size_t i = 1; i < expected.shape.size(); ++i) {
        if (i != (last ? expected.shape.size() - 1 : 1)) positions *= expected.shape[i];
    }
    const auto round_to = [](float v) { return std::nearbyint(v); }; // ties to even, the default rounding
    const float infinity = std::numeric_limits<float>::infinity();
    const float least_real = q.y_range ? (*q.y_range)[0] : -infinity,
                most_real = q.y_range ? (*q.y_range)[1] : infinity;
    for (std::size_t i = 0; i < expected.value.size(); ++i) {
        const std::int64_t at = static_cast<std::int64_t>(i), m = last ? at % channels : at / positions % channels;
        const float sum = static_cast<float>(expected.value[i]); // exact integers up to here
        const float scale = q.x_scale * of_channel(q.w_scale, m);
        if (real) {
            const volatile float product = sum * scale; // volatile: rounded before it is added to
            const float b = inputs.b ? static_cast<float>(inputs.b->get(m)) : 0;
            expected.value[i] = std::clamp(product + b, least_real, most_real);
            expected.tolerance[i] = 0;
            continue;
        }
        const float product = sum * (scale / q.y_scale);
        const double least = least_of(y_dtype), most = least + 255;
        double y = std::clamp(static_cast<double>(round_to(product)) + q.y_zero_point, least, most);
        if (q.y_range) {
            const double bottom = std::nearbyint(static_cast<double>(least_real) / static_cast<double>(q.y_scale));
            const double top = std::nearbyint(static_cast<double>(most_real) / static_cast<double>(q.y_scale));
            y = std::clamp(y, std::clamp(bottom + q.y_zero_point, least, most),
                           std::clamp(top + q.y_zero_point, least, most));
        }
        expected.value[i] = y;
        expected.tolerance[i] = 0;
    }
    return expected;
}

} // namespace convtranspose::test
