/* Tests batches that cores and GPUs share: the decision with rates that are given, and whole batches with a GPU that is
 * made up. */
#include "files.h"

#include "libtools/batch/run/batch.h"
#include "libtools/batch/run/share.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 130, MOST_GPUS = 2 };

static struct {
    int devices, broken;    /* broken: bits of devices that do not start */
    int asked;              /* how often the devices were counted */
    double start, slowness; /* slowness: of a GPU, in that of a core */
    bool only_one;          /* the batch needs one GPU */
    gc_backend backend;
    char note[600];
} gpu;

const gc_backend *__real_gc_backend_find(gpuconv_backend id);
const gc_backend *__wrap_gc_backend_find(gpuconv_backend id);
gc_costs __real_gc_costs_of_cpu(const char *name);
gc_costs __wrap_gc_costs_of_cpu(const char *name);
int __wrap_gc_processor_count(void);
void __real_gc_batch_measured(gc_batch_rates *rates, double seconds);
void __wrap_gc_batch_measured(gc_batch_rates *rates, double seconds);

/* The cores take the predicted time. */
void __wrap_gc_batch_measured(gc_batch_rates *rates, double seconds) {
    (void)rates;
    assert_true(seconds > 0);
}

const gc_backend *__wrap_gc_backend_find(gpuconv_backend id) {
    return id == GPUCONV_BACKEND_CUDA ? &gpu.backend : __real_gc_backend_find(id);
}

gc_costs __wrap_gc_costs_of_cpu(const char *name) {
    gc_costs costs = __real_gc_costs_of_cpu(name);
    for (int i = 0; i < GC_COST_CUDA_TAP; i++)
        costs.seconds[i] *= 1e4; /* a convolution takes longer than opening its files */
    costs.seconds[GC_COST_CUDA_START] = gpu.start;
    return costs;
}

static gc_costs gpu_costs(const gc_device *device) {
    gc_costs costs = __wrap_gc_costs_of_cpu(device->name);
    for (int i = 0; i < GC_COSTS; i++)
        costs.seconds[i] *= gpu.slowness;
    return costs;
}

int __wrap_gc_processor_count(void) {
    return 1;
}

static int count_devices(gpuconv_error *error) {
    gpu.asked++;
    if (gpu.devices == 0)
        *error = (gpuconv_error){.status = GPUCONV_ERROR_DEVICE, .message = "no GPU"};
    return gpu.devices;
}

static gpuconv_status init_device(int device, gpuconv_error *error) {
    if (!(gpu.broken >> device & 1))
        return GPUCONV_OK;
    *error = (gpuconv_error){.status = GPUCONV_ERROR_DEVICE, .message = "a broken GPU"};
    return GPUCONV_ERROR_DEVICE;
}

static void take_note(void *context, const char *text) {
    (void)context;
    snprintf(gpu.note, sizeof gpu.note, "%s", text);
}

static void take_one_gpu(void *context) {
    (void)context;
    assert_int_equal(gpu.asked, 0);
    gpu.only_one = true;
}

static void make_gpu(int devices, int broken) {
    gpu.devices = devices;
    gpu.broken = broken;
    gpu.asked = 0;
    gpu.start = 1e-6;
    gpu.slowness = 1;
    gpu.only_one = false;
    *gpu.note = '\0';
    gpu.backend = gc_backend_cpu;
    gpu.backend.id = GPUCONV_BACKEND_CUDA;
    gpu.backend.count_devices = count_devices;
    gpu.backend.init_device = init_device;
    gpu.backend.costs = gpu_costs;
}

