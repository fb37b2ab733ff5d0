/* The functions of c_interface.c that c_interface_test.cpp calls. */
#ifndef CONVTRANSPOSE_TESTS_PLAN_C_INTERFACE_H_
#define CONVTRANSPOSE_TESTS_PLAN_C_INTERFACE_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes y of a problem that is easily worked out, if it has `count` elements. Returns NULL, or what went wrong. */
const char *run_by_hand(float *y, size_t count);

/* Whether a problem that is all zeros is refused with a message. */
int rejects_zero_initialised_problem(void);

/* Returns NULL if integers that are no enumerators are refused wherever an enumerator is expected, or where one was let through. */
const char *rejects_unknown_enumerators(void);

/* Whether a quantized plan of no output channels, whose lists of scales and zero points are empty, has an explanation. */
int explains_no_output_channels(void);

#ifdef __cplusplus
}
#endif

#endif /* CONVTRANSPOSE_TESTS_PLAN_C_INTERFACE_H_ */
