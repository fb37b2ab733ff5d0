#include "algorithm/numbered_layer.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace convtranspose::test {

using namespace Halide;

namespace {

// Taps leave x on both sides of both axes.
struct LayerAxis {
    int in, kernel, stride, pad, out;
};
constexpr LayerAxis kAxes[3] = {{5, 4, 2, 1, 10}, {3, 3, 1, 1, 3}, {1, 1, 1, 0, 1}}; // w, h, d
constexpr int kTaps = 4 * 3, kMostTaps = 3, kIn = 5 * 3;

int x_at(int n, int c, int h, int w) { return ((n * kGroups * kIc + c) * kAxes[1].in + h) * kAxes[0].in + w; }

int stored_x(int at) { return at * 7 % 11; }
int weight(int oc, int ic, int kh, int kw) { return ((oc * kIc + ic) * 3 + kh * 4 + kw) * 5 % 9 - 4; }
int bias(int oc) { return oc % 4 - 1; }

// The kernel elements of a phase of an axis, by increasing offset; all steps are 1.
struct Taps {
    int offset = 0;
    std::vector<int> elements;
};

Taps taps_of(const LayerAxis &axis, int phase) {
    Taps taps;
    for (int k = axis.kernel - 1; k >= 0; k--) {
        const int at = phase + axis.pad - k;
        if (at % axis.stride != 0) continue;
        if (taps.elements.empty()) taps.offset = at / axis.stride;
        taps.elements.push_back(k);
    }
    return taps;
}

// A divisor of small numbers.
Divisor divisor(int value) { return {value, cast<uint32_t>((1 << 20) / value + 1), 20}; }

Func of(Buffer<int> table) {
    Var i("i"), j("j");
    Func f("table");
    f(i, j) = table(clamp(i, 0, table.width() - 1), clamp(j, 0, table.height() - 1));
    return f;
}

class Maker {
  public:
    explicit Maker(const Choices &choices) : choices_(choices), type_(choices.block > 1 ? Int(32) : Float(32)) {}

    NumberedKernel make() {
        NumberedKernel kernel;
        const bool list = choices_.positions == Positions::kInPhase;
        kernel.tile.oc = {2, 2, 1};
        kernel.tile.p = {2, 4, 2};
        kernel.tile.chunk = 4; // so that each of the threads of a block stages something
        kernel.y_size = kYSize * choices_.splits;
        kernel.type = type_;
        ConvTransposeInputs in;
        in.block = choices_.block;
        in.oc_tile = list ? kernel.tile.oc.size() : 1;
        in.numerics.sum = in.numerics.y = type_;
        if (choices_.block > 1) in.numerics.arithmetic = Arithmetic::kInt8;
        set_axes(&in);
        set_factors(&in);
        if (choices_.positions != Positions::kByAxis) {
            in.x_at = {kBatch * kGroups * kIc * kIn, {1, kAxes[0].in, kIn}, kIn, kGroups * kIc * kIn, kIc};
            in.y_at = {kernel.y_size, {1, kAxes[0].out, kOut}, kOut, kGroups * kOc * kOut, kOc};
            Numbering &n = in.numbering;
            n.positions = choices_.positions;
            n.digits = list ? tile_digits(kernel.tile) : each_digits(2, 4);
            n.batch = kBatch;
            const int tiles = (kOc + in.oc_tile - 1) / in.oc_tile;
            n.tiles = kGroups * tiles;
            n.tiles_per_group = divisor(tiles);
            for (std::size_t a = 0; a < 3; a++) {
                const LayerAxis &axis = kAxes[a];
                n.extents[a] = divisor(list ? (axis.out + axis.stride - 1) / axis.stride : axis.out);
                n.strides[a] = divisor(axis.stride);
                in.y_extents[a] = axis.out;
            }
        }
        const int blocks = (kIc + choices_.block - 1) / choices_.block, splits = choices_.splits;
        in.ic_extent = blocks;
        if (list) {
            const int chunks = (blocks + kernel.tile.chunk - 1) / kernel.tile.chunk;
            chunks_of_part_ = (chunks + splits - 1) / splits;
            in.ic_extent = chunks_of_part_ * kernel.tile.chunk;
            set_list(kernel.tile.chunk, &in);
        }
        kernel.c = conv_transpose(in);
        return kernel;
    }

  private:
    // The tables of taps, and what is around x.
    void set_axes(ConvTransposeInputs *in) {
        for (std::size_t a = 0; a < 3; a++) {
            const LayerAxis &axis = kAxes[a];
            Buffer<int> table(axis.stride, kTapColumns);
            int first = 0;
            for (int r = 0; r < axis.stride; r++) {
                const Taps taps = taps_of(axis, r);
                table(r, kTapOffset) = taps.offset;
                table(r, kTapCount) = static_cast<int>(taps.elements.size());
                table(r, kTapFirst) = first;
                table(r, kTapClass) = 0;
                for (const int k : taps.elements) packed_[a].push_back(k);
                first += static_cast<int>(taps.elements.size());
            }
            Axis &to = in->axes[a];
            to.taps = of(table);
            to.step = 1;
            to.max_count = kMostTaps;
            to.kernel = axis.kernel;
            to.x_min = 0;
            to.x_extent = axis.in;
            to.outside = choices_.outside;
        }
        if (choices_.block > 1) in->around = cast<uint8_t>(3);
    }

