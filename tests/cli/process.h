// Runs the command line.
#ifndef CONVTRANSPOSE_TESTS_CLI_PROCESS_H_
#define CONVTRANSPOSE_TESTS_CLI_PROCESS_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace convtranspose::test {

struct Outcome {
    int status = -1; // the exit status; 128 + the signal where one ended it
    std::string out, err;
};

std::ostream &operator<<(std::ostream &stream, const Outcome &outcome); // for SCOPED_TRACE and failures

Outcome convtranspose(const std::vector<std::string> &arguments);

// Expects a text so many times in what was printed.
void expect_in(const std::string &part, const Outcome &outcome, std::size_t times = 1);

} // namespace convtranspose::test

#endif // CONVTRANSPOSE_TESTS_CLI_PROCESS_H_
