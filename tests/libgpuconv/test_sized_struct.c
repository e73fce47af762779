/* Tests that programs and libraries of different versions understand each other's structures. */
#include "check.h"
#include "gpuconv.h"
#include "libgpuconv/core/sized_struct.h"

typedef struct first_version {
    size_t size;
    int32_t a, b;
} first_version;

typedef struct second_version {
    size_t size;
    int32_t a, b;
    int64_t c;
} second_version;

static gpuconv_status read_second(const void *from, second_version *own, gpuconv_error *error) {
    *own = (second_version){.c = 77};
    return gc_sized_struct_read(&(gc_sized_struct){own, sizeof *own, GC_SIZE_UP_TO(second_version, b), "gpuconv_test"},
                                from, error);
}

static void an_older_program_gets_defaults(void **state) {
    (void)state;
    second_version own;
    const first_version old = {sizeof old, 1, 2};
    assert_int_equal(read_second(&old, &own, NULL), GPUCONV_OK);
    assert_int_equal(own.a, 1);
    assert_int_equal(own.b, 2);
    assert_int_equal(own.c, 77);
    assert_int_equal(own.size, sizeof own);
}

static void a_newer_program_may_leave_new_fields_zero(void **state) {
    (void)state;
    struct {
        second_version known;
        int64_t added;
    } newer = {{sizeof newer, 1, 2, 3}, 0};
    second_version own;
    gpuconv_error error = {0};
    assert_int_equal(read_second(&newer, &own, &error), GPUCONV_OK);
    assert_int_equal(own.c, 3);
    newer.added = INT64_C(1) << 56; /* the last byte */
    assert_int_equal(read_second(&newer, &own, &error), GPUCONV_ERROR_ARGUMENT);
    CHECK(strstr(error.message, "gpuconv_test has a field"), "%s", error.message);
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, sizeof(first_version) - 1, 4097, SIZE_MAX};
    second_version own;
    for (int i = 0; i < COUNT(sizes); i++) {
        gpuconv_error error = {0};
        const second_version bad = {.size = sizes[i]};
        assert_int_equal(read_second(&bad, &own, &error), GPUCONV_ERROR_ARGUMENT);
        CHECK(strstr(error.message, "gpuconv_test_default()"), "%s", error.message);
    }
}

/* The program's structure is shorter than the library's by its last field, or longer; no byte behind it is written. */
static void initialising_respects_the_size_of_the_caller(void **state) {
    (void)state;
    unsigned char bytes[256];
    static const size_t sizes[] = {sizeof(gpuconv_config) - 8, sizeof(gpuconv_config), sizeof(gpuconv_config) + 40};
    for (int i = 0; i < COUNT(sizes); i++) {
        size_t stored;
        memset(bytes, 0xa5, sizeof bytes);
        gpuconv_config_init((gpuconv_config *)(void *)bytes, sizes[i]);
        memcpy(&stored, bytes, sizeof stored);
        assert_int_equal(stored, sizes[i]);
        for (size_t k = sizes[i]; k < sizeof bytes; k++)
            assert_int_equal(bytes[k], 0xa5);
        for (size_t k = sizeof(gpuconv_config); k < sizes[i]; k++)
            assert_int_equal(bytes[k], 0);
    }
    memset(bytes, 0xa5, sizeof bytes);
    gpuconv_config_init((gpuconv_config *)(void *)bytes, 3);
    assert_int_equal(bytes[0], 0xa5);
}

static gpuconv_ir *make_response(void) {
    static const float tap = 1;
    const float *const channel[] = {&tap};
    gpuconv_ir *mono, *ir;
    assert_int_equal(gpuconv_ir_new(channel, 1, 1, 48000, &mono, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_ir_route(mono, 1, &ir, NULL), GPUCONV_OK);
    gpuconv_ir_free(mono);
    return ir;
}

static void every_call_refuses_a_structure_without_size(void **state) {
    (void)state;
    gpuconv_ir *ir = make_response(), *made = ir;
    const gpuconv_config config = {0}, good = gpuconv_config_default();
    const gpuconv_realtime_config realtime_config = {0};
    const gpuconv_preparation preparation = {0};
    gpuconv_job job = {0};
    gpuconv_plan *plan = (gpuconv_plan *)ir;
    gpuconv_realtime *realtime = (gpuconv_realtime *)ir;
    assert_int_equal(gpuconv_plan_new(ir, &config, &plan, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_null(plan);
    assert_int_equal(gpuconv_realtime_new(ir, &realtime_config, &realtime, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_null(realtime);
    assert_int_equal(gpuconv_ir_prepare("none.wav", &preparation, 1, 48000, &made, NULL), GPUCONV_ERROR_ARGUMENT);
    assert_null(made);
    assert_int_equal(gpuconv_convolve_file(&job, &good, NULL, NULL), GPUCONV_ERROR_ARGUMENT);
    job = gpuconv_job_default();
    job.preparation = &preparation;
    assert_int_equal(gpuconv_convolve_file(&job, &good, NULL, NULL), GPUCONV_ERROR_ARGUMENT);
    job.preparation = NULL;
    assert_int_equal(gpuconv_convolve_file(&job, &config, NULL, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
}

static void a_plan_accepts_a_longer_configuration(void **state) {
    (void)state;
    gpuconv_ir *ir = make_response();
    gpuconv_plan *plan;
    struct {
        gpuconv_config config;
        double added;
    } newer = {.added = 0};
    gpuconv_config_init(&newer.config, sizeof newer);
    newer.config.backend = GPUCONV_BACKEND_CPU;
    assert_int_equal(gpuconv_plan_new(ir, &newer.config, &plan, NULL), GPUCONV_OK);
    gpuconv_plan_free(plan);
    newer.added = 1;
    assert_int_equal(gpuconv_plan_new(ir, &newer.config, &plan, NULL), GPUCONV_ERROR_ARGUMENT);
    gpuconv_ir_free(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_older_program_gets_defaults),
        cmocka_unit_test(a_newer_program_may_leave_new_fields_zero),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(initialising_respects_the_size_of_the_caller),
        cmocka_unit_test(every_call_refuses_a_structure_without_size),
        cmocka_unit_test(a_plan_accepts_a_longer_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
