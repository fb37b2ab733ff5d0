/** @file
 * Transposed convolution: the C interface.
 *
 * The semantics are those of ONNX ConvTranspose-1, -11 and -22 (https://onnx.ai/onnx/operators/onnx__ConvTranspose.html), and
 * of ONNX Runtime's com.ms.internal.nhwc QLinearConvTranspose-1. docs/semantics.md says how they are read.
 *
 *     problem (attributes + shapes) --convt_plan_create--> plan --convt_plan_run(x)--> y
 *
 * A plan is immutable. It may be run from several threads at once, and it may be reshaped to another input size, which
 * shares its packed weights.
 *
 * **Errors.** Every function that can fail returns a convt_status. convt_last_error() then says, for the calling thread, which
 * value broke which rule. A call that fails validation writes nothing to an output, and no input ends the process.
 *
 * **Structs.** A struct that you fill begins with `struct_size`, its sizeof in your program. Other fields that are zero count as not
 * given. Later versions only append fields, so that a program runs with every library of the same soname: docs/abi.md.
 *
 * **Layouts.** Channels first: x is (N, C, D1..Dn) and y is (N, M, O1..On). Channels last: x is (N, D1..Dn, C) and y is
 * (N, O1..On, M). In both, weights are (C, M/group, K1..Kn) and the bias is (M). Sizes are in elements unless bytes are named.
 *
 * **Quantized layers.** If x is u8 or s8, then w is u8 or s8 too, and y is u8, s8 or f32. The bias is s32, at the scale
 * x_scale * w_scale; with an f32 y it is f32. The sum is exact:
 *
 *     acc = sum (x - x_zero_point) * (w - w_zero_point) + b           over all taps and input channels
 *     y   = saturate(round(acc * (x_scale * w_scale / y_scale)) + y_zero_point)
 *     y   = acc * (x_scale * w_scale) + b                             for an f32 y, whose acc is without b
 *
 * The factors are computed in f32. acc and acc * factor are each rounded to f32, and the product then to the nearest integer, ties
 * to even; with an f32 y b is added to it, and the sum is rounded once more. So y has the same bits on every ISA. Kernels for
 * devices may round acc * factor + b once.
 *
 * **Light weights.** If x is f32, w may be f16, bf16, u8 or s8 (`w_dtype`), which takes a half or a quarter of the memory. y and b
 * are f32, and y is what f32 weights of the same values give. 8-bit weights are (w - w_zero_point) * w_scale, rounded to f32.
 *
 * **Dynamic quantization.** With 8-bit w, `quantizes_x` makes each run quantize an f32 x to u8, all of it by one scale and one zero
 * point, as DynamicQuantizeLinear-11 of ONNX does. The rest is a quantized layer with an f32 y and b. x is off by up to half its
 * scale, which is (max(x, 0) - min(x, 0)) / 255. If x holds an infinity or a NaN, then all of the convolution is NaN.
 *
 * **Rounding.** Everything is computed rounding to nearest, ties to even, on all threads, whatever mode the calling thread has;
 * that thread has its mode back when the call returns. The calling thread decides whether subnormal numbers count as zero (FTZ
 * and DAZ on x86, FZ on ARM), and the other threads of a run follow it. Vectors of 32-bit ARM always take them for zero.
 */
#ifndef CONVTRANSPOSE_CONVTRANSPOSE_H_
#define CONVTRANSPOSE_CONVTRANSPOSE_H_

#include <stddef.h>
#include <stdint.h>

/** The version of this header; convt_version() is that of the library. */
#define CONVT_VERSION "0.2.0"

/* CONVT_SHARED says that the library is a shared one; its CMake package and pkg-config file define it. */
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

