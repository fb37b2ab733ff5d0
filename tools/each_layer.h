// Goes through the layers of models, for the commands that take whole networks.
#ifndef CONVTRANSPOSE_TOOLS_EACH_LAYER_H_
#define CONVTRANSPOSE_TOOLS_EACH_LAYER_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/input_shape.h"
#include "tools/job.h"
#include "tools/layer.h"
#include "tools/text.h"

namespace convtranspose::tools {

using LayerAction = std::function<void(const Job &, const Model &, const Layer &)>;

// Calls `act` for each layer whose shapes are known. Prints notes for the other ones, and an error for each layer or model that
// fails: by what `act` throws, or because no shapes are known. Returns the number of errors. progress: null: nobody watches.
int for_each_layer(const std::vector<Job> &jobs, const std::vector<InputShape> &shapes,
                   std::optional<convt_layout> layout, Progress *progress, const LayerAction &act);

// Prints a message about a job, in place of the progress that is shown. progress: null: none is.
void tell(const char *kind, const Job &job, const std::string &text, Progress *progress);

// Prints a note if a layer, or its y, is computed in floats although it is quantized.
void note_floats(const Job &job, const Node &node, Progress *progress);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_EACH_LAYER_H_
