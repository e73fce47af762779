/*
 * Sparse matrices of responses from text: our own lines, and the subset of jconvolver's configuration that says what is
 * convolved with what. Both become a list of entries, each a stretch of a channel of a file laid onto a route; entries
 * of one route add up.
 */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
#include "object.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { ENTRIES_MOST = 1 << 16, FILES_MOST = 4096, LINE = 4096, FOLDER_MOST = 4096, WORDS = 12 };

/* A delay costs memory on its route, so that a short text could ask for any amount of it: at most 1.5 hours at 48 kHz.
 */
enum { DELAY_MOST = 1 << 28 };

typedef struct entry {
    int input, output;            /* 0.. */
    int file;                     /* which of the files; -1: a dirac */
    int channel, line;            /* 0..; of the text */
    double factor;                /* of its level */
    double delay, offset, length; /* frames, or with `in_seconds` seconds; length 0: to the end */
    bool in_seconds;
} entry;

typedef struct source {
    char *path;
    gpuconv_ir *ir;
} source;

typedef struct matrix {
    const char *path;
    char *folder; /* files are relative to it, with a slash at its end; "": the current one */
    entry *item;
    int64_t items, room;
    source file[FILES_MOST];
    int files, inputs, outputs, line;
    int64_t most; /* frames of a route; 0: any number */
    double rate;  /* of the files; 0: not known yet */
    const volatile int *cancel;
} matrix;

