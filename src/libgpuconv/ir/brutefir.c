/*
 * BruteFIR's configuration, as far as it describes plain convolution:
 *
 *      input "left", "right" { channels: 8/5,4; mute: false, true; };
 *      coeff "name" { filename: "file"; format: "text"; attenuation: 6.0; blocks: 4; };
 *      filter "name" { inputs: "left"/6.0; outputs: 0, 1//0.5; coeff: "name"; };
 *
 * A filter leads from each of its inputs to each of its outputs; filters to one output are summed. Attenuations are in
 * decibels, factors behind a second slash are multipliers. The channels of the devices are those of the matrix, and a
 * response ends at filter_length. Settings that do not change the samples, except their rounding, are noted as ignored,
 * and any other is refused.
 */
#include "matrix.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 64, KEY_ROOM = 32, MOST = 1024 /* coefficients, channels */ };

/* A word of the text: a name or number, a string in quotation marks, one of the signs {}:;,/ or the end. */
typedef struct config_word {
    char text[1024];
    bool quoted;
    char sign; /* 0: text */
    bool end;
} config_word;

typedef struct coefficient {
    char name[NAME_ROOM];
    char file[1024], format[32]; /* file "": not given */
    double factor;
    int64_t blocks; /* 0 or less: all */
    int index;      /* of the response in the matrix; -1: a single tap */
    int line;
} coefficient;

/* A channel that input or output names. */
typedef struct named_channel {
    char name[NAME_ROOM];
    int device; /* number of the channel of all devices, from 0 */
    bool muted;
} named_channel;

/* The inputs or the outputs. */
typedef struct side {
    named_channel *channel;
    int count, open; /* names, and channels of the devices */
} side;

typedef struct brutefir {
    gc_matrix *matrix;
    gc_lines *lines;
    const char *at;   /* what comes next of the current line; NULL: the first line was not read yet */
    config_word word; /* the current one */
    side input, output;
    coefficient *coeff;
    int coeffs;
    double rate;
    int64_t block, blocks; /* of filter_length: frames and their number; 0: not given */
} brutefir;

/* Returns whether the current word is a sign. */
static inline bool is_sign(const brutefir *b, char sign) {
    return b->word.sign == sign;
}

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* Goes to the next character that is no blank and no comment. *end: the text has ended. Returns as gc_lines_next. */
static gpuconv_status skip_blanks(brutefir *b, bool *end, gpuconv_error *error) {
    for (*end = false;;) {
        if (b->at)
            b->at += strspn(b->at, " \t\v\f");
        if (b->at && *b->at && *b->at != '#')
            return GPUCONV_OK;
        char *line;
        gpuconv_status status = gc_lines_next(b->lines, &line, error);
        *end = status || !line;
        if (*end)
            return status;
        b->matrix->line = (int)b->lines->number;
        b->at = line;
    }
}

/* Reads the next word into b->word. Returns FILE, FORMAT. */
static gpuconv_status next_word(brutefir *b, gpuconv_error *error) {
    static const char signs[] = "{}:;,/";
    config_word *w = &b->word;
    bool end;
    gpuconv_status status = skip_blanks(b, &end, error);
    *w = (config_word){.end = end};
    if (end)
        return status;
    if (strchr(signs, *b->at)) {
        w->sign = *b->at++;
        return GPUCONV_OK;
    }
    w->quoted = *b->at == '"';
    b->at += w->quoted;
    const size_t length = strcspn(b->at, w->quoted ? "\"" : " \t\v\f#\"{}:;,/");
    if (length >= sizeof w->text || (w->quoted && !b->at[length]))
        return gc_matrix_fail(b->matrix, error,
                              "a word longer than %d bytes, or a quotation mark without its pair in the line",
                              (int)sizeof w->text - 1);
    memcpy(w->text, b->at, length);
    b->at += length + w->quoted;
    return GPUCONV_OK;
}