/** The result of a call. */
typedef enum convt_status {
    CONVT_OK = 0,               /**< Success. */
    CONVT_INVALID_ARGUMENT = 1, /**< A value breaks a rule of the operator or of this file. */
    CONVT_UNSUPPORTED = 2,      /**< Valid, but this CPU or build lacks what was asked for. */
    CONVT_OVERFLOW = 3,         /**< A size does not fit; see the limit of convt_tensor. */
    CONVT_OUT_OF_MEMORY = 4,    /**< The allocator returned null, or a device has not that much memory. */
    CONVT_INTERNAL = 5,         /**< A bug in this library. */
    CONVT_DEVICE_ERROR = 6      /**< A driver reported an error; the message has its words. */
} convt_status;

/** The type of the elements of a tensor. */
typedef enum convt_dtype {
    CONVT_F16 = 1,  /**< IEEE half precision. */
    CONVT_BF16 = 2, /**< The upper half of an f32. */
    CONVT_F32 = 3,  /**< IEEE single precision. */
    CONVT_F64 = 4,  /**< IEEE double precision. */
    CONVT_U8 = 5,   /**< Quantized, unsigned. */
    CONVT_S8 = 6,   /**< Quantized, signed. */
    CONVT_S32 = 7   /**< The bias of quantized layers only. */
} convt_dtype;

/** The order of the dimensions of x and y. */
typedef enum convt_layout {
    CONVT_CHANNELS_FIRST = 0, /**< (N, C, D1..Dn), for images NCHW. */
    CONVT_CHANNELS_LAST = 1   /**< (N, D1..Dn, C), for images NHWC. */
} convt_layout;

/** A list of integers that may be absent. A null `data` means "not given", whatever the size. That differs from a list of
 * size 0, for which any non-null pointer will do. */
typedef struct convt_ints {
    const int64_t *data; /**< The elements, or null. */
    size_t size;         /**< The number of elements. */
} convt_ints;

/** The attributes of an ONNX ConvTranspose node, by their ONNX names. Zero-initialise, then set `struct_size`, `group` (its ONNX
 * default is 1, and 0 is rejected) and what the node has. Lists have one element per spatial axis unless another size is named. */
typedef struct convt_attributes {
    size_t struct_size; /**< sizeof(convt_attributes). */
    /** "NOTSET", "SAME_UPPER", "SAME_LOWER" or "VALID"; null: not given, which is NOTSET. */
    const char *auto_pad;
    convt_ints dilations;      /**< Distances between kernel elements, at least 1. */
    int64_t group;             /**< Number of groups, which divides the input channels. */
    convt_ints kernel_shape;   /**< Extents of the kernel; if given, they must be those of the weights. */
    convt_ints output_padding; /**< Positions added at the end, less than max(stride, dilation). */
    convt_ints output_shape;   /**< Extents of y; N and C may stand in front. An empty list counts as not given. */
    convt_ints pads;           /**< x1_begin, x2_begin, ..., x1_end, x2_end, ...: positions cut off from y. */
    convt_ints strides;        /**< Distances in y between the outputs of neighbouring inputs, at least 1. */
} convt_attributes;

/** The reals that integers stand for: real = (integer - zero_point) * scale. Scales are positive and finite. A zero point is a
 * value of its tensor's type. */
typedef struct convt_quantization {
    size_t struct_size;          /**< sizeof(convt_quantization). */
    float x_scale;               /**< Scale of x. */
    int32_t x_zero_point;        /**< Zero point of x. */
    const float *w_scale;        /**< Scales of w: one, or one for each of the M output channels. */
    size_t w_scale_size;         /**< 1 or M. */
    const int32_t *w_zero_point; /**< Zero points of w, likewise; null: 0. */
    size_t w_zero_point_size;    /**< 1 or M. */
    float y_scale;               /**< Scale of y; not looked at if y is f32. */
    int32_t y_zero_point;        /**< Zero point of y; not looked at if y is f32. */
    /** {min, max} in reals: y is clamped to it. Relu is {0, INFINITY}, Relu6 is {0, 6}. Null: y is not clamped. */
    const float *y_range;
} convt_quantization;

