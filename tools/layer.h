// Makes a problem of a node from the shapes that the model states. No data is needed.
#ifndef CONVTRANSPOSE_TOOLS_LAYER_H_
#define CONVTRANSPOSE_TOOLS_LAYER_H_

#include <cstddef>
#include <optional>

#include "tools/error.h"
#include "tools/onnx_model.h"

namespace convtranspose::tools {

// Thrown if a shape is not known. The message says which --input-shape would tell it.
class UnknownShape : public Error {
  public:
    using Error::Error;
};

struct Layer {
    Node node;
    Problem problem;
};

// The layer of node i, in `layout`, or without one in the operator's. Throws UnknownShape if a type or shape is not known, and
// Rejected if the node breaks a rule that needs no library.
Layer layer_of(const Model &model, std::size_t i, std::optional<convt_layout> layout);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_LAYER_H_
