#include "tools/tune/random_problems.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tools/problem_line.h"

namespace convtranspose::tools {

namespace {

// The bounds are multiply-adds of the layer, and elements of all its tensors.
constexpr double kLeastMacs = 3e5, kMostMacs = 6e7, kMostElements = 1.2e7;

// The distributions of the standard library differ between machines.
class Chance {
  public:
    explicit Chance(std::mt19937 *generator) : generator_(generator) {}

    double share() { return static_cast<double>((*generator_)()) / 4294967296.0; }
    std::int64_t of(std::initializer_list<std::int64_t> values) {
        return values.begin()[static_cast<std::size_t>(share() * static_cast<double>(values.size()))];
    }

  private:
    std::mt19937 *generator_;
};

struct Layer {
    convt_layout layout = CONVT_CHANNELS_FIRST;
    std::int64_t batch = 1, group = 1, ic = 1, oc = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
    std::vector<std::int64_t> extents;

    double macs() const {
        double macs = static_cast<double>(batch * ic) * static_cast<double>(oc) / static_cast<double>(group);
        for (const std::int64_t extent : extents) macs *= static_cast<double>(extent * kernel);
        return macs;
    }
    double elements() const {
        double x = static_cast<double>(batch * ic), y = static_cast<double>(batch * oc),
               w = static_cast<double>(ic * oc) / static_cast<double>(group);
        for (const std::int64_t extent : extents) {
            x *= static_cast<double>(extent);
            y *= static_cast<double>(extent * stride + kernel * dilation);
            w *= static_cast<double>(kernel);
        }
        return x + y + w;
    }
};

void choose_channels(Chance *chance, Layer *layer) {
    const auto any = [&] {
        return chance->of({1, 3, 4, 8, 16, 24, 32, 48, 64, 96, 100, 128, 192, 256, 384, 512, 768, 1024});
    };
    const double kind = chance->share();
    layer->ic = any();
    layer->oc = chance->of({any(), std::max<std::int64_t>(layer->ic / 2, 1), layer->ic});
    if (kind < 0.1) { // depthwise
        layer->ic = layer->oc = layer->group = std::max<std::int64_t>(layer->ic, 4);
    } else if (kind < 0.2) {
        layer->group = chance->of({2, 4, 8, 16});
        layer->ic = layer->group * chance->of({1, 2, 4, 8, 16});
        layer->oc = layer->group * chance->of({1, 2, 4, 8, 16});
    } else if (kind < 0.35) { // images, masks, waveforms
        layer->oc = chance->of({1, 1, 2, 3, 4});
    }
}

void choose_kernel(Chance *chance, Layer *layer) {
    const double kind = chance->share();
    layer->stride = chance->of({2, 2, 2, 3, 4, 8});
    layer->kernel = layer->stride; // blocks that do not meet
    if (kind >= 0.25) layer->kernel = std::min<std::int64_t>(2 * layer->stride, 16);
    if (kind >= 0.65) {
        layer->kernel = chance->of({3, 3, 3, 5, 7, 9});
        layer->stride = chance->of({1, 2, 2, 3});
        layer->dilation = chance->share() < 0.15 ? chance->of({2, 3}) : 1;
    }
    // y is about as many times larger than x as the stride.
    const std::int64_t beyond = (layer->kernel - 1) * layer->dilation + 1 - layer->stride;
    if (beyond > 0 && chance->share() < 0.8) layer->pad = beyond / 2;
}

Layer propose(Chance *chance) {
    Layer layer;
    layer.layout = chance->share() < 0.5 ? CONVT_CHANNELS_LAST : CONVT_CHANNELS_FIRST;
    choose_channels(chance, &layer);
    choose_kernel(chance, &layer);
    layer.batch = chance->of({1, 1, 1, 1, 1, 1, 1, 2, 3, 4});
    const auto axes = static_cast<std::size_t>(chance->of({1, 1, 2, 2, 2, 2, 2, 3}));
    layer.extents.assign(axes, 1);
    const double macs = std::exp(std::log(kLeastMacs) + chance->share() * std::log(kMostMacs / kLeastMacs)),
                 side = std::pow(std::max(macs / layer.macs(), 1.0), 1.0 / static_cast<double>(axes));
    for (std::int64_t &extent : layer.extents)
        extent = std::max<std::int64_t>(1, std::llround(side * (0.7 + 0.7 * chance->share())));
    return layer;
}

} // namespace

std::string random_problem(std::mt19937 *generator) {
    Chance chance(generator);
    Layer layer;
    do {
        layer = propose(&chance);
    } while (layer.macs() < kLeastMacs || layer.macs() > kMostMacs || layer.elements() > kMostElements);
    std::string line = std::string("f32 ") + layout_name(layer.layout);
    const auto number = [&](const char *name, std::int64_t value) { line += name + std::to_string(value); };
    number(" n", layer.batch);
    number(" g", layer.group);
    number(" ic", layer.ic);
    number(" oc", layer.oc);
    const auto each = [&](const char *name, const auto &value) {
        line += name;
        for (std::size_t a = 0; a < layer.extents.size(); a++) number(a ? "x" : "", value(a));
    };
    each(" i", [&](std::size_t a) { return layer.extents[a]; });
    each(" k", [&](std::size_t) { return layer.kernel; });
    each(" s", [&](std::size_t) { return layer.stride; });
    each(" p", [&](std::size_t) { return layer.pad; });
    each("_", [&](std::size_t) { return layer.pad; });
    each(" d", [&](std::size_t) { return layer.dilation; });
    return line + " bias";
}

} // namespace convtranspose::tools