/** The function that is applied to y after the convolution and the residual. */
typedef enum convt_activation {
    CONVT_NO_ACTIVATION = 0, /**< Nothing. */
    CONVT_RELU = 1,          /**< max(y, 0). */
    CONVT_LEAKY_RELU = 2,    /**< y, times alpha if it is below 0. */
    CONVT_CLIP = 3,          /**< y, clamped to alpha .. beta. */
    CONVT_SIGMOID = 4,       /**< 1 / (1 + exp(-y)). */
    CONVT_TANH = 5           /**< tanh(y). */
} convt_activation;

/** Work that is done while y is still in the cache: y = activation(convolution + residual).
 *
 * The convolution is first rounded to y's type. The rest is computed in f32 (f64 for f64) and rounded again. Sigmoid and tanh
 * are exact to 4 units in the last place of that type, and sigmoid may be 0 below twice its least normal number. A NaN
 * stays a NaN. Only a float y may have post-ops; an 8-bit y is clamped by its quantization's y_range. */
typedef struct convt_post_ops {
    size_t struct_size;          /**< sizeof(convt_post_ops). */
    int adds_residual;           /**< Nonzero: a tensor of y's type and shape, which comes with each run, is added. */
    convt_activation activation; /**< The function that is applied last. */
    float alpha;                 /**< The slope of leaky relu, or the lower bound of clip. */
    float beta;                  /**< The upper bound of clip. */
} convt_post_ops;

/** A layer to compute: the node, its types and its shapes. Zero-initialise, then set `struct_size` and what applies. */
typedef struct convt_problem {
    size_t struct_size;  /**< sizeof(convt_problem). */
    int opset;           /**< Version of the operator: 1, 11 or 22. Any opset of a model will do. */
    convt_dtype dtype;   /**< Type of x. If it is a float, also of b and y, and of w unless w_dtype differs. */
    convt_dtype w_dtype; /**< 0: the type of x. Another type only if x is u8, s8 or f32. */
    convt_dtype y_dtype; /**< 0: the type of x. If x is u8 or s8: u8, s8 or f32. */
    convt_layout layout; /**< Layout of x, y and the residual. */
    convt_ints x_shape;  /**< Shape of x, in `layout` order; at least (N, C, D1) or (N, D1, C). */
    convt_ints w_shape;  /**< Shape of w: (C, M/group, K1..Kn). */
    convt_ints b_shape;  /**< Shape of b: (M). Absent: there is no bias. */
    const convt_attributes *attributes; /**< The attributes of the node. Null: it has none, and group is 1. */
    /** For w of u8 or s8 only. Null: it comes with each run, as w and b then do. If x is f32, x_scale, x_zero_point, y_scale and
     * y_zero_point are not looked at, and y_range must be null: a clip is among the post-ops. */
    const convt_quantization *quantization;
    const convt_post_ops *post_ops; /**< Null: none. */
    int quantizes_x;                /**< Nonzero: x is f32, w is u8 or s8, and x is quantized by each run. */
} convt_problem;

/** The place of a tensor's data. */
typedef enum convt_memory {
    CONVT_HOST_MEMORY = 0, /**< Ordinary memory. */
    /** Memory of the plan's device: what cudaMalloc or cuMemAlloc gave, or a place inside of it; or a cl_mem, from its start. */
    CONVT_DEVICE_MEMORY = 1
} convt_memory;

/** A tensor in the caller's memory.
 *
 * A crop of a larger tensor is welcome. Strides must be positive where the extent exceeds 1, and the last axis must have stride
 * 1, for x and y; weights and bias must be dense. Elements of y must not overlap: in the order of their strides, each axis of y
 * must step over all that those before it span. x and y must not overlap each other.
 *
 * A tensor may span at most 2^31 - 1 elements.
 *
 * If the layout is channels first and the last axis is a single position that is cut out of a wider tensor, the first run
 * of such a view makes a second plan, with its own kernel, workspace and packed weights. */
