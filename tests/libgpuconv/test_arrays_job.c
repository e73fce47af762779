/* Tests of the checks of jobs (gpuconv_arrays.h), as a place on a device asks for them, which need no GPU and run in
 * every build: each message names the field and the value. */
#include "check.h"
#include "libgpuconv/conv/backend.h"

#include <inttypes.h>

static float memory[64];                       /* stands for device memory; nothing reads it */
static const gpuconv_arrays place = {NULL, 0}; /* device 0 */

/* Returns a job that is accepted: three rows of 10 frames, three responses of 4 taps. */
static gpuconv_arrays_job good_job(void) {
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = (gpuconv_rows){.data = memory, .rows = 3, .frames = 10, .stride = 10, .step = 1};
    job.response = (gpuconv_rows){.data = memory + 1, .rows = 3, .frames = 4, .stride = 4, .step = 1};
    job.output = (gpuconv_rows){.data = memory + 2, .rows = 3, .frames = 13, .stride = 13, .step = 1};
    return job;
}

static gpuconv_arrays_job both_gradients(void) {
    gpuconv_arrays_job job = good_job();
    job.operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
    job.signal_gradient = job.signal;
    job.signal_gradient.data = memory + 3;
    job.response_gradient = job.response;
    job.response_gradient.data = memory + 4;
    return job;
}

/* Checks that the job is refused with a message that contains `field` and, if it is not NULL, `value`. */
static void refused(const gpuconv_arrays_job *job, const char *field, const char *value) {
    gc_job_shape shape;
    gpuconv_error error = {0};
    gpuconv_status status = gc_job_check(&place, job, &shape, &error);
    if (!status)
        status = gc_job_check_pointers(job, &error);
    CHECK(status == GPUCONV_ERROR_ARGUMENT, "%s: accepted", field);
    CHECK(error.status == GPUCONV_ERROR_ARGUMENT, "%s: the error has another status", field);
    CHECK(strstr(error.message, field) && (!value || strstr(error.message, value)), "%s, %s: %s", field,
          value ? value : "", error.message);
}

static void accepted(const gpuconv_arrays_job *job) {
    gc_job_shape shape;
    gpuconv_error error = {0};
    CHECK(!gc_job_check(&place, job, &shape, &error), "%s", error.message);
    CHECK(!gc_job_check_pointers(job, &error), "%s", error.message);
}

static void test_a_good_job_is_accepted(void **state) {
    (void)state;
    gpuconv_arrays_job job = good_job();
    gc_job_shape shape;
    accepted(&job);
    job.group = 100;
    job.response.rows = 1;
    CHECK(!gc_job_check(&place, &job, &shape, NULL), "one response for all rows");
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
    gpuconv_arrays_job job = good_job();
    gpuconv_arrays *cpu;
    gpuconv_error error = {0};
    size_t bytes;
    CHECK(!gpuconv_arrays_new_cpu(1, &cpu, &error), "%s", error.message);
    CHECK(!gpuconv_arrays_workspace(cpu, &job, &bytes, &error), "%s", error.message);
    job.size = 0;
    CHECK(gpuconv_arrays_workspace(cpu, &job, &bytes, &error) == GPUCONV_ERROR_ARGUMENT &&
              strstr(error.message, "gpuconv_arrays_job"),
          "%s", error.message);
    gpuconv_arrays_free(cpu);
}

