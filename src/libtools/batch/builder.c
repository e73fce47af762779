/* Adds entries to a manifest, with random choices where rows leave them open. */
#include "builder.h"

#include "duplicates.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds what a list of any bytes can take. */
enum { MOST_ROWS = 1 << 25, MOST_REFUSED = 1000000 };

gpuconv_status gc_builder_begin(gc_builder *b, const gc_manifest_options *options, gc_manifest *m,
                                gpuconv_error *error) {
    *m = (gc_manifest){0};
    *b = (gc_builder){.manifest = m};
    if (!options)
        return GPUCONV_OK;
    b->options = *options;
    b->state = options->seed;
    b->noise_state = options->seed ^ UINT64_C(0x6e6f6973652d7069);
    b->seed_state = options->seed ^ UINT64_C(0x726f772d73656564);
    gpuconv_status status =
        options->responses ? gc_choices_find(options->responses, m, &b->responses, error) : GPUCONV_OK;
    if (!status && options->noises)
        status = gc_choices_find(options->noises, m, &b->noises, error);
    return status;
}

/* Appends an entry with default values. NULL: out of memory. */
static gc_entry *append(gc_builder *b, int64_t line) {
    gc_manifest *m = b->manifest;
    if (m->entries == b->capacity) {
        int64_t capacity = gc_max(64, 2 * b->capacity);
        gc_entry *larger = realloc(m->entry, (size_t)capacity * sizeof *larger);
        if (!larger)
            return NULL;
        m->entry = larger; /* the system moves a large array without a copy; unused pages take no memory */
        b->capacity = capacity;
    }
    gc_entry *e = &m->entry[m->entries++];
    *e = (gc_entry){.line = line ? line : m->entries + 1, .dry = -HUGE_VAL, .length = -1};
    return e;
}

static bool is_given(const gc_builder *b, const gc_row *row, int column) {
    const gc_row *defaults = b->options.defaults;
    return (row->text[column] && *row->text[column]) || (defaults && defaults->text[column] && *defaults->text[column]);
}

/* Decides whether values of the row are drawn from its seed: a range such as "5:20", or "random". */
static bool is_drawn(const gc_builder *b, const gc_row *row) {
    static const int columns[] = {GC_COLUMN_GAIN, GC_COLUMN_WET,    GC_COLUMN_DRY,
                                  GC_COLUMN_SNR,  GC_COLUMN_OFFSET, GC_COLUMN_NOISE_OFFSET};
    const gc_row *defaults = b->options.defaults;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *text = row->text[columns[i]];
        if ((!text || !*text) && defaults)
            text = defaults->text[columns[i]];
        if (text && (strchr(text, ':') || strcmp(text, "random") == 0))
            return true;
    }
    return false;
}

/* Picks noise and seed for a row. @return false: out of memory */
static bool pick_rest(gc_builder *b, gc_row *row) {
    char number[32];
    if (b->noises.count > 0 && !is_given(b, row, GC_COLUMN_NOISE)) {
        const char *path = b->noises.path[gc_choices_draw(&b->noises, &b->noise_state)];
        if (!gc_row_set(row, GC_COLUMN_NOISE, path))
            return false;
        if (!is_given(b, row, GC_COLUMN_NOISE_OFFSET) && !gc_row_set(row, GC_COLUMN_NOISE_OFFSET, "random"))
            return false;
    }
    if (!b->options.responses && !b->options.noises && !b->options.defaults)
        return true; /* a manifest as it stands: its seeds are its own */
    if (is_drawn(b, row) && !is_given(b, row, GC_COLUMN_SEED)) {
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)(gc_random_bits(&b->seed_state) >> 32));
        return gc_row_set(row, GC_COLUMN_SEED, number);
    }
    return true;
}

/* Returns "OWN-NAME" with the name of a response, to be freed. NULL: out of memory. */
static char *add_name(const char *own, int own_length, const char *response) {
    const char *name;
    int length;
    gc_path_stem(response, &name, &length);
    size_t room = (size_t)own_length + (size_t)length + 2;
    char *made = gc_calloc((int64_t)room, 1);
    if (made)
        (void)snprintf(made, room, "%.*s-%.*s", own_length, own, length, name);
    return made;
}

