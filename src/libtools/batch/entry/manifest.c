/* Manifests: finds entries with the same output or the same response, and writes manifests as CSV. */
#include "entry.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/map.h"

#include <csv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Outputs and responses that several entries name ---- */

/* Returns the first entry with a name: an earlier one, or `e` itself. NULL: out of memory. */
static gc_entry *find_or_insert(gc_map *map, const char *name, gc_entry *e) {
    void **first = gc_map_put(map, name, strlen(name));
    if (first && !*first)
        *first = e;
    return first ? *first : NULL;
}

/* Inserts an output, or refuses the entry if an earlier output has the name. @return false: out of memory */
static bool add_output(gc_map *outputs, const char *name, gc_entry *e) {
    const int64_t before = outputs->count;
    return !name || (find_or_insert(outputs, name, e) &&
                     (outputs->count > before || gc_entry_refuse(e, "an earlier entry has the output", name)));
}

gpuconv_status gc_find_duplicates(gc_manifest *m, gpuconv_error *error) {
    gc_map outputs = {0}, responses = {0};
    bool good = true;
    for (int64_t i = 0; i < m->entries && good; i++) {
        gc_entry *e = &m->entry[i];
        if (e->refusal)
            continue;
        good = add_output(&outputs, e->output, e) && (e->refusal || add_output(&outputs, gc_entry_early(e), e));
        gc_entry *first = good && !e->refusal ? find_or_insert(&responses, e->response, e) : e;
        good = good && first;
        if (first && first != e)
            first->shared = e->shared = true;
    }
    gc_map_free(&outputs);
    gc_map_free(&responses);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}

/* ---- Writing ---- */

/* Marks the columns that an entry has. */
static void mark_columns(const gc_entry *e, bool used[GC_COLUMNS]) {
    char room[GC_NUMBER_TEXT], *list;
    for (int c = e->extra ? GC_COLUMNS_ALWAYS : GC_COLUMN_RECIPE; c < GC_COLUMNS; c++) {
        if (used[c])
            continue;
        used[c] = gc_entry_text(e, c, room, &list) != NULL;
        free(list);
    }
}

static bool put(const char *text, FILE *f) {
    return fwrite(text, 1, strlen(text), f) == strlen(text);
}

/* Writes a text in quotes, a number as it is. */
static bool write_field(const char *text, bool quoted, FILE *f) {
    return quoted ? csv_fwrite(f, text, strlen(text)) == 0 : put(text, f);
}

static bool write_entry(const gc_entry *e, const bool used[GC_COLUMNS], FILE *f) {
    char room[GC_NUMBER_TEXT], *list;
    bool good = true;
    for (int c = 0; c < GC_COLUMNS && good; c++) {
        if (!used[c])
            continue;
        const char *text = gc_entry_text(e, c, room, &list);
        const bool quoted = text && text != room;
        good = (c == 0 || put(",", f)) && (!text || write_field(text, quoted, f));
        free(list);
    }
    return good && put("\n", f);
}

bool gc_manifest_print(const gc_manifest *m, FILE *f) {
    bool used[GC_COLUMNS] = {false}, good = true;
    const gc_recipe *last = NULL;
    for (int c = 0; c < GC_COLUMNS_ALWAYS; c++)
        used[c] = true;
    for (int64_t i = 0; i < m->entries; i++)
        if (m->entry[i].extra || gc_entry_recipe(&m->entry[i]) != last) {
            mark_columns(&m->entry[i], used);
            last = gc_entry_recipe(&m->entry[i]);
        }
    for (int c = 0; c < GC_COLUMNS && good; c++)
        if (used[c])
            good = (c == 0 || put(",", f)) && put(gc_columns[c], f);
    good = good && put("\n", f);
    for (int64_t i = 0; i < m->entries && good; i++)
        if (m->entry[i].input && m->entry[i].response && m->entry[i].output)
            good = write_entry(&m->entry[i], used, f);
    return good;
}

gpuconv_status gc_manifest_write(const gc_manifest *m, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_create_parent_folders(path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (status)
        return status;
    int fd = dup(gc_output_file_descriptor(file));
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = f && gc_manifest_print(m, f);
    int reason = errno;
    if (f && fclose(f) != 0 && good) {
        good = false;
        reason = errno;
    } else if (!f && fd >= 0) {
        close(fd);
    }
    status = good ? gc_output_file_commit(file, error)
                  : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(reason));
    gc_output_file_free(file);
    return status;
}
