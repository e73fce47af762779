/* Tests the costs for planning: measured figures are used for the measured processor only, and a malformed file is
 * ignored. A process reads the file once, so each check runs in a child process. */
#include "check.h"

#include "libgpuconv/conv/plan.h"

#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], path[4096];

static const gc_device h200 = {
    .name = "An unmeasured GPU", .multiprocessors = 132, .lanes = 128, .clock = 1.98e9, .bandwidth = 4.917e12};

static int open_cache(void **state) {
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/gpuconv-costs-XXXXXX");
    return !mkdtemp(folder) || setenv("XDG_CACHE_HOME", folder, 1) || !gc_costs_path(path, sizeof path);
}

static int remove_cache(void **state) {
    (void)state;
    char subfolder[80];
    snprintf(subfolder, sizeof subfolder, "%s/gpuconv", folder);
    unlink(path);
    rmdir(subfolder); /* not every test creates it */
    return rmdir(folder);
}

static gc_costs made_up_costs(const char *cpu, const char *cuda) {
    gc_costs c = {0};
    for (int i = 0; i < GC_COSTS; i++)
        c.seconds[i] = 1e-9 * (i + 1);
    snprintf(c.cpu, sizeof c.cpu, "%s", cpu);
    snprintf(c.cuda, sizeof c.cuda, "%s", cuda);
    return c;
}

/* Returns whether a new process uses the made-up figures: bit 0 for the CPU, bit 1 for the GPU. */
static int used_figures(const char *cpu, const char *cuda) {
    pid_t child = fork();
    if (child == 0) {
        gc_device gpu = h200;
        snprintf(gpu.name, sizeof gpu.name, "%s", cuda);
        gc_costs c = gc_costs_of_cpu(cpu), g = gc_costs_of_cuda(&gpu);
        _exit((fabs(c.seconds[GC_COST_CPU_TAP] - 1e-9) < 1e-15) |
              (fabs(g.seconds[GC_COST_CUDA_TAP] - 1e-9 * (GC_COST_CUDA_TAP + 1)) < 1e-15) << 1);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "no process");
    return WEXITSTATUS(status);
}

static void measured_figures_are_used_for_their_processor_only(void **state) {
    (void)state;
    gc_costs c = made_up_costs("A processor", "A GPU");
    assert_int_equal(used_figures("A processor", "A GPU"), 0); /* no file yet */
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK);
    assert_int_equal(used_figures("A processor", "A GPU"), 3);
    assert_int_equal(used_figures("Another", "A GPU"), 2);
    assert_int_equal(used_figures("A processor", "Another"), 1);
    c = made_up_costs("A processor", "");
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK); /* replaces the older file */
    assert_int_equal(used_figures("A processor", "A GPU"), 1);
}

static void a_damaged_file_is_ignored(void **state) {
    (void)state;
    gc_costs c = made_up_costs("A processor", "A GPU");
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
        CHECK(used_figures("A processor", "A GPU") == 0, "damage %d was not detected", i);
    }
}

/* Devices, folders, FIFOs and huge files are ignored: reading the file neither blocks nor goes on without end. */
static void a_path_that_is_no_regular_file_is_ignored(void **state) {
    (void)state;
    static const char *const targets[] = {"/dev/zero", "/dev/tty", "/proc/kmsg", "/", "/nowhere/at.all", "costs"};
    gc_costs c = made_up_costs("A processor", "A GPU");
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK); /* creates the folder */
    for (int i = 0; i < COUNT(targets); i++) {
        unlink(path);
        assert_int_equal(symlink(targets[i], path), 0);
        CHECK(used_figures("A processor", "A GPU") == 0, "a link to %s", targets[i]);
    }
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(used_figures("A processor", "A GPU"), 0);
    unlink(path);
    assert_int_equal(gc_costs_save(&c, NULL), GPUCONV_OK);
    assert_int_equal(truncate(path, INT64_C(1) << 40), 0); /* a valid beginning, but a terabyte long */
    assert_int_equal(used_figures("A processor", "A GPU"), 0);
    unlink(path);
}

