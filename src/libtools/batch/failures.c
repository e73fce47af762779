/* Groups failures by reason. */
#include "failures.h"

#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a message without its file name (the text before the first ": "), its numbers and its quoted values. */
static void find_reason(const char *message, char reason[GC_FAILURE_BYTES]) {
    const char *from = strstr(message, ": ");
    size_t used = 0;
    from = from ? from + 2 : message;
    while (*from && used + 1 < GC_FAILURE_BYTES) {
        const char *end = *from == '\'' ? strrchr(from + 1, '\'') : NULL;
        if (end) {
            from = end + 1;
        } else if (isdigit((unsigned char)*from)) {
            reason[used++] = '#';
            from += strspn(from, "0123456789.e+-");
        } else {
            reason[used++] = *from++;
        }
    }
    reason[used] = '\0';
}

void gc_failures_add(gc_failures *f, const char *message) {
    char reason[GC_FAILURE_BYTES];
    int i = 0;
    find_reason(message, reason);
    while (i < f->count && i < GC_FAILURES_GROUPS - 1 && strcmp(f->group[i].reason, reason) != 0)
        i++;
    if (i == f->count) {
        f->count++;
        memcpy(f->group[i].reason, reason, sizeof reason);
        (void)snprintf(f->group[i].example, sizeof f->group[i].example, "%s", message);
    }
    f->group[i].count++;
}

void gc_failures_add_lines(gc_failures *f, const char *lines, size_t bytes) {
    while (bytes > 0) {
        const char *end = memchr(lines, '\n', bytes);
        const size_t length = end ? (size_t)(end - lines) + 1 : bytes;
        json_error_t why;
        json_t *line = json_loadb(lines, length, 0, &why);
        const char *status = json_string_value(json_object_get(line, "status"));
        const char *reason = json_string_value(json_object_get(line, "reason"));
        if (status && reason && strcmp(status, "failed") == 0)
            gc_failures_add(f, reason);
        json_decref(line);
        lines += length;
        bytes -= length;
    }
}

void gc_failures_sort(gc_failures *f) {
    for (int i = 1; i < f->count; i++)
        for (int k = i; k > 0 && f->group[k].count > f->group[k - 1].count; k--) {
            __typeof__(f->group[0]) other = f->group[k];
            f->group[k] = f->group[k - 1];
            f->group[k - 1] = other;
        }
}
