// The lowering passes for GPUs, each alone: what it changes in the loops of tiles, and that sums stay the same. No GPU is needed.
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <Halide.h>
#include <gtest/gtest.h>

#include "algorithm/interpreter.h"
#include "algorithm/numbered_layer.h"
#include "schedules/gpu/combine.h"
#include "schedules/gpu/gpu.h"
#include "schedules/gpu/passes.h"

namespace convtranspose::test {

namespace {

using namespace Halide;
using Internal::Call;
using Internal::Stmt;

const char *const kChunks = "chunks"; // the loop of the schedule `tiled` that fills shared memory and reads it
const Target kOpenCl("x86-64-linux-opencl-no_asserts-no_bounds_query");

// The loops of tiles, before and after the passes that their schedule adds.
struct Tiles {
    NumberedKernel kernel;
    Stmt before, after;

    explicit Tiles(const Choices &choices, bool channels_last = false) : kernel(make_numbered(choices)) {
        kernel.tile.channels_last = channels_last;
        Pipeline p(kernel.c.y);
        keep_loops(p, &before);
        phase_schedules().at("tiled")(p, kernel.c, kernel.tile);
        keep_loops(p, &after);
        p.compile_to_module({}, "kernel", kOpenCl);
    }

    std::vector<int> run(const Stmt &loops) const {
        Memories buffers = {{kernel.c.y.name(), Memory({kernel.y_size})}};
        interpret(loops, &buffers);
        std::vector<int> y(kYSize);
        // Parts of the sums are apart.
        for (int i = 0; i < kernel.y_size; i++)
            y[static_cast<std::size_t>(i % kYSize)] +=
                static_cast<int>(buffers.begin()->second.elements[static_cast<std::size_t>(i)]);
        return y;
    }

    std::string steps() const { return kernel.c.updates[0].tw.name(); }
    Stmt bounded() const { return BoundedLoop(steps()).mutate(before); }
    Stmt with_two_barriers() const { return TwoBarriers(kChunks).mutate(before); }
    Stmt with_own_parts() const { return OneThreadsPart(kernel.c.sum.name()).mutate(before); }
};

const std::vector<Choices> kTiles = {{Positions::kInPhase, Outside::kZero, 1, 1},
                                     {Positions::kInPhase, Outside::kZero, 1, 2}};

bool is_chunks(const Internal::For *op) { return Internal::ends_with(op->name, kChunks); }

// The parts of loops that passes change.
class Found : public Internal::IRVisitor {
  public:
    int barriers = 0, fences = 0;    // in the loop over chunks; those that order what is in shared memory
    int sums = 0;                    // elements that are allocated for them
    std::vector<std::string> bounds; // of the loop over steps
    Found(const Tiles &tiles, const Stmt &s) : steps_(tiles.steps()), sum_(tiles.kernel.c.sum.name()) {
        s.accept(this);
    }

  private:
    using IRVisitor::visit;
    void visit(const Call *op) override {
        if (in_chunks_ && op->is_intrinsic(Call::gpu_thread_barrier)) {
            barriers++;
            fences += Internal::is_const(op->args.at(0), 2);
        }
        IRVisitor::visit(op);
    }
    void visit(const Internal::For *op) override {
        if (Internal::ends_with(op->name, steps_)) {
            std::ostringstream text;
            text << op->extent;
            bounds.push_back(text.str());
        }
        const bool outside = in_chunks_;
        in_chunks_ = in_chunks_ || is_chunks(op);
        IRVisitor::visit(op);
        in_chunks_ = outside;
    }
    void visit(const Internal::Allocate *op) override {
        if (op->name.rfind(sum_, 0) == 0) sums += static_cast<int>(*Internal::as_const_int(op->extents.at(0)));
        IRVisitor::visit(op);
    }
    const std::string steps_, sum_;
    bool in_chunks_ = false;
};

TEST(GpuPasses, ChangeNoSum) {
    const std::vector<int> expected = expected_of_numbered(0);
    for (const Tiles &tiles : {Tiles(kTiles[0]), Tiles(kTiles[0], true), Tiles(kTiles[1])}) {
        EXPECT_EQ(tiles.run(tiles.before), expected);
        EXPECT_EQ(tiles.run(tiles.bounded()), expected);
        EXPECT_EQ(tiles.run(tiles.with_two_barriers()), expected);
        EXPECT_EQ(tiles.run(tiles.with_own_parts()), expected);
        EXPECT_EQ(tiles.run(tiles.after), expected);
    }
}

TEST(BoundedLoop, EndsWhereTheBodyWouldDoNothing) {
    const Tiles tiles(kTiles[0]);
    const Found before(tiles, tiles.before), after(tiles, tiles.bounded());
    ASSERT_EQ(before.bounds.size(), 1u);
    ASSERT_EQ(after.bounds.size(), 1u);
    EXPECT_EQ(after.bounds[0].rfind("min(", 0), 0u) << after.bounds[0] << ", not " << before.bounds[0];
    EXPECT_THROW(BoundedLoop(tiles.steps()).mutate(tiles.bounded()), InternalError) << "nothing bounds it any more";
}

TEST(TwoBarriers, AreLeftOfMore) {
    const Tiles tiles(kTiles[0]);
    EXPECT_GT(Found(tiles, tiles.before).barriers, 2) << "otherwise Halide does so itself";
    const Found left(tiles, tiles.with_two_barriers());
    EXPECT_EQ(left.barriers, 2);
    EXPECT_EQ(left.fences, 2);
}

// Takes a barrier out of the loop over chunks, by its place.
class Without : public Internal::IRMutator {
  public:
    explicit Without(int place) : place_(place) {}

