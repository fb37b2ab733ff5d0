#include "algorithm/jit_kernel.h"

#include <Halide.h>

#include <stdexcept>
#include <string>

namespace convtranspose::test {

namespace {

Halide::Callable current;

Halide::Runtime::Buffer<void> wrap(halide_buffer_t *b) { return Halide::Runtime::Buffer<void>(*b); }

// The C function that the dispatcher calls in place of a compiled kernel.
int run_current(halide_buffer_t *x, halide_buffer_t *w, halide_buffer_t *bias, halide_buffer_t *factors,
                halide_buffer_t *taps_w, halide_buffer_t *taps_h, halide_buffer_t *taps_d, std::int32_t step_w,
                std::int32_t step_h, std::int32_t step_d, std::int32_t max_count_w, std::int32_t max_count_h,
                std::int32_t max_count_d, std::int32_t shared_first_w, std::int32_t shared_count_w,
                std::int32_t shared_first_h, std::int32_t shared_count_h, std::int32_t y_zero_point, float y_min,
                float y_max, halide_buffer_t *y) {
    return current(wrap(x), wrap(w), wrap(bias), wrap(factors), wrap(taps_w), wrap(taps_h), wrap(taps_d), step_w,
                   step_h, step_d, max_count_w, max_count_h, max_count_d, shared_first_w, shared_count_w,
                   shared_first_h, shared_count_h, y_zero_point, y_min, y_max, wrap(y));
}

const char *halide_name(convt_dtype dtype) {
    switch (dtype) {
    case CONVT_F16: return "float16";
    case CONVT_BF16: return "bfloat16";
    case CONVT_F32: return "float32";
    case CONVT_U8: return "uint8";
    case CONVT_S32: return "int32";
    default: return "float64";
    }
}

// The ISA whose copies of x go with the kernel.
Isa best_isa(Arithmetic arithmetic) {
    for (const Isa isa : {Isa::kAvx512Vnni, Isa::kAvx512, Isa::kAvx2}) {
        if (isa == Isa::kAvx512Vnni && arithmetic == Arithmetic::kFloat) continue;
        if (isa_supported(isa)) return isa;
    }
    return Isa::kX86_64;
}

} // namespace

int lanes_of(convt_dtype dtype) {
    const Halide::Type sum = sum_dtype(dtype) == CONVT_F64 ? Halide::Float(64) : Halide::Float(32);
    return Halide::get_jit_target_from_environment().natural_vector_size(sum);
}

Variant compile(const JitKernel &kernel, convt_dtype dtype) {
    Halide::Target target = Halide::get_jit_target_from_environment();
    // As the build has it: a product of integer sums and its addend are rounded one after the other.
    if (!is_float(kernel.arithmetic) && dtype == CONVT_F32) target.set_feature(Halide::Target::StrictFloat);
    const auto generator =
        Halide::Internal::GeneratorRegistry::create(kernel.generator, Halide::GeneratorContext(target));
    if (!generator) throw std::runtime_error(std::string("no generator ") + kernel.generator);
    const bool reads_x = kernel.family == Family::kReference;
    generator->set_generatorparam_value("x_type", halide_name(reads_x ? dtype : sum_dtype(dtype)));
    generator->set_generatorparam_value("y_type", halide_name(dtype));
    generator->set_generatorparam_value("arithmetic", kernel.arithmetic == Arithmetic::kFloat  ? "float"
                                                      : kernel.arithmetic == Arithmetic::kInt8 ? "int8"
                                                                                               : "int16");
    generator->set_generatorparam_value("output_order",
                                        kernel.output_order == OutputOrder::kPlanar ? "planar" : "channels");
    generator->set_generatorparam_value("stride_w", std::to_string(kernel.stride_w));
    generator->set_generatorparam_value("stride_h", std::to_string(kernel.stride_h));
    generator->set_generatorparam_value("tile_oc", std::to_string(kernel.tile_oc));
    generator->set_generatorparam_value("tile_q", std::to_string(kernel.tile_q));
    generator->set_generatorparam_value("tile_qh", std::to_string(kernel.tile_qh));
    current = generator->compile_to_callable();
    return {"jit",
            best_isa(kernel.arithmetic),
            kernel.family,
            kernel.output_order,
            kernel.arithmetic,
            dtype,
            kernel.stride_w,
            kernel.stride_h,
            kernel.tile_oc,
            kernel.tile_q,
            kernel.tile_qh,
            lanes_of(dtype),
            run_current};
}

} // namespace convtranspose::test
