#include "algorithms/winograd/winograd.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "base/division.h"
#include "base/error.h"
#include "kernel_contract/fetching.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

constexpr int kMostTapsOfPhase = 3;
// A strip has so many positions at least, to fill the tiles of kernels, and otherwise so many bytes of the transformed x and of
// the products, which then stay near.
constexpr std::int64_t kLeastTiles = 96, kTransformBytes = 1 << 20;
constexpr std::int64_t kLeastChannels = 16; // a vector of any ISA
// Phases of long strides have more products than this, each of which needs a plan of its own.
constexpr int kMostProducts = 512;
// Weights that are not near are read again for each strip. If a strip has fewer positions than this, they come slower.
constexpr std::int64_t kFewPositions = 32;

// This says how a phase with a given number of taps is computed: the sums of weights, the parts of x that they are multiplied
// with, and the product that the bias is added to, which must be one that both outputs contain once.
struct Products {
    int count, weights;
    double of_weights[4][kMostTapsOfPhase];
    std::int32_t entries[4][3]; // start, distance, second
    int with_bias;
};
constexpr Products kProducts[kMostTapsOfPhase + 1] = {
    {1, 1, {{1}}, {{0, 0, 0}}, 0},
    {2, 1, {{1}}, {{0, 0, 0}, {1, 0, 0}}, 0},
    {3, 3, {{1, 0}, {1, 1}, {0, -1}}, {{0, 1, -1}, {1, 0, 0}, {1, 1, -1}}, 1},
    {4,
     4,
     {{1, 0, 0}, {0.5, 0.5, 0.5}, {-0.5, 0.5, -0.5}, {0, 0, 1}},
     {{0, 2, -1}, {1, 1, 1}, {1, 1, -1}, {1, 2, -1}},
     1},
};

int weights_of(int count) { return kProducts[count].weights; }

// Returns the first variant that fits, or one without functions.
template<typename Fits>
WinogradVariant find_winograd(Isa isa, convt_dtype dtype, const Fits &fits) {
    const KernelTable &table = convt_float_kernels;
    const WinogradVariant *const end = table.winograd + table.winograd_count;
    const WinogradVariant *const found = std::find_if(table.winograd, end, [&](const WinogradVariant &v) {
        return v.isa == isa_of_floats(isa) && v.dtype == dtype && fits(v);
    });
    return found == end ? WinogradVariant() : *found;
}

} // namespace

Winograd::Axis Winograd::axis_of(const AxisGeometry &geometry) {
    using Entry = std::array<std::int32_t, kEntryColumns>;
    Axis axis;
    axis.phases.clear();
    axis.tiles = ceil_div(ceil_div(geometry.out, geometry.stride), std::int64_t{2});
    axis.kernel = geometry.kernel;
    axis.kernel_step = geometry.kernel_step;
    axis.stride = geometry.stride;
    std::vector<std::vector<Entry>> of_phases;
    std::set<Entry> all;
    // All taps count, whether or not a position meets them inside x, so that the packed weights serve every input size.
    AxisGeometry endless = geometry;
    endless.in = endless.out = std::int64_t{1} << 40;
    for (std::int64_t r = 0; r < geometry.stride; r++) {
        const Taps taps = taps_of(endless, r);
        Phase phase;
        phase.number = r;
        phase.kernel_begin = taps.kernel_begin;
        phase.count = static_cast<int>(std::min<std::int64_t>(taps.count, kMostTapsOfPhase + 1));
        phase.positions = ceil_div(geometry.out - r, geometry.stride); // 0 or less: none
        axis.phases.push_back(phase);
        of_phases.emplace_back();
        for (int k = 0; phase.count <= kMostTapsOfPhase && k < kProducts[phase.count].count; k++) {
            const std::int32_t *const entry = kProducts[phase.count].entries[k];
            of_phases.back().push_back(
                {static_cast<std::int32_t>(taps.offset) + entry[kStart], entry[kDistance], entry[kSecond]});
        }
        all.insert(of_phases.back().begin(), of_phases.back().end());
    }
    axis.first = all.empty() ? 0 : (*all.begin())[kStart];
    axis.entries.clear();
    axis.text.clear();
    for (const Entry &entry : all) {
        const std::int32_t start = entry[kStart] - axis.first;
        axis.entries.insert(axis.entries.end(), {start, entry[kDistance], entry[kSecond]});
        axis.text += entry[kDistance] == 0 ? 'X' : entry[kDistance] == 2 ? 'E' : entry[kSecond] < 0 ? 'D' : 'S';
        axis.text += std::to_string(start);
    }
    for (std::size_t r = 0; r < of_phases.size(); r++) {
        for (const Entry &entry : of_phases[r])
            axis.phases[r].entries.push_back(static_cast<std::size_t>(std::distance(all.begin(), all.find(entry))));
    }
    return axis;
}