static void only_well_formed_figures_are_accepted(void **state) {
    (void)state;
    static const char *const wrong[] = {"cpu-tap 1e-9x\n", "cpu-tap \n", "cpu-tap\n", "cpu-tap 1e-9 1\n",
                                        "cpu-tap inf\n"};
    char text[1024] = "gpuconv costs 5\ncpu: A\n";
    gc_costs c;
    for (int i = 0; i < GC_COST_CUDA_TAP; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s 1e-9\n", gc_cost_name((gc_cost)i));
    size_t good = strlen(text);
    assert_true(gc_costs_parse(text, good, &c));
    assert_true(gc_costs_parse(text, good - 1, &c));  /* the last line without its newline */
    assert_false(gc_costs_parse(text, good + 1, &c)); /* a zero byte */
    assert_false(gc_costs_parse(text, 0, &c));
    for (int i = 0; i < COUNT(wrong); i++) {
        snprintf(text + good, sizeof text - good, "%s", wrong[i]);
        CHECK(!gc_costs_parse(text, strlen(text), &c) || i == 2, "accepts %s", wrong[i]);
    }
    memset(text + good, 'x', sizeof text - good);
    assert_false(gc_costs_parse(text, sizeof text, &c)); /* a line of hundreds of bytes */
}

static void a_file_that_cannot_be_written_is_an_error(void **state) {
    (void)state;
    gc_costs c = made_up_costs("A processor", "");
    gpuconv_error error = {0};
    FILE *f = fopen("gpuconv-costs-file", "w");
    CHECK(f && fclose(f) == 0, "cannot write");
    char here[2048], inside[2112], was[64];
    snprintf(was, sizeof was, "%s", getenv("XDG_CACHE_HOME"));
    CHECK(getcwd(here, sizeof here), "no current folder");
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

/* Built-in figures follow from the properties of the GPU: arithmetic from multiprocessors, lanes and clock, traffic
 * from the bandwidth. The bus is not a property of the GPU. Those of an H200 are the measured ones. */
static void built_in_figures_follow_from_the_gpu(void **state) {
    (void)state;
    static const struct {
        gc_cost cost;
        double seconds;
    } recorded[] = {{GC_COST_CUDA_TAP, 1 / 29e12},   {GC_COST_CUDA_OUTPUT, 1e-12},  {GC_COST_CUDA_FUSED, 1.9e-12},
                    {GC_COST_CUDA_LONG, 9.2e-12},    {GC_COST_CUDA_LEVEL, 5.0e-13}, {GC_COST_CUDA_PASS, 7.0e-12},
                    {GC_COST_CUDA_BIN, 1 / 6e12},    {GC_COST_CUDA_SAMPLE, 3e-12},  {GC_COST_CUDA_LAUNCH, 3.5e-6},
                    {GC_COST_CUDA_CYCLE, 1 / 1.98e9}};
    gc_device half = h200, narrow = h200, slow = h200;
    half.multiprocessors /= 2;
    narrow.bandwidth /= 3;
    slow.clock /= 2;
    const gc_costs large = gc_costs_of_cuda(&h200), small = gc_costs_of_cuda(&half), thin = gc_costs_of_cuda(&narrow),
                   late = gc_costs_of_cuda(&slow);
    for (int i = 0; i < GC_COSTS; i++)
        assert_true(large.seconds[i] > 0);
    for (int i = 0; i < COUNT(recorded); i++)
        CHECK(fabs(large.seconds[recorded[i].cost] / recorded[i].seconds - 1) < 1e-3, "%s is %g",
              gc_cost_name(recorded[i].cost), large.seconds[recorded[i].cost]);
    assert_true(fabs(small.seconds[GC_COST_CUDA_TAP] / large.seconds[GC_COST_CUDA_TAP] - 2) < 1e-9);
    assert_true(fabs(small.seconds[GC_COST_CUDA_OUTPUT] / large.seconds[GC_COST_CUDA_OUTPUT] - 1) < 1e-9);
    assert_true(fabs(thin.seconds[GC_COST_CUDA_LONG] / large.seconds[GC_COST_CUDA_LONG] - 3) < 1e-9);
    assert_true(fabs(thin.seconds[GC_COST_CUDA_FUSED] / large.seconds[GC_COST_CUDA_FUSED] - 1) < 1e-9);
    assert_true(fabs(late.seconds[GC_COST_CUDA_CYCLE] / large.seconds[GC_COST_CUDA_CYCLE] - 2) < 1e-9);
    assert_true(fabs(thin.seconds[GC_COST_BUS_BYTE] / large.seconds[GC_COST_BUS_BYTE] - 1) < 1e-9);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(measured_figures_are_used_for_their_processor_only, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_ignored, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(a_path_that_is_no_regular_file_is_ignored, open_cache, remove_cache),
        cmocka_unit_test(only_well_formed_figures_are_accepted),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written_is_an_error, open_cache, remove_cache),
        cmocka_unit_test_setup_teardown(built_in_figures_follow_from_the_gpu, open_cache, remove_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
