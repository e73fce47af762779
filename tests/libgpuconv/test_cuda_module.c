/* Tests that a module libgpuconv-cuda of another version is refused, with a reason. Such a module is beside this
 * program. */
#include "harness.h"
#include "libgpuconv/conv/backend.h"

#include <pthread.h>
#include <string.h>

static const char said[] = "libgpuconv-cuda has version 0.0.9, and the library " GPUCONV_VERSION;

static void *ask(void *arg) {
    const char *why = NULL;
    return !gc_cuda_module_find(&why) && strstr(why, said) ? arg : NULL;
}

static void threads_that_ask_at_once_all_hear_why(void **state) {
    (void)state;
    pthread_t thread[8];
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, ask, thread), 0);
    for (size_t i = 0; i < 8; i++) {
        void *right;
        assert_int_equal(pthread_join(thread[i], &right), 0);
        assert_non_null(right);
    }
}

static void a_module_of_another_version_is_refused_and_the_plan_says_so(void **state) {
    (void)state;
    const float one = 1, *const tap = &one;
    gpuconv_ir *ir;
    gpuconv_plan *plan;
    gpuconv_arrays *arrays;
    gpuconv_error error = {0};
    gpuconv_config config = gpuconv_config_default();
    assert_int_equal(gpuconv_ir_new(&tap, 1, 1, 48000, &ir, &error), GPUCONV_OK);
    config.backend = GPUCONV_BACKEND_CUDA;
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_ERROR_DEVICE);
    CHECK(strstr(error.message, said), "%s", error.message);
    assert_int_equal(gpuconv_arrays_new_cuda(0, &arrays, &error), GPUCONV_ERROR_UNSUPPORTED);
    CHECK(strstr(error.message, said), "%s", error.message);
    config.backend = GPUCONV_BACKEND_AUTO;
    config.frames = INT64_C(48000) * 360000; /* long enough for a GPU to be faster */
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, &error), GPUCONV_OK);
    CHECK(strstr(gpuconv_plan_reason(plan), said), "%s", gpuconv_plan_reason(plan));
    gpuconv_plan_free(plan);
    gpuconv_ir_free(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_ask_at_once_all_hear_why),
        cmocka_unit_test(a_module_of_another_version_is_refused_and_the_plan_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
