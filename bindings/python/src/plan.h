// A planned layer as Python sees it.
#pragma once

#include "problem.h"

#include <convtranspose/convtranspose.hpp>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

namespace convtranspose::python {

/// Tuning records, which plans share.
class Tuning {
  public:
    /// Reads the text of a file of records. Raises ValueError with the line and the rule.
    explicit Tuning(const std::string &text);
    /// The records.
    const convt_tuning *get() const { return records_.get(); }

  private:
    struct Destroy {
        void operator()(convt_tuning *t) const { convt_tuning_destroy(t); }
    };
    std::unique_ptr<convt_tuning, Destroy> records_;
};

/// The keyword arguments of convtranspose.Plan, each None if it was not given: the layer, and how to plan it.
struct PlanArguments {
    nanobind::object x_shape, x_dtype, w_shape, w_dtype, y_dtype;
    bool bias = false;
    int opset = 22;
    nanobind::object layout;
    AttributeArguments attributes;
    QuantizationArguments quantization;
    bool quantizes_x = false;
    nanobind::object activation;
    bool residual = false;
    int threads = 1;
    bool winograd = false, sums_in_f16 = false;
    nanobind::object variant, isa, measure, device;
    std::shared_ptr<Tuning> tuning;
};

/// Tensors of one run, each None if it was not given, with scales and zero points of this run alone.
struct RunArguments {
    nanobind::handle x;
    nanobind::object out, residual, w, b;
    QuantizationArguments quantization;
};

/// convtranspose.Plan.
class PythonPlan {
  public:
    /// Plans a layer. `w` and `b` are arrays or None, which means that they come with each run.
    PythonPlan(nanobind::handle w, nanobind::handle b, const PlanArguments &arguments);

    /// Computes y, and returns `out` or, if that is None, a new array of the same kind as x.
    nanobind::object run(const RunArguments &arguments) const;
    /// The plan of another shape of x, which shares the packed weights.
    PythonPlan reshape(nanobind::handle x_shape) const;
    /// The plan of the C++ interface.
    const Plan &plan() const { return plan_; }
    /// The type of x.
    convt_dtype x_dtype() const { return x_dtype_; }
    /// The type of y.
    convt_dtype y_dtype() const { return y_dtype_; }

  private:
    PythonPlan() = default;

    std::shared_ptr<Tuning> tuning_; // which must outlive the plan
    Plan plan_;
    Shape w_shape_, b_shape_; // of the arrays that come with each run
    convt_dtype x_dtype_ = CONVT_F32, y_dtype_ = CONVT_F32;
    std::string device_; // "cpu", or with a number, such as "cuda:0"
};

} // namespace convtranspose::python
