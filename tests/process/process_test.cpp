// Plans that run on several threads, in processes that fork, end, or get no more threads. Each case is a child of this process,
// which an alarm ends if it hangs.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#if defined(__GLIBC__)
#include <pthread.h>
#endif

#include <gtest/gtest.h>

#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"
#include "runtime/base/pool.h"
#include "runtime/base/usable_cpus.h"
#include "runtime/kernels/kernel_tables.h"

namespace convtranspose::test {
namespace {

constexpr int kFailed = 3;

// qemu's user mode has threads of its own, and aborts in the child where a process of several threads forks.
#define CONVTRANSPOSE_NEEDS_A_REAL_PROCESS                                                                             \
    if (kEmulated) GTEST_SKIP() << "an emulator of single processes cannot do this"

// True where a child may find the allocator locked by a thread that it does not have, and wait for ever. glibc's allocator takes
// its locks before a fork; that of the address sanitizer, as of GCC 12, does not.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kForksHoldLocks = true;
#else
constexpr bool kForksHoldLocks = false;
#endif

// How a child ended that does body() and then exits as a program does that returns from main.
template<typename Body>
std::string in_child(const Body &body) {
    std::fflush(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        std::exit(body() ? EXIT_SUCCESS : kFailed);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return "there was no child";
    if (WIFSIGNALED(status)) return "it died of signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == EXIT_SUCCESS ? "well" : "it failed";
}

// A layer with its inputs and what they give on one thread.
struct Layer {
    Problem problem = parse_problem("f32 nchw n1 ic8 oc8 i8x8 k4x4 s2x2");
    Inputs inputs = draw(problem, 1);
    Tensor expected;

    Layer() {
        const Status status = run(problem, inputs, Options{}, &expected);
        EXPECT_TRUE(status) << status.message();
    }

    Plan plan(int threads) const {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        Plan plan;
        const Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
        EXPECT_TRUE(status) << status.message();
        return plan;
    }

    bool runs_well(const Plan &plan) const {
        Tensor y(problem.dtype, plan.y_shape());
        return plan.run(inputs.x.data(), y.data()) && y == expected;
    }
};

#if defined(__linux__)
std::size_t threads_of_process() {
    std::size_t count = 0;
    for (auto i = std::filesystem::directory_iterator("/proc/self/task"); i != std::filesystem::directory_iterator();
         ++i) {
        count++;
    }
    return count;
}
#endif

// The first of all tests, as what the library makes once is to be made while the process forks.
TEST(Fork, MayComeWhileAnotherThreadMakesTheFirstPlan) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    if (kForksHoldLocks) GTEST_SKIP() << "the address sanitizer's allocator may be locked in the child";
    for (int i = 0; i < 40; ++i) {
        const std::string end = in_child([&] {
            const auto plans_and_runs = [] {
                const Layer layer;
                const Plan plan = layer.plan(4);
                return layer.runs_well(plan);
            };
            std::atomic<bool> begins{false}, well{false};
            std::thread other([&] {
                begins = true;
                well = plans_and_runs();
            });
            while (!begins) {
            }
            usleep(static_cast<useconds_t>(25 * i));
            const std::string end_of_child = in_child([&] {
                // No exit: what the other thread held is lost here, and would be taken for leaks.
                std::_Exit(plans_and_runs() ? EXIT_SUCCESS : kFailed);
                return false;
            });
            other.join();
            return well && end_of_child == "well";
        });
        EXPECT_EQ(end, "well");
        if (end != "well") break;
    }
}

#if defined(__linux__)
// This comes before any test that takes threads in this process, too.
TEST(FirstTasks, AreSharedByThreads) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    EXPECT_EQ(in_child([] {
                  run_on_own_threads(
                      4, 4, [](void *, std::size_t) {}, nullptr);
                  return threads_of_process() == std::min<std::size_t>(usable_cpus(), 4);
              }),
              "well");
}
#endif

TEST(Fork, MayComeWhileAnotherThreadAddsKernels) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    if (kForksHoldLocks) GTEST_SKIP() << "the address sanitizer's allocator may be locked in the child";
    static KernelTable table, another;
    table.version = another.version = kernels_version();
    EXPECT_EQ(in_child([] {
                  std::atomic<bool> stop{false}, well{true};
                  std::thread other([&] {
                      while (!stop) well = static_cast<bool>(add_kernels(&table)) && well; // it is there already
                  });
                  bool all_well = true;
                  for (int i = 0; i < 100 && all_well; ++i) {
                      all_well = in_child([] {
                                     std::_Exit(add_kernels(&another) && add_kernels(&table) ? EXIT_SUCCESS : kFailed);
                                     return false;
                                 }) == "well";
                  }
                  stop = true;
                  other.join();
                  return all_well && well;
              }),
              "well");
}

