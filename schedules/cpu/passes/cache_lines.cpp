#include "cpu/passes/cache_lines.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "kernel_contract/fetching.h"

namespace convtranspose {

using namespace Halide;
using namespace Halide::Internal;

void Accesses::add(Expr index, int element_bytes) {
    bytes = element_bytes;
    int elements = 1;
    if (const Ramp *r = index.as<Ramp>()) {
        elements = is_const_one(r->stride) ? r->lanes : 1;
        index = r->base;
    } else if (const Broadcast *b = index.as<Broadcast>()) {
        index = b->value;
    }
    at.push_back(simplify(index * bytes));
    at.push_back(simplify(index * bytes + (elements - 1) * bytes));
}

std::vector<Expr> lines(const Accesses &accesses, bool dense) {
    struct Run {
        Expr first;
        std::set<std::int64_t> offsets;
    };
    std::vector<Run> runs;
    for (const Expr &at : accesses.at) {
        const auto near = std::find_if(runs.begin(), runs.end(), [&](Run &run) {
            const Expr distance = simplify(at - run.first);
            const auto *const bytes = distance.as<IntImm>();
            if (bytes) run.offsets.insert(bytes->value);
            return bytes != nullptr;
        });
        if (near == runs.end()) runs.push_back({at, {0}});
    }
    std::vector<Expr> found;
    for (const Run &run : runs) {
        std::int64_t next = *run.offsets.begin();
        for (const std::int64_t offset : run.offsets) {
            if (offset < next && (dense || offset != *run.offsets.rbegin())) continue;
            found.push_back(run.first + static_cast<int>(offset));
            next = offset + kCacheLine;
        }
    }
    return found;
}

} // namespace convtranspose
