/* Parses results.jsonl of any bytes, as --resume does: lines that are not understood are skipped, and the result does
 * not depend on the portions. An outcome with names of these bytes is written as one line of JSON, which must parse
 * again as this outcome. */
#include "libtools/batch/output/history.h"
#include "libtools/batch/output/results.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static gc_entry entry_of(int64_t line, char *input, char *response, char *output) {
    return (gc_entry){
        .line = line, .input = input, .response = response, .output = output, .dry = -HUGE_VAL, .length = -1};
}

/* Returns the history of these bytes, parsed in portions of `step` bytes. */
static gc_history *history_of(const gc_manifest *m, const void *bytes, size_t size, size_t step, int64_t *complete,
                              bool *newline) {
    gc_history *h = gc_history_new(m);
    require(h != NULL);
    for (size_t at = 0; at < size; at += step)
        require(gc_history_parse(h, (const char *)bytes + at, step < size - at ? step : size - at));
    require(gc_history_end(h, complete, newline) && *complete >= 0 && *complete <= (int64_t)size);
    return h;
}

static void read_any(const uint8_t *data, size_t size) {
    char a[] = "a.wav", ir[] = "ir.wav", out[] = "out/a.wav", bad[] = "\xff.wav", c[] = "c.wav", refusal[] = "refused";
    gc_entry entry[ENTRIES] = {entry_of(2, a, ir, out), entry_of(3, bad, bad, bad), entry_of(4, c, ir, c),
                               entry_of(5, a, ir, out)};
    entry[3].refusal = refusal;
    const gc_manifest m = {.entry = entry, .entries = ENTRIES};
    int64_t complete, complete_again;
    bool newline, newline_again;
    gc_history *h = history_of(&m, data, size, 7, &complete, &newline);
    gc_history *again = history_of(&m, data, size, size + 1, &complete_again, &newline_again);
    require(complete == complete_again && newline == newline_again && (!newline || complete == (int64_t)size));
    require(complete == 0 || newline || data[complete - 1] == '\n');
    for (int i = 0; i < ENTRIES; i++) {
        const gc_past_line *p = gc_history_last_line(h, i), *q = gc_history_last_line(again, i);
        require(p->known == q->known && p->done == q->done && p->same_settings == q->same_settings);
        require(!p->done || p->known);
    }
    require(!gc_history_last_line(h, 3)->known);
    gc_history_free(h);
    gc_history_free(again);
}

/* Takes the next number from the input. */
static int64_t number(const uint8_t **data, size_t *size) {
    uint64_t n = 0;
    size_t take = *size < sizeof n ? *size : sizeof n;
    memcpy(&n, *data, take);
    *data += take;
    *size -= take;
    return (int64_t)(n >> 1);
}

/* Takes the next text from the input, up to a NUL. */
static char *text(const uint8_t **data, size_t *size) {
    size_t n = strnlen((const char *)*data, *size);
    char *made = malloc(n + 2);
    require(made != NULL);
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
    o.output_size = number(&data, &size);
    char *input = text(&data, &size), *response = text(&data, &size), output[64] = "o/";
    for (size_t i = 2; i < 40 && size > 0; i++, data++, size--)
        output[i] = (char)(*data == '\0' || *data == '/' || *data == '.' ? 'o' : *data);
    memcpy(output + strlen(output), end, sizeof end);
    gc_entry e = entry_of(2, input, response, output);
    const gc_manifest m = {.entry = &e, .entries = 1};
    int64_t complete;
    bool newline;
    char *line = gc_result_line(&e, &o);
    require(line && strchr(line, '\n') == line + strlen(line) - 1);
    gc_history *h = history_of(&m, line, strlen(line), 1000, &complete, &newline);
    const gc_past_line *p = gc_history_last_line(h, 0);
    require(p->known && p->done && p->same_settings && p->same_version);
    require(p->same_input_name && p->same_response_name && complete == (int64_t)strlen(line) && !newline);
    require(gc_state_same(&p->input, &o.input) && gc_state_same(&p->response, &o.response));
    require(p->output_size == o.output_size);
    gc_history_free(h);
    free(line);
    o.status = GPUCONV_ERROR_FILE;
    (void)snprintf(o.reason, sizeof o.reason, "%s", input);
    line = gc_result_line(&e, &o);
    json_t *object = line ? json_loads(line, 0, NULL) : NULL;
    require(json_string_length(json_object_get(object, "reason")) > 0);
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
