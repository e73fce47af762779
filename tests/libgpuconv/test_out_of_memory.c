/*
 * Makes every allocation fail in turn. The linker redirects the library's calls of the allocator to the functions
 * below; the n-th call fails, for n = 1, 2, ... until a run makes fewer calls. After each failure the tested function
 * must return an error and no object, free everything and leave no file behind. Creating a thread counts as an
 * allocation.
 *
 * Allocations inside other libraries are not tested, except jansson's, which lets us set its allocator.
 */
#include "files.h"
#include "harness.h"

#include "libgpuconv/report/report.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int countdown; /* allocations until one fails; 0: none fails */
static _Atomic int live;      /* allocations that are not freed yet */
static _Atomic bool counting;

static bool fails(void) {
    return counting && atomic_load(&countdown) > 0 && atomic_fetch_sub(&countdown, 1) == 1;
}

static void *counted(void *p) {
    if (counting && p)
        atomic_fetch_add(&live, 1);
    return p;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
int __real_posix_memalign(void **p, size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);
int __wrap_posix_memalign(void **p, size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_realpath(const char *path, char *resolved);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument);

void *__wrap_malloc(size_t size) {
    return fails() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *p, size_t size) {
    if (fails())
        return NULL;
    void *larger = __real_realloc(p, size);
    return p ? larger : counted(larger);
}

void __wrap_free(void *p) {
    if (counting && p)
        atomic_fetch_sub(&live, 1);
    __real_free(p);
}

int __wrap_posix_memalign(void **p, size_t alignment, size_t size) {
    if (fails())
        return ENOMEM;
    int err = __real_posix_memalign(p, alignment, size);
    if (!err)
        counted(*p);
    return err;
}

char *__wrap_strdup(const char *text) {
    return fails() ? NULL : counted(__real_strdup(text));
}

char *__wrap_realpath(const char *path, char *resolved) {
    if (fails()) {
        errno = ENOMEM;
        return NULL;
    }
    return counted(__real_realpath(path, resolved));
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    return fails() ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* Calls try() with the first, second, ... allocation failing, until it succeeds without a failure. try() returns the
 * status and frees all objects. With `may_recover` it may also succeed after a failure; it must then check its result.
 */
static void every_allocation(const char *what, gpuconv_status (*try)(void *), void *context, bool may_recover) {
    enum { MOST = 2000 };
    for (int n = 1; n <= MOST; n++) {
        live = 0;
        countdown = n;
        counting = true;
        gpuconv_status status = try(context);
        counting = false;
        bool reached = countdown == 0;
        CHECK(live == 0, "%s: %d allocations are left after number %d failed", what, (int)live, n);
        if (!reached) {
            CHECK(status == GPUCONV_OK, "%s: %s without a failed allocation", what, gpuconv_status_text(status));
            CHECK(n > 2, "%s: no allocation ever failed", what);
            print_message("%s: %d allocations\n", what, n - 1);
            return;
        }
        if (may_recover && status == GPUCONV_OK)
            continue;
        CHECK(status != GPUCONV_OK, "%s: allocation %d failed without an error", what, n);
        CHECK(status == GPUCONV_ERROR_MEMORY || status == GPUCONV_ERROR_FILE, "%s: allocation %d failed as '%s'", what,
              n, gpuconv_status_text(status));
    }
    fail_msg("%s: more than %d allocations", what, MOST);
}

/* Returns the status, or STATE if an error has no status, no message or an object. */
static gpuconv_status check_result(gpuconv_status status, const gpuconv_error *error, const void *object) {
    if (status != GPUCONV_OK && (error->status != status || strlen(error->message) < 5 || object))
        return GPUCONV_ERROR_STATE;
    return status == GPUCONV_OK && !object ? GPUCONV_ERROR_STATE : status;
}

static gpuconv_status make_response(void *context) {
    const guarded *taps = context;
    gpuconv_ir *ir = (gpuconv_ir *)context, *other = ir;
    gpuconv_error error = {0};
    gpuconv_status status =
        gpuconv_ir_new((const float *const *)taps->channel, taps->channels, taps->frames, 48000, &ir, &error);
    status = check_result(status, &error, ir);
    if (status)
        return status;
    status = gpuconv_ir_route(ir, 2, &other, &error);
    status = check_result(status, &error, other);
    gpuconv_ir_free(other);
    if (!status) {
        status = gpuconv_ir_gain(ir, 3, &other, &error);
        status = check_result(status, &error, other);
        gpuconv_ir_free(other);
    }
    if (!status) {
        status = gpuconv_ir_resample(ir, 44100, &other, &error);
        status = check_result(status, &error, other);
        gpuconv_ir_free(other);
    }
    gpuconv_ir_free(ir);
    return status;
}

static void a_response_survives_every_failed_allocation(void **state) {
    (void)state;
    oracle_random random = {.state = 81};
    guarded taps = guarded_random(&random, 4, 1000);
    every_allocation("response", make_response, &taps, false);
    guarded_free(&taps);
}

static gpuconv_status load_response(void *context) {
    gpuconv_ir *ir = (gpuconv_ir *)context;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_ir_load(context, &ir, &error);
    status = check_result(status, &error, ir);
    gpuconv_ir_free(ir);
    return status;
}

static void a_response_file_survives_every_failed_allocation(void **state) {
    (void)state;
    oracle_random random = {.state = 82};
    guarded taps = guarded_random(&random, 3, 1000);
    files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &taps);
    every_allocation("response file", load_response, (void *)files_path("response.wav"), false);
    guarded_free(&taps);
}

typedef struct choice {
    gpuconv_ir *ir;
    gpuconv_plan *plan;
    gpuconv_algorithm algorithm;
} choice;

static gpuconv_status make_plan(void *context) {
    const choice *c = context;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.algorithm = c->algorithm;
    gpuconv_plan *plan = (gpuconv_plan *)context;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_plan_new(c->ir, &config, &plan, &error);
    status = check_result(status, &error, plan);
    gpuconv_plan_free(plan);
    return status;
}

static gpuconv_status make_engine(void *context) {
    const choice *c = context;
    gpuconv_engine *engine = (gpuconv_engine *)context;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_engine_new(c->plan, &engine, &error);
    status = check_result(status, &error, engine);
    gpuconv_engine_free(engine);
    return status;
}

static void plan_and_engine_survive_every_failed_allocation(void **state) {
    (void)state;
    oracle_random random = {.state = 83};
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        guarded taps;
        choice c = {.ir = harness_response(&random, 4, 2, 3000, &taps), .algorithm = harness_algorithms[a]};
        c.plan = harness_plan(c.ir, c.algorithm, 10000, 3);
        char what[64];
        /* The plan is one allocation. The C library allocates the stream from which the CPU's name is read. */
        snprintf(what, sizeof what, "engine, %s", gpuconv_algorithm_name(c.algorithm));
        every_allocation(what, make_engine, &c, false);
        live = 0;
        countdown = 1;
        counting = true;
        gpuconv_status status = make_plan(&c);
        counting = false;
        assert_int_equal(status, GPUCONV_ERROR_MEMORY);
        assert_int_equal(live, 0);
        gpuconv_plan_free(c.plan);
        gpuconv_ir_free(c.ir);
        guarded_free(&taps);
    }
}

