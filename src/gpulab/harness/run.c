/*
 * Runs every variant of a module at every size and appends the results as rows of JSON.
 *
 * A sweep reproduces a curve of the courses: a convolution's time over the threads of one block, its rate over the
 * number of blocks, and a matrix product's rate over its size.
 */
#include "run.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODULES "kernels/course/modules.def" /* included twice */
#define LAB_MODULE(name) extern const gc_lab_module gc_lab_##name;
#include MODULES
#undef LAB_MODULE

static const gc_lab_module *const all_modules[] = {
#define LAB_MODULE(name) &gc_lab_##name,
#include MODULES
#undef LAB_MODULE
    NULL};

/* Elements of each output that are compared before a timed run. */
enum { TIMED_COMPARED = 1000 };

int gc_lab_modules(const gc_lab_module *const **modules) {
    int count = 0;
    while (all_modules[count])
        count++;
    *modules = all_modules;
    return count;
}

const gc_lab_module *gc_lab_module_find(const char *name) {
    for (int i = 0; all_modules[i]; i++)
        if (strcmp(all_modules[i]->name, name) == 0)
            return all_modules[i];
    return NULL;
}

const gc_lab_variant *gc_lab_variant_find(const gc_lab_module *module, const char *name) {
    for (int i = 0; i < module->variant_count; i++)
        if (strcmp(module->variants[i].name, name) == 0)
            return &module->variants[i];
    return NULL;
}

bool gc_lab_parse_size(const char *text, int64_t *size) {
    for (int d = 0; d < LAB_DIMENSIONS; d++) {
        char *end;
        long long value = strtoll(text, &end, 10);
        if (end == text || value < 1 || value > INT64_C(1) << 40)
            return false;
        size[d] = value;
        if (!*end)
            return true;
        if (*end != 'x')
            return false;
        text = end + 1;
    }
    return false;
}

void gc_lab_format_size(const gc_lab_module *module, const int64_t *size, char *text, size_t room) {
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < LAB_DIMENSIONS && module->dimension[d] && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", d ? "x" : "", (long long)size[d]);
}

