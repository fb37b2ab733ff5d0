// Each task is taken once, whoever works; a worker begins with its own share, and ends with everybody's.
#include "runtime/base/parallel.h"

#include <cstddef>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace convtranspose::test {
namespace {

TEST(WorkShares, AWorkerBeginsWithItsOwn) {
    for (const std::size_t tasks : {0, 1, 3, 7, 8, 64}) {
        for (const std::size_t workers : {1, 2, 3, 7, 100}) {
            SCOPED_TRACE(testing::Message() << tasks << " tasks, " << workers << " workers");
            for (std::size_t worker = 0; worker < workers; worker++) {
                WorkShares shares(tasks, workers);
                std::vector<std::size_t> order;
                EXPECT_EQ(shares.work(worker, [&](std::size_t i) { order.push_back(i); }), tasks);
                ASSERT_EQ(order.size(), tasks);
                // From the begin of its share on, around the end.
                for (std::size_t i = 1; i < tasks; i++) EXPECT_EQ(order[i], (order[0] + i) % tasks);
                if (tasks % workers == 0 && tasks != 0) {
                    EXPECT_EQ(order[0], tasks / workers * worker);
                }
            }
        }
    }
}

TEST(WorkShares, ThreadsTakeEachOnce) {
    constexpr std::size_t kTasks = 10007, kThreads = 4;
    WorkShares shares(kTasks, kThreads - 1); // two threads are the same worker
    std::vector<int> taken(kTasks);          // each written by one thread
    std::vector<std::size_t> counts(kThreads);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; t++) {
        threads.emplace_back(
            [&, t] { counts[t] = shares.work(t % (kThreads - 1), [&](std::size_t i) { taken[i]++; }); });
    }
    for (std::thread &thread : threads) thread.join();
    std::size_t sum = 0;
    for (const std::size_t count : counts) sum += count;
    EXPECT_EQ(sum, kTasks);
    EXPECT_EQ(taken, std::vector<int>(kTasks, 1));
}

} // namespace
} // namespace convtranspose::test
