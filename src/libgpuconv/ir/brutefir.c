/*
 * BruteFIR's configuration, as far as it describes plain convolution:
 *
 *      input "left", "right" { ... };                      names of channels; everything inside is skipped, but a delay
 *      coeff "name" { filename: "file"; format: "text"; attenuation: 6.0; blocks: 4; };
 *      filter "name" { inputs: "left"/6.0; outputs: 0, 1//0.5; coeff: "name"; };
 *
 * A filter leads from each of its inputs to each of its outputs; filters to one output are summed. Attenuations are in
 * decibels, factors behind a second slash are multipliers.
 */
#include "brutefir.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Skips the value of a setting, up to its semicolon. Values with braces are skipped whole. */
static gpuconv_status skip_value(gc_brutefir *b, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (int depth = 0; !status && !b->word.end && (depth > 0 || !gc_brutefir_is(b, ';'));
         status = gc_brutefir_next(b, error)) {
        depth += gc_brutefir_is(b, '{') ? 1 : gc_brutefir_is(b, '}') ? -1 : 0;
        if (depth < 0)
            return gc_matrix_fail(b->matrix, error, "';' is missing before '}'");
    }
    return status ? status : gc_brutefir_expect(b, ';', error);
}

/* Fails unless all numbers of a list are 0, up to the semicolon. */
static gpuconv_status expect_zeros(gc_brutefir *b, const char *what, gpuconv_error *error) {
    for (;;) {
        double value;
        gpuconv_status status = gc_brutefir_number(b, &value, error);
        if (!status && value != 0)
            status =
                gc_matrix_fail(b->matrix, error, "%s %g is not read; put the delay into the coefficients", what, value);
        if (status || !gc_brutefir_is(b, ','))
            return status ? status : gc_brutefir_expect(b, ';', error);
        status = gc_brutefir_next(b, error);
        if (status)
            return status;
    }
}

/* Copies a name. Returns FORMAT if it is too long. */
static gpuconv_status copy_name(gc_brutefir *b, char *name, size_t size, gpuconv_error *error) {
    if (b->word.sign || b->word.end || strlen(b->word.text) >= size)
        return gc_matrix_fail(b->matrix, error, "'%.40s' is not a name of at most %d bytes", b->word.text,
                              (int)size - 1);
    memcpy(name, b->word.text, strlen(b->word.text) + 1);
    return gc_brutefir_next(b, error);
}

/* input or output NAME, NAME ... { settings }; adds the names. */
static gpuconv_status read_channels(gc_brutefir *b, char (*names)[GC_BRUTEFIR_NAME], int *count, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (bool more = true; more && !status;) {
        if (*count == GC_BRUTEFIR_MAX)
            return gc_matrix_fail(b->matrix, error, "more than %d channels", GC_BRUTEFIR_MAX);
        status = copy_name(b, names[(*count)++], GC_BRUTEFIR_NAME, error);
        more = !status && gc_brutefir_is(b, ',');
        if (more)
            status = gc_brutefir_next(b, error);
    }
    if (!status)
        status = gc_brutefir_expect(b, '{', error);
    while (!status && !b->word.end && !gc_brutefir_is(b, '}')) {
        const bool delay = strcmp(b->word.text, "delay") == 0 || strcmp(b->word.text, "subdelay") == 0;
        status = gc_brutefir_next(b, error);
        if (!status)
            status = gc_brutefir_expect(b, ':', error);
        if (!status)
            status = delay ? expect_zeros(b, "a delay of", error) : skip_value(b, error);
    }
    return status ? status : gc_brutefir_expect(b, '}', error);
}

