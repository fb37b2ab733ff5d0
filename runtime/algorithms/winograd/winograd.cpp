// Winograd's minimal filtering (winograd_axis.h), applied to the phases of a transposed convolution. For two axes, the transforms of
// one follow those of the other. Phases share the transformed x. Each product multiplies two matrices, (positions, input channels)
// and (input channels, output channels), as a layer of one tap. The results round differently from the definition, so the caller
// must allow the algorithm.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "algorithms/composed_plan.h"
#include "algorithms/winograd/winograd_axis.h"
#include "base/division.h"
#include "base/error.h"
#include "kernel_contract/fetching.h"
#include "kernels/halide_buffer.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

// A strip has so many positions at least, to fill the tiles of kernels, and otherwise so many bytes of the transformed x and of
// the products, which then stay near.
constexpr std::int64_t kLeastTiles = 96, kTransformBytes = 1 << 20;
constexpr std::int64_t kLeastChannels = 16; // a vector of any ISA
// Phases of long strides have more products than this, each of which needs a plan of its own.
constexpr int kMostProducts = 512;
// Weights that are not near are read again for each strip. If a strip has fewer positions than this, they come slower.
constexpr std::int64_t kFewPositions = 32;

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

// Returns the stride along w of a tensor with channels last. If there is one spatial axis, it is h.
std::int64_t stride_of_w(const Strides &strides) { return strides.size() > 3 ? strides[2] : 0; }

} // namespace