/* Convolves ROWS rows. where: receives the GPU of each, -1 for the cores. */
static void run(gpuconv_backend backend, int workers, bool resume, int *where) {
    gc_manifest manifest;
    gc_batch_progress progress;
    gpuconv_error error = {0};
    char folder[512], line[4096];
    snprintf(folder, sizeof folder, "%s", files_path("out"));
    CHECK(!gc_manifest_read(files_path("rows.csv"), NULL, &manifest, &error), "%s", error.message);
    const gc_batch batch = {.manifest = &manifest,
                            .folder = folder,
                            .backend = backend,
                            .workers = workers,
                            .resume = resume,
                            .one_gpu = take_one_gpu,
                            .note = take_note};
    CHECK(!gc_batch_run(&batch, &progress, &error), "%s", error.message);
    CHECK(progress.failed == 0, "%lld rows failed", (long long)progress.failed);
    CHECK(progress.done + progress.skipped == ROWS,
          "%lld done, %lld skipped, %d workers, %d devices, broken %d, note %s", (long long)progress.done,
          (long long)progress.skipped, workers, gpu.devices, gpu.broken, gpu.note);
    gc_manifest_free(&manifest);
    FILE *results = fopen(files_path("out/results.jsonl"), "r");
    assert_non_null(results);
    for (int i = 0; i < ROWS; i++)
        where[i] = -2;
    while (fgets(line, sizeof line, results)) {
        const char *output = strstr(line, "\"output\":\"o"), *at = strstr(line, "\"where\":\"cuda ");
        assert_non_null(output);
        const long row = strtol(output + strlen("\"output\":\"o"), NULL, 10);
        assert_in_range(row, 0, ROWS - 1);
        where[row] = at ? (int)strtol(at + strlen("\"where\":\"cuda "), NULL, 10) : -1;
    }
    fclose(results);
}

static void the_cores_have_the_first_rows_and_the_gpus_the_last_ones(void **state) {
    (void)state;
    int all_on_gpus = 0;
    for (int devices = 1; devices <= 2; devices++)
        for (int workers = 1; workers < 9; workers += 7)
            for (int broken = 0; broken < devices; broken++) {
                int where[ROWS], on_gpus = 0;
                make_gpu(devices, broken);
                run(GPUCONV_BACKEND_AUTO, workers, false, where);
                for (int i = 0; i < ROWS; i++) {
                    CHECK(where[i] > -2 && (where[i] < 0) == !on_gpus, "row %d is on %d", i, where[i]);
                    CHECK(where[i] < 0 || !(broken >> where[i] & 1), "row %d is on a broken GPU", i);
                    on_gpus += i + 1 < ROWS && where[i + 1] >= 0;
                }
                all_on_gpus += on_gpus;
            }
    assert_true(all_on_gpus > 0);
}

static void a_batch_that_waits_for_its_files_needs_one_gpu(void **state) {
    (void)state;
    for (int fast = 0; fast < 2; fast++) {
        int where[ROWS];
        make_gpu(2, 0);
        gpu.slowness = fast ? 1e-9 : 1;
        run(GPUCONV_BACKEND_AUTO, 3, false, where);
        CHECK(gpu.only_one == fast, "GPUs of %g of the time of a core", gpu.slowness);
    }
    make_gpu(2, 0);
    gpu.slowness = 1e-9;
    run(GPUCONV_BACKEND_CUDA, 3, false, (int[ROWS]){0});
    assert_false(gpu.only_one);
}

static void without_a_gpu_that_starts_the_cores_have_all_rows_and_a_note_says_why(void **state) {
    (void)state;
    for (int devices = 0; devices < 3; devices += 2) {
        int where[ROWS];
        make_gpu(devices, 3);
        run(GPUCONV_BACKEND_AUTO, 5, false, where);
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(where[i], -1);
        assert_string_equal(gpu.note, devices ? "running on the CPU: a broken GPU" : "running on the CPU: no GPU");
    }
}

static void resume_computes_a_row_where_it_was_computed(void **state) {
    (void)state;
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        int where[ROWS];
        make_gpu(1, 0);
        run(on_gpu ? GPUCONV_BACKEND_CUDA : GPUCONV_BACKEND_CPU, 3, false, where);
        for (int i = 0; i < ROWS; i += 3)
            assert_int_equal(remove(files_path("out/o%d.wav", i)), 0);
        gpu.start = on_gpu ? 1e6 : 1e-6; /* a new batch would do the opposite */
        run(GPUCONV_BACKEND_AUTO, 2, true, where);
        for (int i = 0; i < ROWS; i++)
            assert_int_equal(where[i], on_gpu - 1);
    }
}

