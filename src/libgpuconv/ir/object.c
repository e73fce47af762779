/* The response object: creation, also of matrices from samples in memory, queries and routing. A response is immutable:
 * each step makes a new one. */
#include "object.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/dsp/finite.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes a response without taps. Returns NULL without memory. */
static gpuconv_ir *new_without_taps(int inputs, int outputs, int planes, int routes, int64_t frames, double rate) {
    gpuconv_ir *ir = gc_calloc(1, sizeof *ir);
    if (!ir)
        return NULL;
    ir->route = gc_calloc(routes, sizeof *ir->route);
    atomic_init(&ir->references, 1);
    ir->rate = rate;
    ir->frames = frames;
    ir->inputs = inputs;
    ir->outputs = outputs;
    ir->planes = planes;
    ir->routes = routes;
    if (!ir->route) {
        gpuconv_ir_free(ir);
        return NULL;
    }
    return ir;
}

static gpuconv_ir *new_with_taps(int inputs, int outputs, int planes, int routes, int64_t frames, double rate,
                                 void *(*allocate)(int64_t count, int64_t size)) {
    gpuconv_ir *ir = new_without_taps(inputs, outputs, planes, routes, frames, rate);
    int64_t taps;
    if (ir && !__builtin_mul_overflow((int64_t)planes, frames, &taps))
        ir->taps = allocate(taps, sizeof *ir->taps);
    if (ir && !ir->taps) {
        gpuconv_ir_free(ir);
        return NULL;
    }
    return ir;
}

gpuconv_ir *gc_ir_blank(int inputs, int outputs, int planes, int routes, int64_t frames, double rate) {
    return new_with_taps(inputs, outputs, planes, routes, frames, rate, gc_calloc);
}

gpuconv_ir *gc_ir_unfilled(int inputs, int outputs, int planes, int routes, int64_t frames, double rate) {
    return new_with_taps(inputs, outputs, planes, routes, frames, rate, gc_alloc);
}

gpuconv_ir *gc_ir_own(float *taps, int channels, int64_t frames, double rate) {
    gpuconv_ir *ir = new_without_taps(1, channels, channels, channels, frames, rate);
    if (!ir) {
        free(taps);
        return NULL;
    }
    ir->taps = taps;
    for (int c = 0; c < channels; c++)
        ir->route[c] = (gc_route){0, c, c};
    return ir;
}

gpuconv_status gc_ir_check_memory(int64_t planes, double frames, double work, gpuconv_error *error) {
    const double bytes = (double)planes * frames * (double)sizeof(float) + work;
    if (bytes <= 0x1p26) /* up to 64 MiB are allocated without asking the system, which takes time */
        return GPUCONV_OK;
    const double left = (double)gc_memory_available();
    if (bytes <= left && frames < 0x1p53)
        return GPUCONV_OK;
    return gc_fail(error, GPUCONV_ERROR_MEMORY,
                   "a response of %.0f frames and %lld channels takes %.3g GB of memory to make, and %.3g GB are free; "
                   "shorten it, or lower the rate",
                   frames, (long long)planes, bytes * 1e-9, left * 1e-9);
}

gpuconv_ir *gc_ir_hold(const gpuconv_ir *ir) {
    gpuconv_ir *held = (gpuconv_ir *)ir; /* only the reference count changes */
    atomic_fetch_add(&held->references, 1);
    return held;
}

void gpuconv_ir_free(gpuconv_ir *ir) {
    if (!ir || atomic_fetch_sub(&ir->references, 1) != 1)
        return;
    if (ir->taps_owner)
        gpuconv_ir_free(ir->taps_owner);
    else
        free(ir->taps);
    free(ir->route);
    free(ir->history);
    free(ir);
}

/* Gives a new response, or NULL, the history of another one. Frees it and returns NULL without memory. */
static gpuconv_ir *with_history(gpuconv_ir *made, const gpuconv_ir *ir) {
    if (!made || !ir->history || (made->history = strdup(ir->history)))
        return made;
    gpuconv_ir_free(made);
    return NULL;
}

gpuconv_ir *gc_ir_like(const gpuconv_ir *ir, int64_t frames, double rate) {
    gpuconv_ir *made = gc_ir_blank(ir->inputs, ir->outputs, ir->planes, ir->routes, frames, rate);
    if (!made)
        return NULL;
    memcpy(made->route, ir->route, (size_t)ir->routes * sizeof *made->route);
    made->lead = ir->lead;
    made->ring = ir->ring;
    made->routed = ir->routed;
    return with_history(made, ir);
}

