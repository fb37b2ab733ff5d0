// Layers that kernels of their own layout serve badly are computed in the other layout: depthwise ones of many small planes,
// channels last with few outputs or many small groups, channels first with deep narrow images. x is transposed, the layer
// computed, and its y transposed back. If that takes much memory, it is done in blocks: some groups of an image, some images,
// or a strip of an image's outermost axis at a time. Each block is a layer of its own whose transposed tensors stay in cache.
// f16 and bf16 become f32 as they are transposed, unless kernels multiply bf16 as such.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "algorithms/composed_plan.h"
#include "base/division.h"
#include "base/error.h"
#include "base/half.h"
#include "direct/copy_box.h"
#include "kernel_contract/fetching.h"
#include "kernels/halide_buffer.h"
#include "kernels/kernel_tables.h"
#include "selection/candidates.h"

namespace convtranspose {

namespace {

constexpr std::uint64_t kMostBytesOfBoth = std::uint64_t{1} << 40; // x and y: sizes of blocks are computed in 64 bits
constexpr std::uint64_t kMostWorkspace = 128 << 20; // x and y of the blocks that are transposed at the same time
constexpr std::int64_t kFewSets = 4096; // planes of a multiple of so many bytes use few sets of the first-level cache
constexpr std::int64_t kOtherPages = 1024;      // bytes of a position, from which on the next is on another page
constexpr std::int64_t kBlockBytes = 256 << 10; // x and y of a block of groups, unless a vector takes more
// A strip, which reads all weights, has at most so many bytes of x and y, at least so many positions of x, and at least so many
// strides of y for each one that two strips both read.
constexpr std::int64_t kBytesOfStrip = 1 << 20, kPositionsOfStrip = 192, kHalosPerStrip = 8;

convt_layout other(convt_layout layout) {
    return layout == CONVT_CHANNELS_LAST ? CONVT_CHANNELS_FIRST : CONVT_CHANNELS_LAST;
}

// Returns how many channels are transposed at a time, along all positions of a strip, to a y with channels first that is far
// away. Writes to few channels are streams; those to all channels, a short run of each, are not.
std::int64_t channels_at_once(std::int64_t channels) {
    for (const std::int64_t few : {32, 48, 24, 40, 16})
        if (channels % few == 0) return few;
    return channels;
}

// Returns the time for an element relative to one of four bytes, which the fields of cost profiles are for.
double times_as_large(std::int64_t size) { return std::max(1.0, real(size) / 4); }

// Estimates the cycles to transpose x or y of a layer with that layout, or of a block of it.
double cycles_to_transpose(const Shape &shape, convt_layout layout, std::int64_t channels, std::int64_t size,
                           const CostProfile &profile, bool is_block) {
    const std::int64_t positions = volume(shape) / (shape[0] * channels);
    const double elements = real(volume(shape));
    const bool near = elements * real(size) <= profile.near;
    const double each = std::min(channels, positions) < kCopyTile ? profile.transposed_alone
                        : positions * size % kFewSets == 0        ? profile.transposed_from_few_sets
                        : near                                    ? profile.transposed
                                                                  : profile.transposed_far;
    const bool slower = !near && !is_block && layout == CONVT_CHANNELS_FIRST;
    return profile.per_transposition +
           each * elements * times_as_large(size) * (slower ? profile.far_transposition : 1);
}

// Returns true if a tensor is one of the other layout too, as it is with a single channel if what is innermost there has no
// gaps. *moved receives its strides in that layout.
bool is_in_both(std::int64_t channels, convt_layout other, const Strides &strides, Strides *moved) {
    if (channels != 1) return false;
    *moved = strides;
    move_channels(moved, other);
    if (other == CONVT_CHANNELS_LAST) *(moved->end() - 1) = 1; // the stride of the only channel
    return moved->back() == 1;
}

// Replaces weights of 16 bits by the same in f32, of so many bytes, in a block.
Status widen_weights(const void **data, convt_dtype from, std::uint64_t bytes, const Allocator &allocator,
                     Block *block) {
    if (!*data) return Status();
    TRY(get_block(allocator, bytes, "weights", block));
    widen(from, *data, static_cast<std::size_t>(bytes) / sizeof(float), static_cast<float *>(block->data()));
    *data = block->data();
    return Status();
}

} // namespace

class LayoutTranspose : public ComposedPlan {
  public:
    std::string summary() const override {
        const char *const layout = geometry_.layout == CONVT_CHANNELS_LAST ? "first" : "last";
        const std::string at_once = strips_ > 1         ? concat(", in ", strips_, " strips")
                                    : block_count() > 1 ? concat(", ", block_groups_, " groups at a time")
                                                        : "";
        return concat("as a layer with channels ", layout, at_once, ", x and y transposed (layout_transpose)");
    }