typedef struct convt_tensor {
    size_t struct_size;     /**< sizeof(convt_tensor). */
    void *data;             /**< The first element. x, w and b are only read. */
    convt_dtype dtype;      /**< Type of the elements. */
    const int64_t *shape;   /**< `rank` extents. */
    const int64_t *strides; /**< `rank` distances in elements; null: dense, in C order. */
    size_t rank;            /**< Number of dimensions. */
    convt_memory memory;    /**< For x, y and the residual; all else is in host memory. */
} convt_tensor;

/** Task number i of a convt_parallel_for. Tasks do not throw. */
typedef void (*convt_task)(void *task_context, size_t i);

/** Runs task(task_context, i) for each i in 0 .. count - 1, in any order, on any threads, and returns when all have ended.
 *
 * An exception of this hook or of those below does not leave the library: the call fails with CONVT_OUT_OF_MEMORY for a
 * std::bad_alloc and with CONVT_INTERNAL for anything else. y then holds anything, and the plan can be run again. No task may
 * still be running when this hook throws. An exception of deallocate is dropped. */
typedef void (*convt_parallel_for)(void *user, size_t count, convt_task task, void *task_context);

/** Returns `size` bytes aligned to `alignment` (a power of two, at most 64), or null. May be called from any thread that plans
 * or runs.
 *
 * It provides memory for packed weights, for workspaces, and for copies of weights and biases while a plan is made. Book-keeping
 * comes from operator new: some tens of kilobytes for each layer that computes the problem, and Winograd's algorithm has
 * dozens of them. */
typedef void *(*convt_allocate)(void *user, size_t size, size_t alignment);

/** Takes back what convt_allocate returned. */
typedef void (*convt_deallocate)(void *user, void *pointer);

/** The device that a plan runs on. The component of the library with the device's name must be linked.
 *
 * A plan for a device keeps its weights there. Tensors in host memory are copied for the caller, and y is there when the run
 * returns. If x, y and the residual are all on the device, a run only puts its work into the stream and returns: nothing waits
 * unless weights or scales arrive with it, and nothing is allocated but at the first run on that stream. Devices compute up to
 * three spatial axes. */
typedef struct convt_device {
    size_t struct_size; /**< sizeof(convt_device). */
    const char *name;   /**< "cuda" or "opencl"; null or "cpu": the CPU. */
    int index;          /**< Number of the device, from 0. */
    /** A CUcontext or a cl_context, which must outlive the plan. Null: the device's primary context, which is that of the CUDA
     * runtime and of PyTorch; for OpenCL, a context that the library makes. */
    void *context;
    /** Nonzero: the plan is made for the CPU if there is no such device or driver, if it lacks memory, or if it has no kernel for
     * the problem; see convt_plan_device(). Zero: that is an error. */
    int falls_back;
} convt_device;

/** The way in which a candidate is chosen, unless `variant` or a tuning record makes it. */
typedef enum convt_planning {
    CONVT_ESTIMATE = 0, /**< By estimated cost. Nothing is run. */
    /** By running the candidates of nearly the least estimate on tensors of these shapes, with these weights, in memory of
     * `allocate` and on the plan's threads, also on fewer of them. The choice by estimate stays unless another one is faster by
     * more than noise. The process remembers what was measured: the next plan for the same problem, ISA and number of threads
     * makes the same choice at once, and so does a reshape if the weights are packed for it. A layer that is estimated to be too
     * slow for three runs is not measured. Candidates round differently, so that the last bits of a float y may differ from one
     * process to another, and with the number of threads. For plans for the CPU only. */
    CONVT_MEASURE = 1
} convt_planning;

/** Settings of a plan and its runs. Zero-initialise and set `struct_size` for the defaults.
 *
 * The strings and the device are only read during the call. The hooks must outlive the plan and its reshapes.
 *
 * All plans share the library's own threads, which are started when a run first needs them. With the calling thread there are no
 * more than the CPUs that the process may use; docs/using.md has the rules, also of fork and dlclose. */
