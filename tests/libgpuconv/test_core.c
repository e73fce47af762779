/* Tests of the core folder: allocation, rounding, error messages, visible text and the slot queue. */
#include "check.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/slot_queue.h"
#include "libgpuconv/core/visible.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

static void overflowing_sizes_are_refused(void **state) {
    (void)state;
    assert_null(gc_calloc(-1, 1));
    assert_null(gc_calloc(1, -1));
    assert_null(gc_calloc(-1, -1));
    assert_null(gc_calloc(INT64_MAX, 2));
    assert_null(gc_calloc(INT64_C(1) << 32, INT64_C(1) << 31));
    assert_null(gc_calloc(INT64_C(1) << 32, INT64_C(1) << 32)); /* 2^64 wraps to 0 */
    assert_null(gc_calloc(INT64_MAX, 1));
    assert_null(gc_calloc(INT64_MAX - 4096, 1));
    assert_null(gc_calloc(INT64_MIN, INT64_MIN));
}

static void memory_is_aligned_zeroed_and_writable(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 63, 64, 65, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 1};
    for (int i = 0; i < COUNT(sizes); i++) {
        unsigned char *p = gc_calloc(sizes[i], 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % (uintptr_t)gc_min(GC_ALIGNMENT, gc_os_alignment), 0);
        for (int64_t n = 0; n < sizes[i]; n++)
            CHECK(p[n] == 0, "byte %lld of %lld is %d", (long long)n, (long long)sizes[i], p[n]);
        memset(p, 0xaa, (size_t)sizes[i]); /* the address sanitizer reports writes outside the block */
        free(p);
    }
}

static void rounding_is_right_at_the_edges(void **state) {
    (void)state;
    assert_int_equal(gc_round_up(0, 16), 0);
    assert_int_equal(gc_round_up(1, 16), 16);
    assert_int_equal(gc_round_up(16, 16), 16);
    assert_int_equal(gc_round_up(17, 16), 32);
    assert_int_equal(gc_power_of_two(0), 1);
    assert_int_equal(gc_power_of_two(1), 1);
    assert_int_equal(gc_power_of_two(3), 4);
    assert_int_equal(gc_power_of_two((INT64_C(1) << 62) - 1), INT64_C(1) << 62);
    assert_int_equal(gc_min(-1, 1), -1);
    assert_int_equal(gc_max(-1, 1), 1);
}

static void every_status_has_a_distinct_text(void **state) {
    (void)state;
    for (int a = GPUCONV_OK; a <= GPUCONV_ERROR_STATE; a++) {
        const char *text = gpuconv_status_text((gpuconv_status)a);
        assert_true(strlen(text) > 3);
        assert_string_not_equal(text, "unknown status");
        assert_int_not_equal(text[strlen(text) - 1], '.');
        for (int b = GPUCONV_OK; b < a; b++)
            assert_string_not_equal(text, gpuconv_status_text((gpuconv_status)b));
    }
    assert_string_equal(gpuconv_status_text((gpuconv_status)1000), "unknown status");
    assert_string_equal(gpuconv_status_text((gpuconv_status)-1), "unknown status");
}

