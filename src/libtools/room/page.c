/*
 * Writes pages: reports and texts as HTML, short sounds for the player as WAV in base64, drawings, style and script.
 */
#include "page.h"

#include "charts.h"
#include "describe.h"
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"
#include "libgpuconv/dsp/finite.h"
#include "libgpuconv/dsp/loudness.h"
#include "libgpuconv/file/job.h"
#include "libgpuconv/ir/object.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Sounds ------------------------------------------------------------------------------------------------------ */

enum { GC_CLIP_SECONDS = 60, GC_CLIP_CHANNELS = 2 }; /* a longer sound is cut */

typedef struct gc_clip {
    float *samples; /* interleaved */
    int channels;   /* 1 or 2; further channels of a file are left out */
    int64_t frames;
    double rate;
    double loudness; /* LUFS; -infinity: silence, or too short to be measured */
    double peak;
    bool cut; /* the file is longer */
} gc_clip;

enum { BLOCK = 4096 };

/* Allocates the samples. */
static gpuconv_status make(gc_clip *clip, int channels, int64_t frames, double rate, gpuconv_error *error) {
    *clip = (gc_clip){.channels = channels, .frames = frames, .rate = rate, .loudness = -HUGE_VAL};
    clip->samples = gc_calloc(frames * channels, sizeof *clip->samples);
    return clip->samples ? GPUCONV_OK : gc_fail_memory(error, "a sound of the page");
}

/* Measures level and loudness. */
static void measure(gc_clip *clip) {
    clip->peak = (double)gc_magnitude(clip->samples, clip->frames * clip->channels);
    const float *channel[GC_CLIP_CHANNELS];
    for (int c = 0; c < clip->channels; c++)
        channel[c] = clip->samples + c;
    if (!gc_loudness(channel, clip->channels, clip->channels, clip->frames, clip->rate, &clip->loudness))
        clip->loudness = -HUGE_VAL;
}

static void clip_free(gc_clip *clip) {
    free(clip->samples);
    *clip = (gc_clip){0};
}

/* Reads the beginning of a sound file. @return any status of gc_reader_open; MEMORY */
static gpuconv_status clip_read(const char *path, gc_clip *clip, gpuconv_error *error) {
    gc_reader *reader;
    *clip = (gc_clip){0};
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gpuconv_status status = gc_reader_open(path, &wish, &reader, error);
    if (status)
        return status;
    const gc_audio_info *info = gc_reader_info(reader);
    int64_t most = (int64_t)GC_CLIP_SECONDS * info->rate, frames = info->frames < 0 ? most : info->frames, done = 0;
    float *block = gc_calloc((int64_t)BLOCK * info->channels, sizeof *block);
    status = make(clip, info->channels > 1 ? GC_CLIP_CHANNELS : 1, gc_min(frames, most), info->rate, error);
    if (!status && !block)
        status = gc_fail_memory(error, path);
    clip->cut = frames > most;
    for (int64_t got = 1; !status && got > 0 && done < clip->frames; done += got) {
        status = gc_reader_read_floats(reader, block, gc_min(BLOCK, clip->frames - done), &got, error);
        for (int64_t i = 0; !status && i < got; i++)
            for (int c = 0; c < clip->channels; c++)
                clip->samples[(done + i) * clip->channels + c] = block[i * info->channels + c];
    }
    free(block);
    gc_reader_free(reader);
    if (status) {
        clip_free(clip);
        return status;
    }
    clip->frames = done;
    measure(clip);
    return GPUCONV_OK;
}

/* Copies the first two channels of a response. @return MEMORY */
static gpuconv_status clip_of_response(const gpuconv_ir *ir, gc_clip *clip, gpuconv_error *error) {
    int64_t frames = gc_min(ir->frames, (int64_t)(GC_CLIP_SECONDS * ir->rate));
    gpuconv_status status = make(clip, ir->planes > 1 ? 2 : 1, frames, ir->rate, error);
    if (status)
        return status;
    for (int c = 0; c < clip->channels; c++)
        for (int64_t i = 0; i < frames; i++)
            clip->samples[i * clip->channels + c] = gc_ir_plane(ir, c)[i];
    clip->cut = frames < ir->frames;
    measure(clip);
    return GPUCONV_OK;
}

