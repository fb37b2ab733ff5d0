#include "algorithms/col2im/col2im.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/division.h"
#include "base/error.h"
#include "base/half.h"
#include "kernel_contract/fetching.h"

namespace convtranspose {

namespace {

// The columns of a strip have so many bytes, to stay in the second-level cache. There are fewer in the order of y, as x then
// comes from further away.
constexpr std::int64_t kStripBytes = 1 << 20, kStripBytesInOrder = 256 << 10;
constexpr std::int64_t kMostBytes = 4 << 20;     // limit for the columns of a strip, kept rows included
constexpr std::int64_t kMostPositions = 1 << 16; // positions of y along h or d, each a row of a table
constexpr std::int64_t kMostRunBytes = 1 << 16;  // limit for the elements of y between two positions
// A thread's part of y is several times as long as what two parts both read, and has so many positions of x at least.
constexpr std::int64_t kHalosPerPart = 4, kLeastPositions = 128;

} // namespace

Col2im::Col2im(const Geometry &geometry, const PlanSettings &settings, bool planar)
    : ComposedPlan(geometry, settings), sum_dtype_(sum_dtype(geometry.y_dtype)), size_(size_of(sum_dtype_)),
      planar_(planar) {
    axes_ = spatial_problem(geometry, geometry.y_dtype, false).plan;
    const std::int64_t stride = planar ? geometry.axes.back().stride : 0;
    const OutputOrder output_order = planar ? OutputOrder::kPlanar : OutputOrder::kChannels;
    const KernelTable &table = convt_float_kernels;
    const auto rank = [&](const Col2imVariant &v) { return std::pair(v.stride_w == stride, v.vectors); };
    for (std::size_t i = 0; i < table.col2im_count; i++) {
        const Col2imVariant &v = table.col2im[i];
        const bool fits = v.isa == isa_of_floats(settings.isa) && v.dtype == geometry.y_dtype &&
                          v.output_order == output_order && (v.stride_w == stride || v.stride_w == 0) &&
                          (v.vectors == 1 || takes_vectors(v));
        if (fits && (!kernel_ || rank(v) > rank(*kernel_))) kernel_ = &v;
    }
}

// Returns true if rows are dense and long enough for a kernel that adds up several vectors at once
// (docs/measurements/2026-11-26-algorithms.md).
bool Col2im::takes_vectors(const Col2imVariant &v) const {
    const bool are_dense = geometry_.layout == CONVT_CHANNELS_FIRST || geometry_.out_channels == 1;
    return are_dense && (v.stride_w != 0 || axes_[0].geometry.stride == 1) && 2 * axes_[0].q_extent() > v.lanes;
}

std::int64_t Col2im::read_past() const {
    if (planar_) return 0;
    const AxisGeometry &w = axes_[0].geometry;
    return ceil_div(w.kernel, w.stride) * run() - w.kernel * geometry_.out_channels;
}

// Strips of col2im are no even_strips(): a part's strips are computed in turn, each keeping rows of the one before it.
void Col2im::plan_strips() {
    strip_axis_ = axes_[2].geometry.in > 1 ? 2 : axes_[1].geometry.in > 1 ? 1 : 0;
    row_ = 1;
    for (std::size_t a = 0; a < strip_axis_; a++) row_ *= axes_[a].geometry.in;
    const AxisPlan &axis = axes_[strip_axis_];
    parts_.clear();
    parts_.push_back(part_of(0, axis.q_extent()));
    const std::int64_t rows = parts_[0].rows_end - parts_[0].rows_begin;
    const std::int64_t row_bytes = capped_product({row_, elements(), size_}),
                       strip_bytes = planar_ ? kStripBytes : kStripBytesInOrder;
    images_ = 1;
    kept_rows_ = 0;
    strip_rows_ = std::max<std::int64_t>(rows, 1);
    if (capped_product({strip_rows_, row_bytes}) <= strip_bytes) {
        // As many images are computed at a time as fit, a divisor of the batch; 1 if the batch is empty.
        images_ = divisor_up_to(std::max<std::int64_t>(geometry_.batch, 1),
                                strip_bytes / std::max<std::int64_t>(strip_rows_ * row_bytes, 1));
        return;
    }
    kept_rows_ = std::min(std::max<std::int64_t>(axis.high - axis.low - 1, 0), rows);
    // The rows that are kept are moved, so at least as many rows are new.
    strip_rows_ = std::max({strip_bytes / row_bytes - kept_rows_, kept_rows_, std::int64_t{1}});
    if (strip_axis_ == 0 && strip_rows_ > kCacheLine) strip_rows_ -= strip_rows_ % kCacheLine;
    strip_rows_ = std::clamp<std::int64_t>(rows, 1, strip_rows_); // no rows: no output meets x
}

Col2im::Part Col2im::part_of(std::int64_t q_begin, std::int64_t q_end) const {
    const AxisPlan &axis = axes_[strip_axis_];
    Part part = {q_begin, q_end, 0, 0, nullptr};
    const std::int64_t in = volume(geometry_.x_shape) > 0 ? axis.geometry.in : 0; // no row of an empty x may be read
    part.rows_begin = std::clamp<std::int64_t>(q_begin + axis.low, 0, in);
    part.rows_end = std::clamp<std::int64_t>(q_end - 1 + axis.high, part.rows_begin, in);
    return part;
}

// Divides y into parts for threads. Weights must be constant, as each part would pack those of a run.
void Col2im::plan_parts() {
    const std::int64_t threads = threads_.threads, groups = geometry_.batch / images_;
    if (threads <= 1) return;
    if (!are_enough_for_each(groups, threads)) {
        // Rows that two parts both read are computed twice.
        const AxisPlan &axis = axes_[strip_axis_];
        const std::int64_t unit = strip_axis_ == 0 ? kernel_->lanes : 1, units = axis.q_extent() / unit,
                           each = units / threads * unit, halo = std::max<std::int64_t>(axis.high - axis.low - 1, 0);
        if (each < kHalosPerPart * halo || each * row_ < kLeastPositions) return;
        parts_.clear();
        std::int64_t most = 1;
        for (std::int64_t i = 0; i < threads; i++) {
            const std::int64_t end = i + 1 == threads ? axis.q_extent() : units * (i + 1) / threads * unit;
            parts_.push_back(part_of(units * i / threads * unit, end));
            most = std::max(most, parts_.back().rows_end - parts_.back().rows_begin);
        }
        strip_rows_ = std::min(strip_rows_, most);
    }
    take_whole_layers();
}

std::int64_t Col2im::strips() const {
    std::int64_t strips = 0;
    for (const Part &part : parts_)
        strips += std::max<std::int64_t>(ceil_div(part.rows_end - part.rows_begin, strip_rows_), 1);
    return strips * (geometry_.batch / images_);
}

Geometry Col2im::product(std::int64_t positions) const {
    Geometry g = row_of(geometry_, positions);
    g.y_order = planar_ ? YOrder::kPlanar : YOrder::kChannels;
    g.has_bias = false;
    g.batch = images_;
    g.y_dtype = sum_dtype_;
    g.out_channels = elements();
    g.set_shapes();
    g.x_part_of_bytes = std::max(geometry_.x_part_of_bytes, static_cast<std::int64_t>(geometry_.x_bytes()));
    return g;
}

EstimatedCycles Col2im::estimated(bool weights_at_run_time) const {
    const CostProfile &profile = *settings_.profile;
    const double strips_of_all = real(strips());
    const double strips_of_image = strips_of_all * real(images_) / real(geometry_.batch);
    const double rows = real(parts_[0].rows_end - parts_[0].rows_begin);
    const double multiply = least_cost(product(std::max<std::int64_t>(strip_rows_, 1) * row_), settings_.isa, profile) *
                            rows / real(strip_rows_) * strips_of_all / strips_of_image;
    const double rows_moved = strips_of_image > 1 ? strips_of_all * real(kept_rows_) : 0,
                 moved = rows_moved * real(row_ * elements() * images_);
    const double weights = real(geometry_.in_channels_per_group() * elements()), weight_bytes = weights * real(size_);
    const double far = weight_bytes > profile.near ? strips_of_all * weight_bytes / profile.col2im_weights : 0;
    // Each strip packs the weights of a run, which all other candidates do once.
    const double packing = weights_at_run_time ? (strips_of_all - 1) * weights * profile.col2im_run_weight : 0;
    return {multiply, far + packing + (planar_ ? cycles_to_add_planes() : cycles_to_add_runs()) +
                          moved * 2 / kernel_->lanes + strips_of_all * profile.col2im_strip};
}

std::string Col2im::summary() const {
    return concat("kernel elements as output channels of a matrix product, added up (col2im), in ", strips(), " strips",
                  planar_ ? "" : ", positions outermost");
}

std::unique_ptr<AlgorithmPlan> propose_col2im(const AlgorithmProblem &problem, UnsupportedReason *why) {
    const Geometry &geometry = problem.geometry;
    bool product = true; // true: it is a matrix product as it is
    for (const AxisGeometry &axis : geometry.axes) product = product && axis.kernel == 1 && axis.stride == 1;
    const bool supported = supports({{!geometry.quantized(), kNeedsFloats},
                                     {!sums_in_f16(problem), "sums in f16 are asked for"},
                                     {geometry.axes.size() <= 3, kNeedsThreeAxes},
                                     {has_elements(geometry), kNeedsElements},
                                     {!product, "it is a matrix product as it is"}},
                                    why);
    if (!supported) return nullptr;
    *why = {"no kernel that adds up columns is built in"};
    const bool may_be_in_order_of_y = problem.constant_weights && geometry.layout == CONVT_CHANNELS_LAST &&
                                      geometry.y_channels_last() && geometry.group == 1 &&
                                      geometry.axes.back().dilation == 1;
    std::unique_ptr<Col2im> best;
    for (const bool planar : {true, false}) {
        if (!planar && !may_be_in_order_of_y) continue;
        std::unique_ptr<Col2im> own(new Col2im(geometry, problem.settings, planar));
        if (!own->kernel_) continue;
        own->plan_strips();
        *why = {"the columns of a strip do not fit in the cache"};
        if (!own->may_hold()) continue;
        own->estimate(own->estimated(!problem.constant_weights));
        if (!best || own->cycles() < best->cycles()) best = std::move(own);
    }
    return best;
}

Status Col2im::build(const LayerWeights &weights) {
    if (weights.w) plan_parts();
    Block ordered;
    const void *w = weights.w;
    if (w && !planar_) {
        TRY(get_block(settings_.allocator, geometry_.w_bytes(), "weights", &ordered));
        // Weights are reordered from (C, M, kernel elements) to (C, kernel elements, M).
        const Shape given = {geometry_.in_channels, geometry_.out_channels, geometry_.kernel_volume()};
        copy_tensor(given, size_of(geometry_.w_dtype), w, dense_strides(given), ordered.data(),
                    {elements(), 1, geometry_.out_channels});
        w = ordered.data();
    }
    TRY(add_plan(product(strip_rows_ * row_), {w, nullptr, nullptr}, nullptr, &whole_));
    TRY(plan_parts_of_whole());
    if (!weights.w) return Status();
    TRY(get_block(settings_.allocator, bias_elements() * size_, "biases", &bias_));
    bias_of(weights.b, bias_.data());
    return Status();
}

// Returns the elements of the columns that are held at a time, or what capped_product() does of too many.
std::int64_t Col2im::columns_of_strip() const {
    return capped_product({strip_rows_ + kept_rows_, row_, elements(), images_});
}

bool Col2im::may_hold() const {
    const std::int64_t strip_bytes = capped_product({columns_of_strip(), size_});
    return std::max(axes_[1].geometry.out, axes_[2].geometry.out) <= kMostPositions && strip_bytes <= kMostBytes &&
           (planar_ || capped_product({run(), size_}) <= kMostRunBytes);
}

Status Col2im::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    const Geometry &geometry = problem.geometry;
    std::unique_ptr<Col2im> own(new Col2im(geometry, problem.settings, planar_));
    TRY(copy_block(settings_.allocator, bias_.data(), bias_.size(), "biases", &own->bias_));
    own->plan_strips();
    if (const std::int64_t columns = own->columns_of_strip(); columns > kMostElements)
        return too_large_to_reshape("col2im", geometry, "a strip of columns", columns);
    if (!weights_at_run_time()) own->plan_parts();
    TRY(own->add_plan(own->product(own->strip_rows_ * own->row_), {}, whole_, &own->whole_));
    TRY(own->plan_parts_of_whole());
    *made = std::move(own);
    return Status();
}

