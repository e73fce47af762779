/* A worker of a batch and its lanes, on a device that convolves only when somebody waits for it: what a lane was given
 * must stay as it is until then, every file is told of once, and a lane less is no failure. */
#include "files.h"

#include "gpuconv/batch/work.h"
#include "libgpuconv/core/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILES = 48, FRAMES = 60000, TAPS = 3, RATE = 8000 };

struct gc_batch_slot {
    float *in, *out;
    int64_t bytes;
    bool begun;
};

static struct {
    int lanes_left, lanes_made, finishes_left; /* until one fails */
    int told[FILES], failed[FILES];
    int64_t taken;
} seen;

static gpuconv_status lane(int device, int64_t bytes, int items, gc_batch_slot **made, gpuconv_error *error) {
    (void)device;
    (void)items;
    *made = NULL;
    if (seen.lanes_left-- <= 0)
        return gc_fail(error, GPUCONV_ERROR_MEMORY, "no memory on the device");
    gc_batch_slot *l = calloc(1, sizeof *l);
    assert_non_null(l);
    *l = (gc_batch_slot){.in = malloc((size_t)bytes), .out = malloc((size_t)bytes), .bytes = bytes};
    seen.lanes_made++;
    *made = l;
    return GPUCONV_OK;
}

static void *in(gc_batch_slot *l) {
    return l->in;
}

static const void *out(gc_batch_slot *l) {
    return l->out;
}

static gpuconv_status begin(gc_batch_slot *l, const gc_batch_item *items, int count, int64_t in_bytes,
                            int64_t out_bytes, gpuconv_error *error) {
    (void)items;
    (void)error;
    assert_true(count > 0 && in_bytes <= l->bytes && out_bytes <= l->bytes);
    assert_false(l->begun);
    l->begun = true;
    return GPUCONV_OK;
}

static gpuconv_status finish(gc_batch_slot *l, gc_batch_item *items, int count, gpuconv_error *error) {
    assert_true(l->begun);
    l->begun = false;
    if (seen.finishes_left-- <= 0)
        return gc_fail(error, GPUCONV_ERROR_DEVICE, "the device is gone");
    for (int i = 0; i < count; i++) {
        const float *x = l->in + items[i].in.at / 4, *h = items[i].taps;
        float *y = l->out + items[i].out.at / 4;
        for (int64_t n = 0; n < items[i].frames + items[i].taps_count - 1; n++) {
            y[n] = 0;
            for (int64_t k = 0; k < items[i].taps_count; k++)
                if (n - k >= 0 && n - k < items[i].frames)
                    y[n] += h[k] * x[n - k];
        }
    }
    return GPUCONV_OK;
}

static void free_lane(gc_batch_slot *l) {
    assert_false(l->begun);
    free(l->in);
    free(l->out);
    free(l);
}

static bool next(void *context, int64_t *entry) {
    (void)context;
    *entry = seen.taken;
    return seen.taken < FILES && ++seen.taken > 0;
}

static void tell(void *context, int64_t entry, const gc_outcome *o) {
    (void)context;
    seen.told[entry]++;
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

static gpuconv_status work(bool *began, gpuconv_error *error) {
    gc_manifest m = {calloc(FILES, sizeof *m.entry), FILES};
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
    gc_batch_backend late = gc_batch_cpu; /* whose memory is the host's */
    late.slots = 2;
    late.suits = NULL;
    late.new_slot = lane;
    late.in = in;
    late.out = out;
    late.begin = begin;
    late.finish = finish;
    late.free = free_lane;
    gc_responses *responses = gc_responses_new(1 << 20, late.forget);
    assert_non_null(responses);
    sem_t copying;
    assert_int_equal(sem_init(&copying, 0, 1), 0);
    gc_worker w = {.manifest = &m,
                   .responses = responses,
                   .folder = files_path("."),
                   .backend = &late,
                   .devices = 1,
                   .copying = &copying,
                   .next = next,
                   .tell = tell};
    gpuconv_status status = gc_work(&w, began, error);
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

/* lanes: as many as there is memory for. */
static void every_file_is_done(int lanes) {
    bool began;
    gpuconv_error error = {0};
    memset(&seen, 0, sizeof seen);
    seen.lanes_left = lanes;
    seen.finishes_left = FILES;
    CHECK(work(&began, &error) == GPUCONV_OK, "%s", error.message);
    assert_true(began);
    assert_int_equal(seen.lanes_made, lanes);
    assert_true(FILES - seen.finishes_left > 2 * lanes); /* lanes were filled again and again */
    for (int i = 0; i < FILES; i++) {
        CHECK(seen.told[i] == 1 && seen.failed[i] == 0, "file %d: told %d times, failed %d", i, seen.told[i],
              seen.failed[i]);
        check_output(i);
    }
}

static void a_lane_that_convolves_is_left_alone_while_the_other_is_filled(void **state) {
    (void)state;
    every_file_is_done(2);
}

static void one_lane_does_when_memory_for_the_other_is_not_to_be_had(void **state) {
    (void)state;
    every_file_is_done(1);
}

static void without_a_lane_nothing_is_taken(void **state) {
    (void)state;
    bool began;
    gpuconv_error error = {0};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(work(&began, &error), GPUCONV_ERROR_MEMORY);
    assert_false(began);
    assert_int_equal(seen.taken, 0);
}

static void a_device_that_fails_is_told_for_each_file_once(void **state) {
    (void)state;
    for (int good = 0; good < 3; good++) {
        bool began;
        gpuconv_error error = {0};
        int done = 0;
        memset(&seen, 0, sizeof seen);
        seen.lanes_left = 2;
        seen.finishes_left = good;
        assert_int_equal(work(&began, &error), GPUCONV_ERROR_DEVICE);
        assert_string_equal(error.message, "the device is gone");
        for (int i = 0; i < FILES; i++) {
            CHECK(seen.told[i] == (i < seen.taken), "%d good: file %d of %d was told %d times", good, i,
                  (int)seen.taken, seen.told[i]);
            done += seen.told[i] && !seen.failed[i];
        }
        assert_true(seen.taken < FILES && (good > 0) == (done > 0) && done < seen.taken);
    }
}

static int begin_all(void **state) {
    int failed = files_begin(state);
    if (!failed)
        make_files();
    return failed;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_that_convolves_is_left_alone_while_the_other_is_filled),
        cmocka_unit_test(one_lane_does_when_memory_for_the_other_is_not_to_be_had),
        cmocka_unit_test(without_a_lane_nothing_is_taken),
        cmocka_unit_test(a_device_that_fails_is_told_for_each_file_once),
    };
    return cmocka_run_group_tests(tests, begin_all, files_end);
}
