#include "reference/reference.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "reference/descriptor.h"
#include "reference/guarded_memory.h"
#include "reference/layer.h"
#include "reference/quantized.h"
#include "tools/problem_line.h"

namespace convtranspose::test {

namespace {

// The numbers that a type can represent.
struct Format {
    int significand_bits; // the hidden one included
    int least_exponent;   // of the least subnormal number, 2^least_exponent
};

Format format_of(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return {11, -24};
    case CONVT_BF16: return {8, -133};
    case CONVT_F32: return {24, -149};
    case CONVT_F64: return {53, -1074};
    case CONVT_U8:
    case CONVT_S8:
    case CONVT_S32: break;
    }
    throw std::invalid_argument("unknown type");
}

// An input and an output position, flat, which an element of the kernel joins.
struct Pair {
    std::int64_t from, to;
};

// Those that kernel element k joins, k counted over all axes. Each axis lengthens what the axes before it have, so that a kernel
// element which nothing meets ends at once, whatever the attributes are.
std::vector<Pair> pairs_of(const Layer &layer, std::int64_t k) {
    Shape elements(layer.axes.size());
    for (std::size_t axis = elements.size(); axis-- > 0;) {
        elements[axis] = k % layer.axes[axis].kernel;
        k /= layer.axes[axis].kernel;
    }
    std::vector<Pair> pairs = {{0, 0}};
    for (std::size_t axis = 0; axis < elements.size(); ++axis) {
        const Axis &a = layer.axes[axis];
        std::vector<Pair> longer;
        for (const Pair &pair : pairs) {
            for (std::int64_t i = 0; i < a.in; ++i) {
                const std::int64_t o = i * a.stride + elements[axis] * a.dilation - a.pad_begin;
                if (o >= 0 && o < a.out) longer.push_back({pair.from * a.in + i, pair.to * a.out + o});
            }
        }
        pairs = std::move(longer);
    }
    return pairs;
}

// Elements of a dense tensor by batch, channel and flat spatial position, in either layout.
struct Indexer {
    bool channels_first;
    std::int64_t channels, positions;
    std::int64_t operator()(std::int64_t n, std::int64_t c, std::int64_t position) const {
        return channels_first ? (n * channels + c) * positions + position : (n * positions + position) * channels + c;
    }
};

// Whether all are integers, of which no sum of products can leave those that double represents. (Where long double is computed in
// software, as on 64-bit ARM, it takes a hundred times as long.)
bool is_exact_in_double(const Inputs &inputs) {
    bool integers = true;
    const auto most = [&integers](const Tensor &tensor) {
        double largest = 0;
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
            const double value = tensor.get(i);
            integers = integers && value == std::nearbyint(value) && std::isfinite(value);
            largest = std::fmax(largest, std::fabs(value));
        }
        return largest;
    };
    const double terms = static_cast<double>(inputs.w.size()); // at most
    const double total = most(inputs.x) * most(inputs.w) * terms + (inputs.b ? most(*inputs.b) : 0);
    return integers && total < std::ldexp(1.0, std::numeric_limits<double>::digits);
}

template<typename T>
Expected scatter(const Problem &problem, const Inputs &inputs, bool sums_in_f16) {
    const Layer layer = layer_of(problem);
    std::int64_t in_positions = 1, out_positions = 1, kernel_size = 1;
    for (const Axis &axis : layer.axes) {
        in_positions *= axis.in;
        out_positions *= axis.out;
        kernel_size *= axis.kernel;
    }
    const Indexer x_at{layer.channels_first, layer.in_channels, in_positions};
    const Indexer y_at{layer.channels_first, layer.out_channels, out_positions};
    const std::int64_t ic_per_group = layer.in_per_group(), oc_per_group = layer.out_per_group();

    bool integers = true;
    const auto values_of = [&integers](const Tensor &tensor) {
        std::vector<T> values;
        for (std::int64_t i = 0; i < tensor.size(); ++i) {
            values.push_back(tensor.get(i));
            integers = integers && values.back() == std::nearbyint(values.back());
        }
        return values;
    };
    const std::vector<T> x = values_of(inputs.x), w = values_of(inputs.w);
    const std::vector<T> b = inputs.b ? values_of(*inputs.b) : std::vector<T>();

    const std::size_t size = static_cast<std::size_t>(element_count(layer.y_shape));
    std::vector<T> y(size, 0), magnitude(size, 0);
    std::vector<std::int64_t> taps(static_cast<std::size_t>(y_at.positions), 0); // that meet at an output position

    for (std::int64_t k = 0; k < kernel_size; ++k) {
        const std::vector<Pair> pairs = pairs_of(layer, k);
        if (pairs.empty()) continue;
        for (const Pair &pair : pairs) ++taps[static_cast<std::size_t>(pair.to)];
        for (std::int64_t n = 0; n < layer.batch; ++n) {
            for (std::int64_t ic = 0; ic < layer.in_channels; ++ic) {
                for (std::int64_t m = 0; m < oc_per_group; ++m) {
                    const std::int64_t oc = ic / ic_per_group * oc_per_group + m;
                    const T weight = w[static_cast<std::size_t>((ic * oc_per_group + m) * kernel_size + k)];
                    for (const auto &[from, to] : pairs) {
                        const T product = x[static_cast<std::size_t>(x_at(n, ic, from))] * weight;
                        const std::size_t at = static_cast<std::size_t>(y_at(n, oc, to));
                        y[at] += product;
                        magnitude[at] += std::fabs(product);
                    }
                }
            }
        }
    }

    Expected expected;
    expected.dtype = problem.dtype;
    expected.shape = layer.y_shape;
    expected.value.resize(size);
    expected.tolerance.resize(size);
    const Format format = format_of(problem.dtype);
    const T u_sum = std::ldexp(T(1), sums_in_f16 ? -11 : problem.dtype == CONVT_F64 ? -53 : -24);
    const T least_of_sums = sums_in_f16 ? std::ldexp(T(1), -25) : 0;
    const T u_y = std::ldexp(T(1), -format.significand_bits), least_of_y = std::ldexp(T(1), format.least_exponent);
    const T most_exact = std::ldexp(T(1), format.significand_bits);
    for (std::int64_t n = 0; n < layer.batch; ++n) {
        for (std::int64_t oc = 0; oc < layer.out_channels; ++oc) {
            const T bias = b.empty() ? 0 : b[static_cast<std::size_t>(oc)];
            for (std::int64_t position = 0; position < y_at.positions; ++position) {
                const std::size_t at = static_cast<std::size_t>(y_at(n, oc, position));
                const T value = y[at] + bias, total = magnitude[at] + std::fabs(bias);
                const std::int64_t terms = taps[static_cast<std::size_t>(position)] * ic_per_group + 1;
                // One of the 4 u_y is for the expected value, of f64 itself rounded to double.
                const T tolerance = static_cast<T>(terms + 4) * (u_sum * total + least_of_sums) +
                                    4 * u_y * std::fabs(value) + least_of_y;
                expected.value[at] = static_cast<double>(value);
                expected.tolerance[at] = integers && total <= most_exact ? 0 : static_cast<double>(tolerance);
            }
        }
    }
    return expected;
}

} // namespace