static bool append_history(gpuconv_ir *ir, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

static bool append_history(gpuconv_ir *ir, const char *format, va_list args) {
    char text[256];
    size_t before = ir->history ? strlen(ir->history) : 0;
    int n = gc_vformat(text, sizeof text, format, args);
    if (n < 0 || !*text)
        return true;
    char *longer = gc_calloc((int64_t)before + (int64_t)sizeof text + 2, 1);
    if (!longer)
        return false;
    (void)snprintf(longer, before + sizeof text + 2, "%s%s%s", before ? ir->history : "", before ? "; " : "", text);
    free(ir->history);
    ir->history = longer;
    return true;
}

bool gc_ir_append_history(gpuconv_ir *ir, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool ok = append_history(ir, format, args);
    va_end(args);
    return ok;
}

gpuconv_status gc_ir_finish(gpuconv_ir *made, gpuconv_ir **result, gpuconv_error *error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    bool ok = made && append_history(made, format, args);
    va_end(args);
    if (!ok) {
        gpuconv_ir_free(made);
        return gc_fail_memory(error, "the response");
    }
    *result = made;
    return GPUCONV_OK;
}

gpuconv_status gpuconv_ir_new(const float *const *taps, int channels, int64_t frames, double rate, gpuconv_ir **ir,
                              gpuconv_error *error) {
    if (!gc_begin(ir, taps, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (channels < 1 || channels > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has 1 to %d channels, not %d", GC_MAX_CHANNELS,
                       channels);
    if (frames < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has at least one frame");
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    gpuconv_status fits = gc_ir_check_memory(channels, (double)frames, 0, error);
    if (fits)
        return fits;
    for (int c = 0; c < channels; c++) {
        if (!taps[c])
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "channel %d of a response has no samples", c + 1);
        int64_t first = gc_find_not_finite(taps[c], frames);
        if (first < frames)
            return gc_fail(error, GPUCONV_ERROR_FORMAT, "the response is not finite at frame %lld of channel %d",
                           (long long)first, c + 1);
    }
    float *own = gc_alloc(frames, channels * (int64_t)sizeof *own);
    for (int c = 0; own && c < channels; c++)
        memcpy(own + c * frames, taps[c], (size_t)frames * sizeof *own);
    *ir = own ? gc_ir_own(own, channels, frames, rate) : NULL;
    return *ir ? GPUCONV_OK : gc_fail_memory(error, "the response");
}

/* The shape of a routed response. */
typedef struct routing {
    int inputs, outputs;
} routing;

static int compare_routes(const void *a, const void *b) {
    const gc_route *x = a, *y = b;
    return x->output != y->output ? (x->output > y->output) - (x->output < y->output)
                                  : (x->input > y->input) - (x->input < y->input);
}

/* Makes a response of other routes, and planes of another length, from the taps and the history of `ir`, which it
 * shares. Returns NULL without memory. */
static gpuconv_ir *share_taps(const gpuconv_ir *ir, routing w, int planes, int routes) {
    const int64_t frames = ir->planes * ir->frames / planes;
    gpuconv_ir *made = new_without_taps(w.inputs, w.outputs, planes, routes, frames, ir->rate);
    if (!made)
        return NULL;
    made->taps_owner = gc_ir_hold(ir);
    made->taps = ir->taps;
    made->lead = ir->lead;
    made->ring = ir->ring;
    return with_history(made, ir);
}

/* Makes a response with these routes that shares the taps of `ir`. Returns MEMORY. */
static gpuconv_status make_routed(const gpuconv_ir *ir, routing w, const gc_route *route, int routes, const char *note,
                                  gpuconv_ir **routed, gpuconv_error *error) {
    gpuconv_ir *made = share_taps(ir, w, ir->planes, routes);
    if (made) {
        memcpy(made->route, route, (size_t)routes * sizeof *route);
        qsort(made->route, (size_t)routes, sizeof *route, compare_routes);
        made->routed = true;
    }
    return gc_ir_finish(made, routed, error, "%s", note);
}

gpuconv_status gc_ir_unpack(const gpuconv_ir *ir, int inputs, gpuconv_ir **unpacked, gpuconv_error *error) {
    *unpacked = NULL;
    if (ir->history)
        return gc_fail(error, GPUCONV_ERROR_STATE,
                       "a packed response is routed before any edit, which would shift or mix its pieces; this one was "
                       "%s",
                       ir->history);
    if (ir->frames % inputs != 0)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%lld frames of response do not part into one equal piece for each of %d inputs",
                       (long long)ir->frames, inputs);
    /* piece i of channel o lies at o x frames + i x frames / inputs: plane o x inputs + i of the new response */
    const int planes = ir->planes * inputs;
    gpuconv_ir *made = share_taps(ir, (routing){1, planes}, planes, planes);
    for (int p = 0; made && p < planes; p++)
        made->route[p] = (gc_route){0, p, p};
    return gc_ir_finish(made, unpacked, error, "unpacked into %d channels of %lld frames", planes,
                        (long long)(ir->frames / inputs));
}

/* Fills in the routes of gpuconv_ir_route. Returns their number; 0: the channels do not fit. */
static int fill_auto_routes(int channels, int inputs, gc_route *route, routing *w) {
    int c = channels;
    if (inputs == 1) {
        w->outputs = c;
        for (int i = 0; i < c; i++)
            route[i] = (gc_route){0, i, i};
        return c;
    }
    if (c == 1 || c == inputs) {
        w->outputs = inputs;
        for (int i = 0; i < inputs; i++)
            route[i] = (gc_route){i, i, c == 1 ? 0 : i};
        return inputs;
    }
    if (inputs == 2 && c == 4) {
        w->outputs = 2;
        for (int i = 0; i < 4; i++)
            route[i] = (gc_route){i / 2, i % 2, i};
        return 4;
    }
    return 0;
}

static gpuconv_status route_auto(const gpuconv_ir *ir, int inputs, gc_route *route, gpuconv_ir **routed,
                                 gpuconv_error *error) {
    int c = ir->planes;
    routing w = {inputs, 0};
    int routes = fill_auto_routes(c, inputs, route, &w);
    if (!routes)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%d channels of response do not fit %d of input; 1 or %d%s would, and any number fits a mono "
                       "input%s",
                       c, inputs, inputs, inputs == 2 ? " or 4 (true stereo)" : "",
                       c % inputs == 0 ? "; as a full matrix it fits with its layout given: source or output" : "");
    return make_routed(
        ir, w, route, routes,
        inputs == 2 && c == 4 ? "channels read as left-left, left-right, right-left, right-right (layout source)" : "",
        routed, error);
}

/* Routes true stereo for one input, which feeds both of its inputs: the taps of both routes into an output are added.
 */
static gpuconv_status route_one_to_stereo(const gpuconv_ir *ir, gpuconv_ir **routed, gpuconv_error *error) {
    bool finite = true;
    gpuconv_ir *made = gc_ir_blank(1, 2, 2, 2, ir->frames, ir->rate);
    for (int o = 0; made && o < 2; o++) {
        const float *left = gc_ir_plane(ir, o), *right = gc_ir_plane(ir, 2 + o);
        float *to = made->taps + (int64_t)o * ir->frames;
        for (int64_t i = 0; i < ir->frames; i++) {
            to[i] = left[i] + right[i];
            finite &= isfinite(to[i]) != 0;
        }
        made->route[o] = (gc_route){0, o, o};
        made->lead = ir->lead;
        made->ring = ir->ring;
        made->routed = true;
    }
    made = with_history(made, ir);
    if (made && !finite) {
        gpuconv_ir_free(made);
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "the sum of the channels into one output is not finite");
    }
    return gc_ir_finish(made, routed, error,
                        "4 channels taken as true stereo: the one input feeds both of its inputs, and the output is "
                        "stereo (layout source: 4 outputs)");
}

