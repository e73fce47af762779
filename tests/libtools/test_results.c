/* Tests results.jsonl and its helpers: conversion to valid UTF-8, normalised paths, states of files, and a file that
 * ends with a complete line although the disk is full. */
#include "files.h"

#include "libtools/batch/history.h"
#include "libtools/batch/place.h"
#include "libtools/batch/results.h"
#include "libtools/batch/targets.h"
#include "libtools/batch/text.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void invalid_utf8_is_replaced(void **state) {
    static const struct {
        const char *text, *valid;
    } cases[] = {{"a\xffz", "a\xef\xbf\xbdz"},
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
                 {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* an overlong slash */
                 {"\xf0\x9f\x8e\xb5", "\xf0\x9f\x8e\xb5"},
                 {"\xf0\x9f\x8e", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool changed;
        char *valid = gc_text_utf8(cases[i].text, &changed), *hex = gc_text_hex(cases[i].text);
        assert_string_equal(valid, cases[i].valid);
        assert_int_equal(changed, strcmp(cases[i].text, cases[i].valid) != 0);
        assert_true(gc_text_is_hex_of(hex, cases[i].text) && !gc_text_is_hex_of(hex, "a"));
        free(valid);
        free(hex);
    }
}

static void paths_are_normalised(void **state) {
    static const char *const cases[][2] = {
        {"a.wav", "a.wav"}, {"./a.wav", "a.wav"},       {".//./a//b.wav", "a/b.wav"}, {"/a/./b", "/a/b"},
        {"//a", "/a"},      {".a/..b/c.", ".a/..b/c."}, {"a/../b", "a/../b"},         {".", ""},
        {"/", "/"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[40];
        snprintf(path, sizeof path, "%s", cases[i][0]);
        gc_path_normalise(path);
        assert_string_equal(path, cases[i][1]);
    }
}

static void a_file_that_cannot_grow_ends_with_a_complete_line(void **state) {
    static const char lines[] = "{\"line\":1}\n{\"line\":2}\n{\"line\":3}\n";
    const struct rlimit small = {29, RLIM_INFINITY};
    struct rlimit before;
    const char *path = files_path("results.jsonl");
    gpuconv_error error = {0};
    gc_results *r;
    char text[100] = "";
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(gc_results_open(path, false, &r, &error), GPUCONV_OK);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    gpuconv_status status = gc_results_write(r, lines, strlen(lines), &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, GPUCONV_ERROR_FILE);
    assert_int_equal(gc_results_close(r, &error), GPUCONV_OK);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_int_equal(n, 22);
    assert_memory_equal(text, lines, 22);
}

static void a_file_is_identified_by_inode_and_time_or_by_content(void **state) {
    const char *path = files_path("known"), *copy = files_path("copy");
    const char *const texts[] = {"123456789", "123456780"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(i ? copy : path, "w+");
        assert_true(f && fputs(texts[0], f) >= 0 && fclose(f) == 0);
    }
    FILE *f = fopen(path, "r");
    struct stat st;
    assert_true(f && fstat(fileno(f), &st) == 0);
    gc_state written = gc_state_of(&st), other = written;
    assert_true(gc_state_is_at(&written, path));
    assert_false(gc_state_is_at(&written, copy)); /* without a digest */
    assert_true(gc_state_digest(fileno(f), &written));
    fclose(f);
    assert_true(gc_state_is_at(&written, copy));
    f = fopen(copy, "w");
    assert_true(f && fputs(texts[1], f) >= 0 && fclose(f) == 0);
    assert_false(gc_state_is_at(&written, copy));
    assert_false(gc_state_is_at(&written, files_path("nowhere")));
    other.seconds--;
    assert_false(gc_state_same(&other, &written));
}

/* Makes an interrupt that arrives before any entry was judged stop the batch: an entry that counts as "to do" by
 * mistake would be convolved twice if its output replaces its input. */
static void an_interrupt_leaves_no_wrong_verdict(void **state) {
    char input[] = "in.wav", response[] = "ir.wav", output[] = "out.wav";
    gc_entry entry = {.line = 1, .input = input, .response = response, .output = output, .length = -1};
    gc_manifest manifest = {.entry = &entry, .entries = 1};
    unsigned char verdict = GC_VERDICT_DO;
    gpuconv_error error = {0};
    const gc_own_files own = {.folder = ".", .entries = 1};
    const int raised = 1;
    (void)state;
    gc_history *history = gc_history_new(&manifest);
    assert_non_null(history);
    assert_int_equal(gc_history_judge(history, ".", NULL, 1, &verdict, &error), GPUCONV_OK);
    assert_int_equal(gc_refuse_conflicts(&manifest, &own, 1, &error), GPUCONV_OK);
    gpuconv_cancel_set(&raised);
    gpuconv_status judged = gc_history_judge(history, ".", NULL, 1, &verdict, &error);
    gpuconv_status refused = gc_refuse_conflicts(&manifest, &own, 1, &error);
    gpuconv_cancel_set(NULL);
    gc_history_free(history);
    assert_int_equal(judged, GPUCONV_ERROR_CANCELLED);
    assert_int_equal(refused, GPUCONV_ERROR_CANCELLED);
    assert_null(entry.refusal);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(paths_are_normalised),
        cmocka_unit_test(a_file_that_cannot_grow_ends_with_a_complete_line),
        cmocka_unit_test(a_file_is_identified_by_inode_and_time_or_by_content),
        cmocka_unit_test(an_interrupt_leaves_no_wrong_verdict),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
