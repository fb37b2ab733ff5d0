#include "built_in.h"

#include <algorithm>
#include <sstream>

namespace convtranspose {

using namespace Halide;

namespace {

void fail(const std::string &axis, const std::string &what) {
    _halide_user_assert(false) << axis << ": " << what << "\n";
}

// Reads a number, and the character after it, if there has to be one.
int number(std::istringstream *in, char after, const std::string &axis, const std::string &table) {
    int value = 0;
    char c = '\0';
    if (!(*in >> value) || (after != '\0' && (!in->get(c) || c != after))) {
        fail(axis, "\"" + table + "\" is not STEP/OFFSET:COUNT:FIRST,...");
    }
    return value;
}

// The entry taps(r, column) of a table, a constant once r is one.
Expr entry(const std::vector<std::array<int, kTapColumns>> &table, const Expr &r, TapColumn column) {
    std::vector<Expr> values;
    bool equal = true;
    for (const auto &row : table) {
        values.emplace_back(row[column]);
        equal = equal && row[column] == table[0][column];
    }
    return equal ? values[0] : mux(r, values);
}

} // namespace

int BuiltInTaps::kernel() const {
    int end = 0;
    for (const auto &row : table) {
        end = std::max(end, row[kTapFirst] + row[kTapCount]);
    }
    return end;
}

BuiltInTaps read_built_in_taps(const std::string &axis, const std::string &table, int count, int stride) {
    BuiltInTaps a;
    a.count = count;
    if (count < 0) {
        fail(axis, "a negative count of taps");
    }
    if (table.empty()) {
        return a;
    }
    std::istringstream in(table);
    a.step = number(&in, '/', axis, table);
    std::vector<std::array<int, 2>> classes; // first and count of each
    do {
        const int offset = number(&in, ':', axis, table);
        const int taps = number(&in, ':', axis, table);
        const int first = number(&in, '\0', axis, table);
        if (taps < 0 || first < 0) {
            fail(axis, "\"" + table + "\" has a negative count or first");
        }
        auto own = std::find(classes.begin(), classes.end(), std::array<int, 2>{first, taps});
        if (own == classes.end()) {
            own = classes.insert(own, {first, taps});
        }
        a.table.push_back({offset, taps, first, static_cast<int>(own - classes.begin())});
    } while (in.get() == ',');
    if (!in.eof()) {
        fail(axis, "\"" + table + "\" is not STEP/OFFSET:COUNT:FIRST,...");
    }
    if (stride > 0 && static_cast<int>(a.table.size()) != stride) {
        fail(axis, "a table of " + std::to_string(a.table.size()) + " phases, of " + std::to_string(stride));
    }
    if (a.step < 1) {
        fail(axis, "a step of " + std::to_string(a.step));
    }
    for (const auto &row : a.table) {
        if (count && row[kTapCount] != count) {
            fail(axis, "a phase of " + std::to_string(row[kTapCount]) + " taps, of " + std::to_string(count));
        }
    }
    const auto same = [&](const auto &row) { return row[kTapCount] == a.table[0][kTapCount]; };
    if (std::all_of(a.table.begin(), a.table.end(), same)) {
        a.count = a.table[0][kTapCount];
    }
    return a;
}

void build_in(const BuiltInTaps &built_in, Axis *axis) {
    if (built_in.count) {
        axis->max_count = built_in.count;
        axis->equal_counts = true;
    }
    if (built_in.table.empty()) {
        return;
    }
    const auto &table = built_in.table;
    Func taps("built_in_taps");
    Var r("r"), column("column");
    taps(r, column) =
        select(column == kTapOffset, entry(table, r, kTapOffset), column == kTapCount, entry(table, r, kTapCount),
               column == kTapFirst, entry(table, r, kTapFirst), entry(table, r, kTapClass));
    axis->taps = taps;
    axis->step = built_in.step;
    TapRange range;
    for (const auto &row : table) range.add(row[kTapOffset], row[kTapCount], built_in.step);
    axis->max_count = range.max_count;
    axis->shared_first = range.shared_first();
    axis->shared_count = range.shared_count();
    axis->first_offset = static_cast<int>(range.low);
    axis->offsets = static_cast<int>(range.high - range.low);
}

} // namespace convtranspose
