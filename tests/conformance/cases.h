// The cases of cases.json as problems and inputs.
#ifndef CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_
#define CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_

#include <ostream>
#include <string>
#include <vector>

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

std::vector<Case> load_cases(); // those whose type is built
inline bool expects_error(const Json &c) { return c.value("expect", "ok") == "error"; }

Problem problem_of(const Json &c);
Inputs inputs_of(const Json &c, const Problem &problem); // channels first
Shape y_shape_of(const Json &c, bool channels_last);
void fill(const Json &literal, Tensor *tensor);

// The same node with x and y the other way round.
Problem channels_last(Problem problem);
Tensor channels_last(const Tensor &tensor);

// Of a case that expects an error: what is wrong may be the node, the type of w, or that there is no w at all: then the run
// must fail.
Status status_of_error(const Json &c, const Problem &problem, const Options &options);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_CONFORMANCE_CASES_H_
