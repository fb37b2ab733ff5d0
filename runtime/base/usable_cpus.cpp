#include "base/usable_cpus.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

namespace convtranspose {

#if defined(__linux__)
namespace {

// Nothing in this file allocates by operator new or throws.
constexpr std::size_t kLine = 4096;

bool read_line(const char *root, const char *folder, const char *path, const char *name, char (&line)[kLine]) {
    char file_name[3 * kLine];
    const int length = std::snprintf(file_name, sizeof file_name, "%s%s%s/%s", root, folder, path, name);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof file_name) return false;
    std::FILE *const file = std::fopen(file_name, "re");
    if (!file) return false;
    const bool read = std::fgets(line, sizeof line, file) != nullptr;
    std::fclose(file);
    return read;
}

// Returns the quota of one folder, as a number of CPUs; 0 or less: there is none.
double granted(const char *root, const char *folder, const char *path) {
    char line[kLine];
    double quota = 0, period = 0;
    if (read_line(root, folder, path, "cpu.max", line)) { // version 2: "max 100000", or a quota instead of "max"
        if (std::sscanf(line, "%lf %lf", &quota, &period) != 2) return 0;
    } else { // version 1; a quota of -1 means no limit
        if (!read_line(root, folder, path, "cpu.cfs_quota_us", line) || std::sscanf(line, "%lf", &quota) != 1) return 0;
        if (!read_line(root, folder, path, "cpu.cfs_period_us", line) || std::sscanf(line, "%lf", &period) != 1)
            return 0;
    }
    return period > 0 ? quota / period : 0;
}

} // namespace

// Returns the least quota of the process's control group and of the groups around it. In a container the path may be that of
// the host, of which the container sees only the last part as its root, so folders that do not exist are skipped.
double granted_cpus(const char *root) {
    double least = 0;
    char line[kLine];
    const int length = std::snprintf(line, sizeof line, "%s/proc/self/cgroup", root);
    if (length < 0 || static_cast<std::size_t>(length) >= sizeof line) return least;
    std::FILE *const file = std::fopen(line, "re");
    if (!file) return least;
    while (std::fgets(line, sizeof line, file)) { // "0::/path", or "4:cpu,cpuacct:/path" in version 1
        char *const controllers = std::strchr(line, ':');
        char *const path = controllers ? std::strchr(controllers + 1, ':') : nullptr;
        if (!path) continue;
        *path = '\0';
        const bool is_unified = path == controllers + 1;
        if (!is_unified && !std::strstr(controllers, "cpu")) continue;
        char *const begin = path + 1;
        begin[std::strcspn(begin, "\n")] = '\0';
        for (char *end = begin + std::strlen(begin);; *end = '\0') {
            const double here = granted(root, is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu", begin);
            if (here > 0 && (least == 0 || here < least)) least = here;
            end = std::strrchr(begin, '/');
            if (!end) break;
        }
    }
    std::fclose(file);
    return least;
}
#endif

std::size_t usable_cpus() {
    std::size_t cpus = std::max(std::thread::hardware_concurrency(), 1U);
#if defined(__linux__)
    cpu_set_t set;
    // The call fails if the machine has more CPUs than a set can hold; then all of them count.
    if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<std::size_t>(std::max(CPU_COUNT(&set), 1));
    if (const double time = granted_cpus(""); time > 0) {
        const auto whole = static_cast<std::size_t>(std::min(time, static_cast<double>(cpus)));
        cpus = std::min(cpus, whole + (static_cast<double>(whole) < time ? 1 : 0));
    }
#endif
    return cpus;
}

} // namespace convtranspose
