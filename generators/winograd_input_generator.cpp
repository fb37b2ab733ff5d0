// The transform of x in Winograd's algorithm, whose results are multiplied by weights: for tile t of an axis, entry e is
//   x(i) + second * x(i + distance),  i = 2 * t + first + start,
// along w, and of that likewise along h. Outside of x there are zeros.
#include <Halide.h>

#include <array>
#include <string>
#include <vector>

#include "kernel_contract/table_columns.h"
#include "surroundings/winograd_input.h"

namespace convtranspose {

using namespace Halide;

class WinogradInputGenerator : public Generator<WinogradInputGenerator>, private WinogradInput {
  public:
    GeneratorParam<Type> type{"type", Float(32)};
    // The entries of an axis, if they are built in: the start of each behind a letter, X for x(i) alone, D for x(i) - x(i+1), S for
    // x(i) + x(i+1), E for x(i) - x(i+2); "none": there is no such axis; "any": as entries_w and entries_h have them.
    GeneratorParam<std::string> built_in_w{"built_in_w", "any"}, built_in_h{"built_in_h", "any"};

    Input<Buffer<void, 3>> x{"x"};                                            // (channel, w, h)
    Input<Buffer<int32_t, 2>> entries_w{"entries_w"}, entries_h{"entries_h"}; // (entry, EntryColumn)
    Input<int32_t> first_w{"first_w"}, first_h{"first_h"};                    // positions of x
    Output<Buffer<void, 5>> transformed{"transformed"};                       // (channel, tw, th, entry w, entry h)

    void configure() {
        x.set_type(type);
        transformed.set_type(type);
    }

    void generate() {
        patch(channel, pw, ph) = BoundaryConditions::constant_exterior(
            x, cast(type, 0),
            {{Expr(), Expr()}, {x.dim(1).min(), x.dim(1).extent()}, {x.dim(2).min(), x.dim(2).extent()}})(channel, pw,
                                                                                                          ph);
        const Axis w = axis(built_in_w, entries_w, ew, tw, first_w), h = axis(built_in_h, entries_h, eh, th, first_h);
        const auto along_w = [&](const Expr &at_h) {
            return w.combined([&](const Expr &at_w) { return patch(channel, at_w, at_h); });
        };
        transformed(channel, tw, th, ew, eh) = h.combined(along_w);
        entries = {static_cast<int>(w.built_in.size()), static_cast<int>(h.built_in.size())};
    }

    void schedule() {
        for (int d = 0; d < 3; d++) {
            x.dim(d).set_min(0);
        }
        for (auto *table : {&entries_w, &entries_h}) {
            table->dim(0).set_min(0).set_stride(kEntryColumns);
            table->dim(1).set_min(0).set_stride(1);
        }
        for (int d = 0; d < 5; d++) {
            transformed.dim(d).set_min(0);
        }
        const bool built_in = entries[0] > 0;
        if (built_in) {
            transformed.dim(3).set_extent(entries[0]);
            transformed.dim(4).set_extent(entries[1]);
        }
        schedule_winograd_input(*this, transformed, natural_vector_size(type), built_in);
    }

  private:
    struct Entry {
        int start, distance, second;
    };
    struct Axis {
        Func table;
        Var e;
        Expr first; // of the tile
        std::vector<Entry> built_in;

        // at: the value at a position.
        template<typename At>
        Expr combined(const At &at) const {
            if (built_in.empty()) {
                const Expr i = first + table(e, kStart), one = at(i);
                return one + cast(one.type(), table(e, kSecond)) * at(i + table(e, kDistance));
            }
            Expr all;
            for (std::size_t k = built_in.size(); k-- > 0;) {
                const Entry &own = built_in[k];
                Expr value = at(first + own.start);
                if (own.second != 0) {
                    const Expr second = at(first + (own.start + own.distance));
                    value = own.second > 0 ? value + second : value - second;
                }
                all = all.defined() ? select(e == static_cast<int>(k), value, all) : value;
            }
            return all;
        }
    };

    static Axis axis(const std::string &text, const Func &table, const Var &e, const Var &tile, const Expr &first) {
        if (text == "none") return {table, e, first, {{0, 0, 0}}};
        Axis axis{table, e, 2 * tile + first, {}};
        if (text == "any") return axis;
        for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
            const int start = text[i + 1] - '0';
            switch (text[i]) {
            case 'X': axis.built_in.push_back({start, 0, 0}); break;
            case 'D': axis.built_in.push_back({start, 1, -1}); break;
            case 'S': axis.built_in.push_back({start, 1, 1}); break;
            case 'E': axis.built_in.push_back({start, 2, -1}); break;
            default: _halide_user_assert(false) << "entries are of X, D, S and E, not of " << text << "\n";
            }
        }
        return axis;
    }

    std::array<int, 2> entries = {0, 0}; // that are built in, along w and h
};

} // namespace convtranspose

HALIDE_REGISTER_GENERATOR(convtranspose::WinogradInputGenerator, winograd_input)