static gpuconv_status route_matrix(const gpuconv_ir *ir, int inputs, gpuconv_layout layout, gc_route *route,
                                   gpuconv_ir **routed, gpuconv_error *error) {
    int c = ir->planes, outputs = c / inputs;
    char note[200];
    if (c % inputs != 0)
        return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                       "%d channels of response are no full matrix for %d of input; a multiple of %d would be", c,
                       inputs, inputs);
    for (int i = 0; i < c; i++)
        route[i] = layout == GPUCONV_LAYOUT_SOURCE ? (gc_route){i / outputs, i % outputs, i}
                                                   : (gc_route){i % inputs, i / inputs, i};
    if (inputs == 2 && outputs == 2)
        (void)snprintf(note, sizeof note, "channels read as left-left, %s, right-right (layout %s)",
                       layout == GPUCONV_LAYOUT_SOURCE ? "left-right, right-left" : "right-left, left-right",
                       layout == GPUCONV_LAYOUT_SOURCE ? "source" : "output");
    else
        (void)snprintf(note, sizeof note, "channels read as %d input%s x %d outputs, %s", inputs,
                       inputs == 1 ? "" : "s", outputs,
                       layout == GPUCONV_LAYOUT_SOURCE ? "every output of the first input first"
                                                       : "every input of the first output first");
    return make_routed(ir, (routing){inputs, outputs}, route, c, note, routed, error);
}

