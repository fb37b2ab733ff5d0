// Copies that fetch what is far write what those that do not write, and nothing else: tensors that are large enough for plans to
// ask for it would take tests too long.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/cpu/cpu.h"
#include "runtime/kernels/halide_buffer.h"
#include "runtime/kernels/kernel_tables.h"

namespace convtranspose::test {
namespace {

constexpr std::size_t kMostBytes = 8;     // of an element
constexpr std::int64_t kSharedSet = 4096; // elements: rows so far apart share a set of the first-level cache
constexpr std::uint8_t kNotWritten = 0xA5;

struct Extents {
    std::int64_t channels, positions;
};

// The copy of some x, in memory that holds more. Rows of the copy lie `apart` elements apart.
std::vector<std::uint8_t> copied(const CopyVariant &copy, const Extents &extents, std::int64_t apart, bool fetches_x,
                                 bool fetches_copy) {
    const auto [channels, positions] = extents;
    std::vector<std::uint8_t> x(static_cast<std::size_t>(channels * positions) * kMostBytes);
    for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<std::uint8_t>(i % 61); // of any type a finite number
    const bool to_channels = copy.order == CopyOrder::kTilesToChannels;
    const std::int64_t rows = to_channels ? positions : channels;
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(rows * apart) * kMostBytes, kNotWritten);
    Buffer<7> from(x.data(), type_of(copy.dtype)), to(memory.data(), type_of(copy.dtype));
    struct Axis {
        std::int64_t extent, from, to;
    };
    const Axis one = {1, 0, 0}, c0 = to_channels ? Axis{channels, positions, 1} : one,
               w = to_channels ? Axis{positions, 1, apart} : Axis{positions, channels, 1},
               c1 = to_channels ? one : Axis{channels, 1, apart};
    for (const Axis &axis : {c0, w, one, one, c1, one, one}) {
        from.add(axis.extent, axis.from);
        to.add(axis.extent, axis.to);
    }
    EXPECT_EQ(copy.run(&from.raw, 0, 0, fetches_x, fetches_copy, &to.raw), 0);
    return memory;
}

class Copies : public testing::TestWithParam<Isa> {};

TEST_P(Copies, FetchingChangesNothing) {
    if (!isa_supported(GetParam())) GTEST_SKIP() << "this CPU does not run " << isa_name(GetParam());
    for_each_kernel_table([&](const KernelTable &table) {
        for (std::size_t i = 0; i < table.copy_count; i++) {
            const CopyVariant &copy = table.copies[i];
            const bool by_squares = copy.order == CopyOrder::kTiles || copy.order == CopyOrder::kTilesToChannels;
            if (copy.isa != GetParam() || !by_squares) continue;
            for (const Extents &e : {Extents{8, 8}, {16, 33}, {40, 300}, {61, 131}}) {
                for (const std::int64_t apart : {std::int64_t{301}, kSharedSet}) {
                    SCOPED_TRACE(testing::Message() << "copy " << i << ", " << e.channels << " channels, "
                                                    << e.positions << " positions, rows " << apart << " apart");
                    const std::vector<std::uint8_t> plain = copied(copy, e, apart, false, false);
                    EXPECT_NE(plain, std::vector<std::uint8_t>(plain.size(), kNotWritten));
                    EXPECT_EQ(copied(copy, e, apart, true, false), plain);
                    EXPECT_EQ(copied(copy, e, apart, false, true), plain);
                    EXPECT_EQ(copied(copy, e, apart, true, true), plain);
                }
            }
        }
    });
}

std::vector<Isa> isas_of_copies() {
    std::vector<Isa> isas;
    for (const IsaFacts &facts : kIsas) {
        bool has_copies = false;
        for_each_kernel_table([&](const KernelTable &table) {
            for (std::size_t i = 0; i < table.copy_count; i++) has_copies |= table.copies[i].isa == facts.value;
        });
        if (has_copies) isas.push_back(facts.value);
    }
    return isas;
}

INSTANTIATE_TEST_SUITE_P(Isas, Copies, testing::ValuesIn(isas_of_copies()),
                         [](const auto &isa) { return std::string(isa_name(isa.param)); });

} // namespace
} // namespace convtranspose::test
