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
    memset(&problem, 0, sizeof problem);
    problem.opset = 22;
    problem.dtype = CONVT_F32;
    problem.layout = CONVT_CHANNELS_FIRST;
    problem.attributes.group = 1;
    problem.attributes.strides.data = strides;
    problem.attributes.strides.size = 1;
    problem.x_shape.data = x_shape;
    problem.x_shape.size = 3;
    problem.w_shape.data = w_shape;
    problem.w_shape.size = 3;
    problem.b_shape.data = b_shape;
    problem.b_shape.size = 1;

    if (convt_infer_shape(&problem, y_shape, 3, &rank) != CONVT_OK) return convt_last_error();
    if (rank != 3 || y_shape[0] != 1 || y_shape[1] != 1 || y_shape[2] != (int64_t)count) return "y_shape is wrong";

    const convt_tensor x = {(void *)x_data, CONVT_F32, x_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor w = {(void *)w_data, CONVT_F32, w_shape, NULL, 3, CONVT_HOST_MEMORY};
    const convt_tensor b = {(void *)b_data, CONVT_F32, b_shape, NULL, 1, CONVT_HOST_MEMORY};
    const convt_tensor y_tensor = {y, CONVT_F32, y_shape, NULL, 3, CONVT_HOST_MEMORY};
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
