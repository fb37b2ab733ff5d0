// Hooks that throw: the call has a status, whatever is thrown, and the plan runs again afterwards.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/reference.h"

#if GTEST_HAS_EXCEPTIONS

namespace convtranspose::test {
namespace {

enum class Thrown { kNothing, kBadAlloc, kRuntimeError, kInt };

void throw_it(Thrown thrown) {
    switch (thrown) {
    case Thrown::kNothing: break;
    case Thrown::kBadAlloc: throw std::bad_alloc();
    case Thrown::kRuntimeError: throw std::runtime_error("the hook's own words");
    case Thrown::kInt: throw 42;
    }
}

struct Hooks {
    Thrown by_parallel_for = Thrown::kNothing, by_allocate = Thrown::kNothing, by_deallocate = Thrown::kNothing;

    Options options(int threads) {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        options.parallel_user = options.allocate_user = this;
        options.parallel_for = [](void *user, std::size_t count, convt_task task, void *context) {
            for (std::size_t i = 0; i < count; ++i) {
                task(context, i);
                throw_it(static_cast<Hooks *>(user)->by_parallel_for);
            }
        };
        options.allocate = [](void *user, std::size_t size, std::size_t alignment) {
            throw_it(static_cast<Hooks *>(user)->by_allocate);
            return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
        };
        options.deallocate = [](void *user, void *pointer) {
            std::free(pointer);
            throw_it(static_cast<Hooks *>(user)->by_deallocate);
        };
        return options;
    }
};

void expect_status_of(Thrown thrown, const Status &status) {
    EXPECT_EQ(status.code(), thrown == Thrown::kBadAlloc ? CONVT_OUT_OF_MEMORY : CONVT_INTERNAL) << status.message();
    const std::string said = thrown == Thrown::kBadAlloc       ? "out of memory"
                             : thrown == Thrown::kRuntimeError ? "the hook's own words"
                                                               : "unknown type";
    EXPECT_NE(status.message().find(said), std::string::npos) << status.message();
}

class HooksThatThrow : public testing::TestWithParam<Thrown> {
  protected:
    const Problem problem = parse_problem("f32 nchw n1 ic32 oc32 i24x24 k4x4 s2x2 bias");
    const Inputs inputs = draw(problem, 1);

    Status create(Hooks *hooks, Plan *plan) const {
        return Plan::create(problem, hooks->options(4), inputs.w.data(), inputs.b->data(), plan);
    }
    void expect_to_run(const Plan &plan) const {
        Tensor y(problem.dtype, plan.y_shape());
        const Status status = plan.run(inputs.x.data(), y.data());
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(agrees(y, reference(problem, inputs)));
    }
};

TEST_P(HooksThatThrow, ParallelFor) {
    Hooks hooks;
    Plan plan;
    ASSERT_TRUE(create(&hooks, &plan));
    Tensor y(problem.dtype, plan.y_shape());
    hooks.by_parallel_for = GetParam();
    expect_status_of(GetParam(), plan.run(inputs.x.data(), y.data()));
    hooks.by_parallel_for = Thrown::kNothing;
    expect_to_run(plan);
}

TEST_P(HooksThatThrow, Allocate) {
    Hooks hooks;
    Plan plan, other;
    ASSERT_TRUE(create(&hooks, &plan));
    Tensor y(problem.dtype, plan.y_shape());
    hooks.by_allocate = GetParam();
    expect_status_of(GetParam(), plan.run(inputs.x.data(), y.data())); // of its workspace
    expect_status_of(GetParam(), create(&hooks, &other));
    hooks.by_allocate = Thrown::kNothing;
    expect_to_run(plan);
}

TEST_P(HooksThatThrow, Deallocate) {
    Hooks hooks;
    hooks.by_deallocate = GetParam();
    Plan plan;
    ASSERT_TRUE(create(&hooks, &plan));
    expect_to_run(plan);
}

std::string name_of(const testing::TestParamInfo<Thrown> &c) {
    const char *const names[] = {"Nothing", "BadAlloc", "RuntimeError", "Int"};
    return names[static_cast<std::size_t>(c.param)];
}

INSTANTIATE_TEST_SUITE_P(Plan, HooksThatThrow, testing::Values(Thrown::kBadAlloc, Thrown::kRuntimeError, Thrown::kInt),
                         name_of);

} // namespace
} // namespace convtranspose::test

#endif
