// The AOT generator: one pipeline of the algorithm with one schedule. kernels/table.py lists those that are built.
// Compiled once for each family, CONVTRANSPOSE_FAMILY, so that a changed schedule rebuilds its own variants only.
#include <Halide.h>

#include "built_in.h"
#include "conv_transpose.h"
#include "kernel_contract/kernel_traits.h"
#include "llvm_options.h"
#include "schedule.h"

namespace convtranspose {

using namespace Halide;

namespace { // one program may hold this class once for each family

class ConvTransposeGenerator : public Generator<ConvTransposeGenerator> {
  public:
    static constexpr const ScheduleFamily &family = CONVTRANSPOSE_FAMILY;

    GeneratorParam<OutputOrder> output_order{"output_order", OutputOrder::kChannels, by_name(kOutputOrders)};
    GeneratorParam<Arithmetic> arithmetic{"arithmetic", Arithmetic::kFloat, by_name(kArithmetics)};
    GeneratorParam<Type> x_type{"x_type", Float(32)}; // kFloat only
    GeneratorParam<Type> y_type{"y_type", Float(32)};
    GeneratorParam<int> stride_w{"stride_w", 0};
    GeneratorParam<int> stride_h{"stride_h", 0};
    GeneratorParam<int> tile_oc{"tile_oc", 1};
    GeneratorParam<int> tile_q{"tile_q", 1};
    GeneratorParam<int> tile_qh{"tile_qh", 1};

    // The parts of a layer that are built into a kernel for it alone (kernel_contract/kernel_table.h: BuiltIn); 0, or nothing, is known at run
    // time only.
    GeneratorParam<int> ic{"ic", 0}, oc{"oc", 0};             // channels per group
    GeneratorParam<int> out_w{"out_w", 0}, out_h{"out_h", 0}; // extents of y along axes whose stride is built in
    GeneratorParam<int> count_w{"count_w", 0}, count_h{"count_h", 0}, count_d{"count_d", 0}; // built_in.h
    GeneratorParam<std::string> table_w{"table_w", ""}, table_h{"table_h", ""}, table_d{"table_d", ""};
    // The loops of such a kernel (schedule.h: Loops).
    GeneratorParam<int> unrolled_axes{"unrolled_axes", 0}, unrolled_ic{"unrolled_ic", 1};
    GeneratorParam<bool> tap_offset_order{"tap_offset_order", false}, x_stays{"x_stays", false};

    Input<Buffer<void, -1>> x{"x"};             // ([ib,] iw, ih, id, ic, g, n)
    Input<Buffer<void, -1>> w{"w"};             // ([ib,] oi, ic, tap w, tap h, tap d, oo, g)
    Input<Buffer<void, -1>> bias{"bias"};       // (oc padded to whole tiles, g[, class w, class h, class d])
    Input<Buffer<float, 3>> factors{"factors"}; // (oc padded likewise, FactorColumn, g); integers and s8 weights only
    Input<Buffer<int32_t, 2>> taps_w{"taps_w"}, taps_h{"taps_h"}, taps_d{"taps_d"};
    Input<int32_t> step_w{"step_w"}, step_h{"step_h"}, step_d{"step_d"};
    Input<int32_t> max_count_w{"max_count_w"}, max_count_h{"max_count_h"}, max_count_d{"max_count_d"};
    // TapOrder::kShared: the offsets that every phase has a tap for. TapOrder::kSideBySide: shared_first_w is the phase from which
    // offsets are one more.
    Input<int32_t> shared_first_w{"shared_first_w"}, shared_count_w{"shared_count_w"};
    Input<int32_t> shared_first_h{"shared_first_h"}, shared_count_h{"shared_count_h"};
    Input<int32_t> y_zero_point{"y_zero_point"}; // integers only, as are the bounds
    Input<float> y_min{"y_min"}, y_max{"y_max"};
    Output<Buffer<void, -1>> y{"y"};

