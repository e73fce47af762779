/* Tests the cache of responses: a shared response is prepared once, an unshared response is not kept; and duplicate
 * outputs and shared responses are found in a manifest. */
#include "files.h"

#include "libgpuconv/conv/backend.h"
#include "libtools/batch/list/manifest.h"
#include "libtools/batch/run/responses.h"

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

static gc_response *acquire(gc_responses *all, gc_response_request request, bool expected_new) {
    gpuconv_error error = {0};
    gc_response *response;
    bool is_new;
    gpuconv_status status = gc_responses_acquire(all, &request, &response, &is_new, &error);
    CHECK(status == GPUCONV_OK, "%s", error.message);
    CHECK(is_new == expected_new, "is_new: %d", is_new);
    assert_int_equal(gpuconv_ir_frames(response->ir), TAPS);
    return response;
}

static void a_shared_response_is_prepared_once_and_an_unshared_one_is_not_kept(void **state) {
    (void)state;
    gc_responses *all = gc_responses_new(1 << 20, NULL);
    assert_non_null(all);
    gc_response_request request = {.path = make_response(),
                                   .recipe = gc_recipe_default(),
                                   .dry = -HUGE_VAL,
                                   .rate = RATE,
                                   .channels = 1,
                                   .shared = true};
    gc_response *first = acquire(all, request, true), *second = acquire(all, request, false);
    assert_ptr_equal(first, second);
    gc_responses_release(all, first);
    gc_responses_release(all, second);
    gc_responses_release(all, acquire(all, request, false));
    request.shared = false;
    gc_response *response = acquire(all, request, true), *other = acquire(all, request, true);
    assert_ptr_not_equal(response, other);
    gc_responses_release(all, response);
    gc_responses_release(all, other);
    gc_responses_free(all);
}

/* Every third entry has a response of its own; every seventh entry, except the first, has the output of the first. */
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
    CHECK(gc_manifest_read(path, NULL, &m, &error) == GPUCONV_OK, "%s", error.message);
    assert_int_equal(m.entries, MANY);
    for (int i = 0; i < MANY; i++) {
        const gc_entry *e = &m.entry[i];
        CHECK((e->refusal != NULL) == (i > 0 && i % 7 == 0), "entry %d: %s", i,
              e->refusal ? e->refusal : "not refused");
        CHECK(e->refusal || e->shared == (i % 3 != 0), "entry %d: shared %d", i, e->shared);
    }
    gc_manifest_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_shared_response_is_prepared_once_and_an_unshared_one_is_not_kept),
        cmocka_unit_test(entries_that_share_a_response_or_an_output_are_found_among_many),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