/* Fails unless the current word is `sign`, then reads the next one. */
static gpuconv_status expect(brutefir *b, char sign, gpuconv_error *error) {
    if (b->word.end)
        return gc_matrix_fail(b->matrix, error, "'%c' is missing before the end", sign);
    if (!is_sign(b, sign))
        return gc_matrix_fail(b->matrix, error, "'%c' is missing before '%.40s%c'", sign, b->word.text,
                              b->word.sign ? b->word.sign : ' ');
    return next_word(b, error);
}

/* Reads a number and the word behind it. */
static gpuconv_status read_number(brutefir *b, double *value, gpuconv_error *error) {
    if (b->word.sign || b->word.end || !gc_number_parse(b->word.text, value) || !(fabs(*value) <= 1e12))
        return gc_matrix_fail(b->matrix, error, "'%.40s' is not a number", b->word.text);
    return next_word(b, error);
}

/* Reads an integer in a range and the word behind it. `what` names it in messages. */
static gpuconv_status read_integer(brutefir *b, const char *what, int64_t least, int64_t most, int64_t *value,
                                   gpuconv_error *error) {
    double number = 0;
    gpuconv_status status = read_number(b, &number, error);
    if (!status && !(number >= (double)least && number <= (double)most && number == floor(number)))
        status = gc_matrix_fail(b->matrix, error, "%s: %g is not an integer from %lld to %lld", what, number,
                                (long long)least, (long long)most);
    if (!status)
        *value = (int64_t)number;
    return status;
}

/* ---- Coefficients ------------------------------------------------------------------------------------------------ */

