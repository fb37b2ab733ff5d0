// A layer is computed in strips. They cover all positions once, in order, none is empty, and the workspace holds the copies of x
// that threads make of them.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "reference/built_types.h"
#include "reference/descriptor.h"
#include "reference/random_problem.h"
#include "reference/reference.h"
#include "reference/tensor.h"
#include "runtime/base/parallel.h"
#include "runtime/cpu/cpu.h"
#include "runtime/direct/blocking.h"
#include "runtime/direct/direct_layer.h"
#include "runtime/direct/direct_plan.h"
#include "runtime/direct/input_packing.h"
#include "runtime/direct/pieces.h"
#include "runtime/direct/strip_tasks.h"
#include "runtime/kernels/halide_buffer.h"
#include "runtime/kernels/kernel_tables.h"
#include "runtime/selection/candidates.h"

namespace convtranspose::test {
namespace {

constexpr std::uint64_t kSeed = 47;
constexpr std::size_t kKernelsEach = 10; // of a problem, to run
constexpr int kThreads[] = {1, 2, 3, 7};

// Along each axis, of one image and of several, in each layout; of one tap, of groups, of blocks of channels.
const std::vector<std::string> &lines() {
    static const std::vector<std::string> all = {
        "f32 nchw n1 ic64 oc8 i64x64 k3x3 s2x2 p1x1_1x1",
        "f32 nhwc n1 ic64 oc16 i61x64 k4x4 s2x2 p1x1_1x1",
        "f32 nchw n3 ic20 oc12 i17x33 k3x3 s1x1 p1x1_1x1",
        "f32 nhwc n5 ic32 oc20 i9x30 k3x3 s1x1 p1x1_1x1 bias",
        "f32 nchw n1 ic16 oc4 i3001 k16 s8 p4_4",
        "f32 nhwc n2 ic48 oc24 i903 k4 s2 p1_1",
        "f32 nchw n1 ic8 oc8 i10x12x14 k3x3x3 s2x2x2 p1x1x1_1x1x1",
        "f32 nhwc n1 ic24 oc8 i9x8x17 k2x2x2 s1x1x1",
        "f32 nhwc n1 g64 ic64 oc64 i23x35 k4x4 s2x2 p1x1_1x1",
        "f32 nchw n1 g40 ic40 oc40 i23x35 k4x4 s2x2 p1x1_1x1",
        "f32 nchw n2 g100 ic100 oc100 i23x35 k3x3 s1x1 p1x1_1x1",
        "f32 nchw n1 g13 ic104 oc39 i29x35 k3x3 s2x2 p1x1_1x1",
        "f32 nchw n1 ic64 oc16 i3001 k1",
        "f32 nchw n1 ic64 oc8 i9x601 k1x1",
        "f32 nchw n1 ic256 oc4 i70x70 k1x1",
        "f32 nchw n1 ic3 oc1 i40x90 k9x9 s3x3 d1x2",
        "f64 nchw n2 ic17 oc9 i21x26 k5x3 s2x1 p2x1_2x1",
        "bf16 nhwc n1 ic64 oc40 i30x41 k3x3 s1x1 p1x1_1x1",
        "bf16 nchw n2 ic48 oc33 i20x37 k4x4 s2x2 p1x1_1x1",
        "f16 nchw n1 ic30 oc10 i30x41 k2x2 s2x2",
        "f16 nchw n1 g160 ic160 oc160 i25x22 k4x4 s2x2 p1x1_1x1", // the last strip has fewer groups, and larger pieces;
        "bf16 nchw n8 ic8 oc23 i37x29 k1x1 s2x4",                 // this one's has fewer images
        "u8 nhwc n1 ic33 oc20 i40x41 k4x4 s2x2 p1x1_1x1",
        "s8 nchw n2 ic20 oc20 i30x31 k3x3 s1x1 p1x1_1x1",
        "u8 nchw n1 g24 ic24 oc24 i30x31 k4x4 s2x2 p1x1_1x1",
        "u8 nchw n1 g150 ic150 oc150 i30x31 k3x3 s1x1 p1x1_1x1",
        "u8 nhwc n1 g24 ic24 oc24 i30x31 k3x3 s1x1 p1x1_1x1",
    };
    return all;
}

// Larger ones, which are planned but not run.
const std::vector<std::string> &large_lines() {
    static const std::vector<std::string> all = {
        "f32 nchw n1 ic512 oc256 i56x56 k3x3 s1x1 p1x1_1x1",
        "f32 nhwc n1 ic3 oc100 i150x150 k2x2 s2x2",
        "f32 nhwc n16 ic64 oc64 i8x8 k4x4 s2x2 p1x1_1x1",
        "f32 nchw n70 ic512 oc64 i5x7 k3x3 s2x2",
        "f32 nchw n1 ic128 oc64 i224x224 k4x4 s2x2 p1x1_1x1",
        "f32 nhwc n1 ic1024 oc512 i14x14 k3x3 s2x2",
        "f32 nchw n1 ic64 oc3 i100000 k16 s8 p4_4",
        "f32 nhwc n2 ic64 oc64 i40x40x40 k2x2x2 s2x2x2",
        "f32 nchw n1 g512 ic512 oc512 i64x64 k4x4 s2x2",
        "f32 nhwc n1 g512 ic512 oc512 i64x64 k4x4 s2x2",
        "f32 nchw n1 ic256 oc512 i1x20000 k1x1",
        "f32 nchw n1 ic64 oc64 i1x1 k4x4",
        "f32 nhwc n0 ic64 oc64 i9x9 k4x4",
        "bf16 nhwc n1 ic256 oc128 i112x112 k4x4 s2x2 p1x1_1x1",
        "u8 nhwc n3 ic256 oc128 i112x112 k4x4 s2x2 p1x1_1x1",
    };
    return all;
}

// f(geometry, problem) of those whose type is built.
template<typename F>
void for_each_problem(const std::vector<std::string> &all, const F &f) {
    for (const std::string &line : all) {
        const Problem problem = parse_problem(line);
        if (!is_built(problem.dtype)) continue;
        SCOPED_TRACE(line);
        const Geometry geometry = geometry_of(problem);
        f(geometry, spatial_problem(geometry, geometry.quantized() ? CONVT_U8 : geometry.y_dtype, true));
        if (testing::Test::HasFatalFailure()) return;
    }
}

// f(blocking, threads) of each variant that can compute the problem, for each number of threads.
template<typename F>
void for_each_blocking(const SpatialProblem &problem, const F &f) {
    for (std::size_t i = 0; i < variant_count(); i++) {
        const CostProfile &profile = profile_of_cpu(variant_at(i).isa);
        const Candidate choice = candidate(variant_at(i), problem, profile);
        if (choice.unsupported.text) continue;
        for (const int threads : kThreads) {
            SCOPED_TRACE(testing::Message() << variant_at(i).name << ", " << threads << " threads");
            const DirectLayer layer(problem, choice);
            f(Blocking(layer, profile, threads), threads);
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

// The strips of a run take each image, group and position once, in order.
void expect_all_once(const Geometry &geometry, const Blocking &blocking) {
    std::int64_t taken = 0;
    for (std::int64_t i = 0; i < blocking.strip_count(); i++) {
        const Strip s = blocking.strip(i);
        ASSERT_GE(s.images, 1);
        ASSERT_GE(s.groups, 1);
        ASSERT_LE(s.first_group + s.groups, geometry.group);
        ASSERT_LE(s.first_image + s.images, geometry.batch);
        // Whatever comes before has been taken: images before those of the strip, then their groups, then positions.
        ASSERT_EQ(taken, (s.first_image * geometry.group + s.images * s.first_group) * blocking.positions() +
                             s.images * s.groups * s.q_begin);
        taken += s.images * s.groups * (s.q_end - s.q_begin);
    }
    ASSERT_EQ(taken, geometry.batch * geometry.group * blocking.positions());
}

TEST(Strips, CoverAllPositionsOnceInOrder) {
    std::size_t several = 0, apart = 0; // apart: plans that take groups in several parts
    const auto expect_strips = [&](const Geometry &geometry, const SpatialProblem &problem) {
        for_each_blocking(problem, [&](const Blocking &blocking, int threads) {
            const std::int64_t of_image = blocking.strips;
            ASSERT_GE(of_image, 1);
            ASSERT_EQ(blocking.strip_begin(0), 0);
            ASSERT_EQ(blocking.strip_begin(of_image), blocking.layer.axes[blocking.strip_axis].q_extent());
            for (std::int64_t k = 0; k < of_image; k++) {
                const std::int64_t begin = blocking.strip_begin(k);
                ASSERT_LT(begin, blocking.strip_begin(k + 1)) << "strip " << k << " is empty";
                ASSERT_EQ(begin % blocking.strip_tile, 0) << "strip " << k << " begins within a tile";
            }
            ASSERT_GE(blocking.images, 1);
            const std::int64_t rounds = (geometry.batch + blocking.images - 1) / blocking.images,
                               group_parts = (geometry.group + blocking.groups - 1) / blocking.groups;
            ASSERT_GE(blocking.groups, 1);
            ASSERT_LE(blocking.groups, geometry.group);
            ASSERT_EQ(blocking.strip_count(), rounds * group_parts * of_image);
            expect_all_once(geometry, blocking);
            ASSERT_TRUE(of_image * group_parts == 1 || blocking.images == 1) << "strips of several images";
            ASSERT_TRUE(of_image == 1 || group_parts == 1) << "strips of several groups";
            // Whole strips are for one thread each: so there are enough.
            ASSERT_TRUE(blocking.workers == 1 || blocking.workers == threads);
            ASSERT_TRUE(blocking.workers == 1 || blocking.strip_count() >= threads || geometry.batch == 0);
            const InputPacking input(blocking);
            ASSERT_EQ(input.bytes() > 0, blocking.layer.reads_x != ReadsX::kInPlace && geometry.batch > 0);
            ASSERT_EQ(input.bytes() % 64, 0u);
            ASSERT_EQ(Pieces(blocking, threads).bytes() % 64, 0u);
            several += of_image > 1;
            apart += group_parts > 1;
        });
    };
    for_each_problem(lines(), expect_strips);
    for_each_problem(large_lines(), expect_strips);
    EXPECT_GT(several, 100u);
    EXPECT_GT(apart, 100u);
}

// Each element of y is of one part of one strip, however many parts are asked for.
TEST(Strips, AreDividedIntoPartsOfY) {
    const auto expect_parts = [](const Geometry &geometry, const SpatialProblem &problem) {
        for_each_blocking(problem, [&](const Blocking &blocking, int threads) {
            const Pieces pieces(blocking, threads);
            for (const std::int64_t asked_for : {0, 1, 50}) {
                std::int64_t elements = 0;
                for (std::int64_t k = 0; k < blocking.strip_count(); k++) {
                    const Strip s = blocking.strip(k);
                    const StripTasks tasks(blocking, s, asked_for, threads);
                    ASSERT_GE(tasks.count(), tasks.parts());
                    ASSERT_TRUE(asked_for == 0 || tasks.count() == tasks.parts()) << "a piece has gaps";
                    for (std::int64_t p = 0; p < tasks.parts(); p++) {
                        const PartOfY part = pieces.part_of_y(s, tasks.part(p));
                        elements +=
                            part.images * part.groups * part.oc * part.extent[0] * part.extent[1] * part.extent[2];
                    }
                }
                ASSERT_EQ(elements, volume(geometry.y_shape));
            }
        });
    };
    for_each_problem(lines(), expect_parts);
    for_each_problem(large_lines(), expect_parts);
}

// In place of a kernel: notes which x it may read and which y it would write.
struct Recorder {
    const Variant *variant = nullptr;
    const char *x = nullptr, *copies = nullptr, *pieces = nullptr, *y = nullptr;
    std::int64_t x_bytes = 0, copy_bytes = 0, piece_bytes = 0, piece_count = 0;
    int workers = 1;
    std::vector<int> writer; // of each element of y: the number of the call, from 1 on
    int calls = 0;
    std::string fault; // the first
    Mutex mutex;

    void add_fault(const char *text) {
        if (fault.empty()) fault = text;
    }

    // Whether the kernel tests itself what of the axis is in x.
    bool leaves_out(std::size_t axis) const {
        return variant->family == Family::kReference || skips_outside(*variant, axis) ||
               (axis == 0 && variant->family == Family::kOcVectorized && is_float(variant->arithmetic));
    }

    struct Positions {
        std::int64_t least = INT64_MAX, most = INT64_MIN;
    };
    // Returns the positions of x along an axis that taps meet, in the coordinates of its buffer. *out: the first dimension of y
    // that is of the axis, then of the next.
    Positions positions_met(std::size_t axis, const halide_buffer_t &taps, std::int32_t step,
                            const halide_buffer_t &y_out, int *out) const {
        const int stride = axis == 0 ? variant->stride_w : axis == 1 ? variant->stride_h : 0;
        const std::int64_t outputs = y_out.dim[(*out)++].extent,
                           phases = stride ? std::min<std::int64_t>(stride, outputs) : y_out.dim[(*out)++].extent;
        const auto *const table = reinterpret_cast<const std::int32_t *>(taps.host);
        Positions p;
        for (std::int64_t r = 0; r < phases; r++) {
            const std::int32_t *const row = table + kTapColumns * r;
            const std::int64_t last = stride ? (outputs - 1 - r) / stride : outputs - 1;
            if (row[1] == 0) continue;
            p.least = std::min<std::int64_t>(p.least, row[0]);
            p.most = std::max<std::int64_t>(p.most, last + row[0] + std::int64_t{row[1] - 1} * step);
        }
        return p;
    }

    // taps, steps: of w, h and d, as the kernel gets them.
    void reads(const halide_buffer_t &b, const std::array<const halide_buffer_t *, 3> &taps,
               const std::array<std::int32_t, 3> &steps, const halide_buffer_t &y_out) {
        const int first_axis = b.dimensions - 6; // w is the first dimension, or follows that of blocks
        std::int64_t elements = 1, met = 1;      // from the first one to the last: of the buffer, and of what taps meet
        for (int d = 0; d < b.dimensions; d++) {
            if (b.dim[d].extent <= 0) return;
            elements += std::int64_t{b.dim[d].extent - 1} * b.dim[d].stride;
        }
        for (int d = 0, out = 1; d < b.dimensions; d++) {
            std::int64_t last = b.dim[d].extent - 1;
            if (d >= first_axis && d < first_axis + 3) {
                const auto a = static_cast<std::size_t>(d - first_axis);
                const Positions p = positions_met(a, *taps[a], steps[a], y_out, &out);
                if (p.least > p.most) return; // there are no taps
                const std::int64_t least = p.least - b.dim[d].min, most = p.most - b.dim[d].min;
                if (!leaves_out(a) && (least < 0 || most > last)) add_fault("taps meet positions that are not there");
                last = std::clamp<std::int64_t>(most, 0, last);
            }
            met += last * b.dim[d].stride;
        }
        const char *const first = reinterpret_cast<const char *>(b.host);
        const std::int64_t size = b.type.bytes(), from_x = first - x, from_copies = first - copies;
        if (from_x >= 0 && from_x < x_bytes) {
            if (from_x + met * size > x_bytes) add_fault("x is read past its end");
            return;
        }
        if (copy_bytes == 0 || from_copies < 0 || from_copies >= workers * copy_bytes) {
            add_fault("neither x nor a copy of it is read");
            return;
        }
        // A tile is read whole, past the last column.
        const std::int64_t past = (variant->tile_q - 1) * std::int64_t{b.dim[first_axis].stride};
        if (from_copies % copy_bytes + (elements + past) * size > copy_bytes)
            add_fault("a copy is larger than promised");
    }

    // A part of y that is rounded afterwards.
    void writes_piece(const halide_buffer_t &b) {
        std::int64_t last = 0;
        for (int d = 0; d < b.dimensions; d++) last += std::int64_t{b.dim[d].extent - 1} * b.dim[d].stride;
        const std::int64_t at = reinterpret_cast<const char *>(b.host) - pieces,
                           end = at % piece_bytes + (last + 1) * b.type.bytes();
        if (at < 0 || at >= piece_count * piece_bytes) add_fault("no piece is written");
        if (end > piece_bytes) add_fault("a piece is larger than promised");
    }

    void writes(const halide_buffer_t &b, int dimension, std::int64_t at) {
        if (dimension < 0) {
            if (at < 0 || at >= static_cast<std::int64_t>(writer.size())) {
                add_fault("y is left");
            } else if (writer[static_cast<std::size_t>(at)]) {
                add_fault("an element of y is written twice");
            } else {
                writer[static_cast<std::size_t>(at)] = calls;
            }
            return;
        }
        for (std::int32_t i = 0; i < b.dim[dimension].extent; i++) {
            writes(b, dimension - 1, at + std::int64_t{i} * b.dim[dimension].stride);
        }
    }
};

Recorder *recorder = nullptr; // of the run under way

int record(halide_buffer_t *x, halide_buffer_t *, halide_buffer_t *, halide_buffer_t *, halide_buffer_t *taps_w,
           halide_buffer_t *taps_h, halide_buffer_t *taps_d, std::int32_t step_w, std::int32_t step_h,
           std::int32_t step_d, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int32_t,
           std::int32_t, std::int32_t, float, float, halide_buffer_t *y) {
    const std::lock_guard<Mutex> lock(recorder->mutex);
    recorder->calls++;
    for (int d = 0; d < y->dimensions; d++) {
        if (y->dim[d].extent <= 0) recorder->add_fault("a call computes nothing");
    }
    recorder->reads(*x, {taps_w, taps_h, taps_d}, {step_w, step_h, step_d}, *y);
    if (recorder->piece_bytes > 0) {
        recorder->writes_piece(*y);
        return 0;
    }
    recorder->writes(*y, y->dimensions - 1, (reinterpret_cast<const char *>(y->host) - recorder->y) / y->type.bytes());
    return 0;
}

// The kernels that this CPU copies x for, of all tiles and families that can do the problem, some of each.
std::vector<Variant> kernels_to_run(const SpatialProblem &problem, Random *random) {
    using Key = std::tuple<Family, OutputOrder, Arithmetic, int, int, int, int, int>;
    std::vector<Variant> found;
    std::set<Key> keys;
    for (std::size_t i = 0; i < variant_count(); i++) {
        const Variant &v = variant_at(i);
        if (!isa_supported(v.isa) || candidate(v, problem, profile_of_cpu(v.isa)).unsupported.text) continue;
        const Key key(v.family, v.output_order, v.arithmetic, v.stride_w, v.tile_q, v.tile_qh, v.lanes, v.tile_oc);
        if (keys.insert(key).second) found.push_back(v);
    }
    for (std::size_t i = 0; i + 1 < found.size(); i++) {
        const std::int64_t other =
            random->integer(static_cast<std::int64_t>(i), static_cast<std::int64_t>(found.size()) - 1);
        std::swap(found[i], found[static_cast<std::size_t>(other)]);
    }
    if (found.size() > kKernelsEach) found.resize(kKernelsEach);
    return found;
}

void expect_run(const Geometry &geometry, const SpatialProblem &problem, const Variant &v, int threads,
                std::size_t *copies) {
    const CostProfile &profile = profile_of_cpu(v.isa);
    const Candidate choice = candidate(v, problem, profile);
    const DirectPlan plan(problem, choice, profile, threads);
    const DirectLayer layer(problem, choice); // the parts of the plan, made alone
    const Blocking blocking(layer, profile, threads);
    const InputPacking input(blocking);
    const Pieces pieces(blocking, threads);
    const auto copy_bytes = static_cast<std::int64_t>(input.bytes()),
               piece_bytes = static_cast<std::int64_t>(pieces.bytes());
    Tensor x(geometry.dtype, geometry.x_shape), y(problem.y_dtype, geometry.y_shape);
    std::vector<char> packed(static_cast<std::size_t>(plan.packed_bytes()) + 64),
        epilogue(static_cast<std::size_t>(plan.epilogue_bytes()) + 64);
    const auto workspace_bytes = static_cast<std::size_t>(plan.workspace_bytes());
    constexpr std::size_t kBehind = 4096;
    constexpr char kUntouched = 0x5a;
    std::vector<char> workspace(workspace_bytes + kBehind + 64, kUntouched);
    const auto aligned = [](std::vector<char> &v64) {
        return v64.data() + (64 - reinterpret_cast<std::uintptr_t>(v64.data()) % 64) % 64;
    };

    Recorder own;
    own.variant = &v;
    own.x = static_cast<const char *>(x.data());
    own.x_bytes = x.size() * static_cast<std::int64_t>(convt_dtype_size(x.dtype()));
    own.copies = aligned(workspace);
    own.copy_bytes = copy_bytes;
    own.workers = blocking.workers;
    own.pieces = own.copies + blocking.workers * copy_bytes;
    own.piece_bytes = piece_bytes;
    own.piece_count = pieces.count();
    ASSERT_EQ(static_cast<std::int64_t>(workspace_bytes), blocking.workers * copy_bytes + pieces.count() * piece_bytes);
    own.y = static_cast<const char *>(y.data());
    own.writer.resize(static_cast<std::size_t>(y.size()));
    recorder = &own;

    DirectOperands operands;
    operands.x = x.data();
    operands.x_strides = tensor_strides(geometry, dense_strides(geometry.x_shape));
    operands.y = y.data();
    operands.y_strides = tensor_strides(geometry, dense_strides(geometry.y_shape));
    operands.packed = aligned(packed);
    operands.epilogue = aligned(epilogue);
    operands.workspace = aligned(workspace);
    Parallel parallel;
    parallel.threads = threads;
    plan.run(operands, parallel);
    recorder = nullptr;

    ASSERT_EQ(own.fault, "");
    if (piece_bytes > 0) { // what is in the workspace is not zero, and neither is it when rounded
        for (std::int64_t i = 0; i < y.size(); i++) ASSERT_NE(y.get(i), 0) << "element " << i << " of y is not written";
    } else {
        ASSERT_EQ(std::count(own.writer.begin(), own.writer.end(), 0), 0) << "elements of y are not written";
    }
    const char *const end = aligned(workspace) + workspace_bytes;
    ASSERT_TRUE(std::all_of(end, end + kBehind, [](char c) { return c == kUntouched; }))
        << "written behind the workspace";
    *copies += workspace_bytes > 0;
    if (threads > 1 || piece_bytes > 0) return;
    // One thread goes along the axis of the strips: an output of a position is not written before that of one before it.
    const AxisGeometry &axis = problem.plan[blocking.strip_axis].geometry;
    const std::int64_t stride = operands.y_strides.axes[blocking.strip_axis], step = axis.stride * stride;
    for (std::int64_t i = 0; i + step < y.size(); i++) {
        if (i / stride % axis.out + axis.stride >= axis.out) continue;
        ASSERT_LE(own.writer[static_cast<std::size_t>(i)], own.writer[static_cast<std::size_t>(i + step)]);
    }
}

TEST(Strips, AreComputedOnceFromWhatIsThere) {
    Random random(kSeed);
    std::size_t copies = 0;
    for_each_problem(lines(), [&](const Geometry &geometry, const SpatialProblem &problem) {
        for (Variant &v : kernels_to_run(problem, &random)) {
            v.run = record;
            for (const int threads : kThreads) {
                SCOPED_TRACE(testing::Message()
                             << isa_name(v.isa) << ' ' << v.name << ", " << threads << " threads, seed " << kSeed);
                expect_run(geometry, problem, v, threads, &copies);
                if (HasFatalFailure()) return;
            }
        }
    });
    EXPECT_GT(copies, 20u);
}

// The last strips may have fewer images or groups than the others, and are then divided otherwise.
TEST(Strips, FillNoPieceBeyondItsEnd) {
    constexpr int kLayers = 40;
    constexpr std::size_t kMostRank = 5; // three axes
    Random random(kSeed);
    std::size_t runs = 0;
    for (int i = 0; i < kLayers; i++) {
        Problem layer = large_problem(&random);
        layer.dtype = random.pick<convt_dtype>({CONVT_F16, CONVT_BF16});
        if (!is_built(layer.dtype) || layer.w_shape.size() > kMostRank) continue;
        const Geometry geometry = geometry_of(layer);
        const SpatialProblem problem = spatial_problem(geometry, geometry.y_dtype, true);
        for (Variant &v : kernels_to_run(problem, &random)) {
            if (!rounds_y(v, problem.y_dtype)) continue;
            v.run = record;
            for (const int threads : {1, 3}) {
                SCOPED_TRACE(testing::Message() << describe(layer) << ", " << isa_name(v.isa) << ' ' << v.name << ", "
                                                << threads << " threads, seed " << kSeed);
                expect_run(geometry, problem, v, threads, &runs);
                if (HasFatalFailure()) return;
            }
        }
    }
    EXPECT_TRUE(runs > 20u || !is_built(CONVT_F16));
}

} // namespace
} // namespace convtranspose::test