    // x, w and the bias, as the choices have them.
    void set_factors(ConvTransposeInputs *in) {
        const bool by_axis = choices_.positions == Positions::kByAxis;
        const bool blocks = choices_.block > 1;
        const Type of_x = blocks ? UInt(8) : type_, of_w = blocks ? Int(8) : type_;
        Buffer<int> x(kBatch * kGroups * kIc * kIn);
        for (int i = 0; i < x.width(); i++) x(i) = stored_x(i);
        Buffer<int> w(kGroups * kOc, kIc, kTaps), b(kGroups * kOc);
        for (int oc = 0; oc < kGroups * kOc; oc++) {
            b(oc) = bias(oc);
            for (int ic = 0; ic < kIc; ic++) {
                for (int t = 0; t < kTaps; t++) {
                    w(oc, ic, t) = weight(oc, ic, packed_[1][static_cast<std::size_t>(t / 4)],
                                          packed_[0][static_cast<std::size_t>(t % 4)]);
                }
            }
        }
        Var ib("ib"), iw("iw"), ih("ih"), id("id"), oi("oi"), ic("ic"), tw("tap_w"), th("tap_h"), td("tap_d"), oo("oo"),
            g("g"), n("n"), i("i"), oc("channel");
        in->x = Func("x");
        if (by_axis) {
            in->x(iw, ih, id, ic, g, n) =
                cast(of_x, x((((n * kGroups + g) * kIc + ic) * kAxes[1].in + ih) * kAxes[0].in + iw));
        } else {
            in->x(i) = cast(of_x, x(i));
        }
        // Rows of tiles have channels past the last of a group, and blocks are zero past the last channel.
        const int tile = in->oc_tile, tiles = (kOc + tile - 1) / tile;
        const Expr in_group = by_axis ? oo * tile + oi : oo % tiles * tile + oi, group = by_axis ? Expr(g) : oo / tiles;
        const Expr channel = group * kOc + min(in_group, kOc - 1);
        const Expr from = blocks ? ic * choices_.block + ib : Expr(ic);
        const Expr all = w(channel, min(from, kIc - 1), tw + 4 * th);
        const Expr value = cast(of_w, select(from < kIc, all, 0));
        in->w = Func("w");
        if (blocks) {
            in->w(ib, oi, ic, tw, th, td, oo, g) = value;
        } else {
            in->w(oi, ic, tw, th, td, oo, g) = value;
        }
        in->bias = Func("bias");
        const Expr of_row = oc / tile / tiles * kOc + min(oc / tile % tiles * tile + oc % tile, kOc - 1);
        in->bias(oc, g) = cast(type_, b(by_axis ? g * kOc + oc : of_row));
    }

    // The lists of each phase, for each part of the input channels.
    void set_list(int chunk, ConvTransposeInputs *in) const {
        std::vector<std::array<int, kElementColumns>> elements;
        std::vector<std::array<int, kPartColumns>> parts;
        int first_w = 0;
        for (int r = 0; r < kAxes[0].stride; r++) {
            const Taps w = taps_of(kAxes[0], r), h = taps_of(kAxes[1], 0);
            const int first = static_cast<int>(elements.size()), of_w = static_cast<int>(w.elements.size());
            for (int th = 0; th < 3; th++) {
                for (int tw = 0; tw < of_w; tw++) {
                    elements.push_back({w.offset + tw, h.offset + th, 0, th * 4 + first_w + tw});
                }
            }
            first_w += of_w;
            for (int s = 0; s < choices_.splits; s++) {
                parts.push_back({r, 0, 0, first, 3 * of_w, s * chunks_of_part_, s * kYSize, s == 0 ? 0 : -1});
            }
        }
        const auto table = [](const auto &rows) {
            Buffer<int> b(static_cast<int>(rows[0].size()), static_cast<int>(rows.size()));
            for (std::size_t i = 0; i < rows.size(); i++) {
                std::copy(rows[i].begin(), rows[i].end(), &b(0, static_cast<int>(i)));
            }
            return of(b);
        };
        in->list = {table(elements),
                    table(parts),
                    static_cast<int>(elements.size()),
                    static_cast<int>(parts.size()),
                    static_cast<int>(elements.size()),
                    chunk};
        in->axes[0].kernel = kTaps;
    }

    const Choices choices_;
    const Type type_;
    std::array<std::vector<int>, 3> packed_; // kernel elements in the order of the packed weights
    int chunks_of_part_ = 1;
};

} // namespace

NumberedKernel make_numbered(const Choices &choices) { return Maker(choices).make(); }

std::vector<int> expected_of_numbered(int around) {
    std::vector<int> y(kYSize);
    const LayerAxis &w = kAxes[0], &h = kAxes[1];
    for (int n = 0; n < kBatch; n++) {
        for (int oc = 0; oc < kGroups * kOc; oc++) {
            int *const plane = y.data() + static_cast<std::ptrdiff_t>(n * kGroups * kOc + oc) * kOut;
            std::fill(plane, plane + kOut, bias(oc));
            for (int ic = 0; ic < kIc; ic++) {
                for (int ih = -4; ih < h.in + 4; ih++) {
                    for (int iw = -4; iw < w.in + 4; iw++) {
                        const bool inside = ih >= 0 && ih < h.in && iw >= 0 && iw < w.in;
                        const int x = inside ? stored_x(x_at(n, oc / kOc * kIc + ic, ih, iw)) : around;
                        for (int kh = 0; kh < h.kernel; kh++) {
                            for (int kw = 0; kw < w.kernel; kw++) {
                                const int oh = ih * h.stride + kh - h.pad, ow = iw * w.stride + kw - w.pad;
                                if (oh < 0 || oh >= h.out || ow < 0 || ow >= w.out) continue;
                                plane[oh * w.out + ow] += x * weight(oc, ic, kh, kw);
                            }
                        }
                    }
                }
            }
        }
    }
    return y;
}

} // namespace convtranspose::test
