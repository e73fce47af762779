/* Tests of the checks of jobs on device memory (gpuconv_cuda.h), which need no GPU and run in every build: each message
 * names the field and the value. */
#include "check.h"
#include "libgpuconv/cuda/job_shape.h"

#include <inttypes.h>

static float memory[64]; /* stands for device memory; nothing reads it */

/* Returns a job that is accepted: three rows of 10 frames, three responses of 4 taps. */
static gpuconv_cuda_job good_job(void) {
    gpuconv_cuda_job job = gpuconv_cuda_job_default();
    job.signal = (gpuconv_cuda_array){.data = memory, .rows = 3, .frames = 10, .stride = 10};
    job.response = (gpuconv_cuda_array){.data = memory + 1, .rows = 3, .frames = 4, .stride = 4};
    job.output = (gpuconv_cuda_array){.data = memory + 2, .rows = 3, .frames = 13, .stride = 13};
    return job;
}

/* Checks that the job is refused with a message that contains `field` and, if it is not NULL, `value`. */
static void refused(const gpuconv_cuda_job *job, const char *field, const char *value) {
    gc_job_shape shape;
    gpuconv_error error = {0};
    gpuconv_status status = gc_job_check(job, 0, 0, (gc_job_routes){0}, &shape, &error);
    if (!status)
        status = gc_job_check_pointers(job, &error);
    CHECK(status == GPUCONV_ERROR_ARGUMENT, "%s: accepted", field);
    CHECK(error.status == GPUCONV_ERROR_ARGUMENT, "%s: the error has another status", field);
    CHECK(strstr(error.message, field) && (!value || strstr(error.message, value)), "%s, %s: %s", field,
          value ? value : "", error.message);
}

static void accepted(const gpuconv_cuda_job *job) {
    gc_job_shape shape;
    gpuconv_error error = {0};
    CHECK(!gc_job_check(job, 0, 0, (gc_job_routes){0}, &shape, &error), "%s", error.message);
    CHECK(!gc_job_check_pointers(job, &error), "%s", error.message);
}

static void test_a_good_job_is_accepted(void **state) {
    (void)state;
    gpuconv_cuda_job job = good_job();
    gc_job_shape shape;
    accepted(&job);
    job.group = 100;
    job.response.rows = 1;
    CHECK(!gc_job_check(&job, 0, 0, (gc_job_routes){0}, &shape, NULL), "one response for all rows");
    assert_int_equal(shape.rows, 3);
    assert_int_equal(shape.group, 3);
    assert_int_equal(shape.responses, 1);
    assert_int_equal(shape.taps, 4);
    job.signal.stride = 0; /* the same row three times */
    accepted(&job);
    job.offset = -GC_JOB_FRAMES_MAX;
    accepted(&job);
}

static void test_a_job_that_was_not_made_by_its_default_is_refused(void **state) {
    (void)state;
    gpuconv_cuda_job job = good_job(), own;
    gpuconv_error error = {0};
    CHECK(!gc_job_read(&job, &own, &error) && own.group == 1, "%s", error.message);
    job.size = 0;
    CHECK(gc_job_read(&job, &own, &error) == GPUCONV_ERROR_ARGUMENT && strstr(error.message, "gpuconv_cuda_job"), "%s",
          error.message);
}

static void test_every_array_is_checked(void **state) {
    (void)state;
    static const char *const names[] = {"job.signal", "job.response", "job.output"};
    for (int i = 0; i < 3; i++) {
        gpuconv_cuda_job job = good_job();
        gpuconv_cuda_array *array = i == 0 ? &job.signal : i == 1 ? &job.response : &job.output;
        const gpuconv_cuda_array good = *array;
        char field[40];
        const struct {
            const char *name, *value;
            gpuconv_cuda_array bad;
        } all[] = {{"type", "7", {.type = (gpuconv_cuda_type)7, .rows = 3, .frames = 10, .stride = 10}},
                   {"type", "-1", {.type = (gpuconv_cuda_type)-1, .rows = 3, .frames = 10, .stride = 10}},
                   {"rows", "0", {.rows = 0, .frames = 10, .stride = 10}},
                   {"rows", "1073741825", {.rows = (INT64_C(1) << 30) + 1, .frames = 10, .stride = 10}},
                   {"frames", "0", {.rows = 3, .frames = 0, .stride = 10}},
                   {"frames", "1099511627777", {.rows = 3, .frames = GC_JOB_FRAMES_MAX + 1, .stride = 10}},
                   {"stride", "-1", {.rows = 3, .frames = 10, .stride = -1}},
                   {"stride", "9223372036854775807", {.rows = 3, .frames = 10, .stride = INT64_MAX}},
                   {"data", "NULL", {.rows = good.rows, .frames = good.frames, .stride = good.stride}},
                   {"data",
                    NULL,
                    {.data = (char *)memory + 2, .rows = good.rows, .frames = good.frames, .stride = good.stride}}};
        for (int k = 0; k < COUNT(all); k++) {
            *array = all[k].bad;
            snprintf(field, sizeof field, "%s.%s", names[i], all[k].name);
            refused(&job, field, all[k].value);
        }
        *array = good;
        array->lengths = (const int64_t *)(const void *)((const char *)memory + 4);
        if ((uintptr_t)array->lengths % 8)
            refused(&job, "lengths", "8 bytes");
    }
}

