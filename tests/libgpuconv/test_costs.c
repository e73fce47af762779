/* The costs that plans are chosen by: what was measured here is used here and nowhere else, and a file that is not
 * wholly understood is as good as none. A process reads the file once, so each look is a process of its own. */
#include "check.h"

#include "libgpuconv/engine/costs.h"

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[4096];

static int open_cache(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gpuconv-costs-XXXXXX");
    return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) || !gc_costs_path(path, sizeof path);
}

static int remove_cache(void **state) {
    (void)state;
    char between[80];
    snprintf(between, sizeof between, "%s/gpuconv", folder);
    unlink(path);
    rmdir(between); /* a test may not have made it */
    return rmdir(folder);
}

static gc_costs invented(const char *cpu, const char *cuda) {
    gc_costs c = {0};
    for (int i = 0; i < GC_COSTS; i++)
        c.seconds[i] = 1e-9 * (i + 1);
    snprintf(c.cpu, sizeof c.cpu, "%s", cpu);
    snprintf(c.cuda, sizeof c.cuda, "%s", cuda);
    return c;
}

/* What a fresh process plans with: is each processor's share the invented one? Bit 0: CPU, bit 1: GPU. */
static int used(const char *cpu, const char *cuda) {
    pid_t child = fork();
    if (child == 0) {
        gc_costs c = gc_costs_of_cpu(cpu), g = gc_costs_of_cuda(cuda, 132);
        _exit((fabs(c.seconds[GC_COST_CPU_TAP] - 1e-9) < 1e-15) |
              (fabs(g.seconds[GC_COST_CUDA_TAP] - 1e-9 * (GC_COST_CUDA_TAP + 1)) < 1e-15) << 1);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "no process");
    return WEXITSTATUS(status);
}

static void what_was_measured_here_is_used_here_alone(void **state) {
    (void)state;
    gc_costs c = invented("A processor", "A GPU");
    assert_int_equal(used("A processor", "A GPU"), 0); /* nothing there yet */
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK);
    assert_int_equal(used("A processor", "A GPU"), 3);
    assert_int_equal(used("Another", "A GPU"), 2);
    assert_int_equal(used("A processor", "Another"), 1);
    c = invented("A processor", "");
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK); /* in place of the older one */
    assert_int_equal(used("A processor", "A GPU"), 1);
}

static void a_damaged_file_is_as_good_as_none(void **state) {
    (void)state;
    gc_costs c = invented("A processor", "A GPU");
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK);
    char text[2048] = "", changed[2112];
    FILE *f = fopen(path, "r");
    CHECK(f && fread(text, 1, sizeof text - 1, f) > 100, "no file");
    fclose(f);
    for (int i = 0; i < 6; i++) {
        char *figure = strstr(text, "cpu-tap ");
        CHECK(figure, "no figure in: %s", text);
        int before = (int)(figure - text);
        const char *after = strchr(figure, '\n') + 1;
        static const char *const instead[] = {"", "cpu-tap 0\n", "cpu-tap -1e-9\n", "cpu-tap nan\n", "cpu-tap 1e9\n"};
        if (i < 5)
            snprintf(changed, sizeof changed, "%.*s%s%s", before, text, instead[i], after);
        else
            snprintf(changed, sizeof changed, "%s", strchr(text, '\n') + 1); /* no version */
        f = fopen(path, "w");
        CHECK(f && fputs(changed, f) >= 0 && fclose(f) == 0, "cannot write");
        CHECK(used("A processor", "A GPU") == 0, "damage %d was not seen", i);
    }
}

static void where_it_cannot_be_kept_is_told(void **state) {
    (void)state;
    gc_costs c = invented("A processor", "");
    gpuconv_error error = {0};
    FILE *f = fopen("gpuconv-costs-file", "w");
    CHECK(f && fclose(f) == 0, "cannot write");
    char here[2048], inside[2112], was[64];
    snprintf(was, sizeof was, "%s", getenv("XDG_CACHE_HOME"));
    CHECK(getcwd(here, sizeof here), "where?");
    snprintf(inside, sizeof inside, "%s/gpuconv-costs-file", here);
    setenv("XDG_CACHE_HOME", inside, 1); /* a file where a folder should be */
    assert_int_equal(gc_costs_save(&c, &error), GPUCONV_ERROR_FILE);
    assert_non_null(strstr(error.message, "gpuconv-costs-file"));
    unlink("gpuconv-costs-file");
    setenv("XDG_CACHE_HOME", "relative", 1); /* the standard says to ignore it */
    unsetenv("HOME");
    assert_int_equal(gc_costs_save(&c, &error), GPUCONV_ERROR_FILE);
    assert_non_null(strstr(error.message, "HOME"));
    setenv("XDG_CACHE_HOME", was, 1);
}

static void built_in_figures_scale_with_the_gpu(void **state) {
    (void)state;
    gc_costs large = gc_costs_of_cuda("A GPU nobody measured", 132),
             small = gc_costs_of_cuda("A GPU nobody measured", 66);
    for (int i = 0; i < GC_COSTS; i++)
        assert_true(large.seconds[i] > 0);
    assert_true(fabs(small.seconds[GC_COST_CUDA_TAP] / large.seconds[GC_COST_CUDA_TAP] - 2) < 1e-9);
    assert_true(fabs(small.seconds[GC_COST_BUS_BYTE] / large.seconds[GC_COST_BUS_BYTE] - 1) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_measured_here_is_used_here_alone, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_as_good_as_none, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(where_it_cannot_be_kept_is_told, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(built_in_figures_scale_with_the_gpu, open_cache, remove_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
