/* Reading, making and writing manifests. */
#include "manifest.h"

#include "duplicates.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/core/visible.h"
#include "patterns.h"
#include "targets.h"
#include "text.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT, RESPONSE, OUTPUT, GAIN, WET, DRY, OFFSET, LENGTH, SEED, COLUMNS };

static const char *const columns[COLUMNS] = {"input", "response", "output", "gain", "wet",
                                             "dry",   "offset",   "length", "seed"};

uint64_t gc_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void gc_manifest_free(gc_manifest *m) {
    for (int64_t i = 0; i < m->entries; i++) {
        free(m->entry[i].input);
        free(m->entry[i].response);
        free(m->entry[i].output);
        free(m->entry[i].wrong);
    }
    free(m->entry);
    *m = (gc_manifest){0};
}

/* One more entry, blank; NULL: no memory. */
static gc_entry *add(gc_manifest *m, int64_t *room, int64_t line) {
    if (m->entries == *room) {
        int64_t more = gc_max(64, 2 * *room);
        gc_entry *larger = gc_calloc(more, sizeof *larger);
        if (!larger)
            return NULL;
        if (m->entries)
            memcpy(larger, m->entry, (size_t)m->entries * sizeof *larger);
        free(m->entry);
        m->entry = larger;
        *room = more;
    }
    gc_entry *e = &m->entry[m->entries++];
    *e = (gc_entry){.line = line, .dry = -HUGE_VAL, .length = -1};
    return e;
}

bool gc_entry_refuse(gc_entry *e, const char *what, const char *value) {
    char text[400], shown[201];
    if (e->wrong)
        return true;
    gc_visible(shown, sizeof shown, value ? value : "");
    (void)snprintf(text, sizeof text, "%.190s%s%s%s", what, value ? " '" : "", shown, value ? "'" : "");
    e->wrong = strdup(text);
    return e->wrong != NULL;
}

static bool take_number(const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && isfinite(*value);
}

/* One field of an entry as text. False: no memory. */
static bool set(gc_entry *e, int column, const char *text) {
    double value = 0;
    if (!*text)
        return true;
    if (column <= OUTPUT) {
        char **to = column == INPUT ? &e->input : column == RESPONSE ? &e->response : &e->output;
        return (*to = strdup(text)) != NULL;
    }
    if (column == SEED) {
        char *end;
        errno = 0;
        e->seed = strtoull(text, &end, 10);
        return *end || errno || *text == '-' ? gc_entry_refuse(e, "a seed is a number from 0, not", text) : true;
    }
    if (column == OFFSET && strcmp(text, "random") == 0) {
        e->somewhere = true;
        return true;
    }
    if (column == DRY && strcmp(text, "-inf") == 0)
        return true;
    if (!take_number(text, &value))
        return gc_entry_refuse(e, "no number:", text);
    bool level = column == GAIN || column == WET || column == DRY;
    if (level && !gc_is_gain(value))
        return gc_entry_refuse(e, "a level lies within -200 and 200 dB, not", text);
    if (!level && !(value >= (column == LENGTH ? 1e-9 : 0) && value <= 1e9))
        return gc_entry_refuse(e, column == LENGTH ? "a length is positive, not" : "an offset is 0 or more, not", text);
    *(column == GAIN     ? &e->gain
      : column == WET    ? &e->wet
      : column == DRY    ? &e->dry
      : column == OFFSET ? &e->offset
                         : &e->length) = value;
    return true;
}

/* Whether a path stays below the folder it is taken from. */
static bool stays_inside(const char *path) {
    if (*path == '/')
        return false;
    for (const char *part = path; part; part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
        size_t length = strcspn(part, "/");
        if (length == 2 && part[0] == '.' && part[1] == '.')
            return false;
    }
    size_t length = strlen(path);
    bool folder = length > 0 && (path[length - 1] == '/' || strcmp(path, ".") == 0 ||
                                 (length > 1 && strcmp(path + length - 2, "/.") == 0));
    return length > 0 && !folder;
}