Geometry geometry_of(const Problem &problem) {
    Geometry geometry;
    const Status status = resolve(detail::view(problem), &geometry);
    if (!status) throw std::runtime_error(status.message());
    return geometry;
}

Expected reference(const Problem &problem, const Inputs &inputs, bool sums_in_f16) {
    if (is_quantized(problem.dtype)) return quantized_reference(problem, inputs);
    if (is_light(problem)) {
        const Converted converted = convert(problem, inputs);
        return reference(converted.problem, converted.inputs);
    }
    return problem.dtype == CONVT_F64 && !is_exact_in_double(inputs)
               ? scatter<long double>(problem, inputs, sums_in_f16)
               : scatter<double>(problem, inputs, sums_in_f16);
}

::testing::AssertionResult agrees(const Tensor &y, const Expected &expected) {
    if (y.dtype() != expected.dtype) return ::testing::AssertionFailure() << "y has the wrong type";
    if (y.shape() != expected.shape) {
        return ::testing::AssertionFailure() << "y has shape " << ::testing::PrintToString(y.shape()) << ", expected "
                                             << ::testing::PrintToString(expected.shape);
    }
    std::int64_t wrong = 0, worst = 0;
    double worst_excess = -1;
    for (std::int64_t i = 0; i < y.size(); ++i) {
        const double got = y.get(i), want = expected.value[static_cast<std::size_t>(i)];
        const double tolerance = expected.tolerance[static_cast<std::size_t>(i)];
        double excess = std::fabs(got - want) - tolerance; // <= 0: good
        if (!std::isfinite(want) || !std::isfinite(got)) {
            const bool same = std::isnan(want) ? std::isnan(got) : got == want;
            excess = same ? 0 : std::numeric_limits<double>::infinity();
        }
        if (excess <= 0) continue;
        ++wrong;
        if (excess <= worst_excess) continue;
        worst_excess = excess;
        worst = i;
    }
    if (wrong == 0) return ::testing::AssertionSuccess();

    Shape index(y.shape().size());
    std::int64_t rest = worst;
    for (std::size_t axis = index.size(); axis-- > 0;) {
        index[axis] = rest % y.shape()[axis];
        rest /= y.shape()[axis];
    }
    std::ostringstream text;
    text.precision(17);
    text << wrong << " of " << y.size() << " elements are wrong, the worst at " << ::testing::PrintToString(index)
         << ": got " << y.get(worst) << ", expected " << expected.value[static_cast<std::size_t>(worst)] << " within "
         << expected.tolerance[static_cast<std::size_t>(worst)];
    return ::testing::AssertionFailure() << text.str();
}

Status run(const Problem &problem, const Inputs &inputs, const Options &options, Tensor *y) {
    Plan plan;
    Status status = Plan::create(problem, options, inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan);
    if (!status) return status;
    *y = Tensor(problem.y_dtype.value_or(problem.dtype), plan.y_shape());
    return plan.run(inputs.x.data(), y->data());
}

Options options_of_the_run() {
    Options options{};
    options.isa = std::getenv("CONVTRANSPOSE_TEST_ISA");
#ifdef __linux__
    guard_memory(&options);
#endif
    return options;
}

void expect_agreement(const Problem &problem, std::uint64_t seed, Values values, const Options &options) {
    SCOPED_TRACE(describe(problem, seed, options));
    const Inputs inputs = draw(problem, seed, values);
    Tensor y;
    const Status status = run(problem, inputs, options, &y);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(agrees(y, reference(problem, inputs, options.sums_in_f16 != 0)));
}

} // namespace convtranspose::test
