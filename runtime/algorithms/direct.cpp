#include "algorithms/direct.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/shape.h"

namespace convtranspose {

namespace {

// Returns the type of bare sums, which kernels write if there are leading axes. fits_int32: as in WeightFacts.
convt_dtype bare_sum_dtype(const Geometry &geometry, bool fits_int32) {
    if (!geometry.quantized()) return sum_dtype(geometry.dtype);
    return fits_int32 ? CONVT_S32 : CONVT_F64;
}

constexpr const char *kOtherPacking = "weights are packed in another order";

// Returns true if a reference kernel of the layout's arithmetic reads weights in it. If not, another kernel needs them packed
// again.
bool reference_reads(const PackedLayout &layout) {
    return !layout.phases_inside && (layout.arithmetic == Arithmetic::kFloat || layout.arithmetic == Arithmetic::kHalf);
}

const char *family_rule(Family family) {
    switch (family) {
    case Family::kReference: return "any problem, one element at a time";
    case Family::kOcVectorized: return "vectors along the output channels";
    case Family::kAmx: return "matrix instructions";
    case Family::kOwVectorized: return "vectors along rows, weights broadcast";
    case Family::kSmallOc: return "vectors along rows, one load of x for all phases";
    case Family::kDepthwise: return "one input channel per group";
    }
    return "";
}

} // namespace

Direct::Direct(const AlgorithmProblem &problem)
    : geometry_(problem.geometry), settings_(problem.settings), quantization_(problem.quantization),
      record_(problem.record) {
    leading_ = geometry_.axes.size() > 3 ? geometry_.axes.size() - 3 : 0;
    for (std::size_t a = 0; a < leading_; a++)
        leading_axes_.push_back(plan_axis(geometry_.axes[a], geometry_.axes[a].stride, false));
    set_problem(problem, true);
}

// Sets problem_. single_positions: as for spatial_problem().
void Direct::set_problem(const AlgorithmProblem &problem, bool single_positions) {
    Geometry inner = geometry_;
    inner.axes.erase(inner.axes.begin(), inner.axes.begin() + static_cast<std::ptrdiff_t>(leading_));
    const convt_dtype y_dtype = leading_ ? bare_sum_dtype(geometry_, problem.facts.fits_int32) : geometry_.y_dtype;
    problem_ = spatial_problem(inner, y_dtype, single_positions);
    problem_.weights_at_run_time = !problem.constant_weights;
    problem_.sums_in_f16 = settings_.sums_in_f16;
    problem_.facts = problem.facts;
}

std::unique_ptr<AlgorithmPlan> propose_direct(const AlgorithmProblem &problem, UnsupportedReason * /*why*/) {
    std::unique_ptr<Direct> own(new Direct(problem));
    own->choose(nullptr);
    return own;
}

bool Direct::names_a_kernel() const { return !settings_.variant.empty() && !find_algorithm(settings_.variant); }

std::int64_t Direct::leading_elements() const {
    std::int64_t n = 1;
    for (std::size_t a = 0; a < leading_; a++) n *= geometry_.axes[a].kernel;
    return n;
}

// Returns the shape of y at one position of the leading axes, in the layout of y.
Shape Direct::inner_y_shape() const {
    Geometry inner = problem_.geometry; // whose shapes are those of the whole layer
    inner.set_shapes();
    return inner.y_shape;
}

// Returns where the weights of kernel element i of the leading axes begin among all, dense (C, M/group, K1..Kn), in bytes.
std::int64_t Direct::weights_before(std::int64_t i) const {
    return i * dense_strides(geometry_.w_shape)[1 + leading_] * size_of(geometry_.w_dtype);
}

// Compares all kernels, unless one is named, and plans the best one. packed: the weights if they are packed already, else null.
void Direct::choose(const Packed *packed) {
    problem_.may_be_infinite = packed && !packed->finite;
    candidates_ = convtranspose::candidates(problem_, settings_.isa, *settings_.profile,
                                            names_a_kernel() ? settings_.variant.c_str() : nullptr);
    for (Candidate &c : candidates_) {
        const Variant &v = *c.variant;
        const bool packed_otherwise = packed && packed->block && !same_packing(packing_of(v), packed->layout);
        const bool reads_any = v.family == Family::kReference && !geometry_.quantized() && packed &&
                               v.arithmetic == packed->layout.arithmetic && reference_reads(packed->layout);
        if (!c.unsupported.text && packed_otherwise && !reads_any) c.unsupported = {kOtherPacking};
    }
    const TuningRecord *const kernel_record = record_ && !find_algorithm(record_->variant) ? record_ : nullptr;
    std::string note;
    const Candidate *recorded = nullptr, *best = nullptr;
    for (;;) {
        note.clear();
        recorded = recorded_choice(candidates_, kernel_record, isa_name(settings_.isa), &note);
        best = recorded ? recorded : cheapest(candidates_);
        is_possible_ = best != nullptr;
        if (!best) {
            estimate({std::numeric_limits<double>::infinity()});
            return;
        }
        direct_ = std::make_shared<const DirectPlan>(problem_, *best, *settings_.profile, settings_.parallel.threads,
                                                     packed && packed->block ? &packed->layout : nullptr);
        const UnsupportedReason overflow = direct_->overflow();
        if (!overflow.text) break;
        candidates_[static_cast<std::size_t>(best - candidates_.data())].unsupported = overflow;
    }
    recorded_ = recorded != nullptr;
    const Family family = best->variant->family;
    why_least_ = with_note(family == Family::kReference ? "no other variant can"
                                                        : concat("least estimated cost; ", family_rule(family)),
                           note);
    estimate({std::isfinite(best->cost) ? best->cost : 0}); // not finite for a layer without elements
    // Kernels of other types make up most of the list, but are of no interest once one is chosen.
    const auto of_others = [&](const Candidate &c) {
        return c.unsupported.text == kOtherType || is_float(c.variant->arithmetic) == geometry_.quantized();
    };
    const auto end = std::remove_if(candidates_.begin(), candidates_.end(), of_others);
    candidates_ = std::vector<Candidate>(candidates_.begin(), end); // the copy takes no more memory than it needs
}

// Returns the reason why no candidate can compute the layer.
Status Direct::refused() const {
    const bool is_named = names_a_kernel();
    for (const Candidate &c : candidates_) {
        const UnsupportedReason &r = c.unsupported;
        if (!is_named && !r.is_overflow) continue;
        return Status(r.is_overflow ? CONVT_OVERFLOW : CONVT_UNSUPPORTED,
                      concat("variant ", c.variant->name, " on ", isa_name(c.variant->isa),
                             " cannot run this problem: ", to_string(r)));
    }
    if (is_named) {
        return unsupported("variant ", settings_.variant, " is not built for ", isa_name(settings_.isa));
    }
    return unsupported("no kernel of ", isa_name(settings_.isa), " for ",
                       geometry_.quantized() ? "quantized layers" : convt_dtype_name(geometry_.dtype), " is built in");
}

void Direct::plan_fallbacks() {
    fallbacks_.clear();
    const Variant &chosen = direct_->variant();
    if (!weights_at_run_time() || chosen.family == Family::kReference) return;
    const int threads = settings_.parallel.threads;
    if (!geometry_.quantized()) {
        if (!problem_.reads_outside()) return;
        const auto reads_it = [&](const Candidate &c) {
            return !c.unsupported.text && c.variant->family == Family::kReference &&
                   c.variant->arithmetic == chosen.arithmetic;
        };
        const std::vector<Candidate> list = convtranspose::candidates(problem_, settings_.isa, *settings_.profile);
        const auto reference = std::find_if(list.begin(), list.end(), reads_it);
        if (reference != list.end())
            fallbacks_.emplace_back(problem_, *reference, *settings_.profile, threads,
                                    reference_reads(direct_->packed_layout()) ? &direct_->packed_layout() : nullptr);
        return;
    }
    SpatialProblem problem = problem_;
    for (const bool fits_int32 : {true, false}) {
        if (fits_int32 && chosen.arithmetic != Arithmetic::kInt8) continue;
        problem.facts.fits_int8 = false;
        problem.facts.fits_int32 = fits_int32;
        if (leading_) problem.y_dtype = bare_sum_dtype(geometry_, fits_int32);
        const std::vector<Candidate> list = convtranspose::candidates(problem, settings_.isa, *settings_.profile);
        const Candidate *const best = cheapest(list);
        if (best) fallbacks_.emplace_back(problem, *best, *settings_.profile, threads);
        if (best && fallbacks_.back().overflow().text) fallbacks_.pop_back(); // runs whose weights need it will fail
    }
}

// Packs constant weights for direct_.
Status Direct::pack_all(const LayerWeights &weights, Packed *packed) const {
    packed->layout = direct_->packed_layout();
    const std::uint64_t bytes = direct_->packed_bytes() * leading_elements();
    TRY(get_block(settings_.allocator, bytes, "packed weights", &packed->block));
    packed->finite = pack(*direct_, weights, quantization_, packed->block.data());
    return Status();
}

// Packs constant weights for direct_. If they hold an infinity or a NaN, a kernel that may meet such weights is chosen first.
Status Direct::build(const LayerWeights &weights) {
    if (!is_possible_) return refused();
    if (!weights.w) return finish();
    auto packed = std::make_shared<Packed>();
    TRY(pack_all(weights, packed.get()));
    if (!packed->finite) {
        const bool keeps = reference_reads(packed->layout);
        if (!keeps) packed->block = Block();
        choose(packed.get());
        if (!is_possible_) return refused();
        if (!keeps) TRY(pack_all(weights, packed.get()));
    }
    TRY(copy_block(settings_.allocator, weights.b, geometry_.b_bytes(), "biases", &packed->bias));
    packed_ = std::move(packed);
    return finish();
}

std::unique_ptr<AlgorithmPlan> Direct::replan(const AlgorithmProblem &problem) const {
    if (problem_.may_be_infinite) return nullptr;
    std::unique_ptr<Direct> own(new Direct(problem));
    own->problem_ = problem_;
    own->is_possible_ = true;
    own->direct_ = direct_;
    own->estimate(estimated_cycles());
    return own;
}

Status Direct::reshape(const AlgorithmProblem &problem, std::unique_ptr<AlgorithmPlan> *made) const {
    std::unique_ptr<Direct> own(new Direct(problem));
    // Another variant may fit best now, among those that read the weights as they are packed.
    own->choose(packed_.get());
    if (!own->is_possible_ || own->direct_->variant().family == Family::kReference) {
        // For an axis of one position, the layer's own stride allows more variants than the stride that saves multiplications.
        own->set_problem(problem, false);
        own->choose(packed_.get());
    }
    own->packed_ = packed_;
    // Packing again takes one pass over the weights. The reference kernel would take one pass for each position.
    const auto is_packed_otherwise = [](const Candidate &c) { return c.unsupported.text == kOtherPacking; };
    const bool repacks = own->is_possible_
                             ? own->direct_->variant().family == Family::kReference &&
                                   std::any_of(own->candidates_.begin(), own->candidates_.end(), is_packed_otherwise)
                             : packed_ && !reference_reads(packed_->layout);
    if (repacks && !names_a_kernel()) {
        own->set_problem(problem, true);
        TRY(own->repack(*this));
    } else if (!own->is_possible_) {
        return own->refused();
    }
    TRY(own->finish());
    *made = std::move(own);
    return Status();
}

bool Direct::shares_weights_of(const AlgorithmPlan &other) const {
    return packed_ && packed_ == static_cast<const Direct &>(other).packed_;
}

void Direct::for_each_kernel(const std::function<void(const char *)> &f) const {
    const auto add = [&](const DirectPlan &direct) {
        f(direct.variant().name);
        if (const Variant *const end = direct.row_end()) f(end->name);
    };
    add(*direct_);
    for (const DirectPlan &direct : fallbacks_) add(direct);
}

// Plans what a run needs besides packed weights: post-ops, fallbacks and the workspace.
Status Direct::finish() {
    TRY(find_post_ops(geometry_, settings_.isa, &post_ops_));
    plan_fallbacks();
    const auto most = [this](std::uint64_t (DirectPlan::*bytes)() const) {
        std::uint64_t found = (*direct_.*bytes)();
        for (const DirectPlan &direct : fallbacks_) found = std::max(found, (direct.*bytes)());
        return found;
    };
    const std::int64_t elements = leading_elements();
    const bool examines = weights_at_run_time() && geometry_.quantized();
    run_packed_bytes_ = weights_at_run_time() ? round_up(most(&DirectPlan::packed_bytes) * elements) : 0;
    // A run may bring its own scales even if weights are constant.
    run_epilogue_bytes_ = round_up(most(&DirectPlan::epilogue_bytes) * elements);
    direct_bytes_ = round_up(
        std::max(most(&DirectPlan::workspace_bytes), examines ? examination_bytes(geometry_) : std::uint64_t{0}));
    if (packed_ && quantization_) {
        TRY(get_block(settings_.allocator, run_epilogue_bytes_, "biases", &epilogue_));
        prepare(*direct_, *quantization_, packed_->block.data(), packed_->bias.data(), epilogue_.data());
    }
    const bool planar =
        direct_->variant().family != Family::kReference && direct_->variant().output_order == OutputOrder::kPlanar;
    if (!leading_ && planar && geometry_.y_channels_last()) dense_y_bytes_ = round_up(geometry_.y_bytes());
    // One position of the leading axes needs room for a result of the direct plan and for the sum of the results.
    if (leading_) partial_bytes_ = 2 * round_up(volume(inner_y_shape()) * sizeof(double));
    return Status();
}

bool Direct::pack(const DirectPlan &direct, const LayerWeights &weights, const QuantizationValues *q,
                  void *packed) const {
    bool finite = true;
    for (std::int64_t i = 0; i < leading_elements(); i++) {
        const WeightsView view = view_of_dense(geometry_.w_shape, element_at(weights.w, weights_before(i), 1));
        // With leading axes, the bias is added once, after their taps have been summed.
        finite &= direct.pack(view, q, leading_ ? nullptr : weights.b, element_at(packed, i, direct.packed_bytes()));
    }
    return finite;
}

// Packs the weights of another plan again, for a variant that reads another layout.
Status Direct::repack(const Direct &from) {
    auto packed = std::make_shared<Packed>();
    packed->finite = from.packed_->finite;
    const Block &bias = from.packed_->bias;
    Block dense;
    choose(packed.get());
    if (!is_possible_) return refused();
    TRY(copy_block(settings_.allocator, bias.data(), bias.size(), "biases", &packed->bias));
    TRY(get_block(settings_.allocator, geometry_.w_bytes(), "weights", &dense));
    // `from` may have other axes than this plan: those with one position of x, y and the kernel are left out.
    for (std::int64_t i = 0; i < from.leading_elements(); i++) {
        from.direct_->unpack(view_of_dense(from.geometry_.w_shape, nullptr), quantization_,
                             element_at(from.packed_->block.data(), i, from.direct_->packed_bytes()),
                             element_at(dense.data(), from.weights_before(i), 1));
    }
    TRY(pack_all({dense.data(), packed->bias.data()}, packed.get()));
    packed_ = std::move(packed);
    return Status();
}

void Direct::prepare(const DirectPlan &direct, const QuantizationValues &q, const void *packed, const void *b,
                     void *epilogue) const {
    for (std::int64_t i = 0; i < leading_elements(); i++) { // pack() says why there may be no bias
        direct.prepare(q, element_at(packed, i, direct.packed_bytes()), leading_ ? nullptr : b,
                       element_at(epilogue, i, direct.epilogue_bytes()));
    }
}

} // namespace convtranspose