    Status build(const LayerWeights &weights) override {
        std::unique_ptr<LayerPlan> between; // the plan of a strip between the ends, whose weights all strips have
        if (strips_ > 1) TRY(plan_block(strips_ / 2, weights, &between));
        return add_blocks([&](std::int64_t i, std::unique_ptr<LayerPlan> *plan) {
            return between ? between->reshape(inner(i), settings_.parallel, plan) : plan_block(i, weights, plan);
        });
    }

    Status reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const override {
        std::unique_ptr<LayoutTranspose> own(new LayoutTranspose(problem.geometry, problem.settings, block_groups_));
        TRY(own->add_blocks([&](std::int64_t i, std::unique_ptr<LayerPlan> *plan) {
            const Block &from = blocks_[static_cast<std::size_t>(own->strips_ > 1 ? 0 : i)]; // of the same groups
            return from.plan->reshape(own->inner(i), own->settings_.parallel, plan);
        }));
        *made = std::move(own);
        return Status();
    }

    Status run(const RunTensors &t, char *workspace) const override {
        const std::int64_t blocks = block_count(), count = blocks * (geometry_.batch / images_);
        return for_each_task(count, workspace, [&](std::int64_t task, char *own_workspace) {
            return run_block(blocks_[static_cast<std::size_t>(task % blocks)], task / blocks, t, own_workspace);
        });
    }

  private:
    friend Proposer propose_layout_transpose;

    struct Block {
        const LayerPlan *plan; // in the other layout; blocks of one shape and the same weights share it
        std::int64_t first_group, x_begin, y_begin; // x_begin and y_begin: along the outermost axis
    };
    // A strip is a range of x and a range of y along the outermost axis. y_begin belongs to phase 0.
    struct Strip {
        std::int64_t x_begin = 0, x_end = 0, y_begin = 0, y_end = 0;
    };

    // block_groups: 0 for as many as groups_at_once() says.
    LayoutTranspose(const Geometry &geometry, const PlanSettings &settings, std::int64_t block_groups)
        : ComposedPlan(geometry, settings) {
        settings_.excluded |= bit_of(*find_algorithm("layout_transpose"));
        find_copies();
        block_groups_ = block_groups ? block_groups : groups_at_once();
        images_ = block_groups_ < geometry.group ? 1 : std::max<std::int64_t>(geometry.batch, 1);
        if (block_groups_ == geometry.group) plan_strips();
        const std::int64_t tasks = block_count() * (geometry.batch / images_);
        if (are_enough_for_each(tasks, threads_.threads)) take_whole_layers();
    }

    void find_copies() {
        const convt_dtype dtype = geometry_.dtype, y_dtype = geometry_.y_dtype;
        const Isa floats = isa_of_floats(settings_.isa);
        const auto copy_of_floats = [&](convt_dtype d) {
            return find_copy(floats, CopyOrder::kTransposed, Arithmetic::kFloat, d, 1);
        };
        dtype_ = dtype;
        if (dtype == CONVT_BF16)
            from_x_ = find_copy(settings_.isa, CopyOrder::kTransposed, Arithmetic::kBf16, dtype, 1);
        if (!from_x_.any) {
            dtype_ = sum_dtype(dtype);
            from_x_ = copy_of_floats(dtype);
        }
        y_dtype_ = dtype_ == dtype ? y_dtype : dtype_;
        to_y_ = y_dtype_ != y_dtype      ? find_rounder(floats, CopyOrder::kTransposed, y_dtype)
                : y_dtype_ == CONVT_BF16 ? from_x_
                                         : copy_of_floats(y_dtype);
    }