    void configure() {
        switch (arithmetic) {
        case Arithmetic::kFloat:
            x.set_type(x_type);
            w.set_type(sum_of(y_type));
            bias.set_type(sum_of(y_type));
            break;
        case Arithmetic::kHalf:
            x.set_type(Float(16));
            w.set_type(Float(16));
            bias.set_type(Float(16));
            break;
        case Arithmetic::kBf16:
            x.set_type(BFloat(16));
            w.set_type(BFloat(16));
            bias.set_type(Float(32));
            break;
        case Arithmetic::kInt8:
            x.set_type(byte_x_type(get_target()));
            w.set_type(Int(8));
            bias.set_type(Int(32));
            break;
        case Arithmetic::kInt16:
            x.set_type(Int(16));
            w.set_type(Int(16));
            bias.set_type(Int(32));
            break;
        case Arithmetic::kF16Weights:
        case Arithmetic::kBf16Weights:
        case Arithmetic::kS8Weights:
            x.set_type(Float(32));
            w.set_type(arithmetic == Arithmetic::kF16Weights    ? Float(16)
                       : arithmetic == Arithmetic::kBf16Weights ? BFloat(16)
                                                                : Int(8));
            bias.set_type(Float(32));
            break;
        }
        x.set_dimensions(6 + first());
        w.set_dimensions(7 + first());
        bias.set_dimensions(is_float(arithmetic) ? 2 : 5);
        y.set_type(y_type);
        y.set_dimensions(9 - (stride_w > 0) - (stride_h > 0));
    }

    void generate() {
        ConvTransposeInputs in;
        in.x = x;
        in.w = packed_w();
        in.bias = bias;
        const auto axis = [&](const Func &taps, const Expr &step, const Expr &max_count, int i) {
            return Axis{taps,
                        step,
                        max_count,
                        w.dim(first() + 2 + i).extent(),
                        x.dim(first() + i).min(),
                        x.dim(first() + i).extent(),
                        family.outside,
                        0,
                        family.tap_order,
                        Expr(),
                        Expr(),
                        Expr(),
                        Expr(),
                        Expr(),
                        false};
        };
        in.axes = {axis(taps_w, step_w, max_count_w, 0), axis(taps_h, step_h, max_count_h, 1),
                   axis(taps_d, step_d, max_count_d, 2)};
        in.axes[0].stride = stride_w;
        in.axes[1].stride = stride_h;
        in.axes[2].order = TapOrder::kPerPhase;
        in.axes[0].shared_first = shared_first_w;
        in.axes[0].shared_count = shared_count_w;
        if (has_vectors_of_phases(traits())) {
            in.axes[0].order = TapOrder::kSideBySide;
            in.axes[0].turn = shared_first_w;
        }
        in.axes[1].shared_first = shared_first_h;
        in.axes[1].shared_count = shared_count_h;
        for (int a = 0; a < 3 && !is_float(arithmetic); a++) {
            in.classes[a] = bias.dim(2 + a).extent();
        }
        const Expr blocks = x.dim(first() + 3).extent();
        in.ic_extent = is_depthwise() ? Expr(1)
                       : ic > 0       ? Expr((ic + block() - 1) / block())
                                      : blocks / blocks_at_once(family.family) * blocks_at_once(family.family);
        in.bias_last = family.bias_last;
        // LLVM interleaves four phases by two shuffles a vector, but eight by six unless they are halved, by three. Kernels by
        // offset have little else to do.
        in.halves_rows = masked_rows() && tap_offset_order && stride_w == 8;
        built_in_ = {read_built_in_taps("table_w", table_w, count_w, stride_w),
                     read_built_in_taps("table_h", table_h, count_h, stride_h),
                     read_built_in_taps("table_d", table_d, count_d, 0)};
        check(built_in_);
        for (int a = 0; a < 3; a++) {
            build_in(built_in_[a], &in.axes[a]);
            if (skips_outside(traits(), a)) {
                in.axes[a].outside = Outside::kSkipped;
            }
            if (tap_offset_order && a < 2) {
                in.axes[a].order = TapOrder::kTapOffset;
            }
        }
        in.block = block();
        in.oc_tile = tile_oc;
        in.numerics = {arithmetic, sum_of(y_type), y_type,  factors,        y_zero_point,
                       y_min,      y_max,          nullptr, narrows_first()};
        c_ = conv_transpose(in);
        y = c_.y;
    }