static void a_batch_that_fails_fast_ends_before_it_looks_for_devices(void **state) {
    (void)state;
    gc_manifest manifest;
    gc_batch_progress progress;
    gpuconv_error error = {0};
    FILE *rows = fopen(files_path("missing.csv"), "w");
    fputs("input,response,output\n", rows);
    for (int i = 0; i < ROWS; i++)
        fprintf(rows, "%s,%s,o%d.wav\n", files_path(i == ROWS / 2 ? "x.wav" : "missing.wav"), files_path("h.wav"), i);
    assert_int_equal(fclose(rows), 0);
    make_gpu(1, 0);
    CHECK(!gc_manifest_read(files_path("missing.csv"), NULL, &manifest, &error), "%s", error.message);
    char folder[512];
    snprintf(folder, sizeof folder, "%s", files_path("out"));
    const gc_batch batch = {
        .manifest = &manifest, .folder = folder, .workers = 3, .fail_fast = true, .note = take_note};
    CHECK(!gc_batch_run(&batch, &progress, &error), "%s", error.message);
    assert_in_range(progress.failed, 1, 3);
    assert_int_equal(gpu.asked, 0);
    gc_manifest_free(&manifest);
    assert_int_equal(remove(files_path("missing.csv")), 0);
}

static double alone(const gc_batch_rates *r, double rows, int cores, int devices) {
    return devices ? r->start + (devices - 1) * r->next + rows * fmax(fmax(r->gpu / devices, r->host / cores), r->write)
                   : rows * (r->host + r->cpu) / cores;
}

static void a_division_is_faster_than_cores_or_gpus_alone(void **state) {
    (void)state;
    static const double cpu[] = {1e-6, 1e-4, 1e-2}, one_gpu[] = {1e-7, 1e-5, 1e-3}, host[] = {1e-5, 4e-4};
    static const int cores[] = {2, 32};
    int both = 0;
    for (int i = 0; i < 3 * 3 * 2 * 2; i++)
        for (int64_t rows = 16; rows < 10000000; rows *= 8)
            for (int devices = 0; devices <= MOST_GPUS; devices++) {
                const gc_batch_rates r = {host[i / 18], cpu[i % 3], one_gpu[i / 3 % 3], 0.75, 0.25, rows % 3 * 4e-6};
                const int w = cores[i / 9 % 2];
                const gc_batch_share s = gc_batch_divide(&r, rows, w, devices);
                for (int d = 0; d <= devices && s.gpus; d++)
                    CHECK(s.seconds <= 1.002 * alone(&r, (double)rows, w, d),
                          "%lld rows, %d cores, %d GPUs: %g s, %g s on %d alone", (long long)rows, w, devices,
                          s.seconds, alone(&r, (double)rows, w, d), d);
                assert_true((s.gpus > 0) == (s.devices > 0) && s.devices <= devices && s.gpus <= 1);
                assert_true(s.gpus == 0 || (s.feeders >= s.devices && s.feeders <= w));
                if (s.devices == 0)
                    assert_true(s.seconds == alone(&r, (double)rows, w, 0));
                const gc_batch_rates ideal = {r.host, r.cpu, 0, r.start, r.next, 0};
                assert_true(s.gpus <= gc_batch_divide(&ideal, rows, w, 1).gpus);
                both += s.gpus > 0;
            }
    assert_true(both > 50);
}

static void a_batch_shorter_than_the_start_of_a_gpu_stays_on_the_cores(void **state) {
    (void)state;
    const gc_batch_rates r = {4e-4, 5e-4, 8e-6, 0.5, 0.5, 0}; /* utterances of 10 s, each with its own response */
    assert_int_equal(gc_batch_divide(&r, 16384, 32, 2).devices, 0);
    const gc_batch_rates slowed = {4e-4, 1.4e-3, 8e-6, 0.5, 0.5, 4e-5}; /* as measured where memory is new */
    assert_int_equal(gc_batch_divide(&slowed, 16384, 32, 2).devices, 0);
    const gc_batch_share two = gc_batch_divide(&r, 262144, 32, 2), one = gc_batch_divide(&r, 16384, 2, 1);
    assert_true(two.devices > 0 && two.gpus > 0.5 && one.devices == 1 && one.gpus > 0.5);
}