typedef struct convt_options {
    size_t struct_size; /**< sizeof(convt_options). */
    /** The most threads of a run, up to 4096; 0: one. A layer uses as many of them as it is estimated to be worth, so that a small
     * one stays on one; see `all_threads`. y has the same bits for any number, if nothing is measured. */
    int threads;
    convt_parallel_for parallel_for; /**< Null: the library's own threads. */
    void *parallel_user;             /**< Passed to parallel_for. */
    convt_allocate allocate;         /**< Null, as deallocate then is: operator new. */
    convt_deallocate deallocate;     /**< Takes back what allocate gave. */
    void *allocate_user;             /**< Passed to both. */
    /** The name of what is to compute (see convt_plan_candidate()). Null: a tuning record or the estimated cost decides. */
    const char *variant;
    const char *isa; /**< The name of the ISA to use (see convt_isa_name()). Null: the best that this CPU runs. */
    /** Nonzero: f16 layers may be summed in f16 if the CPU computes with it (ARM's FEAT_FP16). That is up to twice as fast, and
     * each term adds a rounding error of up to 2^-11 of the sum. Zero: sums of f16 are f32. */
    int sums_in_f16;
    /** Nonzero: f32 and f64 layers of constant weights, whose phases have two or three taps, may be computed by Winograd's
     * algorithm F(2, r) where that is estimated to be faster, by up to 1.6 times. The error of a sum is then bounded by the
     * largest |x| near it times the sum of its |w|, not by the sum of |x w|; it is about twice as large for random numbers.
     * Outputs that an infinity of x, or |x| above a quarter of the largest number, reaches may be NaN or infinite. */
    int winograd;
    /** Tuning records, read by convt_tuning_read(): a candidate that was measured to be the fastest is taken instead of the one
     * that is estimated to be. They must outlive the plan and its reshapes. Null: the records of the file that the environment
     * variable CONVTRANSPOSE_TUNING names, which is read once; convt_plan_explain() says if it could not be used. */
    const struct convt_tuning *tuning;
    const convt_device *device; /**< The device that the plan runs on. Null: the CPU. */
    convt_planning planning;    /**< The way in which a candidate is chosen. */
    /** For CONVT_MEASURE: so many milliseconds of runs, besides the packing of weights for each candidate. 0: 50. */
    int planning_ms;
    /** Nonzero: all `threads` are used, however small the layer is. Zero: fewer, where the estimate, a measurement or a tuning
     * record says that they take less time. convt_plan_explain() tells how many are used, and why. */
    int all_threads;
} convt_options;

/** A layer that is ready to run. */
typedef struct convt_plan convt_plan;

/** The version of the library, such as "0.2.0", which may be later than that of the header. */
CONVT_API const char *convt_version(void);
/** The message of the calling thread's last failed call: which value broke which rule. Never null. */
CONVT_API const char *convt_last_error(void);
/** The name of a status, such as "overflow". */
CONVT_API const char *convt_status_name(convt_status status);
/** The name of a type: "f16", "bf16", "f32", "f64", "u8", "s8" or "s32". */
CONVT_API const char *convt_dtype_name(convt_dtype dtype);
/** The size of an element of a type, in bytes. */
CONVT_API size_t convt_dtype_size(convt_dtype dtype);

/** Computes the shape of y from the attributes and shapes alone.
 * @param problem   The layer.
 * @param y_shape   Gets at most `capacity` extents, in the problem's layout.
 * @param capacity  How many extents fit.
 * @param rank      Gets the rank of y, which is that of x.
 * @return CONVT_OK, or the failure that convt_plan_create() would have for attributes and shapes. */
CONVT_API convt_status convt_infer_shape(const convt_problem *problem, int64_t *y_shape, size_t capacity, size_t *rank);

