/*
 * Runs a student's kernel, which was compiled as a shared library, on the buffers of a module: checks it against the
 * reference, and times it among the rungs.
 *
 * The library is loaded in a process of its own, because a kernel may damage the GPU's context, run for ever, or end
 * the process. This process writes what it finds into a file, as JSON, before every step, so that the file names the
 * step in which the process ended.
 *
 * A wrong output is explained: its elements are classified, and the indices of the wrong ones searched for patterns.
 */
#include "student.h"

#include "emulator/emulator.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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

/* Adds the counts of the emulator at the last size. */
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

/* ---- Diagnoses --------------------------------------------------------------------------------------------------- */

typedef enum kind { RIGHT, UNWRITTEN, NOT_A_NUMBER, INFINITE, WRONG } kind;

/* Returns whether all bytes of an element still have the value that they had before the run. */
static bool is_unwritten(const gc_lab_output *o, int64_t index) {
    int64_t bytes = gc_lab_type_bytes(o->type);
    const unsigned char *at = (const unsigned char *)o->elements + index * bytes;
    for (int64_t i = 0; i < bytes; i++)
        if (at[i] != 0xff)
            return false;
    return true;
}

/* Returns the largest difference that an element may have: eight times the tolerance, of the largest expected value. */
static double allowed_difference(const gc_lab_output *o) {
    double peak = 0;
    for (int64_t i = 0; i < o->count; i++)
        peak = fmax(peak, fabs(o->expected[i]));
    return 8 * o->tolerance * peak;
}

static kind classify(const gc_lab_output *o, int64_t index, double allowed) {
    double got = gc_lab_decode(o->type, o->elements, index), want = o->expected[index];
    if (!(o->tolerance > 0))
        want = gc_lab_round(o->type, want);
    if (fabs(got - want) <= (o->tolerance > 0 ? allowed : 0))
        return RIGHT;
    if (is_unwritten(o, index))
        return UNWRITTEN;
    return isnan(got) ? NOT_A_NUMBER : isinf(got) ? INFINITE : WRONG;
}

/* Sets the pattern if all wrong elements lie in at most a quarter of every 1024, 512, ... 32 elements, with
 * the largest such number. */
static void find_period(const gc_lab_output *o, double allowed, gc_lab_diagnosis *d) {
    int64_t bad = d->unwritten + d->nan + d->infinite + d->wrong;
    for (int period = 1024; period >= 32 && bad >= 4; period /= 2) {
        int from = period, to = -1;
        if (o->count < 3 * period || d->last - d->first < 2 * period)
            continue;
        for (int64_t i = d->first; i <= d->last; i++)
            if (classify(o, i, allowed) != RIGHT) {
                int at = (int)(i % period);
                from = at < from ? at : from;
                to = at > to ? at : to;
            }
        if (to - from < period / 4) {
            d->period = period;
            d->from = from;
            d->to = to;
            return;
        }
    }
}

/* Looks for the place whose expected value was found at the first wrong element. A value that occurs twice says
 * nothing. */