/* Returns the encoding of raw samples for a format of BruteFIR; NULL: it is not read. */
static const char *raw_encoding(const char *format) {
    static const char *const known[][2] = {
        {"FLOAT_LE", "float"}, {"FLOAT64_LE", "double"}, {"S16_LE", "s16"}, {"S24_LE", "s24"}, {"S32_LE", "s32"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (gc_same_word(format, known[i][0]))
            return known[i][1];
    return NULL;
}

/* Reads the response of a coefficient into the matrix. Returns the errors of reading. */
static gpuconv_status load_coeff(brutefir *b, coefficient *c, gpuconv_error *error) {
    gc_matrix *m = b->matrix;
    gpuconv_ir *ir = NULL;
    gpuconv_status status;
    m->line = c->line;
    c->index = -1;
    if (strcmp(c->file, "dirac pulse") == 0)
        return GPUCONV_OK;
    const char *encoding = raw_encoding(c->format);
    if (!*c->file || (!encoding && *c->format && !gc_same_word(c->format, "text")))
        return gc_matrix_fail(m, error,
                              "coefficient '%.40s': a filename and a format text, FLOAT_LE, FLOAT64_LE, S16_LE, S24_LE "
                              "or S32_LE are needed, not '%.40s'",
                              c->name, c->format);
    char *path = gc_matrix_join_path(m->folder, c->file, "");
    if (!path)
        return gc_fail_memory(error, m->path);
    char raw[64] = "";
    gpuconv_error inner = {0};
    if (encoding)
        (void)gc_format(raw, sizeof raw, "%.0f,1,%s", b->rate, encoding);
    status = encoding ? gc_ir_load_from(path, &(gc_ir_form){GC_INPUT_REGULAR, raw, 0}, &ir, &inner)
                      : gc_ir_read_text(path, b->rate, &ir, &inner);
    if (!status && ir->planes > 1) {
        status = gc_matrix_fail(m, error, "%s: %d numbers in a row; a coefficient has one", path, ir->planes);
        gpuconv_ir_free(ir);
    } else if (status)
        status = status == GPUCONV_ERROR_MEMORY ? gc_fail_memory(error, m->path)
                                                : gc_matrix_fail(m, error, "%s", inner.message);
    if (!status)
        status = gc_matrix_add_response(m, path, ir, &c->index, error);
    free(path);
    return status;
}

/* ---- Blocks and settings ----------------------------------------------------------------------------------------- */

/* Skips the value of a setting, up to its semicolon, and notes so. Values with braces are skipped whole. */
static gpuconv_status skip_value(brutefir *b, const char *key, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    gc_matrix_ignore(b->matrix, key);
    for (int depth = 0; !status && !b->word.end && (depth > 0 || !is_sign(b, ';')); status = next_word(b, error)) {
        depth += is_sign(b, '{') ? 1 : is_sign(b, '}') ? -1 : 0;
        if (depth < 0)
            return gc_matrix_fail(b->matrix, error, "';' is missing before '}'");
    }
    return status ? status : expect(b, ';', error);
}

/* Goes on to the next element of a list. Returns false behind its end, a semicolon, and after an error, in *status. */
static bool next_element(brutefir *b, gpuconv_status *status, gpuconv_error *error) {
    const bool more = !*status && is_sign(b, ',');
    if (!*status)
        *status = more ? next_word(b, error) : expect(b, ';', error);
    return more && !*status;
}

/* Fails unless all numbers of a list are 0. */
static gpuconv_status expect_no_delay(brutefir *b, gpuconv_error *error) {
    gpuconv_status status;
    do {
        double value = 0;
        status = read_number(b, &value, error);
        if (!status && value != 0)
            status = gc_matrix_fail(b->matrix, error, "a delay of %g is not read; put the delay into the coefficients",
                                    value);
    } while (next_element(b, &status, error));
    return status;
}

/* Copies a name. Returns FORMAT if it is too long. */
static gpuconv_status copy_name(brutefir *b, char *name, size_t size, gpuconv_error *error) {
    if (b->word.sign || b->word.end || strlen(b->word.text) >= size)
        return gc_matrix_fail(b->matrix, error, "'%.40s' is not a name of at most %d bytes", b->word.text,
                              (int)size - 1);
    memcpy(name, b->word.text, strlen(b->word.text) + 1);
    return next_word(b, error);
}

/* Reads the key of the next setting of a block, and the colon behind it. Returns false behind the last one, and after
 * an error, in *status. */
static bool next_setting(brutefir *b, char key[KEY_ROOM], gpuconv_status *status, gpuconv_error *error) {
    if (*status || b->word.end || is_sign(b, '}'))
        return false;
    *status = copy_name(b, key, KEY_ROOM, error);
    if (!*status)
        *status = expect(b, ':', error);
    return !*status;
}

/* Returns whether a name is one of a list, which NULL ends. */
static bool is_one_of(const char *name, const char *const *list) {
    while (*list && strcmp(name, *list) != 0)
        list++;
    return *list != NULL;
}

/* Reads the integers of a list, up to the semicolon. *count: how many. */
static gpuconv_status read_integers(brutefir *b, const char *what, int64_t most, int64_t *number, int *count,
                                    gpuconv_error *error) {
    gpuconv_status status;
    *count = 0;
    do {
        if (*count == MOST)
            return gc_matrix_fail(b->matrix, error, "%s: more than %d channels", what, MOST);
        status = read_integer(b, what, 0, most, &number[(*count)++], error);
    } while (next_element(b, &status, error));
    return status;
}

/* What a block of channels says of its device. */
typedef struct device {
    int64_t open, used[MOST], mapping[MOST];
    int uses, mappings; /* numbers in the lists */
} device;

/* channels: OPEN[/CHANNEL, CHANNEL ...]; */
static gpuconv_status read_device_channels(brutefir *b, device *d, gpuconv_error *error) {
    gpuconv_status status = read_integer(b, "channels", 1, MOST, &d->open, error);
    for (d->uses = 0; d->uses < d->open && !status; d->uses++)
        d->used[d->uses] = d->uses;
    if (status || !is_sign(b, '/'))
        return status ? status : expect(b, ';', error);
    status = next_word(b, error);
    return status ? status : read_integers(b, "channels", d->open - 1, d->used, &d->uses, error);
}

/* mute: true, false ...; for the channels from `first` on. */
static gpuconv_status read_mutes(brutefir *b, side *s, int first, gpuconv_error *error) {
    gpuconv_status status;
    int i = first;
    do {
        const bool is = strcmp(b->word.text, "true") == 0;
        if (i == s->count || (!is && strcmp(b->word.text, "false") != 0))
            return gc_matrix_fail(b->matrix, error, "mute: '%.40s' is neither true nor false, or one too many",
                                  b->word.text);
        s->channel[i++].muted = is;
        status = next_word(b, error);
    } while (next_element(b, &status, error));
    return status;
}

/* Reads a setting, `key`, of the channels from `first` on. */
static gpuconv_status read_channel_setting(brutefir *b, const char *key, side *s, int first, device *d,
                                           gpuconv_error *error) {
    static const char *const skipped[] = {"device", "sample", "maxdelay", "individual_maxdelay",
                                          "dither", "merge",  NULL};
    if (strcmp(key, "channels") == 0)
        return read_device_channels(b, d, error);
    if (strcmp(key, "mapping") == 0)
        return read_integers(b, key, MOST - 1, d->mapping, &d->mappings, error);
    if (strcmp(key, "mute") == 0)
        return read_mutes(b, s, first, error);
    if (strcmp(key, "delay") == 0 || strcmp(key, "subdelay") == 0)
        return expect_no_delay(b, error);
    return is_one_of(key, skipped) ? skip_value(b, key, error)
                                   : gc_matrix_fail(b->matrix, error, "unknown setting '%s' of channels", key);
}

/* Finds the channels of the device for the names from `first` on. */
static gpuconv_status map_channels(brutefir *b, side *s, int first, const device *d, gpuconv_error *error) {
    if (s->open + d->open > GC_MAX_CHANNELS)
        return gc_matrix_fail(b->matrix, error, "more than %d channels of devices", GC_MAX_CHANNELS);
    for (int i = first; i < s->count; i++) {
        const int64_t use = d->mappings == 0 ? i - first : i - first < d->mappings ? d->mapping[i - first] : d->uses;
        if (use >= d->uses)
            return gc_matrix_fail(b->matrix, error, "'%s' has no channel of the device; see channels and mapping",
                                  s->channel[i].name);
        s->channel[i].device = s->open + (int)d->used[use];
    }
    s->open += (int)d->open;
    return GPUCONV_OK;
}

/* Adds a name of a channel. */
static gpuconv_status add_name(brutefir *b, side *s, gpuconv_error *error) {
    if (s->count == MOST)
        return gc_matrix_fail(b->matrix, error, "more than %d channels", MOST);
    named_channel *c = &s->channel[s->count];
    gpuconv_status status = copy_name(b, c->name, sizeof c->name, error);
    for (int i = 0; i < s->count && !status; i++)
        if (strcmp(s->channel[i].name, c->name) == 0)
            status = gc_matrix_fail(b->matrix, error, "'%s' is declared twice", c->name);
    s->count++;
    return status;
}

/* input or output NAME, NAME ... { settings }; adds the names. */
static gpuconv_status read_channels(brutefir *b, side *s, gpuconv_error *error) {
    const int first = s->count;
    gpuconv_status status = add_name(b, s, error);
    while (!status && is_sign(b, ',')) {
        status = next_word(b, error);
        if (!status)
            status = add_name(b, s, error);
    }
    if (status)
        return status;
    device *d = gc_calloc(1, sizeof *d);
    if (!d)
        return gc_fail_memory(error, b->matrix->path);
    for (d->open = d->uses = s->count - first; d->mappings < d->uses; d->mappings++)
        d->used[d->mappings] = d->mappings;
    d->mappings = 0;
    status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);)
        status = read_channel_setting(b, key, s, first, d, error);
    if (!status)
        status = map_channels(b, s, first, d, error);
    free(d);
    return status ? status : expect(b, '}', error);
}