/* Copies a block of planes into the clip, up to its end. */
static void append(gc_clip *clip, int64_t *at, float *const *planes, int outputs, int64_t frames) {
    for (int64_t i = 0; i < frames && *at < clip->frames; i++, ++*at)
        for (int c = 0; c < clip->channels; c++)
            clip->samples[*at * clip->channels + c] = planes[c < outputs ? c : 0][i];
}

/* Runs the engine over the clip. @param memory room for BLOCK frames of every input and output */
static gpuconv_status run_engine(gpuconv_engine *engine, const gc_clip *dry, int outputs, float *memory, gc_clip *wet) {
    const float *in[2];
    float *out[GC_MAX_CHANNELS];
    int64_t at = 0, produced = 1;
    gpuconv_status status = GPUCONV_OK;
    for (int c = 0; c < dry->channels; c++)
        in[c] = memory + (int64_t)c * BLOCK;
    for (int c = 0; c < outputs; c++)
        out[c] = memory + (int64_t)(dry->channels + c) * BLOCK;
    for (int64_t done = 0; done < dry->frames && !status; done += BLOCK) {
        int64_t frames = gc_min(BLOCK, dry->frames - done);
        for (int c = 0; c < dry->channels; c++)
            for (int64_t i = 0; i < frames; i++)
                memory[(int64_t)c * BLOCK + i] = dry->samples[(done + i) * dry->channels + c];
        status = gpuconv_engine_process(engine, in, frames, out, &produced);
        if (!status)
            append(wet, &at, out, outputs, produced);
    }
    produced = 1;
    while (!status && produced > 0) {
        status = gpuconv_engine_drain(engine, out, BLOCK, &produced);
        if (!status)
            append(wet, &at, out, outputs, produced);
    }
    return status;
}

/* Convolves a clip with a response, which is resampled and routed as by gpuconv IN IR OUT.
 * @return any status of gpuconv_ir_route_as, gpuconv_plan_new or gpuconv_engine_new */
static gpuconv_status clip_convolve(const gc_clip *dry, const gpuconv_ir *ir, gc_clip *wet, gpuconv_error *error) {
    gpuconv_config config = gpuconv_config_default();
    gpuconv_ir *resampled = NULL, *routed = NULL;
    gpuconv_plan *plan = NULL;
    gpuconv_engine *engine = NULL;
    float *memory = NULL;
    *wet = (gc_clip){0};
    config.backend = GPUCONV_BACKEND_CPU;
    config.frames = dry->frames;
    gpuconv_status status = gpuconv_ir_resample(ir, dry->rate, &resampled, error);
    if (!status)
        status = gpuconv_ir_route_as(resampled, dry->channels, GPUCONV_LAYOUT_STEREO, &routed, error);
    if (!status)
        status = gpuconv_plan_new(routed, &config, &plan, error);
    if (!status)
        status = gpuconv_engine_new(plan, &engine, error);
    if (!status) {
        int outputs = gpuconv_ir_outputs(routed);
        status = make(wet, outputs > 1 ? 2 : 1, dry->frames + gpuconv_ir_frames(routed) - 1, dry->rate, error);
        memory = gc_calloc((int64_t)BLOCK * (dry->channels + outputs), sizeof *memory);
        if (!status && !memory)
            status = gc_fail_memory(error, "a sound of the page");
        if (!status && (status = run_engine(engine, dry, outputs, memory, wet)) != GPUCONV_OK)
            status = gc_fail(error, status, "a sound of the page: %s", gpuconv_status_text(status));
    }
    free(memory);
    gpuconv_engine_free(engine);
    gpuconv_plan_free(plan);
    gpuconv_ir_free(routed);
    gpuconv_ir_free(resampled);
    if (status)
        clip_free(wet);
    else
        measure(wet);
    return status;
}

