/* Classifies the elements of an output and looks for patterns in the indices of the wrong ones. */
#include "diagnose.h"

#include "libgpuconv/core/number.h"
#include "types.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum kind { RIGHT, UNWRITTEN, NOT_A_NUMBER, INFINITE, WRONG } kind;

/* Returns whether all bytes of an element still have the value that they had before the run. */
static bool is_unwritten(const gc_lab_output *o, int64_t index) {
    int64_t bytes = gc_lab_type_bytes(o->type);
    const unsigned char *at = (const unsigned char *)o->elements + index * bytes;
    for (int64_t i = 0; i < bytes; i++)
        if (at[i] != 0xff)
            return false;
    return true;
}

/* Returns the largest difference that an element may have: eight times the tolerance, of the largest expected value. */
static double allowed_difference(const gc_lab_output *o) {
    double peak = 0;
    for (int64_t i = 0; i < o->count; i++)
        peak = fmax(peak, fabs(o->expected[i]));
    return 8 * o->tolerance * peak;
}

static kind classify(const gc_lab_output *o, int64_t index, double allowed) {
    double got = gc_lab_decode(o->type, o->elements, index), want = o->expected[index];
    if (!(o->tolerance > 0))
        want = gc_lab_round(o->type, want);
    if (fabs(got - want) <= (o->tolerance > 0 ? allowed : 0))
        return RIGHT;
    if (is_unwritten(o, index))
        return UNWRITTEN;
    return isnan(got) ? NOT_A_NUMBER : isinf(got) ? INFINITE : WRONG;
}

/* Sets the pattern if all wrong elements lie in at most a quarter of every 1024, 512, ... 32 elements, with
 * the largest such number. */
static void find_period(const gc_lab_output *o, double allowed, gc_lab_diagnosis *d) {
    int64_t bad = d->unwritten + d->nan + d->infinite + d->wrong;
    for (int period = 1024; period >= 32 && bad >= 4; period /= 2) {
        int from = period, to = -1;
        if (o->count < 3 * period || d->last - d->first < 2 * period)
            continue;
        for (int64_t i = d->first; i <= d->last; i++)
            if (classify(o, i, allowed) != RIGHT) {
                int at = (int)(i % period);
                from = at < from ? at : from;
                to = at > to ? at : to;
            }
        if (to - from < period / 4) {
            d->period = period;
            d->from = from;
            d->to = to;
            return;
        }
    }
}

/* Looks for the place whose expected value was found at the first wrong element. A value that occurs twice says
 * nothing. */
static int64_t find_value(const gc_lab_output *o, const gc_lab_diagnosis *d, double allowed) {
    int64_t found = -1;
    if (!gc_lab_type_is_float(o->type) || !(fabs(d->got) > allowed) || !isfinite(d->got))
        return -1;
    for (int64_t i = 0; i < o->count; i++)
        if (fabs(o->expected[i] - d->got) <= 1e-6 * fabs(d->got)) {
            if (found >= 0)
                return -1;
            found = i;
        }
    return found;
}

