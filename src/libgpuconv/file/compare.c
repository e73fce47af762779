/*
 * gc_compare: computes a finished job again in other ways, one after another. For each way two times are measured:
 *
 * - computing, as gpuconv bench does: the samples are in memory (that of the GPU for the GPU), the convolver exists and
 *   has run once; the median of up to RUNS runs;
 * - file to file, the job as the user would start it: a new run that reads the input and the response again and writes
 *   a file of the same format, which is then discarded.
 *
 * A measurement that would not fit its share of the budget is made on a part of the result, from its beginning, and
 * multiplied by the ratio of the frames. The plan predicts how long a part may be; a short run comes first, because
 * predictions may be wrong by a factor. Shares that are not used up pass on to the later ways, which are the slow ones.
 *
 * Memory is bounded: the samples for computing are those of the first frames of the input that fit MEMORY.
 */

#include "job.h"

#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/pool.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/measure/measure.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The ways: the GPU, the CPU on all cores and on one core, direct sums on one core. */
enum { GC_WAYS = 4 };

/* A time of the whole job. It was measured on `frames` frames of the result from its beginning; if that is a part, the
 * time that depends on the length was multiplied by the ratio of the lengths. */
typedef struct gc_way_time {
    double seconds, spread; /* the median of the runs, and half of their range */
    int runs;
    int64_t frames;
} gc_way_time;

typedef struct gc_way {
    char label[64]; /* such as "GPU", "2 cores", "directly" */
    gpuconv_config config;
    gpuconv_plan *plan;
    bool own;                         /* the job was computed in this way */
    double start;                     /* seconds that planning took, in which a GPU starts */
    gc_way_time computing, from_file; /* with samples in memory and without set-up; from file to file */
    double residual;                  /* dB, relative to the first way; NaN: the first way itself */
} gc_way;

/* The measured figures of a job. */
typedef struct gc_comparison {
    const gc_file_task *task; /* the finished job */
    gc_way way[GC_WAYS];
    int ways;
    int64_t frames;     /* of the result */
    double budget;      /* seconds */
    char left_out[512]; /* ways that failed, with the reason; "": none */
} gc_comparison;

/* ---- The report -------------------------------------------------------------------------------------------------- */

enum { SENTENCE = 512, WORD = 32 };

/* Rounds to a number of significant digits. */
static double round_to(double value, int digits) {
    const double unit = value > 0 ? pow(10, floor(log10(value)) - (digits - 1)) : 1;
    return rint(value / unit) * unit;
}

/* Writes a time with its unit, such as "0.9 ms", "38 s" or "10 min". */
static void format_time(double seconds, int digits, char word[WORD]) {
    static const struct {
        const char *unit;
        double seconds, most;
    } units[] = {{"us", 1e-6, 1e-3}, {"ms", 1e-3, 1}, {"s", 1, 100}, {"min", 60, 6000}, {"h", 3600, HUGE_VAL}};
    const double rounded = round_to(seconds, digits);
    int u = 0;
    while (rounded >= units[u].most * (1 - 1e-9))
        u++;
    if (u == 0 && rounded >= 1e-4)
        u = 1;
    (void)gc_format(word, WORD, "%.*g %s", digits + 1, round_to(seconds / units[u].seconds, digits), units[u].unit);
}

/* Writes how many times as long, with two digits: "1.4 x", "23 x", "40 000 x"; of a faster way "21 times as fast". */
static void format_times(double ratio, char word[WORD]) {
    const double rounded = round_to(ratio, 2);
    if (ratio < 1 / 1.1) {
        (void)gc_format(word, WORD, "%.6g times as fast", round_to(1 / ratio, 2));
        return;
    }
    if (rounded < 10000 || !(rounded < 1e12)) {
        (void)gc_format(word, WORD, "%.6g x", rounded);
        return;
    }
    char digits[WORD];
    const int count = gc_format(digits, sizeof digits, "%.0f", rounded);
    int to = 0;
    for (int i = 0; i < count; i++) {
        word[to++] = digits[i];
        if ((count - 1 - i) % 3 == 0)
            word[to++] = ' ';
    }
    (void)gc_format(word + to, WORD - (size_t)to, "x");
}

static double audio_seconds(const gc_comparison *c, int64_t frames) {
    return (double)frames / gc_reader_info(c->task->transfer.reader)->rate;
}