// Plans strips with fewer rows, with the weights of a whole strip, then makes tables and sizes the workspace.
Status Col2im::plan_parts_of_whole() {
    for (Part &part : parts_) {
        const std::int64_t last = (part.rows_end - part.rows_begin) % strip_rows_;
        if (last) TRY(add_plan(product(last * row_), {}, whole_, &part.last));
    }
    if (strip_axis_ > 0) TRY(add_plan(product(axes_[0].geometry.in), {}, whole_, &single_));
    make_tables();
    own_bytes_ = round_up(capacity() * elements() * images_ * size_) + 2 * round_up(kernel_->lanes * size_) +
                 round_up(read_past() * size_);
    if (weights_at_run_time()) shared_bytes_ = round_up(bias_elements() * size_);
    return Status();
}

void Col2im::make_tables() {
    for (std::size_t a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        const std::int64_t entries = a == 0 ? (kernel_->stride_w ? axis.stride : axes_[a].phases) : axis.out;
        const std::int64_t step = axis.offset_step(), kernel_step = axis.kernel_step();
        Table &table = tables_[a];
        table.reserve(static_cast<std::size_t>(entries * kTapColumns));
        for (std::int64_t o = 0; o < entries; o++) {
            const Taps taps = axes_[a].taps_of(o % axis.stride);
            std::int64_t position = o / axis.stride + taps.offset, first = 0, end = taps.count;
            if (a > 0) { // keep the taps inside x
                first = std::clamp<std::int64_t>(ceil_div(-position, step), 0, end);
                end = std::clamp<std::int64_t>(floor_div(axis.in - 1 - position, step) + 1, first, end);
            }
            position += first * step;
            const std::int64_t element = taps.kernel_begin + first * kernel_step;
            const bool any = end > first;
            table.insert(table.end(),
                         {static_cast<std::int32_t>(any ? position : 0), static_cast<std::int32_t>(end - first),
                          static_cast<std::int32_t>(any ? element : 0), 0});
        }
    }
}

