// Any number of threads gives the same bits; the caller's threads are used if there are any; plans may be shared.
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "plan/algorithm_names.h"
#include "reference/descriptor.h"
#include "reference/effort.h"
#include "reference/reference.h"

namespace convtranspose::test {
namespace {

const std::vector<std::string> kProblems = {
    "f32 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nhwc n2 ic16 oc70 i9x9 k3x3 s2x2",
    "f32 nchw n3 ic8 oc8 i9x70 k3x3 s1x1 p1x1_1x1",
    "f32 nchw n1 ic8 oc8 i9x70 k2x2 s2x2 bias",
    "f32 nchw n1 ic12 oc1 i19x9 k9x9 s4x4 p4x4_4x4 op3x3 bias",
    "f32 nchw n2 g33 ic33 oc33 i9x9 k4x4 s2x2 p1x1_1x1",
    "f32 nhwc n1 g33 ic33 oc33 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g4 ic12 oc20 i9x9 k3x3 s2x2 d2x3",
    "f16 nchw n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1 bias",
    "bf16 nhwc n1 ic16 oc24 i9x9 k4x4 s2x2 p1x1_1x1",
    "f64 nchw n1 ic5 oc7 i9x9 k3x3 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 ic8 oc16 i301 k16 s8 p4_4",
    "f32 nchw n1 ic5 oc7 i3x4x5 k3x3x3 s2x2x2",
    "f32 nchw n2 ic3 oc2 i3x2x2x3 k2x2x2x2 s2x2x1x1 bias",
    // Several strips of x channels last: all in place, but for those at the ends, all copied, and with channels that are apart.
    "f32 nhwc n1 ic32 oc32 i100x50 k2x2 s2x2",
    "f32 nhwc n1 ic32 oc32 i7000 k4 s2 p1_1 bias",
    "f32 nhwc n1 ic32 oc24 i7000 k4 s2 p1_1 bias", // phases as channels
    "f32 nhwc n2 ic32 oc32 i60x60 k3x3 s1x1 p1x1_1x1",
    "f32 nhwc n1 ic64 oc60 i60x61 k3x3 s2x2 p1x1_1x1 bias", // but for the ends of rows
    "f32 nhwc n1 ic512 oc20 i12x24 k3x3 s2x2 p1x1_1x1",
    "f32 nhwc n1 g2 ic64 oc48 i20x9x11 k2x2x2 s2x2x2 bias",
    // Strips of y: of images, of rows, and of some images at a time.
    "f32 nhwc n2 ic3 oc100 i33x40 k2x2 s2x2 bias",
    "f32 nhwc n2 ic2 oc64 i1322 k3 s3 p1_1",
    "f32 nhwc n9 g2 ic4 oc24 i24x20 k3x3 s2x2 p1x1_0x0 bias",
    "f32 nchw n2 ic64 oc24 i1201 k1 bias", // channels first, in place (on Intel)
    "f32 nchw n1 ic1 oc1 i1x1 k1x1",       // less work than threads
    // Strips of groups, of one channel and of several, and of 8 bits.
    "f32 nchw n2 g100 ic100 oc100 i23x35 k3x3 s1x1 p1x1_1x1 bias",
    "f32 nchw n1 g67 ic67 oc67 i40x36 k4x4 s2x2 p1x1_1x1 bias",
    "f32 nchw n1 g13 ic104 oc39 i29x35 k3x3 s2x2 p1x1_1x1",
    "u8 nchw n1 g150 ic150 oc150 i30x31 k3x3 s1x1 p1x1_1x1 bias",
    // Tiles that threads cannot take as many of each, so that phases are shared too; fewer planes than make strips for each.
    "f32 nhwc n1 ic700 oc144 i6x6 k2x2 s2x2 bias",
    "f32 nhwc n1 g33 ic33 oc33 i4x9x9 k3x3x3 s1x1x1 p1x1x1_1x1x1",
};

class Threads : public testing::TestWithParam<std::string> {};

// By the choice, and by a kernel for the layer as it is, which strips are for.
TEST_P(Threads, AnyNumberGivesTheSameBits) {
    const Problem problem = parse_problem(GetParam());
    const Inputs inputs = draw(problem, 1);
    for (const char *variant : {static_cast<const char *>(nullptr), "direct"}) {
        Tensor single;
        for (const int threads : {0, 1, 2, 3, 7}) {
            SCOPED_TRACE(std::string(variant ? variant : "any") + " on " + std::to_string(threads));
            Options options{};
            options.threads = threads;
            options.all_threads = 1;
            options.variant = variant;
            Tensor y;
            const Status status = run(problem, inputs, options, &y);
            ASSERT_TRUE(status) << status.message();
            if (threads == 0) {
                single = y;
                ASSERT_TRUE(agrees(y, reference(problem, inputs)));
            }
            EXPECT_TRUE(y == single);
        }
    }
}

// Tests of strips, here and in views_test.cpp, presume this with AVX-512 and AVX2.
TEST(Strips, AreReadInPlaceWhereNoTapLeavesThem) {
    bool in_place = false;
    const auto reading = [&](const std::string &line) {
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1);
        Options options{};
        options.variant = "direct";
        Plan plan;
        const Status status = Plan::create(problem, options, inputs.w.data(), nullptr, &plan);
        EXPECT_TRUE(status) << status.message();
        in_place = plan.isa() == "avx512" || plan.isa() == "avx2";
        const std::string text = plan.explain();
        const std::size_t at = text.find("  x is ");
        return at == std::string::npos ? text : text.substr(at + 7, text.find('\n', at) - at - 7);
    };
    const std::string ends = ", but for those at its ends, which are copied, with zeros around them";
    const auto is_one_of_strips = [](const std::string &text, const std::string &begin, const std::string &end) {
        return text.rfind(begin + ", in ", 0) == 0 && text.substr(text.find(" strips")) == " strips" + end;
    };
    std::string text = reading("f32 nhwc n1 ic32 oc32 i7000 k4 s2 p1_1");
    const std::string copied = "copied, with zeros around it";
    EXPECT_PRED3(is_one_of_strips, text, in_place ? "read in place" : copied, in_place ? ends : "");
    text = reading("f32 nhwc n1 ic32 oc32 i100x50 k2x2 s2x2");
    EXPECT_PRED3(is_one_of_strips, text, in_place ? "read in place" : copied, "");
    text = reading("f32 nhwc n2 ic32 oc32 i60x60 k3x3 s1x1 p1x1_1x1");
    const std::string ends_of_rows = ", but for the ends of rows, which are copied, with zeros around them";
    EXPECT_PRED3(is_one_of_strips, text, in_place ? "read in place" : copied, in_place ? ends_of_rows : "");
    text = reading("f32 nhwc n2 ic3 oc100 i33x40 k2x2 s2x2"); // strips of y
    EXPECT_PRED3(is_one_of_strips, text, in_place ? "read in place" : copied, "");
    text = reading("f32 nhwc n2 ic512 oc32 i60x60 k3x3 s1x1 p1x1_1x1"); // positions that meet in few sets of the cache
    EXPECT_PRED3(is_one_of_strips, text, copied, "");
}

// A row in place, of which the last tile would end past x.
TEST(Strips, CopyNoMoreThanTheTileAtTheirEnd) {
    for (const char *const line : {"f32 nchw n1 ic64 oc24 i3001 k1", "f32 nchw n1 ic64 oc24 i3047 k1"}) {
        SCOPED_TRACE(line);
        const Problem problem = parse_problem(line);
        const Inputs inputs = draw(problem, 1);
        Plan plan;
        const Status status = Plan::create(problem, Options{}, inputs.w.data(), nullptr, &plan);
        ASSERT_TRUE(status) << status.message();
        if (plan.explain().find("but for those at its ends") == std::string::npos) {
            GTEST_SKIP() << "here x is copied, or all of it read in place";
        }
        constexpr std::size_t kTile = 64, kChannels = 64;
        EXPECT_LT(plan.workspace_bytes(), 2 * kTile * kChannels * sizeof(float));
    }
}

// A pool of the caller's: here tasks run backwards, on two threads.
struct CallersThreads {
    std::atomic<int> calls{0};
    std::atomic<std::size_t> tasks{0};

