/* Collects the code of a rung and compares it, line by line, with that of the rung before. */
#include "code.h"

#include "code_items.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "sources.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 400, MAX_LINES = 1200 };

/* The lines of a rung's code. */
typedef struct listing {
    gc_lab_code_line *line;
    int count;
} listing;

/* Returns whether a file holds code of this kind of variant. */
static bool has_code_for(const char *path, const gc_lab_module *module, gc_lab_where where) {
    const char *name = strrchr(path, '/') + 1, *extension = strrchr(name, '.');
    return gc_lab_is_source_of(name, module->name) && (strcmp(extension, ".c") == 0) == (where == LAB_CPU);
}

/* Marks the items that the marked ones name, until there are no new ones. */
static void reach(gc_code_item *items, int count) {
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < count; i++) {
            size_t length;
            const char *at = items[i].reached ? items[i].begin : items[i].end;
            while ((at = gc_code_identifier(at, items[i].end, &length)) != NULL) {
                for (int k = 0; k < count; k++)
                    if (!items[k].reached && gc_code_item_defines(&items[k], at, length))
                        items[k].reached = found = true;
                at += length;
            }
        }
    }
}

/* Appends the lines of an item, after an empty line unless it is the first one. */
static void append_item(listing *to, const gc_code_item *item) {
    if (to->count > 0 && to->count < MAX_LINES)
        to->line[to->count++] = (gc_lab_code_line){' ', "", 0};
    for (const char *at = item->begin; at < item->end && to->count < MAX_LINES;) {
        size_t length = strcspn(at, "\n");
        if (at + length > item->end)
            length = (size_t)(item->end - at);
        to->line[to->count++] = (gc_lab_code_line){' ', at, (int)length};
        at += length + 1;
    }
}

/* Lists the code of a rung: the items that its function reaches, in the order of the files, and the function last. */
static gpuconv_status list_code(const gc_lab_module *module, const gc_lab_variant *v, listing *to,
                                gpuconv_error *error) {
    *to = (listing){.line = gc_calloc(MAX_LINES, sizeof *to->line)};
    gc_code_item *items = gc_calloc(MAX_ITEMS, sizeof *items);
    if (!to->line || !items) {
        free(items);
        return gc_fail_memory(error, "the code of a variant");
    }
    int count = 0;
    for (const gc_lab_source *s = gc_lab_sources(); s->path; s++)
        if (has_code_for(s->path, module, v->where))
            count += gc_code_items(s->text, items + count, MAX_ITEMS - count);
    gc_code_item *last = NULL;
    for (int i = 0; i < count && v->code; i++)
        if (gc_code_item_defines(&items[i], v->code, strlen(v->code)) && items[i].end[-1] == '}')
            last = &items[i];
    if (last) {
        last->reached = true;
        reach(items, count);
        for (int i = 0; i < count; i++)
            if (items[i].reached && &items[i] != last)
                append_item(to, &items[i]);
        append_item(to, last);
    }
    free(items);
    return GPUCONV_OK;
}

static bool is_same_line(const gc_lab_code_line *a, const gc_lab_code_line *b) {
    return a->length == b->length && memcmp(a->text, b->text, (size_t)a->length) == 0;
}

static bool is_same_code(const listing *a, const listing *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = is_same_line(&a->line[i], &b->line[i]);
    return same;
}

/* Fills `code` with the lines of both listings, marked, from a longest common subsequence. Leaves the marks out if less
 * than a quarter of the lines is common. */
static gpuconv_status mark_lines(const listing *before, const listing *now, gc_lab_code *code, gpuconv_error *error) {
    int n = before->count, m = now->count, substantial = 0, common = 0;
    int *length = gc_calloc((int64_t)(n + 1) * (m + 1), sizeof *length);
    gc_lab_code_line *line = gc_calloc((int64_t)n + m + 1, sizeof *line);
    if (!length || !line) {
        free(length);
        free(line);
        return gc_fail_memory(error, "a difference");
    }
    for (int i = n - 1; i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            int *at = &length[i * (m + 1) + k], below = at[m + 1], right = at[1];
            *at = is_same_line(&before->line[i], &now->line[k]) ? at[m + 2] + 1 : below > right ? below : right;
        }
    int count = 0;
    for (int i = 0, k = 0; i < n || k < m;) {
        bool same = i < n && k < m && is_same_line(&before->line[i], &now->line[k]);
        bool gone = !same && i < n && (k == m || length[(i + 1) * (m + 1) + k] >= length[i * (m + 1) + k + 1]);
        line[count] = gone ? before->line[i] : now->line[k];
        line[count].mark = same ? ' ' : gone ? '-' : '+';
        substantial += !gone && line[count].length > 4;
        common += same && line[count].length > 4;
        count++;
        i += same || gone;
        k += !gone;
    }
    free(length);
    if (4 * common < substantial) {
        free(line);
        code->against = NULL;
        return GPUCONV_OK;
    }
    free(code->line);
    code->line = line;
    code->count = count;
    return GPUCONV_OK;
}

gpuconv_status gc_lab_code_find(const gc_lab_module *module, int rung, gc_lab_code *code, gpuconv_error *error) {
    const gc_lab_variant *v = &module->variants[rung];
    listing now, before;
    *code = (gc_lab_code){0};
    gpuconv_status err = list_code(module, v, &now, error);
    code->line = now.line;
    code->count = now.count;
    for (int i = rung - 1; i >= 0 && !err && now.count && !code->same; i--) {
        const gc_lab_variant *other = &module->variants[i];
        if (other->where != v->where)
            continue;
        err = list_code(module, other, &before, error);
        if (!err && is_same_code(&before, &now)) {
            code->same = other;
        } else if (!err && !code->against && before.count) {
            code->against = other;
        }
        free(before.line);
    }
    if (!err && code->same)
        code->against = NULL;
    if (!err && code->against) {
        err = list_code(module, code->against, &before, error);
        if (!err)
            err = mark_lines(&before, &now, code, error);
        free(before.line);
    }
    if (err)
        gc_lab_code_free(code);
    return err;
}

void gc_lab_code_free(gc_lab_code *code) {
    free(code->line);
    *code = (gc_lab_code){0};
}
