/* Tests the worker of a batch and its slots with a fake device that convolves only in `finish`: the buffers of a slot
 * in flight must not change before, every file is reported once, and a worker with one slot does all files. */
#include "files.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/ir/object.h"
#include "libtools/batch/run/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 48, FRAMES = 60000, TAPS = 3, RATE = 8000 };

typedef struct fake_slot {
    gc_batch_slot base;
    int64_t bytes;
    bool in_flight;
} fake_slot;

static struct {
    int slots_left, slots_made, finishes_left; /* slots_left, finishes_left: calls until one fails */
    int reported[FILES], failed[FILES];
    int64_t taken;
} seen;

static gpuconv_status new_slot(int device, int64_t bytes, int outputs, gc_batch_slot **made, gpuconv_error *error) {
    (void)device;
    (void)outputs;
    *made = NULL;
    if (seen.slots_left-- <= 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "no memory on the device");
    fake_slot *slot = calloc(1, sizeof *slot);
    assert_non_null(slot);
    *slot = (fake_slot){.base = {malloc((size_t)bytes), malloc((size_t)bytes)}, .bytes = bytes};
    seen.slots_made++;
    *made = &slot->base;
    return GPUCONV_OK;
}

static gpuconv_status begin(gc_batch_slot *device, gc_batch_item *items, int count, int64_t in_bytes, int64_t out_bytes,
                            gpuconv_error *error) {
    fake_slot *slot = (fake_slot *)device;
    (void)items;
    (void)error;
    assert_true(count > 0 && in_bytes <= slot->bytes && out_bytes <= slot->bytes);
    assert_false(slot->in_flight);
    slot->in_flight = true;
    return GPUCONV_OK;
}

static gpuconv_status finish(gc_batch_slot *device, gc_batch_item *items, int count, gpuconv_error *error) {
    fake_slot *slot = (fake_slot *)device;
    assert_true(slot->in_flight);
    slot->in_flight = false;
    if (seen.finishes_left-- <= 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "the device is gone");
    for (int i = 0; i < count; i++) {
        const float *x = (float *)(void *)slot->base.in + items[i].in.at / 4, *h = items[i].planes;
        float *y = (float *)(void *)slot->base.out + items[i].out.at / 4;
        for (int64_t n = 0; n < items[i].frames + items[i].ir->frames - 1; n++) {
            y[n] = 0;
            for (int64_t k = 0; k < items[i].ir->frames; k++)
                if (n - k >= 0 && n - k < items[i].frames)
                    y[n] += h[k] * x[n - k];
        }
    }
    return GPUCONV_OK;
}

static void free_slot(gc_batch_slot *slot) {
    assert_false(((fake_slot *)slot)->in_flight);
    free(slot->in);
    free(slot->out);
    free(slot);
}

static bool next(void *context, int64_t *entry) {
    (void)context;
    *entry = seen.taken;
    return seen.taken < FILES && ++seen.taken > 0;
}

static void report(void *context, int64_t entry, const gc_outcome *o) {
    (void)context;
    seen.reported[entry]++;
    seen.failed[entry] += o->status != GPUCONV_OK;
}

static float sample(int file, int64_t n) {
    return (float)((n * (2 * file + 3) + 17 * file) % 2001 - 1000) / 4096;
}

static float tap(int file, int k) {
    return (float)((file + 5 * k) % 7 - 3) / 8;
}

static int64_t frames_of(int file) {
    return FRAMES - 1000 * (file % 9);
}

static gpuconv_status work(bool *has_slot, gpuconv_error *error) {
    gc_manifest m = {.entry = calloc(FILES, sizeof *m.entry), .entries = FILES};
    assert_non_null(m.entry);
    for (int i = 0; i < FILES; i++) {
        m.entry[i] = (gc_entry){.input = strdup(files_path("in%d.wav", i)),
                                .response = strdup(files_path("ir%d.wav", i)),
                                .output = malloc(32),
                                .dry = -HUGE_VAL,
                                .length = -1};
        assert_non_null(m.entry[i].output);
        snprintf(m.entry[i].output, 32, "out%d.wav", i);
    }
    gc_batch_backend fake = gc_batch_cpu; /* its memory is host memory */
    gc_backend backend = gc_backend_cpu;
    backend.batch = &fake;
    fake.slots = 2;
    fake.choose = NULL;
    fake.new_slot = new_slot;
    fake.begin = begin;
    fake.finish = finish;
    fake.free = free_slot;
    gc_responses *responses = gc_responses_new(1 << 20, NULL);
    assert_non_null(responses);
    sem_t copying;
    assert_int_equal(sem_init(&copying, 0, 1), 0);
    gc_worker w = {.manifest = &m,
                   .responses = responses,
                   .folder = files_path("."),
                   .backend = &backend,
                   .devices = 1,
                   .copy_permits = &copying,
                   .next = next,
                   .report = report};
    gpuconv_status status = gc_work(&w, has_slot, error);
    int free_again;
    assert_true(sem_getvalue(&copying, &free_again) == 0 && free_again == 1);
    sem_destroy(&copying);
    gc_responses_free(responses);
    gc_manifest_free(&m);
    return status;
}