    // Returns the number of groups of a block: all, or as many as stay in cache, but at least those of a vector of channels.
    std::int64_t groups_at_once() const {
        const Geometry &g = geometry_;
        const std::int64_t size = size_of(dtype_);
        const std::int64_t bytes = (volume(g.x_shape) + volume(g.y_shape)) * size;
        if (bytes <= kBlockBytes) return g.group;
        const std::int64_t channels = std::max(g.in_channels_per_group(), g.out_channels_per_group()),
                           least = ceil_div(kCacheLine / size, channels), of_group = ceil_div(bytes, g.batch * g.group);
        const std::int64_t most = std::max(kBlockBytes / of_group / least, std::int64_t{1}) * least;
        const std::int64_t blocks = ceil_div(g.group, most);
        return std::min(ceil_div(ceil_div(g.group, blocks), least) * least, g.group);
    }

    // Plans blocks of all groups: several images if they are small, else strips of an image.
    void plan_strips() {
        if (geometry_.batch == 0) return;
        // If only x or only y is transposed, strips pay with channels first, where that tensor is a stream for each channel.
        const bool x_moves = geometry_.in_channels > 1, y_moves = geometry_.out_channels > 1;
        if (!(x_moves && y_moves) && (geometry_.layout == CONVT_CHANNELS_LAST || x_moves == y_moves)) return;
        const AxisGeometry &axis = geometry_.axes.front();
        const std::int64_t size = size_of(dtype_);
        const std::int64_t bytes = (volume(geometry_.x_shape) + volume(geometry_.y_shape)) / geometry_.batch * size,
                           all = ceil_div(axis.out, axis.stride);
        std::int64_t positions = 1; // positions of x for each one of the axis
        for (const AxisGeometry &a : geometry_.axes) positions *= &a == &axis ? 1 : std::max<std::int64_t>(a.in, 1);
        if (bytes <= kBytesOfStrip) {
            const std::int64_t of_image = positions * std::max<std::int64_t>(axis.in, 1); // x may be empty
            const std::int64_t wanted = std::max(kBytesOfStrip / bytes, ceil_div(kPositionsOfStrip, of_image));
            images_ = divisor_from(geometry_.batch, std::min(wanted, images_));
            return;
        }
        const std::int64_t halo = (axis.kernel - 1) * axis.dilation / axis.stride;
        const std::int64_t least =
            std::max({ceil_div(kPositionsOfStrip, positions), capped_product({halo, kHalosPerStrip}), std::int64_t{1}});
        const std::int64_t pairs = std::min(ceil_div(bytes, 2 * kBytesOfStrip), all / least / 2);
        if (pairs == 0) return;
        // Tiles of Winograd's algorithm have two positions.
        const EqualParts strips = even_strips(all, pairs, settings_.may_change_rounding ? 2 : 1);
        strip_q_ = strips.length;
        strips_ = strips.count;
        images_ = 1;
    }

    std::int64_t block_count() const { return strips_ * ceil_div(geometry_.group, block_groups_); }

    std::int64_t first_group(std::int64_t block) const { return strips_ > 1 ? 0 : block * block_groups_; }

    Strip strip(std::int64_t block) const {
        const AxisGeometry &axis = geometry_.axes.front();
        const std::int64_t begin = block * strip_q_ * axis.stride,
                           end = std::min(begin + strip_q_ * axis.stride, axis.out);
        const AxisGeometry::Inputs x = axis.read_by(begin, end);
        return {x.begin, x.end, begin, end};
    }

