/* Transposed convolution: the C interface.
 *
 * Semantics are those of ONNX ConvTranspose-1, -11 and -22 (https://onnx.ai/onnx/operators/onnx__ConvTranspose.html), and of
 * ONNX Runtime's com.ms.internal.nhwc QLinearConvTranspose-1: see "Quantized" below.
 *
 *     problem (attributes + shapes) --convt_plan_create--> plan --convt_plan_run(x)--> y
 *
 * A plan is immutable: it may be run from several threads at once, and it may be reshaped to another input size, which
 * shares its packed weights. Every function that can fail returns a convt_status; convt_last_error() then says, for the
 * calling thread, which value broke which rule. Nothing is written to an output by a call that fails validation, and
 * no input ends the process.
 *
 * Layouts.  Channels first: x (N, C, D1..Dn), y (N, M, O1..On).  Channels last: x (N, D1..Dn, C), y (N, O1..On, M).
 *           Weights are (C, M/group, K1..Kn) and the bias is (M) in both.  Sizes are in elements unless said otherwise.
 *
 * Quantized.  Where x is u8 or s8, so are w and y, each of either type, or y is f32; the bias is s32, at the scale
 *           x_scale * w_scale, or f32 with an f32 y.  The sum is exact, in 32 bits (or more, where those could overflow):
 *               acc = sum (x - x_zero_point) * (w - w_zero_point) + b           over all taps and input channels
 *               y   = saturate(round(acc * (x_scale * w_scale / y_scale)) + y_zero_point)
 *               y   = acc * (x_scale * w_scale) + b                             f32 y, whose acc is without b
 *           The factors are computed in f32, acc * factor is rounded to f32, then to the nearest integer, ties to even. With
 *           an f32 y, acc and acc * factor are each rounded to f32 before b is added, and the sum once more: y has the same
 *           bits on every ISA. (Kernels for devices may round acc * factor + b once.)
 *
 * Rounding. Whatever mode the calling thread has, everything is computed rounding to nearest, ties to even, on its own threads
 *           and on those of a pool; the thread has its mode back when the call returns. Whether subnormal numbers count as zero
 *           (FTZ and DAZ of x86, FZ of ARM) is the calling thread's choice, which the other threads of a run take over; vectors
 *           of 32-bit ARM always take them for zero.
 */
#ifndef CONVTRANSPOSE_CONVTRANSPOSE_H_
#define CONVTRANSPOSE_CONVTRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>

#define CONVT_VERSION "0.1.0"

/* CONVT_SHARED: the library is a shared one (its CMake package and pkg-config file define it). */
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
    CONVT_INVALID_ARGUMENT = 1, /* an attribute, shape, type or tensor breaks a rule of the operator or of this file */
    CONVT_UNSUPPORTED = 2,      /* valid, but not built in: a variant or ISA by a name that this CPU or build lacks */
    CONVT_OVERFLOW = 3,         /* a size does not fit; tensors may span at most 2^31 - 1 elements */
    CONVT_OUT_OF_MEMORY = 4,    /* the allocator returned null, or a device has not that much */
    CONVT_INTERNAL = 5,         /* a bug in this library */
    CONVT_DEVICE_ERROR = 6      /* a driver reported an error; the message has its words */
} convt_status;

typedef enum convt_dtype {
    CONVT_F16 = 1,
    CONVT_BF16 = 2,
    CONVT_F32 = 3,
    CONVT_F64 = 4,
    CONVT_U8 = 5,
    CONVT_S8 = 6,
    CONVT_S32 = 7 /* bias only */
} convt_dtype;

typedef enum convt_layout { CONVT_CHANNELS_FIRST = 0, CONVT_CHANNELS_LAST = 1 } convt_layout;

/* A list of integers that may be absent: data == NULL means "not given" whatever the size, which is not the same as
 * a list of size 0 (give any non-null pointer for that). */
typedef struct convt_ints {
    const int64_t *data;
    size_t size;
} convt_ints;

/* The attributes of an ONNX ConvTranspose node, by their ONNX names. Zero-initialise, then set `group` (its ONNX
 * default is 1, and 0 is rejected) and what the node has. */