/* Routes the files of HeSuVi to two ears. */
static gpuconv_status route_hesuvi(const gpuconv_ir *ir, int inputs, gc_route *route, gpuconv_ir **routed,
                                   gpuconv_error *error) {
    /* of each number of inputs their places: left, side left, back left, centre, and the same letters for the right */
    static const char *const places[] = {"c", "lr", "lrc", "lrbB", "lrcsS", "lrccsS", "lrcbBsS", "lrccbBsS"};
    static const char letters[] = "lsbcrSB"; /* the right ones follow four places on */
    if ((ir->planes != 7 && ir->planes != 14) || inputs > 8)
        return gc_fail(
            error, GPUCONV_ERROR_TOPOLOGY,
            "%d channels of response and %d of input; the layout hesuvi needs a response of 7 or 14 channels "
            "and 1 to 8 channels of input (mono to 7.1)",
            ir->planes, inputs);
    for (int i = 0; i < inputs; i++) {
        const int place = (int)(strchr(letters, places[inputs - 1][i]) - letters), left = place % 4;
        const int near = 2 * left + (ir->planes == 14 && place >= 4 ? 7 : 0);
        const int far = left == 3 ? (ir->planes == 14 ? 13 : 6) : near + 1;
        route[2 * i] = (gc_route){i, place >= 4, near};
        route[2 * i + 1] = (gc_route){i, place < 4, far};
    }
    return make_routed(ir, (routing){inputs, 2}, route, 2 * inputs, "channels read as HeSuVi's", routed, error);
}

