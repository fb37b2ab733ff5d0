#include "col2im.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core_parts.h"
#include "error.h"
#include "half.h"
#include "machine.h"

namespace convtranspose {

namespace {

constexpr std::int64_t kStripBytes = 1 << 20;    // of columns, which should stay in the second-level cache
constexpr std::int64_t kMostBytes = 4 << 20;     // of those of a single row and what it adds to
constexpr std::int64_t kMostPositions = 1 << 16; // of y along h or d, each with a row in a table
// Of adding up, for a vector of columns, and of y; of a single element of y, where its neighbours are of other residues.
constexpr double kCyclesPerTap = 4.5, kCyclesPerVector = 12, kCyclesPerElement = 1.5;
constexpr double kNextVector = 0.55; // of what the first of several takes
constexpr double kCyclesPerStrip = 600;
// A thread's part of y is several times what two parts both read, and so many positions of x at least.
constexpr std::int64_t kHalosPerPart = 4, kLeastPositions = 128;
// Every strip reads all weights, which if there are more of them than this come from further away, at so many bytes a cycle.
constexpr double kNearWeights = 1 << 20, kBytesPerCycle = 16;

} // namespace

Col2im::Col2im(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), settings_(settings), parallel_(settings.parallel), sum_dtype_(sum_dtype(geometry.y_dtype)) {
    axes_ = core_problem(geometry, geometry.y_dtype, false).plan;
    const std::int64_t stride = geometry.axes.back().stride;
    const KernelTable &table = convt_float_kernels;
    const auto rank = [&](const Col2imVariant &v) { return std::pair(v.stride_w == stride, v.vectors); };
    for (std::size_t i = 0; i < table.col2im_count; i++) {
        const Col2imVariant &v = table.col2im[i];
        const bool fits = v.isa == isa_of_floats(settings.isa) && v.dtype == geometry.y_dtype &&
                          (v.stride_w == stride || v.stride_w == 0) && (v.vectors == 1 || takes_vectors(v));
        if (fits && (!kernel_ || rank(v) > rank(*kernel_))) kernel_ = &v;
    }
}

// Measured (Granite Rapids, 33 layers of such rows, one thread): four vectors at once take 0.84 to 1.04 of the time of one, 0.95
// in the mean; of shorter rows, and where elements of y are stored one by one, up to 1.9.
bool Col2im::takes_vectors(const Col2imVariant &v) const {
    const bool are_dense = geometry_.layout == CONVT_CHANNELS_FIRST || geometry_.out_channels == 1;
    return are_dense && (v.stride_w != 0 || axes_[0].geometry.stride == 1) && 2 * axes_[0].q_extent() > v.lanes;
}

std::int64_t Col2im::kernel_volume() const {
    std::int64_t volume = 1;
    for (const AxisPlan &axis : axes_) volume *= axis.geometry.kernel;
    return volume;
}

void Col2im::plan_strips() {
    strip_axis_ = axes_[2].geometry.in > 1 ? 2 : axes_[1].geometry.in > 1 ? 1 : 0;
    row_ = 1;
    for (std::size_t a = 0; a < strip_axis_; a++) row_ *= axes_[a].geometry.in;
    const AxisPlan &axis = axes_[strip_axis_];
    parts_.clear();
    parts_.push_back(part_of(0, axis.q_extent()));
    const std::int64_t rows = parts_[0].rows_end - parts_[0].rows_begin;
    const std::int64_t row_bytes = row_ * elements() * static_cast<std::int64_t>(convt_dtype_size(sum_dtype_));
    images_ = 1;
    kept_rows_ = 0;
    strip_rows_ = std::max<std::int64_t>(rows, 1);
    if (strip_rows_ * row_bytes <= kStripBytes) {
        // As many images as fit, a divisor of all (of none: 1).
        images_ = std::clamp<std::int64_t>(kStripBytes / std::max<std::int64_t>(strip_rows_ * row_bytes, 1), 1,
                                           std::max<std::int64_t>(geometry_.batch, 1));
        while (geometry_.batch % images_ != 0) images_--;
        return;
    }
    kept_rows_ = std::min(std::max<std::int64_t>(axis.high - axis.low - 1, 0), rows);
    // What is kept is moved: so at least as much is new.
    strip_rows_ = std::max({kStripBytes / row_bytes - kept_rows_, kept_rows_, std::int64_t{1}});
    if (strip_axis_ == 0 && strip_rows_ > kCacheLine) strip_rows_ -= strip_rows_ % kCacheLine;
    strip_rows_ = std::min(strip_rows_, rows);
}

Col2im::Part Col2im::part_of(std::int64_t q_begin, std::int64_t q_end) const {
    const AxisPlan &axis = axes_[strip_axis_];
    Part part = {q_begin, q_end, 0, 0, nullptr};
    part.rows_begin = std::clamp<std::int64_t>(q_begin + axis.low, 0, axis.geometry.in);
    part.rows_end = std::clamp<std::int64_t>(q_end - 1 + axis.high, part.rows_begin, axis.geometry.in);
    return part;
}

// What each thread takes of constant weights; those that arrive with a run are packed once, for one strip.
void Col2im::plan_parts() {
    const std::int64_t threads = parallel_.threads, groups = geometry_.batch / images_;
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
    workers_ = static_cast<int>(threads);
    settings_.parallel = Parallel();
}

std::int64_t Col2im::strips() const {
    std::int64_t strips = 0;
    for (const Part &part : parts_)
        strips += std::max<std::int64_t>(ceil_div(part.rows_end - part.rows_begin, strip_rows_), 1);
    return strips * (geometry_.batch / images_);
}

Geometry Col2im::product(std::int64_t positions) const {
    Geometry g = geometry_;
    g.post_ops = {};
    g.y_order = YOrder::kPlanar;
    g.has_bias = false;
    g.batch = images_;
    g.y_dtype = sum_dtype_;
    g.out_channels = elements();
    AxisGeometry axis;
    axis.in = axis.out = positions;
    axis.kernel = 1;
    axis.kernel_step = -1;
    axis.offset_step = 1;
    g.axes = {axis};
    const bool last = g.layout == CONVT_CHANNELS_LAST;
    g.x_shape = {images_, last ? positions : g.in_channels, last ? g.in_channels : positions};
    g.y_shape = {images_, last ? positions : g.out_channels, last ? g.out_channels : positions};
    g.w_shape = {g.in_channels, g.out_channels_per_group(), 1};
    return g;
}

double Col2im::cost() const {
    const double strips_of_all = static_cast<double>(strips());
    const double strips_of_image = strips_of_all * static_cast<double>(images_) / static_cast<double>(geometry_.batch);
    const auto rows = static_cast<double>(parts_[0].rows_end - parts_[0].rows_begin);
    const double multiply = least_cost(product(std::max<std::int64_t>(strip_rows_, 1) * row_), settings_.isa) * rows /
                            static_cast<double>(strip_rows_) * strips_of_all / strips_of_image;
    const AxisPlan &w = axes_[0];
    const double vectors = static_cast<double>(ceil_div(w.q_extent(), kernel_->lanes)),
                 channels = static_cast<double>(geometry_.out_channels * geometry_.batch);
    double taps = channels * vectors, stored = channels * vectors * static_cast<double>(w.residues);
    for (const AxisPlan &axis : axes_) taps *= static_cast<double>(axis.geometry.kernel);
    for (std::size_t a = 1; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        taps *= static_cast<double>(std::min(axes_[a].q_extent(), axis.in));
        stored *= static_cast<double>(axis.out);
    }
    const bool scattered = w.geometry.stride != 1 && kernel_->stride_w == 0;
    const bool among_others = geometry_.layout == CONVT_CHANNELS_LAST && geometry_.out_channels > 1;
    const double per_element = among_others ? cycles_to_scatter(geometry_) : scattered ? kCyclesPerElement : 0;
    const double moved = strips_of_image > 1 ? static_cast<double>(kept_rows_) * strips_of_all *
                                                   static_cast<double>(row_ * elements() * images_)
                                             : 0;
    const double y_bytes = stored * kernel_->lanes * static_cast<double>(convt_dtype_size(geometry_.y_dtype));
    const bool is_far = y_bytes >= machine().second_level_cache;
    const double from_far = is_far ? machine().far_product * taps * kernel_->lanes : 0;
    const double weights = static_cast<double>(geometry_.in_channels_per_group() * elements()) *
                           static_cast<double>(convt_dtype_size(sum_dtype_));
    const double far = weights > kNearWeights ? strips_of_all * weights / kBytesPerCycle : 0;
    const double at_once = 1 + kNextVector * (kernel_->vectors - 1);
    return multiply + far + from_far + taps * at_once * kCyclesPerTap +
           stored * (at_once * kCyclesPerVector + kernel_->lanes * per_element) + moved * 2 / kernel_->lanes +
           strips_of_all * kCyclesPerStrip;
}

std::string Col2im::summary() const {
    return concat("kernel elements as output channels of a matrix product, added up (col2im), in ", strips(),
                  " strips");
}

std::vector<const LayerPlan *> Col2im::layers() const {
    std::vector<const LayerPlan *> all;
    const auto add = [&](const LayerPlan *plan) {
        if (plan) all.push_back(plan);
    };
    add(whole_.get());
    for (const Part &part : parts_) add(part.last.get());
    add(single_.get());
    return all;
}

Status Col2im::create(const MethodRequest &request, MadeMethod *made) {
    const Geometry &geometry = request.geometry;
    const void *const w = request.w;
    bool fits = !geometry.quantized() && request.arithmetic != Arithmetic::kHalf && geometry.axes.size() <= 3 &&
                geometry.batch > 0 && geometry.in_channels > 0 && geometry.out_channels > 0;
    bool plain = true; // a matrix product as it is
    for (const AxisGeometry &axis : geometry.axes) {
        fits = fits && axis.in > 0;
        plain = plain && axis.kernel == 1 && axis.stride == 1;
    }
    if (!fits || plain) return Status();
    std::unique_ptr<Col2im> own(new Col2im(geometry, request.settings));
    if (!own->kernel_ || std::max(own->axes_[1].geometry.out, own->axes_[2].geometry.out) > kMostPositions) {
        return Status();
    }
    own->plan_strips();
    const std::int64_t strip_elements =
        (own->strip_rows_ + own->kept_rows_) * own->row_ * own->elements() * own->images_;
    // Weights of a run are packed once, for a single strip.
    if (strip_elements * static_cast<std::int64_t>(convt_dtype_size(own->sum_dtype_)) > kMostBytes ||
        (!w && own->strips() > 1)) {
        return Status();
    }
    made->cost = own->cost();
    if (!(made->cost < request.most)) return Status();
    if (w) own->plan_parts();
    if (Status status = own->make_plans(nullptr, w); !status) return status;
    if (w) {
        own->bias_.resize(static_cast<std::size_t>(geometry.out_channels) * convt_dtype_size(own->sum_dtype_));
        own->bias_of(request.b, own->bias_.data());
    }
    made->method = std::move(own);
    return Status();
}

Status Col2im::reshape(const Geometry &geometry, std::unique_ptr<Method> *made) const {
    PlanSettings settings = settings_;
    settings.parallel = parallel_;
    std::unique_ptr<Col2im> own(new Col2im(geometry, settings));
    own->bias_ = bias_;
    own->plan_strips();
    if (!weights_at_run_time()) own->plan_parts();
    if (Status status = own->make_plans(whole_.get(), nullptr); !status) return status;
    *made = std::move(own);
    return Status();
}

// from: the plan whose packed weights are taken; null: they are packed from w.
Status Col2im::make_plans(const LayerPlan *from, const void *w) {
    const Geometry whole = product(strip_rows_ * row_);
    Status status =
        from ? from->reshape(whole, &whole_) : LayerPlan::create(whole, settings_, nullptr, w, nullptr, &whole_);
    for (Part &part : parts_) {
        const std::int64_t last = (part.rows_end - part.rows_begin) % strip_rows_;
        if (status && last) status = whole_->reshape(product(last * row_), &part.last);
    }
    if (status && strip_axis_ > 0) status = whole_->reshape(product(axes_[0].geometry.in), &single_);
    if (!status) return status;
    make_tables();
    for (const LayerPlan *plan : layers()) {
        layer_bytes_ = std::max(layer_bytes_, round_up(plan->workspace_bytes()));
    }
    const auto size = static_cast<std::uint64_t>(convt_dtype_size(sum_dtype_));
    const auto count = static_cast<std::uint64_t>((strip_rows_ + kept_rows_) * row_ * elements() * images_);
    columns_bytes_ = round_up(count * size) + 2 * round_up(static_cast<std::uint64_t>(kernel_->lanes) * size);
    if (weights_at_run_time()) bias_bytes_ = round_up(static_cast<std::uint64_t>(geometry_.out_channels) * size);
    return Status();
}

void Col2im::make_tables() {
    for (std::size_t a = 0; a < 3; a++) {
        const AxisGeometry &axis = axes_[a].geometry;
        const std::int64_t entries = a == 0 ? (kernel_->stride_w ? axis.stride : axes_[a].residues) : axis.out;
        Table &table = tables_[a];
        table.reserve(static_cast<std::size_t>(entries * kTapColumns));
        for (std::int64_t o = 0; o < entries; o++) {
            const Taps taps = taps_of(axis, o % axis.stride);
            std::int64_t position = o / axis.stride + taps.offset, first = 0, end = taps.count;
            if (a > 0) { // those inside x
                first = std::clamp<std::int64_t>(ceil_div(-position, axis.offset_step), 0, end);
                end = std::clamp<std::int64_t>(floor_div(axis.in - 1 - position, axis.offset_step) + 1, first, end);
            }
            position += first * axis.offset_step;
            const std::int64_t element = taps.kernel_begin + first * axis.kernel_step;
            const bool any = end > first;
            table.insert(table.end(),
                         {static_cast<std::int32_t>(any ? position : 0), static_cast<std::int32_t>(end - first),
                          static_cast<std::int32_t>(any ? element : 0), 0});
        }
    }
}

// In the type of the sums; zeros without one.
void Col2im::bias_of(const void *b, char *bias) const {
    const auto count = static_cast<std::size_t>(geometry_.out_channels), size = convt_dtype_size(sum_dtype_);
    if (!b) {
        std::memset(bias, 0, count * size);
        return;
    }
    if (geometry_.b_dtype == sum_dtype_) {
        std::memcpy(bias, b, count * size);
        return;
    }
    auto *const to = reinterpret_cast<float *>(bias);
    for (std::size_t m = 0; m < count; m++) {
        to[m] = geometry_.b_dtype == CONVT_F16 ? static_cast<float>(static_cast<const F16 *>(b)[m])
                                               : static_cast<float>(static_cast<const Bf16 *>(b)[m]);
    }
}

Status Col2im::run(const RunTensors &t, char *workspace) const {
    char *const run_bias = workspace + static_cast<std::uint64_t>(workers_) * (layer_bytes_ + columns_bytes_);
    if (weights_at_run_time()) bias_of(t.b, run_bias);
    const char *const bias = weights_at_run_time() ? run_bias : bias_.data();
    const std::size_t parts = parts_.size();
    const auto count = parts * static_cast<std::size_t>(geometry_.batch / images_);
    return run_by(parallel_, workers_, count, [&](std::size_t task, std::size_t worker) {
        return run_part(parts_[task % parts], t, static_cast<std::int64_t>(task / parts) * images_, bias,
                        workspace + worker * (layer_bytes_ + columns_bytes_));
    });
}

Status Col2im::run_part(const Part &part, const RunTensors &t, std::int64_t n, const char *bias,
                        char *workspace) const {
    const auto size = static_cast<std::int64_t>(convt_dtype_size(sum_dtype_));
    const std::int64_t margin = static_cast<std::int64_t>(round_up(static_cast<std::uint64_t>(kernel_->lanes * size)));
    char *const columns = workspace + layer_bytes_ + margin;
    const AxisPlan &axis = axes_[strip_axis_];
    const std::int64_t capacity = (strip_rows_ + kept_rows_) * row_ * size; // bytes of an element's columns
    std::int64_t first = part.rows_begin, q_done = part.q_begin;            // the first row held, up to where y is done
    for (std::int64_t begin = part.rows_begin; q_done < part.q_end;) {
        const std::int64_t end = std::min(begin + strip_rows_, part.rows_end);
        if (end > begin) {
            const LayerPlan &plan = end - begin == strip_rows_ ? *whole_ : *part.last;
            Status status = multiply(plan, t, n, begin, end, columns + (begin - first) * row_ * size, workspace);
            if (!status) return status;
        }
        // What all of whose rows are there.
        const std::int64_t q_end =
            end == part.rows_end ? part.q_end : std::clamp<std::int64_t>(end - axis.high + 1, q_done, part.q_end);
        if (q_end > q_done) add_up(part, t, n, first, q_done, q_end, columns, bias);
        q_done = q_end;
        begin = end;
        const std::int64_t next = std::clamp(q_done + axis.low, first, end);
        if (next > first && q_done < part.q_end) {
            const auto kept = static_cast<std::size_t>((end - next) * row_ * size);
            for (std::int64_t i = 0; i < images_ * elements(); i++) {
                std::memmove(columns + i * capacity, columns + i * capacity + (next - first) * row_ * size, kept);
            }
            first = next;
        }
    }
    return Status();
}

// The columns of some rows. They go to `columns`.
Status Col2im::multiply(const LayerPlan &plan, const RunTensors &t, std::int64_t first_image, std::int64_t begin,
                        std::int64_t end, char *columns, char *workspace) const {
    const bool last = geometry_.layout == CONVT_CHANNELS_LAST;
    const std::size_t rank = t.x_strides.size(), c_at = last ? rank - 1 : 1, w_at = last ? rank - 2 : rank - 1;
    const auto x_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.dtype)),
               size = static_cast<std::int64_t>(convt_dtype_size(sum_dtype_));
    RunTensors own;
    own.w = t.w;
    own.x_strides = own.y_strides = Strides(3);
    const std::size_t own_c = last ? 2 : 1, own_p = last ? 1 : 2;
    own.x_strides[0] = t.x_strides[0];
    own.x_strides[own_c] = t.x_strides[c_at];
    own.y_strides[own_c] = (strip_rows_ + kept_rows_) * row_;
    own.y_strides[0] = own.y_strides[own_c] * elements();
    own.y_strides[own_p] = 1;
    const auto *const x = static_cast<const char *>(t.x) + first_image * t.x_strides[0] * x_size;

    // Whether the positions of a strip are those of one axis: rows run on where the one before them ends.
    std::int64_t step = last ? t.x_strides[w_at] : 1, extent = 1;
    bool runs_on = true;
    for (std::size_t a = 0; a <= strip_axis_; a++) {
        const std::int64_t in = axes_[a].geometry.in;
        if (in == 1) continue;
        if (extent == 1 && last) step = t.x_strides[w_at - a];
        runs_on = runs_on && t.x_strides[w_at - a] == step * extent;
        extent *= in;
    }
    if (runs_on) {
        own.x = x + begin * (strip_axis_ == 0 ? step : t.x_strides[w_at - strip_axis_]) * x_size;
        own.x_strides[own_p] = step;
        own.y = columns;
        return plan.run(own, workspace);
    }
    own.x_strides[own_p] = t.x_strides[w_at];
    const std::int64_t in_w = axes_[0].geometry.in, in_h = strip_axis_ == 2 ? axes_[1].geometry.in : 1;
    for (std::int64_t row = begin; row < end; row++) {
        for (std::int64_t h = 0; h < in_h; h++) {
            std::int64_t at = row * t.x_strides[w_at - strip_axis_];
            if (strip_axis_ == 2) at += h * t.x_strides[w_at - 1];
            own.x = x + at * x_size;
            own.y = columns + ((row - begin) * row_ + h * in_w) * size;
            if (Status status = single_->run(own, workspace); !status) return status;
        }
    }
    return Status();
}