/* Returns true if every character has the right number of continuation bytes. */
static bool is_utf8(const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int more = *s < 0x80 ? 0 : (*s & 0xe0) == 0xc0 ? 1 : (*s & 0xf0) == 0xe0 ? 2 : (*s & 0xf8) == 0xf0 ? 3 : -1;
        if (more < 0)
            return false;
        for (s++; more > 0; more--, s++)
            if ((*s & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static void a_long_message_is_shortened_within_its_buffer(void **state) {
    (void)state;
    struct {
        gpuconv_error error;
        char behind[16];
    } e;
    memset(&e, 'x', sizeof e);
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(gc_fail(&e.error, GPUCONV_ERROR_FILE, "%s: gone", name), GPUCONV_ERROR_FILE);
    assert_int_equal(e.error.status, GPUCONV_ERROR_FILE);
    assert_int_equal(strlen(e.error.message), sizeof e.error.message - 1);
    assert_non_null(strstr(e.error.message, "n...n"));
    assert_string_equal(strrchr(e.error.message, ':'), ": gone"); /* the reason is kept */
    assert_int_equal(e.behind[0], 'x');
    char wide[2 * 5000 + 1];
    for (int i = 0; i < 5000; i++)
        memcpy(wide + 2 * i, "\xc3\xa9", 3);
    for (int shift = 0; shift < 4; shift++) { /* no character is split */
        gc_fail(&e.error, GPUCONV_ERROR_FILE, "%.*s%s: gone", shift, "abc", wide);
        CHECK(is_utf8(e.error.message), "shift %d is no UTF-8: %s", shift, e.error.message);
        assert_null(strstr(e.error.message, "\\x"));
        assert_string_equal(strrchr(e.error.message, ':'), ": gone");
    }
    gc_fail(&e.error, GPUCONV_ERROR_FILE, "%s: gone", "a\nb\033[31m\377");
    assert_string_equal(e.error.message, "a\\nb\\x1b[31m\\xff: gone");
    assert_int_equal(gc_fail(NULL, GPUCONV_ERROR_STATE, "discarded"), GPUCONV_ERROR_STATE);
    assert_int_equal(gc_fail_memory(&e.error, "the test"), GPUCONV_ERROR_MEMORY);
    assert_string_equal(e.error.message, "out of memory for the test");
}

/* ---- Visible text --------------------------------------------------------------------------------------------------
 */

static void control_characters_become_escapes(void **state) {
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {{"", ""},
                 {"plain 'text' \"with\" \\ and {@$`%", "plain 'text' \"with\" \\ and {@$`%"},
                 {"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5", "h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\xb5"},
                 {"a\nb\tc\rd", "a\\nb\\tc\\rd"},
                 {"\x01\x07\x1b\x7f", "\\x01\\x07\\x1b\\x7f"},
                 {"\xc2\x85\xc2\x9b", "\\u0085\\u009b"},                 /* C1, of which U+009B is a CSI */
                 {"\xe2\x80\xae.exe\xe2\x81\xa6", "\\u202e.exe\\u2066"}, /* writing direction */
                 {"\xe2\x80\xa8", "\\u2028"},
                 {"\xef\xbf\xbf\xf4\x8f\xbf\xbf", "\\uffff\\U10ffff"},
                 {"\xff\x80", "\\xff\\x80"},
                 {"\xc3", "\\xc3"},
                 {"\xc3(", "\\xc3("},
                 {"\xe2\x82", "\\xe2\\x82"},
                 {"\xc0\x8a", "\\xc0\\x8a"},                    /* overlong newline */
                 {"\xe0\x80\x8a", "\\xe0\\x80\\x8a"},           /* again */
                 {"\xed\xa0\x80", "\\xed\\xa0\\x80"},           /* surrogate */
                 {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}}; /* above U+10FFFF */
    char to[100];
    for (int i = 0; i < COUNT(cases); i++)
        assert_string_equal(gc_visible(to, sizeof to, cases[i].from), cases[i].to);
}

static void a_text_is_shortened_in_the_middle(void **state) {
    (void)state;
    char to[32];
    assert_string_equal(gc_visible(to, 11, "0123456789"), "0123456789");
    assert_string_equal(gc_visible(to, 11, "0123456789a"), "012...789a");
    assert_string_equal(gc_visible(to, 11, "\n\n\n\n\n\n"), "\\n...\\n\\n");
    for (size_t room = 0; room <= sizeof to; room++) { /* every room, from nothing on */
        memset(to, 'x', sizeof to);
        gc_visible(to, room, "h\xc3\xa9\xe2\x82\xac\n\xff\xf0\x9f\x8e\xb5 and a text that is longer than all of them");
        CHECK(room == 0 || (memchr(to, 0, room) && is_utf8(to)), "room %zu", room);
        CHECK(room == sizeof to || to[room] == 'x', "room %zu: written behind it", room);
    }
}

/* ---- The slot queue ---------------------------------------------------------------------------------------------- */

enum { SLOTS = 3, ROUNDS = 20000 };

typedef struct relay {
    gc_slot_queue queue;
    int64_t value[SLOTS], result[SLOTS];
    int64_t sum, received;
    bool in_order;
    int producer_end, worker_end, consumer_end;
} relay;

static void *produce(void *argument) {
    relay *r = argument;
    for (int64_t i = 0; i < ROUNDS; i++) {
        int n = gc_slot_queue_acquire(&r->queue);
        if (n < 0) {
            r->producer_end = n;
            return NULL;
        }
        r->value[n] = i;
        gc_slot_queue_fill(&r->queue);
    }
    gc_slot_queue_close(&r->queue);
    return NULL;
}

static void *work(void *argument) {
    relay *r = argument;
    int n;
    while ((n = gc_slot_queue_take(&r->queue)) >= 0) {
        r->result[n] = 3 * r->value[n];
        gc_slot_queue_finish(&r->queue);
    }
    r->worker_end = n;
    return NULL;
}

static void *consume(void *argument) {
    relay *r = argument;
    int n;
    while ((n = gc_slot_queue_wait(&r->queue)) >= 0) {
        r->in_order &= r->result[n] == 3 * r->received;
        r->sum += r->result[n];
        r->received++;
        gc_slot_queue_release(&r->queue);
    }
    r->consumer_end = n;
    return NULL;
}

static void a_queue_passes_all_slots_in_order(void **state) {
    (void)state;
    for (int slots = 1; slots <= SLOTS; slots++) {
        relay r = {.in_order = true};
        pthread_t threads[3];
        gc_slot_queue_init(&r.queue, slots);
        assert_int_equal(pthread_create(&threads[0], NULL, consume, &r), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, work, &r), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, produce, &r), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        gc_slot_queue_destroy(&r.queue);
        assert_true(r.in_order);
        assert_int_equal(r.received, ROUNDS);
        assert_int_equal(r.sum, INT64_C(3) * ROUNDS * (ROUNDS - 1) / 2);
        assert_int_equal(r.worker_end, GC_SLOT_QUEUE_END);
        assert_int_equal(r.consumer_end, GC_SLOT_QUEUE_END);
    }
}

static void stopping_a_queue_wakes_all_threads(void **state) {
    (void)state;
    relay r = {0};
    pthread_t threads[3];
    gc_slot_queue_init(&r.queue, 2);
    /* No worker runs: the producer fills two slots and waits for a third, the consumer waits for the first. */
    assert_int_equal(pthread_create(&threads[0], NULL, consume, &r), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, produce, &r), 0);
    gc_slot_queue_stop(&r.queue);
    assert_int_equal(pthread_create(&threads[2], NULL, work, &r),
                     0); /* starts after the stop and must return at once */
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.producer_end, GC_SLOT_QUEUE_STOPPED);
    assert_int_equal(r.worker_end, GC_SLOT_QUEUE_STOPPED);
    assert_int_equal(r.consumer_end, GC_SLOT_QUEUE_STOPPED);
    gc_slot_queue_reset(&r.queue);
    assert_int_equal(gc_slot_queue_acquire(&r.queue), 0);
    gc_slot_queue_destroy(&r.queue);
}

