// The library's own threads: whom a job wakes, and that callers may share them.
#include "runtime/base/pool.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#include <unistd.h>
#endif

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.hpp"
#include "plan/counting_new.h"
#include "runtime/base/usable_cpus.h"

namespace convtranspose::test {
namespace {

// Pools live for ever, as their threads do. The list shows the leak sanitizer that they are not lost.
Pool &pool_of(std::size_t helpers) {
    static auto *const pools = new std::vector<Pool *>;
    pools->push_back(new Pool(helpers));
    return *pools->back();
}

template<typename Body>
void run(Pool *pool, std::size_t count, std::size_t workers, const Body &body) {
    pool->run(
        count, workers, [](void *context, std::size_t i) { (*static_cast<const Body *>(context))(i); },
        const_cast<Body *>(&body));
}

TEST(Pool, RunsEachTaskOnce) {
    for (const std::size_t helpers : {0, 1, 3, 100}) {
        Pool &pool = pool_of(helpers);
        for (const std::size_t count : {1, 2, 7, 1000}) {
            for (const std::size_t workers : {1, 2, 5, 101}) {
                SCOPED_TRACE(testing::Message()
                             << helpers << " helpers, " << count << " tasks, " << workers << " workers");
                std::vector<int> runs(count); // each written by one thread
                run(&pool, count, workers, [&](std::size_t i) { runs[i]++; });
                EXPECT_EQ(runs, std::vector<int>(count, 1));
            }
        }
    }
}

TEST(Pool, StartsNoMoreThanAJobCanUse) {
    Pool &pool = pool_of(64);
    EXPECT_EQ(pool.started(), 0u);
    for (int repetition = 0; repetition < 3; ++repetition) {
        run(&pool, 8, 2, [](std::size_t) {});
        EXPECT_EQ(pool.started(), 1u);
    }
    run(&pool, 8, 5, [](std::size_t) {});
    EXPECT_EQ(pool.started(), 4u);
    run(&pool, 8, 2, [](std::size_t) {});
    EXPECT_EQ(pool.started(), 4u);
    run(&pool, 1000, 1000, [](std::size_t) {});
    EXPECT_EQ(pool.started(), 64u);
}

// Two tasks that wait for each other need two threads; helpers that are not for this job are not among those.
TEST(Pool, WakesWhomItNeeds) {
    Pool &pool = pool_of(8);
    run(&pool, 9, 9, [](std::size_t) {});
    std::set<std::thread::id> seen;
    for (int repetition = 0; repetition < 20; ++repetition) {
        std::atomic<int> arrived{0};
        std::vector<std::thread::id> ids(2);
        run(&pool, 2, 2, [&](std::size_t i) {
            ids[i] = std::this_thread::get_id();
            ++arrived;
            while (arrived < 2) std::this_thread::yield();
        });
        seen.insert(ids.begin(), ids.end());
    }
    EXPECT_EQ(seen.size(), 2u) << "the caller, and always the same helper";
}

TEST(Pool, ServesManyCallers) {
    constexpr std::size_t kCallers = 4, kTasks = 64;
    Pool &pool = pool_of(3);
    std::atomic<std::size_t> wrong{0};
    std::vector<std::thread> callers;
    for (std::size_t c = 0; c < kCallers; ++c) {
        callers.emplace_back([&] {
            for (int repetition = 0; repetition < 200; ++repetition) {
                std::vector<std::size_t> runs(kTasks);
                run(&pool, kTasks, 3, [&](std::size_t i) { runs[i]++; });
                if (runs != std::vector<std::size_t>(kTasks, 1)) ++wrong;
            }
        });
    }
    for (std::thread &caller : callers) caller.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_LE(pool.started(), 3u);
}

TEST(Pool, ATaskMayItselfBeACaller) {
    Pool &pool = pool_of(3);
    std::atomic<int> runs{0};
    run(&pool, 4, 4, [&](std::size_t) { run(&pool, 4, 4, [&](std::size_t) { ++runs; }); });
    EXPECT_EQ(runs, 16);
}

TEST(Pool, AllocatesNothingOnceThreadsAreStarted) {
    Pool &pool = pool_of(3);
    run(&pool, 100, 4, [](std::size_t) {});
    const std::size_t before = news();
    for (int repetition = 0; repetition < 10; ++repetition) run(&pool, 100, 4, [](std::size_t) {});
    EXPECT_EQ(news(), before);
}

TEST(Pool, RunsWithoutMemoryForThreads) {
    Pool &pool = pool_of(3);
    std::vector<int> runs(100);
    fail_new_at(0);
    run(&pool, runs.size(), 4, [&](std::size_t i) { runs[i]++; });
    EXPECT_EQ(stop_failing_news(), Failure::kReturnedNull);
    EXPECT_EQ(runs, std::vector<int>(100, 1));
    EXPECT_EQ(pool.started(), 0u);
    for (int repetition = 0; repetition < 2000; ++repetition) run(&pool, runs.size(), 4, [](std::size_t) {});
    EXPECT_EQ(pool.started(), 3u) << "later there is memory again";
}

#if defined(__linux__)
TEST(UsableCpus, AreThoseOfTheAffinity) {
    const std::size_t all = usable_cpus();
    EXPECT_GE(all, 1u);
    EXPECT_EQ(convt_usable_cpus(), static_cast<int>(all));
    std::thread([&] {
        cpu_set_t mine, one;
        ASSERT_EQ(sched_getaffinity(0, sizeof mine, &mine), 0);
        EXPECT_LE(all, static_cast<std::size_t>(CPU_COUNT(&mine)));
        CPU_ZERO(&one);
        for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
            if (CPU_ISSET(cpu, &mine)) CPU_SET(cpu, &one);
        }
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(usable_cpus(), 1u);
        EXPECT_EQ(convt_usable_cpus(), 1);
    }).join();
}
#endif

#if defined(__linux__)
// Files of control groups, under a folder of the test's own.
class GrantedCpus : public testing::Test {
  protected:
    GrantedCpus() { std::filesystem::remove_all(root_); }
    ~GrantedCpus() override { std::filesystem::remove_all(root_); }

