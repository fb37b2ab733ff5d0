// --input-shape NAME=1x3x224x224 gives shapes that models leave open, or replaces those that they state.
#ifndef CONVTRANSPOSE_TOOLS_INPUT_SHAPE_H_
#define CONVTRANSPOSE_TOOLS_INPUT_SHAPE_H_

#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

struct InputShape {
    std::string name;
    Shape shape;
    mutable bool used = false; // a model had a value of this name
};

// Reads the options. Throws UsageError.
std::vector<InputShape> input_shapes_from(const std::vector<std::string> &arguments);

// Throws Error if there is a shape whose name no model has.
void require_all_used(const std::vector<InputShape> &shapes);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_INPUT_SHAPE_H_