Winograd::Winograd(const Geometry &geometry, const PlanSettings &settings)
    : ComposedPlan(geometry, settings), size_(size_of(geometry.dtype)) {
    settings_.excluded = all_but_direct();
    h_ = axis_of(geometry.axes.front());
    if (geometry.axes.size() > 1) w_ = axis_of(geometry.axes.back());
    const auto find_input = [&](const std::string &entries_w, const std::string &entries_h) {
        const auto fits = [&](const WinogradVariant &v) {
            return v.input && entries_w == v.entries_w && entries_h == v.entries_h;
        };
        return find_winograd(settings_.isa, geometry_.dtype, fits).input;
    };
    input_ = find_input(w_.text, h_.text);
    if (!input_) input_ = find_input("any", "any");
    if (!fits()) return;
    plan_strips();
    for (const Phase &h : h_.phases) {
        for (const Phase &w : w_.phases) {
            const auto fits = [&](const WinogradVariant &v) {
                return v.output && v.count_h == h.count && v.count_w == w.count;
            };
            layers_.push_back({h, w, {}, {}, find_winograd(settings_.isa, geometry_.dtype, fits).output});
        }
    }
}

bool Winograd::fits() const {
    if (!input_) return false;
    int most = 0;
    for (const Axis *const axis : {&h_, &w_}) {
        const bool is_none = axis == &w_ && geometry_.axes.size() == 1;
        for (const Phase &r : axis->phases) {
            if (r.count > kMostTapsOfPhase || (r.count == 0 && !is_none)) return false;
            most = std::max(most, r.count);
        }
    }
    return most > 1 && product_count() <= kMostProducts;
}

int Winograd::product_count() const {
    const auto products = [](const Phase &r) { return kProducts[r.count].count; };
    return h_.sum_of(products) * w_.sum_of(products);
}

void Winograd::plan_strips() {
    const std::int64_t of_x = h_.entry_count() * w_.entry_count() * geometry_.in_channels,
                       of_y = static_cast<std::int64_t>(most_products()) * geometry_.out_channels,
                       bytes = (of_x + of_y) * size_;
    const std::int64_t wanted = std::max(kLeastTiles, kTransformBytes / bytes), of_image = h_.tiles * w_.tiles;
    if (of_image <= wanted && geometry_.batch > 1) {
        tiles_of_strip_ = h_.tiles;
        images_ = divisor_from(geometry_.batch, ceil_div(wanted, of_image));
    } else {
        const std::int64_t least = of_image >= 2 * kLeastTiles ? 1 : 0,
                           pairs = of_image > wanted ? ceil_div(of_image, 2 * wanted) : least;
        const EqualParts strips = even_strips(h_.tiles, pairs);
        tiles_of_strip_ = strips.length;
        strips_ = strips.count;
    }
    if (are_enough_for_each(strips_ * (geometry_.batch / images_), threads_.threads)) {
        take_whole_layers();
        return;
    }
    const std::size_t phases = h_.phases.size() * w_.phases.size();
    phases_at_once_ = static_cast<int>(std::min(phases, static_cast<std::size_t>(threads_.threads)));
    if (phases_at_once_ > 1) settings_.parallel = Parallel();
}

// Returns the distance between positions of the transformed x, in elements. It avoids multiples of a page, which would meet in
// few sets of the first-level cache.
std::int64_t Winograd::pitch() const {
    return geometry_.in_channels + (in_few_sets(geometry_.in_channels * size_) ? kCacheLine / size_ : 0);
}

std::int64_t Winograd::product_stride() const {
    return positions(tiles_of_strip_) * geometry_.out_channels + kCacheLine / size_;
}

std::size_t Winograd::Axis::most_products() const {
    std::size_t most = 0;
    for (const Phase &r : phases) most = std::max(most, r.entries.size());
    return most;
}

std::int64_t Winograd::strip_elements() const {
    const std::int64_t entries = h_.entry_count() * w_.entry_count();
    return std::max(capped_product({entries, positions(tiles_of_strip_), pitch()}),
                    capped_product({static_cast<std::int64_t>(most_products()), product_stride()}));
}

