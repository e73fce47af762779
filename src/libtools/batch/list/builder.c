/* Turns the rows of any list into the entries of a manifest, and picks the responses and noises that a row does not
 * name. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libtools/batch/entry/entry.h"
#include "libtools/batch/entry/text.h"
#include "libtools/room/room_set.h"
#include "list.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- Choices ---- */

typedef struct listing {
    gc_manifest *manifest;
    gc_choices *choices;
    double *weight;
    int64_t capacity;
} listing;

static gpuconv_status add(listing *l, const char *path, double weight, gpuconv_error *error) {
    gc_choices *c = l->choices;
    if (c->count == l->capacity) {
        int64_t capacity = gc_max(64, 2 * l->capacity);
        char **paths = realloc((void *)c->path, (size_t)capacity * sizeof *paths);
        double *weights = paths ? realloc(l->weight, (size_t)capacity * sizeof *weights) : NULL;
        c->path = paths ? paths : c->path;
        l->weight = weights ? weights : l->weight;
        if (!weights)
            return gc_fail_memory(error, "file names");
        l->capacity = capacity;
    }
    l->weight[c->count] = weight;
    c->path[c->count] = strdup(path);
    return c->path[c->count] ? (c->count++, GPUCONV_OK) : gc_fail_memory(error, "file names");
}

static bool ends_in(const char *path, const char *end) {
    size_t p = strlen(path), e = strlen(end);
    return p >= e && strcmp(path + p - e, end) == 0;
}

/* Decides whether a file is a list: by its name, or because it begins with the option of a Kaldi list. */
static bool is_list(const char *path) {
    char head[2] = "";
    if (ends_in(path, ".scp") || ends_in(path, ".jsonl") || ends_in(path, ".jsonl.gz"))
        return true;
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) /* a pipe can be read only once */
        return false;
    FILE *f = fopen(path, "re");
    bool is = f && fread(head, 1, 2, f) == 2 && head[0] == '-' && head[1] == '-';
    if (f)
        (void)fclose(f); /* opened for reading */
    return is;
}

/* Adds the files of one line of a list. */
static gpuconv_status add_line(listing *l, const char *list, int64_t number, char *line, gpuconv_error *error) {
    char *path = NULL;
    const char *why = NULL;
    double weight = 1;
    if (ends_in(list, ".jsonl") || ends_in(list, ".jsonl.gz"))
        path = gc_lhotse_path(line, &why);
    else
        path = gc_kaldi_path(line, &weight, &why);
    if (!path)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: line %lld: %s", list, (long long)number,
                       why ? why : "out of memory");
    gpuconv_status status = add(l, path, weight, error);
    free(path);
    return status;
}

static gpuconv_status add_list(listing *l, const char *path, gpuconv_error *error) {
    gc_text_file *file;
    char *line;
    gpuconv_status status = gc_text_file_open(path, &file, error);
    if (!status && !gc_manifest_add_list(l->manifest, path))
        status = gc_fail_memory(error, path);
    while (!status && !(status = gc_lines_next(gc_text_file_lines(file), &line, error)) && line)
        if (line[strspn(line, " \t\r")])
            status = add_line(l, path, gc_text_file_lines(file)->number, line, error);
    gc_text_file_close(file);
    return status;
}

static void choices_free(gc_choices *c) {
    for (int64_t i = 0; i < c->count; i++)
        free(c->path[i]);
    free((void *)c->path);
    free(c->sum);
    *c = (gc_choices){NULL, NULL, 0};
}

/* Lists what patterns (NULL-terminated) name: audio files, or lists of them. A list is a Kaldi RIR or noise list, whose
 * lines begin with --rir-id or --noise-id and may have --probability; a wav.scp (.scp); or a lhotse RecordingSet
 * (.jsonl, .jsonl.gz), and is added to the lists of the manifest. Fails with FILE, FORMAT, ARGUMENT or MEMORY. */
