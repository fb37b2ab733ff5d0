// Programs that the command starts: generators and linkers, which it waits for, and the worker, which it talks with.
#ifndef CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_
#define CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace convtranspose::tools {

// "qemu-aarch64 -L /usr/aarch64-linux-gnu" -> its words. Quotes as in a shell.
std::vector<std::string> words_of(const std::string &command);

// A child that is told lines and answers with lines. It is killed when this object ends.
class Subprocess {
  public:
    // log: a file for what it says on standard error. Throws Error if it cannot be started.
    Subprocess(const std::vector<std::string> &command, const std::string &log);
    ~Subprocess();
    Subprocess(const Subprocess &) = delete;
    Subprocess &operator=(const Subprocess &) = delete;

    // Throws Error: it ended, by a signal or not, or did not answer in time; the child is then gone.
    std::string ask(const std::string &line, double seconds);

  private:
    [[noreturn]] void fail(const std::string &what);
    void end();

    pid_t pid_ = -1;
    int in_ = -1, out_ = -1;
    std::string read_; // what came after the last answer
};

// Runs all commands, at most `jobs` at a time, each for at most `seconds`. Empty: it succeeded; else what went wrong, with the end
// of what it said.
struct Task {
    std::vector<std::string> command;
    std::string log; // file of what it says
};
std::vector<std::string> run_all(const std::vector<Task> &tasks, int jobs, double seconds);

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNE_SUBPROCESS_H_