Geometry Winograd::product_geometry(std::int64_t positions) const {
    Geometry g = row_of(geometry_, positions);
    g.batch = 1;
    g.set_shapes();
    g.light = {}; // transformed weights are other numbers
    g.x_column_bytes = pitch() == g.in_channels ? 0 : pitch() * size_;
    return g;
}

EstimatedCycles Winograd::estimated() const {
    const CostProfile &profile = *settings_.profile;
    const std::int64_t whole_strips = h_.tiles / tiles_of_strip_, times = geometry_.batch / images_;
    const double whole = real(whole_strips), images = real(times);
    double product = whole * least_cost(product_geometry(positions(tiles_of_strip_)), settings_.isa, profile);
    if (rest_tiles()) product += least_cost(product_geometry(positions(rest_tiles())), settings_.isa, profile);
    const double products = product_count();
    const auto sums = [](const Phase &r) { return weights_of(r.count); };
    const auto of_tile = [](const Phase &r) { return r.outputs(); };
    const double outputs = h_.sum_of(of_tile) * w_.sum_of(of_tile);
    const std::int64_t lanes = facts_of(settings_.isa).vector_bytes / size_;
    const double tiles = real(geometry_.batch * h_.tiles * w_.tiles),
                 of_x = real(h_.entry_count() * w_.entry_count() * ceil_div(geometry_.in_channels, lanes)),
                 of_y = real(ceil_div(geometry_.out_channels, lanes));
    const double weights =
        h_.sum_of(sums) * w_.sum_of(sums) * real(geometry_.in_channels * geometry_.out_channels * size_);
    const double rate =
        positions(tiles_of_strip_) < kFewPositions ? profile.winograd_weights_of_few : profile.winograd_weights;
    // Whatever the layer was given, it reads its transformed weights; estimates of light weights have them in memory.
    const double from_memory = geometry_.light.exist() ? weights / profile.memory_rate : 0, near = profile.near,
                 reading = from_memory + (weights > near ? images * real(strips_) * weights / rate : 0);
    return {profile.winograd_products * images * products * product,
            reading + tiles * (of_x * profile.winograd_input +
                               of_y * (products * profile.winograd_product + outputs * profile.winograd_output))};
}

std::unique_ptr<AlgorithmPlan> propose_winograd(const AlgorithmProblem &problem, UnsupportedReason *why) {
    const Geometry &g = problem.geometry;
    const bool is_float = g.dtype == CONVT_F32 || g.dtype == CONVT_F64;
    const bool last = g.layout == CONVT_CHANNELS_LAST && g.y_order == YOrder::kLayout;
    bool plain = true;
    for (const AxisGeometry &axis : g.axes) plain = plain && axis.dilation == 1 && axis.stride <= axis.kernel;
    const bool supported = supports({{problem.constant_weights, kNeedsConstantWeights},
                                     {is_float && g.y_dtype == g.dtype, "x and y are not both f32 or both f64"},
                                     {last, "channels are not last"},
                                     {g.group == 1, "it has groups"},
                                     {g.axes.size() <= 2, "more than two spatial axes"},
                                     {has_elements(g), kNeedsElements},
                                     {std::min(g.in_channels, g.out_channels) >= kLeastChannels, "too few channels"},
                                     {plain, "it is dilated, or the kernel is shorter than the stride"}},
                                    why);
    if (!supported) return nullptr;
    std::unique_ptr<Winograd> own(new Winograd(g, problem.settings));
    if (!supports({{own->input_ != nullptr, "no kernel that transforms x is built in"},
                   {own->fits(), "a phase has no taps or more than three, or all have one, or there are too many"},
                   {own->strip_elements() <= kMostElements, "a strip has more elements than kernels count"}},
                  why)) {
        return nullptr;
    }
    own->estimate(own->estimated());
    return own;
}

Status Winograd::build(const LayerWeights &weights) {
    for (Layer &layer : layers_) {
        const LayerPlan *const like = &layer == layers_.data() ? nullptr : layers_.front().products.front();
        TRY(plan_products(weights, like, &layer));
    }
    plan_workspace();
    return Status();
}

