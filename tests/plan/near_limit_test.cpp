// Copies of x that have nearly as many elements as kernels count to, 2^31, and those that would have more.
#include "plan/sparse.h"

#if defined(__linux__) && defined(__LP64__)

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/quantized.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

constexpr std::int64_t kMost = (std::int64_t{1} << 31) - 1;

// Memory for one block at a time, which ends at a page that may not be touched. Pages that one block touched serve the next.
class Again {
  public:
    void *take(std::size_t bytes) {
        if (is_taken_ || bytes > kBytes || !memory_.data()) return nullptr;
        is_taken_ = true;
        return taken_ = memory_.data() + (kBytes - bytes) / 64 * 64;
    }
    bool give_back(const void *data) {
        if (!is_taken_ || data != taken_) return false;
        is_taken_ = false;
        return true;
    }

  private:
    static constexpr std::size_t kBytes = (std::size_t{1} << 31) + (std::size_t{1} << 26);
    Sparse memory_{kBytes};
    void *taken_ = nullptr;
    bool is_taken_ = false;
};

class SparseAllocator {
  public:
    void add_to(Options *options) {
        options->allocate = [](void *user, std::size_t size, std::size_t) {
            return static_cast<SparseAllocator *>(user)->allocate(size);
        };
        options->deallocate = [](void *user, void *data) {
            auto *const self = static_cast<SparseAllocator *>(user);
            if (!self->large_.give_back(data)) self->blocks_.erase(data);
        };
        options->allocate_user = this;
    }

  private:
    void *allocate(std::size_t size) {
        constexpr std::size_t kLarge = std::size_t{1} << 26;
        if (size >= kLarge) {
            if (void *const data = large_.take(size)) return data;
        }
        auto block = std::make_unique<Sparse>(size);
        void *const data = block->data();
        if (data) blocks_[data] = std::move(block);
        return data;
    }

    Again large_;
    std::map<void *, std::unique_ptr<Sparse>> blocks_;
};

// For all comparisons.
struct Memory {
    SparseAllocator allocator;
    Again x, y;
};

// A layer of bytes whose extent along one axis of x may be anything.
struct Stretched {
    const char *line;
    std::size_t axis;
    int threads;
};

Problem stretched(const Stretched &of, std::int64_t extent) {
    Problem problem = parse_problem(of.line);
    problem.quantization = Quantization{}; // y is the sum
    problem.x_shape[of.axis] = extent;
    return problem;
}

// The largest extent with what is asked for, which small ones have and large ones have not.
template<typename Has>
std::int64_t largest(const Has &has) {
    std::int64_t least = 64, most = kMost;
    while (least < most) {
        const std::int64_t middle = most - (most - least) / 2;
        if (has(middle)) {
            least = middle;
        } else {
            most = middle - 1;
        }
    }
    return least;
}

bool has_plan(const Problem &problem, const Options &options) {
    Plan plan;
    return static_cast<bool>(Plan::create(problem, options, nullptr, nullptr, &plan));
}

// x is zero but for some elements, the first and the last among them, so that y is too.
class Comparison {
  public:
    Comparison(const Problem &problem, Memory *memory)
        : problem_(problem), memory_(memory),
          x_(static_cast<char *>(memory->x.take(static_cast<std::size_t>(element_count(problem.x_shape))))),
          w_(CONVT_U8, problem.w_shape) {
        Random random(1);
        for (std::int64_t i = 0; i < w_.size(); ++i) w_.set(i, static_cast<double>(1 + i % 3));
        const std::int64_t last = element_count(problem.x_shape) - 1;
        for (int i = 0; i < 100; ++i) places_.push_back(random.integer(0, last));
        for (std::int64_t i = 0; i < 20; ++i) {
            places_.push_back(i * 7);
            places_.push_back(last - i * 7);
        }
        if (!x_) places_.clear();
        std::sort(places_.begin(), places_.end());
        places_.erase(std::unique(places_.begin(), places_.end()), places_.end());
    }

    ~Comparison() {
        for (const std::int64_t place : places_) x_[place] = 0;
        memory_->x.give_back(x_);
    }
    Comparison(const Comparison &) = delete;
    Comparison &operator=(const Comparison &) = delete;

