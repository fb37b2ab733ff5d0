#include "plans.h"

#include <cstdio>

#include "failure.h"

namespace convtranspose::provider {

void explain(const std::string &message) { std::fprintf(stderr, "%s: %s\n", kProviderName, message.c_str()); }

std::shared_ptr<const Plan> Plans::get(const Shape &x_shape, const Shape &w_shape, const Shape &b_shape, int threads) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->x_shape != x_shape) continue;
        if (!layer_.packs && (entry->w_shape != w_shape || entry->b_shape != b_shape)) continue;
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->plan;
    }
    std::shared_ptr<const Plan> plan = make(x_shape, w_shape, b_shape, threads);
    entries_.push_front({x_shape, w_shape, b_shape, plan});
    if (entries_.size() > kKept) entries_.pop_back();
    if (settings_->explain) explain(layer_.description + "\n" + plan->explain());
    return plan;
}

std::shared_ptr<const Plan> Plans::make(const Shape &x_shape, const Shape &w_shape, const Shape &b_shape, int threads) {
    auto plan = std::make_shared<Plan>();
    if (first_) {
        check(first_->reshape(x_shape, plan.get()), layer_.description);
        return plan;
    }
    Problem problem = layer_.problem;
    problem.x_shape = x_shape;
    if (!layer_.packs) {
        problem.w_shape = w_shape;
        if (problem.b_shape) problem.b_shape = b_shape;
    }
    Options options;
    options.threads = threads;
    options.planning = settings_->measures ? CONVT_MEASURE : CONVT_ESTIMATE;
    options.winograd = settings_->winograd ? 1 : 0;
    options.isa = settings_->isa.empty() ? nullptr : settings_->isa.c_str();
    options.tuning = settings_->tuning.get();
    const auto data_of = [&](const std::vector<std::byte> &values) -> const void * {
        static const char nothing = 0; // tensors without elements have no memory
        if (!layer_.packs) return nullptr;
        return values.empty() ? &nothing : static_cast<const void *>(values.data());
    };
    const void *const w = data_of(layer_.weights.w), *const b = problem.b_shape ? data_of(layer_.weights.b) : nullptr;
    check(Plan::create(problem, options, w, b, plan.get()), layer_.description);
    if (layer_.packs) {
        first_ = plan;
        layer_.weights = {};
    }
    return plan;
}

} // namespace convtranspose::provider