const char *gc_lab_row_text(const json_t *row, const char *name) {
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

double gc_lab_row_number(const json_t *row, const char *name) {
    return json_number_value(json_object_get(row, name));
}

bool gc_lab_row_has(const json_t *row, const char *name, const char *value) {
    return strcmp(gc_lab_row_text(row, name), value) == 0;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static json_t *new_row(const gc_lab_module *module, const gc_lab_variant *v, const int64_t *size) {
    char text[100];
    gc_lab_format_size(module, size, text, sizeof text);
    return json_pack("{s:s, s:s, s:s, s:s}", "module", module->name, "variant", v->name, "where",
                     v->where == LAB_CPU ? "CPU" : "GPU", "size", text);
}

static void set_number(json_t *row, const char *name, double value) {
    json_object_set_new(row, name, isfinite(value) ? json_real(value) : json_null());
}

static void finish_row(json_t *rows, json_t *row, const char *state, const char *reason) {
    json_object_set_new(row, "state", json_string(state));
    if (reason)
        json_object_set_new(row, "why", json_string(reason));
    json_array_append_new(rows, row);
}

/* Returns the reason why a variant cannot run on this machine or in this build, or NULL. */
static const char *unavailable_reason(const gc_lab_session *session, const gc_lab_variant *v) {
    if (v->where == LAB_GPU && !session->device)
        return session->no_device;
    return v->launch ? NULL : "not in this build";
}

/* Prints the start of a progress line. Returns NULL, and prints nothing, without progress and for GPU variants on a
 * machine without a GPU, which gpulab has reported once. */
static FILE *begin_progress(const gc_lab_session *session, const gc_lab_job *job) {
    if (!session->progress || (job->variant->where == LAB_GPU && !session->device))
        return NULL;
    char size[100];
    gc_lab_format_size(job->module, job->size, size, sizeof size);
    (void)fprintf(session->progress, "%-16s %-34s %-18s ", job->module->name, job->variant->name, size);
    return session->progress;
}

static void print_reason(const gc_lab_session *session, const gc_lab_job *job, const char *state, const char *reason) {
    FILE *to = begin_progress(session, job);
    if (to && fprintf(to, "%s: %s\n", state, reason) > 0)
        (void)fflush(to);
}

static void print_number(const gc_lab_session *session, const gc_lab_job *job, const char *label, double value) {
    FILE *to = begin_progress(session, job);
    if (to && gc_print(to, "%s %.4g\n", label, value) > 0)
        (void)fflush(to);
}

/* How a variant ended: with an error, skipped for a reason, or (both unset) with a result. */
typedef struct ending {
    gpuconv_status err;
    gpuconv_error error;
    const char *skipped; /* the reason, or NULL */
} ending;

/* Runs a variant unless it is unavailable. */
static ending run_variant(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached,
                          gc_lab_outcome *outcome) {
    ending end = {.skipped = unavailable_reason(session, job->variant)};
    *outcome = (gc_lab_outcome){0};
    if (end.skipped)
        return end;
    end.err = gc_lab_session_run(session, job, cached, outcome, &end.error);
    if (outcome->unsupported)
        end.skipped = job->variant->needs ? job->variant->needs : "not supported by this device";
    return end;
}

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

static int check_variant(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached, json_t *rows) {
    json_t *row = new_row(job->module, job->variant, job->size);
    gc_lab_outcome outcome;
    ending end = run_variant(session, job, cached, &outcome);
    set_number(row, "rms", outcome.deviation.rms);
    set_number(row, "peak", outcome.deviation.peak);
    json_object_set_new(row, "compared", json_integer(outcome.deviation.compared));
    if (end.err || end.skipped) {
        const char *reason = end.err ? end.error.message : end.skipped;
        finish_row(rows, row, end.err ? "failed" : "skipped", reason);
        print_reason(session, job, end.err ? "FAILED" : "skipped", reason);
    } else {
        bool races = job->variant->flags & LAB_RACES;
        finish_row(rows, row, "agrees", NULL);
        print_number(session, job, races ? "races, not compared" : "agrees, error", outcome.deviation.rms);
    }
    return end.err != GPUCONV_OK;
}

int gc_lab_check_module(gc_lab_session *session, const gc_lab_module *module, const gc_lab_run_options *options,
                        json_t *rows) {
    int failures = 0;
    gc_lab_case *cached = NULL;
    for (int s = 0; s < module->size_count; s++) {
        const gc_lab_size *size = &module->sizes[s];
        if (!(size->use & (options->quick ? LAB_QUICK : LAB_CHECK | LAB_QUICK)))
            continue;
        for (int i = 0; i < module->variant_count; i++) {
            const gc_lab_variant *v = &module->variants[i];
            if ((v->flags & (LAB_RACES | LAB_LIBRARY)) && options->clean)
                continue;
            failures += check_variant(session, &(gc_lab_job){.module = module, .variant = v, .size = size->value},
                                      &cached, rows);
        }
    }
    gc_lab_case_free(cached);
    return failures;
}

/* ---- Timing ------------------------------------------------------------------------------------------------------ */

/* Returns the least time in which a device moves the bytes. Reading is faster than writing: the time of a written byte
 * is what the copy of a byte takes beyond its read. */
static double memory_seconds(const gc_lab_peak_rates *peak, gc_lab_cost cost) {
    if (!(peak->copy > 0) || !(peak->read > 0))
        return 0;
    double written = cost.written > 0 ? cost.written : cost.bytes / 2;
    return (cost.bytes - written) / peak->read + written * fmax(2 / peak->copy - 1 / peak->read, 0);
}

/* Adds the roofline's bound: the least time for the variant's bytes and operations at the peak rates of this run. */
static void add_roofline(const gc_lab_session *session, const gc_lab_job *job, double median, json_t *row) {
    const gc_lab_variant *v = job->variant;
    const gc_lab_peak_rates *peak = &session->peak_rates;
    gc_lab_cost cost = job->module->cost ? job->module->cost(job->size, v) : (gc_lab_cost){0};
    set_number(row, "bytes", cost.bytes);
    set_number(row, "operations", cost.operations);
    if (v->where == LAB_CPU || !(cost.bytes > 0))
        return;
    double memory_time = memory_seconds(peak, cost);
    double rate = peak->operations[v->unit], arithmetic_time = rate > 0 ? cost.operations / rate : 0;
    json_object_set_new(row, "bound", json_string(arithmetic_time > memory_time ? "arithmetic" : "memory"));
    set_number(row, "floor", fmax(memory_time, arithmetic_time));
    set_number(row, "share", fmax(memory_time, arithmetic_time) / median);
}

static void add_facts(const gc_lab_variant *v, const gc_lab_run *run, json_t *row) {
    gc_lab_facts f;
    if (v->facts && v->facts(run, &f) == 0)
        json_object_set_new(row, "facts",
                            json_pack("{s:i, s:i, s:i, s:i, s:i}", "registers", f.registers, "local_bytes",
                                      f.local_bytes, "shared_bytes", f.shared_bytes, "threads", f.threads, "blocks",
                                      f.blocks));
}

/* Adds the clock and temperature right after the timed launches. `run->clock_hz` is set to the clock under load, with
 * which a variant's figure() converts cycles. */
static void add_clock(const gc_lab_session *session, gc_lab_run *run, json_t *row) {
    gc_lab_nvml_reading reading;
    char reasons[200];
    if (!gc_lab_nvml_read(session->nvml, &reading))
        return;
    gc_lab_nvml_throttle_text(reading.throttle_reasons, reasons, sizeof reasons);
    if (reading.clock_hz > 0)
        run->clock_hz = reading.clock_hz;
    set_number(row, "clock_hz", reading.clock_hz);
    set_number(row, "celsius", reading.celsius);
    json_object_set_new(row, "throttled_by", json_string(reasons));
}

static void add_times(const gc_lab_outcome *outcome, const gc_lab_variant *v, json_t *row) {
    const gc_lab_timing_result *t = &outcome->timing;
    set_number(row, "median", t->median);
    set_number(row, "spread", t->spread);
    set_number(row, "least", t->least);
    if (t->cold > 0)
        set_number(row, "cold", t->cold);
    json_object_set_new(row, "n", json_integer(t->samples));
    json_object_set_new(row, "row", json_integer(t->launches));
    set_number(row, "rms", outcome->deviation.rms);
    json_object_set_new(row, "compared", json_integer(outcome->deviation.compared));
    json_object_set_new(row, "races", json_boolean(v->flags & LAB_RACES));
}

/* Copies the outputs of the last timed launch to the host and adds the results of the variant's describe() and
 * figure(), which read them. Prints the figure, or the time if there is none. */
static gpuconv_status add_figure(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case *c, double median,
                                 json_t *row, gpuconv_error *error) {
    const gc_lab_variant *v = job->variant;
    const gc_lab_run *run = gc_lab_case_run(c, v);
    gpuconv_status err = GPUCONV_OK;
    if (v->figure || v->describe) {
        gc_lab_deviation ignored;
        err = gc_lab_case_check(c, v, 1, &ignored, error);
    }
    if (v->describe && !err) {
        char text[300] = "";
        v->describe(run, text, sizeof text);
        json_object_set_new(row, "said", json_string(text));
    }
    if (v->figure && !err) {
        double figure = v->figure(run);
        set_number(row, "figure", figure);
        json_object_set_new(row, "unit", json_string(v->figure_unit));
        print_number(session, job, v->figure_unit, figure);
    } else {
        print_number(session, job, "ms", median * 1e3);
    }
    return err;
}

static int time_variant(const gc_lab_session *session, const gc_lab_job *job, gc_lab_case **cached, json_t *rows) {
    const gc_lab_variant *v = job->variant;
    json_t *row = new_row(job->module, v, job->size);
    gc_lab_outcome outcome;
    if (v->course)
        json_object_set_new(row, "course", json_string(v->course));
    ending end = run_variant(session, job, cached, &outcome);
    if (end.err || end.skipped) {
        const char *reason = end.err ? end.error.message : end.skipped;
        print_reason(session, job, end.err ? "FAILED" : "skipped", reason);
        finish_row(rows, row, end.err ? "failed" : "skipped", reason);
        return end.err != GPUCONV_OK;
    }
    double median = outcome.timing.median;
    add_times(&outcome, v, row);
    add_roofline(session, job, median, row);
    gc_lab_run *run = gc_lab_case_run(*cached, v);
    if (v->where == LAB_GPU)
        add_clock(session, run, row);
    add_facts(v, run, row);
    end.err = add_figure(session, job, *cached, median, row, &end.error);
    finish_row(rows, row, end.err ? "failed" : "measured", end.err ? end.error.message : NULL);
    return end.err != GPUCONV_OK;
}

int gc_lab_time_module(gc_lab_session *session, const gc_lab_module *module, const gc_lab_run_options *options,
                       json_t *rows) {
    const unsigned timed = LAB_GPU_TIME | LAB_CPU_TIME | LAB_SLOW_TIME | LAB_MIDDLE_TIME;
    gc_lab_case *cached = NULL;
    int failures = 0, sizes = options->size ? 1 : module->size_count;
    for (int s = 0; s < sizes; s++) {
        unsigned use = options->size ? timed : module->sizes[s].use & timed;
        const int64_t *size = options->size ? options->size : module->sizes[s].value;
        for (int i = 0; use && i < module->variant_count; i++) {
            const gc_lab_variant *v = &module->variants[i];
            unsigned at = v->at ? v->at : v->where == LAB_CPU ? LAB_CPU_TIME : LAB_GPU_TIME;
            const gc_lab_job job = {module, v, size, .max_compared = TIMED_COMPARED, .timed = true};
            if (at & use)
                failures += time_variant(session, &job, &cached, rows);
        }
    }
    gc_lab_case_free(cached);
    return failures;
}

/* ---- Effects ----------------------------------------------------------------------------------------------------- */

/* Returns the variant's figure, or its time if it has none. */
static double figure_or_time(const json_t *row) {
    const json_t *figure = json_object_get(row, "figure");
    return figure ? json_number_value(figure) : json_number_value(json_object_get(row, "median"));
}

/* Returns the row of a variant that was measured at a size, or NULL. */
static json_t *find_measured(const gc_lab_module *module, const char *variant, const char *size, json_t *rows) {
    size_t i;
    json_t *row;
    json_array_foreach(
        rows, i, row) if (gc_lab_row_has(row, "module", module->name) && gc_lab_row_has(row, "variant", variant) &&
                          gc_lab_row_has(row, "state", "measured") && gc_lab_row_has(row, "size", size)) return row;
    return NULL;
}

/* Appends a row for an effect. Returns 1 if the effect does not hold, else 0. */
static int append_effect(const gc_lab_module *module, const gc_lab_effect *e, const json_t *fast, double ratio,
                         json_t *effects) {
    bool holds = e->agree ? ratio <= e->ratio && ratio >= 1 / e->ratio : ratio >= e->ratio;
    json_array_append_new(effects, json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:o, s:b}", "module", module->name,
                                             "what", e->what, "slower", e->slower ? e->slower : "its ceiling", "faster",
                                             e->faster, "size", json_string_value(json_object_get(fast, "size")),
                                             "agree", e->agree, "wanted", e->ratio, "ratio",
                                             isfinite(ratio) ? json_real(ratio) : json_null(), "holds", holds));
    return !holds;
}

