#include "plan/layer_plan.h"
#include "cpu/cpu.h"

#include <algorithm>
#include <limits>

#include "algorithms/algorithm.h"
#include "base/error.h"
#include "base/shape.h"
#include "base/tensor_copy.h"

namespace convtranspose {

namespace {

std::uint64_t count(const Shape &shape) {
    std::uint64_t n = 1;
    for (const std::int64_t extent : shape) n *= static_cast<std::uint64_t>(extent);
    return n;
}

// What kernels are to write: for sums over leading axes their own type.
convt_dtype kernel_y_dtype(const Geometry &geometry, bool leading) {
    if (!geometry.quantized()) return leading ? sum_dtype(geometry.dtype) : geometry.y_dtype;
    if (leading) return CONVT_S32;
    return geometry.y_dtype == CONVT_F32 ? CONVT_F32 : CONVT_U8;
}

constexpr const char *kPackedOtherwise = "weights are packed otherwise";

// Whether the reference reads weights that are packed so. Where it does not, another kernel takes packing them again.
bool reference_reads(const PackedLayout &layout) {
    return layout.arithmetic == Arithmetic::kFloat || layout.arithmetic == Arithmetic::kHalf;
}

Status fits_in_memory(std::uint64_t workspace) {
    if (workspace <= static_cast<std::uint64_t>(PTRDIFF_MAX)) return Status();
    return Status(CONVT_OUT_OF_MEMORY, concat("a workspace of ", workspace, " bytes does not fit in memory"));
}

std::string measured(const TuningRecord &record) {
    return concat("measured to be the fastest, says a tuning record: ", record.ms, " ms");
}

const char *family_rule(Family family) {
    switch (family) {
    case Family::kReference: return "any problem, one element at a time";
    case Family::kChannels: return "vectors along the output channels";
    case Family::kMatrix: return "matrix instructions";
    case Family::kWide: return "vectors along rows, weights broadcast";
    case Family::kFew: return "vectors along rows, one load of x for all residues";
    case Family::kDepthwise: return "one input channel per group";
    }
    return "";
}

} // namespace

LayerPlan::~LayerPlan() = default;

bool LayerPlan::weights_at_run_time() const {
    return algorithm_ ? algorithm_->weights_at_run_time() : packed_ == nullptr;
}

const DirectPlan &LayerPlan::direct() const { return algorithm_ ? algorithm_->first().direct() : direct_; }

LayerPlan::LayerPlan(const Geometry &geometry, const PlanSettings &settings)
    : geometry_(geometry), settings_(settings), workspaces_(settings.allocator) {
    leading_ = geometry.axes.size() > 3 ? geometry.axes.size() - 3 : 0;
    direct_geometry_ = geometry;
    direct_geometry_.axes.erase(direct_geometry_.axes.begin(),
                                direct_geometry_.axes.begin() + static_cast<std::ptrdiff_t>(leading_));
    problem_ = spatial_problem(direct_geometry_, kernel_y_dtype(geometry, leading_ > 0), true);
    if (settings_.variant.empty()) {
        record_ = tuning_record(settings_.tuning, geometry, settings_.isa, settings_.parallel.threads, &record_note_);
        if (record_ && changes_rounding(record_->variant) && !settings_.winograd) {
            record_note_ =
                concat("a tuning record names ", record_->variant, ", which options.winograd does not allow");
            record_ = nullptr;
        }
    }
}

std::int64_t LayerPlan::leading_elements() const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < leading_; a++) n *= geometry_.axes[a].kernel;
    return n;
}

const Candidate *LayerPlan::cheapest(const std::vector<Candidate> &candidates) const {
    const bool is_named = names_a_variant();
    const Candidate *best = nullptr;
    for (const Candidate &c : candidates) {
        if (is_named && settings_.variant != c.variant->name) continue;
        if (!c.unsupported.text && (!best || c.cost < best->cost)) best = &c;
    }
    return best;
}

