#include "tools/text.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

#if defined(_WIN32)
#include <io.h>
#else
#include <unistd.h>
#endif

namespace convtranspose::tools {

namespace {

bool is_terminal(int descriptor) {
#if defined(_WIN32)
    return _isatty(descriptor) != 0;
#else
    return isatty(descriptor) != 0;
#endif
}

} // namespace

std::string to_string(const Shape &shape) {
    if (shape.empty()) return "scalar";
    std::string text;
    for (const std::int64_t extent : shape) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text;
}

std::string format(const char *number_format, double value) {
    char text[64];
    std::snprintf(text, sizeof text, number_format, value);
    return text;
}

std::string bytes_to_string(std::size_t bytes) {
    if (bytes < 1024) return std::to_string(bytes) + " B";
    const double kib = double(bytes) / 1024;
    return kib < 1024 ? format("%.1f KiB", kib) : format("%.1f MiB", kib / 1024);
}

std::string padded(std::string text, std::size_t width) {
    text.resize(std::max(text.size(), width), ' ');
    return text;
}

std::string printable(std::string text) {
    for (char &c : text) {
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
    }
    return text;
}

void print_message(const char *kind, const std::string &text) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", kind, printable(text).c_str());
}

void print_table(std::ostream &out, const std::vector<std::vector<std::string>> &rows,
                 const std::vector<std::size_t> &right_aligned) {
    if (rows.empty()) return;
    std::vector<std::size_t> widths(rows[0].size(), 0);
    for (const std::vector<std::string> &row : rows) {
        for (std::size_t i = 0; i < widths.size(); i++) widths[i] = std::max(widths[i], row[i].size());
    }
    for (const std::vector<std::string> &row : rows) {
        std::string line;
        for (std::size_t i = 0; i < widths.size(); i++) {
            const std::string fill(widths[i] - row[i].size(), ' ');
            const bool right = std::find(right_aligned.begin(), right_aligned.end(), i) != right_aligned.end();
            line += (i ? "  " : "") + (right ? fill + row[i] : row[i] + fill);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out << line << '\n';
    }
}

Progress::Progress(std::size_t total, bool stdout_is_quiet)
    : total_(total), visible_(is_terminal(2) && (stdout_is_quiet || !is_terminal(1))) {}

Progress::~Progress() { clear(); }

void Progress::step(const std::string &what) {
    done_++;
    detail(what);
}

void Progress::detail(const std::string &what) {
    if (!visible_) return;
    std::fprintf(stderr, "\r\033[K[%zu/%zu] %s", done_, total_, what.c_str());
    std::fflush(stderr);
}

void Progress::clear() {
    if (!visible_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

} // namespace convtranspose::tools