static void a_closed_queue_delivers_its_slots_before_it_ends(void **state) {
    (void)state;
    gc_slot_queue queue;
    gc_slot_queue_init(&queue, 3);
    assert_int_equal(gc_slot_queue_acquire(&queue), 0);
    gc_slot_queue_fill(&queue);
    assert_int_equal(gc_slot_queue_acquire(&queue), 1);
    gc_slot_queue_fill(&queue);
    gc_slot_queue_close(&queue);
    assert_int_equal(gc_slot_queue_take(&queue), 0);
    gc_slot_queue_finish(&queue);
    assert_int_equal(gc_slot_queue_take(&queue), 1);
    gc_slot_queue_finish(&queue);
    assert_int_equal(gc_slot_queue_take(&queue), GC_SLOT_QUEUE_END);
    assert_int_equal(gc_slot_queue_wait(&queue), 0);
    gc_slot_queue_release(&queue);
    assert_int_equal(gc_slot_queue_wait(&queue), 1);
    gc_slot_queue_release(&queue);
    assert_int_equal(gc_slot_queue_wait(&queue), GC_SLOT_QUEUE_END);
    gc_slot_queue_destroy(&queue);
}

static void test_markup_has_entities(void **state) {
    (void)state;
    static const char *const entity[] = {"<", "&lt;", ">", "&gt;", "&", "&amp;", "\"", "&quot;", "'", "&#39;"};
    int others = 0;
    for (int i = 0; i < 10; i += 2)
        assert_string_equal(gc_entity(*entity[i]), entity[i + 1]);
    for (int c = 0; c < 256; c++)
        others += gc_entity((char)c) == NULL;
    assert_int_equal(others, 251);
}