static void test_every_array_is_checked(void **state) {
    (void)state;
    static const char *const names[] = {"job.signal", "job.response", "job.output", "job.signal_gradient",
                                        "job.response_gradient"};
    for (int i = 0; i < 5; i++) {
        gpuconv_arrays_job job = i < 3 ? good_job() : both_gradients();
        gpuconv_rows *const arrays[] = {&job.signal, &job.response, &job.output, &job.signal_gradient,
                                        &job.response_gradient};
        gpuconv_rows *array = arrays[i];
        const gpuconv_rows good = *array;
        char field[40];
        const struct {
            const char *name, *value;
            gpuconv_rows bad;
        } all[] = {
            {"type", "7", {.type = (gpuconv_sample_type)7, .rows = 3, .frames = 10, .stride = 10, .step = 1}},
            {"type", "-1", {.type = (gpuconv_sample_type)-1, .rows = 3, .frames = 10, .stride = 10, .step = 1}},
            {"rows", "0", {.rows = 0, .frames = 10, .stride = 10, .step = 1}},
            {"rows", "1073741825", {.rows = (INT64_C(1) << 30) + 1, .frames = 10, .stride = 10, .step = 1}},
            {"frames", "0", {.rows = 3, .frames = 0, .stride = 10, .step = 1}},
            {"frames", "1099511627777", {.rows = 3, .frames = GC_JOB_FRAMES_MAX + 1, .stride = 10, .step = 1}},
            {"stride", "-1", {.rows = 3, .frames = 10, .stride = -1, .step = 1}},
            {"stride", "9223372036854775807", {.rows = 3, .frames = 10, .stride = INT64_MAX, .step = 1}},
            {"step", "536870912", {.rows = 3, .frames = 4, .stride = 10, .step = 1 << 29}},
            {"data", "NULL", {.rows = good.rows, .frames = good.frames, .stride = good.stride, .step = 1}},
            {"data",
             NULL,
             {.data = (char *)memory + 2, .rows = good.rows, .frames = good.frames, .stride = good.stride, .step = 1}}};
        for (int k = 0; k < COUNT(all); k++) {
            *array = all[k].bad;
            snprintf(field, sizeof field, "%s.%s", names[i], all[k].name);
            refused(&job, field, all[k].value);
        }
        *array = good;
        array->lengths = (const int64_t *)(const void *)((const char *)memory + 2);
        if ((uintptr_t)array->lengths % _Alignof(int64_t))
            refused(&job, "lengths", _Alignof(int64_t) == 8 ? "8 bytes" : "4 bytes");
    }
}

static void test_both_gradients_have_the_shapes_and_none_of_the_memory_of_what_they_come_from(void **state) {
    (void)state;
    gpuconv_arrays_job job = both_gradients();
    accepted(&job);
    job.signal_gradient.rows = 2;
    refused(&job, "job.signal_gradient", "2 rows of 10 frames; use 3 of 10");
    job = both_gradients();
    job.response_gradient.frames = 3;
    refused(&job, "job.response_gradient", "3 rows of 3 frames; use 3 of 4");
    job = both_gradients();
    job.signal_gradient.data = job.signal.data;
    refused(&job, "job.signal_gradient.data", NULL);
    job = both_gradients();
    job.response_gradient.data = job.response.data;
    refused(&job, "job.response_gradient.data", NULL);
    job = both_gradients();
    job.response_gradient.data = job.signal_gradient.data;
    refused(&job, "job.signal_gradient.data", NULL);
    job = both_gradients();
    job.signal_gradient.data = job.output.data;
    refused(&job, ".data", NULL);
}

static void test_rows_that_are_written_may_not_overlap(void **state) {
    (void)state;
    gpuconv_arrays_job job = good_job();
    job.output.stride = 12;
    refused(&job, "job.output.stride", "12");
    job.output.starts = (const int64_t *)(const void *)memory;
    accepted(&job);
    job = good_job();
    job.operation = GPUCONV_ARRAYS_GRADIENT_SIGNAL;
    job.output.stride = 0; /* read: legal */
    accepted(&job);
    job.signal.stride = 9;
    refused(&job, "job.signal.stride", "9");
    job = good_job();
    job.output.data = job.response.data;
    refused(&job, "job.response.data", NULL);
}

/* Rows may be interleaved or backwards, and still may not overlap where they are written. The rows of a GPU follow one
 * another forwards. */
