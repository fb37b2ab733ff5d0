// The command `run`: computes models on their inputs, writes the results, and compares them.
#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "tools/commands.h"
#include "tools/compare.h"
#include "tools/error.h"
#include "tools/files.h"
#include "tools/job.h"
#include "tools/node_quantization.h"
#include "tools/onnx_model.h"
#include "tools/onnx_tensor.h"
#include "tools/text.h"
#include "tools/tuning_note.h"

namespace fs = std::filesystem;

namespace convtranspose::tools {

namespace {

// True if an extent of y would exceed what ONNX can say, as opposed to what the library takes.
bool exceeds_64_bits(const Problem &problem) {
    const Attributes &a = problem.attributes;
    const auto at = [](const Ints &list, std::size_t i, std::int64_t by_default) {
        return static_cast<double>(list && i < list->size() ? (*list)[i] : by_default);
    };
    const std::size_t first = problem.layout == CONVT_CHANNELS_LAST ? 1 : 2;
    for (std::size_t i = 0; i + 2 < problem.w_shape.size() && i + first < problem.x_shape.size(); i++) {
        const double in = static_cast<double>(problem.x_shape[i + first]),
                     kernel = static_cast<double>(problem.w_shape[i + 2]);
        const double out =
            (in - 1) * at(a.strides, i, 1) + (kernel - 1) * at(a.dilations, i, 1) + at(a.output_padding, i, 0);
        if (std::fabs(out) >= 0x1p63) return true;
    }
    return false;
}

// A model and its plan. Constant weights are packed once for all data sets; weights that are graph inputs go in with
// each run.
class Session {
  public:
    Session(const fs::path &model_file, const RunOptions &options)
        : model_(model_file), node_(model_.only_node()), options_(options.plan),
          layout_(options.layout.value_or(node_.layout())) {}

    Tensor run(const DataSet &set);

    const std::string &output_name() const { return node_.y; }
    const Plan &plan() const { return plan_; }
    convt_dtype y_dtype() const { return y_dtype_; }
    double terms() const { return terms_; } // products, and the bias, in one output element

  private:
    void load_inputs(const DataSet &set);
    const Tensor &value(const std::string &name);
    void make_plan(const Tensor &x, const Tensor &w, const Tensor *b, bool constant_weights);
    void check_types(const Tensor &x, const Tensor &w, const Tensor *b);
    bool constant_quantization() const;
    bool reads(const std::string &name) const;