bool gc_lab_diagnose(const gc_lab_output *output, gc_lab_diagnosis *d) {
    double allowed = allowed_difference(output);
    *d = (gc_lab_diagnosis){.first = -1, .last = -1, .belongs = -1};
    for (int64_t i = 0; i < output->count; i++) {
        kind k = classify(output, i, allowed);
        if (k == RIGHT)
            continue;
        d->unwritten += k == UNWRITTEN;
        d->nan += k == NOT_A_NUMBER;
        d->infinite += k == INFINITE;
        d->wrong += k == WRONG;
        d->first = d->first < 0 ? i : d->first;
        d->last = i;
    }
    if (d->first < 0)
        return true;
    d->got = gc_lab_decode(output->type, output->elements, d->first);
    d->expected = output->expected[d->first];
    find_period(output, allowed, d);
    if (classify(output, d->first, allowed) == WRONG)
        d->belongs = find_value(output, d, allowed);
    return false;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* A text that grows to the end of its room. */
typedef struct growing {
    char *text;
    size_t room, used;
} growing;

static void add(growing *to, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(growing *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (to->used < to->room) {
        int written = gc_vformat(to->text + to->used, to->room - to->used, format, args);
        to->used += written > 0 ? (size_t)written : 0;
    }
    va_end(args);
}

static void add_count(growing *to, int64_t count, const char *what) {
    if (count > 0)
        add(to, "%s%lld %s", to->used && to->text[to->used - 1] != ' ' ? ", " : "", (long long)count, what);
}

/* Adds the likely cause of elements that were not written. */
static void add_unwritten_cause(growing *to, const gc_lab_output *o, const gc_lab_diagnosis *d) {
    if (d->unwritten == o->count)
        add(to, "\nNothing was written: the kernel was not launched, or every thread returned before its store.");
    else if (d->last == o->count - 1 && d->unwritten == d->last - d->first + 1)
        add(to,
            "\nEverything from index %lld on was never written: the grid ends too early. The number of blocks must be "
            "rounded up: (n + BLOCK - 1) / BLOCK.",
            (long long)d->first);
    else
        add(to, "\nSome elements were never written: no thread computes these indices.");
}

static void add_causes(growing *to, const gc_lab_output *o, const gc_lab_diagnosis *d) {
    if (d->unwritten && !d->wrong && !d->nan)
        add_unwritten_cause(to, o, d);
    if (d->nan)
        add(to, "\nNaN comes from 0 / 0, from the root of a negative number, from a variable or shared memory that was "
                "read before it was set, or from an input that was read outside its buffer.");
    if (d->infinite && !d->nan)
        add(to, "\nInfinity comes from a division by 0 or from a sum that was not reset.");
    if (o->count == 1 && d->wrong)
        add(to, "\nAn element that many threads update needs an atomic operation (atomicAdd), and a beginning of 0.");
    if (d->belongs >= 0)
        add(to, "\nThe value that was found belongs to index %lld: an index is computed wrongly.",
            (long long)d->belongs);
    if (d->period)
        add(to,
            "\nAll of them lie at places %d to %d of every %d elements: look at the edges of a block or tile, at its "
            "halo, and at a barrier (__syncthreads) between writing and reading shared memory.",
            d->from, d->to, d->period);
}

void gc_lab_diagnosis_text(const gc_lab_output *o, const gc_lab_diagnosis *d, char *text, size_t room) {
    growing to = {text, room, 0};
    text[0] = '\0';
    if (d->first < 0)
        return;
    if (is_unwritten(o, d->first))
        add(&to, "%s[%lld] was never written and must be %.9g.", o->name, (long long)d->first, d->expected);
    else
        add(&to, "%s[%lld] is %.9g and must be %.9g.", o->name, (long long)d->first, d->got, d->expected);
    add(&to, " Of %lld elements ", (long long)o->count);
    add_count(&to, d->wrong, "are wrong");
    add_count(&to, d->nan, "are NaN");
    add_count(&to, d->infinite, "are infinite");
    add_count(&to, d->unwritten, "were never written");
    add(&to, ".");
    add_causes(&to, o, d);
}

const char *gc_lab_explain_code(int code) {
    static const struct {
        int code;
        const char *text;
    } known[] = {
        {1, "an argument of the launch or of a call is not valid: a block has 1 to 1024 threads, a grid at least one "
            "block in each dimension, and shared memory above 48 KiB needs cudaFuncSetAttribute"},
        {2, "the device has no memory left"},
        {9,
         "the launch is not possible: a block has 1 to 1024 threads, a grid at least one block in each dimension, and "
         "a block at most 48 KiB of shared memory unless more is requested"},
        {209, "the program has no code for this GPU"},
        {700, "a thread read or wrote an address that belongs to no buffer: an index is too large or negative, or a "
              "pointer of the host was passed to the kernel"},
        {701, "a block needs more registers or shared memory than a multiprocessor has: use fewer threads per block"},
        {702, "the kernel ran too long"},
        {710, "an assert in the kernel failed"},
        {715, "the kernel executed an illegal instruction"},
        {716, "an address is not a multiple of the type's size: a float4 needs 16 bytes of alignment"},
        {719, "the kernel failed: usually an address outside every buffer"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return NULL;
}