typedef struct convt_attributes {
    const char *auto_pad; /* "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"; NULL: not given (NOTSET) */
    convt_ints dilations;
    int64_t group;
    convt_ints kernel_shape;
    convt_ints output_padding;
    convt_ints output_shape; /* spatial axes only, or N, C in front of them; an empty list counts as not given */
    convt_ints pads;         /* x1_begin, x2_begin, ..., x1_end, x2_end, ... */
    convt_ints strides;
} convt_attributes;

/* How integers stand for reals: real = (integer - zero_point) * scale. Scales are positive and finite; a zero point is a
 * value of its tensor's type. */
typedef struct convt_quantization {
    float x_scale;
    int32_t x_zero_point;
    const float *w_scale; /* one, or M: one for each output channel */
    size_t w_scale_size;
    const int32_t *w_zero_point; /* likewise; NULL: 0 */
    size_t w_zero_point_size;
    float y_scale; /* not looked at where y is f32 */
    int32_t y_zero_point;
    const float
        *y_range; /* {min, max}, real: y is clamped to it. Relu: {0, INFINITY}, Relu6: {0, 6}. NULL: it is not. */
} convt_quantization;

typedef enum convt_activation {
    CONVT_NO_ACTIVATION = 0,
    CONVT_RELU = 1,
    CONVT_LEAKY_RELU = 2, /* alpha: the slope below 0 */
    CONVT_CLIP = 3,       /* to alpha .. beta */
    CONVT_SIGMOID = 4,
    CONVT_TANH = 5
} convt_activation;

/* What follows, done while y is still in the cache: y = activation(convolution + residual). The convolution is first rounded
 * to y's type; what follows is computed in f32 (f64 for f64) and rounded again. Sigmoid and tanh are exact to 4 units in the
 * last place of that type, and sigmoid may be 0 below twice its least normal number. A NaN stays one. Float y only: an 8-bit y is
 * clamped by its quantization's y_range. */
typedef struct convt_post_ops {
    int adds_residual; /* nonzero: a tensor like y, which comes with each run, is added */
    convt_activation activation;
    float alpha, beta;
} convt_post_ops;

/* What is computed: the node, its types and its shapes. */
typedef struct convt_problem {
    int opset; /* version of the operator: 1, 11 or 22 (any opset of a model: the version in force is derived) */
    convt_dtype dtype;               /* of x; of w, b and y too, where it is a float */
    convt_dtype w_dtype, y_dtype;    /* 0: that of x. Others only where x is u8 or s8. */
    convt_quantization quantization; /* x is u8 or s8 only; all zero: it arrives with each run, as w and b then do */
    convt_layout layout;
    convt_attributes attributes;
    convt_ints x_shape;      /* in `layout` order */
    convt_ints w_shape;      /* (C, M/group, K1..Kn) */
    convt_ints b_shape;      /* (M); absent: no bias */
    convt_post_ops post_ops; /* all zero: none */
} convt_problem;

/* Where the data of a tensor is. Memory of the plan's device: data is what cudaMalloc or cuMemAlloc gave (a place inside of
 * such memory is as good), or a cl_mem, from its start. */
typedef enum convt_memory { CONVT_HOST_MEMORY = 0, CONVT_DEVICE_MEMORY = 1 } convt_memory;

/* A tensor in the caller's memory. strides: one per axis in elements, NULL for dense C order. A crop of a larger tensor
 * is welcome: strides must be positive where the extent exceeds 1, the last axis must have stride 1 (of x and y; weights
 * and bias must be dense), and elements of y must not overlap: in the order of their strides, each axis of y must step over all
 * that those before it span. x and y must not overlap each other. Channels first, with a last axis of one position that is cut out
 * of a wider tensor, the first run of such a view makes a second plan, of its own kernel, workspace and packed weights. */
typedef struct convt_tensor {
    void *data; /* read only for x, w and b */
    convt_dtype dtype;
    const int64_t *shape;
    const int64_t *strides;
    size_t rank;
    convt_memory memory; /* of x, y and the residual; all else comes in host memory */
} convt_tensor;

/* Runs task(task_context, i) for each i in 0..count-1, in any order, on any threads, and returns when all have ended. Tasks do
 * not throw.
 *
 * What this hook or one of those below throws does not leave the library: the call fails with CONVT_OUT_OF_MEMORY for a
 * std::bad_alloc and with CONVT_INTERNAL for anything else, y then holds anything, and the plan can be run again. No task may be
 * running any more when this one throws. What deallocate throws is dropped. */
