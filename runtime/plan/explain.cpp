#include "plan/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iomanip>
#include <sstream>

#include "algorithms/layer_plan.h"
#include "base/error.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kPhasesShown = 16, kTapsShown = 8;

// Says what the taps of an axis are. name: "w", "h", "d", or empty for an axis outside of those three.
void explain_axis(std::size_t index, const std::string &name, const AxisGeometry &a, std::ostringstream *out) {
    *out << "axis " << index << (name.empty() ? "" : " (" + name + ")") << ": in " << a.in << ", out " << a.out
         << ", kernel " << a.kernel << ", stride " << a.stride << ", dilation " << a.dilation << ", output_padding "
         << a.output_padding << ", pads " << a.pad_begin << " " << a.pad_end() << "\n";
    const std::int64_t phases = std::min(a.stride, a.out);
    const AxisPlan plan = plan_axis(a, a.stride, false);
    for (std::int64_t r = 0; r < std::min(phases, kPhasesShown); r++) {
        const Taps taps = plan.taps_of(r);
        *out << "  y[" << a.stride << "*q + " << r << "] <-";
        if (taps.count == 0) *out << " bias only";
        for (std::int64_t t = 0; t < std::min(taps.count, kTapsShown); t++) {
            const std::int64_t offset = taps.offset + t * a.offset_step();
            *out << (t ? " +" : "") << " w[" << taps.kernel_begin + t * a.kernel_step() << "] x[q"
                 << (offset < 0 ? " - " : " + ") << (offset < 0 ? -offset : offset) << "]";
        }
        if (taps.count > kTapsShown) *out << " + " << taps.count - kTapsShown << " more";
        *out << "\n";
    }
    if (phases > kPhasesShown) *out << "  and " << phases - kPhasesShown << " more phases\n";
}

std::string bytes(double n) {
    if (n < 1024) return formatted("%.0f B", n);
    return n < 1024 * 1024 ? formatted("%.1f KiB", n / 1024) : formatted("%.1f MiB", n / 1024 / 1024);
}

// Returns "0.25", or "0.25 .. 0.5 (64 output channels)".
template<typename T>
std::string range(const std::vector<T> &values) {
    if (values.empty()) return "none (0 output channels)";
    if (values.size() == 1) return concat(values[0]);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return concat(*least, " .. ", *most, " (", values.size(), " output channels)");
}

void explain_quantization(const Geometry &g, const QuantizationValues *quantization, const WeightFacts *facts,
                          std::ostringstream *out) {
    if (!quantization) {
        *out << "scales and zero points with each run\n";
        return;
    }
    const QuantizationValues &q = *quantization;
    *out << "x_scale " << q.x_scale << ", x_zero_point " << q.x_zero_point << "; w_scale " << range(q.w_scale)
         << ", w_zero_point " << range(q.w_zero_point);
    if (g.y_dtype != CONVT_F32) *out << "; y_scale " << q.y_scale << ", y_zero_point " << q.y_zero_point;
    const OutputRange r = output_range(q, g);
    *out << "; y in " << static_cast<double>(r.least) + r.zero_point << " .. "
         << static_cast<double>(r.most) + r.zero_point << "\n";
    if (!facts) {
        *out << "weights of each run decide between 8-bit, 16-bit and 64-bit arithmetic\n";
        return;
    }
    *out << "sums are at most " << formatted("%.0f", facts->bound) << " in magnitude, of 2147483647 that 32 bits hold"
         << (facts->fits_int32 ? "" : ": too close for other zero points, so they are kept in 64") << "; weights "
         << (facts->fits_int8 ? "fit" : "do not fit") << " in 8 bits less their zero points\n";
}

void explain_post_ops(const PostOps &p, const std::string &how, std::ostringstream *out) {
    if (!has_post_ops(p)) return;
    *out << "then" << (p.adds_residual ? " + residual" : "");
    switch (p.activation) {
    case CONVT_NO_ACTIVATION: break;
    case CONVT_RELU: *out << " relu"; break;
    case CONVT_LEAKY_RELU: *out << " leaky relu of slope " << p.alpha; break;
    case CONVT_CLIP: *out << " clip to " << p.alpha << " .. " << p.beta; break;
    case CONVT_SIGMOID: *out << " sigmoid"; break;
    case CONVT_TANH: *out << " tanh"; break;
    }
    *out << ", " << how << "\n";
}