    Model model_;
    Node node_;
    PlanOptions options_;
    convt_layout layout_; // of x and y in the plan; files have the operator's
    std::map<std::string, Tensor> fed_, constants_;
    Plan plan_;
    convt_dtype planned_x_ = CONVT_F32, planned_y_ = CONVT_F32;
    convt_dtype y_dtype_ = CONVT_F32;
    std::optional<Quantization> quantization_; // of the data set
    double terms_ = 0;
};

void Session::load_inputs(const DataSet &set) {
    const std::vector<std::string> &names = model_.inputs();
    if (set.inputs.size() < names.size()) {
        throw Error("graph input '" + names[set.inputs.size()] + "' has no file: there are " +
                    std::to_string(set.inputs.size()) + " input files, the model takes " +
                    std::to_string(names.size()));
    }
    if (set.inputs.size() > names.size()) {
        std::string initialized;
        for (const std::string &name : model_.inputs_with_initializers()) {
            initialized += (initialized.empty() ? "'" : ", '") + name + "'";
        }
        throw Error("there are " + std::to_string(set.inputs.size()) + " input files, the model takes " +
                    std::to_string(names.size()) +
                    (initialized.empty()
                         ? ""
                         : ": graph inputs that have initializers (" + initialized +
                               ") are constants here, so leave their files out or drop the initializers"));
    }
    fed_.clear();
    for (std::size_t i = 0; i < names.size(); i++) {
        if (!reads(names[i])) continue; // it may be of any type
        Tensor tensor = load_tensor(set.inputs[i]);
        const ValueType declared = model_.type_of(names[i]);
        if (declared.data_type != 0 &&
            dtype_from_onnx(declared.data_type, "graph input '" + names[i] + "'") != tensor.dtype) {
            throw Error("'" + set.inputs[i].string() + "' is " + convt_dtype_name(tensor.dtype) + ", graph input '" +
                        names[i] + "' is " + onnx_type_name(declared.data_type));
        }
        const auto agrees = [](std::int64_t have, std::int64_t want) { return want == -1 || have == want; };
        if (declared.shape && !std::equal(tensor.shape.begin(), tensor.shape.end(), declared.shape->begin(),
                                          declared.shape->end(), agrees)) {
            throw Error("'" + set.inputs[i].string() + "' is " + to_string(tensor.shape) + ", graph input '" +
                        names[i] + "' is " + to_string(*declared.shape) + " (-1: any)");
        }
        fed_.insert_or_assign(names[i], std::move(tensor));
    }
}

// True if the node has an input of that name.
bool Session::reads(const std::string &name) const {
    for (const std::string *input : {&node_.x, &node_.w, &node_.b, &node_.x_scale, &node_.x_zero_point, &node_.w_scale,
                                     &node_.w_zero_point, &node_.y_scale, &node_.y_zero_point}) {
        if (name == *input) return true;
    }
    return false;
}

const Tensor &Session::value(const std::string &name) {
    const auto fed = fed_.find(name);
    if (fed != fed_.end()) return fed->second;
    model_.require_supported(name);
    if (!model_.is_constant(name)) {
        throw Rejected(node_.label + ": its input '" + name +
                       "' is not an input, initializer or Constant of the graph");
    }
    const auto loaded = constants_.find(name);
    if (loaded != constants_.end()) return loaded->second;
    return constants_.emplace(name, model_.constant(name)).first->second;
}

void Session::make_plan(const Tensor &x, const Tensor &w, const Tensor *b, bool constant_weights) {
    if (plan_ && constant_weights && planned_x_ == x.dtype && planned_y_ == y_dtype_) {
        if (plan_.x_shape() == x.shape) return;
        Plan reshaped;
        throw_unless(plan_.reshape(x.shape, &reshaped));
        plan_ = std::move(reshaped);
        return;
    }
    Problem problem;
    problem.opset = node_.opset;
    problem.dtype = x.dtype;
    problem.w_dtype = w.dtype;
    problem.y_dtype = y_dtype_;
    problem.quantizes_x = node_.quantizes_x;
    if (constant_weights) problem.quantization = quantization_;
    problem.layout = layout_;
    problem.attributes = node_.attributes;
    problem.x_shape = x.shape;
    problem.w_shape = w.shape;
    if (b) problem.b_shape = b->shape;
    Plan plan;
    const Status status = Plan::create(problem, options_.view(), constant_weights ? w.data.data() : nullptr,
                                       constant_weights && b ? b->data.data() : nullptr, &plan);
    if (status.code() == CONVT_OVERFLOW && exceeds_64_bits(problem)) throw Rejected(status.message());
    throw_unless(status);
    plan_ = std::move(plan);
    planned_x_ = x.dtype;
    planned_y_ = y_dtype_;
    terms_ = w.count() && w.shape[1] ? double(w.count()) / double(w.shape[1]) / double(node_.attributes.group) : 0;
    terms_ += b ? 1 : 0;
}

Tensor Session::run(const DataSet &set) {
    load_inputs(set);
    const Tensor &given_x = value(node_.x), &w = value(node_.w);
    const bool moves = layout_ != node_.layout();
    const Tensor moved_x = moves ? with_channels_moved(given_x, layout_) : Tensor();
    const Tensor &x = moves ? moved_x : given_x;
    const Tensor *const b = node_.b.empty() ? nullptr : &value(node_.b);
    check_types(x, w, b);
    const int declared = model_.type_of(node_.y).data_type;
    if (declared != 0 && dtype_from_onnx(declared, "graph output '" + node_.y + "'") != y_dtype_) {
        throw Rejected("graph output '" + node_.y + "' is declared " + onnx_type_name(declared) + ", but " +
                       (node_.quantized ? "y_zero_point is " : "X is ") + convt_dtype_name(y_dtype_));
    }

    // Zero points of weights are packed with them; scales and the other zero points may change with each run.
    const bool constant_weights = model_.is_constant(node_.w) && (!b || model_.is_constant(node_.b)) &&
                                  (!node_.quantized || model_.is_constant(node_.w_zero_point));
    make_plan(x, w, b, constant_weights);
    require_serializable(y_dtype_, plan_.y_shape(), node_.y);
    Tensor y(y_dtype_, plan_.y_shape());
    const ConstTensorView x_view = x.view(), w_view = w.view(), b_view = b ? b->view() : ConstTensorView();
    const ConstTensorView *const run_w = constant_weights ? nullptr : &w_view, *const run_b = constant_weights || !b
                                                                                                  ? nullptr
                                                                                                  : &b_view;
    if (quantization_ && !(constant_weights && constant_quantization())) {
        throw_unless(plan_.run(x_view, run_w, run_b, y.view(), *quantization_));
    } else if (constant_weights) {
        throw_unless(plan_.run(x_view, y.view()));
    } else {
        throw_unless(plan_.run(x_view, w_view, run_b, y.view()));
    }
    if (moves) return with_channels_moved(y, node_.layout());
    return y;
}

void Session::check_types(const Tensor &x, const Tensor &w, const Tensor *b) {
    require_operand_type(node_, node_.quantized ? "x" : "X", x.dtype);
    if (node_.quantized) require_operand_type(node_, "w", w.dtype);
    if (node_.quantized && b) require_bias_type(node_, b->dtype);
    if (!node_.w_scale.empty()) {
        quantization_ =
            quantization_of(node_, [this](const std::string &name) -> const Tensor & { return value(name); });
    }
    if (node_.quantized) {
        y_dtype_ = node_.y_zero_point.empty() ? CONVT_F32 : value(node_.y_zero_point).dtype;
        return;
    }
    for (const Tensor *other : {&w, b}) {
        const convt_dtype dtype = !other ? x.dtype : node_.light && other == &w ? CONVT_F32 : other->dtype;
        if (dtype != x.dtype) {
            throw Rejected(node_.label + ": " + (other == &w ? "W" : "B") + " is " + convt_dtype_name(dtype) +
                           ", X is " + convt_dtype_name(x.dtype) + "; they must have one type");
        }
    }
    y_dtype_ = x.dtype;
}

bool Session::constant_quantization() const {
    for (const std::string *name : {&node_.x_scale, &node_.x_zero_point, &node_.w_scale, &node_.w_zero_point,
                                    &node_.y_scale, &node_.y_zero_point}) {
        if (!name->empty() && !model_.is_constant(*name)) return false;
    }
    return true;
}

// Prints the result of each data set, and counts them.
class Report {
  public:
    Report(const std::vector<Job> &jobs, bool verify) : verify_(verify) {
        for (const Job &job : jobs) width_ = std::max(width_, int(std::min<std::size_t>(job.name.size(), 60)));
    }