typedef void (*convt_task)(void *task_context, size_t i);
typedef void (*convt_parallel_for)(void *user, size_t count, convt_task task, void *task_context);

/* Memory for packed weights, for workspaces, and for copies of weights and biases while a plan is made. Its book-keeping comes from
 * operator new: some tens of kilobytes for each layer that computes the problem, of which Winograd's algorithm has dozens; most of
 * it is the list of kernels that could, and the rest are tables as long as an axis, or a kernel of one channel.
 * allocate returns `size` bytes aligned to `alignment` (a power of two, at most 64), or NULL. Both may be called from any thread
 * that plans or runs. */
typedef void *(*convt_allocate)(void *user, size_t size, size_t alignment);
typedef void (*convt_deallocate)(void *user, void *pointer);

/* What a plan runs on. All zero: the CPU. The component of the library that is named alike must be linked.
 *
 * A plan for a device keeps its weights there. Tensors in host memory are copied for the caller, and y is there when the run
 * returns. Where x, y and the residual are all on the device, a run only puts its work into the stream and returns: nothing
 * waits, and nothing is allocated but at the first run on that stream. Up to three spatial axes. */
typedef struct convt_device {
    const char *name; /* "cuda" or "opencl"; NULL or "cpu": the CPU */
    int index;        /* which of them, from 0 */
    /* A CUcontext or a cl_context, which must outlive the plan. NULL: the device's primary context, which is that of the
     * CUDA runtime and of PyTorch; of OpenCL one that the library makes. */
    void *context;
    /* Nonzero: if there is no such device or driver, or it lacks memory, or has no kernel for the problem, the plan is made
     * for the CPU: see convt_plan_device(). Zero: that is an error. */
    int falls_back;
} convt_device;

/* The library's own threads. They are started when a run first needs them, are shared by all plans, and wait for work until the
 * process ends; a run wakes those that it can use, and no others. With the calling thread there are no more than the CPUs that the
 * process may use when the first of them is started: those of the thread's affinity (Linux; elsewhere all), fewer where a control
 * group grants less time. A plan of more threads than that is still divided for as many, and computed by those that there are.
 * More can be had by parallel_for. Where a thread cannot be started, or all are busy with other runs, a run does with fewer.
 *
 * A forked child makes threads of its own when it first needs them, even if other threads were running plans as it was forked.
 * The process may end while plans run. A shared library that holds this code stays in memory once it has started threads, and
 * may be closed (dlclose) and opened again.
 *
 * Options: zero-initialise for the defaults. Everything that is pointed to by `variant`, `isa` and `device.name` is only read during the
 * call; the hooks must outlive the plan and its reshapes. */
typedef struct convt_options {
    int threads;                     /* at most 4096; 0: one. Results are bitwise the same for any number. */
    convt_parallel_for parallel_for; /* NULL: the library's own threads */
    void *parallel_user;
    convt_allocate allocate; /* NULL (then deallocate too): the C library's */
    convt_deallocate deallocate;
    void *allocate_user;
    const char
        *variant; /* force what computes, by name (see convt_plan_candidate); NULL: chosen by tuning record or cost */
    const char *isa; /* force an ISA by name (see convt_isa_name); NULL: the best that this CPU runs */
    /* Nonzero: f16 layers may be summed in f16, where the CPU computes with it (ARM's FEAT_FP16): up to twice as fast, each
     * of the terms of a sum adding a rounding error of up to 2^-11 of it. Else sums of f16 are f32. */
    int sums_in_f16;
    /* Nonzero: f32 and f64 layers of constant weights, whose residues have two or three taps, may be computed by Winograd's algorithm
     * F(2, r) where that is estimated to be faster: up to 1.6 times. The error of a sum is then bounded by the largest |x| near it
     * times the sum of its |w|, not by the sum of |x w|: about twice as large of random numbers. What an inf of x reaches may be NaN.
     * Packed weights are up to 2.25 times as large. */
    int winograd;
    /* What was measured to be the fastest, read by convt_tuning_read, is taken instead of what is estimated to be; it must
     * outlive the plan and its reshapes. NULL: what the file holds that the environment variable CONVTRANSPOSE_TUNING names
     * (read once; convt_plan_explain says where it could not be used). */
    const struct convt_tuning *tuning;
    convt_device device;
} convt_options;

