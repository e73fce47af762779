/* Calls every public function with NULL for each pointer: ARGUMENT or a neutral value, and never a crash. The functions
 * of the headers are read, so that a new one that is missing here fails the test. */
#include "harness.h"

#include "gpuconv_rooms.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The objects that the functions get where a pointer is not NULL. */
static struct {
    gpuconv_ir *ir, *made;
    gpuconv_plan *plan, *made_plan;
    gpuconv_engine *engine, *made_engine;
    gpuconv_realtime *realtime, *made_realtime;
    gpuconv_report *report, *made_report;
    gpuconv_sofa *sofa, *made_sofa;
    gpuconv_path *path, *made_path;
    gpuconv_head *made_head;
    gpuconv_motion *motion, *made_motion;
    gpuconv_motion_config motion_config;
    double xyz[3];
    gpuconv_preparation preparation;
    gpuconv_config config;
    gpuconv_realtime_config realtime_config;
    gpuconv_job job;
    gpuconv_arrays_job arrays_job;
    gpuconv_rooms_job rooms;
    gpuconv_arrays *arrays, *made_arrays;
    gpuconv_responses *prepared, *made_responses;
    gpuconv_streamer *streamer, *made_streamer;
    gpuconv_rows rows;
    gpuconv_arrays_plan *rows_plan;
    gpuconv_sequences sequences;
    int64_t table[8];
    gpuconv_rooms_plan *rooms_plan;
    size_t bytes;
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
#define ARRAYS P(0, o.arrays)
#define ROWS P(1, &o.rows)

/* A call that must return ARGUMENT, and leave no object behind. */
#define REFUSED(name, count, ...)                                                                                      \
    static void call_##name(void) {                                                                                    \
        CHECK((__VA_ARGS__) == GPUCONV_ERROR_ARGUMENT, "pointer %d", null / 2);                                        \
        CHECK(!o.made && !o.made_plan && !o.made_engine && !o.made_realtime && !o.made_sofa && !o.made_path &&         \
                  !o.made_motion && !o.made_head,                                                                      \
              "an object is made");                                                                                    \
        CHECK(!o.made_arrays && !o.made_responses && !o.made_streamer, "an object of arrays is made");                 \
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
    REFUSED(gpuconv_ir_load_as, 2, gpuconv_ir_load_as(P(0, "missing.wav"), 0, NULL, MADE, E))                          \
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
    REFUSED(gpuconv_sofa_open, 2, gpuconv_sofa_open(P(0, "missing.sofa"), 0, P(1, &o.made_sofa), E))                   \
    NEUTRAL(gpuconv_sofa_free, 1, DONE(gpuconv_sofa_free(NULL)))                                                       \
    NEUTRAL(gpuconv_sofa_directions, 1, gpuconv_sofa_directions(P(0, o.sofa)) == 0)                                    \
    NEUTRAL(gpuconv_sofa_receivers, 1, gpuconv_sofa_receivers(P(0, o.sofa)) == 0)                                      \
    NEUTRAL(gpuconv_sofa_rate, 1, gpuconv_sofa_rate(P(0, o.sofa)) == 0)                                                \
    NEUTRAL(gpuconv_sofa_frames, 1, gpuconv_sofa_frames(P(0, o.sofa)) == 0)                                            \
    NEUTRAL(gpuconv_sofa_lead, 1, gpuconv_sofa_lead(P(0, o.sofa)) == 0)                                                \
    NEUTRAL(gpuconv_sofa_title, 1, IS_EMPTY(gpuconv_sofa_title(P(0, o.sofa))))                                         \
    NEUTRAL(gpuconv_sofa_position, 2, DONE(gpuconv_sofa_position(P(0, o.sofa), 0, P(1, o.xyz))))                       \
    NEUTRAL(gpuconv_sofa_nearest, 3,                                                                                   \
            gpuconv_sofa_nearest(P(0, o.sofa), P(1, o.xyz), P(2, &o.number)) == 0 || null / 2 == 2)                    \
    REFUSED(gpuconv_sofa_respond_turned, 3,                                                                            \
            gpuconv_sofa_respond_turned(P(0, o.sofa), P(1, o.xyz), 1, NULL, P(2, o.samples), E))                       \
    REFUSED(gpuconv_sofa_respond, 3,                                                                                   \
            gpuconv_sofa_respond(P(0, o.sofa), P(1, o.xyz), 1, GPUCONV_INTERPOLATE_AUTO, false, P(2, o.samples), E))   \
    REFUSED(gpuconv_sofa_prepare, 2, gpuconv_sofa_prepare(P(0, o.sofa), &o.preparation, 1, MADE, E))                   \
    REFUSED(gpuconv_path_new, 3, gpuconv_path_new(P(0, o.xyz), P(1, o.xyz), 1, 1, P(2, &o.made_path), E))              \
    REFUSED(gpuconv_path_load, 2, gpuconv_path_load(P(0, "missing.csv"), 1, P(1, &o.made_path), E))                    \
    NEUTRAL(gpuconv_path_free, 1, DONE(gpuconv_path_free(NULL)))                                                       \
    NEUTRAL(gpuconv_motion_config_init, 1, DONE(gpuconv_motion_config_init(NULL, sizeof o.motion_config)))             \
    REFUSED(gpuconv_motion_new, 3,                                                                                     \
            gpuconv_motion_new(P(0, o.sofa), P(1, o.path), &o.motion_config, P(2, &o.made_motion), E))                 \
    NEUTRAL(gpuconv_motion_free, 1, DONE(gpuconv_motion_free(NULL)))                                                   \
    NEUTRAL(gpuconv_motion_plan, 1, *gpuconv_motion_plan(NULL) == 0)                                                   \
    NEUTRAL(gpuconv_motion_receivers, 1, gpuconv_motion_receivers(NULL) == 0)                                          \
    NEUTRAL(gpuconv_motion_tail, 1, gpuconv_motion_tail(NULL) == 0)                                                    \
    REFUSED(gpuconv_motion_feed, 2, gpuconv_motion_feed(P(0, o.motion), P(1, o.taps), 64, E))                          \
    REFUSED(gpuconv_motion_fetch, 3, gpuconv_motion_fetch(P(0, o.motion), P(1, o.planes), 64, P(2, &o.produced)))      \
    REFUSED(gpuconv_path_new_still, 2, gpuconv_path_new_still(P(0, "0,0"), 1, P(1, &o.made_path), E))                  \
    REFUSED(gpuconv_head_new, 3, gpuconv_head_new(P(0, o.xyz), P(1, o.xyz), 1, P(2, &o.made_head), E))                 \
    REFUSED(gpuconv_head_load, 2, gpuconv_head_load(P(0, "missing.csv"), P(1, &o.made_head), E))                       \
    NEUTRAL(gpuconv_head_free, 1, DONE(gpuconv_head_free(NULL)))                                                       \
    REFUSED(gpuconv_motion_start, 1, gpuconv_motion_start(P(0, o.motion), 64, E))                                      \
    NEUTRAL(gpuconv_motion_process, 3, DONE(gpuconv_motion_process(P(0, o.motion), P(1, o.taps), P(2, o.planes), 64))) \
    NEUTRAL(gpuconv_motion_seek, 1, DONE(gpuconv_motion_seek(NULL, 64)))                                               \
    NEUTRAL(gpuconv_motion_turn, 2, DONE(gpuconv_motion_turn(P(0, o.motion), P(1, o.xyz))))                            \
    NEUTRAL(gpuconv_motion_place, 2, DONE(gpuconv_motion_place(P(0, o.motion), 0, P(1, o.xyz))))                       \
    NEUTRAL(gpuconv_motion_latency, 1, gpuconv_motion_latency(NULL) == 0)                                              \
    NEUTRAL(gpuconv_motion_late, 1, gpuconv_motion_late(NULL) == 0)                                                    \
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
    REFUSED(gpuconv_arrays_new_cpu, 1, gpuconv_arrays_new_cpu(1, P(0, &o.made_arrays), E))                             \
    REFUSED(gpuconv_arrays_new_cuda, 1, gpuconv_arrays_new_cuda(0, P(0, &o.made_arrays), E))                           \
    NEUTRAL(gpuconv_arrays_device, 1, gpuconv_arrays_device(NULL) == -1)                                               \
    REFUSED(gpuconv_arrays_workspace, 3, gpuconv_arrays_workspace(ARRAYS, P(1, &o.arrays_job), P(2, &o.bytes), E))     \
    REFUSED(gpuconv_arrays_run, 2, gpuconv_arrays_run(ARRAYS, P(1, &o.arrays_job), NULL, 0, NULL, E))                  \
    REFUSED(gpuconv_arrays_plan_new, 3, gpuconv_arrays_plan_new(ARRAYS, P(1, &o.arrays_job), P(2, &o.rows_plan), E))   \
    NEUTRAL(gpuconv_arrays_plan_workspace, 1, gpuconv_arrays_plan_workspace(NULL) == 0)                                \
    NEUTRAL(gpuconv_arrays_plan_transforms, 1, gpuconv_arrays_plan_transforms(NULL) == 0)                              \
    NEUTRAL(gpuconv_arrays_plan_reason, 1, *gpuconv_arrays_plan_reason(NULL) == 0)                                     \
    REFUSED(gpuconv_arrays_plan_run, 1, gpuconv_arrays_plan_run(P(0, o.rows_plan), NULL, NULL, 0, NULL, E))            \
    NEUTRAL(gpuconv_arrays_plan_free, 1, DONE(gpuconv_arrays_plan_free(NULL)))                                         \
    REFUSED(gpuconv_sequences_sort, 3, gpuconv_sequences_sort(ARRAYS, P(1, &o.sequences), P(2, o.table), NULL, E))     \
    REFUSED(gpuconv_responses_new, 3, gpuconv_responses_new(ARRAYS, ROWS, 8, NULL, P(2, &o.made_responses), E))        \
    REFUSED(gpuconv_responses_route, 3, gpuconv_responses_route(ARRAYS, P(1, o.ir), 8, P(2, &o.made_responses), E))    \
    REFUSED(gpuconv_responses_update, 3, gpuconv_responses_update(ARRAYS, P(2, o.prepared), ROWS, NULL, E))            \
    NEUTRAL(gpuconv_responses_bytes, 1, gpuconv_responses_bytes(NULL) == 0)                                            \
    REFUSED(gpuconv_streamer_new, 3, gpuconv_streamer_new(ARRAYS, ROWS, 1, 64, NULL, P(2, &o.made_streamer), E))       \
    REFUSED(gpuconv_streamer_process, 3,                                                                               \
            gpuconv_streamer_process(P(0, o.streamer), P(1, &o.rows), P(2, &o.rows), NULL, E))                         \
    REFUSED(gpuconv_streamer_reset, 1, gpuconv_streamer_reset(P(0, o.streamer), NULL, E))                              \
    REFUSED(gpuconv_path_new_in_room, 3,                                                                               \
            gpuconv_path_new_in_room(P(0, o.xyz), P(1, o.xyz), 1, 1, P(2, &o.made_path), E))                           \
    REFUSED(gpuconv_path_load_in_room, 2, gpuconv_path_load_in_room(P(0, "missing.csv"), 1, P(1, &o.made_path), E))    \
    REFUSED(gpuconv_motion_new_in_room, 2,                                                                             \
            gpuconv_motion_new_in_room(P(0, &o.rooms), NULL, NULL, NULL, P(1, &o.made_motion), E))                     \
    REFUSED(gpuconv_rooms_simulate, 3, gpuconv_rooms_simulate(P(0, o.arrays), P(1, &o.rooms), P(2, o.samples), E))     \
    REFUSED(gpuconv_rooms_plan_new, 3, gpuconv_rooms_plan_new(ARRAYS, P(1, &o.rooms), P(2, &o.rooms_plan), E))         \
    NEUTRAL(gpuconv_rooms_plan_workspace, 1, gpuconv_rooms_plan_workspace(NULL) == 0)                                  \
    REFUSED(gpuconv_rooms_plan_run, 1, gpuconv_rooms_plan_run(P(0, o.rooms_plan), NULL, NULL, NULL, 0, NULL, E))       \
    NEUTRAL(gpuconv_rooms_plan_free, 1, DONE(gpuconv_rooms_plan_free(NULL)))                                           \
    NEUTRAL(gpuconv_rooms_job_init, 1, DONE(gpuconv_rooms_job_init(NULL, sizeof o.rooms)))                             \
    NEUTRAL(gpuconv_arrays_free, 1, DONE(gpuconv_arrays_free(NULL)))                                                   \
    NEUTRAL(gpuconv_arrays_job_init, 1, DONE(gpuconv_arrays_job_init(NULL, sizeof o.arrays_job)))                      \
    NEUTRAL(gpuconv_responses_free, 1, DONE(gpuconv_responses_free(NULL)))                                             \
    NEUTRAL(gpuconv_streamer_free, 1, DONE(gpuconv_streamer_free(NULL)))

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
    CHECK(!gpuconv_report_new(&o.report) && !gpuconv_arrays_new_cpu(1, &o.arrays, NULL), "no report");
    o.rows = gpuconv_rows_of_floats(o.samples, 1, 64);
    o.arrays_job = gpuconv_arrays_job_default();
    o.rooms = gpuconv_rooms_job_default();
    o.arrays_job.signal = o.arrays_job.response = o.arrays_job.output = o.rows;
    CHECK(!gpuconv_responses_new(o.arrays, &o.rows, 64, NULL, &o.prepared, NULL), "no responses");
    CHECK(!gpuconv_streamer_new(o.arrays, &o.rows, 1, 64, NULL, &o.streamer, NULL), "no streamer");
    o.motion_config = gpuconv_motion_config_default();
    o.xyz[2] = 1;
    CHECK(!gpuconv_sofa_open(TESTS_SOURCE "/tests/sofa/head.sofa", 0, &o.sofa, NULL), "no set");
    CHECK(!gpuconv_path_new(o.xyz, o.xyz, 1, 1, &o.path, NULL), "no path");
    CHECK(!gpuconv_motion_new(o.sofa, o.path, &o.motion_config, &o.motion, NULL), "no moving sources");
    gpuconv_ir_free(unrouted);
}

/* Calls every function with each pointer as NULL, in another process, whose end by a signal is a failure with the name
 * of the function. */
static void every_function_refuses_null(void **state) {
    (void)state;
    int status = 0, *current = mmap(NULL, sizeof *current, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(current != MAP_FAILED, "no memory");
    const pid_t child = fork();
    if (child == 0) {
        make_objects();
        for (*current = 0; *current < COUNT(entries); ++*current)
            for (null = 0; null < 2 * entries[*current].pointers; null++)
                entries[*current].call();
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "no process");
    CHECK(status == 0, "%s: signal %d, exit %d", *current < COUNT(entries) ? entries[*current].name : "the end",
          WTERMSIG(status), WEXITSTATUS(status));
    assert_int_equal(*current, COUNT(entries));
    munmap(current, sizeof *current);
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
                      check_header(TESTS_SOURCE "/include/gpuconv_arrays.h") +
                      check_header(TESTS_SOURCE "/include/gpuconv_rooms.h");
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
