// Text for people: shapes, aligned tables, progress.
#ifndef CONVTRANSPOSE_TOOLS_TEXT_H_
#define CONVTRANSPOSE_TOOLS_TEXT_H_

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "convtranspose/convtranspose.hpp"

namespace convtranspose::tools {

std::string to_string(const Shape &shape);                   // "1x64x32x32"; "scalar" for rank 0
std::string bytes_to_string(std::size_t bytes);              // "1.5 MiB"
std::string format(const char *number_format, double value); // printf of one double
std::string padded(std::string text, std::size_t width);     // with blanks behind it

// A text of a model as it may be printed: control characters, with which it could forge lines, or end a text of C, become "?".
std::string printable(std::string text);

// Prints "KIND: TEXT" on standard error, as one line, behind what standard output got before. kind: "error" or "note".
void print_message(const char *kind, const std::string &text);

// Prints rows of equal length, the first of which is the heading. The columns named in right_aligned are aligned so.
void print_table(std::ostream &out, const std::vector<std::vector<std::string>> &rows,
                 const std::vector<std::size_t> &right_aligned);

// Shows "[3/32] name" on one line of stderr while a long job works, if a person is watching and standard output does not scroll
// past on the same terminal anyway.
class Progress {
  public:
    Progress(std::size_t total, bool stdout_is_quiet);
    ~Progress();
    Progress(const Progress &) = delete;
    Progress &operator=(const Progress &) = delete;

    void step(const std::string &what);
    void detail(const std::string &what); // of the same step
    void clear();                         // before something else is printed

  private:
    std::size_t total_;
    std::size_t done_ = 0;
    bool visible_;
};

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TEXT_H_