    Options options(int threads) {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        options.parallel_user = this;
        options.parallel_for = parallel_for;
        return options;
    }

    static void parallel_for(void *user, std::size_t count, convt_task task, void *task_context) {
        auto *self = static_cast<CallersThreads *>(user);
        ++self->calls;
        self->tasks += count;
        std::thread odd([=] {
            for (std::size_t i = count; i-- > 0;) {
                if (i % 2 == 1) task(task_context, i);
            }
        });
        for (std::size_t i = count; i-- > 0;) {
            if (i % 2 == 0) task(task_context, i);
        }
        odd.join();
    }
};

TEST_P(Threads, OfTheCallerGiveTheSameBits) {
    const Problem problem = parse_problem(GetParam());
    const Inputs inputs = draw(problem, 2);
    Tensor expected;
    ASSERT_TRUE(run(problem, inputs, Options{}, &expected));
    for (const int threads : {2, 7}) {
        SCOPED_TRACE(threads);
        CallersThreads callers;
        Tensor y;
        const Status status = run(problem, inputs, callers.options(threads), &y);
        ASSERT_TRUE(status) << status.message();
        EXPECT_TRUE(y == expected);
    }
}

// A run's own hook takes the place of the plan's, for that run alone, whatever computes the layer.
TEST_P(Threads, OfTheRunGiveTheSameBits) {
    const Problem problem = parse_problem(GetParam());
    const Inputs inputs = draw(problem, 2);
    CallersThreads of_plan;
    Plan plan;
    ASSERT_TRUE(
        Plan::create(problem, of_plan.options(3), inputs.w.data(), inputs.b ? inputs.b->data() : nullptr, &plan));
    Tensor expected(problem.y_dtype.value_or(problem.dtype), plan.y_shape()), y = expected;
    ASSERT_TRUE(plan.run(inputs.x.data(), expected.data()));
    const int calls = of_plan.calls;

    CallersThreads of_run;
    Arguments arguments;
    arguments.x = inputs.x.view();
    arguments.y = y.view();
    arguments.parallel_for = CallersThreads::parallel_for;
    arguments.parallel_user = &of_run;
    const Status status = plan.run(arguments);
    ASSERT_TRUE(status) << status.message();
    EXPECT_TRUE(y == expected);
    EXPECT_EQ(of_plan.calls, calls);
    EXPECT_EQ(of_run.calls, calls);
    ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
    EXPECT_EQ(of_plan.calls, 2 * calls);
    EXPECT_EQ(of_run.calls, calls);
}

TEST_P(Threads, ManyMayRunOnePlan) {
    const Problem problem = parse_problem(GetParam());
    const Inputs weights = draw(problem, 3);
    for (const int threads : {1, 2}) { // of the plan; with as many callers each way
        if (kEmulated && threads == 1) continue;
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        Plan plan;
        const Status status =
            Plan::create(problem, options, weights.w.data(), weights.b ? weights.b->data() : nullptr, &plan);
        ASSERT_TRUE(status) << status.message();

        constexpr std::size_t kCallers = kEmulated ? 2 : 4;
        constexpr int kRepetitions = 8 / kOneIn;
        std::vector<Tensor> x, expected;
        for (std::size_t i = 0; i < kCallers; ++i) {
            x.push_back(draw(problem, 100 + i).x);
            expected.emplace_back(problem.dtype, plan.y_shape());
            ASSERT_TRUE(plan.run(x[i].data(), expected[i].data()));
        }
        std::atomic<int> errors{0}, differences{0};
        std::vector<std::thread> callers;
        for (std::size_t i = 0; i < kCallers; ++i) {
            callers.emplace_back([&, i] {
                for (int repetition = 0; repetition < kRepetitions; ++repetition) {
                    Tensor y(problem.dtype, plan.y_shape());
                    if (!plan.run(x[i].data(), y.data())) ++errors;
                    if (y != expected[i]) ++differences;
                }
            });
        }
        for (std::thread &caller : callers) caller.join();
        EXPECT_EQ(errors, 0);
        EXPECT_EQ(differences, 0);
    }
}

INSTANTIATE_TEST_SUITE_P(Plan, Threads, testing::ValuesIn(kProblems),
                         [](const testing::TestParamInfo<std::string> &c) { return std::to_string(c.index); });

TEST(ThreadsOfTheCaller, AreUsed) {
    const Problem problem = parse_problem("f32 nchw n2 ic32 oc64 i32x32 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 4);
    CallersThreads callers;
    Tensor y;
    const Status status = run(problem, inputs, callers.options(3), &y);
    ASSERT_TRUE(status) << status.message();
    EXPECT_GE(callers.calls, 1);
    EXPECT_GE(callers.tasks, 2u);
    EXPECT_TRUE(agrees(y, reference(problem, inputs)));
}

TEST(ThreadsOfTheCaller, AreNotUsedForOne) {
    const Problem problem = parse_problem("f32 nchw n2 ic32 oc64 i32x32 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 5);
    CallersThreads callers;
    Tensor y;
    ASSERT_TRUE(run(problem, inputs, callers.options(1), &y));
    EXPECT_EQ(callers.calls, 0);
}

TEST(ThreadsOfThePlan, AreReportedAsAskedFor) {
    const Problem problem = parse_problem("f32 nchw i3 k3");
    const Inputs inputs = draw(problem, 6);
    for (const int threads : {1, 3}) {
        Options options{};
        options.threads = threads;
        options.all_threads = 1;
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), nullptr, &plan));
        EXPECT_EQ(plan.threads(), threads);
    }
}