    void write(const std::string &path, const std::string &text) const {
        std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
        std::ofstream(root_ + path) << text << "\n";
    }
    double granted() const { return granted_cpus(root_.c_str()); }

  private:
    const std::string root_ = testing::TempDir() + "convtranspose_cgroup_" + std::to_string(getpid());
};

TEST_F(GrantedCpus, AreUnlimitedWithoutControlGroups) { EXPECT_EQ(granted(), 0); }

TEST_F(GrantedCpus, AreTheLeastOfTheUnifiedHierarchy) {
    write("/proc/self/cgroup", "0::/a/b");
    EXPECT_EQ(granted(), 0);
    write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
    EXPECT_EQ(granted(), 0);
    write("/sys/fs/cgroup/a/cpu.max", "250000 100000");
    EXPECT_EQ(granted(), 2.5);
    write("/sys/fs/cgroup/a/b/cpu.max", "300000 100000");
    EXPECT_EQ(granted(), 2.5);
    write("/sys/fs/cgroup/a/b/cpu.max", "50000 100000");
    EXPECT_EQ(granted(), 0.5);
}

TEST_F(GrantedCpus, AreThoseOfTheRootThatAContainerSees) {
    write("/proc/self/cgroup", "0::/of/the/host");
    write("/sys/fs/cgroup/cpu.max", "150000 100000");
    EXPECT_EQ(granted(), 1.5);
}

TEST_F(GrantedCpus, AreTheLeastOfTheFirstVersion) {
    write("/proc/self/cgroup", "9:memory:/m\n4:cpu,cpuacct:/a/b\n0::/");
    write("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1");
    write("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000");
    EXPECT_EQ(granted(), 0);
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "400000");
    write("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "200000");
    EXPECT_EQ(granted(), 2);
}
#endif

} // namespace
} // namespace convtranspose::test
