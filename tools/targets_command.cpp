#include <cstdio>

#include "commands.h"

namespace convtranspose::tools {

int targets_command() {
    std::printf("ISAs built in, best first:\n");
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        std::printf("  %-10s %s\n", convt_isa_name(i),
                    convt_isa_supported(i) ? "supported by this CPU" : "not supported by this CPU");
    }
    std::printf("variants:\n");
    for (std::size_t i = 0; i < convt_variant_count(); i++) std::printf("  %s\n", convt_variant_name(i));
    return kSuccess;
}

} // namespace convtranspose::tools