/* coeff NAME { settings } */
static gpuconv_status read_coeff(brutefir *b, gpuconv_error *error) {
    coefficient *c = &b->coeff[b->coeffs];
    if (b->coeffs == MOST)
        return gc_matrix_fail(b->matrix, error, "more than %d coefficients", MOST);
    *c = (coefficient){.factor = 1, .line = b->matrix->line};
    gpuconv_status status = copy_name(b, c->name, sizeof c->name, error);
    if (!status)
        status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);) {
        double number = 0;
        if (strcmp(key, "filename") == 0 || strcmp(key, "format") == 0)
            status = *key == 'f' && key[1] == 'i' ? copy_name(b, c->file, sizeof c->file, error)
                                                  : copy_name(b, c->format, sizeof c->format, error);
        else if (strcmp(key, "attenuation") == 0) {
            status = read_number(b, &number, error);
            c->factor = pow(10, -fmax(-400, fmin(400, number)) / 20);
        } else if (strcmp(key, "blocks") == 0)
            status = read_integer(b, key, -1, 1 << 24, &c->blocks, error);
        else if (strcmp(key, "skip") == 0) {
            status = read_number(b, &number, error);
            if (!status && number != 0)
                status =
                    gc_matrix_fail(b->matrix, error, "skip: %g is not read; cut the beginning off the file", number);
        } else if (strcmp(key, "shared_mem") != 0)
            status = gc_matrix_fail(b->matrix, error, "unknown setting '%s' of coefficients", key);
        if (!status)
            status = strcmp(key, "shared_mem") == 0 ? skip_value(b, key, error) : expect(b, ';', error);
    }
    for (int i = 0; i < b->coeffs && !status; i++)
        if (strcmp(b->coeff[i].name, c->name) == 0)
            status = gc_matrix_fail(b->matrix, error, "'%s' is declared twice", c->name);
    b->coeffs++;
    return status ? status : expect(b, '}', error);
}

