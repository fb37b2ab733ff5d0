// Structs of programs that were built with another header: shorter ones, longer ones, and ones that nobody filled.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "convtranspose/convtranspose.h"

namespace convtranspose::test {
namespace {

// A struct as a later version may have it, with a byte more.
template<typename Struct>
class Longer {
  public:
    explicit Longer(Struct known) {
        known.struct_size = sizeof bytes_;
        std::memcpy(bytes_, &known, sizeof known);
    }
    const Struct *get() const { return reinterpret_cast<const Struct *>(bytes_); }
    void set_later() { bytes_[sizeof(Struct)] = 1; }

  private:
    alignas(Struct) unsigned char bytes_[sizeof(Struct) + 1] = {};
};

// A layer with all the structs that there are: 8-bit, with an f32 y, to which a residual is added.
struct Call {
    const std::int64_t x_shape[3] = {1, 1, 2}, w_shape[3] = {1, 1, 3}, b_shape[1] = {1}, y_shape[3] = {1, 1, 4};
    std::uint8_t x_data[2] = {1, 2}, w_data[3] = {1, 10, 100};
    float b_data[1] = {1000}, residual_data[4] = {0, 0, 0, -5000}, y_data[4] = {};
    const float scale = 1;

    convt_attributes attributes = {sizeof(convt_attributes), nullptr, {}, 1, {}, {}, {}, {}, {}};
    convt_quantization quantization = {sizeof(convt_quantization), 1, 0, &scale, 1, nullptr, 0, 1, 0, nullptr};
    convt_post_ops post_ops = {sizeof(convt_post_ops), 1, CONVT_RELU, 0, 0};
    convt_device device = {sizeof(convt_device), "cpu", 0, nullptr, 0};
    convt_tensor x = {sizeof x, x_data, CONVT_U8, x_shape, nullptr, 3, CONVT_HOST_MEMORY},
                 w = {sizeof w, w_data, CONVT_U8, w_shape, nullptr, 3, CONVT_HOST_MEMORY},
                 b = {sizeof b, b_data, CONVT_F32, b_shape, nullptr, 1, CONVT_HOST_MEMORY},
                 residual = {sizeof x, residual_data, CONVT_F32, y_shape, nullptr, 3, CONVT_HOST_MEMORY},
                 y = {sizeof y, y_data, CONVT_F32, y_shape, nullptr, 3, CONVT_HOST_MEMORY};
    convt_problem problem = {sizeof(convt_problem),
                             22,
                             CONVT_U8,
                             CONVT_U8,
                             CONVT_F32,
                             CONVT_CHANNELS_FIRST,
                             {x_shape, 3},
                             {w_shape, 3},
                             {b_shape, 1},
                             &attributes,
                             &quantization,
                             &post_ops,
                             0};
    convt_options options = {};
    convt_arguments arguments = {};
    const convt_problem *problem_given = &problem;
    const convt_options *options_given = &options;
    const convt_arguments *arguments_given = &arguments;
    const convt_tensor *w_given = &w, *b_given = &b;

    Call() {
        options.struct_size = sizeof options;
        options.device = &device;
        arguments.struct_size = sizeof arguments;
        arguments.x = &x;
        arguments.residual = &residual;
        arguments.y = &y;
    }
    Call(const Call &) = delete;

    convt_status status() {
        convt_plan *plan = nullptr;
        convt_status status = convt_plan_create(problem_given, w_given, b_given, options_given, &plan);
        if (status == CONVT_OK) status = convt_plan_run_with(plan, arguments_given);
        convt_plan_destroy(plan);
        return status;
    }
};

// place: where the call refers to the struct. name: what messages call it. least: its size in the first version.
template<typename Struct>
void expect_rules(Call *call, const std::string &name, const Struct **place, std::size_t least = sizeof(Struct)) {
    SCOPED_TRACE(name);
    const Struct *const filled = *place;
    for (const std::size_t size : {std::size_t{0}, least - 1, std::size_t{4097}}) {
        Struct wrong = *filled;
        wrong.struct_size = size;
        *place = &wrong;
        EXPECT_EQ(call->status(), CONVT_INVALID_ARGUMENT);
        EXPECT_EQ(convt_last_error(), name + " has struct_size = " + std::to_string(size) + ", must be its sizeof, " +
                                          std::to_string(sizeof(Struct)) + " in version " CONVT_VERSION);
    }
    Longer<Struct> longer(*filled);
    *place = longer.get();
    EXPECT_EQ(call->status(), CONVT_OK) << convt_last_error();
    EXPECT_EQ(call->y_data[3], 0);
    longer.set_later();
    EXPECT_EQ(call->status(), CONVT_UNSUPPORTED);
    EXPECT_NE(std::string(convt_last_error()).find(name + " has struct_size"), std::string::npos) << convt_last_error();
    EXPECT_NE(std::string(convt_last_error()).find("does not know"), std::string::npos) << convt_last_error();
    *place = filled;
}

TEST(Structs, AreReadAsFarAsTheyAreKnown) {
    Call call;
    ASSERT_EQ(call.status(), CONVT_OK) << convt_last_error();
    EXPECT_EQ(call.y_data[0], 1001);
    EXPECT_EQ(call.y_data[1], 1012);
    EXPECT_EQ(call.y_data[2], 1120);
    EXPECT_EQ(call.y_data[3], 0); // 1200 - 5000, after Relu
    expect_rules(&call, "problem", &call.problem_given, offsetof(convt_problem, quantizes_x));
    expect_rules(&call, "attributes", &call.problem.attributes);
    expect_rules(&call, "quantization", &call.problem.quantization);
    expect_rules(&call, "post_ops", &call.problem.post_ops);
    expect_rules(&call, "options", &call.options_given, offsetof(convt_options, planning));
    expect_rules(&call, "device", &call.options.device);
    expect_rules(&call, "w", &call.w_given);
    expect_rules(&call, "b", &call.b_given);
    expect_rules(&call, "arguments", &call.arguments_given);
    expect_rules(&call, "x", &call.arguments.x);
    expect_rules(&call, "residual", &call.arguments.residual);
    expect_rules(&call, "y", &call.arguments.y);
}

// Null stands for no attributes, which includes a group of 1; no post-ops; the CPU.
TEST(Structs, MayBeLeftOut) {
    Call call;
    call.problem.attributes = nullptr;
    call.problem.post_ops = nullptr;
    call.options.device = nullptr;
    call.arguments.residual = nullptr;
    ASSERT_EQ(call.status(), CONVT_OK) << convt_last_error();
    EXPECT_EQ(call.y_data[3], 1200);
    call.options_given = nullptr;
    ASSERT_EQ(call.status(), CONVT_OK) << convt_last_error();
    call.problem.quantization = nullptr;
    EXPECT_EQ(call.status(), CONVT_INVALID_ARGUMENT);
}

TEST(Version, IsThatOfTheHeader) { EXPECT_STREQ(convt_version(), CONVT_VERSION); }

} // namespace
} // namespace convtranspose::test
