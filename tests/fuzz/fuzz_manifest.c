/* Reads a list of any bytes, as CSV, JSON Lines, TSV or wav.scp depending on the first byte, which also chooses whether
 * the bytes are compressed before, or have the magic number of gzip: it is accepted or refused with a reason. A
 * compressed list gives the same entries. The valid entries are written and must be read again as equal entries. */
#include "fuzz.h"
#include "libtools/batch/list/manifest.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds)
        abort();
}

static gpuconv_status read_list(const char *name, const void *bytes, size_t size, gc_manifest *m) {
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_status status = gc_manifest_read(fuzz_file(name, bytes, size), NULL, m, &error);
    require(!status == (m->entries > 0) && (!status || *error.message));
    return status;
}

/* Reads the list after compression in two members, the second of which may be cut off. */
static gpuconv_status read_compressed(const char *name, const uint8_t *bytes, size_t size, bool whole, gc_manifest *m) {
    static uint8_t packed[1 << 16];
    size_t used = 0, half = size / 2;
    for (int member = 0; member < 2; member++) {
        z_stream z = {.next_in = (Bytef *)(uintptr_t)(bytes + (member ? half : 0)),
                      .avail_in = (unsigned)(member ? size - half : half),
                      .next_out = packed + used,
                      .avail_out = (unsigned)(sizeof packed - used)};
        require(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
        require(deflate(&z, Z_FINISH) == Z_STREAM_END && deflateEnd(&z) == Z_OK);
        used += z.total_out;
    }
    return read_list(name, packed, whole ? used : used - 1, m);
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
    static const char *const names[] = {"file.csv", "file.jsonl", "file.tsv", "file.scp"};
    enum { COMPRESS = 4, CUT = 8, GZIP = 16 };
    gc_manifest m, again;
    char *text = NULL;
    size_t length = 0;
    if (size == 0)
        return 0;
    const unsigned kind = *data++;
    const char *name = names[kind % 4];
    uint8_t bytes[1 << 13] = {0x1f, 0x8b, 8};
    const size_t magic = kind & GZIP ? 3 : 0;
    size = size - 1 < sizeof bytes - magic ? size - 1 : sizeof bytes - magic;
    memcpy(bytes + magic, data, size);
    size += magic;
    gpuconv_status status = read_list(name, bytes, size, &m);
    if (kind & COMPRESS && !magic && !(size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)) {
        require(read_compressed(name, bytes, size, true, &again) == status && again.entries == m.entries);
        gc_manifest_free(&again);
        if (kind & CUT) {
            require(read_compressed(name, bytes, size, false, &again) != GPUCONV_OK);
            gc_manifest_free(&again);
        }
    }
    if (status)
        return 0;
    remove_refused(&m);
    if (m.entries > 0) {
        FILE *f = open_memstream(&text, &length);
        require(f && gc_manifest_print(&m, f) && fclose(f) == 0);
        require(read_list("file.csv", text, length, &again) == GPUCONV_OK && again.entries == m.entries);
        for (int64_t i = 0; i < m.entries; i++)
            require_equal(&m.entry[i], &again.entry[i]);
        gc_manifest_free(&again);
        free(text);
    }
    gc_manifest_free(&m);
    return 0;
}
