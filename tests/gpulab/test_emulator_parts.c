/* Tests the parts of the emulator: the rewriting of launches, the shadow memory, and the counts. */
#include "check.h"

#include "emulator/compile.h"
#include "emulator/counts.h"
#include "emulator/interface.h"
#include "emulator/memory.h"

#include <stdlib.h>
#include <string.h>

static void expect_rewritten(const char *source, const char *expected) {
    static const char first[] = "#line 1 \"student.cu\"\n";
    char *got = gc_emulator_rewrite(source);
    CHECK(got && strncmp(got, first, strlen(first)) == 0, "no #line: %s", got);
    CHECK(got && strcmp(got + strlen(first), expected) == 0, "%s\nbecomes\n%s", source, got);
    free(got);
}

static void launches_become_calls(void **state) {
    (void)state;
    expect_rewritten("k<<<1, 2>>>(a);", "gce::launch(__LINE__, gce::grid(1, 2), [=] { k(a); });");
    expect_rewritten("  k <<< g, dim3(8, (4)), 0, s >>> (f(a, b),\n c);",
                     "  gce::launch(__LINE__, gce::grid( g, dim3(8, (4)), 0, s ), [=] { k  (f(a, b),\n c); });");
    expect_rewritten("if (x) n::k<A<4>, 2><<<1, 2>>>();",
                     "if (x) gce::launch(__LINE__, gce::grid(1, 2), [=] { n::k<A<4>, 2>(); });");
    expect_rewritten("// k<<<1, 2>>>(a)\n\"k<<<1>>>(\\\"\" '<' /* k<<<1>>>() */ x << 3 >> y",
                     "// k<<<1, 2>>>(a)\n\"k<<<1>>>(\\\"\" '<' /* k<<<1>>>() */ x << 3 >> y");
}

static void dynamic_shared_memory_becomes_a_pointer(void **state) {
    (void)state;
    expect_rewritten("extern __shared__ float s[];", "float (*const s) = (float (*))gce_dynamic();");
    expect_rewritten("extern __shared__ __align__(16) float s[ ][33];",
                     "float (*const s)[33] = (float (*)[33])gce_dynamic();");
    expect_rewritten("extern int x; extern \"C\" void f(); myextern __shared__ int y;",
                     "extern int x; extern \"C\" void f(); myextern __shared__ int y;");
}

