/* The stages of a student's kernel: its check against the reference, and its time among the rungs. */
#include "student.h"

#include "diagnose.h"
#include "emulator/emulator.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "run.h"
#include "types.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 2, MAX_RUNGS = 64 };

static const double near_best = 1.3;     /* of sectors and cycles: the edges of a matrix take more than the best */
static const double emulated_cost = 5e7; /* the largest sum of bytes and operations of a size that is emulated */

/* The function that launch_student calls, and its module: a launcher has no argument for them. */
static gc_student_solve student_solve;
static const gc_lab_module *student_module;

/* Runs the function in the emulator. Returns LAB_CANNOT if the emulator found an error. */
static int emulate(const gc_lab_run *run) {
    gc_lab_buffer buffer[LAB_BUFFERS];
    gc_emulator_buffer emulated[LAB_BUFFERS];
    int count = student_module->buffers(run->size, buffer);
    for (int i = 0; i < count; i++) {
        int64_t bytes = gc_lab_type_bytes(buffer[i].type);
        emulated[i] = (gc_emulator_buffer){.name = buffer[i].name,
                                           .data = run->buffer[i],
                                           .bytes = buffer[i].count * bytes,
                                           .element = (unsigned)bytes,
                                           .is_float = gc_lab_type_is_float(buffer[i].type),
                                           .is_set = buffer[i].role == LAB_INPUT || buffer[i].role == LAB_SCRATCH,
                                           .is_const = buffer[i].role == LAB_INPUT};
    }
    return gc_emulator_run(student_solve, emulated, count, run->size) ? 0 : LAB_CANNOT;
}

static int launch_student(const gc_lab_run *run) {
    return gc_emulator_is_open() ? emulate(run) : student_solve(run->buffer, run->size, run->stream[0]);
}

bool gc_student_can_try(const gc_lab_module *module) {
    gc_lab_buffer buffer[LAB_BUFFERS];
    int count = module->buffers(module->sizes[0].value, buffer), outputs = 0;
    for (int i = 0; i < count; i++) {
        if (buffer[i].role == LAB_MEASURED)
            return false;
        outputs += buffer[i].role == LAB_OUTPUT;
    }
    return outputs > 0 && module->reference != NULL;
}

gpuconv_status gc_student_load(const char *path, gc_student_solve *solve, gpuconv_error *error) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "gpulab_solve") : NULL;
    if (!symbol)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be loaded: %s", path, dlerror());
    memcpy((void *)solve, &symbol, sizeof symbol);
    return gc_emulator_open(library, path, error);
}

/* Returns the variant that stands for the student's kernel. */
static gc_lab_variant student_variant(const gc_lab_session *session, const gc_student_request *request) {
    return (gc_lab_variant){.name = "yours",
                            .changed = "your kernel",
                            .where = session->device ? LAB_GPU : LAB_CPU,
                            .launch = launch_student,
                            .parameter = request->goal->parameter,
                            .tolerance = request->goal->tolerance,
                            .unit = request->goal->unit,
                            .flags = request->stage == GC_STUDENT_MEMORY ? LAB_NO_BANDS : 0};
}

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