    void schedule() {
        // Integers are summed in 32 bits, whatever the reference takes to be sure.
        const Type summed = is_float(arithmetic) ? sum_of(y_type) : Type(Int(32));
        const int lanes = facts_of(isa()).vector_bytes / summed.bytes();
        const Loops loops{unrolled_axes,         unrolled_ic,
                          tap_offset_order,      x_stays,
                          whole(oc, tile_oc),    whole(out_w, int(stride_w) * int(tile_q)),
                          whole(out_h, stride_h)};
        const bool by_element = multiplies_by_element(isa()) && !is_depthwise() && unrolled_axes == 0 &&
                                unrolled_ic == 1 && !tap_offset_order;
        const Tile tile{tile_oc,       tile_q,     tile_qh,       lanes, has_masked_stores(isa()),
                        masked_rows(), by_element, is_x86(isa()), loops};
        set_bounds();
        set_strides();
        family.schedule(c_, tile, output_order);
        if (family.branches_at_last_tiles && family.branches_at_last_tiles(c_, tile, output_order)) {
            branch_at_last_tiles(c_, get_pipeline());
        }
        if (family.lowering_passes) {
            const auto name = [](const ImageParam &input) { return input.name(); };
            const InputNames inputs{name(x), name(w), {name(taps_w), name(taps_h), name(taps_d)}};
            add_passes(family.lowering_passes(c_, tile, output_order, inputs), get_pipeline());
        }
        if (family.keeps_addresses && family.keeps_addresses(c_, tile, output_order)) {
            add_llvm_option("-disable-lsr"); // its pass of loop strength reduction
        }
    }

  private:
    // Sets the bounds of inputs and outputs.
    void set_bounds() {
        for (int i = 0; i < w.dimensions(); i++) {
            w.dim(i).set_min(0);
        }
        for (auto *taps : {&taps_w, &taps_h, &taps_d}) {
            taps->dim(0).set_min(0).set_stride(kTapColumns);
            taps->dim(1).set_min(0).set_stride(1);
        }
        if (first()) {
            x.dim(0).set_bounds(0, block());
            w.dim(0).set_extent(w_block());
        }
        w.dim(first()).set_extent(tile_oc);
        bias.dim(0).set_min(0);
        for (int i = 0; i < y.dimensions(); i++) {
            y.dim(i).set_min(0);
        }
        const int strides[3] = {stride_w, stride_h, 0};
        for (int a = 0, i = 1; a < 3; a++) { // dimension i: o, or q and r
            const auto phases = static_cast<int>(built_in_[a].table.size());
            if (strides[a] == 0 && phases > 0) {
                y.dim(i + 1).set_bounds(0, phases);
            }
            i += strides[a] == 0 ? 2 : 1;
        }
    }

    // States which dimensions are dense. The reference takes any strides.
    void set_strides() {
        const int f = first();
        x.dim(0).set_stride(Expr());
        y.dim(0).set_stride(Expr());
        if (is_depthwise() && output_order == OutputOrder::kChannels) {
            x.dim(f + 4).set_stride(block());
            w.dim(f).set_stride(Expr());
            w.dim(f + 6).set_stride(block());
            if (f) {
                x.dim(0).set_stride(1);
                w.dim(0).set_stride(1);
            }
            bias.dim(0).set_stride(Expr());
            bias.dim(1).set_stride(1);
            factors.dim(0).set_stride(Expr());
            factors.dim(2).set_stride(1);
            y.dim(y.dimensions() - 2).set_stride(1);
        } else if (family.outside == Outside::kNeverReads) {
            x.dim(0).set_stride(reads_any_strides(traits()) ? Expr() : Expr(1));
            if (has_taps_inside(traits())) {
                set_strides_of_taps_inside();
            } else {
                w.dim(f + 1).set_stride(w_block() * tile_oc);
                set_tap_strides();
            }
            if (f) {
                w.dim(1).set_stride(w_block());
                x.dim(reads_blocks_of_channels(traits()) ? 4 : 1).set_stride(block());
            }
            y.dim(output_order == OutputOrder::kChannels ? 0 : 1)
                .set_stride(output_order == OutputOrder::kPlanar && stride_w == 0 ? Expr() : Expr(1));
            if (has_vectors_of_phases(traits())) {
                w.dim(f + 2).set_stride(1);
                y.dim(2).set_stride(1);
            }
        }
    }