/* ---- WAV in base64 ----------------------------------------------------------------------------------------------- */

typedef struct encoder {
    FILE *to;
    unsigned bits; /* bytes that are not yet written */
    int bytes;     /* their number, 0 to 2 */
} encoder;

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void put_byte(encoder *e, unsigned byte) {
    e->bits = e->bits << 8 | (byte & 0xff);
    if (++e->bytes < 3)
        return;
    for (int shift = 18; shift >= 0; shift -= 6)
        fputc(alphabet[e->bits >> shift & 63], e->to);
    e->bits = 0;
    e->bytes = 0;
}

/* Writes a number of `bytes` bytes, the lowest first. */
static void put_number(encoder *e, uint32_t value, int bytes) {
    for (int k = 0; k < bytes; k++)
        put_byte(e, value >> 8 * k);
}

static void put_name(encoder *e, const char *name) {
    for (; *name; name++)
        put_byte(e, (unsigned char)*name);
}

/* Writes the rest, filled up with "=". */
static void finish(encoder *e) {
    int rest = e->bytes;
    if (!rest)
        return;
    unsigned bits = e->bits << 8 * (3 - rest);
    for (int k = 0; k < 4; k++)
        fputc(k <= rest ? alphabet[bits >> (18 - 6 * k) & 63] : '=', e->to);
}

