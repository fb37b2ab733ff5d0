#include <cstdio>
#include <string>

#include "tools/commands.h"

namespace convtranspose::tools {

int targets_command() {
    std::printf("ISAs built in, best first:\n");
    for (std::size_t i = 0; i < convt_isa_count(); i++) {
        std::printf("  %-10s %s\n", convt_isa_name(i),
                    convt_isa_supported(i) ? "supported by this CPU" : "not supported by this CPU");
    }
    for (std::size_t kind = 0; kind < convt_device_kind_count(); kind++) {
        const char *const name = convt_device_kind_name(kind);
        const std::size_t count = convt_device_count(name);
        std::printf("devices of %s: %s\n", name, count == 0 ? convt_last_error() : "");
        for (std::size_t i = 0; i < count; i++) {
            const char *const description = convt_device_description(name, i);
            std::printf("  %zu %s\n", i, description ? description : convt_last_error());
        }
    }
    std::printf("algorithms, which may be named as variants:\n");
    for (std::size_t i = 0; i < convt_algorithm_count(); i++) {
        if (convt_algorithm_name(i) != std::string("direct")) std::printf("  %s\n", convt_algorithm_name(i));
    }
    std::printf("variants:\n");
    for (std::size_t i = 0; i < convt_variant_count(); i++) std::printf("  %s\n", convt_variant_name(i));
    return kSuccess;
}

} // namespace convtranspose::tools