static gpuconv_status write_report(const json_t *report, const char *path, gpuconv_error *error) {
    if (path && json_dump_file(report, path, JSON_REAL_PRECISION(9)) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot write the result", path);
    return GPUCONV_OK;
}

static void set_state(json_t *report, const char *state, const char *text) {
    (void)json_object_set_new(report, "state", json_string(state));
    (void)json_object_set_new(report, "text", json_string(text));
}

static void set_failed(json_t *report, int code) {
    char text[1500];
    if (gc_emulator_is_open()) {
        gc_emulator_error(text, sizeof text);
        set_state(report, "found", text);
        return;
    }
    (void)snprintf(text, sizeof text, "%s", gc_lab_device_error_text(code));
    set_state(report, "failed", text);
    (void)json_object_set_new(report, "code", json_integer(code));
}

/* Computes what an output must hold. Returns NULL without memory. */
static double *expected_values(const gc_lab_module *module, const gc_lab_run *run, int output) {
    double *expected = gc_calloc(gc_max(run->count[output], 1), sizeof *expected);
#pragma omp parallel for schedule(dynamic, 64)
    for (int64_t i = 0; i < (expected ? run->count[output] : 0); i++)
        expected[i] = module->reference(run, output, i);
    return expected;
}

/* Reports the first byte that was written outside a buffer. */
static void set_outside(json_t *report, const gc_lab_view *view) {
    char text[300];
    int64_t bytes = gc_lab_type_bytes(view->buffer->type);
    int64_t element = view->outside < 0 ? -((-view->outside + bytes - 1) / bytes) : view->outside / bytes;
    (void)snprintf(text, sizeof text,
                   "%s[%lld] was written, but %s has %lld elements, from 0 to %lld.\nA thread whose index lies outside "
                   "must not write: if (i < n).",
                   view->buffer->name, (long long)element, view->buffer->name, (long long)view->buffer->count,
                   (long long)view->buffer->count - 1);
    set_state(report, "outside", text);
}

/* Compares one output with the reference. Returns whether it is right; otherwise sets the state. */
static bool check_output(const gc_lab_module *module, const gc_lab_variant *v, gc_lab_case *c, int i, json_t *report) {
    gc_lab_view view;
    gc_lab_diagnosis diagnosis;
    char text[1500] = "out of memory";
    if (!gc_lab_case_view(c, i, &view) || view.buffer->role != LAB_OUTPUT)
        return true;
    double *expected = expected_values(module, gc_lab_case_run(c, v), i);
    const gc_lab_output output = {view.buffer->name, view.buffer->type, view.buffer->count,
                                  view.data,         expected,          v->tolerance};
    bool right = expected && gc_lab_diagnose(&output, &diagnosis);
    if (expected && !right)
        gc_lab_diagnosis_text(&output, &diagnosis, text, sizeof text);
    if (!right)
        set_state(report, "wrong", text);
    free(expected);
    return right;
}

/* Runs the kernel once and checks all outputs. Returns whether they are right; otherwise sets the state. */
static bool run_once(const gc_lab_session *session, const gc_student_request *request, const gc_lab_variant *v,
                     gc_lab_case *c, json_t *report) {
    gpuconv_error error = {0};
    gc_lab_view view;
    if (gc_lab_case_poison(c, &error)) {
        set_state(report, "failed", error.message);
        return false;
    }
    int code = v->launch(gc_lab_case_run(c, v));
    if (!code && session->device)
        code = gc_lab_device_synchronize(session->device);
    if (code) {
        set_failed(report, code);
        return false;
    }
    if (gc_lab_case_fetch(c, &error)) {
        set_state(report, "failed", error.message);
        return false;
    }
    for (int i = 0; gc_lab_case_view(c, i, &view); i++)
        if (view.outside) {
            set_outside(report, &view);
            return false;
        }
    for (int i = 0; i < LAB_BUFFERS; i++)
        if (!check_output(request->module, v, c, i, report))
            return false;
    return true;
}

/* Checks one size, several times. A result that differs from run to run is "unsteady". Returns whether it is right. */
static bool check_size(const gc_lab_session *session, const gc_student_request *request, const gc_lab_variant *v,
                       gc_lab_case *c, json_t *report) {
    bool right = true, other_right = true;
    char first[1500] = "";
    for (int i = 0; i < (gc_emulator_is_open() ? 1 : REPEATS); i++) { /* the emulator finds races by itself */
        right = run_once(session, request, v, c, report);
        const char *state = json_string_value(json_object_get(report, "state")),
                   *text = json_string_value(json_object_get(report, "text"));
        if (!right && state && strcmp(state, "wrong") != 0)
            return false;
        if (i > 0 && (right != other_right || (!right && strcmp(first, text ? text : "") != 0))) {
            char both[1600];
            (void)snprintf(both, sizeof both,
                           "Two runs gave different results. In one of them: %.1200s\nThis is a race: a barrier "
                           "(__syncthreads) is missing, or several threads update one element without an atomic "
                           "operation, or memory is read before it is written.",
                           right  ? first
                           : text ? text
                                  : "");
            set_state(report, "unsteady", both);
            return false;
        }
        other_right = right;
        (void)snprintf(first, sizeof first, "%s", !right && text ? text : "");
    }
    return right;
}

/* Returns whether a size is small enough to be checked here. */
static bool can_check(const gc_student_request *request, const gc_lab_size *size, const gc_lab_variant *v) {
    const gc_lab_cost cost =
        request->module->cost ? request->module->cost(size->value, v) : (gc_lab_cost){.operations = 0};
    unsigned uses = request->stage == GC_STUDENT_MEMORY ? LAB_QUICK : LAB_QUICK | LAB_CHECK;
    return (size->use & uses) && (!gc_emulator_is_open() || cost.bytes + cost.operations <= emulated_cost);
}

/* Adds what the emulator counted at the last size. */
static void set_counts(json_t *report) {
    char text[1500];
    if (!gc_emulator_is_open())
        return;
    gc_emulator_counts(text, sizeof text);
    (void)json_object_set_new(report, "counts", json_string(text));
}

/* Adds a sentence for each demand of the exercise that the last run, at size `s`, did not meet. */
static void set_missing(const gc_student_request *request, const gc_lab_size *s, const gc_lab_variant *v,
                        json_t *report) {
    char text[1000] = "";
    size_t used = 0;
    if (!gc_emulator_is_open() || !request->demands)
        return;
    const gc_exercise_demands *d = request->demands;
    const gc_emulator_totals t = gc_emulator_get_totals();
    double operations = request->module->cost ? request->module->cost(s->value, v).operations : 0;
    double accesses = (double)t.global_accesses / operations, threads = (double)t.threads / operations;
    if (d->coalesced && (double)t.sectors > near_best * (double)t.best_sectors)
        used += (size_t)gc_format(text + used, sizeof text - used,
                                  "Global memory takes %.1f times the sectors that the accesses need: let neighbouring "
                                  "threads access neighbouring elements.\n",
                                  (double)t.sectors / (double)t.best_sectors);
    if (d->shared && !t.shared_requests)
        used += (size_t)gc_format(text + used, sizeof text - used, "The kernel does not use shared memory.\n");
    if (d->no_conflicts && (double)t.shared_cycles > near_best * (double)t.best_shared_cycles)
        used += (size_t)gc_format(text + used, sizeof text - used,
                                  "Shared memory takes %.1f times the cycles that it needs: bank conflicts.\n",
                                  (double)t.shared_cycles / (double)t.best_shared_cycles);
    if (d->accesses > 0 && accesses > d->accesses)
        used +=
            (size_t)gc_format(text + used, sizeof text - used,
                              "The threads access global memory %.3g times for each operation of the task; the goal "
                              "is at most %.3g times.\n",
                              accesses, d->accesses);
    if (d->threads > 0 && threads > d->threads)
        used += (size_t)gc_format(text + used, sizeof text - used,
                                  "The grid grows with the data: it has %.3g threads for each element.\n", threads);
    if (used)
        (void)json_object_set_new(report, "missing", json_string(text));
}

static gpuconv_status check_sizes(const gc_lab_session *session, const gc_student_request *request, json_t *report,
                                  gpuconv_error *error) {
    const gc_lab_variant v = student_variant(session, request);
    gpuconv_status err = GPUCONV_OK;
    bool right = true;
    const gc_lab_size *last = NULL;
    for (int s = 0; s < request->module->size_count && right && !err; s++) {
        const gc_lab_size *size = &request->module->sizes[s];
        gc_lab_case *c = NULL;
        char text[100];
        if (!can_check(request, size, &v))
            continue;
        last = size;
        gc_lab_format_size(request->module, size->value, text, sizeof text);
        (void)json_object_set_new(report, "size", json_string(text));
        set_state(report, "running", "");
        err = write_report(report, request->result, error);
        if (!err)
            err = gc_lab_case_new(request->module, &v, size->value, session->device, &c, error);
        if (!err)
            right = check_size(session, request, &v, c, report);
        if (c)
            gc_lab_case_free(c);
    }
    if (right && !err) {
        set_state(report, "right", "");
        set_counts(report);
        if (last)
            set_missing(request, last, &v, report);
    }
    return err;
}

/* ---- Timing ------------------------------------------------------------------------------------------------------ */

/* Copies the rungs that are timed at the large sizes, and the student's kernel as the last one. Returns their number.
 */
static int collect_rungs(const gc_lab_session *session, const gc_student_request *request, gc_lab_variant *rungs) {
    const gc_lab_module *module = request->module;
    int count = 0;
    for (int i = 0; i < module->variant_count && count < MAX_RUNGS - 1; i++) {
        const gc_lab_variant *v = &module->variants[i];
        bool large = v->at == 0 || (v->at & LAB_GPU_TIME);
        if (v->where == LAB_GPU && v->launch && large && !(v->flags & (LAB_RACES | LAB_HOST_CLOCK | LAB_ONCE)))
            rungs[count++] = *v;
    }
    rungs[count++] = student_variant(session, request);
    return count;
}

static gpuconv_status time_ladder(gc_lab_session *session, const gc_student_request *request, json_t *report,
                                  gpuconv_error *error) {
    gc_lab_variant rungs[MAX_RUNGS];
    gc_lab_module module = *request->module;
    const int64_t *size = request->size;
    for (int s = 0; s < module.size_count && !request->size; s++)
        if (module.sizes[s].use & LAB_GPU_TIME)
            size = module.sizes[s].value;
    if (!size)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: has no size to time", module.name);
    gpuconv_status err = gc_lab_session_measure_peak_rates(session, error);
    if (err)
        return err;
    module.variants = rungs;
    module.variant_count = collect_rungs(session, request, rungs);
    json_t *rows = json_array();
    (void)gc_lab_time_module(session, &module, &(gc_lab_run_options){.size = size}, rows);
    char text[100];
    gc_lab_format_size(&module, size, text, sizeof text);
    (void)json_object_set_new(report, "size", json_string(text));
    (void)json_object_set_new(report, "results", rows);
    set_state(report, "timed", "");
    return GPUCONV_OK;
}

gpuconv_status gc_student_run(gc_lab_session *session, const gc_student_request *request, json_t **report,
                              gpuconv_error *error) {
    *report = json_object();
    if (!*report)
        return gc_fail_memory(error, "a result");
    student_solve = request->solve;
    student_module = request->module;
    gpuconv_status err = request->stage == GC_STUDENT_TIME ? time_ladder(session, request, *report, error)
                                                           : check_sizes(session, request, *report, error);
    if (!err)
        err = write_report(*report, request->result, error);
    if (err) {
        json_decref(*report);
        *report = NULL;
    }
    return err;
}