// A tuning text with a cost profile in which a further thread costs so many cycles.
std::shared_ptr<convt_tuning> with_cost_of_threads(const std::string &cycles) {
    const std::string text =
        std::string("{\"package\": \"") + CONVT_VERSION + "\", \"kernels\": \"" + convt_kernels_version() +
        "\", \"cpu\": \"*\", \"isa\": \"*\", \"cost_profile\": {\"per_thread\": " + cycles + "}}\n";
    convt_tuning *tuning = nullptr;
    EXPECT_EQ(convt_tuning_read(text.data(), text.size(), &tuning), CONVT_OK) << convt_last_error();
    return {tuning, convt_tuning_destroy};
}

// The reason that explain gives for the number of threads, up to the figures.
std::string said_of_threads(const Plan &plan) {
    const std::string text = plan.explain();
    const std::string figures = " take ";
    const std::size_t begin = text.find("; threads ") + 2, end = text.find("; isa "), of = text.find(figures, begin);
    return text.substr(begin, (of < end ? of + figures.size() - 1 : end) - begin);
}

TEST(ThreadsOfThePlan, AreAsManyAsTheLayerIsWorth) {
    const Problem problem = parse_problem("f32 nchw n1 ic32 oc32 i12x12 k4x4 s2x2 p1x1_1x1 bias");
    const Inputs inputs = draw(problem, 7);
    const Expected expected = reference(problem, inputs);
    const auto free = with_cost_of_threads("0"), dear = with_cost_of_threads("1e9");
    const struct {
        const convt_tuning *tuning;
        int threads, all;
        const char *said;
    } cases[] = {
        {free.get(), 3, 0, "threads 3: one thread would take"},
        {dear.get(), 3, 0, "threads 1 of 3 that are allowed: one thread would take"},
        {dear.get(), 3, 1, "threads 3: as asked for"},
        {free.get(), 1, 0, "threads 1"},
    };
    for (const auto &c : cases) {
        SCOPED_TRACE(c.said);
        CallersThreads callers;
        Options options = callers.options(c.threads);
        options.all_threads = c.all;
        options.tuning = c.tuning;
        Plan plan;
        ASSERT_TRUE(Plan::create(problem, options, inputs.w.data(), inputs.b->data(), &plan));
        EXPECT_EQ(plan.threads(), c.threads);
        EXPECT_EQ(said_of_threads(plan), c.said);
        Tensor y(CONVT_F32, plan.y_shape());
        ASSERT_TRUE(plan.run(inputs.x.data(), y.data()));
        EXPECT_TRUE(agrees(y, expected));
        EXPECT_EQ(callers.calls > 0, std::string(c.said).rfind("threads 3", 0) == 0);
    }
}

