/* Checks that a report in JSON has the documented members: the environment, the plan and its reason, the files, the
 * time of every stage with unit and count, and the timeline; with "compare" also the comparison. With "bench" or
 * "sweep" the report is that of a benchmark and must have peak rates ("ceilings") and checked rows. */
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool good = true;

static void require(bool holds, const char *section, const char *name) {
    if (!holds) {
        fprintf(stderr, "check_report: %s, %s: missing or wrong\n", section, name);
        good = false;
    }
}

static void require_texts(const json_t *root, const char *section, const char *const *names) {
    for (; *names; names++) {
        const char *text = json_string_value(json_object_get(json_object_get(root, section), *names));
        require(text && *text, section, *names);
    }
}

static void require_integers(const json_t *root, const char *section, const char *const *names) {
    for (; *names; names++)
        require(json_is_integer(json_object_get(json_object_get(root, section), *names)), section, *names);
}

static void require_times(const json_t *root, const char *section, const char *const *names, const char *unit) {
    for (; *names; names++) {
        const json_t *m = json_object_get(json_object_get(root, section), *names);
        double value = json_real_value(json_object_get(m, "value"));
        const char *u = json_string_value(json_object_get(m, "unit"));
        require(json_is_real(json_object_get(m, "value")) && isfinite(value) && value >= 0, section, *names);
        require(u && strcmp(u, unit) == 0, section, *names);
        require(json_integer_value(json_object_get(m, "n")) == 1, section, *names);
        require(json_is_number(json_object_get(m, "spread")), section, *names);
    }
}

static double time_value(const json_t *root, const char *name) {
    return json_real_value(json_object_get(json_object_get(json_object_get(root, "times"), name), "value"));
}

static void check_timeline(const json_t *root) {
    static const char *const stages[][2] = {
        {"copy-in begin", "copy-in end"}, {"compute begin", "compute end"}, {"copy-out begin", "copy-out end"}};
    const json_t *list = json_object_get(root, "timeline"), *row;
    size_t i;
    require(json_array_size(list) > 0, "timeline", "rows");
    json_array_foreach(list, i, row) {
        for (int s = 0; s < 3; s++) {
            const json_t *begin = json_object_get(row, stages[s][0]), *end = json_object_get(row, stages[s][1]);
            require(json_is_real(begin) && json_is_real(end) && json_real_value(begin) <= json_real_value(end),
                    "timeline", stages[s][0]);
        }
    }
}

/* Reads what a sentence of the comparison says of a way after its label: a time with its unit. Returns seconds; 0: the
 * label is not there. *factor gets the number before " x", or its inverse before " times as fast". */
static double read_way(const char *sentence, const char *label, double *factor) {
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"s", 1}, {"h", 3600}};
    const char *at = strstr(sentence, label);
    char *end;
    *factor = 1;
    if (!at)
        return 0;
    at += strlen(label) + (at[strlen(label)] == ':');
    double value = strtod(at, &end);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        if (strncmp(end + 1, units[u].unit, strlen(units[u].unit)) == 0) {
            value *= units[u].seconds;
            end += 1 + strlen(units[u].unit);
            break;
        }
    if (strncmp(end, " (", 2) == 0) {
        char digits[32] = "";
        size_t n = 0;
        for (const char *c = end + 2; *c && *c != 'x' && n + 1 < sizeof digits; c++)
            if (*c != ' ') /* thousands are parted by blanks */
                digits[n++] = *c;
        *factor = strtod(digits, NULL);
        if (strncmp(end + 2 + strcspn(end + 2, " "), " times as fast", 14) == 0)
            *factor = 1 / strtod(end + 2, NULL);
    }
    return value;
}

/* Sentences have two digits. */
static bool is_about(double said, double value) {
    return fabs(said - value) <= 0.055 * value;
}

/* Checks one kind of time of a row against its sentence and against the first row. Returns whether a part was measured.
 */
static bool check_way(const json_t *root, const json_t *row, const json_t *first, const char *kind, const char *said_in,
                      const char *marked) {
    char seconds[64], ratio[64], frames[64];
    (void)snprintf(seconds, sizeof seconds, "%s s", kind);
    (void)snprintf(ratio, sizeof ratio, "x %s", kind);
    (void)snprintf(frames, sizeof frames, "%s frames", kind);
    const json_t *compared = json_object_get(root, "compared");
    const char *sentence = json_string_value(json_object_get(compared, said_in));
    const char *label = json_string_value(json_object_get(row, "label"));
    const char *mark = json_string_value(json_object_get(row, marked));
    const double time = json_real_value(json_object_get(row, seconds)),
                 x = json_real_value(json_object_get(row, ratio));
    const bool part =
        json_real_value(json_object_get(row, frames)) < (double)json_integer_value(json_object_get(compared, "frames"));
    double factor = 0;
    require(time > 0 && x > 0 && sentence && label && mark, "comparison", seconds);
    require(fabs(x * json_real_value(json_object_get(first, seconds)) - time) <= 1e-7 * time, "comparison", ratio);
    require(sentence && is_about(read_way(sentence, label, &factor), time), "the sentence", seconds);
    require(is_about(factor, x), "the sentence", ratio);
    require(mark && (strcmp(mark, "all of it") != 0) == part, "comparison", marked);
    return part;
}

