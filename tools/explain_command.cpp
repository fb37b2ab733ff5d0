// The command `explain`: prints how layers would be computed, and why so.
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tools/commands.h"
#include "tools/each_layer.h"
#include "tools/error.h"
#include "tools/estimate_parts.h"
#include "tools/input_shape.h"
#include "tools/job.h"
#include "tools/layer.h"
#include "tools/node_quantization.h"
#include "tools/profile_line.h"
#include "tools/size_report.h"
#include "tools/text.h"
#include "tools/tuning_note.h"

namespace convtranspose::tools {

namespace {

using nlohmann::json;

constexpr std::size_t kNearest = 10, kNames = 2;

// Shortens "  no: WHY: a, b, c, d" to "  no: WHY: a, b and 2 more".
std::string with_few_names(const std::string &refusal) {
    std::size_t end = refusal.rfind(": ");
    for (std::size_t name = 0; name < kNames && end != std::string::npos; name++) end = refusal.find(", ", end + 1);
    if (end == std::string::npos) return refusal;
    std::size_t more = 0;
    for (std::size_t at = end; at != std::string::npos; at = refusal.find(", ", at + 1)) more++;
    return refusal.substr(0, end) + " and " + std::to_string(more) + " more";
}

// The plan's own text without candidates that are neither chosen nor among the nearest, and without most names in refusals.
std::string shortened(const std::string &whole) {
    constexpr const char *kHeading = "candidates, by estimated cycles:", *kRefusal = "  no: ";
    std::istringstream stream(whole);
    std::string text;
    std::size_t listed = 0, left_out = 0;
    bool in_list = false;
    for (std::string line; std::getline(stream, line);) {
        const bool refusal = in_list && line.rfind(kRefusal, 0) == 0;
        if (in_list && !refusal && listed++ >= kNearest && line.rfind("  *", 0) != 0) {
            left_out++;
            continue;
        }
        if (refusal && left_out > 0) text += "    and " + std::to_string(left_out) + " more (--all lists them)\n";
        if (refusal) left_out = 0;
        text += (refusal ? with_few_names(line) : line) + "\n";
        in_list = in_list || line == kHeading; // which is the last part of the text
    }
    if (left_out > 0) text += "    and " + std::to_string(left_out) + " more (--all lists them)\n";
    return text;
}

// An explanation of a layer: as text, or as JSON, which one of them is. With --size there is none, and only the selection of
// kernels is noted.
struct Explanation {
    std::string text;
    json object;
};

json json_of(const Plan &plan) {
    json candidates = json::array();
    for (std::size_t i = 0; i < convt_plan_candidate_count(plan.get()); i++) {
        candidates.push_back(
            {{"name", convt_plan_candidate(plan.get(), i)}, {"cycles", convt_plan_candidate_cycles(plan.get(), i)}});
    }
    return candidates;
}

Explanation explain(const Layer &layer, const Model &model, const ExplainOptions &options, Selection *selection) {
    Problem problem = layer.problem;
    const Node &node = layer.node;
    // The model's own constants are planned with, because constant weights are planned otherwise than those of each run.
    std::map<std::string, Tensor> constants;
    std::vector<std::string> wanted;
    for (const std::string &name : {node.w, node.b, node.x_scale, node.x_zero_point, node.w_scale, node.w_zero_point,
                                    node.y_scale, node.y_zero_point}) {
        if (!name.empty()) wanted.push_back(name);
    }
    for (const std::string &name : wanted) {
        if (model.is_constant(name)) constants.emplace(name, model.constant(name));
    }
    const bool constant = constants.size() == std::set<std::string>(wanted.begin(), wanted.end()).size();
    if (!node.w_scale.empty() && constant) {
        constants.emplace(node.x, Tensor(problem.dtype, {0})); // whose type is all that is looked at
        problem.quantization = quantization_of(
            node, [&constants](const std::string &name) -> const Tensor & { return constants.at(name); });
    }
    const auto data = [&](const std::string &name) -> const void * {
        return constant && !name.empty() ? constants.at(name).data.data() : nullptr;
    };
    const auto plan_by = [&](const convt_tuning *tuning) {
        Options own = options.plan.view();
        own.tuning = tuning;
        Plan made;
        throw_unless(Plan::create(problem, own, data(node.w), data(node.b), &made));
        return made;
    };
    const Plan plan = plan_by(options.plan.tuning.get());
    if (options.size) {
        const bool has_post_ops = problem.post_ops.adds_residual || problem.post_ops.activation != CONVT_NO_ACTIVATION;
        selection->add(plan, problem.dtype, problem.y_dtype.value_or(problem.dtype), has_post_ops);
        return {};
    }
    if (options.json) {
        return {"",
                {{"layer", node.label},
                 {"problem", convt_plan_problem(plan.get())},
                 {"isa", plan.isa()},
                 {"cost_profile", profile_of(plan)},
                 {"candidates", options.features ? features(plan, plan_by) : json_of(plan)}}};
    }
    std::string text =
        node.label + ": " + (node.chain().empty() ? "" : node.chain() + ", ") + convt_dtype_name(problem.dtype) +
        (node.light ? std::string(" with weights of ") + convt_dtype_name(*problem.w_dtype) : "") +
        (node.quantizes_x ? ", x quantized by each run" : "") + ", opset " + std::to_string(node.opset) + ", x " +
        to_string(problem.x_shape) + ", w " + to_string(problem.w_shape) + (constant ? " (constant)" : " (run-time)") +
        (problem.b_shape ? ", b " + to_string(*problem.b_shape) : "") + ", y " + to_string(plan.y_shape()) + "\n" +
        (node.floats().empty() ? "" : node.floats() + "\n") +
        (options.all ? std::string(plan.explain()) : shortened(plan.explain()));
    if (text.back() != '\n') text += '\n';
    return {text, nullptr};
}

// True if an option is given that matters to plans alone.
bool plans_otherwise(const ExplainOptions &options) {
    const PlanOptions &plan = options.plan;
    return options.layout || options.all || !options.cost_profile.empty() || !options.input_shapes.empty() ||
           plan.threads != 1 || !plan.variant.empty() || !plan.isa.empty() || !plan.device.empty() || plan.winograd ||
           plan.measuring_ms != 0;
}

} // namespace

int explain_command(const ExplainOptions &given) {
    ExplainOptions options = given;
    if (options.paths.empty() && !options.size) throw UsageError("PATH is required, or --size");
    if (options.json && options.size) throw UsageError("--json does not go with --size");
    if (options.size && options.plan.on_device())
        throw UsageError("--device does not go with --size, which tells of kernels for the CPU");
    if (options.paths.empty()) {
        if (plans_otherwise(options))
            throw UsageError("--size takes no other options without PATH: it tells of all kernels that are built in");
        std::printf("%s", size_report().c_str());
        return kSuccess;
    }
    if (!options.cost_profile.empty()) {
        try {
            const auto replace = json::error_handler_t::replace; // what is no UTF-8
            options.plan.tuning = read_tuning(profile_line(json(options.cost_profile).dump(-1, ' ', false, replace)));
        } catch (const Rejected &e) {
            const std::string message = e.what(); // "line 1 of the tuning records: there is no cost profile ..."
            throw UsageError("--cost-profile: " + message.substr(message.find(": ") + 2));
        }
    }
    json objects = json::array();
    const std::vector<Job> jobs = jobs_from(options.paths);
    const std::vector<InputShape> shapes = input_shapes_from(options.input_shapes);
    if (options.json || options.size) note_unusable_tuning(); // the text of a plan says it
    Selection selection;
    int printed = 0;
    const auto act = [&](const Job &job, const Model &model, const Layer &layer) {
        Explanation found = explain(layer, model, options, &selection);
        const bool is_text = !found.text.empty();
        if (printed++ > 0 && is_text) std::printf("\n");
        if (jobs.size() > 1 && is_text) std::printf("%s: ", printable(job.name).c_str());
        std::printf("%s", found.text.c_str());
        if (!options.json) return;
        found.object["model"] = job.name;
        objects.push_back(std::move(found.object));
    };
    const int failed = for_each_layer(jobs, shapes, options.layout, nullptr, act);
    // Names come from files and models, and need not be UTF-8.
    if (options.json) std::printf("%s\n", objects.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    require_all_used(shapes);
    if (options.size && printed > 0) std::printf("%s", size_report(selection).c_str());
    return failed == 0 ? kSuccess : kFailure;
}

} // namespace convtranspose::tools