static void the_version_is_that_of_the_header(void **state) {
    (void)state;
    char expected[64];
    snprintf(expected, sizeof expected, "%d.%d.%d", GPUCONV_VERSION_MAJOR, GPUCONV_VERSION_MINOR,
             GPUCONV_VERSION_PATCH);
    assert_string_equal(gpuconv_version(), expected);
}

/* A module that another user can replace is code that another user can run. */
static void only_modules_that_others_cannot_replace_are_trusted(void **state) {
    (void)state;
#ifndef _WIN32
    static const struct {
        mode_t folder, file;
        uid_t owner;
        bool trusted;
    } cases[] = {{0755, 0644, 0, true},  {0777, 0644, 0, false},     {01777, 0644, 0, true},
                 {0755, 0666, 0, false}, {0755, 0644, 65534, false}, {01777, 0644, 65534, false}};
    char folder[] = "/tmp/gpuconv-modules-XXXXXX", path[256], resolved[512], culprit[512];
    CHECK(mkdtemp(folder), "no folder");
    (void)snprintf(path, sizeof path, "%s/m.so", folder);
    FILE *f = fopen(path, "w");
    CHECK(f && fclose(f) == 0, "no file");
    for (int i = 0; i < COUNT(cases); i++) {
        if (cases[i].owner && geteuid() != 0)
            continue;
        CHECK(chmod(folder, cases[i].folder) == 0 && chmod(path, cases[i].file) == 0 &&
                  (geteuid() != 0 || chown(path, cases[i].owner, 0) == 0),
              "case %d", i);
        const bool trusted = gc_os_is_trusted(path, "/", resolved, sizeof resolved, culprit);
        CHECK(trusted == cases[i].trusted, "case %d: %s", i, culprit);
        if (!trusted)
            CHECK(strstr(culprit, cases[i].folder & S_IWOTH && !cases[i].owner ? "modules" : "m.so"), "%s", culprit);
    }
    CHECK(unlink(path) == 0 && !gc_os_is_trusted(path, "/", resolved, sizeof resolved, culprit), "no file");
    CHECK(rmdir(folder) == 0, "the folder is not empty");
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_modules_that_others_cannot_replace_are_trusted),
        cmocka_unit_test(test_markup_has_entities),
        cmocka_unit_test(overflowing_sizes_are_refused),
        cmocka_unit_test(memory_is_aligned_zeroed_and_writable),
        cmocka_unit_test(rounding_is_right_at_the_edges),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(every_status_has_a_distinct_text),
        cmocka_unit_test(a_long_message_is_shortened_within_its_buffer),
        cmocka_unit_test(control_characters_become_escapes),
        cmocka_unit_test(a_text_is_shortened_in_the_middle),
        cmocka_unit_test(a_queue_passes_all_slots_in_order),
        cmocka_unit_test(stopping_a_queue_wakes_all_threads),
        cmocka_unit_test(a_closed_queue_delivers_its_slots_before_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
