/* Parses a manifest in CSV (RFC 4180). */
#include "libgpuconv/core/error.h"
#include "manifest_entry.h"

#include <string.h>

enum { FIELDS_MAX = 64 };

/* Returns the next field at *at, unquoted in place, and advances *at. *last: it is the last field of its line. *lines:
 * the number of lines begun. *unclosed: a quote is not closed. */
static char *next_field(char **at, bool *last, int64_t *lines, bool *unclosed) {
    char *from = *at, *to = from, *start = from;
    *last = *unclosed = false;
    if (*from == '"') {
        for (from++; *from && !(*from == '"' && from[1] != '"'); from++) {
            *lines += *from == '\n';
            from += *from == '"';
            *to++ = *from;
        }
        *unclosed = *from == '\0';
        from += *from == '"';
        while (*from && *from != ',' && *from != '\n' && *from != '\r') /* text after the closing quote is appended */
            *to++ = *from++;
    } else {
        while (*from && *from != ',' && *from != '\n' && *from != '\r')
            *to++ = *from++;
    }
    *last = *from != ',';
    bool end = *from == '\0';
    if (*from == '\r' && from[1] == '\n')
        from++;
    *lines += *from == '\n' || *from == '\r';
    *at = end ? from : from + 1;
    *to = '\0';
    return start;
}

/* The columns of a file, from its first line. */
typedef struct header {
    int column[FIELDS_MAX]; /* GC_COLUMN_... of each field */
    int count;
} header;

static gpuconv_status parse_header(const char *path, char **at, int64_t *lines, header *h, gpuconv_error *error) {
    bool last = false, unclosed, named[GC_COLUMNS] = {false};
    h->count = 0;
    while (!last) {
        char *name = next_field(at, &last, lines, &unclosed);
        int c = 0;
        while (c < GC_COLUMNS && strcmp(name, gc_columns[c]) != 0)
            c++;
        if (c == GC_COLUMNS || named[c] || h->count == FIELDS_MAX)
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "%s: '%s' is not a column, or is named twice; the columns are input, response, output, "
                           "gain, wet, dry, offset, length, seed",
                           path, name);
        named[c] = true;
        h->column[h->count++] = c;
    }
    if (!named[GC_COLUMN_INPUT] || !named[GC_COLUMN_RESPONSE])
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the first line must name the columns input and response",
                       path);
    return GPUCONV_OK;
}

gpuconv_status gc_manifest_parse_csv(const char *path, char *text, gc_manifest *m, gpuconv_error *error) {
    int64_t lines = 1, capacity = 0;
    char *at = text;
    header h;
    if (strncmp(text, "\xef\xbb\xbf", 3) == 0)
        at += 3; /* the byte order mark that some spreadsheets write */
    gpuconv_status status = parse_header(path, &at, &lines, &h, error);
    if (status)
        return status;
    while (*at) {
        if (*at == '\n' || *at == '\r') { /* an empty line */
            lines += *at == '\n';
            at++;
            continue;
        }
        gc_entry *e = gc_manifest_add(m, &capacity, lines);
        bool good = e != NULL, last = false, unclosed;
        for (int field = 0; good && !last; field++) {
            char *value = next_field(&at, &last, &lines, &unclosed);
            if (unclosed)
                good = gc_entry_refuse(e, "a quote is not closed", NULL);
            else if (field >= h.count)
                good = gc_entry_refuse(e, "more fields than columns", NULL);
            else
                good = gc_entry_set(e, h.column[field], value);
        }
        if (!good || !gc_entry_complete(e))
            return gc_fail_memory(error, path);
    }
    return GPUCONV_OK;
}