// The candidate that a tuning record names. Null: none does; *note says so where a record was to be used and could not be.
const Candidate *LayerPlan::tuned(std::string *note) const {
    *note = record_note_;
    if (!record_ || is_algorithm(record_->variant)) return nullptr;
    for (const Candidate &c : candidates_) {
        if (record_->variant != c.variant->name) continue;
        if (!c.unsupported.text) {
            *note = measured(*record_);
            return &c;
        }
        *note = concat("a tuning record names ", record_->variant, ", which cannot: ", to_string(c.unsupported));
        return nullptr;
    }
    *note = concat("a tuning record names ", record_->variant, ", which is not built for ", isa_name(settings_.isa));
    return nullptr;
}

Status LayerPlan::choose(const Packed *packed) {
    problem_.sums_in_f16 = settings_.sums_in_f16;
    problem_.may_be_infinite = packed && !packed->finite;
    if (packed) {
        problem_.fits_int8 = packed->facts.fits_int8;
        problem_.fits_int32 = packed->facts.fits_int32;
    }
    candidates_ = convtranspose::candidates(problem_, settings_.isa);
    for (Candidate &c : candidates_) {
        const Variant &v = *c.variant;
        const bool packed_otherwise = packed && packed->block && !same_packing(packing_of(v), packed->layout);
        // The reference of floats reads any packing of its operands.
        const bool reads_any = v.family == Family::kReference && !geometry_.quantized() && packed &&
                               v.arithmetic == packed->layout.arithmetic;
        if (!c.unsupported.text && packed_otherwise && !reads_any) c.unsupported = {kPackedOtherwise};
    }
    std::string note;
    const Candidate *recorded = nullptr, *best = nullptr;
    for (;;) {
        recorded = tuned(&note);
        best = recorded ? recorded : cheapest(candidates_);
        if (!best) return refused();
        direct_ = DirectPlan(problem_, *best, settings_.parallel.threads,
                             packed && packed->block ? &packed->layout : nullptr);
        if (!direct_.overflow().text) break;
        candidates_[static_cast<std::size_t>(best - candidates_.data())].unsupported = direct_.overflow();
    }
    reason_ = names_a_variant() ? "asked for by name"
              : recorded        ? note
              : best->variant->family == Family::kReference
                  ? "no other variant can"
                  : concat("least estimated cost; ", family_rule(best->variant->family));
    if (!recorded && !note.empty()) reason_ += concat(" (", note, ")");
    cost_ = best->cost;
    // Kernels of other types make up most of the list, and nobody asks for them once one is chosen.
    const auto of_others = [&](const Candidate &c) {
        return c.variant->dtype != direct_.variant().dtype || is_float(c.variant->arithmetic) == geometry_.quantized();
    };
    const auto end = std::remove_if(candidates_.begin(), candidates_.end(), of_others);
    candidates_ = std::vector<Candidate>(candidates_.begin(), end); // in no more memory than they need
    return Status();
}

// Why no candidate can.
Status LayerPlan::refused() const {
    for (const Candidate &c : candidates_) {
        const UnsupportedReason &r = c.unsupported;
        if (names_a_variant() ? settings_.variant != c.variant->name : !r.is_overflow) continue;
        return Status(r.is_overflow ? CONVT_OVERFLOW : CONVT_UNSUPPORTED,
                      concat("variant ", c.variant->name, " on ", isa_name(c.variant->isa),
                             " cannot run this problem: ", to_string(r)));
    }
    if (names_a_variant()) {
        return Status(CONVT_UNSUPPORTED,
                      concat("variant ", settings_.variant, " is not built for ", isa_name(settings_.isa)));
    }
    return Status(CONVT_UNSUPPORTED,
                  concat("no kernel of ", isa_name(settings_.isa), " for ",
                         geometry_.quantized() ? "quantized layers" : convt_dtype_name(geometry_.dtype),
                         " is built in"));
}

void LayerPlan::plan_fallbacks() {
    fallbacks_.clear();
    const Variant &chosen = direct_.variant();
    if (!weights_at_run_time() || chosen.family == Family::kReference) return;
    const int threads = settings_.parallel.threads;
    if (!geometry_.quantized()) {
        if (!problem_.reads_outside()) return;
        for (const Candidate &c : candidates_) {
            const bool reads_it = c.variant->arithmetic == chosen.arithmetic;
            if (!c.unsupported.text && c.variant->family == Family::kReference && reads_it) {
                fallbacks_.emplace_back(problem_, c, threads, &direct_.packed_layout());
            }
        }
        return;
    }
    SpatialProblem problem = problem_;
    for (const bool fits_int32 : {true, false}) {
        if (fits_int32 && chosen.arithmetic != Arithmetic::kInt8) continue;
        problem.fits_int8 = false;
        problem.fits_int32 = fits_int32;
        const Candidate *best = nullptr;
        const std::vector<Candidate> list = convtranspose::candidates(problem, settings_.isa);
        for (const Candidate &c : list) {
            if (!c.unsupported.text && (!best || c.cost < best->cost)) best = &c;
        }
        if (best) fallbacks_.emplace_back(problem, *best, threads);
        if (best && fallbacks_.back().overflow().text) fallbacks_.pop_back(); // runs whose weights need it are refused
    }
}