int gc_lab_check_effects(const gc_lab_module *module, json_t *rows, json_t *effects) {
    int failures = 0;
    for (int e = 0; e < module->effect_count; e++) {
        const gc_lab_effect *effect = &module->effects[e];
        size_t i;
        json_t *row;
        const json_t *fast = NULL;
        double ratio = 0;
        json_array_foreach(rows, i, row) {
            if (!gc_lab_row_has(row, "module", module->name) || !gc_lab_row_has(row, "variant", effect->faster) ||
                !gc_lab_row_has(row, "state", "measured"))
                continue;
            const char *size = json_string_value(json_object_get(row, "size"));
            const json_t *share = json_object_get(row, "share"),
                         *slow = effect->slower ? find_measured(module, effect->slower, size, rows) : NULL;
            if (effect->slower ? !slow : !json_is_number(share))
                continue;
            fast = row;
            ratio = slow ? figure_or_time(slow) / figure_or_time(row) : json_number_value(share);
        }
        if (fast)
            failures += append_effect(module, effect, fast, ratio, effects);
    }
    return failures;
}

/* ---- Sweeps ------------------------------------------------------------------------------------------------------ */

enum { MAX_POINTS = 128, COLUMNS = 2, COMPARED = 64 /* elements of each output */ };

typedef struct sweep {
    const char *name, *module, *axis, *unit;
    const char *variants[COLUMNS], *columns[COLUMNS];
    int (*list_points)(int multiprocessors, int64_t *x); /* fills x with at most MAX_POINTS; returns their number */
    void (*apply)(int64_t x, gc_lab_variant *variant, int64_t *size);
    double (*value)(const int64_t *size, double seconds);
} sweep;