gpuconv_status gpuconv_ir_route_as(const gpuconv_ir *ir, int inputs, gpuconv_layout layout, gpuconv_ir **routed,
                                   gpuconv_error *error) {
    if (!gc_begin(routed, ir, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    if (inputs < 1 || inputs > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "an input has 1 to %d channels, not %d", GC_MAX_CHANNELS, inputs);
    if ((unsigned)layout > GPUCONV_LAYOUT_HESUVI)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "unknown layout %d", (int)layout);
    if (ir->routed) {
        if (inputs != ir->inputs)
            return gc_fail(error, GPUCONV_ERROR_TOPOLOGY,
                           "the matrix has %d input%s, the input has %d channel%s; use an input of %d channel%s",
                           ir->inputs, ir->inputs == 1 ? "" : "s", inputs, inputs == 1 ? "" : "s", ir->inputs,
                           ir->inputs == 1 ? "" : "s");
        *routed = gc_ir_hold(ir);
        return GPUCONV_OK;
    }
    if (layout == GPUCONV_LAYOUT_STEREO && inputs == 1 && ir->planes == 4)
        return route_one_to_stereo(ir, routed, error);
    if (layout == GPUCONV_LAYOUT_PACKED) {
        gpuconv_ir *unpacked;
        gpuconv_status status = gc_ir_unpack(ir, inputs, &unpacked, error);
        if (!status)
            status = gpuconv_ir_route_as(unpacked, inputs, GPUCONV_LAYOUT_OUTPUT, routed, error);
        gpuconv_ir_free(unpacked);
        return status;
    }
    int64_t most = (int64_t)ir->planes * inputs;
    gc_route *route = gc_calloc(gc_max(most, 2 * GC_MAX_CHANNELS), sizeof *route);
    if (!route)
        return gc_fail_memory(error, "the routes");
    gpuconv_status status;
    if (layout == GPUCONV_LAYOUT_AUTO || layout == GPUCONV_LAYOUT_STEREO)
        status = route_auto(ir, inputs, route, routed, error);
    else if (layout == GPUCONV_LAYOUT_HESUVI)
        status = route_hesuvi(ir, inputs, route, routed, error);
    else
        status = route_matrix(ir, inputs, layout, route, routed, error);
    free(route);
    return status;
}

gpuconv_status gpuconv_ir_route(const gpuconv_ir *ir, int inputs, gpuconv_ir **routed, gpuconv_error *error) {
    return gpuconv_ir_route_as(ir, inputs, GPUCONV_LAYOUT_AUTO, routed, error);
}

int gpuconv_ir_inputs(const gpuconv_ir *ir) {
    return ir ? ir->inputs : 0;
}

int gpuconv_ir_outputs(const gpuconv_ir *ir) {
    return ir ? ir->outputs : 0;
}

int gpuconv_ir_routes(const gpuconv_ir *ir) {
    return ir ? ir->routes : 0;
}

int64_t gpuconv_ir_frames(const gpuconv_ir *ir) {
    return ir ? ir->frames : 0;
}

double gpuconv_ir_rate(const gpuconv_ir *ir) {
    return ir ? ir->rate : 0;
}

int64_t gpuconv_ir_lead(const gpuconv_ir *ir) {
    return ir ? ir->lead : 0;
}

const float *gpuconv_ir_taps(const gpuconv_ir *ir, int input, int output) {
    for (int r = 0; ir && r < ir->routes; r++)
        if (ir->route[r].input == input && ir->route[r].output == output)
            return gc_ir_plane(ir, ir->route[r].plane);
    return NULL;
}

const char *gpuconv_ir_history(const gpuconv_ir *ir) {
    return ir && ir->history ? ir->history : "";
}

/* ---- Matrices of samples ----------------------------------------------------------------------------------------- */

/* Checks shape and samples. *routes gets the number of responses. Returns ARGUMENT, FORMAT, MEMORY. */
static gpuconv_status check(const float *const *taps, int inputs, int outputs, int64_t frames, double rate,
                            int64_t *routes, gpuconv_error *error) {
    *routes = 0;
    if (inputs < 1 || inputs > GC_MAX_CHANNELS || outputs < 1 || outputs > GC_MAX_CHANNELS)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a matrix has 1 to %d inputs and outputs, not %d x %d",
                       GC_MAX_CHANNELS, inputs, outputs);
    if (frames < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has at least one frame, not %lld", (long long)frames);
    if (!gc_is_rate(rate))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a response has a rate of 1 to %d Hz, not %g", GC_MAX_RATE, rate);
    for (int i = 0; i < inputs; i++)
        for (int o = 0; o < outputs; o++) {
            const float *from = taps[(int64_t)i * outputs + o];
            int64_t first = from ? gc_find_not_finite(from, frames) : frames;
            if (first < frames)
                return gc_fail(error, GPUCONV_ERROR_FORMAT,
                               "the response from input %d to output %d is not finite at frame %lld", i + 1, o + 1,
                               (long long)first);
            *routes += from != NULL;
        }
    return gc_ir_check_memory(*routes, (double)frames, 0, error);
}

gpuconv_status gpuconv_ir_new_matrix(const float *const *taps, int inputs, int outputs, int64_t frames, double rate,
                                     gpuconv_ir **ir, gpuconv_error *error) {
    int64_t routes;
    if (!gc_begin(ir, taps, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_status status = check(taps, inputs, outputs, frames, rate, &routes, error);
    if (status)
        return status;
    gpuconv_ir *made = gc_ir_blank(inputs, outputs, (int)routes, (int)routes, frames, rate);
    if (!made)
        return gc_fail_memory(error, "the matrix");
    made->routed = true;
    int r = 0;
    for (int o = 0; o < outputs; o++)
        for (int i = 0; i < inputs; i++) {
            const float *from = taps[(int64_t)i * outputs + o];
            if (!from)
                continue;
            memcpy(made->taps + r * frames, from, (size_t)frames * sizeof *from);
            made->route[r] = (gc_route){i, o, r};
            r++;
        }
    *ir = made;
    return GPUCONV_OK;
}