static gpuconv_status wrong(const matrix *m, gpuconv_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static gpuconv_status wrong(const matrix *m, gpuconv_error *error, const char *format, ...) {
    char text[384];
    va_list args;
    va_start(args, format);
    gc_visible_print(text, sizeof text, format, args);
    va_end(args);
    return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s, line %d: %s", m->path, m->line, text);
}

/* Cuts a line into words in place; "..." is one word; # begins a comment. -1: too many, or a quote without its end. */
static int split(char *line, char **word) {
    int count = 0;
    for (char *at = line;;) {
        at += strspn(at, " \t\r\n");
        if (!*at || *at == '#')
            return count;
        if (count == WORDS)
            return -1;
        if (*at == '"') {
            word[count++] = ++at;
            at = strchr(at, '"');
            if (!at)
                return -1;
        } else {
            word[count++] = at;
            at += strcspn(at, " \t\r\n");
            if (!*at)
                return count;
        }
        *at++ = '\0';
    }
}

/* 1..1024, given back from 0 on. */
static bool channel_of(const char *word, int *channel) {
    double value;
    if (!gc_number_parse(word, &value) || !(value >= 1 && value <= GC_MAX_CHANNELS) || value != floor(value))
        return false;
    *channel = (int)value - 1;
    return true;
}

/* Whether what stands after the name of a route are numbers 0.., no larger than a file of any sense has. */
static bool time_of(const char *word, double *value) {
    return gc_number_parse(word, value) && *value >= 0 && *value <= 1e12;
}

static gpuconv_status add(matrix *m, const entry *e, gpuconv_error *error) {
    if (m->items == ENTRIES_MOST)
        return wrong(m, error, "more than %d routes", ENTRIES_MOST);
    if (m->items == m->room) {
        int64_t room = m->room ? 2 * m->room : 64;
        entry *larger = gc_calloc(room, sizeof *larger);
        if (!larger)
            return gc_fail_memory(error, m->path);
        if (m->items)
            memcpy(larger, m->item, (size_t)m->items * sizeof *larger);
        free(m->item);
        m->item = larger;
        m->room = room;
    }
    m->item[m->items] = *e;
    m->item[m->items++].line = m->line;
    return GPUCONV_OK;
}

static char *join(const char *folder, const char *name, const char *end) {
    size_t room = strlen(folder) + strlen(name) + strlen(end) + 1;
    char *path = gc_calloc((int64_t)room, 1);
    if (path)
        (void)snprintf(path, room, "%s%s%s", *name == '/' ? "" : folder, name, end);
    return path;
}

/* The number of the file of that name, read at its first mention. */
static gpuconv_status find_file(matrix *m, const char *name, int *number_of_it, gpuconv_error *error) {
    char *path = join(m->folder, name, "");
    if (!path)
        return gc_fail_memory(error, m->path);
    for (int f = 0; f < m->files; f++)
        if (strcmp(m->file[f].path, path) == 0) {
            free(path);
            *number_of_it = f;
            return GPUCONV_OK;
        }
    gpuconv_error inner = {0};
    gpuconv_ir *ir = NULL;
    gpuconv_status status = m->files < FILES_MOST ? gc_ir_load(path, m->cancel, &ir, &inner) : GPUCONV_ERROR_FORMAT;
    if (status) {
        free(path);
        if (status == GPUCONV_ERROR_MEMORY)
            return gc_fail_memory(error, m->path);
        gc_fail(error, status, "%s, line %d: %s", m->path, m->line,
                *inner.message ? inner.message : "more than 4096 files");
        return status;
    }
    if (m->rate > 0 && gpuconv_ir_rate(ir) != m->rate) {
        gpuconv_ir *other;
        status = gpuconv_ir_resample(ir, m->rate, &other, error);
        gpuconv_ir_free(ir);
        ir = other;
    }
    if (status) {
        free(path);
        return status;
    }
    m->rate = gpuconv_ir_rate(ir);
    m->file[m->files] = (source){path, ir};
    *number_of_it = m->files++;
    return GPUCONV_OK;
}

/* INPUT OUTPUT FILE [CHANNEL [GAIN [DELAY [OFFSET [LENGTH]]]]] */
static gpuconv_status read_line(matrix *m, char **word, int words, gpuconv_error *error) {
    entry e = {.file = -1, .factor = 1, .in_seconds = true};
    double gain = 0;
    if (words < 3 || words > 8)
        return wrong(m, error,
                     "a route has an input, an output, a file, and at most a channel, gain, delay, offset and "
                     "length behind them");
    if (!channel_of(word[0], &e.input) || !channel_of(word[1], &e.output))
        return wrong(m, error, "inputs and outputs are numbers from 1 to %d", GC_MAX_CHANNELS);
    if (words > 3 && !channel_of(word[3], &e.channel))
        return wrong(m, error, "'%s' is no channel: they are numbered from 1", word[3]);
    if (words > 4 && !(gc_number_parse(word[4], &gain) && gain >= -200 && gain <= 200))
        return wrong(m, error, "'%s' is no gain in decibels within -200 and 200", word[4]);
    double *const times[] = {&e.delay, &e.offset, &e.length};
    for (int i = 5; i < words; i++)
        if (!time_of(word[i], times[i - 5]))
            return wrong(m, error, "'%s' is no time in seconds", word[i]);
    e.factor = pow(10, gain / 20);
    m->inputs = e.input >= m->inputs ? e.input + 1 : m->inputs;
    m->outputs = e.output >= m->outputs ? e.output + 1 : m->outputs;
    gpuconv_status status = strcmp(word[2], "dirac") == 0 ? GPUCONV_OK : find_file(m, word[2], &e.file, error);
    return status ? status : add(m, &e, error);
}

/* ---- jconvolver -------------------------------------------------------------------------------------------------- */

static gpuconv_status route_of(const matrix *m, char **word, entry *e, gpuconv_error *error) {
    if (!m->inputs)
        return wrong(m, error, "/convolver/new must come first");
    if (!channel_of(word[0], &e->input) || !channel_of(word[1], &e->output) || e->input >= m->inputs ||
        e->output >= m->outputs)
        return wrong(m, error, "%s to %s is no route of %d inputs and %d outputs", word[0], word[1], m->inputs,
                     m->outputs);
    return GPUCONV_OK;
}

/* /convolver/new INPUTS OUTPUTS PARTITION LENGTH [DENSITY] */
static gpuconv_status conf_new(matrix *m, char **word, int words, gpuconv_error *error) {
    int inputs, outputs;
    double partition, most;
    if (words < 4 || words > 5 || !channel_of(word[0], &inputs) || !channel_of(word[1], &outputs) ||
        !gc_number_parse(word[2], &partition) || !gc_number_parse(word[3], &most) || !(most >= 1 && most <= 1e10))
        return wrong(m, error, "/convolver/new wants inputs, outputs, a partition and the longest response's frames");
    if (m->inputs)
        return wrong(m, error, "/convolver/new comes once");
    m->inputs = inputs + 1;
    m->outputs = outputs + 1;
    m->most = (int64_t)most;
    return GPUCONV_OK;
}

/* /impulse/read INPUT OUTPUT GAIN DELAY OFFSET LENGTH CHANNEL FILE */
static gpuconv_status conf_read(matrix *m, char **word, int words, gpuconv_error *error) {
    entry e = {.file = -1};
    if (words != 8 || !gc_number_parse(word[2], &e.factor) || !time_of(word[3], &e.delay) ||
        !time_of(word[4], &e.offset) || !time_of(word[5], &e.length) || !channel_of(word[6], &e.channel))
        return wrong(m, error, "/impulse/read wants input, output, gain, delay, offset, length, channel and file");
    gpuconv_status status = route_of(m, word, &e, error);
    if (!status)
        status = find_file(m, word[7], &e.file, error);
    return status ? status : add(m, &e, error);
}

/* /impulse/dirac INPUT OUTPUT GAIN DELAY */
static gpuconv_status conf_dirac(matrix *m, char **word, int words, gpuconv_error *error) {
    entry e = {.file = -1};
    if (words != 4 || !gc_number_parse(word[2], &e.factor) || !time_of(word[3], &e.delay))
        return wrong(m, error, "/impulse/dirac wants input, output, gain and delay");
    gpuconv_status status = route_of(m, word, &e, error);
    return status ? status : add(m, &e, error);
}

/* /impulse/copy INPUT OUTPUT FROM-INPUT FROM-OUTPUT */
static gpuconv_status conf_copy(matrix *m, char **word, int words, gpuconv_error *error) {
    entry to, from;
    if (words != 4)
        return wrong(m, error, "/impulse/copy wants input and output, and input and output of the route to copy");
    gpuconv_status status = route_of(m, word, &to, error);
    if (!status)
        status = route_of(m, word + 2, &from, error);
    bool found = false;
    for (int64_t i = 0, n = m->items; i < n && !status; i++)
        if (m->item[i].input == from.input && m->item[i].output == from.output) {
            entry copy = m->item[i];
            copy.input = to.input;
            copy.output = to.output;
            found = true;
            status = add(m, &copy, error);
        }
    if (!status && !found)
        status = wrong(m, error, "nothing leads from %s to %s that could be copied", word[2], word[3]);
    return status;
}

static gpuconv_status conf_folder(matrix *m, char **word, int words, gpuconv_error *error) {
    if (words != 1)
        return wrong(m, error, "/cd wants a folder");
    if ((*word[0] == '/' ? 0 : strlen(m->folder)) + strlen(word[0]) + 2 > FOLDER_MOST)
        return wrong(m, error, "/cd makes a folder's path longer than %d bytes; an absolute path begins anew",
                     FOLDER_MOST - 1);
    char *folder = join(m->folder, word[0], "/");
    if (!folder)
        return gc_fail_memory(error, m->path);
    free(m->folder);
    m->folder = folder;
    return GPUCONV_OK;
}

static gpuconv_status conf_line(matrix *m, char **word, int words, gpuconv_error *error) {
    static const struct {
        const char *name;
        gpuconv_status (*read)(matrix *m, char **word, int words, gpuconv_error *error);
    } known[] = {{"/convolver/new", conf_new},
                 {"/impulse/read", conf_read},
                 {"/impulse/dirac", conf_dirac},
                 {"/impulse/copy", conf_copy},
                 {"/cd", conf_folder}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word[0], known[i].name) == 0)
            return known[i].read(m, word + 1, words - 1, error);
    if (strcmp(word[0], "/input/name") == 0 || strcmp(word[0], "/output/name") == 0)
        return GPUCONV_OK; /* of JACK's ports: there are none here */
    return wrong(m, error,
                 "'%s' is not known; /cd, /convolver/new, /impulse/read, /impulse/dirac and /impulse/copy are",
                 word[0]);
}