    void run(const Options &options) {
        SCOPED_TRACE(describe(problem_, 1, options));
        if (!x_) GTEST_SKIP() << "there is no room for x";
        Options own = options;
        memory_->allocator.add_to(&own);
        Plan plan;
        Status status = Plan::create(problem_, own, w_.data(), nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        SCOPED_TRACE(plan.variant());
        const auto y_bytes = static_cast<std::size_t>(element_count(plan.y_shape()));
        auto *const y_data = static_cast<char *>(memory_->y.take(y_bytes));
        if (!y_data) GTEST_SKIP() << "there is no room for y";
        std::memset(y_data, 0x5a, y_bytes);
        for (std::size_t i = 0; i < places_.size(); ++i) x_[places_[i]] = static_cast<char>(1 + i % 5);
        status = plan.run(x_, y_data);
        EXPECT_TRUE(status) << status.message();
        if (status) compare(plan.y_shape(), y_data);
        memory_->y.give_back(y_data);
    }

  private:
    void compare(const Shape &y_shape, const char *y) const {
        const std::map<std::int64_t, int> expected = expected_of(y_shape);
        std::int64_t from = 0, wrong = 0;
        const auto zeros_until = [&](std::int64_t end) {
            for (; from < end; ++from) wrong += y[from] != 0;
        };
        for (const auto &[at, value] : expected) {
            zeros_until(at);
            EXPECT_EQ(static_cast<unsigned char>(y[at]), value) << "at " << at;
            from = at + 1;
        }
        zeros_until(element_count(y_shape));
        EXPECT_EQ(wrong, 0) << "elements are not 0";
    }

    // Elements of y that are not 0, by the definition.
    std::map<std::int64_t, int> expected_of(const Shape &y_shape) const {
        const bool last = problem_.layout == CONVT_CHANNELS_LAST;
        const std::size_t rank = y_shape.size(), c = last ? rank - 1 : 1;
        const std::int64_t group = problem_.attributes.group, ic = problem_.x_shape[c] / group, oc = y_shape[c] / group;
        std::map<std::int64_t, int> expected;
        Shape spatial(problem_.w_shape.begin() + 2, problem_.w_shape.end());
        const std::int64_t taps = element_count(spatial);
        for (const std::int64_t place : places_) {
            const Shape at = index(problem_.x_shape, place);
            for (std::int64_t o = 0; o < oc; ++o) {
                for (std::int64_t tap = 0; tap < taps; ++tap) {
                    const Shape k = index(spatial, tap);
                    Shape to = at;
                    to[c] = at[c] / ic * oc + o;
                    bool inside = true;
                    for (std::size_t a = 0; a < spatial.size(); ++a) {
                        const std::size_t axis = a + (last ? 1 : 2);
                        const std::int64_t stride = problem_.attributes.strides ? (*problem_.attributes.strides)[a] : 1;
                        const std::int64_t pad = problem_.attributes.pads ? (*problem_.attributes.pads)[a] : 0;
                        to[axis] = at[axis] * stride + k[a] - pad;
                        inside = inside && to[axis] >= 0 && to[axis] < y_shape[axis];
                    }
                    if (!inside) continue;
                    std::int64_t y_place = 0;
                    for (std::size_t a = 0; a < rank; ++a) y_place = y_place * y_shape[a] + to[a];
                    const double w = w_.get((at[c] * oc + o) * taps + tap);
                    expected[y_place] += static_cast<unsigned char>(x_[place]) * static_cast<int>(w);
                }
            }
        }
        for (auto &[at, value] : expected) value = std::min(value, 255);
        return expected;
    }

    static Shape index(const Shape &shape, std::int64_t place) {
        Shape at(shape.size());
        for (std::size_t a = shape.size(); a-- > 0; place /= shape[a]) at[a] = place % shape[a];
        return at;
    }

    Problem problem_;
    Memory *memory_;
    char *x_;
    Tensor w_;
    std::vector<std::int64_t> places_;
};

const Stretched kKinds[] = {
    {"u8 nchw n1 ic1 oc1 i3x1 k3x1 s1x1 p1x0_1x0 wu8 yu8", 3, 1}, // rows that no strip divides
    {"u8 nhwc n1 ic3 oc1 i2x1 k2x1 s1x1 p1x0_0x0 wu8 yu8", 2, 3},
    {"u8 nchw n1 ic1 oc1 i2x1x4096 k2x1x1 s1x1x1 p1x0x0_0x0x0 wu8 yu8", 3, 3}, // planes
    {"u8 nchw n1 g3 ic3 oc3 i2x1 k2x1 s1x1 p1x0_0x0 wu8 yu8", 3, 1},
};

// The numbers of the ISAs to try with a kind of layer: one, another for each kind, because tensors of 2 GiB take long; or all.
std::vector<std::size_t> isas_for(std::size_t kind) {
    std::vector<std::size_t> all;
    for (std::size_t isa = 0; isa < convt_isa_count(); ++isa) {
        if (convt_isa_supported(isa)) all.push_back(isa);
    }
    if (tries_all()) return all;
    return {all.at(kind % all.size())};
}

// The ISA's kernel of choice for a small layer of the kind: the largest layer that it takes, and one more, which others take.
TEST(NearLimit, CopiesAreRightOrRefused) {
    Memory memory;
    for (std::size_t k = 0; k < std::size(kKinds); ++k) {
        if (kEmulated && k % 3 != 0) continue; // each takes a minute there
        const Stretched &kind = kKinds[k];
        const std::int64_t most = largest([&](std::int64_t extent) { // as tensors may be
            return has_plan(stretched(kind, extent), Options{});
        });
        for (const std::size_t isa : isas_for(k)) {
            Options options{};
            options.isa = convt_isa_name(isa);
            options.threads = kind.threads;
            options.all_threads = 1;
            Plan small;
            ASSERT_TRUE(Plan::create(stretched(kind, 1 << 12), options, nullptr, nullptr, &small))
                << convt_last_error();
            const std::string variant = small.variant();
            options.variant = variant.c_str();
            const std::int64_t edge =
                largest([&](std::int64_t extent) { return has_plan(stretched(kind, extent), options); });
            Comparison(stretched(kind, edge), &memory).run(options);
            if (edge == most) continue;
            Plan plan;
            const Status status = Plan::create(stretched(kind, edge + 1), options, nullptr, nullptr, &plan);
            EXPECT_EQ(status.code(), CONVT_OVERFLOW) << status.message();
            EXPECT_NE(status.message().find("a kernel counts up to 2147483647"), std::string::npos) << status.message();
            options.variant = nullptr;
            Comparison(stretched(kind, edge + 1), &memory).run(options);
        }
    }
}

} // namespace
} // namespace convtranspose::test

#endif
