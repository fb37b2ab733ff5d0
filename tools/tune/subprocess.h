// Programs that the command starts: generators and linkers, which it waits for, and the worker, which it talks with.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_
#define CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace convtranspose::tools {

// Splits a command, such as "qemu-aarch64 -L /usr/aarch64-linux-gnu", into words. Quotes work as in a shell.
std::vector<std::string> words_of(const std::string &command);

// A child process that is told lines and answers with lines. It is killed when this object ends.
class Subprocess {
  public:
    // Starts the child, whose standard error goes to the file `log`. Throws Error if it cannot be started.
    Subprocess(const std::vector<std::string> &command, const std::string &log);
    ~Subprocess();
    Subprocess(const Subprocess &) = delete;
    Subprocess &operator=(const Subprocess &) = delete;

    // Sends a line and returns the answer. Throws Error if the child ended or did not answer in time; it is gone then.
    std::string ask(const std::string &line, double seconds);

  private:
    [[noreturn]] void fail(const std::string &what);
    std::string ending(double until);
    void end();

    pid_t pid_ = -1;
    int in_ = -1, out_ = -1;
    std::string read_; // what came after the last answer
};

// A command to run. All tasks are run, at most `jobs` at a time, each for at most `seconds`. The result of a task is empty if it
// succeeded, and else says what went wrong, with the end of its output.
struct Task {
    std::vector<std::string> command;
    std::string log; // file of what it says
};
std::vector<std::string> run_all(const std::vector<Task> &tasks, int jobs, double seconds);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_
