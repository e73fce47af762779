/* Calls every public function with NULL for each pointer: ARGUMENT or a neutral value, and never a crash. The functions
 * of the headers are read, so that a new one that is missing here fails the test. */
#include "harness.h"

#include "gpuconv_cuda.h"
#include "gpuconv_memory.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The objects that the functions get where a pointer is not NULL. */
static struct {
    gpuconv_ir *ir, *made;
    gpuconv_plan *plan, *made_plan;
    gpuconv_engine *engine, *made_engine;
    gpuconv_realtime *realtime, *made_realtime;
    gpuconv_report *report, *made_report;
    gpuconv_memory *memory, *made_memory;
    gpuconv_memory_response *response;
    gpuconv_preparation preparation;
    gpuconv_config config;
    gpuconv_realtime_config realtime_config;
    gpuconv_job job;
    gpuconv_cuda_job cuda_job;
    gpuconv_cuda *made_cuda;
    gpuconv_cuda_responses *prepared;
    gpuconv_cuda_streamer *streamer;
    gpuconv_cuda_array array;
    size_t bytes;
    gpuconv_memory_row row;
    int64_t produced;
    double number;
    float samples[64];
    float *planes[1];
    const float *taps[1];
    gpuconv_error error;
} o;

static int null; /* the number of the pointer that is NULL */

/* Pointer number k of a call; `error` of every call is NULL in every second round. */
#define P(k, pointer) (null / 2 == (k) ? NULL : (pointer))
#define E (null % 2 ? NULL : &o.error)
#define IR P(0, o.ir)
#define MADE P(1, &o.made)
#define ARRAY P(1, &o.array)

/* Objects of a GPU cannot be made here. A function that looks into one before it has checked all pointers crashes. */
static char no_object;
#define CUDA P(0, (gpuconv_cuda *)(void *)&no_object)
#define PREPARED ((gpuconv_cuda_responses *)(void *)&no_object)
#define STREAMER ((gpuconv_cuda_streamer *)(void *)&no_object)

/* A call that must return ARGUMENT, and leave no object behind. */
#define REFUSED(name, count, ...)                                                                                      \
    static void call_##name(void) {                                                                                    \
        CHECK((__VA_ARGS__) == GPUCONV_ERROR_ARGUMENT, "pointer %d", null / 2);                                        \
        CHECK(!o.made && !o.made_plan && !o.made_engine && !o.made_realtime, "an object is made");                     \
        CHECK(!o.made_cuda && !o.prepared && !o.streamer, "an object of a GPU is made");                               \
    }
/* A call that must do nothing, or return what the expression says. */
#define NEUTRAL(name, count, ...)                                                                                      \
    static void call_##name(void) {                                                                                    \
        CHECK((__VA_ARGS__), "pointer %d", null / 2);                                                                  \
    }

#define IS_EMPTY(text) (strcmp(text, "") == 0)
#define REPORT P(0, o.report), P(1, "environment")
#define DONE(call) ((call), true)

