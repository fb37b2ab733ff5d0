/* The C interface as C uses it: this file is compiled as C, with the same warnings as everything else. */
#include "plan/c_interface.h"

#include <string.h>

#include "convtranspose/convtranspose.h"

/* x = (1, 2), w = (1, 10, 100), stride 2: 1*(1, 10, 100) at 0 and 2*(1, 10, 100) at 2. */
const char *run_by_hand(float *y, size_t count) {
    static const int64_t x_shape[] = {1, 1, 2}, w_shape[] = {1, 1, 3}, b_shape[] = {1}, strides[] = {2};
    const float x_data[] = {1, 2}, w_data[] = {1, 10, 100}, b_data[] = {1000};
    int64_t y_shape[3] = {0, 0, 0};
    size_t rank = 0;
    convt_plan *plan = NULL;
    convt_status status;

    convt_problem problem;
    convt_attributes attributes;
    memset(&problem, 0, sizeof problem);
    memset(&attributes, 0, sizeof attributes);
    problem.struct_size = sizeof problem;
    problem.opset = 22;
    problem.dtype = CONVT_F32;
    problem.layout = CONVT_CHANNELS_FIRST;
    problem.attributes = &attributes;
    attributes.struct_size = sizeof attributes;
    attributes.group = 1;
    attributes.strides.data = strides;
    attributes.strides.size = 1;
    problem.x_shape.data = x_shape;
    problem.x_shape.size = 3;
    problem.w_shape.data = w_shape;
    problem.w_shape.size = 3;
    problem.b_shape.data = b_shape;
    problem.b_shape.size = 1;

    if (convt_infer_shape(&problem, y_shape, 3, &rank) != CONVT_OK) return convt_last_error();
    if (rank != 3 || y_shape[0] != 1 || y_shape[1] != 1 || y_shape[2] != (int64_t)count) return "y_shape is wrong";

    const convt_tensor x = {sizeof(convt_tensor), (void *)x_data, CONVT_F32, x_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor w = {sizeof(convt_tensor), (void *)w_data, CONVT_F32, w_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor b = {sizeof(convt_tensor), (void *)b_data, CONVT_F32, b_shape, NULL, 1, CONVT_HOST_MEMORY};
    const convt_tensor y_tensor = {sizeof(convt_tensor), y, CONVT_F32, y_shape, NULL, 3, CONVT_HOST_MEMORY};
    if (convt_plan_create(&problem, &w, &b, NULL, &plan) != CONVT_OK) return convt_last_error();
    status = convt_plan_run(plan, &x, NULL, NULL, &y_tensor, NULL);
    convt_plan_destroy(plan);
    return status == CONVT_OK ? NULL : convt_last_error();
}

int rejects_zero_initialised_problem(void) {
    convt_problem problem;
    convt_plan *plan = NULL;
    memset(&problem, 0, sizeof problem);
    return convt_plan_create(&problem, NULL, NULL, NULL, &plan) == CONVT_INVALID_ARGUMENT && plan == NULL &&
           strlen(convt_last_error()) > 0;
}

static int refused(convt_status status, const char *said) {
    return status == CONVT_INVALID_ARGUMENT && strstr(convt_last_error(), said) != NULL;
}

const char *rejects_unknown_enumerators(void) {
    static const int64_t x_shape[] = {1, 1, 2}, w_shape[] = {1, 1, 3}, y_shape[] = {1, 1, 4};
    static float x_data[2], w_data[3], y_data[4];
    const int unknown = 1000;
    convt_plan *plan = NULL;

    convt_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.struct_size = sizeof problem;
    problem.opset = 22;
    problem.dtype = CONVT_F32;
    problem.x_shape.data = x_shape;
    problem.w_shape.data = w_shape;
    problem.x_shape.size = problem.w_shape.size = 3;
    const convt_tensor x = {sizeof(convt_tensor), x_data, CONVT_F32, x_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor w = {sizeof(convt_tensor), w_data, CONVT_F32, w_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor y = {sizeof(convt_tensor), y_data, CONVT_F32, y_shape, NULL, 3, CONVT_HOST_MEMORY};

    convt_problem of_problem = problem;
    memcpy(&of_problem.dtype, &unknown, sizeof unknown);
    if (!refused(convt_plan_create(&of_problem, &w, NULL, NULL, &plan), "dtype = 1000")) return "dtype";
    of_problem = problem;
    memcpy(&of_problem.layout, &unknown, sizeof unknown);
    if (!refused(convt_plan_create(&of_problem, &w, NULL, NULL, &plan), "layout = 1000")) return "layout";
    of_problem = problem;
    convt_post_ops post_ops;
    memset(&post_ops, 0, sizeof post_ops);
    post_ops.struct_size = sizeof post_ops;
    memcpy(&post_ops.activation, &unknown, sizeof unknown);
    of_problem.post_ops = &post_ops;
    if (!refused(convt_plan_create(&of_problem, &w, NULL, NULL, &plan), "post_ops.activation = 1000"))
        return "activation";
    convt_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    memcpy(&options.planning, &unknown, sizeof unknown);
    if (!refused(convt_plan_create(&problem, &w, NULL, &options, &plan), "planning = 1000 is not a convt_planning"))
        return "planning";
    convt_tensor of_tensor = w;
    memcpy(&of_tensor.dtype, &unknown, sizeof unknown);
    if (!refused(convt_plan_create(&problem, &of_tensor, NULL, NULL, &plan), "w has type unknown")) return "w.dtype";

    if (convt_plan_create(&problem, &w, NULL, NULL, &plan) != CONVT_OK) return convt_last_error();
    const char *let_through = NULL;
    of_tensor = x;
    memcpy(&of_tensor.dtype, &unknown, sizeof unknown);
    if (!refused(convt_plan_run(plan, &of_tensor, NULL, NULL, &y, NULL), "x has type unknown")) let_through = "x.dtype";
    of_tensor = x;
    memcpy(&of_tensor.memory, &unknown, sizeof unknown);
    if (!refused(convt_plan_run(plan, &of_tensor, NULL, NULL, &y, NULL), "x has memory = 1000"))
        let_through = "x.memory";
    of_tensor = y;
    memcpy(&of_tensor.memory, &unknown, sizeof unknown);
    if (!refused(convt_plan_run(plan, &x, NULL, NULL, &of_tensor, NULL), "y has memory = 1000"))
        let_through = "y.memory";
    if (strcmp(convt_status_name((convt_status)unknown), "unknown") != 0) let_through = "convt_status_name";
    if (strcmp(convt_dtype_name((convt_dtype)unknown), "unknown") != 0) let_through = "convt_dtype_name";
    if (convt_dtype_size((convt_dtype)unknown) != 0) let_through = "convt_dtype_size";
    convt_plan_destroy(plan);
    return let_through;
}

int explains_no_output_channels(void) {
    static const int64_t x_shape[] = {1, 3, 5, 5}, w_shape[] = {3, 0, 2, 2};
    static const float scale = 1;
    static const int32_t zero_point = 0;
    convt_plan *plan = NULL;
    convt_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.struct_size = sizeof problem;
    problem.opset = 22;
    problem.dtype = CONVT_U8;
    problem.x_shape.data = x_shape;
    problem.w_shape.data = w_shape;
    problem.x_shape.size = problem.w_shape.size = 4;
    convt_quantization quantization;
    memset(&quantization, 0, sizeof quantization);
    quantization.struct_size = sizeof quantization;
    quantization.x_scale = quantization.y_scale = 1;
    quantization.w_scale = &scale;           /* lists of none: */
    quantization.w_zero_point = &zero_point; /* one for each of 0 output channels */
    problem.quantization = &quantization;

    const convt_tensor w = {sizeof(convt_tensor), NULL, CONVT_U8, w_shape, NULL, 4, CONVT_HOST_MEMORY};
    if (convt_plan_create(&problem, &w, NULL, NULL, &plan) != CONVT_OK) return 0;
    const int explained = strstr(convt_plan_explain(plan), "w_scale none (0 output channels)") != NULL;
    convt_plan_destroy(plan);
    return explained;
}