/* coeff NAME { settings } */
static gpuconv_status read_coeff(gc_brutefir *b, gpuconv_error *error) {
    gc_brutefir_coeff *c = &b->coeff[b->coeffs];
    if (b->coeffs == GC_BRUTEFIR_MAX)
        return gc_matrix_fail(b->matrix, error, "more than %d coefficients", GC_BRUTEFIR_MAX);
    *c = (gc_brutefir_coeff){.factor = 1, .line = b->matrix->line};
    gpuconv_status status = copy_name(b, c->name, sizeof c->name, error);
    if (!status)
        status = gc_brutefir_expect(b, '{', error);
    while (!status && !b->word.end && !gc_brutefir_is(b, '}')) {
        char key[32] = "";
        double number;
        status = copy_name(b, key, sizeof key, error);
        if (!status)
            status = gc_brutefir_expect(b, ':', error);
        if (status)
            return status;
        if (strcmp(key, "filename") == 0 || strcmp(key, "format") == 0)
            status = *key == 'f' && key[1] == 'i' ? copy_name(b, c->file, sizeof c->file, error)
                                                  : copy_name(b, c->format, sizeof c->format, error);
        else if (!(status = gc_brutefir_number(b, &number, error)) && strcmp(key, "attenuation") == 0)
            c->factor = pow(10, -fmax(-400, fmin(400, number)) / 20);
        else if (!status && strcmp(key, "blocks") == 0)
            c->blocks = (int64_t)number;
        else if (!status && strcmp(key, "skip") == 0 && number != 0)
            status = gc_matrix_fail(b->matrix, error, "skip: %g is not read; cut the beginning off the file", number);
        if (!status)
            status = gc_brutefir_expect(b, ';', error);
    }
    b->coeffs++;
    return status ? status : gc_brutefir_expect(b, '}', error);
}

/* A channel of a filter, with its factor. */
typedef struct end {
    int channel;
    double factor;
} end;

/* Finds a channel by name, or by number from 0 on. Returns -1 if there is none. */
static int find_name(const gc_brutefir_word *w, char (*names)[GC_BRUTEFIR_NAME], int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], w->text) == 0)
            return i;
    char *rest;
    const long number = strtol(w->text, &rest, 10);
    return !w->quoted && *w->text && !*rest && number >= 0 && number < count ? (int)number : -1;
}

/* Reads CHANNEL[/[ATTENUATION][/MULTIPLIER]], ... ; */
static gpuconv_status read_ends(gc_brutefir *b, char (*names)[GC_BRUTEFIR_NAME], int known, end *ends, int *count,
                                gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    for (*count = 0; !status; (*count)++) {
        const int channel = b->word.sign ? -1 : find_name(&b->word, names, known);
        if (channel < 0 || *count == GC_BRUTEFIR_MAX)
            return gc_matrix_fail(b->matrix, error, "'%.40s' is no input or output that is declared above",
                                  b->word.text);
        ends[*count] = (end){channel, 1};
        status = gc_brutefir_next(b, error);
        for (int part = 0; part < 2 && !status && gc_brutefir_is(b, '/'); part++) {
            double number = 0;
            status = gc_brutefir_next(b, error);
            if (status || gc_brutefir_is(b, '/'))
                continue;
            status = gc_brutefir_number(b, &number, error);
            ends[*count].factor *= part ? number : pow(10, -fmax(-400, fmin(400, number)) / 20);
        }
        if (!status && !gc_brutefir_is(b, ',')) {
            (*count)++;
            return gc_brutefir_expect(b, ';', error);
        }
        if (!status)
            status = gc_brutefir_next(b, error);
    }
    return status;
}