Status LayerPlan::finish_planning() {
    if (Status status = find_post_ops(geometry_, settings_.isa, &post_ops_); !status) return status;
    if (algorithm_) {
        const bool asked = settings_.variant == algorithm_name_,
                   recorded = record_ && record_->variant == algorithm_name_;
        const std::string why =
            asked      ? "asked for by name"
            : recorded ? measured(*record_)
                       : "least estimated cost" + (record_note_.empty() ? std::string() : " (" + record_note_ + ")");
        reason_ = concat(algorithm_->summary(), ": ", why);
        packed_bytes_ = algorithm_->packed_bytes();
        workspace_bytes_ = algorithm_->workspace_bytes();
        return fits_in_memory(workspace_bytes_);
    }
    plan_fallbacks();
    std::uint64_t direct_bytes = direct_.workspace_bytes(), direct_packed = direct_.packed_bytes(),
                  direct_epilogue = direct_.epilogue_bytes();
    for (const DirectPlan &direct : fallbacks_) {
        direct_bytes = std::max(direct_bytes, direct.workspace_bytes());
        direct_packed = std::max(direct_packed, direct.packed_bytes());
        direct_epilogue = std::max(direct_epilogue, direct.epilogue_bytes());
    }
    if (weights_at_run_time() && geometry_.quantized())
        direct_bytes = std::max(direct_bytes, examination_bytes(geometry_));
    const auto elements = static_cast<std::uint64_t>(leading_elements());
    run_packed_bytes_ = weights_at_run_time() ? round_up(direct_packed * elements) : 0;
    run_epilogue_bytes_ =
        round_up(direct_epilogue * elements); // scales may be those of a run even if weights are constant
    packed_bytes_ = 0;
    if (packed_) {
        packed_bytes_ = packed_->block.size();
        if (quantization_) {
            Status status = get_block(settings_.allocator, run_epilogue_bytes_, "biases", &epilogue_);
            if (!status) return status;
            prepare(direct_, *quantization_, packed_->block.data(), packed_->bias.data(), epilogue_.data());
            packed_bytes_ += epilogue_.size();
        }
    }
    const bool planar = direct_.variant().family != Family::kReference && direct_.variant().store == Store::kPlanar;
    dense_y_bytes_ = 0;
    if (!leading_ && planar && geometry_.y_channels_last()) {
        dense_y_bytes_ = round_up(count(geometry_.y_shape) * convt_dtype_size(geometry_.y_dtype));
    }
    partial_bytes_ = 0;
    if (leading_) {
        // One position of the leading axes: what the direct plan computes, and the sum of those.
        Shape inner = {direct_geometry_.batch, direct_geometry_.out_channels};
        for (const AxisGeometry &a : direct_geometry_.axes) inner.push_back(a.out);
        partial_bytes_ =
            round_up(count(inner) * convt_dtype_size(problem_.y_dtype)) + round_up(count(inner) * sizeof(double));
    }
    direct_workspace_bytes_ = round_up(direct_bytes);
    workspace_bytes_ =
        run_packed_bytes_ + run_epilogue_bytes_ + direct_workspace_bytes_ + partial_bytes_ + dense_y_bytes_;
    return fits_in_memory(workspace_bytes_);
}