/* ---- From entries to a response ---------------------------------------------------------------------------------- */

/* Where an entry's taps lie on its route, and which of its file's they are. */
typedef struct place {
    int64_t at, from, frames; /* at may be negative: before time zero */
    int64_t cut;              /* frames that lie beyond the declared length and are left out */
} place;

static gpuconv_status place_of(matrix *m, const entry *e, place *p, gpuconv_error *error) {
    double unit = e->in_seconds ? m->rate : 1;
    m->line = e->line; /* for messages */
    if (e->offset * unit > 0x1p40 || e->length * unit > 0x1p40)
        return wrong(m, error, "such a time is longer than any response");
    if (e->delay * unit > DELAY_MOST)
        return wrong(m, error, "a delay of %.0f frames is more than %d", e->delay * unit, DELAY_MOST);
    *p = (place){llrint(e->delay * unit), llrint(e->offset * unit), llrint(e->length * unit), 0};
    if (m->most && p->at >= m->most)
        return wrong(
            m, error,
            "a delay of %lld frames lies beyond the %lld frames of /convolver/new; declare more of them or take "
            "the line out",
            (long long)p->at, (long long)m->most);
    if (e->file < 0) {
        p->frames = 1;
        p->from = 0;
        return GPUCONV_OK;
    }
    const gpuconv_ir *ir = m->file[e->file].ir;
    if (e->channel >= ir->planes)
        return wrong(m, error, "%s has %d channel%s, not %d", m->file[e->file].path, ir->planes,
                     ir->planes == 1 ? "" : "s", e->channel + 1);
    if (p->from >= ir->frames)
        return wrong(m, error, "%s has %lld frames and none from %lld on", m->file[e->file].path, (long long)ir->frames,
                     (long long)p->from);
    int64_t left = ir->frames - p->from;
    p->frames = p->frames ? gc_min(p->frames, left) : left;
    p->at -= ir->lead;
    if (m->most && p->frames > m->most - p->at) {
        p->cut = p->frames - (m->most - p->at);
        p->frames -= p->cut;
    }
    return GPUCONV_OK;
}

