/* Tests of the thread pool: every index runs exactly once, and no two calls have the same worker number at the same
 * time. */
#include "check.h"
#include "libgpuconv/core/pool.h"

#include <stdatomic.h>

enum { MAX_INDICES = 5000, MAX_THREADS = 33 };

typedef struct tally {
    _Atomic int done[MAX_INDICES];
    _Atomic int busy[MAX_THREADS];
    _Atomic int wrong;
    int threads;
} tally;

static void count_call(void *context, int64_t index, int worker) {
    tally *t = context;
    if (index < 0 || index >= MAX_INDICES || worker < 0 || worker >= t->threads ||
        atomic_exchange(&t->busy[worker], 1) != 0) {
        atomic_fetch_add(&t->wrong, 1);
        return;
    }
    atomic_fetch_add(&t->done[index], 1);
    atomic_store(&t->busy[worker], 0);
}

static void every_index_runs_exactly_once(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 8, MAX_THREADS};
    static const int64_t counts[] = {0, 1, 2, 3, 31, 1000, MAX_INDICES};
    for (int t = 0; t < COUNT(threads); t++) {
        gc_pool *pool = gc_pool_new(threads[t]);
        assert_non_null(pool);
        assert_int_equal(gc_pool_threads(pool), threads[t]);
        for (int c = 0; c < COUNT(counts); c++) {
            tally sums = {.threads = threads[t]};
            gc_pool_run(pool, count_call, &sums, counts[c]);
            assert_int_equal(sums.wrong, 0);
            for (int i = 0; i < MAX_INDICES; i++)
                CHECK(sums.done[i] == (i < counts[c]), "%d threads, %lld indices: index %d ran %d times", threads[t],
                      (long long)counts[c], i, sums.done[i]);
        }
        gc_pool_free(pool);
    }
}

static void add(void *context, int64_t index, int worker) {
    (void)worker;
    ((int64_t *)context)[index]++; /* not atomic: the thread sanitizer reports a call that is still running */
}

static void a_loop_is_over_when_the_call_returns(void **state) {
    (void)state;
    gc_pool *pool = gc_pool_new(4);
    assert_non_null(pool);
    int64_t sums[37] = {0};
    enum { LOOPS = 2000 };
    for (int i = 0; i < LOOPS; i++)
        gc_pool_run(pool, add, sums, COUNT(sums));
    for (int i = 0; i < COUNT(sums); i++)
        assert_int_equal(sums[i], LOOPS);
    gc_pool_free(pool);
}

static void an_unused_pool_can_be_freed(void **state) {
    (void)state;
    gc_pool_free(NULL);
    for (int i = 0; i < 50; i++) {
        gc_pool *pool = gc_pool_new(3);
        assert_non_null(pool);
        gc_pool_free(pool);
    }
    assert_true(gc_processor_count() >= 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_runs_exactly_once),
        cmocka_unit_test(a_loop_is_over_when_the_call_returns),
        cmocka_unit_test(an_unused_pool_can_be_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