// Sets algorithm_ if one is asked for, recorded or estimated to be the fastest.
Status LayerPlan::plan_algorithm(const void *w, const void *b) {
    if (names_a_variant() || settings_.by_kernel) return Status();
    std::string wanted = settings_.variant;
    if (wanted.empty() && record_ && (is_algorithm(record_->variant) || direct_.variant().name == record_->variant)) {
        wanted = record_->variant;
    }
    AlgorithmRequest request = {
        geometry_, settings_, w, b, quantization_ ? &*quantization_ : nullptr, direct_.variant().arithmetic, cost_};
    request.settings.variant.clear(); // what is asked for is of this one
    if (!wanted.empty()) request.most = std::numeric_limits<double>::infinity();
    for (const AlgorithmKind &kind : algorithms()) {
        if ((!wanted.empty() && wanted != kind.name) || (!w && !kind.for_weights_at_run_time)) continue;
        if (kind.changes_rounding && !settings_.winograd) continue;
        MadeAlgorithm made;
        if (Status status = kind.create(request, &made); !status) return status;
        if (made.cost > 0) estimates_.push_back({kind.name, made.cost});
        if (!made.algorithm) continue;
        algorithm_ = std::move(made.algorithm);
        algorithm_name_ = kind.name;
        request.most = made.cost;
    }
    if (!is_algorithm(wanted) || algorithm_) return Status();
    if (changes_rounding(settings_.variant) && !settings_.winograd) {
        return Status(CONVT_UNSUPPORTED,
                      concat(wanted, " rounds otherwise than the definition: options.winograd must allow it"));
    }
    if (!settings_.variant.empty()) {
        return Status(CONVT_UNSUPPORTED,
                      concat(wanted, w ? " cannot compute this problem" : " needs constant weights"));
    }
    reason_ += concat(" (a tuning record names ", wanted, ", which cannot)");
    return Status();
}

// Packs constant weights for direct_.
Status LayerPlan::pack_all(const void *w, const void *b, Packed *packed) const {
    packed->layout = direct_.packed_layout();
    const std::uint64_t bytes = direct_.packed_bytes() * static_cast<std::uint64_t>(leading_elements());
    Status status = get_block(settings_.allocator, bytes, "packed weights", &packed->block);
    if (status) packed->finite = pack(direct_, w, b, quantization_ ? &*quantization_ : nullptr, packed->block.data());
    return status;
}

// Keeps constant weights, packed for direct_, or for another one if they are not finite and it must not meet such.
Status LayerPlan::take_weights(const void *w, const void *b, std::shared_ptr<Packed> packed) {
    Status status = pack_all(w, b, packed.get());
    if (!status) return status;
    if (!packed->finite) {
        const bool keeps = reference_reads(packed->layout);
        if (!keeps) packed->block = Block();
        status = choose(packed.get());
        if (status && !keeps) status = pack_all(w, b, packed.get());
        if (!status) return status;
    }
    status = copy_block(settings_.allocator, b, geometry_.b_bytes(), "biases", &packed->bias);
    packed_ = std::move(packed);
    return status;
}

Status LayerPlan::create(const Geometry &geometry, const PlanSettings &settings, const QuantizationValues *quantization,
                         const void *w, const void *b, std::unique_ptr<LayerPlan> *plan) {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings));
    if (quantization) p->quantization_ = *quantization;
    auto packed = std::make_shared<Packed>();
    p->problem_.weights_at_run_time = !w;
    Status status;
    if (w && geometry.quantized()) {
        Block counts;
        status = get_block(settings.allocator, examination_bytes(geometry), "sums of weights", &counts);
        if (status) packed->facts = examine_weights(geometry, *quantization, w, b, counts.data());
    }
    if (status) status = p->choose(packed.get());
    if (!status) return status;
    status = p->plan_algorithm(w, b);
    if (status && w && !p->algorithm_) status = p->take_weights(w, b, std::move(packed));
    if (status) status = p->finish_planning();
    if (!status) return status;
    *plan = std::move(p);
    return Status();
}

Status LayerPlan::replan(const void *w, const void *b, std::unique_ptr<LayerPlan> *plan) const {
    if (algorithm_ || problem_.may_be_infinite) return create(geometry_, settings_, nullptr, w, b, plan);
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry_, settings_));
    p->problem_ = problem_;
    p->candidates_ = candidates_;
    p->reason_ = reason_;
    p->direct_ = direct_;
    p->cost_ = cost_;
    p->estimates_ = estimates_;
    Status status = p->take_weights(w, b, std::make_shared<Packed>());
    if (status) status = p->finish_planning();
    if (!status) return status;
    *plan = std::move(p);
    return Status();
}

