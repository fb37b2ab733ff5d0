// A node as a problem, by what the model says of its shapes; no data is needed.
#ifndef CONVTRANSPOSE_TOOLS_LAYER_H_
#define CONVTRANSPOSE_TOOLS_LAYER_H_

#include <cstddef>
#include <optional>

#include "error.h"
#include "onnx_model.h"

namespace convtranspose::tools {

// Its message says which --input-shape would tell.
class UnknownShape : public Error {
  public:
    using Error::Error;
};

struct Layer {
    Node node;
    Problem problem;
};

// Throws UnknownShape where a type or shape is not told, Rejected where the node breaks a rule that needs no library.
// layout: of the problem; none: as the operator has it.
Layer layer_of(const Model &model, std::size_t i, std::optional<convt_layout> layout);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_LAYER_H_