static void test_rows_have_steps(void **state) {
    (void)state;
    const gpuconv_arrays cpu = {NULL, -1};
    static const struct {
        int64_t stride, step;
        bool read, written;
    } cases[] = {{1, 3, true, true},   {1, 2, true, false}, {-13, 1, true, true},         {13, -1, true, true},
                 {12, 1, true, false}, {0, 1, true, false}, {13, 0, true, false},         {-1, -3, true, true},
                 {24, 2, true, false}, {25, 2, true, true}, {INT64_MAX, 1, false, false}, {1, INT64_MIN, false, false}};
    for (int i = 0; i < COUNT(cases); i++)
        for (int n = 0; n < 4; n++) {
            const bool written = n % 2, gpu = n / 2, legal = !gpu || cases[i].stride >= 0;
            gpuconv_arrays_job job = good_job();
            gc_job_shape shape;
            gpuconv_error error = {0};
            job.operation = written ? GPUCONV_ARRAYS_CONVOLVE : GPUCONV_ARRAYS_GRADIENT_SIGNAL;
            job.output.stride = cases[i].stride;
            job.output.step = cases[i].step;
            const bool fits = gc_job_check(gpu ? &place : &cpu, &job, &shape, &error) == GPUCONV_OK;
            CHECK(fits == (legal && (written ? cases[i].written : cases[i].read)), "case %d: %s", i, error.message);
            CHECK(fits || strstr(error.message, "job.output.st"), "case %d: %s", i, error.message);
        }
}

static void test_shapes_must_fit(void **state) {
    (void)state;
    gpuconv_arrays_job job = good_job();
    job.operation = (gpuconv_arrays_operation)4;
    refused(&job, "job.operation", "4");
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
    gpuconv_responses prepared = {.rows = 5, .taps = 4, .routes = {2, 3, 5}};
    gc_job_shape shape;
    gpuconv_error error = {0};
    gpuconv_arrays_job job = good_job();
    job.prepared = &prepared;
    CHECK(gc_job_check(&place, &job, &shape, &error) && strstr(error.message, "2 inputs"), "%s", error.message);
    job.signal.rows = 4;
    CHECK(gc_job_check(&place, &job, &shape, &error) && strstr(error.message, "job.output.rows is 3"), "%s",
          error.message);
    job.output.rows = 6;
    CHECK(!gc_job_check(&place, &job, &shape, &error), "%s", error.message);
    assert_int_equal(shape.batch, 2);
    job.group = 2;
    CHECK(gc_job_check(&place, &job, &shape, &error) && strstr(error.message, "job.group"), "%s", error.message);
    job.group = 1;
    job.operation = GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    CHECK(gc_job_check(&place, &job, &shape, &error) && strstr(error.message, "job.response.rows is 3"), "%s",
          error.message);
    job.response.rows = 5;
    CHECK(!gc_job_check(&place, &job, &shape, &error), "%s", error.message);
}

/* Where there is no GPU, or no CUDA in the build, the status says so and no object is made. */
static void test_without_a_gpu_the_status_says_so(void **state) {
    (void)state;
    gpuconv_error error = {0};
    gpuconv_arrays *cuda = (gpuconv_arrays *)(void *)memory;
    const gpuconv_status status = gpuconv_arrays_new_cuda(-1, &cuda, &error);
    if (status) {
        CHECK(status == GPUCONV_ERROR_DEVICE || status == GPUCONV_ERROR_UNSUPPORTED, "status %d", status);
        CHECK(error.message[0] && !cuda, "no reason, or an object");
    }
    gpuconv_arrays_free(status ? NULL : cuda);
    gpuconv_responses_free(NULL);
    gpuconv_streamer_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_job_is_accepted),
        cmocka_unit_test(test_a_job_that_was_not_made_by_its_default_is_refused),
        cmocka_unit_test(test_every_array_is_checked),
        cmocka_unit_test(test_both_gradients_have_the_shapes_and_none_of_the_memory_of_what_they_come_from),
        cmocka_unit_test(test_rows_that_are_written_may_not_overlap),
        cmocka_unit_test(test_rows_have_steps),
        cmocka_unit_test(test_shapes_must_fit),
        cmocka_unit_test(test_routes_fix_the_rows),
        cmocka_unit_test(test_without_a_gpu_the_status_says_so),
    };
    return cmocka_run_group_tests_name("arrays_job", tests, NULL, NULL);
}
