// The caller's structs, as far as this version of the library knows them. A program that was built with an older header fills
// shorter structs, whose missing fields count as zero; one that was built with a newer header fills longer ones, which are
// accepted if the fields that are not known here are zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "convtranspose/convtranspose.h"

namespace convtranspose {

// The size that a struct had in the first version with this soname. Fields that are appended later do not change it: the struct
// then gets a specialization with the old size. They begin behind that size, not in the padding that it may end with.
template<typename Struct>
constexpr std::size_t kLeastSize = sizeof(Struct);

template<>
inline constexpr std::size_t kLeastSize<convt_options> = offsetof(convt_options, planning);
template<>
inline constexpr std::size_t kLeastSize<convt_problem> = offsetof(convt_problem, quantizes_x);

// Larger sizes are mistakes, such as memory that nobody wrote.
constexpr std::size_t kGreatestSize = 4096;

// Copies the known fields of a struct of the caller to *own, which holds the values of fields that the caller does not have. name:
// what messages call it.
template<typename Struct>
Status read_struct(const char *name, const Struct &given, Struct *own) {
    const std::size_t size = given.struct_size;
    if (size < kLeastSize<Struct> || size > kGreatestSize) {
        return invalid(name, " has struct_size = ", size, ", must be its sizeof, ", sizeof(Struct), " in version ",
                       CONVT_VERSION);
    }
    const auto *const bytes = reinterpret_cast<const unsigned char *>(&given);
    if (size > sizeof(Struct) && std::any_of(bytes + sizeof(Struct), bytes + size, [](unsigned char c) { return c; })) {
        return unsupported(name, " has struct_size = ", size, " and sets fields that version ", CONVT_VERSION,
                           " of the library does not know: use a later one");
    }
    std::memcpy(own, &given, std::min(size, sizeof(Struct)));
    return Status();
}

// The same for a struct that may be absent: *place, which refers to the caller's, is made to refer to *own.
template<typename Struct>
Status read_optional(const char *name, const Struct **place, Struct *own) {
    if (!*place) return Status();
    TRY(read_struct(name, **place, own));
    *place = own;
    return Status();
}

// The members are copies that problem, options and arguments refer to, so these structs stay where they are.
struct KnownProblem {
    Status read(const convt_problem &given) {
        TRY(read_struct("problem", given, &problem));
        attributes.group = 1; // the default of ONNX
        TRY(read_optional("attributes", &problem.attributes, &attributes));
        TRY(read_optional("quantization", &problem.quantization, &quantization));
        TRY(read_optional("post_ops", &problem.post_ops, &post_ops));
        problem.attributes = &attributes;
        problem.post_ops = &post_ops;
        return Status();
    }

    convt_problem problem{};
    convt_attributes attributes{};
    convt_quantization quantization{};
    convt_post_ops post_ops{};
};

struct KnownOptions {
    // given: may be null, for the defaults.
    Status read(const convt_options *given) {
        if (given) TRY(read_struct("options", *given, &options));
        TRY(read_optional("device", &options.device, &device));
        options.device = &device;
        return Status();
    }

    convt_options options{};
    convt_device device{};
};

struct KnownArguments {
    Status read(const convt_arguments &given) {
        TRY(read_struct("arguments", given, &arguments));
        TRY(read_optional("x", &arguments.x, &x));
        TRY(read_optional("w", &arguments.w, &w));
        TRY(read_optional("b", &arguments.b, &b));
        TRY(read_optional("residual", &arguments.residual, &residual));
        TRY(read_optional("y", &arguments.y, &y));
        TRY(read_optional("quantization", &arguments.quantization, &quantization));
        return Status();
    }

    convt_arguments arguments{};
    convt_tensor x{}, w{}, b{}, residual{}, y{};
    convt_quantization quantization{};
};

} // namespace convtranspose