/* Writes a clip as a WAV of 16 bits in base64, multiplied by `gain`. */
static void clip_write(const gc_clip *clip, double gain, FILE *to) {
    encoder e = {.to = to};
    uint32_t channels = (uint32_t)clip->channels, rate = (uint32_t)lrint(clip->rate);
    int64_t samples = clip->frames * clip->channels; /* GC_CLIP_SECONDS keeps it far below 2^31 */
    put_name(&e, "RIFF");
    put_number(&e, (uint32_t)(36 + 2 * samples), 4);
    put_name(&e, "WAVEfmt ");
    put_number(&e, 16, 4);
    put_number(&e, 1, 2);
    put_number(&e, channels, 2);
    put_number(&e, rate, 4);
    put_number(&e, rate * channels * 2, 4);
    put_number(&e, channels * 2, 2);
    put_number(&e, 16, 2);
    put_name(&e, "data");
    put_number(&e, (uint32_t)(2 * samples), 4);
    for (int64_t i = 0; i < samples; i++) {
        double x = fmin(fmax(gain * (double)clip->samples[i], -1), 1);
        put_number(&e, (uint32_t)(int32_t)lrint(32767 * x), 2);
    }
    finish(&e);
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

enum { TRACKS = 9 }; /* sounds of the player: keys 1 to 9 */

/* A sound of the player. */
typedef struct track {
    const char *name;
    gc_clip clip;
} track;

typedef struct tracks {
    track item[TRACKS];
    int count;
    double gain; /* common factor; 1 unless a sound would clip */
} tracks;

gpuconv_status gc_page_check(const char *path, const char *sound, gpuconv_error *error) {
    /* A page needs what a drawing beside it would need. */
    size_t room = strlen(path) + 5;
    char *drawing = malloc(room);
    if (!drawing)
        return gc_fail_memory(error, path);
    (void)snprintf(drawing, room, "%s.svg", path);
    gpuconv_error why = {0};
    gpuconv_status status = gc_plot_check(drawing, &why);
    if (status == GPUCONV_ERROR_UNSUPPORTED)
        status = gc_fail(error, status, "%s: the drawings of a page need gnuplot, which is not installed", path);
    else if (status)
        status = gc_fail(error, status, "%s: cannot be written: its folder is missing, read-only or no folder", path);
    free(drawing);
    gc_clip clip = {0};
    if (!status && sound)
        status = clip_read(sound, &clip, error);
    clip_free(&clip);
    return status;
}

/* ---- Sounds ------------------------------------------------------------------------------------------------------ */

static void free_tracks(tracks *t) {
    for (int k = 0; k < t->count; k++)
        clip_free(&t->item[k].clip);
}

/* Counts a track whose clip was made. */
static void keep(tracks *t, const char *name, gpuconv_status status) {
    t->item[t->count].name = name;
    t->count += status == GPUCONV_OK;
}

/* Makes the sounds: before, after or the sound through each response, and without `before` the responses. */
static gpuconv_status make_tracks(const gc_page_config *c, tracks *t, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    double peak = 0;
    if (c->before)
        keep(t, "before", status = clip_read(c->before, &t->item[0].clip, error));
    if (!status && c->after)
        keep(t, "after", status = clip_read(c->after, &t->item[1].clip, error));
    for (int k = 0; k < c->count && !status && t->count < TRACKS; k++) {
        gc_clip *clip = &t->item[t->count].clip;
        bool through = c->before && !c->after;
        status = through ? clip_convolve(&t->item[0].clip, c->figures[k].ir, clip, error)
                         : clip_of_response(c->figures[k].ir, clip, error);
        keep(t, gc_file_name(c->figures[k].path), status);
    }
    for (int k = 0; k < t->count; k++)
        peak = fmax(peak, t->item[k].clip.peak);
    t->gain = peak > 1 && isfinite(peak) ? 1 / peak : 1;
    return status;
}

/* Returns the factor that gives a sound the loudness of the quietest one. */
static double equal_gain(const tracks *t, int k) {
    double least = HUGE_VAL;
    for (int i = 0; i < t->count; i++)
        if (isfinite(t->item[i].clip.loudness))
            least = fmin(least, t->item[i].clip.loudness);
    double own = t->item[k].clip.loudness;
    return isfinite(own) && isfinite(least) ? pow(10, (least - own) / 20) : 1;
}

static void put_tracks(const tracks *t, FILE *to) {
    fputs("<h2>player</h2>\n<div id=\"player\">\n<button id=\"play\" disabled>loading</button>\n<div id=\"tracks\">\n",
          to);
    for (int k = 0; k < t->count; k++) {
        const gc_clip *clip = &t->item[k].clip;
        gc_print(to, "<button class=\"track\" data-equal=\"%.6f\"><kbd>%d</kbd> ", equal_gain(t, k), k + 1);
        gc_html_text(t->item[k].name, to);
        if (isfinite(clip->loudness))
            gc_print(to, " <small>%.1f LUFS</small>", clip->loudness + 20 * log10(t->gain));
        fprintf(to, "%s</button>\n", clip->cut ? " <small>(first 60 s)</small>" : "");
    }
    fputs("</div>\n<input id=\"seek\" type=\"range\" min=\"0\" max=\"1000\" value=\"0\" aria-label=\"position\">\n"
          "<output id=\"position\">0.0 s</output>\n"
          "<label><input id=\"equal\" type=\"checkbox\"> equal loudness</label>\n"
          "<p class=\"note\">Space plays and pauses, the number keys switch, e makes the loudness equal.",
          to);
    if (t->gain < 1)
        gc_print(to, " All sounds are %.1f dB quieter than the files, so that none clips.", -20 * log10(t->gain));
    fputs("</p>\n</div>\n", to);
}

static void put_sounds(const tracks *t, FILE *to) {
    for (int k = 0; k < t->count; k++) {
        fputs("<script type=\"application/octet-stream\" class=\"sound\">", to);
        clip_write(&t->item[k].clip, t->gain, to);
        fputs("</script>\n", to);
    }
}

/* ---- Drawings ---------------------------------------------------------------------------------------------------- */

/* Writes every SVG document of a text as an image of its own, so that the names of their parts do not meet. */
static void put_drawings(const char *svg, const char *name, FILE *to) {
    fputs("<div class=\"drawings\">\n", to);
    for (const char *next; svg && *svg; svg = next) {
        next = strstr(svg + 1, GC_SVG_BEGIN);
        next = next ? next : svg + strlen(svg);
        gc_html_put("<img alt=\"drawing of ", name, "\" src=\"data:image/svg+xml,", to);
        for (const char *c = svg; c < next; c++)
            if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
                strchr(" .,-_/:=;()", *c))
                fputc(*c, to);
            else
                fprintf(to, "%%%02X", (unsigned)(unsigned char)*c);
        fputs("\">\n", to);
    }
    fputs("</div>\n", to);
}

