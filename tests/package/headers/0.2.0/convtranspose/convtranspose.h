/* The declarations of version 0.2.0, as programs were built with them. They stay as they are. */
#ifndef CONVTRANSPOSE_CONVTRANSPOSE_H_
#define CONVTRANSPOSE_CONVTRANSPOSE_H_
#include <stddef.h>
#include <stdint.h>
#define CONVT_VERSION "0.2.0"
#ifndef CONVT_SHARED
#define CONVT_API
#elif !defined(_WIN32)
#define CONVT_API __attribute__((visibility("default")))
#elif defined(convtranspose_EXPORTS)
#define CONVT_API __declspec(dllexport)
#else
#define CONVT_API __declspec(dllimport)
#endif
#ifdef __cplusplus
extern "C" {
#endif
typedef enum convt_status {
    CONVT_OK = 0,
    CONVT_INVALID_ARGUMENT = 1,
    CONVT_UNSUPPORTED = 2,
    CONVT_OVERFLOW = 3,
    CONVT_OUT_OF_MEMORY = 4,
    CONVT_INTERNAL = 5,
    CONVT_DEVICE_ERROR = 6
} convt_status;
typedef enum convt_dtype {
    CONVT_F16 = 1,
    CONVT_BF16 = 2,
    CONVT_F32 = 3,
    CONVT_F64 = 4,
    CONVT_U8 = 5,
    CONVT_S8 = 6,
    CONVT_S32 = 7
} convt_dtype;
typedef enum convt_layout { CONVT_CHANNELS_FIRST = 0, CONVT_CHANNELS_LAST = 1 } convt_layout;
typedef struct convt_ints {
    const int64_t *data;
    size_t size;
} convt_ints;
typedef struct convt_attributes {
    size_t struct_size;
    const char *auto_pad;
    convt_ints dilations;
    int64_t group;
    convt_ints kernel_shape;
    convt_ints output_padding;
    convt_ints output_shape;
    convt_ints pads;
    convt_ints strides;
} convt_attributes;
typedef struct convt_quantization {
    size_t struct_size;
    float x_scale;
    int32_t x_zero_point;
    const float *w_scale;
    size_t w_scale_size;
    const int32_t *w_zero_point;
    size_t w_zero_point_size;
    float y_scale;
    int32_t y_zero_point;
    const float *y_range;
} convt_quantization;
typedef enum convt_activation {
    CONVT_NO_ACTIVATION = 0,
    CONVT_RELU = 1,
    CONVT_LEAKY_RELU = 2,
    CONVT_CLIP = 3,
    CONVT_SIGMOID = 4,
    CONVT_TANH = 5
} convt_activation;
typedef struct convt_post_ops {
    size_t struct_size;
    int adds_residual;
    convt_activation activation;
    float alpha;
    float beta;
} convt_post_ops;
typedef struct convt_problem {
    size_t struct_size;
    int opset;
    convt_dtype dtype;
    convt_dtype w_dtype;
    convt_dtype y_dtype;
    convt_layout layout;
    convt_ints x_shape;
    convt_ints w_shape;
    convt_ints b_shape;
    const convt_attributes *attributes;
    const convt_quantization *quantization;
    const convt_post_ops *post_ops;
} convt_problem;
typedef enum convt_memory { CONVT_HOST_MEMORY = 0, CONVT_DEVICE_MEMORY = 1 } convt_memory;
typedef struct convt_tensor {
    size_t struct_size;
    void *data;
    convt_dtype dtype;
    const int64_t *shape;
    const int64_t *strides;
    size_t rank;
    convt_memory memory;
} convt_tensor;
typedef void (*convt_task)(void *task_context, size_t i);
typedef void (*convt_parallel_for)(void *user, size_t count, convt_task task, void *task_context);
typedef void *(*convt_allocate)(void *user, size_t size, size_t alignment);
typedef void (*convt_deallocate)(void *user, void *pointer);
typedef struct convt_device {
    size_t struct_size;
    const char *name;
    int index;
    void *context;
    int falls_back;
} convt_device;
typedef struct convt_options {
    size_t struct_size;
    int threads;
    convt_parallel_for parallel_for;
    void *parallel_user;
    convt_allocate allocate;
    convt_deallocate deallocate;
    void *allocate_user;
    const char *variant;
    const char *isa;
    int sums_in_f16;
    int winograd;
    const struct convt_tuning *tuning;
    const convt_device *device;
} convt_options;
typedef struct convt_plan convt_plan;
CONVT_API const char *convt_version(void);
CONVT_API const char *convt_last_error(void);
CONVT_API const char *convt_status_name(convt_status status);
CONVT_API const char *convt_dtype_name(convt_dtype dtype);
CONVT_API size_t convt_dtype_size(convt_dtype dtype);
CONVT_API convt_status convt_infer_shape(const convt_problem *problem, int64_t *y_shape, size_t capacity, size_t *rank);
CONVT_API convt_status convt_plan_create(const convt_problem *problem, const convt_tensor *w, const convt_tensor *b,
                                         const convt_options *options, convt_plan **plan);
CONVT_API convt_status convt_plan_reshape(const convt_plan *plan, convt_ints x_shape, convt_plan **reshaped);
CONVT_API void convt_plan_destroy(convt_plan *plan);
CONVT_API convt_status convt_plan_run(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                      const convt_tensor *b, const convt_tensor *y, void *workspace);
CONVT_API convt_status convt_plan_run_quantized(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                                const convt_tensor *b, const convt_tensor *y,
                                                const convt_quantization *quantization, void *workspace);
typedef struct convt_arguments {
    size_t struct_size;
    const convt_tensor *x;
    const convt_tensor *w;
    const convt_tensor *b;
    const convt_tensor *residual;
    const convt_tensor *y;
    const convt_quantization *quantization;
    void *workspace;
    void *stream;
    convt_parallel_for parallel_for;
    void *parallel_user;
} convt_arguments;
CONVT_API convt_status convt_plan_run_with(const convt_plan *plan, const convt_arguments *arguments);
CONVT_API size_t convt_plan_workspace_bytes(const convt_plan *plan);
CONVT_API size_t convt_plan_packed_bytes(const convt_plan *plan);
CONVT_API size_t convt_plan_rank(const convt_plan *plan);
CONVT_API const int64_t *convt_plan_x_shape(const convt_plan *plan);
CONVT_API const int64_t *convt_plan_y_shape(const convt_plan *plan);
CONVT_API double convt_plan_macs(const convt_plan *plan);
CONVT_API int convt_plan_threads(const convt_plan *plan);
CONVT_API const char *convt_plan_variant(const convt_plan *plan);
CONVT_API const char *convt_plan_algorithm(const convt_plan *plan);
CONVT_API const char *convt_plan_isa(const convt_plan *plan);
CONVT_API const char *convt_plan_device(const convt_plan *plan);
CONVT_API const char *convt_plan_explain(const convt_plan *plan);
CONVT_API size_t convt_plan_candidate_count(const convt_plan *plan);
CONVT_API const char *convt_plan_candidate(const convt_plan *plan, size_t i);
CONVT_API const char *convt_plan_problem(const convt_plan *plan);
CONVT_API size_t convt_plan_kernel_count(const convt_plan *plan);
CONVT_API const char *convt_plan_kernel(const convt_plan *plan, size_t i);
typedef struct convt_tuning convt_tuning;
CONVT_API convt_status convt_tuning_read(const char *text, size_t size, convt_tuning **tuning);
CONVT_API void convt_tuning_destroy(convt_tuning *tuning);
CONVT_API const char *convt_cpu_name(void);
CONVT_API const char *convt_kernels_version(void);
typedef struct convt_kernels convt_kernels;
CONVT_API convt_status convt_add_kernels(const convt_kernels *kernels);
CONVT_API size_t convt_isa_count(void);
CONVT_API const char *convt_isa_name(size_t i);
CONVT_API int convt_isa_supported(size_t i);
CONVT_API size_t convt_device_kind_count(void);
CONVT_API const char *convt_device_kind_name(size_t i);
CONVT_API size_t convt_device_count(const char *kind);
CONVT_API const char *convt_device_description(const char *kind, size_t index);
CONVT_API size_t convt_variant_count(void);
CONVT_API const char *convt_variant_name(size_t i);
#ifdef __cplusplus
}
#endif
#endif