Status LayerPlan::reshape(const Geometry &geometry, std::unique_ptr<LayerPlan> *plan) const {
    std::unique_ptr<LayerPlan> p(new LayerPlan(geometry, settings_));
    p->quantization_ = quantization_;
    if (algorithm_) {
        Status status = p->choose(nullptr);
        if (status) status = algorithm_->reshape(geometry, &p->algorithm_);
        p->algorithm_name_ = algorithm_name_;
        if (status) status = p->finish_planning();
        if (status && p->record_ && p->record_->variant != algorithm_name_) {
            p->reason_ +=
                concat(" (a tuning record names ", p->record_->variant, ", for which weights are packed otherwise)");
        }
        if (status) *plan = std::move(p);
        return status;
    }
    // The variant that fits best may be another now, if it reads the weights as they are packed.
    Status status = p->choose(packed_.get());
    if (!status || p->direct_.variant().family == Family::kReference) {
        // Of a single position, the node's own stride leaves more variants than the one that spares multiplies.
        p->problem_ = spatial_problem(p->direct_geometry_, p->problem_.y_dtype, false);
        status = p->choose(packed_.get());
    }
    p->packed_ = packed_;
    // Packing is a pass over the weights, the reference one at each position.
    const bool repacks = status ? p->direct_.variant().family == Family::kReference && p->has_packed_otherwise()
                                : packed_ && !reference_reads(packed_->layout);
    if (repacks && !names_a_variant()) {
        p->problem_ = spatial_problem(p->direct_geometry_, p->problem_.y_dtype, true);
        status = p->repack(*this);
    }
    if (!status) return status;
    if (p->record_ && is_algorithm(p->record_->variant)) {
        p->reason_ +=
            concat(" (a tuning record names ", p->record_->variant, ", for which weights are packed otherwise)");
    }
    status = p->finish_planning();
    if (!status) return status;
    *plan = std::move(p);
    return Status();
}

bool LayerPlan::shares_weights_of(const LayerPlan &other) const {
    if (algorithm_) return other.algorithm_ && algorithm_->first().shares_weights_of(other.algorithm_->first());
    return packed_ && packed_ == other.packed_;
}

bool LayerPlan::has_packed_otherwise() const {
    return std::any_of(candidates_.begin(), candidates_.end(),
                       [](const Candidate &c) { return c.unsupported.text == kPackedOtherwise; });
}

void LayerPlan::list() const {
    std::call_once(listed_, [this] {
        key_ = tuning_key(geometry_);
        able_.clear(); // a call that ran out of memory may have left something
        kernels_.clear();
        const auto add = [this](const char *name) {
            const auto same = [name](const char *other) { return std::strcmp(name, other) == 0; };
            if (std::none_of(kernels_.begin(), kernels_.end(), same)) kernels_.push_back(name);
        };
        const auto add_those_of = [&](const DirectPlan &direct) {
            add(direct.variant().name);
            if (const Variant *const end = direct.row_end()) add(end->name);
        };
        if (algorithm_) {
            for (const LayerPlan *const layer : algorithm_->layers()) {
                for (const char *const name : layer->kernels()) add(name);
            }
        } else {
            add_those_of(direct_);
        }
        for (const DirectPlan &direct : fallbacks_) add_those_of(direct);
        std::vector<const Candidate *> able;
        for (const Candidate &c : candidates_) {
            if (!c.unsupported.text) able.push_back(&c);
        }
        std::stable_sort(able.begin(), able.end(),
                         [](const Candidate *a, const Candidate *b) { return a->cost < b->cost; });
        for (const Candidate *const c : able) able_.push_back(c->variant->name);
        if (weights_at_run_time()) return;
        // The chosen one in front, the others behind the best kernel.
        std::vector<const char *> others;
        for (const AlgorithmKind &kind : algorithms()) {
            // A way without an estimate may still work when it is asked for by name; with integers only estimated ones do.
            const bool has_estimate =
                std::any_of(estimates_.begin(), estimates_.end(),
                            [&](const AlgorithmEstimate &e) { return std::strcmp(e.name, kind.name) == 0; });
            const bool may = has_estimate || (estimates_.empty() && !geometry_.quantized());
            if (may && kind.name != algorithm_name_ && (settings_.winograd || !kind.changes_rounding))
                others.push_back(kind.name);
        }
        able_.insert(able_.begin() + (able_.empty() ? 0 : 1), others.begin(), others.end());
        if (algorithm_) able_.insert(able_.begin(), algorithm_name_);
    });
}