// Returns the number of elements of the bias: all output channels or, in the order of y, a run and a vector.
std::int64_t Col2im::bias_elements() const { return planar_ ? geometry_.out_channels : run() + kernel_->lanes; }

// Writes the bias in the type of the sums, repeated up to bias_elements(). Without a bias it writes zeros.
void Col2im::bias_of(const void *b, void *bias) const {
    const convt_dtype dtype = geometry_.b_dtype;
    for (std::int64_t i = 0; i < bias_elements(); i++) {
        const void *const given = b ? element_at(b, i % geometry_.out_channels, size_of(dtype)) : nullptr;
        store_element(sum_dtype_, given ? load_element(dtype, given) : 0, element_at(bias, i, size_));
    }
}

Status Col2im::run(const RunTensors &t, char *workspace) const {
    char *const run_bias = workspace + workers_ * bytes_of_worker();
    if (weights_at_run_time()) bias_of(t.b, run_bias);
    const char *const bias = weights_at_run_time() ? run_bias : static_cast<const char *>(bias_.data());
    const auto parts = static_cast<std::int64_t>(parts_.size());
    const std::int64_t count = parts * (geometry_.batch / images_);
    return for_each_task(count, workspace, [&](std::int64_t i, char *own_workspace) {
        return run_part(parts_[static_cast<std::size_t>(i % parts)], t, i / parts * images_, bias, own_workspace);
    });
}