// Lists the properties of the layer that are compiled into a variant: "56 input channels; the taps along w; 256 columns of y; 2
// taps along h".
std::string built_in_of(const BuiltIn &b) {
    std::string text;
    const auto add = [&](const std::string &what) { text += (text.empty() ? "" : "; ") + what; };
    if (b.ic) add(concat(b.ic, " input channels"));
    if (b.oc) add(concat(b.oc, " output channels"));
    const char *const axes[3] = {"w", "h", "d"}, *const extents[3] = {"columns", "rows", "planes"};
    for (std::size_t a = 0; a < 3; a++) {
        const BuiltInAxis &axis = b.axes[a];
        if (axis.table) {
            add(concat("the taps along ", axes[a]));
        } else if (axis.count) {
            add(concat(axis.count, " taps along ", axes[a]));
        }
        if (axis.out) add(concat(axis.out, " ", extents[a], " of y"));
    }
    return text;
}

std::string reading_of_x(const DirectPlan &direct) {
    const std::int64_t strips = direct.strip_count();
    const std::string in_strips = strips > 1 ? concat(", in ", strips, " strips") : std::string();
    const std::string around = ", which are copied, with zeros around them";
    std::string in_place = "read in place" + in_strips;
    switch (direct.reads_x()) {
    case ReadsX::kInPlace: break;
    case ReadsX::kCopy: return "copied, with zeros around it" + in_strips;
    case ReadsX::kCopyOfEdgeStrips: return in_place + ", but for those at its ends" + around;
    case ReadsX::kCopyOfRowEnds: return in_place + ", but for the ends of rows" + around;
    }
    return in_place;
}

// Says how many threads are used, and why they are fewer than are allowed, or why they are not.
std::string threads_of(const LayerPlan &plan) {
    const int allowed = plan.settings().parallel.threads;
    if (allowed == 1) return "1";
    const std::string of = plan.threads() < allowed ? concat(" of ", allowed, " that are allowed") : std::string();
    const std::string why =
        plan.settings().all_threads ? "as asked for"
        : !plan.cycles_on_one_thread()
            ? "as recorded"
            : concat("one thread would take", formatted(" %.3g cycles", *plan.cycles_on_one_thread()),
                     formatted(", and each further thread costs %.3g", plan.settings().profile->per_thread));
    return concat(plan.threads(), of, ": ", why);
}

// Says what the estimate of the choice adds up: for a kernel the parts of its cost, for an algorithm its layers and the rest.
std::string parts_of_estimate(const LayerPlan &plan) {
    std::string text;
    const auto add = [&](double cycles, const char *what) {
        if (std::isfinite(cycles) && std::abs(cycles) >= 0.5)
            text += (text.empty() ? "" : "; ") + formatted("%.3g", cycles) + what;
    };
    for (const AlgorithmEstimate &e : plan.estimates()) {
        if (std::strcmp(e.name, plan.algorithm()) != 0) continue;
        add(e.cycles.of_layers, " in its layers");
        add(e.cycles.besides, " besides them");
        return text;
    }
    const DirectPlan &direct = plan.direct();
    for (const Candidate &c : plan.candidates()) {
        if (c.variant != &direct.variant()) continue;
        const auto parts = parts_of_cost(c, direct.problem(), *plan.settings().profile);
        add(parts[0], " to multiply and add");
        add(parts[1], " more to wait for operands and sums");
        add(parts[2], " to begin tiles and look up taps");
        add(parts[3], " to store y");
        add(parts[4], parts[4] < 0 ? " as x is read in place" : " to copy x");
        add(parts[5], " to round y");
    }
    return text;
}

std::string list_of_candidates(const LayerPlan &plan) {
    std::vector<ListedCandidate> list;
    bool is_kernel = true; // false if an algorithm without kernels of its own was chosen
    for (const AlgorithmEstimate &e : plan.estimates()) {
        const bool chosen = std::strcmp(e.name, plan.algorithm()) == 0;
        is_kernel = is_kernel && !chosen;
        list.push_back({e.name, e.unsupported, e.cycles.all(), "", chosen});
    }
    for (const Candidate &c : plan.candidates()) {
        list.push_back({c.name(), c.unsupported, c.cost,
                        c.copying > 0 ? formatted(", %.3g of them to copy x", c.copying) : "",
                        is_kernel && c.variant == &plan.direct().variant()});
    }
    return list_of(std::move(list));
}

} // namespace

std::string formatted(const char *format, double number) {
    char text[64];
    std::snprintf(text, sizeof text, format, number);
    return text;
}