/* kind, function, number of pointers that must not be NULL, call */
#define FUNCTIONS(REFUSED, NEUTRAL)                                                                                    \
    NEUTRAL(gpuconv_cancel_set, 1, gpuconv_cancel_set(NULL) == NULL)                                                   \
    NEUTRAL(gpuconv_status_text, 1, *gpuconv_status_text(GPUCONV_OK))                                                  \
    NEUTRAL(gpuconv_version, 1, *gpuconv_version())                                                                    \
    REFUSED(gpuconv_ir_new, 2, gpuconv_ir_new(P(0, o.taps), 1, 64, 48000, MADE, E))                                    \
    REFUSED(gpuconv_ir_load, 2, gpuconv_ir_load(P(0, "missing.wav"), MADE, E))                                         \
    REFUSED(gpuconv_ir_route, 2, gpuconv_ir_route(IR, 1, MADE, E))                                                     \
    REFUSED(gpuconv_ir_route_as, 2, gpuconv_ir_route_as(IR, 1, GPUCONV_LAYOUT_AUTO, MADE, E))                          \
    REFUSED(gpuconv_ir_new_matrix, 2, gpuconv_ir_new_matrix(P(0, o.taps), 1, 1, 64, 48000, MADE, E))                   \
    REFUSED(gpuconv_ir_load_matrix, 2, gpuconv_ir_load_matrix(P(0, "missing.txt"), 48000, MADE, E))                    \
    REFUSED(gpuconv_ir_resample, 2, gpuconv_ir_resample(IR, 44100, MADE, E))                                           \
    REFUSED(gpuconv_ir_cut, 2, gpuconv_ir_cut(IR, 0, 1, MADE, E))                                                      \
    REFUSED(gpuconv_ir_trim, 2, gpuconv_ir_trim(IR, -60, MADE, E))                                                     \
    REFUSED(gpuconv_ir_align, 2, gpuconv_ir_align(IR, GPUCONV_ALIGN_PEAK, MADE, E))                                    \
    REFUSED(gpuconv_ir_fade, 2, gpuconv_ir_fade(IR, 0, 1, MADE, E))                                                    \
    REFUSED(gpuconv_ir_reverse, 2, gpuconv_ir_reverse(IR, MADE, E))                                                    \
    REFUSED(gpuconv_ir_delay, 2, gpuconv_ir_delay(IR, 1, MADE, E))                                                     \
    REFUSED(gpuconv_ir_stretch, 2, gpuconv_ir_stretch(IR, 2, MADE, E))                                                 \
    REFUSED(gpuconv_ir_minimum_phase, 2, gpuconv_ir_minimum_phase(IR, MADE, E))                                        \
    REFUSED(gpuconv_ir_series, 3, gpuconv_ir_series(IR, P(2, o.ir), MADE, E))                                          \
    REFUSED(gpuconv_ir_gain, 2, gpuconv_ir_gain(IR, 1, MADE, E))                                                       \
    REFUSED(gpuconv_ir_normalize, 2, gpuconv_ir_normalize(IR, GPUCONV_NORMALIZE_PEAK, NULL, MADE, E))                  \
    REFUSED(gpuconv_ir_mix, 2, gpuconv_ir_mix(IR, 0, 0, MADE, E))                                                      \
    NEUTRAL(gpuconv_ir_inputs, 1, gpuconv_ir_inputs(IR) == 0)                                                          \
    NEUTRAL(gpuconv_ir_outputs, 1, gpuconv_ir_outputs(IR) == 0)                                                        \
    NEUTRAL(gpuconv_ir_routes, 1, gpuconv_ir_routes(IR) == 0)                                                          \
    NEUTRAL(gpuconv_ir_frames, 1, gpuconv_ir_frames(IR) == 0)                                                          \
    NEUTRAL(gpuconv_ir_rate, 1, gpuconv_ir_rate(IR) == 0)                                                              \
    NEUTRAL(gpuconv_ir_lead, 1, gpuconv_ir_lead(IR) == 0)                                                              \
    NEUTRAL(gpuconv_ir_taps, 1, !gpuconv_ir_taps(IR, 0, 0))                                                            \
    NEUTRAL(gpuconv_ir_peak, 2, gpuconv_ir_peak(IR, P(1, &o.number)) == 0)                                             \
    NEUTRAL(gpuconv_ir_onset, 1, gpuconv_ir_onset(IR, -60) == 0)                                                       \
    NEUTRAL(gpuconv_ir_history, 1, IS_EMPTY(gpuconv_ir_history(IR)))                                                   \
    NEUTRAL(gpuconv_ir_free, 1, DONE(gpuconv_ir_free(NULL)))                                                           \
    NEUTRAL(gpuconv_preparation_init, 1, DONE(gpuconv_preparation_init(NULL, sizeof o.preparation)))                   \
    REFUSED(gpuconv_ir_prepare, 2, gpuconv_ir_prepare(P(0, "missing.wav"), &o.preparation, 1, 48000, MADE, E))         \
    NEUTRAL(gpuconv_config_init, 1, DONE(gpuconv_config_init(NULL, sizeof o.config)))                                  \
    NEUTRAL(gpuconv_backend_name, 1, *gpuconv_backend_name(GPUCONV_BACKEND_CPU))                                       \
    NEUTRAL(gpuconv_algorithm_name, 1, *gpuconv_algorithm_name(GPUCONV_ALGORITHM_AUTO))                                \
    REFUSED(gpuconv_plan_new, 3, gpuconv_plan_new(IR, P(2, &o.config), P(1, &o.made_plan), E))                         \
    NEUTRAL(gpuconv_plan_backend, 1, gpuconv_plan_backend(NULL) == GPUCONV_BACKEND_AUTO)                               \
    NEUTRAL(gpuconv_plan_algorithm, 1, gpuconv_plan_algorithm(NULL) == GPUCONV_ALGORITHM_AUTO)                         \
    NEUTRAL(gpuconv_plan_device, 1, IS_EMPTY(gpuconv_plan_device(NULL)))                                               \
    NEUTRAL(gpuconv_plan_reason, 1, IS_EMPTY(gpuconv_plan_reason(NULL)))                                               \
    NEUTRAL(gpuconv_plan_note, 1, IS_EMPTY(gpuconv_plan_note(NULL)))                                                   \
    NEUTRAL(gpuconv_plan_threads, 1, gpuconv_plan_threads(NULL) == 0)                                                  \
    NEUTRAL(gpuconv_plan_chunk, 1, gpuconv_plan_chunk(NULL) == 0)                                                      \
    NEUTRAL(gpuconv_plan_latency, 1, gpuconv_plan_latency(NULL) == 0)                                                  \
    NEUTRAL(gpuconv_plan_transform, 1, gpuconv_plan_transform(NULL) == 0)                                              \
    NEUTRAL(gpuconv_plan_hop, 1, gpuconv_plan_hop(NULL) == 0)                                                          \
    NEUTRAL(gpuconv_plan_partitions, 1, gpuconv_plan_partitions(NULL) == 0)                                            \
    NEUTRAL(gpuconv_plan_free, 1, DONE(gpuconv_plan_free(NULL)))                                                       \
    REFUSED(gpuconv_engine_new, 2, gpuconv_engine_new(P(0, o.plan), P(1, &o.made_engine), E))                          \
    REFUSED(gpuconv_engine_process, 4,                                                                                 \
            gpuconv_engine_process(P(0, o.engine), P(1, o.taps), 8, P(2, o.planes), P(3, &o.produced)))                \
    REFUSED(gpuconv_engine_drain, 3, gpuconv_engine_drain(P(0, o.engine), P(1, o.planes), 8, P(2, &o.produced)))       \
    REFUSED(gpuconv_engine_reset, 1, gpuconv_engine_reset(P(0, o.engine)))                                             \
    NEUTRAL(gpuconv_engine_free, 1, DONE(gpuconv_engine_free(NULL)))                                                   \
    NEUTRAL(gpuconv_realtime_config_init, 1, DONE(gpuconv_realtime_config_init(NULL, sizeof o.realtime_config)))       \
    REFUSED(gpuconv_realtime_new, 3, gpuconv_realtime_new(IR, P(2, &o.realtime_config), P(1, &o.made_realtime), E))    \
    NEUTRAL(gpuconv_realtime_process, 3,                                                                               \
            DONE(gpuconv_realtime_process(P(0, o.realtime), P(1, o.taps), P(2, o.planes), 8)))                         \
    REFUSED(gpuconv_realtime_swap, 2, gpuconv_realtime_swap(P(0, o.realtime), P(1, o.ir), 0.1, E))                     \
    REFUSED(gpuconv_realtime_swap_routes, 2, gpuconv_realtime_swap_routes(P(0, o.realtime), P(1, o.ir), 0.1, E))       \
    NEUTRAL(gpuconv_realtime_reset, 1, DONE(gpuconv_realtime_reset(NULL)))                                             \
    NEUTRAL(gpuconv_realtime_set_freewheel, 1, DONE(gpuconv_realtime_set_freewheel(NULL, true)))                       \
    NEUTRAL(gpuconv_realtime_late_blocks, 1, gpuconv_realtime_late_blocks(NULL) == 0)                                  \
    NEUTRAL(gpuconv_realtime_backend, 1, gpuconv_realtime_backend(NULL) == GPUCONV_BACKEND_AUTO)                       \
    NEUTRAL(gpuconv_realtime_latency, 1, gpuconv_realtime_latency(NULL) == 0)                                          \
    NEUTRAL(gpuconv_realtime_plan, 1, IS_EMPTY(gpuconv_realtime_plan(NULL)))                                           \
    NEUTRAL(gpuconv_realtime_free, 1, DONE(gpuconv_realtime_free(NULL)))                                               \
    REFUSED(gpuconv_report_new, 1, gpuconv_report_new(P(0, &o.made_report)))                                           \
    NEUTRAL(gpuconv_report_title, 1, !gpuconv_report_title(NULL, 0))                                                   \
    NEUTRAL(gpuconv_report_rows, 2, gpuconv_report_rows(REPORT) == 0)                                                  \
    NEUTRAL(gpuconv_report_name, 2, !gpuconv_report_name(REPORT, 0, 0))                                                \
    NEUTRAL(gpuconv_report_type, 3, gpuconv_report_type(REPORT, 0, P(2, "gpuconv")) == GPUCONV_VALUE_NONE)             \
    NEUTRAL(gpuconv_report_text, 3, !gpuconv_report_text(REPORT, 0, P(2, "gpuconv")))                                  \
    NEUTRAL(gpuconv_report_count, 3, gpuconv_report_count(REPORT, 0, P(2, "gpuconv")) == 0)                            \
    NEUTRAL(gpuconv_report_number, 3, isnan(gpuconv_report_number(REPORT, 0, P(2, "gpuconv"))))                        \
    NEUTRAL(gpuconv_report_unit, 3, IS_EMPTY(gpuconv_report_unit(REPORT, 0, P(2, "gpuconv"))))                         \
    NEUTRAL(gpuconv_report_runs, 3, gpuconv_report_runs(REPORT, 0, P(2, "gpuconv")) == 0)                              \
    NEUTRAL(gpuconv_report_spread, 3, isnan(gpuconv_report_spread(REPORT, 0, P(2, "gpuconv"))))                        \
    REFUSED(gpuconv_report_write, 2, gpuconv_report_write(P(0, o.report), GPUCONV_REPORT_JSON, P(1, stderr)))          \
    NEUTRAL(gpuconv_report_free, 1, DONE(gpuconv_report_free(NULL)))                                                   \
    NEUTRAL(gpuconv_job_init, 1, DONE(gpuconv_job_init(NULL, sizeof o.job)))                                           \
    REFUSED(gpuconv_convolve_file, 2, gpuconv_convolve_file(P(0, &o.job), P(1, &o.config), NULL, E))                   \
    REFUSED(gpuconv_memory_new, 1, gpuconv_memory_new(1, P(0, &o.made_memory), E))                                     \
    NEUTRAL(gpuconv_memory_free, 1, DONE(gpuconv_memory_free(NULL)))                                                   \
    REFUSED(gpuconv_memory_response_new, 2, gpuconv_memory_response_new(P(0, o.samples), 64, 1, P(1, &o.response), E)) \
    NEUTRAL(gpuconv_memory_response_free, 1, DONE(gpuconv_memory_response_free(NULL)))                                 \
    REFUSED(gpuconv_memory_convolve, 2, gpuconv_memory_convolve(P(0, o.memory), P(1, &o.row), 1, E))                   \
    REFUSED(gpuconv_cuda_new, 1, gpuconv_cuda_new(0, P(0, &o.made_cuda), E))                                           \
    NEUTRAL(gpuconv_cuda_device, 1, gpuconv_cuda_device(NULL) == -1)                                                   \
    REFUSED(gpuconv_cuda_workspace, 3, gpuconv_cuda_workspace(CUDA, P(1, &o.cuda_job), P(2, &o.bytes), E))             \
    REFUSED(gpuconv_cuda_run, 2, gpuconv_cuda_run(CUDA, P(1, &o.cuda_job), o.samples, 0, NULL, E))                     \
    REFUSED(gpuconv_cuda_responses_new, 3, gpuconv_cuda_responses_new(CUDA, ARRAY, 8, NULL, P(2, &o.prepared), E))     \
    REFUSED(gpuconv_cuda_responses_route, 3, gpuconv_cuda_responses_route(CUDA, P(1, o.ir), 8, P(2, &o.prepared), E))  \
    REFUSED(gpuconv_cuda_responses_update, 3, gpuconv_cuda_responses_update(CUDA, P(2, PREPARED), ARRAY, NULL, E))     \
    NEUTRAL(gpuconv_cuda_responses_bytes, 1, gpuconv_cuda_responses_bytes(NULL) == 0)                                  \
    REFUSED(gpuconv_cuda_streamer_new, 3, gpuconv_cuda_streamer_new(CUDA, ARRAY, 1, 64, NULL, P(2, &o.streamer), E))   \
    REFUSED(gpuconv_cuda_streamer_process, 3,                                                                          \
            gpuconv_cuda_streamer_process(P(0, STREAMER), P(1, &o.array), P(2, &o.array), NULL, E))                    \
    REFUSED(gpuconv_cuda_streamer_reset, 1, gpuconv_cuda_streamer_reset(P(0, STREAMER), NULL, E))                      \
    NEUTRAL(gpuconv_cuda_free, 1, DONE(gpuconv_cuda_free(NULL)))                                                       \
    NEUTRAL(gpuconv_cuda_job_init, 1, DONE(gpuconv_cuda_job_init(NULL, sizeof o.cuda_job)))                            \
    NEUTRAL(gpuconv_cuda_responses_free, 1, DONE(gpuconv_cuda_responses_free(NULL)))                                   \
    NEUTRAL(gpuconv_cuda_streamer_free, 1, DONE(gpuconv_cuda_streamer_free(NULL)))