/* Adds the routes of a filter. Returns FORMAT, MEMORY. */
static gpuconv_status add_filter(gc_brutefir *b, const end *in, int inputs, const end *out, int outputs,
                                 const gc_brutefir_coeff *c, gpuconv_error *error) {
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
static gpuconv_status read_filter_coeff(gc_brutefir *b, const gc_brutefir_coeff **coeff, gpuconv_error *error) {
    *coeff = NULL;
    if (b->word.quoted || strcmp(b->word.text, "-1") != 0) {
        char *rest;
        const long number = strtol(b->word.text, &rest, 10);
        for (int i = 0; i < b->coeffs; i++)
            if (b->word.quoted ? strcmp(b->coeff[i].name, b->word.text) == 0 : !*rest && number == i)
                *coeff = &b->coeff[i];
        if (b->word.sign || !*coeff)
            return gc_matrix_fail(b->matrix, error, "'%.40s' is no coefficient that is declared above", b->word.text);
        if ((*coeff)->blocks > 0 && b->block == 0)
            return gc_matrix_fail(b->matrix, error,
                                  "coefficient '%.40s' is counted in blocks, and no filter_length says "
                                  "how long they are",
                                  (*coeff)->name);
    }
    gpuconv_status status = gc_brutefir_next(b, error);
    return status ? status : gc_brutefir_expect(b, ';', error);
}

/* filter NAME { settings }, with room for the channels in `ends`. */
static gpuconv_status read_filter(gc_brutefir *b, end *ends, gpuconv_error *error) {
    end *in = ends, *out = ends + GC_BRUTEFIR_MAX + 1;
    int inputs = 0, outputs = 0;
    bool has_coeff = false;
    const gc_brutefir_coeff *coeff = NULL;
    gpuconv_status status = gc_brutefir_next(b, error); /* the name */
    if (!status)
        status = gc_brutefir_expect(b, '{', error);
    while (!status && !b->word.end && !gc_brutefir_is(b, '}')) {
        char key[32] = "";
        status = copy_name(b, key, sizeof key, error);
        if (!status)
            status = gc_brutefir_expect(b, ':', error);
        if (status)
            return status;
        if (strcmp(key, "inputs") == 0 || strcmp(key, "from_inputs") == 0)
            status = read_ends(b, b->input, b->inputs, in, &inputs, error);
        else if (strcmp(key, "outputs") == 0 || strcmp(key, "to_outputs") == 0)
            status = read_ends(b, b->output, b->outputs, out, &outputs, error);
        else if (strcmp(key, "coeff") == 0) {
            status = read_filter_coeff(b, &coeff, error);
            has_coeff = true;
        } else if (strcmp(key, "delay") == 0)
            status = expect_zeros(b, "a delay of", error);
        else if (strcmp(key, "from_filters") == 0 || strcmp(key, "to_filters") == 0)
            status = gc_matrix_fail(
                b->matrix, error, "%s: filters behind filters are not read; convolve their coefficients into one", key);
        else
            status = skip_value(b, error);
    }
    if (!status && (!inputs || !outputs || !has_coeff))
        status = gc_matrix_fail(b->matrix, error, "a filter needs inputs, outputs and coeff");
    if (!status)
        status = add_filter(b, in, inputs, out, outputs, coeff, error);
    return status ? status : gc_brutefir_expect(b, '}', error);
}

/* Reads one block or setting. */
static gpuconv_status read_item(gc_brutefir *b, end *ends, gpuconv_error *error) {
    char key[32] = "";
    double number = 0;
    gpuconv_status status = copy_name(b, key, sizeof key, error);
    if (status)
        return status;
    if (strcmp(key, "input") == 0 || strcmp(key, "output") == 0)
        status = *key == 'i' ? read_channels(b, b->input, &b->inputs, error)
                             : read_channels(b, b->output, &b->outputs, error);
    else if (strcmp(key, "coeff") == 0)
        status = read_coeff(b, error);
    else if (strcmp(key, "filter") == 0)
        status = read_filter(b, ends, error);
    else {
        status = gc_brutefir_expect(b, ':', error);
        if (!status && (strcmp(key, "sampling_rate") == 0 || strcmp(key, "filter_length") == 0)) {
            status = gc_brutefir_number(b, &number, error);
            const bool rate = *key == 's';
            if (!status && rate && !gc_is_rate(number))
                status = gc_matrix_fail(b->matrix, error, "a sampling rate of %g Hz", number);
            if (!status && rate)
                b->rate = number;
            else if (!status && number >= 1 && number <= 1 << 24)
                b->block = (int64_t)number;
        }
        return status ? status : skip_value(b, error);
    }
    return status ? status : gc_brutefir_expect(b, ';', error);
}

gpuconv_status gc_matrix_read_brutefir(gc_matrix *m, FILE *file, gpuconv_error *error) {
    gc_brutefir *b = gc_calloc(1, sizeof *b);
    end *ends = gc_calloc(2 * (GC_BRUTEFIR_MAX + 1), sizeof *ends);
    gpuconv_status status = GPUCONV_OK;
    if (b) {
        b->input = gc_calloc(GC_BRUTEFIR_MAX + 1, sizeof *b->input);
        b->output = gc_calloc(GC_BRUTEFIR_MAX + 1, sizeof *b->output);
        b->coeff = gc_calloc(GC_BRUTEFIR_MAX + 1, sizeof *b->coeff);
    }
    if (!b || !ends || !b->input || !b->output || !b->coeff)
        status = gc_fail_memory(error, m->path);
    if (!status) {
        b->matrix = m;
        b->file = file;
        b->rate = m->rate_without_files;
        m->line = 1;
        status = gc_brutefir_next(b, error);
    }
    for (int loaded = 0; !status && !b->word.end;) {
        status = read_item(b, ends, error);
        const int line = m->line;
        while (!status && loaded < b->coeffs)
            status = gc_brutefir_load(b, &b->coeff[loaded++], error);
        if (!status)
            m->line = line;
    }
    if (!status) {
        m->inputs = b->inputs;
        m->outputs = b->outputs;
    }
    if (b) {
        free(b->input);
        free(b->output);
        free(b->coeff);
    }
    free(b);
    free(ends);
    return status;
}