/* Appends the name of a response to the stem of the row's output. @return false: out of memory */
static bool add_to_stem(gc_row *row, const char *own, const char *response) {
    int length = own ? (int)strlen(own) : 0;
    if (!own)
        gc_path_stem(row->text[GC_COLUMN_INPUT] ? row->text[GC_COLUMN_INPUT] : "", &own, &length);
    char *stem = add_name(own, length, response);
    if (stem)
        row->stem = stem;
    return stem != NULL;
}

static bool add_entry(gc_builder *b, gc_row *row, int64_t line) {
    gc_entry *e = pick_rest(b, row) ? append(b, line) : NULL;
    const bool good = e && gc_entry_fill(e, row, b->options.defaults, &b->manifest->recipes);
    b->refused += good && e->refusal;
    return good;
}

/* Adds one entry for each response, with its name in the identifier and the output. An output name of the row gives its
 * stem. @return false: out of memory */
static bool add_all(gc_builder *b, gc_row *row, int64_t line) {
    char *stem = row->stem, *id = row->text[GC_COLUMN_ID];
    bool good = true;
    b->manifest->every_response = true;
    if (!stem && row->text[GC_COLUMN_OUTPUT] && *row->text[GC_COLUMN_OUTPUT]) {
        char *dot = strrchr(row->text[GC_COLUMN_OUTPUT], '.');
        if (dot && !strchr(dot, '/'))
            *dot = '\0';
        stem = row->text[GC_COLUMN_OUTPUT];
        row->text[GC_COLUMN_OUTPUT] = NULL;
    }
    for (int64_t i = 0; i < b->responses.count && good; i++) {
        const char *path = b->responses.path[i];
        row->text[GC_COLUMN_ID] = id ? add_name(id, (int)strlen(id), path) : NULL;
        good = (!id || row->text[GC_COLUMN_ID]) && add_to_stem(row, stem, path) &&
               gc_row_set(row, GC_COLUMN_RESPONSE, path) && add_entry(b, row, line);
        if (row->stem != stem)
            free(row->stem);
        row->stem = stem;
        free(row->text[GC_COLUMN_ID]);
    }
    free(id);
    free(stem);
    row->text[GC_COLUMN_ID] = row->stem = NULL;
    return good;
}

gpuconv_status gc_builder_add(gc_builder *b, gc_row *row, int64_t line, gpuconv_error *error) {
    bool good = true;
    bool open =
        b->responses.count > 0 && !is_given(b, row, GC_COLUMN_RESPONSE) && !is_given(b, row, GC_COLUMN_RESPONSES);
    if (open && b->options.pick == GC_PICK_ALL) {
        good = add_all(b, row, line);
    } else {
        int64_t chosen = !open                              ? 0
                         : b->options.pick == GC_PICK_CYCLE ? b->rows % b->responses.count
                                                            : gc_choices_draw(&b->responses, &b->state);
        good = (!open || gc_row_set(row, GC_COLUMN_RESPONSE, b->responses.path[chosen])) && add_entry(b, row, line);
    }
    b->rows++;
    gc_row_clear(row);
    if (!good)
        return gc_fail_memory(error, "the manifest");
    if (b->rows > MOST_ROWS)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the list has more than %d rows; split it", MOST_ROWS);
    if (b->refused > MOST_REFUSED)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "more than %d rows of the list are invalid; the last: line %lld: %s", MOST_REFUSED,
                       (long long)line, b->manifest->entry[b->manifest->entries - 1].refusal);
    return GPUCONV_OK;
}

gpuconv_status gc_builder_end(gc_builder *b, const char *name, gpuconv_status status, gpuconv_error *error) {
    gc_choices_free(&b->responses);
    gc_choices_free(&b->noises);
    if (!status && b->manifest->entries == 0) {
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the manifest has no entries", name);
    } else if (!status) { /* the array is not enlarged any more */
        gc_entry *exact = realloc(b->manifest->entry, (size_t)b->manifest->entries * sizeof *exact);
        b->manifest->entry = exact ? exact : b->manifest->entry;
        status = gc_find_duplicates(b->manifest, error);
    }
    if (status)
        gc_manifest_free(b->manifest);
    return status;
}