/* ---- Convolution (Stahl 11) -------------------------------------------------------------------------------------- */

static int list_threads(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t t = 1; t < 32; t *= 2)
        x[n++] = t;
    for (int64_t t = 32; t <= 1024; t += 32)
        x[n++] = t;
    return n;
}

/* The parameter of the kernels with a grid-stride loop is blocks * 2048 + threads. */
static void apply_threads(int64_t x, gc_lab_variant *variant, int64_t *size) {
    variant->parameter = 2048 + (int)x;
    size[0] = 1 << 13;
    size[1] = 512;
}

static void sort_points(int64_t *x, int n) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0 && x[k] < x[k - 1]; k--) {
            int64_t t = x[k];
            x[k] = x[k - 1];
            x[k - 1] = t;
        }
}

/* Lists powers of two and points around every multiple of the multiprocessor count, where the rate drops because the
 * last wave of blocks is not full. */
static int list_blocks(int multiprocessors, int64_t *x) {
    int n = 0;
    for (int64_t b = 1; b <= 16384; b *= 2)
        x[n++] = b;
    for (int64_t k = 1; k <= 12; k++)
        for (int64_t d = -1; d <= 1; d++)
            x[n++] = k * multiprocessors + d * multiprocessors / 6;
    sort_points(x, n);
    int kept = 1;
    for (int i = 1; i < n; i++)
        if (x[i] != x[kept - 1])
            x[kept++] = x[i];
    return kept;
}

