#include <convtranspose/convtranspose.h>
#include <stdio.h>

int main(void) {
    /* One row of one channel, twice as wide: each pixel of x, 1 and 2, times a kernel of 1 and 10. */
    static const int64_t x_shape[] = {1, 1, 1, 2}, w_shape[] = {1, 1, 1, 2}, y_shape[] = {1, 1, 1, 4},
                         strides[] = {1, 2};
    static float x[] = {1, 2}, w[] = {1, 10}, y[4];
    const convt_attributes attributes = {.struct_size = sizeof attributes, .group = 1, .strides = {strides, 2}};
    convt_problem problem = {.struct_size = sizeof problem, .opset = 22, .dtype = CONVT_F32, .attributes = &attributes};
    problem.x_shape = (convt_ints){x_shape, 4};
    problem.w_shape = (convt_ints){w_shape, 4};

    const convt_tensor x_tensor = {sizeof(convt_tensor), x, CONVT_F32, x_shape, NULL, 4, CONVT_HOST_MEMORY},
                       w_tensor = {sizeof(convt_tensor), w, CONVT_F32, w_shape, NULL, 4, CONVT_HOST_MEMORY},
                       y_tensor = {sizeof(convt_tensor), y, CONVT_F32, y_shape, NULL, 4, CONVT_HOST_MEMORY};
    convt_plan *plan = NULL;
    convt_status status = convt_plan_create(&problem, &w_tensor, NULL, NULL, &plan);
    if (status == CONVT_OK) status = convt_plan_run(plan, &x_tensor, NULL, NULL, &y_tensor, NULL);
    if (status != CONVT_OK) {
        fprintf(stderr, "%s\n", convt_last_error());
        return 1;
    }
    printf("%g %g %g %g by %s\n", y[0], y[1], y[2], y[3], convt_plan_variant(plan));
    convt_plan_destroy(plan);
    return y[0] == 1 && y[1] == 10 && y[2] == 2 && y[3] == 20 ? 0 : 1;
}