typedef struct convt_plan convt_plan;

/* The message of the calling thread's last failed call: which value broke which rule. Never NULL. */
CONVT_API const char *convt_last_error(void);
CONVT_API const char *convt_status_name(convt_status status);
CONVT_API const char *convt_dtype_name(convt_dtype dtype); /* "f16", "bf16", "f32", "f64", "u8", "s8", "s32" */
CONVT_API size_t convt_dtype_size(convt_dtype dtype);      /* in bytes */

/* The shape of y, by the attributes and shapes alone. Writes at most `capacity` extents to y_shape and the rank to
 * *rank (the rank of x). Fails where convt_plan_create would for attributes and shapes. */
CONVT_API convt_status convt_infer_shape(const convt_problem *problem, int64_t *y_shape, size_t capacity, size_t *rank);

/* Validates everything, packs the weights and chooses a variant.
 * w: dense weights, packed here once and not referred to afterwards; NULL: they arrive with each run.
 * b: dense bias, likewise; must be given with w if the problem has a bias, and only then.
 * options: NULL for the defaults. On success *plan is to be released with convt_plan_destroy. */
CONVT_API convt_status convt_plan_create(const convt_problem *problem, const convt_tensor *w, const convt_tensor *b,
                                         const convt_options *options, convt_plan **plan);

/* A plan for another shape of x (same rank and channels, other batch and spatial extents), sharing the packed weights
 * of `plan`, which remains valid; each is destroyed on its own, in any order. Where no fast kernel reads them as they
 * are packed, as may be for one column, they are packed again, which takes as long as creating the plan did. */
CONVT_API convt_status convt_plan_reshape(const convt_plan *plan, convt_ints x_shape, convt_plan **reshaped);

CONVT_API void convt_plan_destroy(convt_plan *plan); /* NULL is allowed */

/* Computes y. w and b: NULL if they were given to convt_plan_create, required (b if the problem has a bias) if not.
 * workspace: at least convt_plan_workspace_bytes(plan) bytes aligned to 64, for this run alone; NULL: the plan allocates
 * one when it has none free, and keeps it, as one of at most 32, for its next runs. */
CONVT_API convt_status convt_plan_run(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                      const convt_tensor *b, const convt_tensor *y, void *workspace);

/* The same with scales, zero points and range of this run alone. With constant weights w_zero_point must be what was planned:
 * it is packed with them. A problem without `quantization` is always run through this. */
CONVT_API convt_status convt_plan_run_quantized(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                                const convt_tensor *b, const convt_tensor *y,
                                                const convt_quantization *quantization, void *workspace);

/* Everything that a run can take, where the two functions above do not do: the residual, above all. */
typedef struct convt_arguments {
    const convt_tensor *x, *w, *b; /* as for convt_plan_run */
    const convt_tensor *residual;  /* y's type and shape, not overlapping y; if and only if the problem adds one */
    const convt_tensor *y;
    const convt_quantization *quantization; /* NULL: as planned */
    void *workspace;                        /* of plans for the CPU */
    /* Of plans for a device: a CUstream (cudaStream_t), or a cl_command_queue (in order), of the plan's context. NULL: the
     * default stream; of OpenCL one of the library's own. */
    void *stream;
} convt_arguments;

CONVT_API convt_status convt_plan_run_with(const convt_plan *plan, const convt_arguments *arguments);

/* What was planned. Strings live as long as the plan. Of NULL: 0, NULL for a shape, "" for a string. The same where a list or
 * text that is made when it is first asked for has no memory: convt_last_error() then says so, and it may be asked for again. */