  private:
    using IRMutator::visit;
    Stmt visit(const Internal::For *op) override {
        const bool outside = in_chunks_;
        in_chunks_ = in_chunks_ || is_chunks(op);
        Stmt loop = IRMutator::visit(op);
        in_chunks_ = outside;
        return loop;
    }
    Stmt visit(const Internal::Evaluate *op) override {
        const Call *const call = op->value.as<Call>();
        if (!in_chunks_ || !call || !call->is_intrinsic(Call::gpu_thread_barrier)) return op;
        return seen_++ == place_ ? Internal::Evaluate::make(0) : Stmt(op);
    }
    const int place_;
    int seen_ = 0;
    bool in_chunks_ = false;
};

TEST(TwoBarriers, AreNeeded) {
    const Tiles tiles(kTiles[0]);
    for (const int place : {0, 1}) {
        EXPECT_NE(tiles.run(Without(place).mutate(tiles.with_two_barriers())), expected_of_numbered(0)) << place;
    }
}

TEST(OneThreadsPart, IsWhatIsAllocated) {
    const Tiles tiles(kTiles[0]);
    const GpuTile &tile = tiles.kernel.tile;
    EXPECT_EQ(Found(tiles, tiles.before).sums, tile.oc.size() * tile.p.size()) << "of a whole block";
    EXPECT_EQ(Found(tiles, tiles.with_own_parts()).sums,
              tile.oc.vector * tile.oc.unrolled * tile.p.vector * tile.p.unrolled);
}

// Constants of f64, as numbers and as bits.
class Constants : public Internal::IRVisitor {
  public:
    std::vector<double> numbers, from_bits;

  private:
    using IRVisitor::visit;
    void visit(const Internal::FloatImm *op) override {
        if (op->type == Float(64)) numbers.push_back(op->value);
    }
    void visit(const Internal::Reinterpret *op) override {
        const auto *const bits = op->value.as<Internal::UIntImm>();
        if (op->type != Float(64) || !bits) return IRVisitor::visit(op);
        double value = 0;
        std::memcpy(&value, &bits->value, sizeof value);
        from_bits.push_back(value);
    }
};

TEST(ExactConstants, AreTheSameNumbersForOpenCl) {
    for (const bool opencl : {true, false}) {
        Combine c;
        Func y("y");
        c.o = RDom(0, kCombineThreads, 0, 2, "o");
        c.sum(c.i) = cast<double>(c.i);
        c.out(c.i) = c.sum(c.i) * Expr(0.1);
        y(c.j) = undef<double>();
        y(c.o[1] * kCombineThreads + c.o[0]) = c.out(c.o[1] * kCombineThreads + c.o[0]);
        Pipeline p(y);
        const Target target = opencl ? kOpenCl.with_feature(Target::CLDoubles)
                                     : Target("x86-64-linux-cuda-cuda_capability_70-no_asserts-no_bounds_query");
        schedule_combine(c, y, p, target);
        Stmt after;
        keep_loops(p, &after);
        p.compile_to_module({}, "combine", target);
        Constants constants;
        after.accept(&constants);
        const std::vector<double> expected = {0.1};
        EXPECT_EQ(opencl ? constants.from_bits : constants.numbers, expected);
        EXPECT_TRUE((opencl ? constants.numbers : constants.from_bits).empty());
    }
}

} // namespace

} // namespace convtranspose::test
