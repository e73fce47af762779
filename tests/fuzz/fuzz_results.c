/* results.jsonl of any bytes, as --resume reads it: lines that are not understood are passed over, and how the bytes
 * are split does not matter. What is written of an outcome with names of these bytes is one line of JSON that reads
 * again as this outcome. */
#include "gpuconv/batch/history.h"
#include "gpuconv/batch/results.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds) {
    if (!holds)
        abort();
}

static gc_entry entry_of(int64_t line, char *input, char *response, char *output) {
    return (gc_entry){
        .line = line, .input = input, .response = response, .output = output, .dry = -HUGE_VAL, .length = -1};
}

/* A history of these bytes, taken `step` at a time. */
static gc_history *history_of(const gc_manifest *m, const void *bytes, size_t size, size_t step, int64_t *whole,
                              bool *newline) {
    gc_history *h = gc_history_new(m);
    need(h != NULL);
    for (size_t at = 0; at < size; at += step)
        need(gc_history_take(h, (const char *)bytes + at, step < size - at ? step : size - at));
    need(gc_history_end(h, whole, newline) && *whole >= 0 && *whole <= (int64_t)size);
    return h;
}

static void read_any(const uint8_t *data, size_t size) {
    char a[] = "a.wav", ir[] = "ir.wav", out[] = "out/a.wav", bad[] = "\xff.wav", c[] = "c.wav", wrong[] = "wrong";
    gc_entry entry[ENTRIES] = {entry_of(2, a, ir, out), entry_of(3, bad, bad, bad), entry_of(4, c, ir, c),
                               entry_of(5, a, ir, out)};
    entry[3].wrong = wrong;
    const gc_manifest m = {entry, ENTRIES};
    int64_t whole, whole_again;
    bool newline, newline_again;
    gc_history *h = history_of(&m, data, size, 7, &whole, &newline);
    gc_history *again = history_of(&m, data, size, size + 1, &whole_again, &newline_again);
    need(whole == whole_again && newline == newline_again && (!newline || whole == (int64_t)size));
    need(whole == 0 || newline || data[whole - 1] == '\n');
    for (int i = 0; i < ENTRIES; i++) {
        const gc_past *p = gc_history_of(h, i), *q = gc_history_of(again, i);
        need(p->known == q->known && p->done == q->done && p->in_place == q->in_place && p->set == q->set);
        need(!p->done || p->known);
    }
    need(!gc_history_of(h, 3)->known);
    gc_history_free(h);
    gc_history_free(again);
}

/* The next number of the input. */
static int64_t number(const uint8_t **data, size_t *size) {
    uint64_t n = 0;
    size_t take = *size < sizeof n ? *size : sizeof n;
    memcpy(&n, *data, take);
    *data += take;
    *size -= take;
    return (int64_t)(n >> 1);
}

/* The next text of the input, up to a NUL. */
static char *text(const uint8_t **data, size_t *size) {
    size_t n = strnlen((const char *)*data, *size);
    char *made = malloc(n + 2);
    need(made != NULL);
    memcpy(made, *data, n);
    made[n] = '\0';
    if (n == 0)
        memcpy(made, "x", 2);
    n += n < *size;
    *data += n;
    *size -= n;
    return made;
}

static gc_state state(const uint8_t **data, size_t *size) {
    gc_state s = {.size = number(data, size), .seconds = number(data, size)};
    s.nanoseconds = number(data, size) % 1000000000;
    s.digested = s.seconds & 1;
    s.digest = s.digested ? (uint64_t)number(data, size) : 0;
    return s;
}

static void write_and_read(const uint8_t *data, size_t size) {
    static const char end[] = ".wav";
    gc_outcome o = {.where = "cpu", .audio = 1.5, .seconds = 0.25, .clipped = number(&data, &size)};
    o.input = state(&data, &size);
    o.response = state(&data, &size);
    o.output = state(&data, &size);
    o.output.device = (uint64_t)number(&data, &size);
    o.output.inode = (uint64_t)number(&data, &size);
    o.in_place = o.clipped & 1;
    o.replacing = o.in_place && (o.clipped & 2);
    char *input = text(&data, &size), *response = text(&data, &size), output[64] = "o/";
    for (size_t i = 2; i < 40 && size > 0; i++, data++, size--)
        output[i] = (char)(*data == '\0' || *data == '/' || *data == '.' ? 'o' : *data);
    memcpy(output + strlen(output), end, sizeof end);
    gc_entry e = entry_of(2, input, response, output);
    const gc_manifest m = {&e, 1};
    int64_t whole;
    bool newline;
    char *line = gc_result_line(&e, &o);
    need(line && strchr(line, '\n') == line + strlen(line) - 1);
    gc_history *h = history_of(&m, line, strlen(line), 1000, &whole, &newline);
    const gc_past *p = gc_history_of(h, 0);
    need(p->known && p->done == !o.replacing && p->in_place == o.in_place && p->set && p->version);
    need(p->input_named && p->response_named && p->clipped == o.clipped && whole == (int64_t)strlen(line) && !newline);
    need(gc_state_same(&p->input, &o.input) && gc_state_same(&p->response, &o.response));
    need(o.in_place ? gc_state_same(&p->output, &o.output) && p->output.inode == o.output.inode
                    : p->output.size == o.output.size);
    gc_history_free(h);
    free(line);
    o.status = GPUCONV_ERROR_FILE;
    (void)snprintf(o.reason, sizeof o.reason, "%s", input);
    line = gc_result_line(&e, &o);
    json_t *object = line ? json_loads(line, 0, NULL) : NULL;
    need(json_string_length(json_object_get(object, "reason")) > 0);
    json_decref(object);
    free(line);
    free(input);
    free(response);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_any(data, size);
    write_and_read(data, size);
    return 0;
}