typedef struct run {
    char in[512], response[512], out[512], folder[512];
    bool compare;
} run;

/* Returns the number of entries of a folder, temporary files included. */
static int count_entries(const char *path) {
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static gpuconv_status convolve(void *context) {
    run *r = context;
    gpuconv_job job = gpuconv_job_default();
    job.input = r->in;
    job.response = r->response;
    job.output = r->out;
    job.gain = -6;
    job.compare = r->compare;
    job.compare_seconds = 1e-3;
    gpuconv_report *report = NULL;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = r->compare ? 1 : 2; /* one core: all cores are no way of their own */
    gpuconv_error error = {0};
    counting = false;
    unlink(r->out);
    int before = count_entries(r->folder);
    CHECK(!r->compare || gpuconv_report_new(&report) == GPUCONV_OK, "no report");
    counting = true;
    gpuconv_status status = gpuconv_convolve_file(&job, &config, report, &error);
    counting = false;
    /* The output is complete before a comparison begins. A way that fails is left out, with its reason. */
    const bool whole = gc_report_has(report, "files");
    const int written = count_entries(r->folder) - before;
    const char *left_out = gpuconv_report_text(report, "compared", 0, "left out");
    bool good = written == (whole || status == GPUCONV_OK) && (status == GPUCONV_OK || strlen(error.message) >= 5);
    if (r->compare && status == GPUCONV_OK)
        good &= gpuconv_report_rows(report, "comparison") == 2 || (left_out && strstr(left_out, ": "));
    gpuconv_report_free(report);
    counting = true;
    return good ? status : GPUCONV_ERROR_STATE;
}

static void a_file_survives_every_failed_allocation(void **state) {
    (void)state;
    oracle_random random = {.state = 84};
    static run r;
    guarded x = guarded_random(&random, 2, 20000), h = guarded_random(&random, 2, 500);
    snprintf(r.in, sizeof r.in, "%s", files_path("in.wav"));
    snprintf(r.response, sizeof r.response, "%s", files_path("response.wav"));
    snprintf(r.out, sizeof r.out, "%s", files_path("out.wav"));
    snprintf(r.folder, sizeof r.folder, "%s", files_path("%s", ""));
    files_write(r.in, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 44100, &x);
    files_write(r.response, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &h); /* another rate, so that it is resampled */
    every_allocation("file to file", convolve, &r, false);
    r.compare = true;
    every_allocation("a comparison", convolve, &r, true);
    guarded_free(&x);
    guarded_free(&h);
}

static char *whole_report; /* the report without a failed allocation */

static gpuconv_status write_report(void *context) {
    gpuconv_report *report = context;
    gpuconv_status status = gpuconv_report_new(&report);
    if (status)
        return report ? GPUCONV_ERROR_STATE : status;
    static const char *const names[] = {"one", "two"};
    static const double values[] = {1, 2};
    gc_report_text(report, "section", "text", "value");
    gc_report_text(report, "section", "not UTF-8", "\377");
    gc_report_count(report, "section", "count", 3);
    gc_report_measure(report, "other", "measure", 1.5, "s", 1, 0);
    gc_report_named_row(report, "rows", NULL, 2, names, values);
    gc_report_named_row(report, "named", "first", 2, names, values);
    gc_report_named_row(report, "named", "second", 2, names, values);
    counting = false;
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    status = gpuconv_report_write(report, GPUCONV_REPORT_JSON, memory);
    fclose(memory);
    if (!whole_report)
        whole_report = text;
    else if (status == GPUCONV_OK && strcmp(text, whole_report) != 0)
        status = GPUCONV_ERROR_STATE; /* incomplete without an error */
    if (whole_report != text)
        free(text);
    counting = true;
    gpuconv_report_free(report);
    return status;
}

static void *json_malloc(size_t size) {
    return __wrap_malloc(size);
}

static void json_free(void *p) {
    __wrap_free(p);
}

static void an_incomplete_report_is_an_error(void **state) {
    json_set_alloc_funcs(json_malloc, json_free);
    assert_int_equal(write_report(state), GPUCONV_OK);
    every_allocation("report", write_report, state, true);
    json_set_alloc_funcs(malloc, free);
    free(whole_report);
}

static void an_engine_allocates_nothing_while_it_runs(void **state) {
    (void)state;
    enum { MANY = 1 << 20, BLOCK = 1000, BLOCKS = 50 };
    oracle_random random = {.state = 85};
    guarded taps, x = guarded_random(&random, 2, BLOCK), y = guarded_random(&random, 2, BLOCK);
    gpuconv_ir *ir = harness_response(&random, 2, 2, 3000, &taps);
    for (int a = 0; a < COUNT(harness_algorithms); a++) {
        gpuconv_plan *plan = harness_plan(ir, harness_algorithms[a], -1, 2);
        gpuconv_engine *engine;
        int64_t produced = 0;
        assert_int_equal(gpuconv_engine_new(plan, &engine, NULL), GPUCONV_OK);
        countdown = MANY;
        live = 0;
        counting = true;
        gpuconv_status status = GPUCONV_OK;
        for (int b = 0; b < BLOCKS && !status; b++)
            status = gpuconv_engine_process(engine, (const float *const *)x.channel, BLOCK, y.channel, &produced);
        do {
            status = status ? status : gpuconv_engine_drain(engine, y.channel, BLOCK, &produced);
        } while (!status && produced > 0);
        counting = false;
        assert_int_equal(status, GPUCONV_OK);
        CHECK(countdown == MANY && live == 0, "%s: %d allocations, %d of them not freed",
              gpuconv_algorithm_name(harness_algorithms[a]), MANY - (int)countdown, (int)live);
        gpuconv_engine_free(engine);
        gpuconv_plan_free(plan);
    }
    countdown = 0;
    guarded_free(&taps);
    guarded_free(&x);
    guarded_free(&y);
    gpuconv_ir_free(ir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_response_survives_every_failed_allocation),
        cmocka_unit_test(a_response_file_survives_every_failed_allocation),
        cmocka_unit_test(plan_and_engine_survive_every_failed_allocation),
        cmocka_unit_test(a_file_survives_every_failed_allocation),
        cmocka_unit_test(an_incomplete_report_is_an_error),
        cmocka_unit_test(an_engine_allocates_nothing_while_it_runs),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
