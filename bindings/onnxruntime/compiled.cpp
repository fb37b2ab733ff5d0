#include "compiled.h"

#include "failure.h"

namespace convtranspose::provider {

namespace {

PlannedLayer planned(const Layer &layer, const Settings &settings) {
    PlannedLayer planned;
    planned.description = layer.description();
    planned.problem = layer.problem;
    std::vector<std::string> notes;
    planned.weights = weights_of(layer, settings, &planned.problem, &notes);
    planned.packs = layer.packs();
    for (const std::string &note : notes) {
        if (settings.explain) explain(layer.label + ": " + note);
    }
    return planned;
}

std::size_t index_of(const Value &value, const std::vector<Value> &inputs) {
    const std::string name = value.name();
    for (std::size_t i = 0; i < inputs.size(); i++) {
        if (inputs[i] && inputs[i].name() == name) return i;
    }
    throw Failure(kFail, "value '" + name + "' is no input of the fused node");
}

convt_tensor view(const void *data, convt_dtype dtype, const Shape &shape) {
    return detail::tensor(data, dtype, shape.data(), shape.size());
}

} // namespace

CompiledLayer::CompiledLayer(const Api &api, const Layer &layer, const Node &fused_node,
                             std::shared_ptr<const Settings> settings, std::shared_ptr<ThreadCount> threads)
    : api_(api), threads_(std::move(threads)), b_dtype_(bias_dtype(layer.problem)),
      y_dtype_(layer.problem.y_dtype.value_or(layer.problem.dtype)), plans_(planned(layer, *settings), settings) {
    create_state = create;
    compute = run;
    release_state = release;
    const std::vector<Value> inputs = fused_node.inputs();
    x_ = index_of(layer.x, inputs);
    if (!layer.w_is_constant()) w_ = index_of(layer.w, inputs);
    if (!layer.b_is_constant()) b_ = index_of(layer.b, inputs);
    if (layer.residual) residual_ = index_of(layer.residual, inputs);

    const Problem &problem = plans_.layer().problem;
    if (plans_.layer().packs && is_known(problem.x_shape) && threads_->is_known()) {
        plans_.get(problem.x_shape, {}, {}, threads_->get({api_, nullptr}));
    }
}

OrtStatus *CompiledLayer::create(NodeComputeInfo *info, OrtNodeComputeContext *, void **state) {
    *state = info; // it has no state of its own, but null would look like a failure
    return nullptr;
}

OrtStatus *CompiledLayer::run(NodeComputeInfo *info, void *, OrtKernelContext *context) {
    auto *const layer = static_cast<CompiledLayer *>(info);
    return guarded(layer->api_, [&] { layer->compute_y(context); });
}

TensorRef CompiledLayer::input(const OrtKernelContext *context, std::size_t index) const {
    const OrtValue *value = nullptr;
    check(api_, api_.KernelContext_GetInput(context, index, &value));
    if (!value) throw Failure(kInvalidArgument, plans_.layer().description + ": an input is missing");
    return tensor_of(api_, value);
}

void CompiledLayer::compute_y(OrtKernelContext *context) {
    const PlannedLayer &layer = plans_.layer();
    const Problem &problem = layer.problem;
    const TensorRef x = input(context, x_);
    // Without packed weights, what is constant of them is passed with each run too. Those that are packed may be given back by
    // another thread meanwhile.
    TensorRef w{0, problem.w_shape, layer.packs ? nullptr : layer.weights.w.data()};
    TensorRef b{0, problem.b_shape.value_or(Shape()), layer.packs ? nullptr : layer.weights.b.data()};
    if (w_ != kNone) w = input(context, w_);
    if (b_ != kNone) b = input(context, b_);

    RunThreads run_threads{api_, context};
    const std::shared_ptr<const Plan> plan = plans_.get(x.shape, w.shape, b.shape, threads_->get(run_threads));
    const Shape y_shape = plan->y_shape();
    OrtValue *y_value = nullptr;
    void *y_data = nullptr;
    check(api_, api_.KernelContext_GetOutput(context, 0, y_shape.data(), y_shape.size(), &y_value));
    if (!y_value) return; // nothing reads y
    check(api_, api_.GetTensorMutableData(y_value, &y_data));

    TensorRef residual;
    if (residual_ != kNone) residual = input(context, residual_);
    const convt_tensor x_view = view(x.data, problem.dtype, x.shape), y_view = view(y_data, y_dtype_, y_shape),
                       w_view = view(w.data, problem.w_dtype.value_or(problem.dtype), w.shape),
                       b_view = view(b.data, b_dtype_, b.shape),
                       residual_view = view(residual.data, y_dtype_, residual.shape);
    convt_arguments arguments{};
    arguments.struct_size = sizeof arguments;
    arguments.x = &x_view;
    arguments.y = &y_view;
    if (!layer.packs) arguments.w = &w_view;
    if (!layer.packs && problem.b_shape) arguments.b = &b_view;
    if (residual_ != kNone) arguments.residual = &residual_view;
    arguments.parallel_for = parallel_for;
    arguments.parallel_user = &run_threads;
    check(Status::from(convt_plan_run_with(plan->get(), &arguments)), layer.description);
}

} // namespace convtranspose::provider
