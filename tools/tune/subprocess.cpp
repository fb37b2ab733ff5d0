#include "tools/tune/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "tools/clock.h"
#include "tools/error.h"
#include "tools/files.h"

extern char **environ;

namespace convtranspose::tools {

namespace {

constexpr double kMostToEnd = 1;   // seconds from the end of a child's pipes to its own
constexpr double kMostWait = 3600; // seconds at a time, which poll() can say in milliseconds

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status)) return std::string("was ended by signal ") + strsignal(WTERMSIG(status));
    return "ended with status " + std::to_string(WEXITSTATUS(status));
}

pid_t start(const std::vector<std::string> &command, const std::string &log, int in, int out) {
    std::vector<char *> arguments;
    arguments.reserve(command.size() + 1);
    for (const std::string &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    if (in < 0) {
        posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    } else {
        posix_spawn_file_actions_adddup2(&files, in, 0);
    }
    posix_spawn_file_actions_addopen(&files, 2, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_adddup2(&files, out < 0 ? 2 : out, 1);
    pid_t pid = -1;
    const int error = posix_spawnp(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    if (error) throw Error("cannot run " + command.front() + ": " + std::strerror(error));
    return pid;
}

std::string end_of(const std::string &log) {
    std::string text = read_file(log);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    constexpr std::size_t kMost = 400;
    return text.size() > kMost ? "..." + text.substr(text.size() - kMost) : text;
}

} // namespace

std::vector<std::string> words_of(const std::string &command) {
    std::vector<std::string> words;
    bool in_word = false;
    char quote = 0;
    for (const char c : command) {
        if (quote ? c == quote : (c == '\'' || c == '"')) {
            quote = quote ? char(0) : c;
            if (!in_word) words.emplace_back();
            in_word = true;
        } else if (!quote && (c == ' ' || c == '\t')) {
            in_word = false;
        } else {
            if (!in_word) words.emplace_back();
            in_word = true;
            words.back() += c;
        }
    }
    return words;
}

Subprocess::Subprocess(const std::vector<std::string> &command, const std::string &log) {
    signal(SIGPIPE, SIG_IGN); // a child that is gone is told of by what writing returns
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) throw Error("no pipes left");
    in_ = in[1];
    out_ = out[0];
    try {
        pid_ = start(command, log, in[0], out[1]);
    } catch (...) {
        for (const int file : {in[0], in[1], out[0], out[1]}) close(file);
        throw;
    }
    close(in[0]);
    close(out[1]);
    fcntl(in_, F_SETFL, O_NONBLOCK); // a child that reads nothing must not be waited for without end
}

Subprocess::~Subprocess() { end(); }

void Subprocess::end() {
    if (in_ >= 0) close(in_);
    if (out_ >= 0) close(out_);
    in_ = out_ = -1;
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

// Returns how the child ended, which is waited for until then.
std::string Subprocess::ending(double until) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = waitpid(pid_, &status, WNOHANG)) == 0 && now() < until) rest();
    if (ended == 0) return "closed its pipe, but did not end";
    std::string how = ended == pid_ ? how_it_ended(status) : "went away";
    pid_ = -1;
    return how;
}

void Subprocess::fail(const std::string &what) {
    end();
    throw Error("it " + what);
}

std::string Subprocess::ask(const std::string &line, double seconds) {
    if (pid_ < 0) throw Error("it has ended");
    const std::string message = line + "\n";
    const double end = now() + seconds;
    const auto is_ready = [&](int file, short event) {
        const double left = end - now();
        if (left <= 0) fail("did not answer in " + std::to_string(static_cast<int>(seconds)) + " s");
        pollfd waiting = {file, event, 0};
        return poll(&waiting, 1, static_cast<int>(std::min(left, kMostWait) * 1000) + 1) > 0;
    };
    const auto has_gone = [&] { fail(ending(std::min(end, now() + kMostToEnd))); };
    for (std::size_t sent = 0; sent < message.size();) {
        if (!is_ready(in_, POLLOUT)) continue;
        const ssize_t n = write(in_, message.data() + sent, message.size() - sent);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) has_gone();
        sent += static_cast<std::size_t>(n);
    }
    for (;;) {
        const std::size_t newline = read_.find('\n');
        if (newline != std::string::npos) {
            std::string answer = read_.substr(0, newline);
            read_.erase(0, newline + 1);
            return answer;
        }
        if (!is_ready(out_, POLLIN)) continue;
        char part[65536];
        const ssize_t n = read(out_, part, sizeof part);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) has_gone();
        read_.append(part, static_cast<std::size_t>(n));
    }
}

std::vector<std::string> run_all(const std::vector<Task> &tasks, int jobs, double seconds) {
    struct Running {
        std::size_t task;
        double begin;
        bool late;
    };
    std::vector<std::string> results(tasks.size());
    std::map<pid_t, Running> running;
    std::size_t next = 0;
    while (next < tasks.size() || !running.empty()) {
        if (next < tasks.size() && running.size() < static_cast<std::size_t>(jobs)) {
            const std::size_t i = next++;
            try {
                running[start(tasks[i].command, tasks[i].log, -1, -1)] = {i, now(), false};
            } catch (const Error &e) {
                results[i] = e.what();
            }
            continue;
        }
        bool any = false;
        for (auto it = running.begin(); it != running.end();) {
            auto &[pid, r] = *it;
            int status = 0;
            if (waitpid(pid, &status, WNOHANG) == pid) {
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                    results[r.task] = tasks[r.task].command.front() + " " +
                                      (r.late ? "took too long" : how_it_ended(status)) + ": " +
                                      end_of(tasks[r.task].log);
                }
                it = running.erase(it);
                any = true;
                continue;
            }
            if (!r.late && now() - r.begin > seconds) {
                r.late = true;
                kill(pid, SIGKILL);
            }
            ++it;
        }
        if (!any) rest();
    }
    return results;
}

} // namespace convtranspose::tools