/** Validates everything, packs the weights and chooses what computes the layer.
 * @param problem  The layer.
 * @param w        Dense weights, packed here once and not referred to afterwards. Null: they come with each run.
 * @param b        Dense bias, likewise. It must be given with w if the problem has a bias, and only then.
 * @param options  Null: the defaults.
 * @param plan     Gets the plan, which is to be released with convt_plan_destroy().
 * @return CONVT_OK; CONVT_INVALID_ARGUMENT or CONVT_OVERFLOW for a problem that breaks a rule; CONVT_UNSUPPORTED if a
 *         variant, an ISA or a device that was asked for cannot be had; CONVT_OUT_OF_MEMORY. */
CONVT_API convt_status convt_plan_create(const convt_problem *problem, const convt_tensor *w, const convt_tensor *b,
                                         const convt_options *options, convt_plan **plan);

/** Makes a plan for another shape of x, with the same rank and channels, and other batch and spatial extents. It shares the
 * packed weights of `plan`, which remains valid; each is destroyed on its own, in any order. If no fast kernel reads the
 * weights as they are packed, as may happen for a single column, they are packed again, which takes as long as creating
 * the plan did.
 * @param plan      The plan whose weights are shared.
 * @param x_shape   The new shape of x, in the problem's layout.
 * @param reshaped  Gets the new plan, which is to be released with convt_plan_destroy(). */
CONVT_API convt_status convt_plan_reshape(const convt_plan *plan, convt_ints x_shape, convt_plan **reshaped);

/** Releases a plan. Null is allowed. */
CONVT_API void convt_plan_destroy(convt_plan *plan);

/** Computes y.
 * @param plan       The plan.
 * @param x          The input, of the planned shape and type.
 * @param w          Dense weights, if they were not given to convt_plan_create(); else null.
 * @param b          Dense bias, likewise, if the problem has one.
 * @param y          Gets the output, of the planned shape and type.
 * @param workspace  At least convt_plan_workspace_bytes() bytes aligned to 64, for this run alone. Null: the plan allocates
 *                   one when it has none free, and keeps it, as one of at most 32, for its next runs.
 * @return CONVT_OK; CONVT_INVALID_ARGUMENT for a tensor that does not fit the plan; CONVT_OUT_OF_MEMORY; CONVT_OVERFLOW. */
CONVT_API convt_status convt_plan_run(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                      const convt_tensor *b, const convt_tensor *y, void *workspace);

/** Computes y as convt_plan_run() does, with scales, zero points and range of this run alone. With constant weights,
 * w_zero_point must be what was planned, because it is packed with them. A problem without `quantization` is always run
 * through this function or through convt_plan_run_with(). */
CONVT_API convt_status convt_plan_run_quantized(const convt_plan *plan, const convt_tensor *x, const convt_tensor *w,
                                                const convt_tensor *b, const convt_tensor *y,
                                                const convt_quantization *quantization, void *workspace);

/** Everything that a run can take. Zero-initialise, then set `struct_size` and what applies. */
typedef struct convt_arguments {
    size_t struct_size;    /**< sizeof(convt_arguments). */
    const convt_tensor *x; /**< The input. */
    const convt_tensor *w; /**< As for convt_plan_run(). */
    const convt_tensor *b; /**< As for convt_plan_run(). */
    /** It has y's type and shape, and does not overlap y; given if and only if the problem adds one. */
    const convt_tensor *residual;
    const convt_tensor *y;                  /**< The output. */
    const convt_quantization *quantization; /**< Null: as planned. */
    void *workspace;                        /**< As for convt_plan_run(); for plans for the CPU. */
    /** For plans for a device: a CUstream (cudaStream_t), or a cl_command_queue (in order), of the plan's context. Null: the
     * default stream; for OpenCL, a queue of the library's own. */
    void *stream;
    /** Threads of this run alone, for plans for the CPU; the work is still divided for as many as were planned. Null: those of the
     * plan. It is not called by plans of one thread. */
    convt_parallel_for parallel_for;
    void *parallel_user; /**< Passed to parallel_for. */
} convt_arguments;

