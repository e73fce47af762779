/* Fuzzes the reader of tables of text (core/table.h) in each of its forms; the first byte chooses the form and whether
 * the text arrives byte by byte. A text is read or refused with a message, and in the same way however it arrives; a
 * field has no line end outside of quotation marks, and a number is finite. */
#include "libgpuconv/core/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct source {
    gc_lines lines; /* first: read_portion gets it */
    const uint8_t *bytes;
    int64_t at, length, portion;
} source;

static void require(bool holds) {
    if (!holds)
        abort();
}

static gpuconv_status read_portion(gc_lines *lines, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    (void)error;
    source *s = (source *)(void *)lines;
    *got = s->length - s->at;
    *got = *got < s->portion ? *got : s->portion;
    *got = *got < bytes ? *got : bytes;
    if (*got > 0)
        memcpy(to, s->bytes + s->at, (size_t)*got);
    s->at += *got;
    return GPUCONV_OK;
}

/* Reads all rows. @return a sum over the fields and the status */
static uint64_t read_all(const gc_table_form *form, const uint8_t *bytes, size_t size, int64_t portion) {
    source s = {{.name = "t", .longest = 1 << 12, .most = 1 << 16, .fd = -1, .read = read_portion},
                bytes,
                .length = (int64_t)size,
                .portion = portion};
    gc_table t;
    gpuconv_error error = {GPUCONV_OK, ""};
    uint64_t sum = 5381;
    gpuconv_status status = gc_table_open(&t, form, &s.lines, &error);
    while (gc_table_next(&t, &status, &error)) {
        require(t.wrong || (t.fields >= 1 && t.fields <= form->most));
        for (int i = 0; i < t.fields; i++) {
            double value;
            require(form->kind == GC_TABLE_CELLS || !strpbrk(t.field[i], "\r\n"));
            for (const char *c = t.field[i]; *c; c++)
                sum = 33 * sum + (uint8_t)*c;
            sum = 33 * sum + (uint64_t)i;
            if (gc_table_number(&t, i, &value))
                require(isfinite(value));
        }
    }
    require(!status || *error.message);
    gc_table_close(&t);
    gc_lines_close(&s.lines);
    return sum + (uint64_t)status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const gc_table_form forms[] = {
        {.kind = GC_TABLE_NUMBERS, .most = 8, .comments = true, .quotes = true},
        {.kind = GC_TABLE_ROUTES, .most = 12, .comments = true, .quotes = true},
        {.kind = GC_TABLE_CELLS, .most = 16, .quotes = true},
        {.kind = GC_TABLE_WORDS, .most = 2, .last = 2},
        {.kind = GC_TABLE_WORDS, .most = 12, .last = 8, .comments = true, .escapes = true},
    };
    if (size == 0)
        return 0;
    const gc_table_form *form = &forms[*data % (sizeof forms / sizeof *forms)];
    require(read_all(form, data + 1, size - 1, 1) == read_all(form, data + 1, size - 1, 1 << 16));
    return 0;
}