/* Writes a title, and panels below it. */
static gpuconv_status put_panels(const char *title, const gc_panel *panels, int count, FILE *to, gpuconv_error *error) {
    char *svg = NULL;
    gpuconv_status status = gc_plot_panels_svg(panels, count, &svg, error);
    if (!status) {
        gc_html_put("<h2>", title, "</h2>\n", to);
        put_drawings(svg, title, to);
    }
    free(svg);
    return status;
}

/* Writes the drawing of the sound before and after. */
static gpuconv_status put_before_after(const gc_page_config *c, FILE *to, gpuconv_error *error) {
    const gpuconv_job job = {.input = c->before, .output = c->after, .response = c->figures->path};
    char *svg = NULL;
    gpuconv_status status = gc_draw_job(&job, c->figures->ir, &svg, error);
    if (!status) {
        fputs("<h2>before and after</h2>\n", to);
        put_drawings(svg, "the sound before and after", to);
    }
    free(svg);
    return status;
}

/* Writes the drawing of all responses by band. */
static gpuconv_status put_bands(const gc_page_config *c, FILE *to, gpuconv_error *error) {
    const gc_positions positions = {c->figures, c->count, c->options->lateral};
    gc_band_charts *charts;
    gpuconv_status status = gc_band_charts_new(&positions, &charts, error);
    if (status)
        return status;
    status = put_panels("by band", gc_band_charts_panels(charts), GC_BAND_PANELS, to, error);
    gc_band_charts_free(charts);
    return status;
}

