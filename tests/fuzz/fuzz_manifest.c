/* Parses a manifest of any bytes, as CSV, JSON Lines, TSV or wav.scp depending on the first byte: it is accepted or
 * refused with a reason. The valid entries are written and must parse again as equal entries. */
#include "gpuconv/batch/row.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static gpuconv_status parse(const char *name, const void *bytes, size_t size, gc_manifest *m) {
    gpuconv_error error = {GPUCONV_OK, ""};
    char *text = malloc(size + 1);
    require(text != NULL);
    memcpy(text, bytes, size);
    gpuconv_status status = gc_manifest_parse(name, text, size, NULL, m, &error);
    require(!status == (m->entries > 0) && (!status || *error.message));
    free(text);
    return status;
}

/* Removes the refused entries. */
static void remove_refused(gc_manifest *m) {
    int64_t kept = 0;
    for (int64_t i = 0; i < m->entries; i++) {
        gc_entry *e = &m->entry[i];
        require(e->refusal ? *e->refusal != '\0' : e->input && e->response && e->output);
        if (!e->refusal) {
            m->entry[kept++] = *e;
            continue;
        }
        gc_entry_clear(e);
    }
    m->entries = kept;
}

static void require_equal(const gc_entry *a, const gc_entry *b) {
    require(!b->refusal && strcmp(a->input, b->input) == 0 && strcmp(a->response, b->response) == 0 &&
            strcmp(a->output, b->output) == 0 && a->gain == b->gain && a->wet == b->wet && a->dry == b->dry &&
            a->length == b->length && a->random_offset == b->random_offset && a->seed == b->seed &&
            (a->random_offset || a->offset == b->offset) && gc_entry_sources(a) == gc_entry_sources(b));
    for (int c = GC_COLUMNS_ALWAYS; c < GC_COLUMNS; c++) {
        char rooms[2][GC_NUMBER_TEXT], *lists[2];
        const char *x = gc_entry_text(a, c, rooms[0], &lists[0]), *y = gc_entry_text(b, c, rooms[1], &lists[1]);
        require(!x == !y && (!x || strcmp(x, y) == 0));
        free(lists[0]);
        free(lists[1]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"m.csv", "m.jsonl", "m.tsv", "wav.scp"};
    gc_manifest m, again;
    char *text = NULL;
    size_t length = 0;
    if (size == 0 || parse(names[*data % 4], data + 1, size - 1, &m))
        return 0;
    remove_refused(&m);
    if (m.entries > 0) {
        FILE *f = open_memstream(&text, &length);
        require(f && gc_manifest_print(&m, f) && fclose(f) == 0);
        require(parse("again.csv", text, length, &again) == GPUCONV_OK && again.entries == m.entries);
        for (int64_t i = 0; i < m.entries; i++)
            require_equal(&m.entry[i], &again.entry[i]);
        gc_manifest_free(&again);
        free(text);
    }
    gc_manifest_free(&m);
    return 0;
}
