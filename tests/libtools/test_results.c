/* Tests results.jsonl and its helpers: conversion to valid UTF-8, normalised paths, states of files, the hash table,
 * and a file that ends with a complete line although the disk is full. */
#include "files.h"

#include "libgpuconv/core/map.h"
#include "libtools/batch/entry/text.h"
#include "libtools/batch/output/folder.h"
#include "libtools/batch/output/history.h"
#include "libtools/batch/output/results.h"

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

static void a_state_is_written_and_read(void **state) {
    const gc_state states[] = {{.size = 5, .seconds = -3, .nanoseconds = 7},
                               {.size = 0, .seconds = 9, .digested = true, .digest = UINT64_C(0xfedcba9876543210)}};
    const char *const wrong[] = {"", "5", "5@6", "5@6.7", "-5@6.000000007", "5@6.000000007/8:9", "5@6.000000007#8"};
    gc_state read;
    (void)state;
    for (int i = 0; i < 2; i++) {
        char text[GC_STATE_TEXT];
        gc_state_print(&states[i], text);
        assert_true(gc_state_parse(text, &read));
        assert_true(gc_state_same(&read, &states[i]));
        assert_false(gc_state_same(&read, &states[1 - i]));
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!gc_state_parse(wrong[i], &read) && !gc_state_same(&read, &read), "%s", wrong[i]);
}

/* Makes an interrupt that arrives before any entry was judged stop the batch. */
static void an_interrupt_leaves_no_wrong_verdict(void **state) {
    char input[] = "in.wav", response[] = "ir.wav", output[] = "out.wav";
    gc_entry entry = {.line = 1, .input = input, .response = response, .output = output, .length = -1};
    gc_manifest manifest = {.entry = &entry, .entries = 1};
    unsigned char done = false;
    gpuconv_error error = {0};
    const gc_own_files own = {.folder = "elsewhere", .entries = 1};
    const int raised = 1;
    (void)state;
    gc_history *history = gc_history_new(&manifest);
    assert_non_null(history);
    assert_int_equal(gc_history_judge(history, ".", NULL, 1, &done, &error), GPUCONV_OK);
    assert_int_equal(gc_refuse_conflicts(&manifest, &own, 1, &error), GPUCONV_OK);
    gpuconv_cancel_set(&raised);
    gpuconv_status judged = gc_history_judge(history, ".", NULL, 1, &done, &error);
    gpuconv_status refused = gc_refuse_conflicts(&manifest, &own, 1, &error);
    gpuconv_cancel_set(NULL);
    gc_history_free(history);
    assert_int_equal(judged, GPUCONV_ERROR_CANCELLED);
    assert_int_equal(refused, GPUCONV_ERROR_CANCELLED);
    assert_null(entry.refusal);
}

/* Compares a map with an array of which keys it has, over random insertions and removals. */
static void a_map_finds_what_it_holds(void **state) {
    enum { KEYS = 700, STEPS = 60000 };
    static char key[KEYS][8];
    static bool has[KEYS];
    gc_map map = {0};
    oracle_random random = {.state = 5};
    int64_t count = 0;
    (void)state;
    assert_null(gc_map_get(&map, "x", 1));
    for (int i = 0; i < KEYS; i++)
        (void)snprintf(key[i], sizeof key[i], "%d", i);
    for (int step = 0; step < STEPS; step++) {
        const int i = (int)oracle_below(&random, step < STEPS / 2 ? KEYS / 16 : KEYS);
        const size_t length = strlen(key[i]);
        assert_ptr_equal(gc_map_get(&map, key[i], length), has[i] ? key[i] : NULL);
        assert_int_equal(gc_map_has(&map, key[i], length), has[i]);
        if (has[i] && oracle_below(&random, 2)) {
            gc_map_remove(&map, key[i], length);
            has[i] = false;
            count--;
        } else {
            void **value = gc_map_put(&map, key[i], length);
            assert_non_null(value);
            assert_ptr_equal(*value, has[i] ? key[i] : NULL);
            *value = key[i];
            count += !has[i];
            has[i] = true;
        }
        assert_int_equal(map.count, count);
    }
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(gc_map_get(&map, key[i], strlen(key[i])), has[i] ? key[i] : NULL);
    assert_true(map.slots < 4 * KEYS);
    gc_map_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(invalid_utf8_is_replaced),
        cmocka_unit_test(paths_are_normalised),
        cmocka_unit_test(a_file_that_cannot_grow_ends_with_a_complete_line),
        cmocka_unit_test(a_state_is_written_and_read),
        cmocka_unit_test(a_map_finds_what_it_holds),
        cmocka_unit_test(an_interrupt_leaves_no_wrong_verdict),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