    // Returns the layer of a block, in the other layout.
    Geometry inner(std::int64_t block) const {
        Geometry g = geometry_;
        g.layout = other(geometry_.layout);
        g.dtype = g.w_dtype = g.b_dtype = dtype_;
        g.y_dtype = y_dtype_;
        g.group = std::min(block_groups_, geometry_.group - first_group(block));
        g.batch = images_;
        g.in_channels = g.group * geometry_.in_channels_per_group();
        g.out_channels = g.group * geometry_.out_channels_per_group();
        if (strips_ > 1) {
            const Strip own = strip(block);
            AxisGeometry &axis = g.axes.front();
            axis.in = own.x_end - own.x_begin;
            axis.out = own.y_end - own.y_begin;
            axis.pad_begin += own.y_begin - own.x_begin * axis.stride;
        }
        g.set_shapes();
        return g;
    }

    bool y_is_far() const { return real(geometry_.y_bytes()) > settings_.profile->near; }

    // Returns the bytes of what is transposed at the same time.
    std::uint64_t transposed_bytes() const {
        const Geometry block = inner(block_count() / 2);
        return static_cast<std::uint64_t>(workers_) * (block.x_bytes() + block.y_bytes());
    }

    double cycles_to_transpose_all() const {
        const std::int64_t blocks = block_count(), size = size_of(geometry_.dtype);
        const bool lines = blocks > 1 && geometry_.layout == CONVT_CHANNELS_LAST &&
                           geometry_.out_channels * size >= kOtherPages &&
                           real(geometry_.y_bytes()) >= settings_.profile->far_from;
        const bool far_strips = strips_ > 1 && y_is_far();
        const bool far_x = geometry_.in_channels > 1 && real(geometry_.x_bytes()) >= settings_.profile->far_copy_from;
        const auto of_block = [&](std::int64_t i) {
            const Geometry g = inner(i);
            const auto cycles = [&](const Shape &shape, std::int64_t channels) {
                if (channels == 1 && dtype_ == geometry_.dtype) return 0.0; // both layouts are the same
                return cycles_to_transpose(shape, geometry_.layout, channels, size, *settings_.profile, blocks > 1);
            };
            const auto elements = [&](const Shape &shape) { return real(volume(shape)) * times_as_large(size); };
            const double y_elements = elements(g.y_shape);
            const double of_y = far_strips ? settings_.profile->strip_to_far * y_elements
                                : lines    ? settings_.profile->transposed_to_lines * y_elements
                                           : cycles(g.y_shape, g.out_channels);
            const double of_x = far_x ? settings_.profile->transposed_from_far * elements(g.x_shape) : 0;
            return std::max(cycles(g.x_shape, g.in_channels), of_x) + of_y;
        };
        return of_blocks(of_block);
    }

    double cycles_of_layers() const {
        return of_blocks([&](std::int64_t i) { return LayerPlan::estimate(inner(i), settings_); });
    }

    // Adds up of_block() over all blocks and images. All blocks but the last are alike, except for what the first reads of x.
    template<typename OfBlock>
    double of_blocks(const OfBlock &of_block) const {
        const std::int64_t last = block_count() - 1, times = geometry_.batch / images_;
        const double alike = real(last), images = real(times);
        return images * ((last > 0 ? alike * of_block(last / 2) : 0) + of_block(last));
    }

    Status plan_block(std::int64_t block, const LayerWeights &weights, std::unique_ptr<LayerPlan> *plan) const {
        const Geometry geometry = inner(block);
        // Returns where the block's part of a tensor of weights begins. bytes: of the part.
        const auto part = [&](const void *data, std::uint64_t bytes) {
            const std::uint64_t groups_before = first_group(block);
            return data ? static_cast<const char *>(data) + groups_before * (bytes / geometry.group) : nullptr;
        };
        const Geometry &g = geometry_;
        LayerWeights own = {part(weights.w, volume(geometry.w_shape) * size_of(g.w_dtype)),
                            part(weights.b, geometry.out_channels * size_of(g.b_dtype))};
        convtranspose::Block w, b;
        if (dtype_ != g.dtype) {
            TRY(widen_weights(&own.w, g.w_dtype, geometry.w_bytes(), settings_.allocator, &w));
            TRY(widen_weights(&own.b, g.b_dtype, geometry.b_bytes(), settings_.allocator, &b));
        }
        if (!blocks_.empty() && geometry.group == block_groups_) return blocks_.front().plan->replan(own, plan);
        return LayerPlan::create(geometry, settings_, own, plan);
    }

