/* Sets a field that the library does not know yet: the call says so. */
#include <convtranspose/convtranspose.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    static const int64_t x_shape[] = {1, 1, 2}, w_shape[] = {1, 1, 2};
    const convt_attributes attributes = {.struct_size = sizeof attributes, .group = 1, .later = 1};
    const convt_problem problem = {.struct_size = sizeof problem,
                                   .opset = 22,
                                   .dtype = CONVT_F32,
                                   .x_shape = {x_shape, 3},
                                   .w_shape = {w_shape, 3},
                                   .attributes = &attributes};
    int64_t y_shape[3];
    size_t rank = 0;
    const convt_status status = convt_infer_shape(&problem, y_shape, 3, &rank);
    printf("%s: %s\n", convt_status_name(status), convt_last_error());
    return status == CONVT_UNSUPPORTED && strstr(convt_last_error(), "attributes") ? 0 : 1;
}