/* A channel of a filter, with its factor. */
typedef struct end {
    int channel;
    double factor;
} end;

/* Finds a channel by name, or by number from 0 on. Returns -1 if there is none. */
static int find_name(const config_word *w, const side *s) {
    for (int i = 0; i < s->count; i++)
        if (strcmp(s->channel[i].name, w->text) == 0)
            return i;
    int64_t number;
    return !w->quoted && gc_integer_parse(w->text, &number) && number >= 0 && number < s->count ? (int)number : -1;
}

/* Reads CHANNEL[/[ATTENUATION][/MULTIPLIER]], ... ; */
static gpuconv_status read_ends(brutefir *b, const side *s, end *ends, int *count, gpuconv_error *error) {
    gpuconv_status status;
    *count = 0;
    do {
        const int channel = b->word.sign ? -1 : find_name(&b->word, s);
        if (channel < 0 || *count == MOST)
            return gc_matrix_fail(b->matrix, error, "'%.40s' is no input or output that is declared above",
                                  b->word.text);
        ends[*count] = (end){s->channel[channel].device, s->channel[channel].muted ? 0 : 1};
        status = next_word(b, error);
        for (int part = 0; part < 2 && !status && is_sign(b, '/'); part++) {
            double number = 0;
            status = next_word(b, error);
            if (status || is_sign(b, '/'))
                continue;
            status = read_number(b, &number, error);
            ends[*count].factor *= part ? number : pow(10, -fmax(-400, fmin(400, number)) / 20);
        }
        (*count)++;
    } while (next_element(b, &status, error));
    return status;
}

/* Adds the routes of a filter. Returns FORMAT, MEMORY. */
static gpuconv_status add_filter(brutefir *b, const end *in, int inputs, const end *out, int outputs,
                                 const coefficient *c, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs && !status; o++) {
            gc_matrix_entry e = {.input = in[i].channel,
                                 .output = out[o].channel,
                                 .file = c ? c->index : -1,
                                 .factor = in[i].factor * out[o].factor * (c ? c->factor : 1)};
            if (c && c->blocks > 0 && c->index >= 0)
                e.length = (double)(c->blocks * b->block);
            status = gc_matrix_add(b->matrix, &e, error);
        }
    return status;
}