static bool is_part(const gc_comparison *c, const gc_way_time *time) {
    return time->frames < c->frames;
}

/* Writes how much of the result a time was measured on, if not on all of it: "2 s". */
static void format_part(const gc_comparison *c, const gc_way_time *time, char word[WORD]) {
    word[0] = '\0';
    if (is_part(c, time))
        format_time(audio_seconds(c, time->frames), 2, word);
}

/* Appends one way: "16 cores 21 ms (23 x, from 2 s of it)". The first way has no factor. */
static void append_way(char s[SENTENCE], const gc_comparison *c, const gc_way *w, const gc_way_time *time,
                       const gc_way_time *first) {
    char word[WORD], part[WORD], other[WORD];
    format_part(c, time, part);
    format_time(time->seconds, 2, word);
    if (time != first) {
        format_times(time->seconds / first->seconds, other);
        gc_append(s, SENTENCE, "%s %s (%s%s%s%s)", w->label, word, other, *part ? ", from " : "", part,
                  *part ? " of it" : "");
        return;
    }
    format_time(audio_seconds(c, c->task->transfer.read), 3, other);
    gc_append(s, SENTENCE, "%s: %s for %s%s%s%s%s", w->label, word, other,
              time == &w->from_file ? " from file to file" : "", *part ? " (from " : "", part, *part ? " of it)" : "");
}

/* Appends all ways. */
static void append_ways(char s[SENTENCE], const gc_comparison *c, bool files) {
    const gc_way_time *first = files ? &c->way[0].from_file : &c->way[0].computing;
    for (int i = 0; i < c->ways; i++) {
        gc_append(s, SENTENCE, "%s", i == 0 ? "" : i == 1 ? "; " : ", ");
        append_way(s, c, &c->way[i], files ? &c->way[i].from_file : &c->way[i].computing, first);
    }
}

/* Appends the largest difference between the outputs. */
static void append_residual(char s[SENTENCE], const gc_comparison *c) {
    double most = -HUGE_VAL;
    for (int i = 1; i < c->ways; i++)
        most = c->way[i].residual <= most ? most : c->way[i].residual; /* NaN is kept */
    if (most > -HUGE_VAL)
        gc_append(s, SENTENCE, "; outputs differ by %.0f dB", most);
    else
        gc_append(s, SENTENCE, "; the outputs are equal");
}

static void report_way(gpuconv_report *report, const gc_comparison *c, const gc_way *w) {
    const gc_way *first = &c->way[0];
    char computing[WORD], files[WORD];
    format_part(c, &w->computing, computing);
    format_part(c, &w->from_file, files);
    const gc_report_cell cells[] = {
        {.name = "algorithm", .text = gpuconv_algorithm_name(gpuconv_plan_algorithm(w->plan))},
        {.name = "computing s", .number = w->computing.seconds},
        {.name = "x computing", .number = w->computing.seconds / first->computing.seconds},
        {.name = "measured on", .text = *computing ? computing : "all of it"},
        {.name = "file to file s", .number = w->from_file.seconds},
        {.name = "x file to file", .number = w->from_file.seconds / first->from_file.seconds},
        {.name = "files measured on", .text = *files ? files : "all of it"},
        {.name = "residual dB", .number = w->residual},
        {.name = "backend", .text = gpuconv_backend_name(gpuconv_plan_backend(w->plan)), .detail = true},
        {.name = "threads", .number = gpuconv_plan_threads(w->plan), .detail = true},
        {.name = "this job", .number = w->own, .detail = true},
        {.name = "computing frames", .number = (double)w->computing.frames, .detail = true},
        {.name = "computing runs", .number = w->computing.runs, .detail = true},
        {.name = "computing spread s", .number = w->computing.spread, .detail = true},
        {.name = "file to file frames", .number = (double)w->from_file.frames, .detail = true},
        {.name = "file to file runs", .number = w->from_file.runs, .detail = true},
        {.name = "file to file spread s", .number = w->from_file.spread, .detail = true},
    };
    gc_report_cells(report, "comparison", w->label, (int)(sizeof cells / sizeof *cells), cells);
}

