#include "process.h"

#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include <sys/wait.h>

#include <gtest/gtest.h>

#include "files.h"

namespace convtranspose::test {

namespace {

std::string quoted(const std::string &argument) {
    std::string text = "'";
    for (const char c : argument) {
        if (c == '\'') {
            text += "'\\''";
        } else {
            text += c;
        }
    }
    return text + "'";
}

} // namespace

std::ostream &operator<<(std::ostream &stream, const Outcome &outcome) {
    return stream << "exit status " << outcome.status << "\nstdout:\n" << outcome.out << "stderr:\n" << outcome.err;
}

Outcome convtranspose(const std::vector<std::string> &arguments) {
    const TemporaryFolder folder;
    const std::filesystem::path err = folder.path() / "stderr";
    // exec: the shell must not stand between us and the signal that may end the program.
    std::string command = "exec " + quoted(CONVTRANSPOSE_COMMAND);
    for (const std::string &argument : arguments) command += " " + quoted(argument);
    command += " 2>" + quoted(err.string()) + " </dev/null";

    Outcome outcome;
    FILE *const pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("popen failed");
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) outcome.out.append(buffer, n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.err = read_text(err);
    return outcome;
}

void expect_in(const std::string &part, const Outcome &outcome, std::size_t times) {
    const std::string all = outcome.out + outcome.err;
    std::size_t found = 0;
    for (std::size_t at = 0; (at = all.find(part, at)) != std::string::npos; at++) found++;
    EXPECT_EQ(found, times) << part << "\n" << outcome;
}

} // namespace convtranspose::test