/* Reads the coefficient of a filter: a name, a number from 0 on, or -1 for none. *coeff is NULL for none. */
static gpuconv_status read_filter_coeff(brutefir *b, const coefficient **coeff, gpuconv_error *error) {
    *coeff = NULL;
    if (b->word.quoted || strcmp(b->word.text, "-1") != 0) {
        int64_t number = -1;
        const bool by_number = !b->word.quoted && gc_integer_parse(b->word.text, &number);
        for (int i = 0; i < b->coeffs; i++)
            if (by_number ? number == i : b->word.quoted && strcmp(b->coeff[i].name, b->word.text) == 0)
                *coeff = &b->coeff[i];
        if (b->word.sign || !*coeff)
            return gc_matrix_fail(b->matrix, error, "'%.40s' is no coefficient that is declared above", b->word.text);
        if ((*coeff)->blocks > 0 && b->block == 0)
            return gc_matrix_fail(b->matrix, error,
                                  "coefficient '%.40s' is counted in blocks, and no filter_length says "
                                  "how long they are",
                                  (*coeff)->name);
    }
    gpuconv_status status = next_word(b, error);
    return status ? status : expect(b, ';', error);
}

/* filter NAME { settings }, with room for the channels in `ends`. */
static gpuconv_status read_filter(brutefir *b, end *ends, gpuconv_error *error) {
    end *in = ends, *out = ends + MOST + 1;
    int inputs = 0, outputs = 0;
    bool has_coeff = false;
    const coefficient *coeff = NULL;
    gpuconv_status status = next_word(b, error); /* the name */
    if (!status)
        status = expect(b, '{', error);
    for (char key[KEY_ROOM]; next_setting(b, key, &status, error);) {
        if (strcmp(key, "inputs") == 0 || strcmp(key, "from_inputs") == 0)
            status = read_ends(b, &b->input, in, &inputs, error);
        else if (strcmp(key, "outputs") == 0 || strcmp(key, "to_outputs") == 0)
            status = read_ends(b, &b->output, out, &outputs, error);
        else if (strcmp(key, "coeff") == 0) {
            status = read_filter_coeff(b, &coeff, error);
            has_coeff = true;
        } else if (strcmp(key, "delay") == 0)
            status = expect_no_delay(b, error);
        else if (strcmp(key, "from_filters") == 0 || strcmp(key, "to_filters") == 0)
            status = gc_matrix_fail(
                b->matrix, error, "%s: filters behind filters are not read; convolve their coefficients into one", key);
        else if (strcmp(key, "process") == 0 || strcmp(key, "crossfade") == 0)
            status = skip_value(b, key, error);
        else
            status = gc_matrix_fail(b->matrix, error, "unknown setting '%s' of a filter", key);
    }
    if (!status && (!inputs || !outputs || !has_coeff))
        status = gc_matrix_fail(b->matrix, error, "a filter needs inputs, outputs and coeff");
    if (!status)
        status = add_filter(b, in, inputs, out, outputs, coeff, error);
    return status ? status : expect(b, '}', error);
}

/* logic: "MODULE" { parameters }, ...; a module that only listens for commands is ignored. */
static gpuconv_status read_logic(brutefir *b, gpuconv_error *error) {
    gpuconv_status status;
    gc_matrix_ignore(b->matrix, "logic");
    do {
        if (strcmp(b->word.text, "cli") != 0)
            return gc_matrix_fail(b->matrix, error, "the module '%.40s' of logic changes coefficients and is not read",
                                  b->word.text);
        status = next_word(b, error);
        for (int depth = 0; !status && !b->word.end && (depth > 0 || is_sign(b, '{'));) {
            depth += is_sign(b, '{') ? 1 : is_sign(b, '}') ? -1 : 0;
            if (strcmp(b->word.text, "script") == 0 && !b->word.quoted)
                return gc_matrix_fail(b->matrix, error, "a script of the module 'cli' is not run");
            status = next_word(b, error);
        }
    } while (next_element(b, &status, error));
    return status;
}

