// The cases of cases.json, reports.json and huge.json as problems and inputs.
#ifndef CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_
#define CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_

#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "convtranspose/convtranspose.hpp"
#include "reference/tensor.h"

namespace convtranspose::test {

using Json = nlohmann::json;

struct Case {
    std::string name;
    Json json;
};

void PrintTo(const Case &c, std::ostream *stream);

// Those whose type is built.
std::vector<Case> load_cases(const std::string &file = "cases.json");
inline bool expects_error(const Json &c) { return c.value("expect", "ok") == "error"; }

Problem problem_of(const Json &c);
Inputs inputs_of(const Json &c, const Problem &problem); // channels first
Shape y_shape_of(const Json &c, bool channels_last);
void fill(const Json &literal, Tensor *tensor);

// Whether y is what the file says, bit by bit but for the sign of zero and the patterns of NaN. y: as the case lays it out, or
// channels last.
::testing::AssertionResult is_as_listed(const Json &c, const Tensor &y, bool channels_last);

// The same node with x and y the other way round.
Problem channels_last(Problem problem);
Tensor channels_last(const Tensor &tensor);

// The status of a case that expects an error. The node may be wrong, or the type of w, or w may be missing; then the run must
// fail.
Status status_of_error(const Json &c, const Problem &problem, const Options &options);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_