FUNCTIONS(REFUSED, NEUTRAL)

typedef struct entry {
    const char *name;
    int pointers;
    void (*call)(void);
} entry;

#define ENTRY(name, count, ...) {#name, count, call_##name},
static const entry entries[] = {FUNCTIONS(ENTRY, ENTRY)};

/* Functions that are not called here. */
static const char *const left_out[] = {
    "gpuconv_calibrate" /* measures for a minute; both of its pointers may be NULL */
};

static bool is_known(const char *name) {
    for (int i = 0; i < COUNT(entries); i++)
        if (strcmp(entries[i].name, name) == 0)
            return true;
    for (int i = 0; i < COUNT(left_out); i++)
        if (strcmp(left_out[i], name) == 0)
            return true;
    return false;
}

/* Makes the objects that the functions get. */
static void make_objects(void) {
    gpuconv_ir *unrouted;
    o.samples[0] = 1;
    o.taps[0] = o.planes[0] = o.samples;
    o.preparation = gpuconv_preparation_default();
    o.config = gpuconv_config_default();
    o.config.backend = GPUCONV_BACKEND_CPU;
    o.realtime_config = gpuconv_realtime_config_default();
    o.job = gpuconv_job_default();
    CHECK(!gpuconv_ir_new(o.taps, 1, 64, 48000, &unrouted, NULL), "no response");
    CHECK(!gpuconv_ir_route(unrouted, 1, &o.ir, NULL), "no routed response");
    CHECK(!gpuconv_plan_new(o.ir, &o.config, &o.plan, NULL) && !gpuconv_engine_new(o.plan, &o.engine, NULL),
          "no engine");
    CHECK(!gpuconv_realtime_new(o.ir, &o.realtime_config, &o.realtime, NULL), "no convolver");
    CHECK(!gpuconv_report_new(&o.report) && !gpuconv_memory_new(1, &o.memory, NULL), "no report");
    gpuconv_ir_free(unrouted);
}