static int by_route(const void *a, const void *b) {
    const entry *x = a, *y = b;
    return x->output != y->output ? x->output - y->output
           : x->input != y->input ? x->input - y->input
                                  : x->line - y->line;
}

static gpuconv_status build(matrix *m, gpuconv_ir **ir, gpuconv_error *error) {
    int64_t lead = 0, end = 1, cut = 0;
    int routes = 0;
    gpuconv_status status = GPUCONV_OK;
    if (m->items == 0)
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: holds no route", m->path);
    qsort(m->item, (size_t)m->items, sizeof *m->item, by_route);
    for (int64_t i = 0; i < m->items && !status; i++) {
        const entry *e = &m->item[i];
        place p = {0};
        status = place_of(m, e, &p, error);
        lead = gc_max(lead, -p.at);
        end = gc_max(end, p.at + p.frames);
        cut = gc_max(cut, p.cut);
        routes += i == 0 || e->input != e[-1].input || e->output != e[-1].output;
    }
    if (status)
        return status;
    gpuconv_ir *made = gc_ir_blank(m->inputs, m->outputs, routes, routes, lead + end, m->rate);
    if (!made)
        return gc_fail_memory(error, m->path);
    made->lead = lead;
    made->routed = true;
    bool finite = true;
    for (int64_t i = 0, r = -1; i < m->items; i++) {
        const entry *e = &m->item[i];
        place p = {0};
        r += i == 0 || e->input != e[-1].input || e->output != e[-1].output;
        made->route[r] = (gc_route){e->input, e->output, (int)r};
        float *to = made->taps + r * made->frames + lead;
        const float one = 1, *from = e->file < 0 ? &one : gc_ir_plane(m->file[e->file].ir, e->channel);
        (void)place_of(m, e, &p, NULL);
        for (int64_t k = 0; k < p.frames; k++) {
            to[p.at + k] += (float)(e->factor * (double)from[p.from + k]);
            finite &= isfinite(to[p.at + k]) != 0;
        }
    }
    if (!finite) {
        gpuconv_ir_free(made);
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its gains take a response beyond what floats hold", m->path);
    }
    char left_out[96] = "";
    if (cut)
        (void)snprintf(left_out, sizeof left_out, ", up to %lld frames beyond the %lld declared left out",
                       (long long)cut, (long long)m->most);
    return gc_ir_finish(made, ir, error, "%d inputs x %d outputs, %d routes%s", m->inputs, m->outputs, routes,
                        left_out);
}