std::string list_of(std::vector<ListedCandidate> candidates) {
    const auto rank = [](const ListedCandidate &c) { return c.unsupported.text ? -1 : c.cycles; };
    std::stable_sort(candidates.begin(), candidates.end(), [&](auto &a, auto &b) { return rank(a) < rank(b); });
    std::vector<std::pair<std::string, std::string>> refusals; // (reason, names)
    TextStream out;
    out << "candidates, by estimated cycles:\n";
    for (const ListedCandidate &c : candidates) {
        if (!c.unsupported.text) {
            out << (c.is_chosen ? "  * " : "    ") << std::left << std::setw(32) << c.name
                << formatted(" %.3g", c.cycles) << c.details << "\n";
            continue;
        }
        const std::string why = to_string(c.unsupported);
        const auto same = std::find_if(refusals.begin(), refusals.end(), [&](const auto &r) { return r.first == why; });
        if (same != refusals.end()) {
            same->second.append(", ").append(c.name);
        } else {
            refusals.emplace_back(why, c.name);
        }
    }
    for (const auto &[why, names] : refusals) out << "  no: " << why << ": " << names << "\n";
    return out.str();
}

std::string describe_layer(const Geometry &g, const QuantizationValues *quantization, const WeightFacts *facts,
                           const std::string &how) {
    TextStream out;
    out << (g.quantized() ? "QLinearConvTranspose " : "ConvTranspose ") << convt_dtype_name(g.dtype);
    if (g.quantized()) out << " x, " << convt_dtype_name(g.w_dtype) << " w, " << convt_dtype_name(g.y_dtype) << " y";
    if (g.light.exist()) out << " x and y, weights of " << convt_dtype_name(g.light.dtype);
    out << ", " << (g.layout == CONVT_CHANNELS_LAST ? "channels last" : "channels first") << ", group " << g.group
        << "\n"
        << "x " << to_string(g.x_shape) << "  w " << to_string(g.w_shape) << (g.has_bias ? "  bias" : "  no bias")
        << "  -> y " << to_string(g.y_shape) << "\n";
    if (!g.given_x_shape.empty())
        out << "given as x " << to_string(g.given_x_shape)
            << (volume(g.w_shape) ? ": axes of one position are left out\n"
                                  : ": without weights, its extents and groups do not matter\n");
    for (std::size_t a = 0; a < g.axes.size(); a++) {
        const std::size_t inside = g.axes.size() - 1 - a; // how many axes are
        explain_axis(a, inside < 3 ? std::string(1, "whd"[inside]) : "", g.axes[a], &out);
    }
    if (g.quantized()) explain_quantization(g, quantization, facts, &out);
    explain_post_ops(g.post_ops, how, &out);
    const double macs = count_macs(g), x = static_cast<double>(g.x_bytes()), w = static_cast<double>(g.w_bytes()),
                 y = static_cast<double>(g.y_bytes());
    out << "multiply-adds " << formatted("%.6g", macs) << "; x " << bytes(x) << ", w " << bytes(w) << ", y "
        << bytes(y);
    if (x + w + y > 0) {
        out << "; " << formatted("%.1f", 2 * macs / (x + w + y))
            << (g.quantized() ? " operations per byte" : " flops per byte");
    }
    out << "\n";
    return out.str();
}

std::string explain(const LayerPlan &plan) {
    TextStream out;
    out << describe_layer(plan.geometry(), plan.quantization(), plan.facts(),
                          "on pieces of y that are still in the cache")
        << "packed weights "
        << (plan.weights_at_run_time() ? "with each run, in the workspace"
                                       : bytes(static_cast<double>(plan.packed_bytes())))
        << "; workspace " << bytes(static_cast<double>(plan.workspace_bytes())) << "; threads " << threads_of(plan)
        << "; isa " << isa_name(plan.direct().variant().isa) << "\n";

    const Variant *chosen = &plan.direct().variant();
    out << "variant " << chosen->name << ": " << plan.reason() << "\n"
        << (chosen->built_in ? concat("  built into it: ", built_in_of(*chosen->built_in), "\n") : std::string())
        << "  x is " << reading_of_x(plan.direct()) << "\n"
        << (plan.geometry().light.exist() && !has_light_weights(chosen->arithmetic)
                ? "  its weights are packed as f32\n"
                : "")
        << (plan.direct().rounds_pieces() ? "  y is computed in f32, by pieces that are then rounded\n" : "")
        << (plan.direct().row_end() ? concat("  rows end in a tile of ", plan.direct().row_end()->name, "\n")
                                    : std::string())
        << "  estimated cycles: " << parts_of_estimate(plan) << "\n"
        << list_of_candidates(plan);
    return out.str();
}

} // namespace convtranspose