/* Writes the drawings of every response, all on the same scales. */
static gpuconv_status put_charts(const gc_page_config *c, FILE *to, gpuconv_error *error) {
    gc_charts **charts = gc_calloc(c->count, (int64_t)sizeof(gc_charts *));
    gpuconv_status status = charts ? GPUCONV_OK : gc_fail_memory(error, c->path);
    if (!status)
        status = gc_charts_new_all(c->figures, c->count, c->smoothing, charts, error);
    for (int k = 0; k < c->count && !status; k++) {
        gc_panel panels[GC_CHARTS_PANELS];
        gc_charts_panels(charts[k], panels);
        status = put_panels(gc_file_name(c->figures[k].path), panels, GC_CHARTS_PANELS, to, error);
    }
    for (int k = 0; charts && k < c->count; k++)
        gc_charts_free(charts[k]);
    free(charts);
    return status;
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

/* Writes the tables. */
static gpuconv_status put_figures(const gc_page_config *c, FILE *to, gpuconv_error *error) {
    gpuconv_report *report = NULL;
    if (gpuconv_report_new(&report))
        return gc_fail_memory(error, c->path);
    for (int k = 0; k < c->count; k++)
        gc_describe(&c->figures[k], c->options, c->count > 1, report);
    gc_describe_positions(&(gc_positions){c->figures, c->count, c->options->lateral}, report);
    gpuconv_status status = gc_report_write_html(report, to);
    gpuconv_report_free(report);
    return status ? gc_fail_memory(error, c->path) : GPUCONV_OK; /* the page is in memory */
}

/* Writes the beginning of a page. */
static void put_head(const char *title, const char *heading, FILE *to) {
    gc_html_put("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width\">\n"
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
                "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
                title, "</title>\n<style>\n", to);
    fputs(gc_page_style, to);
    gc_html_put("</style>\n</head>\n<body>\n<h1>", heading, "</h1>\n", to);
}

static gpuconv_status put_page(const gc_page_config *c, const tracks *t, FILE *to, gpuconv_error *error) {
    put_head(gc_file_name(c->figures->path),
             c->after       ? gc_file_name(c->after)
             : c->count > 1 ? "impulse responses"
                            : gc_file_name(c->figures->path),
             to);
    put_tracks(t, to);
    gpuconv_status status = c->after ? put_before_after(c, to, error) : GPUCONV_OK;
    if (!status && gc_positions_widest(&(gc_positions){c->figures, c->count, 0})->bands > 1)
        status = put_bands(c, to, error);
    if (!status)
        status = put_charts(c, to, error);
    if (!status)
        status = put_figures(c, to, error);
    fprintf(to, "<p class=\"note\">gpuconv %s</p>\n", gpuconv_version());
    put_sounds(t, to);
    fputs("<script>\n", to);
    fputs(gc_page_script, to);
    fputs("</script>\n</body>\n</html>\n", to);
    return status;
}

/* Returns what was written into a stream, to be freed; NULL after an error. */
static char *read_back(FILE *stream, int64_t *size) {
    *size = fflush(stream) == 0 && !ferror(stream) ? ftello(stream) : -1;
    char *text = gc_alloc(*size, 1);
    if (text && (fseeko(stream, 0, SEEK_SET) != 0 || (int64_t)fread(text, 1, (size_t)*size, stream) != *size)) {
        free(text);
        return NULL;
    }
    return text;
}

/* A page in the making, in memory. */
typedef struct page {
    const char *path;
    FILE *to;
} page;

/* Begins a page. It is made in memory and written at once, so that the reason of a failed write is known. */
static gpuconv_status page_begin(page *p, const char *path, gpuconv_error *error) {
    const int fd = gc_os_memory_file();
    *p = (page){path, fd < 0 ? NULL : fdopen(fd, "w+")};
    if (!p->to && fd >= 0)
        close(fd);
    return p->to ? GPUCONV_OK : gc_fail_memory(error, path);
}

/* Writes the file of a page, unless `status` is a failure, and frees its memory. */
static gpuconv_status page_end(page *p, gpuconv_status status, gpuconv_error *error) {
    int64_t size = 0;
    char *text = NULL;
    if (!status && !(p->to && (text = read_back(p->to, &size))))
        status = gc_fail_memory(error, p->path);
    if (p->to && fclose(p->to) != 0 && !status)
        status = gc_fail_memory(error, p->path);
    if (!status)
        status = gc_output_file_write(p->path, GC_OUTPUT_USER_PATH, text, (size_t)size, error);
    free(text);
    return status;
}

gpuconv_status gc_page_write(const gc_page_config *c, gpuconv_error *error) {
    tracks t = {.gain = 1};
    page p = {c->path, NULL};
    gpuconv_status status = make_tracks(c, &t, error);
    if (!status)
        status = page_begin(&p, c->path, error);
    if (!status)
        status = put_page(c, &t, p.to, error);
    status = page_end(&p, status, error);
    free_tracks(&t);
    return status;
}

gpuconv_status gc_page_write_panels(const char *path, const char *title, const gc_panel *panels, int count,
                                    const gpuconv_report *report, gpuconv_error *error) {
    page p;
    gpuconv_status status = page_begin(&p, path, error);
    if (!status) {
        put_head(gc_file_name(path), title, p.to);
        status = put_panels("drawings", panels, count, p.to, error);
    }
    if (!status && gc_report_write_html(report, p.to))
        status = gc_fail_memory(error, path);
    if (!status)
        fprintf(p.to, "<p class=\"note\">gpuconv %s</p>\n</body>\n</html>\n", gpuconv_version());
    return page_end(&p, status, error);
}