/* The name without folders and extension. */
static void stem_of(const char *path, const char **from, int *length) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    *from = name;
    *length = (int)(dot && dot > name ? (size_t)(dot - name) : strlen(name));
}

/* What can be told of an entry by itself. False: no memory. */
static bool complete(gc_entry *e) {
    if (!e->input)
        return gc_entry_refuse(e, "no input is named", NULL);
    if (!e->response)
        return gc_entry_refuse(e, "no response is named", NULL);
    if (!e->output) {
        const char *stem;
        int length;
        stem_of(e->input, &stem, &length);
        size_t room = (size_t)length + sizeof ".wav";
        e->output = gc_calloc((int64_t)room, 1);
        if (!e->output)
            return false;
        (void)snprintf(e->output, room, "%.*s.wav", length, stem);
    }
    if (!stays_inside(e->output))
        return gc_entry_refuse(e, "an output lies below the batch's folder, unlike", e->output);
    gc_path_normalise(e->output);
    if (e->somewhere && e->length < 0)
        return gc_entry_refuse(e, "a random offset wants a length", NULL);
    return true;
}

/* ---- CSV (RFC 4180) ---------------------------------------------------------------------------------------------- */

/* The next field at *at, unquoted in place; false at the end of the text. *last: it ends a line. *lines counts them. */
static char *field(char **at, bool *last, int64_t *lines, bool *open) {
    char *from = *at, *to = from, *start = from;
    *last = *open = false;
    if (*from == '"') {
        for (from++; *from && !(*from == '"' && from[1] != '"'); from++) {
            *lines += *from == '\n';
            from += *from == '"';
            *to++ = *from;
        }
        *open = *from == '\0';
        from += *from == '"';
        while (*from && *from != ',' && *from != '\n' && *from != '\r') /* what follows the quote is taken as it is */
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

static gpuconv_status read_csv(const char *path, char *text, gc_manifest *m, gpuconv_error *error) {
    enum { MOST = 64 };
    int meaning[MOST], count = 0;
    bool last = false, open, named[COLUMNS] = {false};
    int64_t lines = 1, room = 0;
    char *at = text;
    if ((unsigned char)text[0] == 0xef && (unsigned char)text[1] == 0xbb && (unsigned char)text[2] == 0xbf)
        at += 3; /* what some spreadsheets put first */
    while (!last) {
        char *name = field(&at, &last, &lines, &open);
        int c = 0;
        while (c < COLUMNS && strcmp(name, columns[c]) != 0)
            c++;
        if (c == COLUMNS || named[c] || count == MOST)
            return gc_fail(error, GPUCONV_ERROR_FORMAT,
                           "%s: '%s' is no column, or stands twice; they are input, response, output, gain, wet, "
                           "dry, offset, length, seed",
                           path, name);
        named[c] = true;
        meaning[count++] = c;
    }
    if (!named[INPUT] || !named[RESPONSE])
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: the first line must name the columns input and response",
                       path);
    while (*at) {
        if (*at == '\n' || *at == '\r') { /* an empty line */
            lines += *at == '\n';
            at++;
            continue;
        }
        gc_entry *e = add(m, &room, lines);
        bool good = e != NULL;
        int c = 0;
        for (last = false; good && !last; c++) {
            char *value = field(&at, &last, &lines, &open);
            if (open)
                good = gc_entry_refuse(e, "a quote is not closed", NULL);
            else if (c >= count)
                good = gc_entry_refuse(e, "more fields than columns", NULL);
            else
                good = set(e, meaning[c], value);
        }
        if (!good || !complete(e))
            return gc_fail_memory(error, path);
    }
    return GPUCONV_OK;
}

/* ---- JSON Lines -------------------------------------------------------------------------------------------------- */

static bool set_json(gc_entry *e, const char *name, const json_t *value) {
    char number[40];
    int c = 0;
    while (c < COLUMNS && strcmp(name, columns[c]) != 0)
        c++;
    if (c == COLUMNS)
        return gc_entry_refuse(e, "no such field:", name);
    if (json_is_string(value))
        return set(e, c, json_string_value(value));
    if (json_is_null(value))
        return true;
    if (!json_is_number(value) || c <= OUTPUT)
        return gc_entry_refuse(e, "neither text nor number:", name);
    if (json_is_integer(value))
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    else
        (void)snprintf(number, sizeof number, "%.17g", json_real_value(value));
    return set(e, c, number);
}

static gpuconv_status read_json(const char *path, char *text, gc_manifest *m, gpuconv_error *error) {
    int64_t line = 0, room = 0;
    for (char *at = text; *at;) {
        size_t length = strcspn(at, "\n");
        char *next = at + length + (at[length] == '\n');
        line++;
        at[length] = '\0';
        if (at[strspn(at, " \t\r")]) {
            gc_entry *e = add(m, &room, line);
            json_error_t why;
            json_t *object = json_loads(at, JSON_REJECT_DUPLICATES, &why);
            const char *name;
            json_t *value;
            bool good = e != NULL;
            if (good && !json_is_object(object))
                good = gc_entry_refuse(e, "no JSON object:", object ? "something else" : why.text);
            else if (good)
                json_object_foreach(object, name, value) good = good && set_json(e, name, value);
            json_decref(object);
            if (!good || !complete(e))
                return gc_fail_memory(error, path);
        }
        at = next;
    }
    return GPUCONV_OK;
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static char *read_text(const char *path, size_t *length, gpuconv_error *error) {
    FILE *f = fopen(path, "r");
    size_t room = 1 << 16, used = 0;
    char *text = f ? malloc(room) : NULL;
    if (!f) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno));
        return NULL;
    }
    while (text) {
        used += fread(text + used, 1, room - used - 1, f);
        if (used < room - 1)
            break;
        char *larger = realloc(text, room *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    if (!text) {
        gc_fail_memory(error, path);
    } else if (ferror(f)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be read", path);
        free(text);
        text = NULL;
    }
    *length = used;
    (void)fclose(f); /* only read */
    return text;
}

static bool ends_in(const char *path, const char *end) {
    size_t p = strlen(path), e = strlen(end);
    return p >= e && strcmp(path + p - e, end) == 0;
}

gpuconv_status gc_manifest_parse(const char *name, char *text, size_t length, gc_manifest *m, gpuconv_error *error) {
    *m = (gc_manifest){0};
    const char *nul = memchr(text, '\0', length);
    text[length] = '\0';
    if (nul) {
        long long line = 1;
        for (const char *at = text; at < nul; at++)
            line += *at == '\n';
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: line %lld holds a NUL; a manifest is text", name, line);
    }
    bool json = ends_in(name, ".jsonl") || ends_in(name, ".ndjson") || ends_in(name, ".json");
    gpuconv_status status = json ? read_json(name, text, m, error) : read_csv(name, text, m, error);
    if (!status && m->entries == 0)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: names nothing to do", name);
    if (!status)
        status = gc_find_duplicates(m, error);
    if (status)
        gc_manifest_free(m);
    return status;
}

gpuconv_status gc_manifest_read(const char *path, gc_manifest *m, gpuconv_error *error) {
    size_t length;
    *m = (gc_manifest){0};
    char *text = read_text(path, &length, error);
    if (!text)
        return error->status;
    gpuconv_status status = gc_manifest_parse(path, text, length, m, error);
    free(text);
    return status;
}

/* The output keeps the folders in which the pattern found the input. */
static gpuconv_status pair(gc_manifest *m, int64_t *room, const gc_match *input, const char *response, bool both,
                           gpuconv_error *error) {
    gc_entry *e = add(m, room, m->entries + 2); /* as it will stand behind the first line */
    if (!e || !set(e, INPUT, input->path) || !set(e, RESPONSE, response))
        return gc_fail_memory(error, "the manifest");
    const char *x, *h;
    int xs, hs;
    stem_of(input->path, &x, &xs);
    stem_of(response, &h, &hs);
    int folders = input->kept < x ? (int)(x - input->kept) : 0;
    size_t length = (size_t)folders + (size_t)xs + (size_t)hs + sizeof "-.wav";
    if (!(e->output = gc_calloc((int64_t)length, 1)))
        return gc_fail_memory(error, "the manifest");
    (void)snprintf(e->output, length, "%.*s%.*s%s%.*s.wav", folders, input->kept, xs, x, both ? "-" : "", both ? hs : 0,
                   h);
    return complete(e) ? GPUCONV_OK : gc_fail_memory(error, "the manifest");
}

gpuconv_status gc_manifest_pick(const char *inputs, const char *responses, gc_pick pick, uint64_t seed, gc_manifest *m,
                                gpuconv_error *error) {
    gc_matches x = {0}, h = {0};
    int64_t room = 0;
    *m = (gc_manifest){0};
    gpuconv_status status = gc_match_files(inputs, &x, error);
    if (!status)
        status = gc_match_files(responses, &h, error);
    for (int64_t i = 0; i < x.count && !status; i++) {
        int64_t first = pick == GC_PICK_RANDOM  ? (int64_t)(gc_random(&seed) % (uint64_t)h.count)
                        : pick == GC_PICK_CYCLE ? i % h.count
                                                : 0;
        int64_t count = pick == GC_PICK_ALL ? h.count : 1;
        for (int64_t k = 0; k < count && !status; k++)
            status = pair(m, &room, &x.match[i], h.match[first + k].path, pick == GC_PICK_ALL, error);
    }
    gc_matches_free(&x);
    gc_matches_free(&h);
    if (!status)
        status = gc_find_duplicates(m, error);
    if (status)
        gc_manifest_free(m);
    return status;
}

/* In quotes, doubled inside. */
static size_t quoted(const char *text, char *to) {
    size_t used = 0;
    to[used++] = '"';
    for (; *text; text++) {
        if (*text == '"')
            to[used++] = '"';
        to[used++] = *text;
    }
    to[used++] = '"';
    return used;
}

static bool write_entry(const gc_entry *e, FILE *f) {
    const char *texts[] = {e->input, e->response, e->output};
    char numbers[200], dry[32] = "-inf";
    size_t room = 16, used = 0;
    for (int i = 0; i < 3; i++)
        room += 2 * strlen(texts[i]) + 4;
    char *line = gc_calloc((int64_t)room, 1);
    if (!line)
        return false;
    for (int i = 0; i < 3; i++) {
        used += quoted(texts[i], line + used);
        line[used++] = ',';
    }
    if (e->dry > -HUGE_VAL)
        (void)snprintf(dry, sizeof dry, "%.17g", e->dry);
    int n = snprintf(numbers, sizeof numbers, "%.17g,%.17g,%s,", e->gain, e->wet, dry);
    if (e->somewhere)
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "random,");
    else
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%.17g,", e->offset);
    if (e->length >= 0)
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%.17g", e->length);
    n += snprintf(numbers + n, sizeof numbers - (size_t)n, ",%llu\n", (unsigned long long)e->seed);
    bool good = fwrite(line, 1, used, f) == used && fwrite(numbers, 1, (size_t)n, f) == (size_t)n;
    free(line);
    return good;
}

bool gc_manifest_print(const gc_manifest *m, FILE *f) {
    static const char head[] = "input,response,output,gain,wet,dry,offset,length,seed\n";
    bool good = fwrite(head, 1, sizeof head - 1, f) == sizeof head - 1;
    for (int64_t i = 0; i < m->entries && good; i++)
        if (m->entry[i].input && m->entry[i].response && m->entry[i].output)
            good = write_entry(&m->entry[i], f);
    return good;
}

gpuconv_status gc_manifest_write(const gc_manifest *m, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_make_folders(path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_CHOSEN, NULL, &file, error);
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