// Plans the products of a layer. like: a plan of their shape, or null for the first.
Status Winograd::plan_products(const LayerWeights &of, const LayerPlan *like, Layer *layer) {
    const int of_w = weights_of(layer->w.count), all = weights_of(layer->h.count) * of_w;
    const int with_bias = kProducts[layer->h.count].with_bias * of_w + kProducts[layer->w.count].with_bias;
    const std::int64_t each = geometry_.in_channels * geometry_.out_channels * size_;
    Block weights;
    TRY(get_block(settings_.allocator, all * each, "weights", &weights));
    const bool finite = geometry_.dtype == CONVT_F64
                            ? transform_weights(*layer, static_cast<const double *>(of.w), weights.data())
                            : transform_weights(*layer, static_cast<const float *>(of.w), weights.data());
    if (!finite) return unsupported("sums of weights are not finite");
    for (int i = 0; i < all; i++) {
        const char *const own = static_cast<const char *>(weights.data()) + i * each;
        const void *const bias = i == with_bias ? of.b : nullptr;
        const LayerWeights own_weights = {own, bias, nullptr};
        std::unique_ptr<LayerPlan> plan;
        TRY(like ? like->replan(own_weights, &plan)
                 : LayerPlan::create(product_geometry(positions(tiles_of_strip_)), settings_, own_weights, &plan));
        layer->products.push_back(add_plan(std::move(plan)));
        if (!like) like = layer->products.front();
    }
    return rest_tiles() ? reshape_products(layer->products, rest_tiles(), &layer->rest) : Status();
}

// Plans products with the weights of others, for strips of so many tiles.
Status Winograd::reshape_products(const Plans &from, std::int64_t tiles, Plans *to) {
    for (const LayerPlan *const plan : from)
        TRY(add_plan(product_geometry(positions(tiles)), {}, plan, &to->emplace_back()));
    return Status();
}

// Sums the taps of each pair of channels, for each product of h and, innermost, of w. Returns true if all sums are finite.
template<typename T>
bool Winograd::transform_weights(const Layer &layer, const T *w, void *transformed) const {
    const Products &h = kProducts[layer.h.count], &v = kProducts[layer.w.count];
    const int taps_w = std::max(layer.w.count, 1), taps = std::max(layer.h.count, 1) * taps_w;
    const std::int64_t pairs = geometry_.in_channels * geometry_.out_channels;
    bool finite = true;
    for (std::int64_t pair = 0; pair < pairs; pair++) {
        const T *const from = w + (pair * h_.kernel + layer.h.kernel_begin) * w_.kernel + layer.w.kernel_begin;
        T *to = static_cast<T *>(transformed) + pair;
        for (int kh = 0; kh < h.weights; kh++) {
            for (int kw = 0; kw < v.weights; kw++, to += pairs) {
                double sum = 0;
                for (int t = 0; t < taps; t++) {
                    const int i = t / taps_w, k = t % taps_w;
                    const double factor = h.of_weights[kh][i] * v.of_weights[kw][k];
                    const T tap = from[i * h_.kernel_step * w_.kernel + k * w_.kernel_step];
                    if (factor != 0) sum += factor * static_cast<double>(tap);
                }
                *to = static_cast<T>(sum);
                finite = finite && std::isfinite(*to);
            }
        }
    }
    return finite;
}

Status Winograd::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    const Geometry &geometry = problem.geometry;
    std::unique_ptr<Winograd> own(new Winograd(geometry, problem.settings));
    if (const std::int64_t elements = own->strip_elements(); elements > kMostElements)
        return too_large_to_reshape("winograd", geometry, "a strip", elements);
    for (Layer &layer : own->layers_) {
        const Layer &from = *std::find_if(layers_.begin(), layers_.end(), [&](const Layer &other) {
            return layer.h.kernel_begin == other.h.kernel_begin && layer.w.kernel_begin == other.w.kernel_begin;
        });
        TRY(own->reshape_products(from.products, own->tiles_of_strip_, &layer.products));
        if (own->rest_tiles()) TRY(own->reshape_products(from.products, own->rest_tiles(), &layer.rest));
    }
    own->plan_workspace();
    *made = std::move(own);
    return Status();
}

std::string Winograd::summary() const {
    const auto multiplies = [](const Phase &r) { return r.outputs() * std::max(r.count, 1); };
    return concat("Winograd's algorithm, ", product_count(), " products for ",
                  h_.sum_of(multiplies) * w_.sum_of(multiplies), ", in ", strips_ * (geometry_.batch / images_),
                  " strips");
}

void Winograd::plan_workspace() {
    transformed_bytes_ = round_up(h_.entry_count() * w_.entry_count() * positions(tiles_of_strip_) * pitch() * size_);
    product_bytes_ = round_up(most_products() * static_cast<std::uint64_t>(product_stride() * size_));
    own_bytes_ = transformed_bytes_ + phases_at_once_ * bytes_of_phase() - layer_bytes_;
}

} // namespace convtranspose