const std::vector<const char *> &LayerPlan::able() const {
    list();
    return able_;
}

const std::vector<const char *> &LayerPlan::kernels() const {
    list();
    return kernels_;
}

const std::string &LayerPlan::key() const {
    list();
    return key_;
}

const std::string &LayerPlan::explanation() const {
    std::call_once(explained_, [this] { explanation_ = explain(*this); });
    return explanation_;
}

// Calls f(i, w, offset) for each kernel element i of the leading axes: strides of the rest of dense (C, M/group, K1..Kn), and
// where it begins, in elements.
template<typename F>
void LayerPlan::for_each_leading_element(const F &f) const {
    const Shape &shape = geometry_.w_shape;
    const Strides strides = dense_strides(shape);
    WeightsView view;
    view.c = strides[0];
    view.m = strides[1];
    const std::size_t axes = direct_geometry_.axes.size();
    for (std::size_t a = 0; a < axes; a++) view.k[a] = strides[strides.size() - 1 - a];

    const std::vector<std::int64_t> extents(shape.begin() + 2,
                                            shape.begin() + 2 + static_cast<std::ptrdiff_t>(leading_));
    std::vector<std::int64_t> at(leading_, 0);
    std::size_t i = 0;
    do {
        std::int64_t offset = 0;
        for (std::size_t a = 0; a < leading_; a++) offset += at[a] * strides[2 + a];
        f(i++, view, offset);
    } while (next(extents, &at));
}

bool LayerPlan::pack(const DirectPlan &direct, const void *w, const void *b, const QuantizationValues *q,
                     void *packed) const {
    bool finite = true;
    for_each_leading_element([&](std::size_t i, WeightsView view, std::int64_t offset) {
        view.data =
            static_cast<const char *>(w) + offset * static_cast<std::int64_t>(convt_dtype_size(geometry_.w_dtype));
        char *const to = static_cast<char *>(packed) + i * direct.packed_bytes();
        if (q) {
            direct.pack(view, *q, to);
        } else {
            // With leading axes the bias is added once, when their taps have been summed.
            finite &= direct.pack(view, leading_ ? nullptr : b, to);
        }
    });
    return finite;
}

// Packs the weights of another plan anew, for a variant that reads them otherwise.
Status LayerPlan::repack(const LayerPlan &from) {
    auto packed = std::make_shared<Packed>();
    packed->facts = from.packed_->facts;
    packed->finite = from.packed_->finite;
    const Block &bias = from.packed_->bias;
    Block dense;
    Status status = choose(packed.get());
    if (status) status = copy_block(settings_.allocator, bias.data(), bias.size(), "biases", &packed->bias);
    if (status) status = get_block(settings_.allocator, geometry_.w_bytes(), "weights", &dense);
    if (!status) return status;
    from.for_each_leading_element([&](std::size_t i, const WeightsView &view, std::int64_t offset) {
        const auto *const data =
            static_cast<const char *>(from.packed_->block.data()) + i * from.direct_.packed_bytes();
        from.direct_.unpack(view, quantization_ ? &*quantization_ : nullptr, data,
                            static_cast<char *>(dense.data()) +
                                offset * static_cast<std::int64_t>(convt_dtype_size(geometry_.w_dtype)));
    });
    status = pack_all(dense.data(), packed->bias.data(), packed.get());
    if (!status) return status;
    packed_ = std::move(packed);
    return Status();
}

void LayerPlan::prepare(const DirectPlan &direct, const QuantizationValues &q, const void *packed, const void *b,
                        void *epilogue) const {
    const auto *from = static_cast<const char *>(packed);
    auto *to = static_cast<char *>(epilogue);
    for (std::int64_t i = 0; i < leading_elements(); i++) {
        direct.prepare(q, from, leading_ ? nullptr : b, to); // for the bias see pack()
        from += direct.packed_bytes();
        to += direct.epilogue_bytes();
    }
}

} // namespace convtranspose