// Positions q_begin..q_end-1 of y along the strip axis, of columns whose first row is first_row.
void Col2im::add_up(const Part &part, const RunTensors &t, std::int64_t first_image, std::int64_t first_row,
                    std::int64_t q_begin, std::int64_t q_end, const char *columns, const char *bias) const {
    const auto size = static_cast<std::int64_t>(convt_dtype_size(sum_dtype_)),
               y_size = static_cast<std::int64_t>(convt_dtype_size(geometry_.y_dtype));
    const bool last = geometry_.layout == CONVT_CHANNELS_LAST;
    const std::size_t rank = t.y_strides.size(), c_at = last ? rank - 1 : 1, w_at = last ? rank - 2 : rank - 1;
    const std::int64_t lanes = kernel_->lanes, capacity = (strip_rows_ + kept_rows_) * row_;
    const auto axes = static_cast<std::size_t>(geometry_.axes.size());

    const std::int64_t wanted = settings_.parallel.threads > 1 ? 4 * std::int64_t{settings_.parallel.threads} : 1;
    const std::int64_t unit = strip_axis_ == 0 ? lanes : 1;
    const std::int64_t q_parts = std::clamp<std::int64_t>((q_end - q_begin) / unit, 1, wanted),
                       oc_parts = std::clamp<std::int64_t>(wanted / q_parts, 1, geometry_.out_channels);
    settings_.parallel.for_each(static_cast<std::size_t>(q_parts * oc_parts), [&](std::size_t task) {
        const std::int64_t q_part = static_cast<std::int64_t>(task) / oc_parts,
                           oc_part = static_cast<std::int64_t>(task) % oc_parts;
        const std::int64_t units = (q_end - q_begin) / unit, from = q_begin + units * q_part / q_parts * unit,
                           to = q_part + 1 == q_parts ? q_end : q_begin + units * (q_part + 1) / q_parts * unit;
        const std::int64_t oc_begin = geometry_.out_channels * oc_part / oc_parts,
                           oc_end = geometry_.out_channels * (oc_part + 1) / oc_parts;

        Buffer<8> in(nullptr, type_of(sum_dtype_));
        std::int64_t stride = 1;
        for (std::size_t a = 0; a < 3; a++) {
            const std::int64_t extent = a == strip_axis_ ? capacity / row_ : axes_[a].geometry.in;
            in.set(static_cast<int>(a), a == strip_axis_ ? first_row : 0, extent, stride);
            if (a < strip_axis_) stride *= extent;
        }
        // Of w a vector more at either end; its q counts from 0 in a call.
        const std::int64_t held = strip_axis_ == 0 ? std::min(capacity, part.rows_end - first_row) : in.dims[0].extent;
        const std::int64_t shift = strip_axis_ == 0 ? from : 0;
        in.set(0, in.dims[0].min - shift - lanes, held + 2 * lanes, 1);
        stride = capacity;
        for (int a = 0; a < 3; a++) {
            in.set(3 + a, 0, axes_[static_cast<std::size_t>(a)].geometry.kernel, stride);
            stride *= axes_[static_cast<std::size_t>(a)].geometry.kernel;
        }
        in.set(6, 0, oc_end - oc_begin, stride);
        in.set(7, 0, images_, stride * geometry_.out_channels);
        in.raw.host =
            reinterpret_cast<std::uint8_t *>(const_cast<char *>(columns)) + (oc_begin * stride - lanes) * size;
        Buffer<1> b(bias + oc_begin * size, type_of(sum_dtype_));
        b.set(0, 0, oc_end - oc_begin, 1);

        // Positions of y along h and d, and their tables.
        std::array<std::int64_t, 3> begin = {}, extent = {};
        for (std::size_t a = 0; a < 3; a++) {
            const AxisGeometry &axis = axes_[a].geometry;
            begin[a] = a == strip_axis_ ? from * axis.stride : 0;
            extent[a] = (a == strip_axis_ ? std::min(to * axis.stride, axis.out) : axis.out) - begin[a];
        }
        const auto table = [&](std::size_t a, std::int64_t first, std::int64_t count) {
            Buffer<2> buffer(tables_[a].data() + first * kTapColumns, type_of(CONVT_S32));
            buffer.set(0, 0, count, kTapColumns);
            buffer.set(1, 0, kTapColumns, 1);
            return buffer;
        };
        Buffer<2> taps_h = table(1, begin[1], extent[1]), taps_d = table(2, begin[2], extent[2]);
        std::int64_t y_offset = first_image * t.y_strides[0] + oc_begin * t.y_strides[c_at];
        const auto y_stride = [&](std::size_t a) { return a < axes ? t.y_strides[w_at - a] : 0; };
        for (std::size_t a = 1; a < 3; a++) y_offset += begin[a] * y_stride(a);
        const AxisGeometry &w = axes_[0].geometry;
        const auto call = [&](Buffer<2> taps_w, const std::array<std::int64_t, 2> &along_w, std::int64_t o) {
            Buffer<6> out(static_cast<char *>(t.y) + (y_offset + o * y_stride(0)) * y_size, type_of(geometry_.y_dtype));
            int dim = 0;
            if (kernel_->stride_w) {
                out.set(dim++, 0, along_w[0], y_stride(0));
            } else {
                out.set(dim++, 0, along_w[0], w.stride * y_stride(0));
                out.set(dim++, 0, along_w[1], y_stride(0));
            }
            for (std::size_t a = 1; a < 3; a++) out.set(dim++, 0, extent[a], y_stride(a));
            out.set(dim++, 0, oc_end - oc_begin, t.y_strides[c_at]);
            out.set(dim++, 0, images_, t.y_strides[0]);
            out.raw.dimensions = dim;
            const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
            const auto &[aw, ah, ad] = axes_;
            kernel_->run(&in.raw, &b.raw, &taps_w.raw, &taps_h.raw, &taps_d.raw, number(aw.geometry.offset_step),
                         number(ah.geometry.offset_step), number(ad.geometry.offset_step),
                         number(aw.geometry.kernel_step), number(ah.geometry.kernel_step),
                         number(ad.geometry.kernel_step), aw.max_count, ah.max_count, ad.max_count, &out.raw);
        };
        if (kernel_->stride_w) {
            call(table(0, 0, w.stride), {extent[0], 0}, begin[0]);
            return;
        }
        const Boxes boxes =
            boxes_of(axes_[0], false, strip_axis_ == 0 ? from : 0, strip_axis_ == 0 ? to : axes_[0].q_extent());
        for (std::size_t i = 0; i < boxes.count; i++) {
            const Box &box = boxes.box[i];
            if (box.q_end <= box.q_begin) continue;
            call(table(0, box.first, box.count), {box.q_end - box.q_begin, box.count}, begin[0] + box.first);
        }
    });
}

} // namespace convtranspose