/* Reads a setting of the program. */
static gpuconv_status read_setting(brutefir *b, const char *key, gpuconv_error *error) {
    static const char *const skipped[] = {
        "allow_poll_mode", "benchmark",   "config_file",           "convolver_config", "debug",
        "float_bits",      "lock_memory", "max_dither_table_size", "modules_path",     "monitor_rate",
        "n_processors",    "powersave",   "overflow_warnings",     "safety_limit",     "sdf_length",
        "show_progress",   NULL};
    gpuconv_status status = expect(b, ':', error);
    if (status)
        return status;
    if (strcmp(key, "logic") == 0)
        return read_logic(b, error);
    double level = 0; /* mutes what is below, or ends the program above it */
    if ((strcmp(key, "powersave") == 0 || strcmp(key, "safety_limit") == 0) && gc_number_parse(b->word.text, &level) &&
        level != 0)
        return gc_matrix_fail(b->matrix, error, "%s: a level of %g dB, which changes samples, is not read; remove it",
                              key, level);
    if (is_one_of(key, skipped))
        return skip_value(b, key, error);
    if (strcmp(key, "sampling_rate") == 0) {
        status = read_number(b, &b->rate, error);
        if (!status && !gc_is_rate(b->rate))
            status = gc_matrix_fail(b->matrix, error, "a sampling rate of %g Hz", b->rate);
    } else if (strcmp(key, "filter_length") == 0) {
        status = read_integer(b, key, 1, 1 << 30, &b->block, error);
        b->blocks = 1;
        if (!status && is_sign(b, ',')) {
            status = next_word(b, error);
            if (!status)
                status = read_integer(b, key, 1, 1 << 20, &b->blocks, error);
        }
    } else {
        return gc_matrix_fail(b->matrix, error, "unknown setting '%s'", key);
    }
    return status ? status : expect(b, ';', error);
}

/* Reads one block or setting. */
static gpuconv_status read_item(brutefir *b, end *ends, gpuconv_error *error) {
    char key[KEY_ROOM] = "";
    gpuconv_status status = copy_name(b, key, sizeof key, error);
    if (status)
        return status;
    if (strcmp(key, "input") == 0)
        status = read_channels(b, &b->input, error);
    else if (strcmp(key, "output") == 0)
        status = read_channels(b, &b->output, error);
    else if (strcmp(key, "coeff") == 0)
        status = read_coeff(b, error);
    else if (strcmp(key, "filter") == 0)
        status = read_filter(b, ends, error);
    else
        return read_setting(b, key, error);
    return status ? status : expect(b, ';', error);
}

gpuconv_status gc_matrix_read_brutefir(gc_matrix *m, gc_lines *lines, gpuconv_error *error) {
    brutefir *b = gc_calloc(1, sizeof *b);
    end *ends = gc_calloc(2 * (MOST + 1), sizeof *ends);
    gpuconv_status status = GPUCONV_OK;
    if (b) {
        b->input.channel = gc_calloc(MOST + 1, sizeof *b->input.channel);
        b->output.channel = gc_calloc(MOST + 1, sizeof *b->output.channel);
        b->coeff = gc_calloc(MOST + 1, sizeof *b->coeff);
    }
    if (!b || !ends || !b->input.channel || !b->output.channel || !b->coeff)
        status = gc_fail_memory(error, m->path);
    if (!status) {
        b->matrix = m;
        b->lines = lines;
        b->rate = m->rate_without_files;
        status = next_word(b, error);
    }
    for (int loaded = 0; !status && !b->word.end;) {
        status = read_item(b, ends, error);
        const int line = m->line;
        while (!status && loaded < b->coeffs)
            status = load_coeff(b, &b->coeff[loaded++], error);
        if (!status)
            m->line = line;
    }
    if (!status) {
        m->inputs = b->input.open;
        m->outputs = b->output.open;
        m->max_frames = b->block * b->blocks;
    }
    if (b) {
        free(b->input.channel);
        free(b->output.channel);
        free(b->coeff);
    }
    free(b);
    free(ends);
    return status;
}
