/* Opens the library, runs a plan on several threads, and closes it while those wait for work, several times over. */
#include <convtranspose/convtranspose.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Functions are not looked up as pointers to data, as ISO C has it. */
#define LOOK_UP(function)                                                                                              \
    do {                                                                                                               \
        void *const symbol = dlsym(library, "convt_" #function);                                                       \
        if (!symbol) return dlerror();                                                                                 \
        memcpy(&function, &symbol, sizeof symbol);                                                                     \
    } while (0)

enum { kChannels = 8, kExtent = 32, kThreads = 4 };

static const char *run_once(void) {
    static float x[kChannels * kExtent * kExtent], w[kChannels * 4], y[kChannels * 4 * kExtent * kExtent];
    static const int64_t x_shape[] = {1, kChannels, kExtent, kExtent}, w_shape[] = {kChannels, 1, 2, 2},
                         y_shape[] = {1, kChannels, 2 * kExtent, 2 * kExtent}, strides[] = {2, 2};
    convt_status (*plan_create)(const convt_problem *, const convt_tensor *, const convt_tensor *,
                                const convt_options *, convt_plan **);
    convt_status (*plan_run)(const convt_plan *, const convt_tensor *, const convt_tensor *, const convt_tensor *,
                             const convt_tensor *, void *);
    void (*plan_destroy)(convt_plan *);
    void *const library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    LOOK_UP(plan_create);
    LOOK_UP(plan_run);
    LOOK_UP(plan_destroy);

    const convt_attributes attributes = {.struct_size = sizeof attributes, .group = kChannels, .strides = {strides, 2}};
    convt_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.struct_size = sizeof problem;
    problem.opset = 22;
    problem.dtype = CONVT_F32;
    problem.attributes = &attributes;
    problem.x_shape.data = x_shape;
    problem.w_shape.data = w_shape;
    problem.x_shape.size = problem.w_shape.size = 4;
    convt_options options;
    memset(&options, 0, sizeof options);
    options.struct_size = sizeof options;
    options.threads = kThreads;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = 1;
    for (size_t i = 0; i < sizeof w / sizeof *w; i++) w[i] = 2;
    memset(y, 0, sizeof y);

    const convt_tensor tx = {sizeof(convt_tensor), x, CONVT_F32, x_shape, NULL, 4, CONVT_HOST_MEMORY},
                       tw = {sizeof(convt_tensor), w, CONVT_F32, w_shape, NULL, 4, CONVT_HOST_MEMORY},
                       ty = {sizeof(convt_tensor), y, CONVT_F32, y_shape, NULL, 4, CONVT_HOST_MEMORY};
    convt_plan *plan = NULL;
    if (plan_create(&problem, &tw, NULL, &options, &plan) != CONVT_OK) return "no plan";
    const convt_status status = plan_run(plan, &tx, NULL, NULL, &ty, NULL);
    plan_destroy(plan);
    if (dlclose(library) != 0) return dlerror();
    if (status != CONVT_OK) return "the run failed";
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        if (y[i] != 2) return "y is wrong";
    }
    return NULL;
}

int main(void) {
    for (int i = 0; i < 5; i++) {
        const char *const error = run_once();
        if (error) {
            fprintf(stderr, "time %d: %s\n", i, error);
            return 1;
        }
        usleep(2000 * (unsigned int)i); /* for threads that wait, awake and asleep */
    }
    return 0;
}