static gpuconv_status choices_find(const char *const *patterns, gc_manifest *m, gc_choices *c, gpuconv_error *error) {
    listing l = {.manifest = m, .choices = c};
    gpuconv_status status = GPUCONV_OK;
    bool weighted = false;
    *c = (gc_choices){NULL, NULL, 0};
    for (; *patterns && !status; patterns++) {
        gc_matches found = {0};
        status = gc_match_files(*patterns, &found, error);
        for (int64_t i = 0; i < found.count && !status; i++)
            status = found.count == 1 && is_list(found.match[i].path) ? add_list(&l, found.match[i].path, error)
                                                                      : add(&l, found.match[i].path, 1, error);
        gc_matches_free(&found);
    }
    if (!status && c->count == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: names no files", patterns[-1]);
    double sum = 0;
    for (int64_t i = 0; i < c->count; i++)
        weighted |= l.weight[i] != l.weight[0];
    for (int64_t i = 0; i < c->count; i++)
        l.weight[i] = sum += l.weight[i];
    if (!status && weighted && !(sum > 0))
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the probabilities add up to 0", patterns[-1]);
    if (weighted && !status)
        c->sum = l.weight;
    else
        free(l.weight);
    if (status)
        choices_free(c);
    return status;
}

/* Draws an index by the weights. */
static int64_t choices_draw(const gc_choices *c, uint64_t *state) {
    const uint64_t drawn = gc_random_bits(state);
    if (!c->sum)
        return (int64_t)(drawn % (uint64_t)c->count);
    const double at = gc_unit_of_bits(drawn) * c->sum[c->count - 1];
    int64_t low = 0, high = c->count - 1;
    while (low < high) { /* the first whose sum is above */
        int64_t middle = (low + high) / 2;
        if (c->sum[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* ---- Entries ---- */

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
    gpuconv_status status = GPUCONV_OK;
    if (options->rooms) {
        b->rooms = gc_alloc(2, sizeof *b->rooms);
        if (!b->rooms)
            return gc_fail_memory(error, "the manifest");
        b->room = b->rooms + 1;
        gpuconv_error inner = {0};
        status = gc_room_set_parse(options->rooms, b->rooms, &inner);
        if (status)
            (void)gc_fail(error, status, "--rooms: %s", inner.message);
        b->rooms->seed = options->seed ^ UINT64_C(0x726f6f6d732d6f66);
        b->rooms->count = 1;
    }
    if (!status)
        status = options->responses ? choices_find(options->responses, m, &b->responses, error) : GPUCONV_OK;
    if (!status && options->noises)
        status = choices_find(options->noises, m, &b->noises, error);
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

static bool is_given(const gc_builder *b, const gc_entry_texts *row, int column) {
    const gc_entry_texts *defaults = b->options.defaults;
    return (row->text[column] && *row->text[column]) || (defaults && defaults->text[column] && *defaults->text[column]);
}

/* Decides whether values of the row are drawn from its seed: a range such as "5:20", or "random". */
static bool is_drawn(const gc_builder *b, const gc_entry_texts *row) {
    static const int columns[] = {GC_COLUMN_GAIN, GC_COLUMN_WET,    GC_COLUMN_DRY,
                                  GC_COLUMN_SNR,  GC_COLUMN_OFFSET, GC_COLUMN_NOISE_OFFSET};
    const gc_entry_texts *defaults = b->options.defaults;
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
static bool pick_rest(gc_builder *b, gc_entry_texts *row) {
    char number[32];
    if (b->noises.count > 0 && !is_given(b, row, GC_COLUMN_NOISE)) {
        const char *path = b->noises.path[choices_draw(&b->noises, &b->noise_state)];
        if (!gc_texts_set(row, GC_COLUMN_NOISE, path))
            return false;
        if (!is_given(b, row, GC_COLUMN_NOISE_OFFSET) && !gc_texts_set(row, GC_COLUMN_NOISE_OFFSET, "random"))
            return false;
    }
    if (!b->options.responses && !b->options.noises && !b->options.defaults && !b->rooms)
        return true; /* a manifest as it stands: its seeds are its own */
    if (is_drawn(b, row) && !is_given(b, row, GC_COLUMN_SEED)) {
        (void)snprintf(number, sizeof number, "%llu", (unsigned long long)(gc_random_bits(&b->seed_state) >> 32));
        return gc_texts_set(row, GC_COLUMN_SEED, number);
    }
    return true;
}

/* Returns "OWN-NAME" with the name of a response, to be freed. NULL: out of memory. */
static char *add_name(const char *own, int own_length, const char *response) {
    const char *name;
    int length;
    gc_path_stem(response, &name, &length);
    return gc_text_of("%.*s-%.*s", own_length, own, length, name);
}

/* Appends the name of a response to the stem of the row's output. @return false: out of memory */
static bool add_to_stem(gc_entry_texts *row, const char *own, const char *response) {
    int length = own ? (int)strlen(own) : 0;
    if (!own)
        gc_path_stem(row->text[GC_COLUMN_INPUT] ? row->text[GC_COLUMN_INPUT] : "", &own, &length);
    char *stem = add_name(own, length, response);
    if (stem)
        row->stem = stem;
    return stem != NULL;
}

/* Draws a room for a row without a response: one source for each input, and one for its noise. */
static bool pick_room(gc_builder *b, gc_entry_texts *row) {
    if (!b->rooms || is_given(b, row, GC_COLUMN_RESPONSE) || is_given(b, row, GC_COLUMN_RESPONSES))
        return true;
    const int inputs = (int)gc_max(gc_parts_count(row->text[GC_COLUMN_INPUTS]), 1);
    const bool noise = is_given(b, row, GC_COLUMN_NOISE) && !is_given(b, row, GC_COLUMN_NOISE_RESPONSE);
    gpuconv_error error = {0};
    if (inputs >= GC_ROOM_SOURCES)
        return true; /* refused later */
    if (gc_room_set_draw(b->rooms, b->rows, inputs + noise, b->room, &error))
        return gc_texts_refuse(row, error.message, NULL);
    bool good = true;
    for (int i = 0; i < inputs + noise && good; i++) {
        char *text = gc_room_set_text(b->room, i);
        good = text && gc_texts_append(row,
                                       i == inputs  ? GC_COLUMN_NOISE_RESPONSE
                                       : inputs > 1 ? GC_COLUMN_RESPONSES
                                                    : GC_COLUMN_RESPONSE,
                                       text);
        free(text);
    }
    return good;
}

static bool add_entry(gc_builder *b, gc_entry_texts *row, int64_t line) {
    gc_entry *e = pick_rest(b, row) && pick_room(b, row) ? append(b, line) : NULL;
    const bool good = e && gc_entry_fill(e, row, b->options.defaults, &b->manifest->recipes);
    b->refused += good && e->refusal;
    return good;
}

/* Adds one entry for each response, with its name in the identifier and the output. An output name of the row gives its
 * stem. @return false: out of memory */
static bool add_all(gc_builder *b, gc_entry_texts *row, int64_t line) {
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
               gc_texts_set(row, GC_COLUMN_RESPONSE, path) && add_entry(b, row, line);
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

gpuconv_status gc_builder_add(gc_builder *b, gc_entry_texts *row, int64_t line, gpuconv_error *error) {
    bool good = true;
    bool open =
        b->responses.count > 0 && !is_given(b, row, GC_COLUMN_RESPONSE) && !is_given(b, row, GC_COLUMN_RESPONSES);
    if (open && b->options.pick == GC_PICK_ALL) {
        good = add_all(b, row, line);
    } else {
        int64_t chosen = !open                              ? 0
                         : b->options.pick == GC_PICK_CYCLE ? b->rows % b->responses.count
                                                            : choices_draw(&b->responses, &b->state);
        good = (!open || gc_texts_set(row, GC_COLUMN_RESPONSE, b->responses.path[chosen])) && add_entry(b, row, line);
    }
    b->rows++;
    gc_texts_clear(row);
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
    choices_free(&b->responses);
    choices_free(&b->noises);
    free(b->rooms);
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