Status Col2im::run_part(const Part &part, const RunTensors &t, std::int64_t n, const char *bias,
                        char *workspace) const {
    char *const columns = workspace + layer_bytes_ + round_up(kernel_->lanes * size_);
    const AxisPlan &axis = axes_[strip_axis_];
    const std::int64_t position_bytes = position_stride() * size_, row_bytes = row_ * position_bytes, // in each plane
        plane_bytes = capacity() * position_bytes, planes = planar_ ? images_ * elements() : images_;
    std::int64_t first = part.rows_begin, q_done = part.q_begin; // the first row held; the end of what is done of y
    for (std::int64_t begin = part.rows_begin; q_done < part.q_end;) {
        const std::int64_t end = std::min(begin + strip_rows_, part.rows_end);
        if (end > begin) {
            const LayerPlan &plan = end - begin == strip_rows_ ? *whole_ : *part.last;
            TRY(multiply(plan, t, n, {begin, end}, columns + (begin - first) * row_bytes, workspace));
        }
        // Add up the outputs all of whose rows are there.
        const std::int64_t q_end =
            end == part.rows_end ? part.q_end : std::clamp<std::int64_t>(end - axis.high + 1, q_done, part.q_end);
        if (q_end > q_done) add_up({n, first, part.rows_end - first, columns}, t, {q_done, q_end}, bias);
        q_done = q_end;
        begin = end;
        const std::int64_t next = std::clamp(q_done + axis.low, first, end);
        if (next > first && q_done < part.q_end) {
            const auto kept = static_cast<std::size_t>((end - next) * row_bytes);
            for (std::int64_t i = 0; i < planes; i++) {
                char *const plane = columns + i * plane_bytes;
                std::memmove(plane, plane + (next - first) * row_bytes, kept);
            }
            first = next;
        }
    }
    return Status();
}

