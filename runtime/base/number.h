// Reads numbers from text, whatever the locale of the program.
#ifndef CONVTRANSPOSE_RUNTIME_BASE_NUMBER_H_
#define CONVTRANSPOSE_RUNTIME_BASE_NUMBER_H_

#include <locale>
#include <sstream>
#include <string>

namespace convtranspose {

// Reads a finite number that is all of the text. Returns false if it is none.
inline bool read_number(const std::string &text, double *number) {
    std::istringstream stream(text);
    stream.imbue(std::locale::classic());
    return (stream >> *number) && stream.peek() == std::istringstream::traits_type::eof();
}

} // namespace convtranspose

#endif // CONVTRANSPOSE_RUNTIME_BASE_NUMBER_H_
