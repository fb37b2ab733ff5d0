// Files of tensors, .npy and .pb: any bytes are a tensor, all of which is there, or an error with a message.
#include <cstdint>

#include "fuzz/fail.h"
#include "fuzz/input_file.h"
#include "tools/error.h"
#include "tools/onnx_tensor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace convtranspose;
    if (size == 0) return 0;
    // The first byte chooses; a .npy file says what it is, so that the rest of the corpus need not be told apart.
    const fuzz::InputFile file(data + 1, size - 1, data[0] % 2 ? ".npy" : ".pb");
    try {
        const tools::Tensor tensor = tools::load_tensor(file.path());
        fuzz::require(tools::element_count(tensor.shape) == tensor.count(),
                      "more or fewer elements than the shape has");
        double sum = 0;
        for (std::size_t i = 0; i < tensor.count(); ++i) sum += tensor.at(i) == 0 ? 1 : 0;
        fuzz::require(sum <= static_cast<double>(tensor.count()), "elements that are none");
        const std::string again = tools::serialize(tensor, "t");
        fuzz::require(!again.empty(), "not written");
    } catch (const tools::Error &error) {
        fuzz::require(*error.what() != '\0', "there is no message");
    }
    return 0;
}