static void apply_blocks(int64_t x, gc_lab_variant *variant, int64_t *size) {
    variant->parameter = (int)x * 2048 + 512;
    size[0] = 1 << 22;
    size[1] = 512;
}

static double milliseconds(const int64_t *size, double seconds) {
    (void)size;
    return seconds * 1e3;
}

static double convolution_rate(const int64_t *size, double seconds) {
    return 2 * (double)size[0] * (double)size[1] / seconds * 1e-12;
}

/* ---- Quantisation of the matrix product -------------------------------------------------------------------------- */

static int list_sizes(int multiprocessors, int64_t *x) {
    int n = 0;
    (void)multiprocessors;
    for (int64_t s = 512; s <= 4096; s += 64)
        x[n++] = s;
    return n;
}

static void apply_size(int64_t x, gc_lab_variant *variant, int64_t *size) {
    (void)variant;
    size[0] = size[1] = size[2] = x;
}

static double product_rate(const int64_t *size, double seconds) {
    return 2 * (double)size[0] * (double)size[1] * (double)size[2] / seconds * 1e-12;
}

static const sweep sweeps[] = {
    {"convolution threads",
     "convolution",
     "threads of one block",
     "ms",
     {"one block, taps global", "one block, taps constant"},
     {"taps global, ms", "taps constant, ms"},
     list_threads,
     apply_threads,
     milliseconds},
    {"convolution blocks",
     "convolution",
     "blocks of 512 threads",
     "TFLOP/s",
     {"taps global", "taps constant"},
     {"taps global, TFLOP/s", "taps constant, TFLOP/s"},
     list_blocks,
     apply_blocks,
     convolution_rate},
    {"matmul size",
     "matmul",
     "rows, columns and depth",
     "TFLOP/s",
     {"register-tiled", "cuBLAS pedantic fp32"},
     {"register-tiled, TFLOP/s", "cuBLAS pedantic, TFLOP/s"},
     list_sizes,
     apply_size,
     product_rate},
};