static void cores_slower_than_their_costs_leave_rows_to_the_gpus(void **state) {
    (void)state;
    gc_batch_rates r = {9e-4, 5.1e-3, 6e-5, 0.5, 0.5, 1.4e-4}; /* rows of 30 s, each with its own response of 6 s */
    assert_int_equal(gc_batch_divide(&r, 4096, 32, 2).devices, 0);
    __real_gc_batch_measured(&r, 15.6e-3);
    const gc_batch_share s = gc_batch_divide(&r, 4096, 32, 2);
    assert_true(s.gpus > 0 && s.gpus < 1 && s.seconds < 1.2);
    assert_true(s.gpu == r.write); /* the GPUs wait for the files */
    __real_gc_batch_measured(&r, 1e-4);
    assert_true(r.cpu > 0 && r.host > 0 && gc_batch_divide(&r, 4096, 32, 2).devices == 0);
}

static void the_simulation_of_a_room_counts_as_work_of_the_cores(void **state) {
    (void)state;
    static const char *const responses[] = {"room:size=5x4x3 rt60=0.5", "room:size=5x4x3 rt60=0.5 images=0.5",
                                            "room:size=5x4x3 rt60=0.3,0.4,0.5,0.5,0.5,0.5"};
    const gc_device device = {.threads = 1};
    double before = 0;
    make_gpu(1, 0);
    for (int i = 0; i < 3; i++) {
        gpuconv_error error = {0};
        gc_manifest manifest;
        gc_batch_rates file, room;
        FILE *rows = fopen(files_path("rooms.csv"), "w");
        fprintf(rows, "input,response,output\n%s,\"%s\",o.wav\n", files_path("x.wav"), responses[i]);
        assert_int_equal(fclose(rows), 0);
        gc_worker w = {.manifest = &manifest, .folder = "out", .responses = gc_responses_new(1 << 20, NULL)};
        CHECK(!gc_manifest_read(files_path("rooms.csv"), NULL, &manifest, &error), "%s", error.message);
        assert_true(gc_batch_estimate(&w, &device, &room));
        gc_manifest_free(&manifest);
        CHECK(!gc_manifest_read(files_path("rows.csv"), NULL, &manifest, &error), "%s", error.message);
        assert_true(gc_batch_estimate(&w, &device, &file));
        gc_manifest_free(&manifest);
        gc_responses_free(w.responses);
        CHECK(room.host > file.host + 2e-4 + before && room.host < file.host + 0.1, "room %d: %g s, a file %g s", i,
              room.host, file.host);
        before = i ? 0 : room.host - file.host;
    }
}

static int begin_all(void **state) {
    int err = files_begin(state);
    guarded x = guarded_new(1, 50), h = guarded_new(1, 5);
    x.channel[0][7] = h.channel[0][1] = 0.5F;
    files_write(files_path("x.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, &x);
    files_write(files_path("h.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000, &h);
    guarded_free(&x);
    guarded_free(&h);
    FILE *rows = fopen(files_path("rows.csv"), "w");
    fputs("input,response,output\n", rows);
    for (int i = 0; i < ROWS; i++)
        fprintf(rows, "%s,%s,o%d.wav\n", files_path("x.wav"), files_path("h.wav"), i);
    return err || fclose(rows);
}

static int end_all(void **state) {
    for (int i = 0; i < ROWS; i++)
        (void)remove(files_path("out/o%d.wav", i));
    return remove(files_path("out/results.jsonl")) || remove(files_path("out")) || files_end(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_division_is_faster_than_cores_or_gpus_alone),
        cmocka_unit_test(a_batch_shorter_than_the_start_of_a_gpu_stays_on_the_cores),
        cmocka_unit_test(cores_slower_than_their_costs_leave_rows_to_the_gpus),
        cmocka_unit_test(the_simulation_of_a_room_counts_as_work_of_the_cores),
        cmocka_unit_test(the_cores_have_the_first_rows_and_the_gpus_the_last_ones),
        cmocka_unit_test(a_batch_that_waits_for_its_files_needs_one_gpu),
        cmocka_unit_test(without_a_gpu_that_starts_the_cores_have_all_rows_and_a_note_says_why),
        cmocka_unit_test(a_batch_that_fails_fast_ends_before_it_looks_for_devices),
        cmocka_unit_test(resume_computes_a_row_where_it_was_computed),
    };
    return cmocka_run_group_tests(tests, begin_all, end_all);
}