    void row(bool passed, const std::string &name, const std::string &detail) {
        (passed ? passed_ : failed_)++;
        if (verify_ || passed) {
            const char *const verdict = verify_ ? (passed ? "PASS  " : "FAIL  ") : "";
            std::printf("%s%-*s  %s\n", verdict, width_, printable(name).c_str(), printable(detail).c_str());
            std::fflush(stdout);
        }
    }

    int finish() const {
        if (verify_) {
            std::printf("%d passed, %d failed\n", passed_, failed_);
        } else if (passed_ + failed_ > 1) {
            std::printf("%d computed, %d failed\n", passed_, failed_);
        }
        return failed_ == 0 ? kSuccess : kFailure;
    }

  private:
    bool verify_;
    int width_ = 0, passed_ = 0, failed_ = 0;
};

std::string describe(const Session &session) {
    const Plan &plan = session.plan();
    const std::string shapes = to_string(plan.x_shape()) + " -> " + to_string(plan.y_shape());
    // Rows are printed as they come, before their widths are known; most line up so.
    return padded(std::string(convt_dtype_name(session.y_dtype())) + " " + shapes, 36) + "  " + plan.variant() + " " +
           plan.isa();
}

// Computes every data set, and only then writes the result of the first, so that a job that fails on the way leaves nothing.
void run_job(const Job &job, const RunOptions &options, const fs::path &output, Report *report) {
    Session session(job.model(), options); // which says so if there is no such file
    const std::vector<DataSet> sets = job.data_sets();
    std::string serialized;
    struct Row {
        bool passed;
        std::string name, detail;
    };
    std::vector<Row> rows;
    for (const DataSet &set : sets) {
        const Tensor y = session.run(set);
        if (&set == &sets.front() && !output.empty()) serialized = serialize(y, session.output_name());
        Row row{true, sets.size() > 1 ? job.name + "/" + set.name : job.name, describe(session)};
        if (options.verify && set.expected.empty()) {
            row.passed = false;
            row.detail += "  computed, but there is no output_0.pb" +
                          std::string(set.name.empty() ? " to compare with" : ": the folder says it must be rejected");
        } else if (options.verify) {
            const Tensor expected = load_tensor(set.expected);
            std::optional<Tensor> tolerance;
            if (!set.tolerance.empty()) tolerance = load_tensor(set.tolerance);
            const Comparison c = compare(y, expected, tolerance ? &*tolerance : nullptr, session.terms());
            row.passed = c.passed;
            row.detail = padded(row.detail, 64) + "  " + c.detail;
        }
        rows.push_back(row);
    }
    if (!output.empty()) write_file(output, serialized);
    for (const Row &row : rows) report->row(row.passed, row.name, row.detail);
}

fs::path output_of(const Job &job, const fs::path &output_dir) { return output_dir / job.name / "output_0.pb"; }

// A test folder without any expected output states that its model must be rejected.
bool must_be_rejected(const Job &job) {
    try {
        const std::vector<DataSet> sets = job.data_sets();
        return std::all_of(sets.begin(), sets.end(),
                           [](const DataSet &set) { return !set.name.empty() && set.expected.empty(); });
    } catch (const std::exception &) {
        return false;
    }
}

// Throws UsageError if a result would take the place of another one, or of a file that a job reads, by whatever spelling.
void require_free_outputs(const std::vector<Job> &jobs, const fs::path &output_dir) {
    std::map<std::string, std::string> written;
    std::vector<fs::path> read;
    for (const Job &job : jobs) {
        const auto [other, is_new] = written.emplace(job.name, job.path.string());
        if (!is_new) {
            throw UsageError("'" + other->second + "' and '" + job.path.string() + "' would both write to " +
                             (output_dir / job.name).string());
        }
        const std::vector<fs::path> files = job.files();
        read.insert(read.end(), files.begin(), files.end());
    }
    for (const Job &job : jobs) {
        const fs::path output = output_of(job, output_dir);
        for (const fs::path &file : read) {
            std::error_code ignored; // there is no such output yet
            // A result beside an expected output_0.npy would be taken for what is expected the next time.
            const bool hides =
                file.stem() == output.stem() && fs::equivalent(file.parent_path(), output.parent_path(), ignored);
            if (!hides && !fs::equivalent(file, output, ignored)) continue;
            throw UsageError("--output-dir: the result of '" + job.name + "' would replace '" + file.string() +
                             "', which is a model, input or expected result of this run: name another folder");
        }
    }
}

} // namespace

int run_command(const RunOptions &options) {
    const std::vector<Job> jobs = jobs_from(options.paths);
    if (!options.output_dir.empty()) require_free_outputs(jobs, options.output_dir);
    note_unusable_tuning();

    Report report(jobs, options.verify);
    Progress progress(jobs.size(), false);
    for (const Job &job : jobs) {
        progress.step(job.name);
        fs::path output;
        if (!options.output_dir.empty()) {
            // A file that an earlier run left must not pass for this one's result.
            output = output_of(job, options.output_dir);
            std::error_code ignored;
            if (fs::remove(output, ignored)) fs::remove(output.parent_path(), ignored); // the folder only if now empty
        }
        try {
            run_job(job, options, output, &report);
        } catch (const std::exception &e) {
            progress.clear();
            const std::string message = message_of(e);
            print_message("error", job.name + ": " + message);
            const bool passed = options.verify && dynamic_cast<const Rejected *>(&e) && must_be_rejected(job);
            report.row(passed, job.name, (passed ? "rejected, as it must be: " : "") + message);
        }
    }
    progress.clear();
    return report.finish();
}

} // namespace convtranspose::tools
