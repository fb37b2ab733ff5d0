#ifndef CONVTRANSPOSE_TESTS_PLAN_ALGORITHM_NAMES_H_
#define CONVTRANSPOSE_TESTS_PLAN_ALGORITHM_NAMES_H_

#include <string>
#include <vector>

#include "convtranspose/convtranspose.h"

namespace convtranspose::test {

// Returns the names of all algorithms that compute a layer through others.
inline std::vector<std::string> algorithm_names() {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < convt_algorithm_count(); i++) {
        if (convt_algorithm_name(i) != std::string("direct")) names.emplace_back(convt_algorithm_name(i));
    }
    return names;
}

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_PLAN_ALGORITHM_NAMES_H_
