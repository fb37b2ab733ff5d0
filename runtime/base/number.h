// Reads numbers from text, whatever the locale of the program.
#pragma once

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