static void test_rows_that_are_written_may_not_overlap(void **state) {
    (void)state;
    gpuconv_cuda_job job = good_job();
    job.output.stride = 12;
    refused(&job, "job.output.stride", "12");
    job.output.starts = (const int64_t *)(const void *)memory;
    accepted(&job);
    job = good_job();
    job.operation = GPUCONV_CUDA_GRADIENT_SIGNAL;
    job.output.stride = 0; /* read: legal */
    accepted(&job);
    job.signal.stride = 9;
    refused(&job, "job.signal.stride", "9");
    job = good_job();
    job.output.data = job.response.data;
    refused(&job, "job.response.data", NULL);
}

static void test_shapes_must_fit(void **state) {
    (void)state;
    gpuconv_cuda_job job = good_job();
    job.operation = (gpuconv_cuda_operation)3;
    refused(&job, "job.operation", "3");
    job = good_job();
    job.group = 0;
    refused(&job, "job.group", "0");
    job = good_job();
    job.output.rows = 4;
    refused(&job, "job.output.rows", "4");
    job = good_job();
    job.response.rows = 4;
    refused(&job, "job.response.rows", "4");
    job = good_job();
    job.group = 2;
    refused(&job, "job.response.rows", "2 groups");
    job = good_job();
    job.offset = GC_JOB_FRAMES_MAX + 1;
    refused(&job, "job.offset", "1099511627777");
    job = good_job();
    job.gain = (const float *)(const void *)((const char *)memory + 2);
    refused(&job, "job.gain", NULL);
}

static void test_routes_fix_the_rows(void **state) {
    (void)state;
    const gc_job_routes routes = {2, 3, 5};
    gpuconv_cuda_responses *const prepared = (gpuconv_cuda_responses *)(void *)memory; /* not read */
    gc_job_shape shape;
    gpuconv_error error = {0};
    gpuconv_cuda_job job = good_job();
    job.prepared = prepared;
    CHECK(gc_job_check(&job, 4, 5, routes, &shape, &error) && strstr(error.message, "2 inputs"), "%s", error.message);
    job.signal.rows = 4;
    CHECK(gc_job_check(&job, 4, 5, routes, &shape, &error) && strstr(error.message, "job.output.rows is 3"), "%s",
          error.message);
    job.output.rows = 6;
    CHECK(!gc_job_check(&job, 4, 5, routes, &shape, &error), "%s", error.message);
    assert_int_equal(shape.batch, 2);
    job.group = 2;
    CHECK(gc_job_check(&job, 4, 5, routes, &shape, &error) && strstr(error.message, "job.group"), "%s", error.message);
    job.group = 1;
    job.operation = GPUCONV_CUDA_GRADIENT_RESPONSE;
    CHECK(gc_job_check(&job, 4, 5, routes, &shape, &error) && strstr(error.message, "job.response.rows is 3"), "%s",
          error.message);
    job.response.rows = 5;
    CHECK(!gc_job_check(&job, 4, 5, routes, &shape, &error), "%s", error.message);
}

/* Where there is no GPU, or no CUDA in the build, the status says so and no object is made. */
static void test_without_a_gpu_the_status_says_so(void **state) {
    (void)state;
    gpuconv_error error = {0};
    gpuconv_cuda *cuda = (gpuconv_cuda *)(void *)memory;
    const gpuconv_status status = gpuconv_cuda_new(-1, &cuda, &error);
    if (status) {
        CHECK(status == GPUCONV_ERROR_DEVICE || status == GPUCONV_ERROR_UNSUPPORTED, "status %d", status);
        CHECK(error.message[0] && !cuda, "no reason, or an object");
    }
    gpuconv_cuda_free(status ? NULL : cuda);
    gpuconv_cuda_responses_free(NULL);
    gpuconv_cuda_streamer_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_job_is_accepted),
        cmocka_unit_test(test_a_job_that_was_not_made_by_its_default_is_refused),
        cmocka_unit_test(test_every_array_is_checked),
        cmocka_unit_test(test_rows_that_are_written_may_not_overlap),
        cmocka_unit_test(test_shapes_must_fit),
        cmocka_unit_test(test_routes_fix_the_rows),
        cmocka_unit_test(test_without_a_gpu_the_status_says_so),
    };
    return cmocka_run_group_tests_name("device_job", tests, NULL, NULL);
}