// Computes the columns of rows and writes them to `columns`.
Status Col2im::multiply(const LayerPlan &plan, const RunTensors &t, std::int64_t first_image, Range rows, char *columns,
                        char *workspace) const {
    const bool last = geometry_.layout == CONVT_CHANNELS_LAST;
    const std::size_t c_at = geometry_.dimensions().channel, w_at = geometry_.dimensions().last_axis;
    const std::int64_t x_size = size_of(geometry_.dtype);
    RunTensors own;
    own.w = t.w;
    own.x.strides = own.y.strides = Strides(3);
    const DimensionOrder own_at = dimension_order(geometry_.layout, 3);
    const std::size_t own_c = own_at.channel, own_p = own_at.first_axis;
    own.x.strides[0] = t.x.strides[0];
    own.x.strides[own_c] = t.x.strides[c_at];
    own.y.strides[own_c] = planar_ ? capacity() : 1;
    own.y.strides[0] = capacity() * elements();
    own.y.strides[own_p] = position_stride();
    char *const x = element_at(t.x.data, first_image * t.x.strides[0], x_size);

    // The positions of a strip are one axis if each row begins where the row before it ends.
    std::int64_t step = last ? t.x.strides[w_at] : 1, extent = 1;
    bool runs_on = true;
    for (std::size_t a = 0; a <= strip_axis_; a++) {
        const std::int64_t in = axes_[a].geometry.in;
        if (in == 1) continue;
        if (extent == 1 && last) step = t.x.strides[w_at - a];
        runs_on = runs_on && t.x.strides[w_at - a] == step * extent;
        extent *= in;
    }
    if (runs_on) {
        own.x.data = x + rows.begin * (strip_axis_ == 0 ? step : t.x.strides[w_at - strip_axis_]) * x_size;
        own.x.strides[own_p] = step;
        own.y.data = columns;
        return plan.run(own, workspace);
    }
    own.x.strides[own_p] = t.x.strides[w_at];
    const std::int64_t in_w = axes_[0].geometry.in, in_h = strip_axis_ == 2 ? axes_[1].geometry.in : 1;
    for (std::int64_t row = rows.begin; row < rows.end; row++) {
        for (std::int64_t h = 0; h < in_h; h++) {
            std::int64_t at = row * t.x.strides[w_at - strip_axis_];
            if (strip_axis_ == 2) at += h * t.x.strides[w_at - 1];
            own.x.data = x + at * x_size;
            own.y.data = columns + ((row - rows.begin) * row_ + h * in_w) * position_stride() * size_;
            TRY(single_->run(own, workspace));
        }
    }
    return Status();
}

} // namespace convtranspose