class Winograd : public ComposedPlan {
  public:
    Status build(const LayerWeights &weights) override {
        for (Layer &layer : layers_) {
            const LayerPlan *const like = &layer == layers_.data() ? nullptr : layers_.front().products.front();
            TRY(plan_products(weights, like, &layer));
        }
        plan_workspace();
        return Status();
    }

    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override {
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

    Status run(const RunTensors &t, char *workspace) const override {
        const std::int64_t count = strips_ * (geometry_.batch / images_);
        return for_each_task(count, workspace, [&](std::int64_t task, char *own_workspace) {
            const std::int64_t first = task % strips_ * tiles_of_strip_;
            const Strip strip = {task / strips_ * images_, first, std::min(tiles_of_strip_, h_.tiles - first)};
            return run_strip(strip, t, own_workspace);
        });
    }

  private:
    friend Proposer propose_winograd;

    using Plans = std::vector<const LayerPlan *>;
    // A layer has the plans for one phase of each axis.
    struct Layer {
        const WinogradPhase &h, &w;
        // products are for whole strips, one plan for each sum of weights of h and, innermost, of w. rest is the same for the
        // last strip, if that has fewer positions.
        Plans products, rest;
        WinogradOutputFunction output = nullptr;
    };
    struct Strip {
        std::int64_t first_image = 0, first_tile = 0, tiles = 0; // tiles of h
    };

    Winograd(const Geometry &geometry, const PlanSettings &settings)
        : ComposedPlan(geometry, settings), size_(size_of(geometry.dtype)) {
        settings_.excluded = all_but_direct();
        h_ = WinogradAxis(geometry.axes.front());
        if (geometry.axes.size() > 1) w_ = WinogradAxis(geometry.axes.back());
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
        for (const WinogradPhase &h : h_.phases) {
            for (const WinogradPhase &w : w_.phases) {
                const auto fits = [&](const WinogradVariant &v) {
                    return v.output && v.count_h == h.count && v.count_w == w.count;
                };
                layers_.push_back({h, w, {}, {}, find_winograd(settings_.isa, geometry_.dtype, fits).output});
            }
        }
    }

    bool fits() const {
        if (!input_) return false;
        int most = 0;
        for (const WinogradAxis *const axis : {&h_, &w_}) {
            const bool is_none = axis == &w_ && geometry_.axes.size() == 1;
            for (const WinogradPhase &r : axis->phases) {
                if (r.count > kMostTapsOfPhase || (r.count == 0 && !is_none)) return false;
                most = std::max(most, r.count);
            }
        }
        return most > 1 && product_count() <= kMostProducts;
    }

    int product_count() const {
        const auto products = [](const WinogradPhase &r) { return r.products().count; };
        return h_.sum_of(products) * w_.sum_of(products);
    }

    void plan_strips() {
        const std::int64_t of_x = entry_count() * geometry_.in_channels,
                           of_y = most_products() * geometry_.out_channels, bytes = (of_x + of_y) * size_;
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
    std::int64_t pitch() const {
        return geometry_.in_channels + (in_few_sets(geometry_.in_channels * size_) ? kCacheLine / size_ : 0);
    }

    std::int64_t product_stride() const {
        return positions(tiles_of_strip_) * geometry_.out_channels + kCacheLine / size_;
    }

    std::int64_t strip_elements() const {
        return std::max(capped_product({entry_count(), positions(tiles_of_strip_), pitch()}),
                        capped_product({most_products(), product_stride()}));
    }

    Geometry product_geometry(std::int64_t positions) const {
        Geometry g = row_of(geometry_, positions);
        g.batch = 1;
        g.set_shapes();
        g.light = {}; // transformed weights are other numbers
        g.x_column_bytes = pitch() == g.in_channels ? 0 : pitch() * size_;
        return g;
    }

    EstimatedCycles estimated() const {
        const CostProfile &profile = *settings_.profile;
        const std::int64_t whole_strips = h_.tiles / tiles_of_strip_, times = geometry_.batch / images_;
        const double whole = real(whole_strips), images = real(times);
        double product = whole * least_cost(product_geometry(positions(tiles_of_strip_)), settings_.isa, profile);
        if (rest_tiles()) product += least_cost(product_geometry(positions(rest_tiles())), settings_.isa, profile);
        const double products = product_count();
        const auto sums = [](const WinogradPhase &r) { return r.products().weights; };
        const auto of_tile = [](const WinogradPhase &r) { return r.outputs(); };
        const double outputs = h_.sum_of(of_tile) * w_.sum_of(of_tile);
        const std::int64_t lanes = facts_of(settings_.isa).vector_bytes / size_;
        const double tiles = real(geometry_.batch * h_.tiles * w_.tiles),
                     of_x = real(entry_count() * ceil_div(geometry_.in_channels, lanes)),
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

    // Plans the products of a layer. like: a plan of their shape, or null for the first.
    Status plan_products(const LayerWeights &of, const LayerPlan *like, Layer *layer) {
        const int of_w = layer->w.products().weights, all = layer->h.products().weights * of_w;
        const int with_bias = layer->h.products().with_bias * of_w + layer->w.products().with_bias;
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
    Status reshape_products(const Plans &from, std::int64_t tiles, Plans *to) {
        for (const LayerPlan *const plan : from)
            TRY(add_plan(product_geometry(positions(tiles)), {}, plan, &to->emplace_back()));
        return Status();
    }

    // Sums the taps of each pair of channels, for each product of h and, innermost, of w. Returns true if all sums are finite.
    template<typename T>
    bool transform_weights(const Layer &layer, const T *w, void *transformed) const {
        const Products &h = layer.h.products(), &v = layer.w.products();
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

    std::string summary() const override {
        const auto multiplies = [](const WinogradPhase &r) { return r.outputs() * std::max(r.count, 1); };
        return concat("Winograd's algorithm, ", product_count(), " products for ",
                      h_.sum_of(multiplies) * w_.sum_of(multiplies), ", in ", strips_ * (geometry_.batch / images_),
                      " strips");
    }

    void plan_workspace() {
        transformed_bytes_ = round_up(entry_count() * positions(tiles_of_strip_) * pitch() * size_);
        product_bytes_ = round_up(most_products() * product_stride() * size_);
        own_bytes_ = transformed_bytes_ + phases_at_once_ * bytes_of_phase() - layer_bytes_;
    }

    Status run_strip(const Strip &strip, const RunTensors &t, char *workspace) const {
        char *const transformed = workspace, *const of_phases = transformed + transformed_bytes_;
        transform_input(strip, t, transformed);
        const Parallel parallel = phases_at_once_ > 1 ? threads_ : Parallel();
        const auto count = static_cast<std::int64_t>(layers_.size());
        return run_by(parallel, phases_at_once_, count, [&](std::int64_t i, std::int64_t worker) {
            const Layer &layer = layers_[static_cast<std::size_t>(i)];
            return run_layer(strip, layer, t, transformed, of_phases + worker * bytes_of_phase());
        });
    }

    Status run_layer(const Strip &strip, const Layer &layer, const RunTensors &t, char *transformed,
                     char *workspace) const {
        const WinogradPhase &h = layer.h, &w = layer.w;
        if (h.positions <= 2 * strip.first_tile || w.positions <= 0) return Status();
        const std::int64_t positions_here = positions(strip.tiles), of_entry = positions_here * pitch() * size_;
        char *const products = workspace + layer_bytes_;
        RunTensors own;
        own.x.strides = {positions_here * pitch(), pitch(), 1};
        own.y.strides = {positions_here * geometry_.out_channels, geometry_.out_channels, 1};
        const auto &plans = strip.tiles == tiles_of_strip_ ? layer.products : layer.rest;
        const std::size_t of_w = w.entries.size(), weights_w = w.count > 1 ? of_w : 1;
        for (std::size_t kh = 0; kh < h.entries.size(); kh++) {
            for (std::size_t kw = 0; kw < of_w; kw++) {
                const auto entry = static_cast<std::int64_t>(h.entries[kh]) * w_.entry_count() +
                                   static_cast<std::int64_t>(w.entries[kw]);
                const auto product = static_cast<std::int64_t>(kh * of_w + kw);
                own.x.data = transformed + entry * of_entry;
                own.y.data = products + product * product_stride() * size_;
                const std::size_t plan = (h.count > 1 ? kh : 0) * weights_w + (w.count > 1 ? kw : 0);
                TRY(plans[plan]->run(own, workspace));
            }
        }
        transform_output(strip, layer, products, t);
        return Status();
    }

    void transform_input(const Strip &strip, const RunTensors &t, char *transformed) const {
        const bool has_w = geometry_.axes.size() > 1;
        const std::int64_t position = pitch(), of_row = w_.tiles * position,
                           of_entry = positions(strip.tiles) * position;
        const auto entries_of = [](const WinogradAxis &axis) {
            return table_buffer(axis.entries.data(), axis.entry_count(), kEntryColumns);
        };
        if (volume(geometry_.x_shape) == 0) {
            std::memset(transformed, 0, static_cast<std::size_t>(transformed_bytes_));
            return;
        }
        // Threads that share the strip take parts of it.
        const Parallel parallel = workers_ > 1 ? Parallel() : threads_;
        const std::int64_t parts = std::min<std::int64_t>(parallel.threads, strip.tiles);
        parallel.for_each(images_ * parts, [&](std::int64_t index) {
            const std::int64_t image = index / parts, part = index % parts, begin = strip.tiles * part / parts,
                               end = strip.tiles * (part + 1) / parts;
            Buffer<3> x(element_at(t.x.data, (strip.first_image + image) * t.x.strides[0], size_),
                        type_of(geometry_.dtype),
                        {{geometry_.in_channels, 1},
                         {has_w ? geometry_.axes.back().in : 1, stride_of_w(t.x.strides)},
                         {geometry_.axes.front().in, t.x.strides[1]}});
            Buffer<2> entries_h = entries_of(h_), entries_w = entries_of(w_);
            Buffer<5> to(transformed + (image * strip.tiles + begin) * of_row * size_, type_of(geometry_.dtype),
                         {{geometry_.in_channels, 1},
                          {w_.tiles, position},
                          {end - begin, of_row},
                          {w_.entry_count(), of_entry},
                          {h_.entry_count(), of_entry * w_.entry_count()}});
            input_(&x.raw, &entries_w.raw, &entries_h.raw, w_.first,
                   h_.first + static_cast<std::int32_t>(2 * (strip.first_tile + begin)), &to.raw);
        });
    }

    // Divides each axis into at most two parts: tiles of which y has both outputs, and a tile of which y has only the first.
    void transform_output(const Strip &strip, const Layer &layer, const char *products, const RunTensors &t) const {
        const std::int64_t channels = geometry_.out_channels, of_row = w_.tiles * channels,
                           of_image = strip.tiles * of_row;
        const auto of_w = static_cast<std::int64_t>(layer.w.entries.size()),
                   of_h = static_cast<std::int64_t>(layer.h.entries.size());
        struct Part {
            std::int64_t tile, tiles, outputs;
        };
        const auto parts = [](const WinogradPhase &r, std::int64_t first, std::int64_t tiles) {
            const int outputs = r.outputs();
            const std::int64_t left = std::min(r.positions - outputs * first, outputs * tiles), whole = left / outputs;
            return std::array<Part, 2>{Part{0, whole, outputs}, Part{whole, left % outputs, 1}};
        };
        const auto parts_h = parts(layer.h, strip.first_tile, strip.tiles), parts_w = parts(layer.w, 0, w_.tiles);
        const std::int64_t y_h = t.y.strides[1], y_w = stride_of_w(t.y.strides);
        settings_.parallel.for_each(images_, [&](std::int64_t image) {
            char *const y = element_at(t.y.data, (strip.first_image + image) * t.y.strides[0], size_);
            for (const Part &h : parts_h) {
                for (const Part &w : parts_w) {
                    if (h.tiles == 0 || w.tiles == 0) continue;
                    Buffer<5> from(products + (image * of_image + h.tile * of_row + w.tile * channels) * size_,
                                   type_of(geometry_.dtype),
                                   {{channels, 1},
                                    {w.tiles, channels},
                                    {h.tiles, of_row},
                                    {of_w, product_stride()},
                                    {of_h, product_stride() * of_w}});
                    const std::int64_t outputs_h = layer.h.outputs(), outputs_w = layer.w.outputs(),
                                       q_h = outputs_h * (strip.first_tile + h.tile), q_w = outputs_w * w.tile,
                                       at = (q_h * h_.stride + layer.h.number) * y_h +
                                            (q_w * w_.stride + layer.w.number) * y_w;
                    Buffer<5> to(y + at * size_, type_of(geometry_.dtype),
                                 {{channels, 1},
                                  {w.outputs, w_.stride * y_w},
                                  {w.tiles, outputs_w * w_.stride * y_w},
                                  {h.outputs, h_.stride * y_h},
                                  {h.tiles, outputs_h * h_.stride * y_h}});
                    layer.output(&from.raw, &to.raw);
                }
            }
        });
    }

    std::int64_t positions(std::int64_t tiles) const { return images_ * tiles * w_.tiles; }
    std::int64_t rest_tiles() const { return h_.tiles % tiles_of_strip_; }
    std::int64_t entry_count() const { return h_.entry_count() * w_.entry_count(); }
    std::int64_t most_products() const { return h_.most_products() * w_.most_products(); } // of a layer
    std::uint64_t bytes_of_phase() const { return layer_bytes_ + product_bytes_; }

    std::int64_t size_;  // of an element of x, w and y
    WinogradAxis h_, w_; // outermost, innermost; of one axis, w_ does not exist
    WinogradInputFunction input_ = nullptr;
    std::int64_t tiles_of_strip_ = 1, strips_ = 1, images_ = 1; // tiles of h; strips of an image; images of a strip
    int phases_at_once_ = 1;    // phases of a shared strip that threads take whole; 1: they share each product
    std::vector<Layer> layers_; // one for each phase of h and, innermost, of w
    std::uint64_t transformed_bytes_ = 0, product_bytes_ = 0; // for a phase
};

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

} // namespace convtranspose