    Isa isa() const { return isa_of(get_target()); }
    bool is_depthwise() const { return family.family == Family::kDepthwise; }

    // Known once the taps that are built in have been read.
    KernelTraits traits() const {
        KernelTraits k;
        k.isa = isa();
        k.family = family.family;
        k.output_order = output_order;
        k.arithmetic = arithmetic;
        k.stride_w = stride_w;
        k.tile_q = tile_q;
        k.tile_qh = tile_qh;
        for (int a = 0; a < 3; a++) {
            k.knows_taps[a] = !built_in_[a].table.empty();
            k.knows_counts[a] = built_in_[a].knows_counts();
        }
        return k;
    }

    int block() const { return block_of(traits()); }
    int w_block() const { return block_of_weights(traits()); }

    // Where several vectors of sums make one of bytes, it takes fewer instructions to add to the bytes; elsewhere LLVM narrows better
    // what has been added to. Measurements: docs/measurements/2026-11-29-depthwise-bytes.md.
    bool narrows_first() const { return output_order == OutputOrder::kPlanar ? stride_w == 2 : is_depthwise(); }

    // See Tile.
    bool masked_rows() const { return has_masked_stores(isa(), Type(y_type).bytes()); }

    // The weights in the blocks of x.
    Func packed_w() {
        if (arithmetic == Arithmetic::kS8Weights) {
            return scaled_w();
        }
        if (w_block() == block()) {
            return w;
        }
        std::vector<Var> args(static_cast<std::size_t>(w.dimensions())); // (ib, oi, ic, ...)
        std::vector<Expr> at(args.begin(), args.end());
        at[0] = args[0] + block() * (args[2] % blocks_at_once(family.family));
        at[2] = args[2] / blocks_at_once(family.family);
        Func blocks("w_in_blocks");
        blocks(args) = w(at);
        return blocks;
    }

    // The weights times the factors of their output channels.
    Func scaled_w() {
        Func scaled("scaled_w");
        std::vector<Var> at(static_cast<std::size_t>(w.dimensions())); // (oi, ..., oo, g)
        scaled(at) =
            cast<float>(w(std::vector<Expr>(at.begin(), at.end()))) * factors(at[5] * tile_oc + at[0], kFactor, at[6]);
        return scaled;
    }

    // The dimensions of x and w in front of the others: one within a block, if there are blocks.
    int first() const { return block() > 1 ? 1 : 0; }

    // Sets the strides of the packed weights ([oc tile][taps d][taps h][taps w][ic][oc in tile]), as far as they follow from what is
    // built in.
    void set_tap_strides() {
        if (ic == 0) {
            return;
        }
        int stride = (ic + block() - 1) / block() * block() * tile_oc;
        for (int a = 0; a < 3; a++) {
            w.dim(first() + 2 + a).set_stride(stride);
            if (built_in_[a].table.empty()) {
                return;
            }
            stride *= built_in_[a].kernel();
        }
    }

    // Likewise for weights packed as [oc tile][taps d][ic][taps h][taps w][oc in tile] (kernel_traits.h: has_taps_inside).
    void set_strides_of_taps_inside() {
        const int tap = w_block() * tile_oc, row = tap * built_in_[0].kernel();
        w.dim(first() + 2).set_stride(tap);
        w.dim(first() + 3).set_stride(row);
        w.dim(first() + 1).set_stride(row * built_in_[1].kernel());
    }

    // True if a number is built in and made up of such parts.
    static bool whole(int number, int part) { return number > 0 && number % part == 0; }

