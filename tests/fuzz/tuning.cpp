// Tuning records: any text is read or refused, with the line; what was read may be asked for by any plan.
#include <cstdint>
#include <string>

#include "fuzz/fail.h"
#include "reference/descriptor.h"
#include "reference/reference.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    using namespace convtranspose;
    const std::string text(reinterpret_cast<const char *>(data), size);
    fuzz::set_context(text);
    convt_tuning *tuning = nullptr;
    const convt_status status = convt_tuning_read(text.data(), text.size(), &tuning);
    if (status != CONVT_OK) {
        fuzz::require(status == CONVT_INVALID_ARGUMENT, "another status");
        fuzz::require(tuning == nullptr, "records of a text that is refused");
        fuzz::require(std::string(convt_last_error()).find("line ") != std::string::npos,
                      std::string("the message names no line: ") + convt_last_error());
        return 0;
    }
    // The layer that records of the corpus are of.
    static const Problem problem = test::parse_problem("f32 nhwc n1 g1 ic16 oc16 i5x5 k4x4 s2x2 p1x1_1x1");
    static const test::Inputs inputs = test::draw(problem, 1);
    static const test::Expected expected = test::reference(problem, inputs);
    Options options{};
    options.tuning = tuning;
    test::Tensor y;
    const Status run = test::run(problem, inputs, options, &y);
    fuzz::require(run, "refused: " + run.message());
    fuzz::require(test::agrees(y, expected), test::agrees(y, expected).message());
    convt_tuning_destroy(tuning);
    return 0;
}
