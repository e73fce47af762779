/* Collects the code of a rung and compares it, line by line, with that of the rung before. */
#include "code.h"

#include "code_items.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "sources.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 400, MAX_LINES = 1200, MAX_FILES = 8, MAX_COMMON = 24, CONTEXT = 6 };

/* The lines of a rung's code. */
typedef struct listing {
    gc_lab_code_line *line;
    int count;
} listing;

/* The items of a module's sources. */
typedef struct items {
    gc_code_item *item;
    int count;
    const char *path[MAX_FILES];
} items;

/* Reads the items of all sources of a module. */
static gpuconv_status read_items(const gc_lab_module *module, items *all, gpuconv_error *error) {
    *all = (items){.item = gc_calloc(MAX_ITEMS, sizeof *all->item)};
    if (!all->item)
        return gc_fail_memory(error, "the code of a module");
    int files = 0;
    for (const gc_lab_source *s = gc_lab_sources(); s->path && files < MAX_FILES; s++) {
        if (!gc_lab_is_source_of(strrchr(s->path, '/') + 1, module->name))
            continue;
        int first = all->count;
        all->count += gc_code_items(s->text, all->item + first, MAX_ITEMS - first);
        for (int i = first; i < all->count; i++)
            all->item[i].file = files;
        all->path[files++] = s->path;
    }
    return GPUCONV_OK;
}

static bool is_header(const items *all, int file) {
    return strcmp(strrchr(all->path[file], '.'), ".cuh") == 0;
}

/* Returns whether code of the file `from` can name items of `file`: of the same file or of a header. */
static bool is_visible(const items *all, int file, int from) {
    return file == from || is_header(all, file);
}

/* Marks the items that item `i` names. Returns whether there were new ones. */
static bool reach_from(items *all, int i) {
    const gc_code_item *from = &all->item[i];
    bool found = false;
    size_t length;
    for (const char *at = from->begin; (at = gc_code_identifier(at, from->end, &length)) != NULL; at += length)
        for (int k = 0; k < all->count; k++) {
            gc_code_item *to = &all->item[k];
            if (!to->reached && is_visible(all, to->file, from->file) && gc_code_item_defines(to, at, length))
                to->reached = found = true;
        }
    return found;
}

/* Marks the items that the marked ones name, until there are no new ones. */
static void reach(items *all) {
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < all->count; i++)
            found = (all->item[i].reached && reach_from(all, i)) || found;
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

/* Returns the function of this name, or NULL. */
static gc_code_item *find_function(const items *all, const char *name) {
    for (int i = 0; i < all->count; i++)
        if (gc_code_item_defines(&all->item[i], name, strlen(name)) && all->item[i].end[-1] == '}')
            return &all->item[i];
    return NULL;
}

/* Lists the code of a rung: the items that its function reaches, headers first, and the function last. */
static gpuconv_status list_code(const gc_lab_module *module, const gc_lab_variant *v, listing *to,
                                gpuconv_error *error) {
    items all;
    *to = (listing){0};
    gpuconv_status err = read_items(module, &all, error);
    if (!err && !(to->line = gc_calloc(MAX_LINES, sizeof *to->line)))
        err = gc_fail_memory(error, "the code of a variant");
    gc_code_item *last = !err && v->code ? find_function(&all, v->code) : NULL;
    if (last) {
        last->reached = true;
        reach(&all);
        for (int header = 1; header >= 0; header--)
            for (int i = 0; i < all.count; i++)
                if (all.item[i].reached && &all.item[i] != last && is_header(&all, all.item[i].file) == header)
                    append_item(to, &all.item[i]);
        append_item(to, last);
    }
    free(all.item);
    return err;
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

/* Replaces the middle of long runs of common lines. Returns the number of lines that are left. */
static int leave_out(gc_lab_code_line *line, int count) {
    int to = 0;
    for (int i = 0; i < count;) {
        int end = i;
        while (end < count && line[end].mark == ' ')
            end++;
        bool is_long = end - i > MAX_COMMON;
        for (int k = i; k < end; k++)
            if (!is_long || k < i + CONTEXT || k >= end - CONTEXT)
                line[to++] = line[k];
            else if (k == i + CONTEXT)
                line[to++] = (gc_lab_code_line){GC_LAB_LEFT_OUT, "", end - i - 2 * CONTEXT};
        if (end < count)
            line[to++] = line[end++];
        i = end;
    }
    return to;
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
    code->count = leave_out(line, count);
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
