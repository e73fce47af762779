/* The report of a comparison: a sentence on computing, one on files, and a table. */
#include "compare.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <string.h>

enum { SENTENCE = 512, WORD = 32 };

/* A text that grows at its end. */
typedef struct sentence {
    char text[SENTENCE];
} sentence;

static void append(sentence *s, const char *text) {
    const size_t used = strlen(s->text);
    (void)gc_format(s->text + used, sizeof s->text - used, "%s", text);
}

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
static void append_way(sentence *s, const gc_comparison *c, const gc_way *w, const gc_way_time *time,
                       const gc_way_time *first) {
    char word[WORD], part[WORD];
    format_part(c, time, part);
    append(s, w->label);
    append(s, time == first ? ": " : " ");
    format_time(time->seconds, 2, word);
    append(s, word);
    if (time != first) {
        format_times(time->seconds / first->seconds, word);
        append(s, " (");
        append(s, word);
    } else {
        append(s, " for ");
        format_time(audio_seconds(c, c->task->transfer.read), 3, word);
        append(s, word);
        append(s, time == &w->from_file ? " from file to file" : "");
    }
    if (*part) {
        append(s, time != first ? ", from " : " (from ");
        append(s, part);
        append(s, " of it");
    }
    append(s, time != first || *part ? ")" : "");
}

/* Appends all ways. */
static void append_ways(sentence *s, const gc_comparison *c, bool files) {
    const gc_way_time *first = files ? &c->way[0].from_file : &c->way[0].computing;
    for (int i = 0; i < c->ways; i++) {
        append(s, i == 0 ? "" : i == 1 ? "; " : ", ");
        append_way(s, c, &c->way[i], files ? &c->way[i].from_file : &c->way[i].computing, first);
    }
}

/* Appends the largest difference between the outputs. */
static void append_residual(sentence *s, const gc_comparison *c) {
    char word[WORD];
    double most = -HUGE_VAL;
    for (int i = 1; i < c->ways; i++)
        most = c->way[i].residual <= most ? most : c->way[i].residual; /* NaN is kept */
    (void)gc_format(word, WORD, "%.0f dB", most);
    append(s, most > -HUGE_VAL ? "; outputs differ by " : "; the outputs are equal");
    append(s, most > -HUGE_VAL ? word : "");
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

void gc_report_comparison(gpuconv_report *report, const gc_comparison *c) {
    sentence computing = {{0}}, files = {{0}}, legend = {{0}};
    if (c->ways > 0) {
        append_ways(&computing, c, false);
        if (c->ways > 1)
            append_residual(&computing, c);
        append_ways(&files, c, true);
        append(&legend, "computing: samples in memory, without set-up; x: how many times as long as ");
        append(&legend, c->way[0].label);
        append(&legend,
               "; file to file: with set-up and the start of a GPU, to a file that is then discarded; a time that "
               "was measured on a part is scaled by frames to the whole job; residual: the outputs' difference from "
               "those of ");
        append(&legend, c->way[0].label);
        gc_report_headline(report, "compared", "computing", computing.text);
        gc_report_headline(report, "compared", "files", files.text);
        gc_report_text(report, "compared", "read as", legend.text);
    }
    if (*c->left_out)
        gc_report_text(report, "compared", "left out", c->left_out);
    gc_report_measure(report, "compared", "audio", audio_seconds(c, c->task->transfer.read), "s", 1, 0);
    gc_report_count(report, "compared", "frames", c->frames);
    gc_report_measure(report, "compared", "budget", c->budget, "s", 1, 0);
    for (int i = 0; i < c->ways; i++)
        report_way(report, c, &c->way[i]);
}