/* Text of a hostile file must end where it ends. */
static void unfinished_text_is_kept(void **state) {
    (void)state;
    static const char *const texts[] = {"k<<<1, 2",
                                        "k<<<1, 2>>>",
                                        "k<<<1, 2>>>(a",
                                        "<<<1>>>(a)",
                                        "\"k<<<1>>>()",
                                        "/* k<<<1>>>()",
                                        "'",
                                        "extern __shared__ float s[",
                                        "extern",
                                        "k<<<)>>>(a)",
                                        "><<<1>>>()",
                                        "extern __shared__ __align__(",
                                        "extern __shared__ s;"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_rewritten(texts[i], texts[i]);
    expect_rewritten("", "");
}

static float memory[64];
static gc_region *region;

/* Accesses element `i` as thread `thread` in moment `now` of a block that began in moment `block`. */
static gc_fault touch(uint16_t thread, int i, int kind, uint32_t now, uint32_t block) {
    const gc_accessor by = {.now = now, .block_began = block, .launch_began = 1, .thread = thread};
    const gc_access access = {&by, 4 * (uint64_t)i, 4, kind, 0};
    gc_other other;
    return gc_memory_access(region, &access, &other);
}

static void accesses_without_order_are_races(void **state) {
    (void)state;
    enum { R = GC_EMULATOR_READ, W = GC_EMULATOR_WRITE, A = GC_EMULATOR_WRITE | GC_EMULATOR_ATOMIC };
    gc_memory_clear();
    region = gc_memory_add(&(gc_region){.name = "m", .begin = (uintptr_t)memory, .bytes = sizeof memory});
    CHECK(touch(0, 0, R, 1, 1) == GC_FAULT_UNSET, "an unset element can be read");
    CHECK(touch(0, 1, A, 1, 1) == GC_FAULT_UNSET, "an unset element can be added to");
    CHECK(touch(0, 2, W, 1, 1) == GC_FAULT_NONE && touch(0, 2, R, 1, 1) == GC_FAULT_NONE, "own element");
    CHECK(touch(1, 2, R, 1, 1) == GC_FAULT_RACE, "read after write of another thread");
    CHECK(touch(1, 2, R, 2, 1) == GC_FAULT_NONE, "the same after a barrier");
    CHECK(touch(2, 2, R, 2, 1) == GC_FAULT_NONE, "two readers");
    CHECK(touch(2, 2, W, 2, 1) == GC_FAULT_RACE, "write by the second of two readers");
    CHECK(touch(1, 3, W, 2, 1) == GC_FAULT_NONE && touch(2, 3, W, 2, 1) == GC_FAULT_RACE, "two writers");
    CHECK(touch(1, 4, W, 2, 1) == GC_FAULT_NONE && touch(1, 4, A, 3, 1) == GC_FAULT_NONE &&
              touch(2, 4, A, 3, 1) == GC_FAULT_NONE,
          "two atomic operations");
    CHECK(touch(1, 5, W, 4, 1) == GC_FAULT_NONE && touch(1, 5, A, 4, 1) == GC_FAULT_NONE &&
              touch(2, 5, A, 4, 1) == GC_FAULT_RACE,
          "an atomic operation after a write and an atomic operation of another thread");
    CHECK(touch(3, 4, R, 3, 1) == GC_FAULT_READ_OF_ATOMIC, "read beside an atomic operation");
    CHECK(touch(3, 4, A, 3, 1) == GC_FAULT_NONE && touch(2, 4, A, 3, 1) == GC_FAULT_NONE, "a loop with atomicCAS");
    CHECK(touch(1, 3, R, 5, 5) == GC_FAULT_RACE, "another block reads");
    gc_memory_clear();
}

static void narrow_accesses_keep_what_is_known(void **state) {
    (void)state;
    gc_memory_clear();
    region = gc_memory_add(&(gc_region){.name = "m", .begin = (uintptr_t)memory, .bytes = sizeof memory});
    CHECK(touch(0, 0, GC_EMULATOR_WRITE, 1, 1) == GC_FAULT_NONE, "write of a word");
    const gc_accessor by = {.now = 2, .block_began = 1, .launch_began = 1, .thread = 1};
    gc_other other;
    gc_access access = {&by, 3, 1, GC_EMULATOR_READ, 0};
    CHECK(gc_memory_access(region, &access, &other) == GC_FAULT_NONE, "its last byte is set");
    access.offset = 4;
    CHECK(gc_memory_access(region, &access, &other) == GC_FAULT_UNSET, "the byte after it is not");
    CHECK(gc_memory_is_set(region, 3) && !gc_memory_is_set(region, 5), "set bytes");
    gc_memory_clear();
}

static int place;

/* Notes one access by a whole warp: lane l at l * stride bytes. */
static gc_sum count_warp(gc_site_kind kind, unsigned bytes, unsigned stride) {
    gc_counts_clear();
    uint32_t site = gc_counts_site(&place, kind);
    for (int lane = 0; lane < 32; lane++)
        gc_counts_note(site, lane, 4096 + (uintptr_t)lane * stride, bytes);
    gc_counts_flush();
    return gc_counts_sum(kind);
}

static void sectors_and_bank_conflicts_are_counted(void **state) {
    (void)state;
    static const struct {
        gc_site_kind kind;
        unsigned bytes, stride;
        int spent, best;
    } cases[] = {
        {GC_SITE_GLOBAL, 4, 4, 4, 4},    {GC_SITE_GLOBAL, 4, 0, 1, 1},     {GC_SITE_GLOBAL, 4, 8, 8, 4},
        {GC_SITE_GLOBAL, 4, 128, 32, 4}, {GC_SITE_GLOBAL, 16, 16, 16, 16}, {GC_SITE_SHARED, 4, 4, 1, 1},
        {GC_SITE_SHARED, 4, 8, 2, 1},    {GC_SITE_SHARED, 4, 128, 32, 1},  {GC_SITE_SHARED, 4, 132, 1, 1},
        {GC_SITE_SHARED, 4, 0, 1, 1},    {GC_SITE_SHARED, 8, 8, 2, 2},     {GC_SITE_SHARED, 16, 16, 4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gc_sum sum = count_warp(cases[i].kind, cases[i].bytes, cases[i].stride);
        CHECK(sum.requests == 1 && sum.spent == cases[i].spent && sum.best == cases[i].best,
              "%u bytes, stride %u: %lld requests, %lld of %lld", cases[i].bytes, cases[i].stride,
              (long long)sum.requests, (long long)sum.spent, (long long)sum.best);
    }
    gc_counts_clear();
}

static void lanes_that_wait_are_counted(void **state) {
    (void)state;
    gc_counts_clear();
    uint32_t site = gc_counts_site(&place, GC_SITE_BLOCK);
    for (int lane = 0; lane < 32; lane++)
        for (int step = 0; step < (lane < 16 ? 3 : 1); step++)
            gc_counts_note(site, lane, 0, 0);
    gc_counts_flush();
    gc_sum sum = gc_counts_sum(GC_SITE_BLOCK);
    CHECK(sum.spent == 96 && sum.best == 64 && sum.worst == &place, "%lld of %lld lanes", (long long)sum.best,
          (long long)sum.spent);
    gc_counts_clear();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_become_calls),
        cmocka_unit_test(dynamic_shared_memory_becomes_a_pointer),
        cmocka_unit_test(unfinished_text_is_kept),
        cmocka_unit_test(accesses_without_order_are_races),
        cmocka_unit_test(narrow_accesses_keep_what_is_known),
        cmocka_unit_test(sectors_and_bank_conflicts_are_counted),
        cmocka_unit_test(lanes_that_wait_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
