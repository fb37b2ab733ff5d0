// A plan for a device holds the geometry, the chosen kernel, weights on the device, and workspaces for each stream.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/algorithm.h"
#include "base/allocator.h"
#include "base/parallel.h"
#include "direct/operands.h"
#include "gpu/device_choice.h"
#include "gpu/open_device.h"
#include "kernels/tuning.h"
#include "plan/problem_plan.h"
#include "problem/geometry.h"

namespace convtranspose {

struct DeviceRequest {
    const DeviceTable *table = nullptr; // the component for the kind of device
    int index = 0;
    void *context = nullptr;
    std::string variant;            // the variant to use; empty: by tuning record or cost
    const Tuning *tuning = nullptr; // as in PlanSettings
};

// Plans a problem for a device. The other arguments are those of LayerPlan::create().
Status plan_on_device(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
                      const LayerWeights &weights, std::unique_ptr<ProblemPlan> *plan);

class DevicePlan : public ProblemPlan {
  public:
    Status reshape(const Geometry &geometry, std::unique_ptr<ProblemPlan> *plan) const override;
    Status run(const RunTensors &tensors, void *workspace) const override;

    const std::vector<AbleCandidate> &able() const override { return able_; } // sorted by estimate
    const std::vector<const char *> &kernels() const override { return kernels_; }
    TuningRecord record() const override;
    std::string explain() const override;

  private:
    friend Status plan_on_device(const Geometry &, const DeviceRequest &, const Allocator &, const LayerWeights &,
                                 std::unique_ptr<ProblemPlan> *);

    // A Kernel is a variant for this problem, with the layout of its weights and its tables of taps on the device.
    struct Kernel {
        DeviceChoice choice;
        PackedLayout layout;
        DeviceMemory elements, parts; // tables by phase
        std::int64_t element_count = 0, part_count = 0, most_elements = 0, chunks = 0;
        std::array<DeviceMemory, 3> taps; // tables by output
    };
    // These are packed weights and biases, and the factors of quantized layers.
    struct Weights {
        DeviceMemory w, bias, factors;
        std::vector<std::int32_t> sums; // sums of 8-bit weights, to subtract the part of x's zero point
        std::vector<char>
            given_bias; // (M) of quantized layers, as a run may bring its own scales; constant weights only
        bool finite = true;
        const void *bias_in_host() const { return given_bias.empty() ? nullptr : given_bias.data(); }
    };
    // This describes a tensor on the device.
    struct Placed {
        std::uint64_t memory = 0; // 0: there is none
        TensorStrides strides;
        std::int64_t span = 1; // elements from the first to the last
        DeviceMemory wrapped;  // the caller's memory, if it is that
    };
    // A call of a kernel that multiplies: all but the tensor that it writes.
    struct Launch {
        const Kernel &kernel;
        const Weights &weights, &epilogue; // epilogue: has the biases and factors
        const QuantizationValues *q;
        const Placed &x;
        void *stream;
    };
    // A workspace is the memory that a run needs besides those. While it is used, it belongs to the stream of the last run, whose
    // work may not have ended. thread: 0 unless each thread has such a stream of its own.
    struct Workspace {
        void *stream = nullptr;
        std::uint64_t thread = 0;
        bool used = false;
        DeviceMemory x, y, residual, parts;
        Weights weights;
        Block host; // tensors with gaps, made dense; packed weights
    };

    DevicePlan(const Geometry &geometry, const DeviceRequest &request, const Allocator &allocator,
               std::shared_ptr<OpenDevice> device, const QuantizationValues *quantization, const WeightFacts &facts);
    Status choose(const PackedLayout *packed, Kernel *kernel);
    Status refused(const std::vector<DeviceChoice> &choices) const;
    Status choose_for_any_weights();
    Status make_tables(Kernel *kernel) const;
    Status pack(const Kernel &kernel, const QuantizationValues *q, const void *w, const void *b,
                Workspace *workspace) const;
    Status upload_factors(const Kernel &kernel, const QuantizationValues &q, const std::vector<std::int32_t> &sums,
                          const void *b, Workspace *workspace) const;
    Status ensure(std::uint64_t bytes, DeviceMemory *memory) const;
    Status send(const void *from, std::uint64_t bytes, void *stream, DeviceMemory *to) const;
    Status host_block(std::uint64_t bytes, Block *block) const;
    Status place(const RunTensor &given, const Shape &shape, convt_dtype dtype, Workspace *workspace, DeviceMemory *own,
                 Placed *placed) const;
    Status run_in(const RunTensors &t, Workspace *workspace) const;
    Status run_kernel(const Launch &launch, const Placed &y) const;
    Status run_combine(const Kernel &kernel, const Placed &parts, const Placed &residual, const Placed &y,
                       void *stream) const;
    class KernelArguments;
    void add_taps(const Kernel &kernel, KernelArguments *arguments) const;
    halide_type_t type_on_device(convt_dtype dtype) const;
    Status call(DeviceFunction function, KernelArguments *arguments, void *stream) const;
    void know();

    SpatialProblem problem_;
    DeviceRequest request_;
    Allocator allocator_;
    std::shared_ptr<OpenDevice> device_;
    std::optional<QuantizationValues> quantization_;
    Kernel kernel_;
    // This kernel is for weights that arrive with a run and hold an infinity or a NaN. It has no variant if it is not needed.
    Kernel any_weights_;
    std::shared_ptr<const Weights> constant_;
    std::shared_ptr<const Weights> epilogue_; // has the biases and factors of constant weights, for this shape of x
    std::string why_;                         // kernel_ was chosen
    std::vector<DeviceChoice> choices_;       // that it was chosen from
    std::vector<AbleCandidate> able_;         // those among them that can compute the problem
    std::vector<const char *> kernels_;       // one

    mutable Mutex mutex_;
    mutable std::vector<Workspace> free_;
};

} // namespace convtranspose