TEST(AddedKernels, AreTakenUpToTheLastPlace) {
    EXPECT_EQ(in_child([] {
                  static std::array<KernelTable, 31> tables;
                  for (KernelTable &table : tables) table.version = kernels_version();
                  for (std::size_t i = 0; i < 30; ++i) {
                      if (!add_kernels(&tables[i])) return false;
                  }
                  const Status status = add_kernels(&tables[30]);
                  return status.code() == CONVT_UNSUPPORTED &&
                         status.message() == "kernels can be added 30 times at most" && add_kernels(&tables[29]) &&
                         kernel_table(31) == &tables[29] && !kernel_table(32);
              }),
              "well");
}

TEST(Fork, LeavesAChildThatCanExit) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    const Layer layer;
    for (const int threads : {2, 3, 8}) {
        SCOPED_TRACE(threads);
        const Plan plan = layer.plan(threads);
        ASSERT_TRUE(layer.runs_well(plan));
        EXPECT_EQ(in_child([] { return true; }), "well");
    }
}

TEST(Fork, LeavesAChildThatCanRun) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    const Layer layer;
    const Plan plan = layer.plan(4);
    ASSERT_TRUE(layer.runs_well(plan));
    const auto runs_often = [&] {
        bool well = true;
        for (int i = 0; i < 50; ++i) well = well && layer.runs_well(plan);
        return well;
    };
    EXPECT_EQ(in_child(runs_often), "well");
    EXPECT_EQ(in_child([&] { return runs_often() && in_child(runs_often) == "well"; }), "well") << "of a child's child";
    EXPECT_TRUE(runs_often()) << "in the parent";
}

#if defined(__linux__)
TEST(Fork, GivesTheChildThreadsOfItsOwn) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    const Layer layer;
    const Plan plan = layer.plan(4);
    ASSERT_TRUE(layer.runs_well(plan));
    EXPECT_EQ(in_child([&] {
                  if (threads_of_process() != 1) return false;
                  const bool well = layer.runs_well(plan);
                  return well && threads_of_process() == std::min<std::size_t>(usable_cpus(), 4);
              }),
              "well");
}
#endif

TEST(Fork, MayComeWhileAnotherThreadRuns) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    if (kForksHoldLocks) GTEST_SKIP() << "the address sanitizer's allocator may be locked in the child";
    const Layer layer;
    const Plan plan = layer.plan(4);
    std::atomic<bool> stop{false}, well{true};
    std::thread other([&] {
        while (!stop) well = layer.runs_well(plan) && well;
    });
    for (int i = 0; i < 30; ++i) {
        const std::string end = in_child([&] {
            bool runs = true;
            for (int k = 0; k < 50; ++k) runs = runs && layer.runs_well(plan);
            // No exit: what the other thread held is lost here, and would be taken for leaks.
            std::_Exit(runs ? EXIT_SUCCESS : kFailed);
            return runs;
        });
        EXPECT_EQ(end, "well");
        if (end != "well") break;
    }
    stop = true;
    other.join();
    EXPECT_TRUE(well);
}

TEST(Exit, MayComeWhileThreadsRun) {
    for (int i = 0; i < 60; ++i) {
        const std::string end = in_child([&] {
            const auto *const layer = new Layer; // never destroyed, as they are in use
            const auto *const plan = new Plan(layer->plan(8));
            for (int thread = 0; thread < 3; ++thread) {
                std::thread([=] {
                    Tensor y(layer->problem.dtype, plan->y_shape());
                    while (plan->run(layer->inputs.x.data(), y.data())) {
                    }
                    std::abort();
                }).detach();
            }
            usleep(static_cast<useconds_t>(1000 + 100 * i));
            return true;
        });
        EXPECT_EQ(end, "well");
        if (end != "well") break;
    }
}

#if defined(__linux__)
TEST(ManyThreads, AreNoMoreThanTheProcessMayUse) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    for (const int threads : {1024, 4096}) {
        SCOPED_TRACE(threads);
        EXPECT_EQ(in_child([&] {
                      const Layer layer;
                      const Plan plan = layer.plan(threads);
                      return layer.runs_well(plan) && layer.runs_well(plan) && plan.threads() == threads &&
                             threads_of_process() <= usable_cpus();
                  }),
                  "well");
    }
}
#endif

#if defined(__GLIBC__)
TEST(ManyThreads, AreDoneWithoutWhereNoneCanBeStarted) {
    CONVTRANSPOSE_NEEDS_A_REAL_PROCESS;
    EXPECT_EQ(in_child([] {
                  pthread_attr_t attributes;
                  pthread_attr_init(&attributes);
                  // A stack that no address space holds.
                  pthread_attr_setstacksize(&attributes, std::numeric_limits<std::size_t>::max() / 2 + 1);
                  if (pthread_setattr_default_np(&attributes) != 0) return false;
                  const Layer layer;
                  const Plan plan = layer.plan(4);
                  bool well = true;
                  for (int i = 0; i < 10; ++i) well = well && layer.runs_well(plan);
                  return well && threads_of_process() == 1;
              }),
              "well");
}
#endif

} // namespace
} // namespace convtranspose::test