/* Reads a line without its end. *more: whether there was one. */
static gpuconv_status next_line(matrix *m, FILE *f, char line[LINE], bool *more, gpuconv_error *error) {
    size_t length = 0;
    int c;
    *more = false;
    while ((c = getc_unlocked(f)) != EOF && c != '\n') {
        if (!*more)
            m->line++;
        *more = true;
        if (c == '\0')
            return wrong(m, error, "a zero byte: not plain text; save it as UTF-8");
        if (length == LINE - 1)
            return wrong(m, error, "longer than %d bytes", LINE - 1);
        line[length++] = (char)c;
    }
    if (c == '\n' && !*more)
        m->line++;
    *more |= c == '\n';
    line[length] = '\0';
    return ferror(f) ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", m->path, strerror(errno)) : GPUCONV_OK;
}

static gpuconv_status read_text(matrix *m, FILE *f, bool conf, gpuconv_error *error) {
    static const char mark[] = "\xEF\xBB\xBF"; /* of UTF-8, which some editors put first */
    char line[LINE], *word[WORDS];
    bool more;
    gpuconv_status status = next_line(m, f, line, &more, error);
    while (!status && more) {
        bool marked = m->line == 1 && strncmp(line, mark, sizeof mark - 1) == 0;
        int words = split(marked ? line + sizeof mark - 1 : line, word);
        if (words < 0)
            return wrong(m, error, "more words than any line has, or a quotation mark without its other");
        if (words > 0)
            status = conf ? conf_line(m, word, words, error) : read_line(m, word, words, error);
        if (!status)
            status = next_line(m, f, line, &more, error);
    }
    return status;
}

gpuconv_status gpuconv_ir_load_matrix(const char *path, double rate, gpuconv_ir **ir, gpuconv_error *error) {
    return gc_ir_load_matrix(path, rate, NULL, ir, error);
}

gpuconv_status gc_ir_load_matrix(const char *path, double rate, const volatile int *cancel, gpuconv_ir **ir,
                                 gpuconv_error *error) {
    *ir = NULL;
    if (!gc_ir_rate_fits(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    struct stat st;
    FILE *f = fopen(path, "re");
    if (!f || fstat(fileno(f), &st) != 0 || S_ISDIR(st.st_mode)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, f ? "is a directory" : strerror(errno));
        if (f)
            (void)fclose(f);
        return GPUCONV_ERROR_FILE;
    }
    matrix *m = gc_calloc(1, sizeof *m);
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    if (m)
        m->folder = strndup(path, folder);
    gpuconv_status status = m && m->folder ? GPUCONV_OK : gc_fail_memory(error, path);
    if (!status) {
        m->path = path;
        m->cancel = cancel;
        status = read_text(m, f, dot && strcasecmp(dot, ".conf") == 0, error);
    }
    (void)fclose(f); /* read only: nothing can be lost */
    if (!status) {
        m->rate = m->rate > 0 ? m->rate : rate;
        status = build(m, ir, error);
    }
    for (int i = 0; m && i < m->files; i++) {
        free(m->file[i].path);
        gpuconv_ir_free(m->file[i].ir);
    }
    if (m) {
        free(m->folder);
        free(m->item);
    }
    free(m);
    return status;
}
