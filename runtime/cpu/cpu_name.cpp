#include <cstring>
#include <string>

#include "base/error.h"
#include "base/once.h"
#include "cpu/cpu.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <fstream>
#endif

namespace convtranspose {

namespace {

// This is unused on platforms where the CPU cannot be asked, such as WebAssembly.
[[maybe_unused]] std::string trimmed(const std::string &text) {
    const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
    return first == std::string::npos ? "unknown" : text.substr(first, last - first + 1);
}

std::string read_cpu_name() {
#if defined(__x86_64__) && defined(__GNUC__)
    char brand[49] = {};
    for (unsigned int i = 0; i < 3; i++) {
        unsigned int words[4] = {};
        if (!__get_cpuid(0x80000002 + i, &words[0], &words[1], &words[2], &words[3])) return "unknown";
        std::memcpy(brand + 16 * i, words, 16);
    }
    // Vendors give one name, such as "AMD EPYC", to several generations, so family and model are added.
    unsigned int id = 0, unused = 0;
    __get_cpuid(1, &id, &unused, &unused, &unused);
    const unsigned int family = (id >> 8 & 15) + ((id >> 8 & 15) == 15 ? id >> 20 & 255 : 0),
                       model = (id >> 4 & 15) | (id >> 16 & 15) << 4;
    return concat(trimmed(brand), " (family ", family, " model ", model, ")");
#elif defined(__APPLE__)
    char brand[128] = {};
    std::size_t size = sizeof brand - 1;
    return sysctlbyname("machdep.cpu.brand_string", brand, &size, nullptr, 0) == 0 ? trimmed(brand) : "unknown";
#elif defined(__linux__)
    // Linux lists the implementer and the part of each core. It does not say which cores are the fastest, so all distinct
    // ones are named.
    std::ifstream file("/proc/cpuinfo");
    std::string name, line, implementer;
    while (std::getline(file, line)) {
        const std::size_t colon = line.find(':');
        if (colon == std::string::npos) continue;
        const std::string value = trimmed(line.substr(colon + 1));
        if (line.rfind("CPU implementer", 0) == 0) implementer = value;
        if (line.rfind("CPU part", 0) == 0) {
            const std::string direct = implementer + ":" + value;
            if (name.find(direct) == std::string::npos) name += (name.empty() ? "" : " ") + direct;
        }
        if (line.rfind("model name", 0) == 0) return value; // the host of an emulator
    }
    return name.empty() ? "unknown" : name;
#else
    return "unknown";
#endif
}

} // namespace

const char *cpu_name() {
    static Once<std::string> name;
    return name.get(read_cpu_name).c_str();
}

} // namespace convtranspose