/* Adds the sections "compared" (sentences) and "comparison" (a row for each way). */
static void report_comparison(gpuconv_report *report, const gc_comparison *c) {
    char computing[SENTENCE] = "", files[SENTENCE] = "", legend[SENTENCE];
    if (c->ways > 0) {
        append_ways(computing, c, false);
        if (c->ways > 1)
            append_residual(computing, c);
        append_ways(files, c, true);
        const char *own = c->way[0].label;
        gc_format(
            legend, sizeof legend,
            "computing: samples in memory, without set-up; x: how many times as long as %s; file to file: with set-up "
            "and the start of a GPU, to a file that is then discarded; a time that was measured on a part is scaled "
            "by frames to the whole job; residual: the outputs' difference from those of %s",
            own, own);
        gc_report_headline(report, "compared", "computing", computing);
        gc_report_headline(report, "compared", "files", files);
        gc_report_text(report, "compared", "read as", legend);
    }
    if (*c->left_out)
        gc_report_text(report, "compared", "left out", c->left_out);
    gc_report_measure(report, "compared", "audio", audio_seconds(c, c->task->transfer.read), "s", 1, 0);
    gc_report_count(report, "compared", "frames", c->frames);
    gc_report_measure(report, "compared", "budget", c->budget, "s", 1, 0);
    for (int i = 0; i < c->ways; i++)
        report_way(report, c, &c->way[i]);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

enum { RUNS = 9, FILE_RUNS = 3, PIECE = 1 << 16 /* frames */ };

/* Seconds for all ways, if the job does not say. */
static const double default_budget = 10;

/* Share of the time of a measurement that repetitions may take. */
static const double repeated = 0.5;

/* Bytes of the samples in memory: an input and two outputs, and those that the backend copies. At most half of the
 * memory that is free. Ten minutes of stereo at 48 kHz fit. */
static const int64_t memory_most = INT64_C(1200) << 20;

/* A running comparison. */
typedef struct run {
    gc_comparison c;
    const gpuconv_job *job;
    const gpuconv_ir *ir;
    int inputs, outputs;
    int64_t room;         /* frames in memory */
    float *samples;       /* inputs, outputs of the first way, outputs of the present one */
    const float **in;     /* rows of `samples` */
    float **first, **out; /* the same */
    double deadline;      /* time at which the budget is used up */
    int left;             /* measurements that are still to come */
} run;

/* ---- The ways ---------------------------------------------------------------------------------------------------- */

/* Returns the CPU's algorithm for streams that has no transforms. */
static gpuconv_algorithm find_direct(void) {
    const gc_algorithm *const *row = gc_backend_find(GPUCONV_BACKEND_CPU)->algorithms;
    while ((*row)->kind != GC_STREAM || (*row)->most > 0)
        row++;
    return (*row)->id;
}

/* Notes that a way is left out. */
static void leave_out(gc_comparison *c, const char *label, const gpuconv_error *reason) {
    gc_append(c->left_out, sizeof c->left_out, "%s%s: %.200s", *c->left_out ? "; " : "", label, reason->message);
}

static bool same_way(const gpuconv_plan *a, const gpuconv_plan *b) {
    return a->backend == b->backend && a->choice.algorithm == b->choice.algorithm &&
           a->device.threads == b->device.threads && a->choice.schedule.transform == b->choice.schedule.transform;
}

/* Plans a way, unless the job was computed in it. A way that equals an earlier one, or that this machine does not have,
 * is not added. */
static void add_way(run *r, const char *label, const gpuconv_config *config, bool own) {
    gc_way *w = &r->c.way[r->c.ways];
    gpuconv_error reason = {0};
    *w = (gc_way){.config = *config, .own = own, .residual = (double)NAN};
    w->config.frames = gc_reader_info(r->c.task->transfer.reader)->frames;
    w->config.latency_frames = -1;
    (void)snprintf(w->label, sizeof w->label, "%s", label);
    const double begin = gc_now();
    if (own)
        w->plan = gc_plan_hold(r->c.task->plan);
    else if (gpuconv_plan_new(r->ir, &w->config, &w->plan, &reason) != GPUCONV_OK)
        leave_out(&r->c, label, &reason);
    w->start = gc_now() - begin;
    bool known = !w->plan;
    for (int i = 0; i < r->c.ways && !known; i++)
        known = same_way(r->c.way[i].plan, w->plan);
    if (known)
        gpuconv_plan_free(w->plan);
    else
        r->c.ways++;
}

/* Adds the way of a CPU with this many threads; 0: all cores. */
static void add_cpu(run *r, const gpuconv_config *config, bool own) {
    char label[64], algorithm[32] = "";
    const int threads = config->threads ? config->threads : gc_processor_count();
    if (config->algorithm)
        (void)snprintf(algorithm, sizeof algorithm, ", %s", gpuconv_algorithm_name(config->algorithm));
    if (threads == 1)
        (void)snprintf(label, sizeof label, "one core%s", algorithm);
    else
        (void)snprintf(label, sizeof label, "%d cores%s", threads, algorithm);
    add_way(r, label, config, own);
}

/* Lists the ways. That of the job, which may have an algorithm and a number of threads that the user chose, stands for
 * its processor. With --backend cpu a GPU is left alone. */
static void list_ways(run *r, const gpuconv_config *config) {
    const gpuconv_backend own = gpuconv_plan_backend(r->c.task->plan);
    gpuconv_config way = gpuconv_config_default();
    way.device = config->device;
    way.backend = GPUCONV_BACKEND_CUDA;
    if (own == GPUCONV_BACKEND_CUDA)
        way.algorithm = config->algorithm;
    if (config->backend != GPUCONV_BACKEND_CPU)
        add_way(r, "GPU", &way, own == GPUCONV_BACKEND_CUDA);
    way = gpuconv_config_default();
    way.backend = GPUCONV_BACKEND_CPU;
    way.threads = config->threads;
    if (own == GPUCONV_BACKEND_CPU)
        way.algorithm = config->algorithm;
    add_cpu(r, &way, own == GPUCONV_BACKEND_CPU);
    way.algorithm = GPUCONV_ALGORITHM_AUTO;
    way.threads = 1;
    add_cpu(r, &way, false);
    way.algorithm = find_direct();
    add_way(r, "directly", &way, false);
}

/* ---- Samples in memory ------------------------------------------------------------------------------------------- */

/* Reads the first frames of the input into planes; zeros follow its end, as in the job. */
static gpuconv_status read_samples(run *r, gpuconv_error *error) {
    const gc_input_options wish = {.raw = r->job->raw, .cancel = gc_cancel_flag()};
    gc_reader *reader;
    gpuconv_status status = gc_reader_open(r->job->input, &wish, &reader, error);
    if (status)
        return status;
    float *piece = gc_calloc(r->inputs, PIECE * (int64_t)sizeof *piece);
    if (gc_reader_info(reader)->channels != r->inputs)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: has changed since it was convolved", r->job->input);
    else if (!piece)
        status = gc_fail_memory(error, "the comparison");
    int64_t got = 1;
    for (int64_t at = 0; !status && got > 0 && at < r->room; at += got) {
        status = gc_cancelled() ? gc_fail_cancelled(error, "the comparison")
                                : gc_reader_read_floats(reader, piece, gc_min(PIECE, r->room - at), &got, error);
        if (!status && got > 0)
            gc_pcm_unpack(gc_simd_best(), (gc_pcm){GC_F32, 32}, piece, r->inputs, got, (float *const *)r->in, at);
    }
    free(piece);
    gc_reader_free(reader);
    return status;
}

/* Allocates the samples and reads the input. */
static gpuconv_status load(run *r, gpuconv_error *error) {
    const int rows = r->inputs + 2 * r->outputs, copied = r->inputs + r->outputs;
    const int64_t most = gc_min(memory_most, gc_memory_available() / 2);
    r->room = gc_max(1, gc_min(r->c.frames, most / ((rows + copied) * (int64_t)sizeof(float))));
    r->samples = gc_calloc(rows, r->room * (int64_t)sizeof *r->samples);
    r->in = gc_calloc(rows, (int64_t)sizeof *r->in);
    r->out = gc_calloc(2 * r->outputs, (int64_t)sizeof *r->out);
    if (!r->samples || !r->in || !r->out)
        return gc_fail_memory(error, "the comparison");
    r->first = r->out + r->outputs;
    for (int i = 0; i < r->inputs; i++)
        r->in[i] = r->samples + i * r->room;
    for (int i = 0; i < 2 * r->outputs; i++)
        r->out[i] = r->samples + (r->inputs + i) * r->room;
    return read_samples(r, error);
}

/* ---- Measurements ------------------------------------------------------------------------------------------------ */

/* Returns the seconds that the next measurement may take. */
static double next_share(run *r) {
    return fmax(0.02, (r->deadline - gc_now()) / gc_max(1, r->left--));
}

/* Scales a time by frames to the whole result. */
static double scale(const run *r, double seconds, int64_t frames) {
    return seconds * (double)r->c.frames / (double)frames;
}

/* Times `runs` runs on the first `frames` frames. */
static gpuconv_status time_frames(const run *r, gc_way *w, int64_t frames, int runs, gpuconv_error *error) {
    double seconds[RUNS];
    float *const *out = w == r->c.way ? r->first : r->out;
    const gc_timing timing = {r->in, out, frames, runs, seconds};
    const gpuconv_status status = gc_measures_find(w->plan->backend->id)->time_plan(w->plan, &timing, error);
    if (status)
        return status;
    double spread;
    const double median = gc_median(seconds, runs, &spread);
    w->computing = (gc_way_time){scale(r, median, frames), scale(r, spread, frames), runs, frames};
    return GPUCONV_OK;
}

/* Times computing alone: first a short run, then as much as fits. Every run is preceded by one that warms up. */
static gpuconv_status time_computing(run *r, gc_way *w, gpuconv_error *error) {
    const gc_choice *choice = &w->plan->choice;
    const double share = next_share(r), begin = gc_now();
    const int64_t step = gc_max(1024, choice->schedule.hop);
    const int64_t least = choice->schedule.transform ? gc_max(choice->chunk, 2 * choice->schedule.taps) : step;
    const double predicted = (double)r->c.frames * 0.05 * share / fmax(choice->predicted, 1e-9);
    int64_t frames = gc_min(r->room, gc_round_up(gc_max(least, (int64_t)fmin(predicted, (double)r->room)), step));
    gpuconv_status status = time_frames(r, w, frames, 1, error);
    if (status)
        return status;
    const double rest = share - (gc_now() - begin), each = w->computing.seconds / (double)r->c.frames;
    const double fits = 0.45 * rest / each, repeats = repeated * rest / each;
    if (fits >= 0.8 * (double)r->room)
        frames = r->room;
    else if (fits > (double)frames)
        frames = (int64_t)fits / step * step;
    else if (repeats < 2 * (double)frames)
        return GPUCONV_OK; /* the short run was long enough */
    return time_frames(r, w, frames, (int)fmax(1, fmin(RUNS, repeats / (double)frames - 1)), error);
}

/* Runs the job from file to file once, whole (part -1) or a part. *seconds gets the time of the whole. */
static gpuconv_status try_once(const run *r, const gc_way *w, int64_t part, double *seconds, int64_t *frames,
                               gpuconv_error *error) {
    gc_file_task t;
    const gc_file_task *done = r->c.task;
    gpuconv_config config = w->config;
    /* Direct sums have chunks of seconds. The plan for a part has shorter ones. */
    if (part >= 0 && !w->plan->choice.schedule.transform)
        config.latency_frames = gc_max((GC_BOUNDED_SLOTS - 1) * GC_DIRECT_SPAN, part);
    gpuconv_status status = gc_file_task_open(&t, r->job, error);
    if (!status)
        status = gc_file_task_try(&t, &config, part, error);
    /* A GPU that the job has started, or only tried, does not start again. */
    const bool on_gpu = gpuconv_plan_backend(w->plan) == GPUCONV_BACKEND_CUDA;
    const double start = on_gpu ? fmax(w->start, done->gpu_start) : 0;
    *frames = t.transfer.computed;
    *seconds = start + t.setup + (status ? 0 : scale(r, t.wall - t.setup, *frames));
    gc_file_task_free(&t);
    return status;
}

/* Returns how many frames of the result fit `share` seconds from file to file; -1: all. The job's own run tells the
 * times of set-up, reading and writing. */
static int64_t choose_part(const run *r, const gc_way *w, double share) {
    const gc_file_task *t = r->c.task;
    const double moving = fmax(w->computing.seconds, t->transfer.read_seconds + t->transfer.write_seconds);
    const double left = share - fmin(t->setup, share / 2);
    return moving <= left ? -1 : (int64_t)(0.8 * left / moving * (double)r->c.frames);
}

/* Times the way from file to file. That of the job is timed again, if its share allows it: the first run of a process
 * loads what the others find loaded. */
static gpuconv_status time_from_file(run *r, gc_way *w, gpuconv_error *error) {
    double seconds[FILE_RUNS];
    const double share = next_share(r), begin = gc_now();
    const int64_t part = choose_part(r, w, share);
    if (w->own && part >= 0) {
        w->from_file = (gc_way_time){r->c.task->wall, 0, 1, r->c.frames};
        return GPUCONV_OK;
    }
    gpuconv_status status;
    int runs = 0;
    do
        status = try_once(r, w, part, &seconds[runs], &w->from_file.frames, error);
    while (!status && ++runs < FILE_RUNS && (gc_now() - begin) * (runs + 1) / runs < repeated * share);
    if (status)
        return status;
    w->from_file.runs = runs;
    w->from_file.seconds = gc_median(seconds, runs, &w->from_file.spread);
    return GPUCONV_OK;
}

/* Returns the level of the difference between the outputs of the present way and the first one, relative to the
 * latter, in dB. */
static double residual(const run *r, int64_t frames) {
    double error = 0, power = 0;
    for (int o = 0; o < r->outputs; o++)
        for (int64_t i = 0; i < frames && (i % PIECE != 0 || !gc_cancelled()); i++) {
            const double a = (double)r->out[o][i], b = (double)r->first[o][i];
            error += (a - b) * (a - b);
            power += b * b;
        }
    return error == 0 ? -HUGE_VAL : 10 * log10(error / power);
}

/* Tells what is timed now. */
static void send_step(const run *r, const gc_way *w, const char *what) {
    const gc_transfer *t = &r->c.task->transfer;
    char step[sizeof w->label + 32];
    (void)snprintf(step, sizeof step, "%s, %s", w->label, what);
    gc_send_progress(r->job, t->reader, t->read, r->c.task->begin, step);
}

/* Measures a way. */
static gpuconv_status measure(run *r, gc_way *w, gpuconv_error *error) {
    send_step(r, w, "computing");
    gpuconv_status status = time_computing(r, w, error);
    if (!status && w != r->c.way)
        w->residual = residual(r, gc_min(w->computing.frames, r->c.way->computing.frames));
    if (status)
        return status;
    send_step(r, w, "from file to file");
    return time_from_file(r, w, error);
}

/* Measures all ways. One that fails is left out. */
static gpuconv_status measure_all(run *r, gpuconv_error *error) {
    r->left = 2 * r->c.ways;
    for (int i = 0; i < r->c.ways;) {
        gpuconv_error reason = {0};
        gpuconv_status status = measure(r, &r->c.way[i], &reason);
        if (gc_cancelled())
            return gc_fail_cancelled(error, "the comparison");
        if (!status) {
            i++;
            continue;
        }
        leave_out(&r->c, r->c.way[i].label, &reason);
        gpuconv_plan_free(r->c.way[i].plan);
        memmove(&r->c.way[i], &r->c.way[i + 1], (size_t)(--r->c.ways - i) * sizeof r->c.way[i]);
        r->c.way[r->c.ways].plan = NULL;
    }
    return GPUCONV_OK;
}

gpuconv_status gc_compare(const gc_file_task *task, const gpuconv_config *config, gpuconv_report *report,
                          gpuconv_error *error) {
    if (!report)
        return GPUCONV_OK;
    const double budget = task->job->compare_seconds > 0 ? task->job->compare_seconds : default_budget;
    run r = {.c = {.task = task, .frames = task->transfer.computed, .budget = budget},
             .job = task->job,
             .ir = task->ir,
             .inputs = gpuconv_ir_inputs(task->ir),
             .outputs = gpuconv_ir_outputs(task->ir)};
    const double begin = gc_now();
    gpuconv_status status = load(&r, error);
    if (!status) {
        r.deadline = fmax(begin + budget, gc_now() + budget / 2); /* loading counts, up to half of the budget */
        list_ways(&r, config);
        status = measure_all(&r, error);
    }
    if (!status)
        report_comparison(report, &r.c);
    for (int i = 0; i < r.c.ways; i++)
        gpuconv_plan_free(r.c.way[i].plan);
    free(r.samples);
    free(r.in);
    free(r.out);
    return status;
}