static int64_t find_value(const gc_lab_output *o, const gc_lab_diagnosis *d, double allowed) {
    int64_t found = -1;
    if (!gc_lab_type_is_float(o->type) || !(fabs(d->got) > allowed) || !isfinite(d->got))
        return -1;
    for (int64_t i = 0; i < o->count; i++)
        if (fabs(o->expected[i] - d->got) <= 1e-6 * fabs(d->got)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

bool gc_lab_diagnose(const gc_lab_output *output, gc_lab_diagnosis *d) {
    double allowed = allowed_difference(output);
    *d = (gc_lab_diagnosis){.first = -1, .last = -1, .belongs = -1};
    for (int64_t i = 0; i < output->count; i++) {
        kind k = classify(output, i, allowed);
        if (k == RIGHT)
            continue;
        d->unwritten += k == UNWRITTEN;
        d->nan += k == NOT_A_NUMBER;
        d->infinite += k == INFINITE;
        d->wrong += k == WRONG;
        d->first = d->first < 0 ? i : d->first;
        d->last = i;
    }
    if (d->first < 0)
        return true;
    d->got = gc_lab_decode(output->type, output->elements, d->first);
    d->expected = output->expected[d->first];
    find_period(output, allowed, d);
    if (classify(output, d->first, allowed) == WRONG)
        d->belongs = find_value(output, d, allowed);
    return false;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* A text that grows to the end of its room. */
typedef struct growing {
    char *text;
    size_t room, used;
} growing;

static void add(growing *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(growing *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (to->used < to->room) {
        int written = gc_vformat(to->text + to->used, to->room - to->used, format, args);
        to->used += written > 0 ? (size_t)written : 0;
    }
    va_end(args);
}

static void add_count(growing *to, int64_t count, const char *what) {
    if (count > 0)
        add(to, "%s%lld %s", to->used && to->text[to->used - 1] != ' ' ? ", " : "", (long long)count, what);
}

/* Adds the likely cause of elements that were not written. */
static void add_unwritten_cause(growing *to, const gc_lab_output *o, const gc_lab_diagnosis *d) {
    if (d->unwritten == o->count)
        add(to, "\nNothing was written: the kernel was not launched, or every thread returned before its store.");
    else if (d->last == o->count - 1 && d->unwritten == d->last - d->first + 1)
        add(to,
            "\nEverything from index %lld on was never written: the grid ends too early. The number of blocks must be "
            "rounded up: (n + BLOCK - 1) / BLOCK.",
            (long long)d->first);
    else
        add(to, "\nSome elements were never written: no thread computes these indices.");
}

static void add_causes(growing *to, const gc_lab_output *o, const gc_lab_diagnosis *d) {
    if (d->unwritten && !d->wrong && !d->nan)
        add_unwritten_cause(to, o, d);
    if (d->nan)
        add(to, "\nNaN comes from 0 / 0, from the root of a negative number, from a variable or shared memory that was "
                "read before it was set, or from an input that was read outside its buffer.");
    if (d->infinite && !d->nan)
        add(to, "\nInfinity comes from a division by 0 or from a sum that was not reset.");
    if (o->count == 1 && d->wrong)
        add(to, "\nAn element that many threads update needs an atomic operation (atomicAdd), and a beginning of 0.");
    if (d->belongs >= 0)
        add(to, "\nThe value that was found belongs to index %lld: an index is computed wrongly.",
            (long long)d->belongs);
    if (d->period)
        add(to,
            "\nAll of them lie at places %d to %d of every %d elements: look at the edges of a block or tile, at its "
            "halo, and at a barrier (__syncthreads) between writing and reading shared memory.",
            d->from, d->to, d->period);
}

void gc_lab_diagnosis_text(const gc_lab_output *o, const gc_lab_diagnosis *d, char *text, size_t room) {
    growing to = {text, room, 0};
    text[0] = '\0';
    if (d->first < 0)
        return;
    if (is_unwritten(o, d->first))
        add(&to, "%s[%lld] was never written and must be %.9g.", o->name, (long long)d->first, d->expected);
    else
        add(&to, "%s[%lld] is %.9g and must be %.9g.", o->name, (long long)d->first, d->got, d->expected);
    add(&to, " Of %lld elements ", (long long)o->count);
    add_count(&to, d->wrong, "are wrong");
    add_count(&to, d->nan, "are NaN");
    add_count(&to, d->infinite, "are infinite");
    add_count(&to, d->unwritten, "were never written");
    add(&to, ".");
    add_causes(&to, o, d);
}

const char *gc_lab_explain_code(int code) {
    static const struct {
        int code;
        const char *text;
    } known[] = {
        {1, "an argument of the launch or of a call is not valid: a block has 1 to 1024 threads, a grid at least one "
            "block in each dimension, and shared memory above 48 KiB needs cudaFuncSetAttribute"},
        {2, "the device has no memory left"},
        {9,
         "the launch is not possible: a block has 1 to 1024 threads, a grid at least one block in each dimension, and "
         "a block at most 48 KiB of shared memory unless more is requested"},
        {209, "the program has no code for this GPU"},
        {700, "a thread read or wrote an address that belongs to no buffer: an index is too large or negative, or a "
              "pointer of the host was passed to the kernel"},
        {701, "a block needs more registers or shared memory than a multiprocessor has: use fewer threads per block"},
        {702, "the kernel ran too long"},
        {710, "an assert in the kernel failed"},
        {715, "the kernel executed an illegal instruction"},
        {716, "an address is not a multiple of the type's size: a float4 needs 16 bytes of alignment"},
        {719, "the kernel failed: usually an address outside every buffer"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return NULL;
}
