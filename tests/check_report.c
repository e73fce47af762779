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

/* Checks the comparison of four implementations. The first row is the job itself: its ratios are 1, its residual is
 * null. */
static void check_comparison(const json_t *root) {
    static const char *const values[] = {"whole s", "no set-up s", "compute s", "x whole", "x no set-up", "x compute"};
    const json_t *list = json_object_get(root, "comparison"), *row;
    size_t i;
    require(json_array_size(list) == 4, "comparison", "rows");
    json_array_foreach(list, i, row) {
        const char *label = json_string_value(json_object_get(row, "label"));
        require(label && *label, "comparison", "label");
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            require(json_real_value(json_object_get(row, values[v])) > 0, "comparison", values[v]);
        const json_t *residual = json_object_get(row, "residual dB");
        require(json_is_null(residual) || json_real_value(residual) <= -115, "comparison", "residual dB");
        if (i == 0)
            require(json_is_null(residual) && json_real_value(json_object_get(row, "x whole")) == 1, "comparison",
                    "the job's own row");
    }
    static const char *const excerpt[] = {"input", NULL};
    require_times(root, "comparison excerpt", excerpt, "s");
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