    // Plans all blocks, by plan(block, &made). Only strips at the ends differ from the others.
    template<typename Plan>
    Status add_blocks(const Plan &plan) {
        for (std::int64_t i = 0; i < block_count(); i++) {
            const Strip own = strips_ > 1 ? strip(i) : Strip();
            Block block = {nullptr, first_group(i), own.x_begin, own.y_begin};
            if (strips_ > 1 && i > 0) {
                const AxisGeometry &before = blocks_.back().plan->geometry().axes.front(), axis = inner(i).axes.front();
                const bool alike = axis.in == before.in && axis.out == before.out && axis.pad_begin == before.pad_begin;
                if (alike) block.plan = blocks_.back().plan;
            }
            if (!block.plan) {
                std::unique_ptr<LayerPlan> made;
                TRY(plan(i, &made));
                block.plan = add_plan(std::move(made));
            }
            x_bytes_ = std::max(x_bytes_, round_up(block.plan->geometry().x_bytes()));
            y_bytes_ = std::max(y_bytes_, round_up(block.plan->geometry().y_bytes()));
            blocks_.push_back(block);
        }
        own_bytes_ = x_bytes_ + y_bytes_;
        return Status();
    }

    Status run_block(const Block &block, std::int64_t image, const RunTensors &t, char *workspace) const {
        const Geometry &inner = block.plan->geometry();
        const DimensionOrder at = geometry_.dimensions();
        const auto offset = [&](const Strides &strides, std::int64_t channels, std::int64_t begin,
                                convt_dtype dtype) { // channels: of a group
            return (image * images_ * strides[0] + block.first_group * channels * strides[at.channel] +
                    begin * strides[at.first_axis]) *
                   size_of(dtype);
        };
        char *const x = static_cast<char *>(t.x.data) +
                        offset(t.x.strides, geometry_.in_channels_per_group(), block.x_begin, geometry_.dtype);
        char *const y = static_cast<char *>(t.y.data) +
                        offset(t.y.strides, geometry_.out_channels_per_group(), block.y_begin, geometry_.y_dtype);
        char *const x_there = workspace + layer_bytes_, *const y_there = x_there + x_bytes_;

        RunTensors own;
        own.x.data = x;
        const bool x_in_both = dtype_ == geometry_.dtype &&
                               is_in_both(inner.in_channels, inner.layout, t.x.strides, &own.x.strides),
                   y_in_both = y_dtype_ == geometry_.y_dtype &&
                               is_in_both(inner.out_channels, inner.layout, t.y.strides, &own.y.strides);
        if (!x_in_both) {
            own.x.data = x_there;
            own.x.strides = dense_strides(inner.x_shape);
            Strides extents(inner.x_shape.size()); // Strides allocate nothing
            std::copy(inner.x_shape.begin(), inner.x_shape.end(), extents.begin());
            move_channels(&extents, geometry_.layout);
            transpose(from_x_, extents.data(), geometry_.layout, {x, type_of(geometry_.dtype)}, t.x.strides,
                      {x_there, type_of(dtype_)}, own.x.strides);
        }
        own.y.data = y;
        if (!y_in_both) {
            own.y.data = y_there;
            own.y.strides = dense_strides(inner.y_shape);
        }
        TRY(block.plan->run(own, workspace));
        if (!y_in_both)
            transpose(to_y_, inner.y_shape.data(), inner.layout, {y_there, type_of(y_dtype_)}, own.y.strides,
                      {y, type_of(geometry_.y_dtype)}, t.y.strides);
        return Status();
    }

