#include <cstdio>
#include <exception>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "commands.h"
#include "error.h"
#include "job.h"
#include "layer.h"
#include "node_quantization.h"
#include "size_report.h"
#include "text.h"

namespace convtranspose::tools {

namespace {

// Of --size, the selection of kernels is told instead.
std::string explain(const Layer &layer, const Model &model, const ExplainOptions &options, Selection *selection) {
    Problem problem = layer.problem;
    const Node &node = layer.node;
    // With the model's own constants where it has them: constant weights are planned otherwise than run-time ones.
    std::map<std::string, Tensor> constants;
    std::vector<std::string> wanted = {node.w};
    if (!node.b.empty()) wanted.push_back(node.b);
    if (node.quantized) {
        wanted.insert(wanted.end(), {node.x_scale, node.x_zero_point, node.w_scale, node.w_zero_point, node.y_scale,
                                     node.y_zero_point});
    }
    for (const std::string &name : wanted) {
        if (model.is_constant(name)) constants.emplace(name, model.constant(name));
    }
    const bool constant = constants.size() == std::set<std::string>(wanted.begin(), wanted.end()).size();
    if (node.quantized && constant) {
        constants.emplace(node.x, Tensor(problem.dtype, {0})); // whose type is all that is looked at
        problem.quantization = quantization_of(
            node, [&constants](const std::string &name) -> const Tensor & { return constants.at(name); });
    }
    const auto data = [&](const std::string &name) -> const void * {
        return constant && !name.empty() ? constants.at(name).data.data() : nullptr;
    };
    Plan plan;
    throw_unless(Plan::create(problem, options.plan.view(), data(node.w), data(node.b), &plan));
    selection->add(plan.variant());
    if (options.size) return "";
    std::string text = node.label + ": " + convt_dtype_name(problem.dtype) + ", opset " + std::to_string(node.opset) +
                       ", x " + to_string(problem.x_shape) + ", w " + to_string(problem.w_shape) +
                       (constant ? " (constant)" : " (run-time)") +
                       (problem.b_shape ? ", b " + to_string(*problem.b_shape) : "") + ", y " +
                       to_string(plan.y_shape()) + "\n" + plan.explain();
    if (text.back() != '\n') text += '\n';
    return text;
}

} // namespace

int explain_command(const ExplainOptions &options) {
    if (options.paths.empty() && !options.size) throw UsageError("PATH is required, or --size");
    if (options.paths.empty()) {
        std::printf("%s", size_report().c_str());
        return kSuccess;
    }
    const std::vector<Job> jobs = jobs_from(options.paths);
    Selection selection;
    int printed = 0, failed = 0;
    for (const Job &job : jobs) {
        try {
            const Model model(job.model());
            model.require_nodes();
            const int printed_before = printed;
            for (std::size_t i = 0; i < model.node_count(); i++) {
                try {
                    const std::string text = explain(layer_of(model, i, options.layout), model, options, &selection);
                    if (printed++ > 0 && !options.size) std::printf("\n");
                    if (jobs.size() > 1 && !options.size) std::printf("%s: ", job.name.c_str());
                    std::printf("%s", text.c_str());
                } catch (const UnknownShape &e) {
                    std::fprintf(stderr, "note: %s: %s skipped: %s\n", job.name.c_str(), model.label(i).c_str(),
                                 e.what());
                }
            }
            if (printed == printed_before) {
                throw Error("no such node has known shapes (ONNX shape inference may find them)");
            }
        } catch (const std::exception &e) {
            std::fflush(stdout);
            std::fprintf(stderr, "error: %s: %s\n", job.name.c_str(), e.what());
            failed++;
        }
    }
    if (options.size && printed > 0) std::printf("%s", size_report(selection).c_str());
    return failed == 0 ? kSuccess : kFailure;
}

} // namespace convtranspose::tools
