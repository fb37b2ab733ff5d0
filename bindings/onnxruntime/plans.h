// The plans of one layer: one for each shape seen, the last eight of which are kept.
#ifndef CONVTRANSPOSE_ONNXRUNTIME_PLANS_H_
#define CONVTRANSPOSE_ONNXRUNTIME_PLANS_H_

#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "convtranspose/convtranspose.hpp"
#include "layer.h"
#include "settings.h"

namespace convtranspose::provider {

// The layer without the graph, and what is constant of it.
struct PlannedLayer {
    std::string description;
    Problem problem;
    Weights weights;    // given back once they are packed
    bool packs = false; // all that the library would pack is constant
};

// Prints one message of the provider to the standard error output, for the option `explain`.
void explain(const std::string &message);

// May be used from several threads at once.
class Plans {
  public:
    Plans(PlannedLayer layer, std::shared_ptr<const Settings> settings)
        : layer_(std::move(layer)), settings_(std::move(settings)) {}

    const PlannedLayer &layer() const { return layer_; }
    // The plan for these shapes. w_shape and b_shape are looked at only if weights come with each run. Plans for constant
    // weights share the packed ones. Throws Failure with the library's message.
    std::shared_ptr<const Plan> get(const Shape &x_shape, const Shape &w_shape, const Shape &b_shape, int threads);

  private:
    static constexpr std::size_t kKept = 8;
    struct Entry {
        Shape x_shape, w_shape, b_shape;
        std::shared_ptr<const Plan> plan;
    };

    std::shared_ptr<const Plan> make(const Shape &x_shape, const Shape &w_shape, const Shape &b_shape, int threads);

    std::mutex mutex_;
    PlannedLayer layer_;
    std::shared_ptr<const Settings> settings_;
    std::shared_ptr<const Plan> first_; // of constant weights, which it owns
    std::list<Entry> entries_;          // the last used first
};

} // namespace convtranspose::provider

#endif // CONVTRANSPOSE_ONNXRUNTIME_PLANS_H_
