// The meaning of a node, derived from its attributes and shapes alone: the tests' own reading of the operator, which shares
// nothing with the library's, so that a pad on the wrong side is seen.
#ifndef CONVTRANSPOSE_TESTS_REFERENCE_LAYER_H_
#define CONVTRANSPOSE_TESTS_REFERENCE_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::test {

// One spatial axis: input position i and kernel element k meet at output position i * stride + k * dilation - pad_begin.
struct Axis {
    std::int64_t in = 0, out = 0, kernel = 0;
    std::int64_t stride = 1, dilation = 1, pad_begin = 0;
};

struct Layer {
    bool channels_first = true;
    std::int64_t batch = 0, in_channels = 0, out_channels = 0, group = 1;
    std::vector<Axis> axes; // outermost first
    Shape y_shape;

    std::int64_t in_per_group() const { return in_channels / group; }
    std::int64_t out_per_group() const { return out_channels / group; }
};

// False, with the rule in *reason, where the node breaks a rule of the operator or where a size leaves 64 bits. Attributes may be
// any integers: positions of a layer that is derived fit in 64 bits.
bool derive(const Problem &problem, Layer *layer, std::string *reason);

Layer layer_of(const Problem &problem); // throws std::runtime_error with the reason

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_REFERENCE_LAYER_H_
