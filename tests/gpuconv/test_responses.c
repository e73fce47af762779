/* Responses of a batch: what entries share is prepared once, what one has for itself is not kept, and two entries never
 * write one file. */
#include "files.h"

#include "gpuconv/batch/manifest.h"
#include "gpuconv/batch/responses.h"
#include "libgpuconv/engine/batch_convolver.h"

#include <math.h>
#include <stdio.h>

enum { RATE = 8000, TAPS = 50, MANY = 1000 };

static const char *make_response(void) {
    const char *path = files_path("ir.wav");
    guarded h = guarded_new(1, TAPS);
    for (int k = 0; k < TAPS; k++)
        h.channel[0][k] = 1.0f / (float)(k + 1);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &h);
    guarded_free(&h);
    return path;
}

static gc_response *take(gc_responses *all, gc_response_wish wish, bool expected_fresh) {
    gpuconv_error error = {0};
    gc_response *one;
    bool fresh;
    gpuconv_status status = gc_responses_take(all, &wish, &one, &fresh, &error);
    CHECK(status == GPUCONV_OK, "%s", error.message);
    CHECK(fresh == expected_fresh, "fresh: %d", fresh);
    assert_int_equal(gpuconv_ir_frames(one->ir), TAPS);
    return one;
}

static void a_shared_response_is_prepared_once_and_a_lone_one_is_not_kept(void **state) {
    (void)state;
    gc_responses *all = gc_responses_new(1 << 20, gc_batch_cpu.forget);
    assert_non_null(all);
    gc_response_wish wish = {make_response(), 0, 0, -HUGE_VAL, RATE, 1, true};
    gc_response *first = take(all, wish, true), *second = take(all, wish, false);
    assert_ptr_equal(first, second);
    gc_responses_give_back(all, first);
    gc_responses_give_back(all, second);
    gc_responses_give_back(all, take(all, wish, false));
    wish.shared = false;
    gc_response *one = take(all, wish, true), *other = take(all, wish, true);
    assert_ptr_not_equal(one, other);
    gc_responses_give_back(all, one);
    gc_responses_give_back(all, other);
    gc_responses_free(all);
}

/* Every third entry has a response for itself, every seventh but the first the output of the first. */
static void entries_that_share_a_response_or_an_output_are_found_among_many(void **state) {
    (void)state;
    const char *path = files_path("list.csv");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("input,response,output\n", f);
    for (int i = 0; i < MANY; i++)
        (void)fprintf(f, "in%d.wav,%s%d.wav,out%d.wav\n", i, i % 3 ? "room" : "own", i % 3 ? i % 10 : i, i % 7 ? i : 0);
    assert_int_equal(fclose(f), 0);
    gc_manifest m;
    gpuconv_error error = {0};
    CHECK(gc_manifest_read(path, &m, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(m.entries, MANY);
    for (int i = 0; i < MANY; i++) {
        const gc_entry *e = &m.entry[i];
        CHECK((e->wrong != NULL) == (i > 0 && i % 7 == 0), "entry %d: %s", i, e->wrong ? e->wrong : "not wrong");
        CHECK(e->wrong || e->shared == (i % 3 != 0), "entry %d: shared %d", i, e->shared);
    }
    gc_manifest_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_response_is_prepared_once_and_a_lone_one_is_not_kept),
        cmocka_unit_test(entries_that_share_a_response_or_an_output_are_found_among_many),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