    // Transposes a tensor. shape and from_strides are in from_layout, to_strides in the other layout.
    void transpose(const Copier &copy, const std::int64_t *shape, convt_layout from_layout,
                   const Typed<const void> &from, const Strides &from_strides, const Typed<void> &to,
                   const Strides &to_strides) const {
        using Axis = CopyBox::Axis;
        const bool from_last = from_layout == CONVT_CHANNELS_LAST, to_y = from_layout != geometry_.layout;
        const DimensionOrder at = dimension_order(from_layout, from_strides.size()),
                             to_at = dimension_order(other(from_layout), to_strides.size());
        const auto axis = [&](std::size_t i, std::size_t j) { return Axis{shape[i], from_strides[i], to_strides[j]}; };
        const Axis n = axis(0, 0), channels = axis(at.channel, to_at.channel);
        std::array<Axis, 3> axes; // w, h, d
        for (std::size_t a = 0; a + 2 < from_strides.size(); a++) axes[a] = axis(at.last_axis - a, to_at.last_axis - a);
        for (int a = 0; a < 2; a++) { // rows without gaps between them are joined
            Axis &w = axes[0], &h = axes[1];
            if (h.extent == 1 || (h.from == w.from * w.extent && h.to == w.to * w.extent)) {
                w.extent *= h.extent;
                h = std::exchange(axes[2], Axis());
            }
        }
        // The copy is dense along the copy kernel's w, and x along its c1.
        const Axis &dense_to = from_last ? axes[0] : channels, &dense_from = from_last ? channels : axes[0];
        CopyBox box = {{Axis(), dense_to, axes[1], axes[2], dense_from, Axis(), n}};
        const std::uint64_t of_x = geometry_.layout == CONVT_CHANNELS_FIRST ? geometry_.x_bytes() : x_bytes_,
                            of_y = geometry_.layout == CONVT_CHANNELS_FIRST ? geometry_.y_bytes() : y_bytes_;
        (from_last ? box.fetches_to : box.fetches_from) = fetches_copied(to_y ? of_y : of_x, channels.extent);
        if (to_y && from_last && y_is_far()) {
            const std::int64_t few = channels_at_once(channels.extent);
            box.axes[4].extent = few;
            box.axes[5] = {channels.extent / few, few * channels.from, few * channels.to};
        }
        run_copy(copy, box, from, to, {}, settings_.parallel);
    }

    std::int64_t block_groups_ = 0, images_ = 1; // groups and images of a block
    std::int64_t strips_ = 1, strip_q_ = 0; // strips of an image; strides of y in a strip, along the outermost axis
    convt_dtype dtype_ = CONVT_F32, y_dtype_ = CONVT_F32; // of the layers
    Copier from_x_, to_y_;
    std::vector<Block> blocks_;
    std::uint64_t x_bytes_ = 0, y_bytes_ = 0; // for each worker
};

std::unique_ptr<AlgorithmPlan> propose_layout_transpose(const AlgorithmProblem &problem, UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    const bool supported =
        supports({{problem.constant_weights, kNeedsConstantWeights},
                  {!geometry.quantized(), kNeedsFloats},
                  {!sums_in_f16(problem), "sums in f16 are asked for"},
                  {geometry.y_order == YOrder::kLayout, "y is of an order of its own"},
                  {geometry.axes.size() <= 3, kNeedsThreeAxes},
                  {has_elements(geometry), kNeedsElements},
                  {geometry.x_bytes() + geometry.y_bytes() <= kMostBytesOfBoth, "x and y are too large"}},
                 why);
    if (!supported) return nullptr;
    std::unique_ptr<LayoutTranspose> own(new LayoutTranspose(geometry, problem.settings, 0));
    if (!supports({{own->from_x_.any && own->to_y_.any, "no kernel that transposes is built in"},
                   {own->transposed_bytes() <= kMostWorkspace,
                    "x and y cannot be transposed in blocks that are small enough"}},
                  why))
        return nullptr;
    const double transposing = own->cycles_to_transpose_all();
    if (!supports({{transposing < problem.limit, "transposing alone is estimated to take longer"}}, why))
        return nullptr;
    own->estimate({own->cycles_of_layers(), transposing});
    return own;
}

} // namespace convtranspose
