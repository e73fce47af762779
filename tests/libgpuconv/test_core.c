/* The ground everything stands on: sizes that overflow are refused, memory is aligned and zeroed, errors read whole, a
 * ring of slots passes every one on in order and lets nobody hang. */
#include "check.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/slot_queue.h"

#include <pthread.h>
#include <stdatomic.h>

static void sizes_that_do_not_fit_are_refused(void **state) {
    (void)state;
    assert_null(gc_calloc(-1, 1));
    assert_null(gc_calloc(1, -1));
    assert_null(gc_calloc(-1, -1));
    assert_null(gc_calloc(INT64_MAX, 2));
    assert_null(gc_calloc(INT64_C(1) << 32, INT64_C(1) << 31));
    assert_null(gc_calloc(INT64_C(1) << 32, INT64_C(1) << 32)); /* 2^64 wraps to nothing */
    assert_null(gc_calloc(INT64_MAX, 1));
    assert_null(gc_calloc(INT64_MAX - 4096, 1));
    assert_null(gc_calloc(INT64_MIN, INT64_MIN));
}

static void memory_is_aligned_zeroed_and_ours(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 63, 64, 65, 4096, (4 << 20) - 1, 4 << 20, (4 << 20) + 1};
    for (int i = 0; i < COUNT(sizes); i++) {
        unsigned char *p = gc_calloc(sizes[i], 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % GC_ALIGNMENT, 0);
        for (int64_t n = 0; n < sizes[i]; n++)
            CHECK(p[n] == 0, "byte %lld of %lld is %d", (long long)n, (long long)sizes[i], p[n]);
        memset(p, 0xaa, (size_t)sizes[i]); /* all of it is ours; the address sanitizer watches */
        free(p);
    }
}

static void rounding_helpers_hold_at_their_edges(void **state) {
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

static void every_status_has_a_text_of_its_own(void **state) {
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

static void a_long_message_is_cut_not_overrun(void **state) {
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
    assert_int_equal(e.behind[0], 'x');
    assert_int_equal(gc_fail(NULL, GPUCONV_ERROR_STATE, "nobody reads this"), GPUCONV_ERROR_STATE);
    assert_int_equal(gc_fail_memory(&e.error, "the test"), GPUCONV_ERROR_MEMORY);
    assert_string_equal(e.error.message, "out of memory for the test");
}

/* ---- The ring --------------------------------------------------------------------------------------------------- */

enum { SLOTS = 3, ROUNDS = 20000 };

typedef struct relay {
    gc_ring ring;
    int64_t value[SLOTS], result[SLOTS];
    int64_t sum, received;
    bool in_order;
    int producer_saw, worker_saw, consumer_saw;
} relay;

static void *produce(void *argument) {
    relay *r = argument;
    for (int64_t i = 0; i < ROUNDS; i++) {
        int n = gc_ring_acquire(&r->ring);
        if (n < 0) {
            r->producer_saw = n;
            return NULL;
        }
        r->value[n] = i;
        gc_ring_fill(&r->ring);
    }
    gc_ring_close(&r->ring);
    return NULL;
}

static void *work(void *argument) {
    relay *r = argument;
    int n;
    while ((n = gc_ring_take(&r->ring)) >= 0) {
        r->result[n] = 3 * r->value[n];
        gc_ring_finish(&r->ring);
    }
    r->worker_saw = n;
    return NULL;
}

static void *consume(void *argument) {
    relay *r = argument;
    int n;
    while ((n = gc_ring_wait(&r->ring)) >= 0) {
        r->in_order &= r->result[n] == 3 * r->received;
        r->sum += r->result[n];
        r->received++;
        gc_ring_release(&r->ring);
    }
    r->consumer_saw = n;
    return NULL;
}

static void a_ring_passes_every_slot_on_in_order(void **state) {
    (void)state;
    for (int slots = 1; slots <= SLOTS; slots++) {
        relay r = {.in_order = true};
        pthread_t threads[3];
        gc_ring_init(&r.ring, slots);
        assert_int_equal(pthread_create(&threads[0], NULL, consume, &r), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, work, &r), 0);
        assert_int_equal(pthread_create(&threads[2], NULL, produce, &r), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        gc_ring_destroy(&r.ring);
        assert_true(r.in_order);
        assert_int_equal(r.received, ROUNDS);
        assert_int_equal(r.sum, INT64_C(3) * ROUNDS * (ROUNDS - 1) / 2);
        assert_int_equal(r.worker_saw, GC_RING_END);
        assert_int_equal(r.consumer_saw, GC_RING_END);
    }
}

static void stopping_a_ring_wakes_everybody(void **state) {
    (void)state;
    relay r = {0};
    pthread_t threads[3];
    gc_ring_init(&r.ring, 2);
    /* Nobody works: the producer fills two slots and waits for the third, the consumer for the first. */
    assert_int_equal(pthread_create(&threads[0], NULL, consume, &r), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, produce, &r), 0);
    gc_ring_stop(&r.ring);
    assert_int_equal(pthread_create(&threads[2], NULL, work, &r), 0); /* comes late and is turned away */
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(r.producer_saw, GC_RING_STOPPED);
    assert_int_equal(r.worker_saw, GC_RING_STOPPED);
    assert_int_equal(r.consumer_saw, GC_RING_STOPPED);
    gc_ring_reset(&r.ring);
    assert_int_equal(gc_ring_acquire(&r.ring), 0);
    gc_ring_destroy(&r.ring);
}

static void a_closed_ring_gives_what_it_holds_before_it_ends(void **state) {
    (void)state;
    gc_ring ring;
    gc_ring_init(&ring, 3);
    assert_int_equal(gc_ring_acquire(&ring), 0);
    gc_ring_fill(&ring);
    assert_int_equal(gc_ring_acquire(&ring), 1);
    gc_ring_fill(&ring);
    gc_ring_close(&ring);
    assert_int_equal(gc_ring_take(&ring), 0);
    gc_ring_finish(&ring);
    assert_int_equal(gc_ring_take(&ring), 1);
    gc_ring_finish(&ring);
    assert_int_equal(gc_ring_take(&ring), GC_RING_END);
    assert_int_equal(gc_ring_wait(&ring), 0);
    gc_ring_release(&ring);
    assert_int_equal(gc_ring_wait(&ring), 1);
    gc_ring_release(&ring);
    assert_int_equal(gc_ring_wait(&ring), GC_RING_END);
    gc_ring_destroy(&ring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(memory_is_aligned_zeroed_and_ours),
        cmocka_unit_test(rounding_helpers_hold_at_their_edges),
        cmocka_unit_test(every_status_has_a_text_of_its_own),
        cmocka_unit_test(a_long_message_is_cut_not_overrun),
        cmocka_unit_test(a_ring_passes_every_slot_on_in_order),
        cmocka_unit_test(stopping_a_ring_wakes_everybody),
        cmocka_unit_test(a_closed_ring_gives_what_it_holds_before_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