// The layers behind an algorithm grow and shrink with it.
TEST(ThreadsOfThePlan, AreChosenAnewForAnotherShape) {
    const char *const lines[] = {"f32 nchw n2 ic24 oc20 i5x5 k4x4 s2x2 p1x1_1x1 bias",
                                 "f32 nhwc n2 ic24 oc20 i5x5 k4x4 s2x2 p1x1_1x1 bias",
                                 "f32 nchw n2 ic24 oc6 i5x5 k4x4 s2x2 p1x1_1x1 bias",
                                 "f32 nhwc n2 ic24 oc20 i16x16 k3x3 s1x1 d12x12 p12x12_12x12 bias"};
    const auto tuning = with_cost_of_threads("150000");
    std::set<std::string> computed;
    std::vector<std::string> names = algorithm_names();
    names.emplace_back(); // what is chosen
    for (const char *const line : lines) {
        const Problem small = parse_problem(line);
        const bool last = small.layout == CONVT_CHANNELS_LAST;
        Problem large = small;
        large.x_shape = last ? Shape{2, 60, 60, 24} : Shape{2, 24, 60, 60};
        const Inputs inputs = draw(large, 8);
        const Expected expected = reference(large, inputs);
        for (const std::string &name : names) {
            SCOPED_TRACE(std::string(line) + " by " + name);
            CallersThreads callers;
            Options options = callers.options(3);
            options.all_threads = 0;
            options.winograd = 1;
            options.tuning = tuning.get();
            if (!name.empty()) options.variant = name.c_str();
            Plan plan, larger, again;
            if (!Plan::create(small, options, inputs.w.data(), inputs.b->data(), &plan)) continue;
            computed.insert(name);
            EXPECT_EQ(said_of_threads(plan), "threads 1 of 3 that are allowed: one thread would take");
            ASSERT_TRUE(plan.reshape(large.x_shape, &larger));
            EXPECT_NE(said_of_threads(larger), said_of_threads(plan));
            Tensor y(CONVT_F32, larger.y_shape());
            ASSERT_TRUE(larger.run(inputs.x.data(), y.data()));
            EXPECT_TRUE(agrees(y, expected));
            EXPECT_GT(callers.calls, 0);
            ASSERT_TRUE(larger.reshape(small.x_shape, &again));
            EXPECT_EQ(said_of_threads(again), said_of_threads(plan));
        }
    }
    for (const std::string &name : names) EXPECT_EQ(computed.count(name), 1u) << name << " can compute no layer here";
}

TEST(LastError, IsOfItsThread) {
    Problem problem = parse_problem("f32 nchw i3 k3");
    problem.attributes.group = 0;
    Shape y_shape;
    ASSERT_FALSE(infer_shape(problem, &y_shape));
    const std::string mine = convt_last_error();
    EXPECT_EQ(mine, "group = 0 must be positive");
    std::thread other([problem]() mutable {
        EXPECT_NE(convt_last_error(), nullptr);
        EXPECT_EQ(std::string(convt_last_error()), "") << "of another thread";
        problem.attributes.group = -3;
        Shape shape;
        EXPECT_FALSE(infer_shape(problem, &shape));
        EXPECT_EQ(std::string(convt_last_error()), "group = -3 must be positive");
    });
    other.join();
    EXPECT_EQ(convt_last_error(), mine);
}

} // namespace
} // namespace convtranspose::test