static void make_files(void) {
    for (int i = 0; i < FILES; i++) {
        guarded x = guarded_new(1, frames_of(i)), h = guarded_new(1, TAPS);
        for (int64_t n = 0; n < frames_of(i); n++)
            x.channel[0][n] = sample(i, n);
        for (int k = 0; k < TAPS; k++)
            h.channel[0][k] = tap(i, k);
        files_write(files_path("in%d.wav", i), SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &x);
        files_write(files_path("ir%d.wav", i), SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &h);
        guarded_free(&x);
        guarded_free(&h);
    }
}

static void check_output(int i) {
    SF_INFO info;
    guarded y = files_read(files_path("out%d.wav", i), &info);
    CHECK(info.frames == frames_of(i) + TAPS - 1, "file %d has %lld frames", i, (long long)info.frames);
    for (int64_t n = 0; n < info.frames; n++) {
        double want = 0;
        for (int k = 0; k < TAPS; k++)
            if (n - k >= 0 && n - k < frames_of(i))
                want += (double)tap(i, k) * (double)sample(i, n - k);
        CHECK(fabs((double)y.channel[0][n] - want) < 1e-6, "file %d, frame %lld: %g, not %g", i, (long long)n,
              (double)y.channel[0][n], want);
    }
    guarded_free(&y);
}

/* Processes all files on a device with memory for `slots` slots. */
static void check_all_files(int slots) {
    bool has_slot;
    gpuconv_error error = {0};
    memset(&seen, 0, sizeof seen);
    seen.slots_left = slots;
    seen.finishes_left = FILES;
    CHECK(work(&has_slot, &error) == GPUCONV_OK, "%s", error.message);
    assert_true(has_slot);
    assert_int_equal(seen.slots_made, slots);
    assert_true(FILES - seen.finishes_left > 2 * slots); /* slots were reused */
    for (int i = 0; i < FILES; i++) {
        CHECK(seen.reported[i] == 1 && seen.failed[i] == 0, "file %d: reported %d times, failed %d", i,
              seen.reported[i], seen.failed[i]);
        check_output(i);
    }
}

static void a_slot_in_flight_is_not_changed_while_the_other_is_filled(void **state) {
    (void)state;
    check_all_files(2);
}

static void one_slot_suffices_when_memory_for_the_other_is_missing(void **state) {
    (void)state;
    check_all_files(1);
}

static void without_a_slot_no_entry_is_taken(void **state) {
    (void)state;
    bool has_slot;
    gpuconv_error error = {0};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(work(&has_slot, &error), GPUCONV_ERROR_MEMORY);
    assert_false(has_slot);
    assert_int_equal(seen.taken, 0);
}

static void a_failed_device_is_reported_once_for_each_file(void **state) {
    (void)state;
    for (int good = 0; good < 3; good++) {
        bool has_slot;
        gpuconv_error error = {0};
        int done = 0;
        memset(&seen, 0, sizeof seen);
        seen.slots_left = 2;
        seen.finishes_left = good;
        assert_int_equal(work(&has_slot, &error), GPUCONV_ERROR_DEVICE);
        assert_string_equal(error.message, "the device is gone");
        for (int i = 0; i < FILES; i++) {
            CHECK(seen.reported[i] == (i < seen.taken), "%d good: file %d of %d was reported %d times", good, i,
                  (int)seen.taken, seen.reported[i]);
            done += seen.reported[i] && !seen.failed[i];
        }
        assert_true(seen.taken < FILES && (good > 0) == (done > 0) && done < seen.taken);
    }
}

static int begin_all(void **state) {
    int err = files_begin(state);
    if (!err)
        make_files();
    return err;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_in_flight_is_not_changed_while_the_other_is_filled),
        cmocka_unit_test(one_slot_suffices_when_memory_for_the_other_is_missing),
        cmocka_unit_test(without_a_slot_no_entry_is_taken),
        cmocka_unit_test(a_failed_device_is_reported_once_for_each_file),
    };
    return cmocka_run_group_tests(tests, begin_all, files_end);
}