    // Ends with a message if the parameters contradict each other.
    void check(const std::array<BuiltInTaps, 3> &axes) const {
        const bool anything = ic || oc || out_w || out_h || axes[0].knows_counts() || axes[1].knows_counts() ||
                              axes[2].knows_counts() || unrolled_axes || unrolled_ic != 1 || tap_offset_order ||
                              x_stays;
        const auto rule = [](bool holds, const char *text) { _halide_user_assert(holds) << text << "\n"; };
        const bool matrices = family.family == Family::kAmx;
        rule(!matrices || arithmetic == Arithmetic::kBf16 || arithmetic == Arithmetic::kInt8,
             "matrices are of bf16 or int8");
        rule(!anything || !matrices, "matrices have no layer built in");
        rule(!anything || family.outside == Outside::kNeverReads, "the reference has no layer built in");
        rule(ic >= 0 && oc >= 0 && out_w >= 0 && out_h >= 0, "an extent is negative");
        rule(out_w == 0 || stride_w > 0, "out_w is for a stride of w that is built in");
        rule(out_h == 0 || stride_h > 0, "out_h is for a stride of h that is built in");
        rule(tile_oc == 1 || !is_depthwise() || output_order == OutputOrder::kChannels,
             "planar depthwise has tiles of one output channel per group");
        rule(ic <= 1 || !is_depthwise(), "depthwise has one input channel per group");
        rule(!has_vectors_of_phases(traits()) || (is_float(arithmetic) && tile_qh == 1 && axes[0].table.empty()),
             "planar depthwise for any stride is of floats and single rows, and has no table of w built in");
        rule(!pairs_taps(traits()) || !anything, "taps in pairs cannot be built in");
        rule(unrolled_axes >= 0 && unrolled_axes <= 3, "unrolled_axes is 0 to 3");
        for (int a = 0; a < unrolled_axes; a++) {
            rule(axes[a].knows_counts(), "taps of an axis are unrolled whose number is not built in");
        }
        rule(unrolled_ic >= 1, "unrolled_ic is at least 1");
        rule(unrolled_ic == 1 || whole((ic + block() - 1) / block(), unrolled_ic),
             "unrolled_ic must divide ic (or the blocks that it makes)");
        rule(!x_stays || family.family == Family::kOcVectorized, "x_stays is for oc_vectorized");
        rule(!tap_offset_order || holds_phases(traits()), "tap_offset_order is for small_oc and planar depthwise");
        rule(tap_offset_order || !has_tap_offset_order(traits()),
             "with the taps of w and h built in, it goes tap_offset_order");
        rule(!holds_phases(traits()) || stride_h == 0 || !is_depthwise() || tap_offset_order,
             "depthwise: stride_h is for tap_offset_order");
        rule(family.family != Family::kSmallOc || tap_offset_order || (unrolled_axes == 0 && unrolled_ic == 1),
             "small_oc unrolls with tap_offset_order only");
        if (tap_offset_order) {
            rule(stride_w > 0 && !axes[0].table.empty() && !axes[1].table.empty() && unrolled_axes >= 2,
                 "tap_offset_order needs stride_w, table_w, table_h, unrolled_axes=2");
            rule(tile_qh == 1 || stride_h == 0, "tap_offset_order needs tile_qh=1 or stride_h=0");
        }
    }

    Type sum_of(const Type &y_storage) const {
        if (arithmetic == Arithmetic::kFloat) {
            return sum_type(y_storage);
        }
        if (arithmetic == Arithmetic::kHalf) {
            return Float(16);
        }
        if (arithmetic == Arithmetic::kBf16 || has_light_weights(arithmetic)) {
            return Float(32);
        }
        return Int(family.outside == Outside::kSkipped ? 64 : 32); // the reference is for sums of any size
    }

    ConvTranspose c_;
    std::array<BuiltInTaps, 3> built_in_; // w, h, d
};

} // namespace

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::ConvTransposeGenerator, CONVTRANSPOSE_GENERATOR)