/** Computes y as convt_plan_run() does, with a residual, on threads of this run, or in a stream of a device. */
CONVT_API convt_status convt_plan_run_with(const convt_plan *plan, const convt_arguments *arguments);

/** @name What was planned
 * Strings live as long as the plan. For a null plan the functions return 0, null for a shape, and "" for a string. They return
 * the same if a list or text that is made when it is first asked for finds no memory: convt_last_error() then says so, and it
 * may be asked for again.
 * @{ */
/** Bytes of workspace that a run needs. */
CONVT_API size_t convt_plan_workspace_bytes(const convt_plan *plan);
/** Bytes of packed weights and bias. */
CONVT_API size_t convt_plan_packed_bytes(const convt_plan *plan);
/** Rank of x and y, N and C included. */
CONVT_API size_t convt_plan_rank(const convt_plan *plan);
/** Shape of x, in the problem's layout. */
CONVT_API const int64_t *convt_plan_x_shape(const convt_plan *plan);
/** Shape of y, in the problem's layout. */
CONVT_API const int64_t *convt_plan_y_shape(const convt_plan *plan);
/** Multiply-adds of the definition; cropped ones are left out. */
CONVT_API double convt_plan_macs(const convt_plan *plan);
/** Number of threads that was asked for. A run may use fewer, and convt_plan_explain() then says so (convt_options). */
CONVT_API int convt_plan_threads(const convt_plan *plan);
/** Name of the kernel that computes the layer, or the first of the layers that the algorithm computes it through. */
CONVT_API const char *convt_plan_variant(const convt_plan *plan);
/** Name of the chosen algorithm: "direct", which is one kernel, "col2im" and so on; docs/architecture.md lists them. */
CONVT_API const char *convt_plan_algorithm(const convt_plan *plan);
/** Name of the ISA that it runs on. */
CONVT_API const char *convt_plan_isa(const convt_plan *plan);
/** "cpu", or the device's name as in convt_device. */
CONVT_API const char *convt_plan_device(const convt_plan *plan);
/** Geometry, taps, candidates, choice and reason, as text for a person. */
CONVT_API const char *convt_plan_explain(const convt_plan *plan);

/** Number of candidates that can compute the problem on the plan's ISA, which is what a tuner tries. */
CONVT_API size_t convt_plan_candidate_count(const convt_plan *plan);
/** Name of candidate i, by rising estimated cost. Candidates are variants and algorithms; docs/architecture.md lists
 * the latter. One that is named here may turn out not to be able to, as for weights that are infinite, and convt_plan_create() then
 * says so. */
CONVT_API const char *convt_plan_candidate(const convt_plan *plan, size_t i);
/** Estimated cost of candidate i: cycles on one thread of the CPU; for a device, in units of its own. 0 past the last. */
CONVT_API double convt_plan_candidate_cycles(const convt_plan *plan, size_t i);
/** Name of field i of the cost profile that estimates of the plan go by, which a "cost_profile" of a tuning text may set. Null:
 * there are no more, or the plan is for a device.
 * @param value  Gets its value; may be null. */
CONVT_API const char *convt_plan_cost_field(const convt_plan *plan, size_t i, double *value);
/** The name that tuning records know the problem by. */
CONVT_API const char *convt_plan_problem(const convt_plan *plan);
/** The plan's choice as a tuning record: one line of JSON, without an end of line. A plan with this record (convt_tuning_read())
 * makes the same choice, without measuring. Time is given if it was measured. */
CONVT_API const char *convt_plan_record(const convt_plan *plan);

/** Number of variants that a run of the plan may call: one, or those of the layers that it is planned as; for weights that
 * come with each run also those that take over if the chosen one must not be used. */
