/*
 * Amdahl's law for an addition of ten million floats: the parallel share of the time is computed from the measured
 * speedup of all CPU cores over one, and the copies' share from the GPU's times with and without copies.
 */
#include "amdahl.h"

#include "libgpuconv/core/number.h"
#include "run.h"

#include <string.h>
#include <unistd.h>

/* Returns the median time of a variant; 0 if it was not measured. */
static double median_of(const json_t *rows, const char *variant) {
    size_t i;
    const json_t *row;
    double median = 0;
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, "variant"));
        const json_t *value = json_object_get(row, "median");
        if (name && strcmp(name, variant) == 0 && value)
            median = json_number_value(value);
    }
    return median;
}

/* Prints the speedup 1 / (1 - p + p / s) for a share p of the time that is sped up by s. */
static void print_table(double share, FILE *to) {
    gc_print(to,
             "\nMeasured on the CPU cores: %.2f %% of the time is parallel. Speedup of the whole on N processors:\n ",
             share * 100);
    for (int s = 2; s <= 65536; s *= 4)
        gc_print(to, "  %.4g x on %d", 1 / (1 - share + share / s), s);
    gc_print(to, "\n  at most %.4g x on any number\n", 1 / (1 - share));
}

int gc_lab_print_amdahl(gc_lab_session *session, FILE *to) {
    int64_t size[LAB_DIMENSIONS] = {10000000};
    const gc_lab_run_options options = {.size = size};
    json_t *rows = json_array();
    int failures = gc_lab_time_module(session, gc_lab_module_find("vector-add"), &options, rows);
    double one_core = median_of(rows, "CPU sequential"), all_cores = median_of(rows, "CPU OpenMP"),
           kernel = median_of(rows, "one thread an element"), with_copies = median_of(rows, "explicit copies");
    json_decref(rows);
    int cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    gc_print(to, "Addition of ten million floats: one core %.3f ms, %d cores %.3f ms", one_core * 1e3, cores,
             all_cores * 1e3);
    if (kernel > 0)
        gc_print(to, ", GPU kernel %.3f ms, GPU with copies %.3f ms", kernel * 1e3, with_copies * 1e3);
    fprintf(to, "\n");
    if (cores > 1 && all_cores > 0 && one_core > all_cores) { /* speedup s on n cores: p = (1 - 1/s) / (1 - 1/n) */
        double p = (1 - all_cores / one_core) / (1 - 1.0 / cores);
        print_table(p < 1 ? p : 1 - 1e-6, to);
    } else {
        fprintf(to, "\nThe cores show no speedup, so the parallel share is unknown.\n");
    }
    if (kernel > 0 && with_copies > kernel) {
        gc_print(to,
                 "\nOn the GPU the copies take %.1f %% of the time. A kernel that takes no time would make the whole "
                 "%.3g x as fast.\n",
                 100 * (1 - kernel / with_copies), with_copies / (with_copies - kernel));
        gc_print(to, "Compared with one core: the kernel alone %.4g x, with copies %.3g x.\n", one_core / kernel,
                 one_core / with_copies);
    }
    return failures;
}