/* Calls a function with each pointer as NULL, in a process of its own, whose end by a signal names it. */
static void check_entry(const entry *e) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        make_objects();
        for (null = 0; null < 2 * e->pointers; null++)
            e->call();
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no process");
    CHECK(status == 0, "%s: signal %d, exit %d", e->name, WTERMSIG(status), WEXITSTATUS(status));
}

static void every_function_refuses_null(void **state) {
    (void)state;
    for (int i = 0; i < COUNT(entries); i++)
        check_entry(&entries[i]);
}

/* Checks that the functions of a header are in the table. Returns how many they are. */
static int check_header(const char *path) {
    char line[1024], name[128];
    int found = 0;
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    while (fgets(line, sizeof line, f)) {
        const char *at = strncmp(line, "GPUCONV_API ", 12) == 0 ? strchr(line, '(') : NULL;
        if (!at)
            continue;
        while (at > line && at[-1] != ' ' && at[-1] != '*')
            at--;
        CHECK(sscanf(at, "%127[a-z_0-9]", name) == 1, "%s: %s", path, line);
        CHECK(is_known(name), "%s: %s is not in the table of this test", path, name);
        found++;
    }
    fclose(f);
    return found;
}

static void every_function_of_the_headers_is_tested(void **state) {
    (void)state;
    const int found = check_header(TESTS_SOURCE "/include/gpuconv.h") +
                      check_header(TESTS_SOURCE "/include/gpuconv_memory.h") +
                      check_header(TESTS_SOURCE "/include/gpuconv_cuda.h");
    assert_int_equal(found, COUNT(entries) + COUNT(left_out));
}

static void null_inside_structures_is_refused(void **state) {
    (void)state;
    static const char *const series[] = {NULL};
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    const float *taps[2] = {o.samples, NULL};
    gpuconv_preparation p = gpuconv_preparation_default();
    p.series = series;
    p.series_count = 1;
    assert_int_equal(gpuconv_ir_prepare("missing.wav", &p, 1, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_ir_new(taps, 2, 64, 48000, &ir, &error), GPUCONV_ERROR_ARGUMENT);
    gpuconv_job job = gpuconv_job_default();
    gpuconv_config config = gpuconv_config_default();
    assert_int_equal(gpuconv_convolve_file(&job, &config, NULL, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_convolve_file(&job, &config, NULL, NULL), GPUCONV_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_function_of_the_headers_is_tested),
                                       cmocka_unit_test(every_function_refuses_null),
                                       cmocka_unit_test(null_inside_structures_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