CONVT_API size_t convt_plan_workspace_bytes(const convt_plan *plan);
CONVT_API size_t convt_plan_packed_bytes(const convt_plan *plan);    /* packed weights and bias */
CONVT_API size_t convt_plan_rank(const convt_plan *plan);            /* of x and y, N and C included */
CONVT_API const int64_t *convt_plan_x_shape(const convt_plan *plan); /* in the problem's layout order */
CONVT_API const int64_t *convt_plan_y_shape(const convt_plan *plan); /* likewise */
CONVT_API double convt_plan_macs(const convt_plan *plan); /* multiply-adds of the definition, cropped ones left out */
CONVT_API int convt_plan_threads(const convt_plan *plan); /* as asked for */
/* Name of the kernel that computes the layer, or the first of the layers that the algorithm computes it through. */
CONVT_API const char *convt_plan_variant(const convt_plan *plan);
/* Name of the chosen algorithm: "direct", which computes the layer as it is, "col2im", "depth_to_space" and so on. */
CONVT_API const char *convt_plan_algorithm(const convt_plan *plan);
CONVT_API const char *convt_plan_isa(const convt_plan *plan);     /* name of the ISA it runs on */
CONVT_API const char *convt_plan_device(const convt_plan *plan);  /* "cpu", or the device's name as in convt_device */
CONVT_API const char *
convt_plan_explain(const convt_plan *plan); /* geometry, taps, candidates, choice and reason, as text */

/* What can compute the problem on the plan's ISA, by name and rising estimated cost, which is what a tuner tries: variants and,
 * for constant weights of floats, "phases_as_channels", "depth_to_space" and "col2im", which plan the layer as layers of stride 1,
 * "output_parts", which cuts y where the taps change that read inside x, "layout_transpose", which transposes x and y, and
 * "batch_as_width", which has the batch as an axis (not each of those can; of integers only those that were estimated are named:
 * convt_plan_create then says so). And the name that tuning records know the problem by. */
CONVT_API size_t convt_plan_candidate_count(const convt_plan *plan);
CONVT_API const char *convt_plan_candidate(const convt_plan *plan, size_t i);
CONVT_API const char *convt_plan_problem(const convt_plan *plan);

/* Names of all variants that a run of the plan may call: one, or those of the layers that it is planned as, and for weights that
 * arrive with each run those that take over where the chosen one must not be used. */
CONVT_API size_t convt_plan_kernel_count(const convt_plan *plan);
CONVT_API const char *convt_plan_kernel(const convt_plan *plan, size_t i);

/* Tuning records: JSON lines, as `convtranspose tune` writes them. Those of another version of the library or of other
 * kernels are refused, with the line and the reason; those of other CPUs are kept and not used. */
typedef struct convt_tuning convt_tuning;
CONVT_API convt_status convt_tuning_read(const char *text, size_t size, convt_tuning **tuning);
CONVT_API void convt_tuning_destroy(convt_tuning *tuning); /* NULL is allowed */
CONVT_API const char *convt_cpu_name(void);                /* of this CPU, as records have it */
CONVT_API const char *convt_kernels_version(void);         /* of the kernels built in: a hash of their sources */

/* Adds kernels to those built in, for all plans made afterwards: a table that `convtranspose tune` makes and compiles. It is
 * refused if it is of another version of the library; it must outlive the program's use of this library. */
typedef struct convt_kernels convt_kernels;
CONVT_API convt_status convt_add_kernels(const convt_kernels *kernels);

/* ISAs built in, best first, and whether this CPU runs them; without memory for the list, which is made when first asked for,
 * none: convt_last_error() then says so. Names: "amx", "avx512_vnni", "avx512", "avx2", "x86_64"; "neon_dotprod",
 * "neon_fp16", "neon". Floats have no use for dot products of integers: asked for avx512_vnni or neon_dotprod, they run, and say that they
 * run, on avx512 or neon. amx (Linux) has kernels of bf16 and of 8-bit integers, whose use the process is given leave to when a
 * plan first asks for the CPU; bf16 numbers below 2^-126, subnormals, count as zeros there. */
CONVT_API size_t convt_isa_count(void);
CONVT_API const char *convt_isa_name(size_t i);
CONVT_API int convt_isa_supported(size_t i);

/* Devices whose kernels are built in, "cuda" and "opencl", and how many of each there are: 0 without one, and then
 * convt_last_error() says why. */
CONVT_API size_t convt_device_kind_count(void);
CONVT_API const char *convt_device_kind_name(size_t i);
CONVT_API size_t convt_device_count(const char *kind);
CONVT_API const char *convt_device_description(const char *kind, size_t index); /* NULL: there is no such device */

/* Variants built in, in table order; without memory for the list likewise none. */
CONVT_API size_t convt_variant_count(void);
CONVT_API const char *convt_variant_name(size_t i);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVTRANSPOSE_CONVTRANSPOSE_H_ */
