// Docstrings of the extension module, which its stubs are made of too.
#pragma once

namespace convtranspose::python::docstrings {

constexpr char kTuning[] = R"(Tuning records, as `convtranspose tune` writes them; plans share them.)";

constexpr char kTuningInit[] = R"(Reads the text of a file of records.

Raises:
    ValueError: A line is no record, or one of another version of the library; the message names it.)";

constexpr char kPlan[] = R"(A layer that is ready to run: the weights are packed, and what computes it is chosen.

A plan is immutable, and may be called from several threads at once. It lets go of the interpreter's lock while it computes.)";

constexpr char kPlanInit[] = R"(Plans a layer.

Args:
    w: The weights: (C, M/group, K1..Kn). They are packed here and not referred to afterwards. None: they come with each
        call, as the bias then does; w_shape, x_dtype and bias say then what they will be.
    b: The bias: (M), of x's type; for quantized layers int32, or float32 with a float32 y.
    x_shape: Shape of x, in the layout's order.
    x_dtype: Type of x: "uint8" or "int8" for quantized layers, "float32" for light weights. None: that of w.
    y_dtype: Type of y, for quantized layers: "uint8", "int8" or "float32". None: that of x.
    w_shape: Shape of the weights, if w is None.
    w_dtype: Type of the weights, if w is None. None: that of x.
    bias: Whether a bias comes with each call, if w is None.
    quantizes_x: Whether each call quantizes its float32 x to uint8, for w of uint8 or int8, as conv_transpose() says.
    residual: Whether an array of y's shape comes with each call, to be added before the activation.
    tuning: Records of what was measured to be the fastest; None: those of the file that the environment variable
        CONVTRANSPOSE_TUNING names.

The attributes, the layout, the activation, threads and what follows them are those of conv_transpose(). Scales and zero
points are those of qlinear_conv_transpose(), with light weights those of w alone; if all are None, they come with each call.

Raises:
    ValueError: A value breaks a rule of the operator, or a size does not fit; the message names both.
    TypeError: An argument is of the wrong kind, or an array of a type that the operator does not take.
    NotImplementedError: A variant, an instruction set or a device that cannot be had here was asked for.
    MemoryError: Memory ran out.)";

constexpr char kPlanCall[] = R"(Computes y.

Args:
    x: The input, of the planned shape and type. Views are read where they are if their last axis is dense and all
        strides are positive; others are copied.
    out: The array that y is written to and that is returned, which may be a view. None: a new one, of the same library
        as x.
    residual: What is added before the activation, of y's shape and type, if the plan adds it.
    w: The weights, if they come with each call.
    b: The bias, likewise.
    x_scale: Scales and zero points of this call alone, if they were not given to the plan; so are those that follow.

Raises:
    ValueError: An array does not fit the plan; the message names the rule. Nothing was written.
    TypeError: An argument is of the wrong kind.
    MemoryError: Memory ran out.)";

constexpr char kPlanReshape[] =
    R"(Makes a plan for another shape of x, with the same rank and channels, which shares the packed weights.

Raises:
    ValueError: The shape does not fit the layer.)";

constexpr char kPlanExplain[] = R"(Returns geometry, taps, candidates, choice and reason, as text for a person.)";

constexpr char kPlanCandidates[] =
    R"(Returns the names of all that can compute the layer on this CPU, by rising estimated cost.)";

constexpr char kPlanXShape[] = R"(Shape of x, in the layout's order.)";

constexpr char kPlanYShape[] = R"(Shape of y, in the layout's order.)";

constexpr char kPlanXDtype[] = R"(Type of x, such as "float32".)";

constexpr char kPlanYDtype[] = R"(Type of y.)";

constexpr char kPlanProblem[] = R"(The name that tuning records know the layer by.)";

constexpr char kPlanRecord[] =
    R"(What the plan does, as a tuning record: a line of JSON. A plan with Tuning(record) makes the same choice without measuring.)";

constexpr char kPlanAlgorithm[] = R"(Name of the chosen algorithm, such as "direct" or "winograd".)";

constexpr char kPlanVariant[] = R"(Name of the kernel that computes the layer.)";

constexpr char kPlanIsa[] = R"(Name of the instruction set that it runs on, such as "avx2".)";

constexpr char kPlanDevice[] = R"("cpu", or the name of the device.)";

constexpr char kPlanThreads[] = R"(Number of threads that was asked for.)";

constexpr char kPlanMacs[] = R"(Multiply-adds of the definition; cropped ones are left out.)";

constexpr char kPlanWorkspaceBytes[] = R"(Bytes of memory that a call needs beside its arrays; the plan keeps them.)";

constexpr char kPlanPackedBytes[] = R"(Bytes of packed weights and bias.)";

constexpr char kInferShape[] =
    R"(Returns the shape of y from attributes and shapes alone; arguments and errors are those of conv_transpose().)";

constexpr char kVersion[] = R"(Returns the version of the library, such as "0.2.0".)";

constexpr char kCpuName[] = R"(Returns the name of this CPU, as tuning records have it.)";

constexpr char kIsas[] =
    R"(Returns the names of the instruction sets that are built in and that this CPU runs, best first.)";

constexpr char kVariants[] = R"(Returns the names of the kernels that are built in.)";

constexpr char kAlgorithms[] =
    R"(Returns the names of the algorithms that plans choose from. All but "direct" may be named as a variant.)";

constexpr char kDevices[] =
    R"(Returns the names of the devices whose kernels are built in and that are there, such as "cuda:0".)";

} // namespace convtranspose::python::docstrings