/* Counts the occurrences of a text. */
static int count_text(const char *in, const char *text) {
    int count = 0;
    for (; in && (in = strstr(in, text)) != NULL; in += strlen(text))
        count++;
    return count;
}

/* Checks the comparison: the sentences say what the rows say, parts are marked, every output is that of the first way.
 */
static void check_comparison(const json_t *root) {
    const json_t *list = json_object_get(root, "comparison"), *first = json_array_get(list, 0), *row;
    const json_t *compared = json_object_get(root, "compared");
    int computing = 0, files = 0, own = 0;
    size_t i;
    require(json_array_size(list) >= 2 && json_array_size(list) <= 4, "comparison", "rows");
    json_array_foreach(list, i, row) {
        computing += check_way(root, row, first, "computing", "computing", "measured on");
        files += check_way(root, row, first, "file to file", "files", "files measured on");
        own += (int)json_real_value(json_object_get(row, "this job"));
        const json_t *residual = json_object_get(row, "residual dB");
        require(json_is_null(residual) || (i > 0 && json_real_value(residual) <= -110), "comparison", "residual dB");
        const char *algorithm = json_string_value(json_object_get(row, "algorithm"));
        const char *label = json_string_value(json_object_get(row, "label"));
        require(label && algorithm && (strcmp(label, "directly") != 0 || strcmp(algorithm, "direct") == 0),
                "comparison", "algorithm");
    }
    require(own == 1, "comparison", "this job");
    require(count_text(json_string_value(json_object_get(compared, "computing")), " of it)") == computing, "compared",
            "parts in the sentence on computing");
    require(count_text(json_string_value(json_object_get(compared, "files")), " of it)") == files, "compared",
            "parts in the sentence on files");
    require_times(root, "compared", (const char *const[]){"audio", "budget", NULL}, "s");
}

static void check_benchmark(const json_t *root, const char *list, const char *const *values) {
    const json_t *rows = json_object_get(root, list), *row;
    const char *loop = "cpu multiply-add loop";
    size_t i;
    require_texts(root, "environment", (const char *const[]){"gpuconv", "compiler", "system", NULL});
    require(json_real_value(json_object_get(json_object_get(json_object_get(root, "ceilings"), loop), "value")) > 0,
            "ceilings", loop);
    require(json_array_size(rows) > 0, list, "rows");
    json_array_foreach(rows, i, row) {
        for (const char *const *v = values; *v; v++)
            require(json_real_value(json_object_get(row, *v)) > 0, list, *v);
        const json_t *error = json_object_get(row, "error dB");
        require(!error || json_is_null(error) || json_real_value(error) <= -120, list, "error dB");
    }
}

static void check_convolution(const json_t *root, bool compared) {
    require_texts(root, "environment", (const char *const[]){"gpuconv", "compiler", "system", NULL});
    require_texts(root, "convolution", (const char *const[]){"backend", "device", "algorithm", "why", NULL});
    require_integers(root, "convolution",
                     (const char *const[]){"threads", "inputs", "outputs", "routes", "response frames",
                                           "transform points", "hop frames", "partitions", "chunk frames", NULL});
    require_texts(root, "files",
                  (const char *const[]){"input", "input format", "response", "output", "output format", NULL});
    require_integers(root, "files",
                     (const char *const[]){"input rate", "input frames", "output frames", "input samples not finite",
                                           "clipped samples", NULL});
    require_times(root, "times",
                  (const char *const[]){"set-up", "read", "copy-in", "compute", "copy-out", "write", "wall", NULL},
                  "s");
    require_times(root, "times", (const char *const[]){"times real time", NULL}, "x");
    require(time_value(root, "wall") >= time_value(root, "set-up"), "times", "wall holds set-up");
    require(time_value(root, "wall") > 0 && time_value(root, "times real time") > 0, "times", "wall");
    check_timeline(root);
    if (compared)
        check_comparison(root);
    else
        require(!json_object_get(root, "comparison"), "comparison", "not requested");
}

int main(int argc, char **argv) {
    json_error_t error;
    json_t *root = argc > 1 ? json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error) : NULL;
    if (!root) {
        fprintf(stderr, "check_report: %s\n", argc > 1 ? error.text : "usage: check_report FILE [compare|bench|sweep]");
        return 1;
    }
    if (argc > 2 && strcmp(argv[2], "bench") == 0)
        check_benchmark(root, "convolutions", (const char *const[]){"ms", "GB/s", "x copy", NULL});
    else if (argc > 2 && strcmp(argv[2], "sweep") == 0)
        check_benchmark(root, "sweep",
                        (const char *const[]){"length", "chosen ms", "direct ms", "chosen / best", NULL});
    else
        check_convolution(root, argc > 2 && strcmp(argv[2], "compare") == 0);
    json_decref(root);
    return good ? 0 : 1;
}
