/* Writes the page: style and script are files of this folder that the build makes into texts. */
#include "page.h"

#include "band_charts.h"
#include "charts.h"
#include "clip.h"
#include "describe.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/output_file.h"
#include "libgpuconv/file/draw.h"
#include "libgpuconv/ir/object.h"
#include "page_text.h"
#include "report_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static const char *file_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

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
        status = gc_clip_read(sound, &clip, error);
    gc_clip_free(&clip);
    return status;
}

/* ---- Sounds ------------------------------------------------------------------------------------------------------ */

static void free_tracks(tracks *t) {
    for (int k = 0; k < t->count; k++)
        gc_clip_free(&t->item[k].clip);
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
        keep(t, "before", status = gc_clip_read(c->before, &t->item[0].clip, error));
    if (!status && c->after)
        keep(t, "after", status = gc_clip_read(c->after, &t->item[1].clip, error));
    for (int k = 0; k < c->count && !status && t->count < TRACKS; k++) {
        gc_clip *clip = &t->item[t->count].clip;
        bool through = c->before && !c->after;
        status = through ? gc_clip_convolve(&t->item[0].clip, c->figures[k].ir, clip, error)
                         : gc_clip_of_response(c->figures[k].ir, clip, error);
        keep(t, file_name(c->figures[k].path), status);
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
        gc_clip_write(&t->item[k].clip, t->gain, to);
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
        fputs("<img alt=\"drawing of ", to);
        gc_html_text(name, to);
        fputs("\" src=\"data:image/svg+xml,", to);
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
        fputs("<h2>", to);
        gc_html_text(title, to);
        fputs("</h2>\n", to);
        put_drawings(svg, title, to);
    }
    free(svg);
    return status;
}

/* Writes the drawing of the sound before and after. */
static gpuconv_status put_before_after(const gc_page_config *c, FILE *to, gpuconv_error *error) {
    const gc_drawing drawing = {.input = c->before, .output = c->after, .response = c->figures->path};
    char *svg = NULL;
    gpuconv_status status = gc_draw_files(&drawing, c->figures->ir, &svg, error);
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
    double span = gc_charts_span(c->figures, c->count);
    for (int k = 0; k < c->count && !status; k++)
        status = gc_charts_new(&c->figures[k], c->smoothing, span, &charts[k], error);
    if (!status)
        gc_charts_share_scales(charts, c->count);
    for (int k = 0; k < c->count && !status; k++) {
        gc_panel panels[GC_CHARTS_PANELS];
        gc_charts_panels(charts[k], panels);
        status = put_panels(file_name(c->figures[k].path), panels, GC_CHARTS_PANELS, to, error);
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

static gpuconv_status put_page(const gc_page_config *c, const tracks *t, FILE *to, gpuconv_error *error) {
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>",
          to);
    gc_html_text(file_name(c->figures->path), to);
    fputs("</title>\n<style>\n", to);
    fputs(gc_page_style, to);
    fputs("</style>\n</head>\n<body>\n<h1>", to);
    gc_html_text(c->after ? file_name(c->after) : c->count > 1 ? "impulse responses" : file_name(c->figures->path), to);
    fputs("</h1>\n", to);
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

/* The page is made in memory and written at once, so that the reason of a failed write is known. */
gpuconv_status gc_page_write(const gc_page_config *c, gpuconv_error *error) {
    tracks t = {.gain = 1};
    char *page = NULL;
    int64_t size = 0;
    gpuconv_status status = make_tracks(c, &t, error);
    const int fd = status ? -1 : gc_os_memory_file();
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w+");
    if (to)
        status = put_page(c, &t, to, error);
    else if (fd >= 0)
        close(fd);
    if (!status && !(to && (page = read_back(to, &size))))
        status = gc_fail_memory(error, c->path);
    if (to && fclose(to) != 0 && !status)
        status = gc_fail_memory(error, c->path);
    if (!status)
        status = gc_output_file_write(c->path, GC_OUTPUT_USER_PATH, page, (size_t)size, error);
    free(page);
    free_tracks(&t);
    return status;
}
