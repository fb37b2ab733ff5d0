// Tells of tuning records that cannot be used, which plans say only where they are explained.
#ifndef CONVTRANSPOSE_TOOLS_TUNING_NOTE_H_
#define CONVTRANSPOSE_TOOLS_TUNING_NOTE_H_

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "runtime/kernels/tuning_file.h"
#include "tools/profile_line.h"

namespace convtranspose::tools {

// Prints a note if CONVTRANSPOSE_TUNING names what is no file of tuning records.
inline void note_unusable_tuning() {
    const char *const path = std::getenv("CONVTRANSPOSE_TUNING");
    if (!path || !*path) return;
    std::string text, why = read_tuning_file(path, &text);
    try {
        if (why.empty()) read_tuning(text);
    } catch (const std::exception &e) {
        why = e.what();
    }
    if (!why.empty()) std::fprintf(stderr, "note: CONVTRANSPOSE_TUNING=%s is not used: %s\n", path, why.c_str());
}

} // namespace convtranspose::tools

#endif // CONVTRANSPOSE_TOOLS_TUNING_NOTE_H_
