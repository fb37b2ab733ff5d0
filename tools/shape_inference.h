// Asks ONNX itself for the shapes and types of a model's values, without running the model.
#ifndef CONVTRANSPOSE_TOOLS_SHAPE_INFERENCE_H_
#define CONVTRANSPOSE_TOOLS_SHAPE_INFERENCE_H_

#include <string>
#include <vector>

#include <onnx-ml.pb.h>

#include "tools/input_shape.h"

namespace convtranspose::tools {

// Replaces calls of the model's own functions by their nodes, then adds types and shapes to the value_info of its graphs, by ONNX's
// inliner and shape inference. Shapes that are given replace those of the model, and shapes that contradict them are inferred anew.
// Returns notes for the user about what could not be done, and why.
std::vector<std::string> infer_shapes(onnx::ModelProto *model, const std::vector<InputShape> &shapes);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_SHAPE_INFERENCE_H_