const char *gc_lab_sweep_name(int i) {
    return i >= 0 && i < LAB_LENGTH(sweeps) ? sweeps[i].name : NULL;
}

/* Appends one column's value to every point; null where the device does not support the variant. Stops at the first
 * error, which it prints, and returns false. */
static bool append_column(const gc_lab_session *session, const sweep *s, int column, const int64_t *x, int n,
                          json_t *points) {
    const gc_lab_module *module = gc_lab_module_find(s->module);
    gc_lab_variant variant = *gc_lab_variant_find(module, s->variants[column]);
    int64_t size[LAB_DIMENSIONS] = {0};
    const gc_lab_job job = {module, &variant, size, .max_compared = COMPARED, .timed = true};
    gc_lab_case *cached = NULL;
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; i < n && !err; i++) {
        gpuconv_error error = {0};
        gc_lab_outcome outcome;
        memset(size, 0, sizeof size);
        s->apply(x[i], &variant, size);
        err = gc_lab_session_run(session, &job, &cached, &outcome, &error);
        if (err && session->progress)
            (void)fprintf(session->progress, "sweep %s, %lld: %s\n", s->name, (long long)x[i], error.message);
        double seconds = err || outcome.unsupported ? 0 : outcome.timing.median;
        json_array_append_new(json_array_get(points, (size_t)i),
                              seconds > 0 ? json_real(s->value(size, seconds)) : json_null());
    }
    gc_lab_case_free(cached);
    return !err;
}

bool gc_lab_sweep(const gc_lab_session *session, const char *name, json_t *results) {
    const sweep *s = NULL;
    for (int i = 0; i < LAB_LENGTH(sweeps); i++)
        if (strcmp(sweeps[i].name, name) == 0)
            s = &sweeps[i];
    if (!s)
        return false;
    int64_t x[MAX_POINTS];
    json_t *points = json_array(), *columns = json_array();
    bool good = true;
    int n = session->device ? s->list_points(gc_lab_device_get_info(session->device)->multiprocessors, x) : 0;
    for (int i = 0; i < n; i++)
        json_array_append_new(points, json_pack("[f]", (double)x[i]));
    for (int c = 0; c < COLUMNS; c++) {
        json_array_append_new(columns, json_string(s->columns[c]));
        good = good && (n == 0 || append_column(session, s, c, x, n, points));
    }
    json_object_set_new(
        results, name,
        json_pack("{s:s, s:s, s:o, s:o}", "across", s->axis, "unit", s->unit, "columns", columns, "points", points));
    if (!session->device)
        json_object_set_new(json_object_get(results, name), "missing", json_string(session->no_device));
    return good;
}