CONVT_API size_t convt_plan_kernel_count(const convt_plan *plan);
/** Name of variant i of them. */
CONVT_API const char *convt_plan_kernel(const convt_plan *plan, size_t i);
/** @} */

/** Tuning records and cost profiles: JSON lines, as `convtranspose tune` and `convtranspose calibrate` write them. A record names
 * what is the fastest for a problem. A line with a "cost_profile" is what plans make their estimates of, where no record
 * decides: the last such line of the CPU and ISA ("*" is any), or else the profile that ships for the CPU. */
typedef struct convt_tuning convt_tuning;
/** Reads tuning records and cost profiles. Those of another version of the library or of other kernels are refused, with the
 * line and the reason, as are fields that a profile does not have, and values out of their ranges; those of other CPUs are kept
 * and not used.
 * @param text    The records.
 * @param size    Their size in bytes.
 * @param tuning  Gets them; to be released with convt_tuning_destroy(). */
CONVT_API convt_status convt_tuning_read(const char *text, size_t size, convt_tuning **tuning);
/** Releases tuning records. Null is allowed. */
CONVT_API void convt_tuning_destroy(convt_tuning *tuning);
/** The name of this CPU, as records have it. */
CONVT_API const char *convt_cpu_name(void);
/** The CPUs that the process may use, which is a good number of threads: docs/using.md says how they are counted. */
CONVT_API int convt_usable_cpus(void);
/** The version of the kernels built in: a hash of their sources. */
CONVT_API const char *convt_kernels_version(void);

/** A table of kernels, which `convtranspose tune` makes and compiles. */
typedef struct convt_kernels convt_kernels;
/** Adds kernels to those built in, for all plans made afterwards. A table of another version of the library is refused. The table
 * must outlive the program's use of this library. */
CONVT_API convt_status convt_add_kernels(const convt_kernels *kernels);

/** @name What is built in
 * Lists are made when they are first asked for. If there is no memory for that, they are empty, and convt_last_error() says so.
 * @{ */
/** Number of ISAs that are built in. */
CONVT_API size_t convt_isa_count(void);
/** Name of ISA i, best first: "amx", "avx512_vnni", "avx512", "avx_vnni", "avx2", "x86_64"; "neon_dotprod", "neon_fp16",
 * "neon"; "neon32"; "wasm_simd128".
 *
 * Floats have no use for dot products of integers: asked for avx512_vnni, avx_vnni or neon_dotprod, they run, and say that they
 * run, on avx512, avx2 or neon. amx (on Linux) has kernels of bf16 and of 8-bit integers; the process is given leave to use it when
 * a plan first asks for the CPU, and subnormal bf16 numbers, below 2^-126, count as zeros there. */
CONVT_API const char *convt_isa_name(size_t i);
/** Nonzero if this CPU runs ISA i. */
CONVT_API int convt_isa_supported(size_t i);

/** Number of kinds of devices whose kernels are built in. */
CONVT_API size_t convt_device_kind_count(void);
/** Name of kind i: "cuda" or "opencl". */
CONVT_API const char *convt_device_kind_name(size_t i);
/** Number of devices of a kind. If it is 0, convt_last_error() says why. */
CONVT_API size_t convt_device_count(const char *kind);
/** The name of a device, or null if there is no such device. */
CONVT_API const char *convt_device_description(const char *kind, size_t index);

/** Number of variants that are built in. */
CONVT_API size_t convt_variant_count(void);
/** Name of variant i, in the order of the table. */
CONVT_API const char *convt_variant_name(size_t i);

/** Number of algorithms that a plan chooses from (convt_plan_algorithm()). */
CONVT_API size_t convt_algorithm_count(void);
/** Name of algorithm i, in alphabetical order; null past the last. As a variant, "direct" is the kernel of least estimated cost. */
CONVT_API const char *convt_algorithm_name(size_t i);
/** @} */

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CONVTRANSPOSE_CONVTRANSPOSE_H_ */
