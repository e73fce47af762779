/*
 * The rendering of moving sources. Over hop h the delayed input x of a channel goes over from response h to response
 * h + 1 in a straight line; their spectra meet in the sum over all channels, of which each receiver needs one inverse
 * transform:
 *
 *      Y_h = sum over channels of F(x (1 - i / hop)) H_h + F(x i / hop) H_(h+1)
 *
 * A response is the weighted sum of three measurements without their delays (ir/sofa_respond.c). These do not depend on
 * the direction, so that their spectra are made once, and a response is a sum of spectra. Ambisonics have the same
 * form: their channels go over from one turned head to the next, and the responses stay.
 */
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/dsp/motion_kernels.h"
#include "motion.h"
#include "path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The scratch memory of a thread: frames of a hop, and spectra of a group. */
typedef struct scratch {
    float *x, *ramped;        /* hop */
    float *signal, *response; /* 2 x GC_MOTION_GROUP spectra */
} scratch;

static int64_t scratch_floats(const gpuconv_motion *m) {
    return 2 * gc_round_up(m->hop, 16) + 4 * GC_MOTION_GROUP * m->floats;
}

static scratch scratch_of(const gpuconv_motion *m, int worker) {
    float *at = m->scratch + worker * scratch_floats(m);
    const int64_t wide = gc_round_up(m->hop, 16), spectra = 2 * GC_MOTION_GROUP * m->floats;
    return (scratch){at + spectra * 2, at + spectra * 2 + wide, at, at + spectra};
}

/* Writes the responses of a measurement without their delays: receivers x taps, zeroed. Returns MEMORY, CANCELLED. */
static gpuconv_status align(const gpuconv_motion *m, int response, float *taps, gpuconv_error *error) {
    const gc_blend alone = {.measurement = {response, response, response}, .weight = {1, 0, 0}, .gain = 1};
    float *work = gc_alloc(m->taps, sizeof *work);
    gpuconv_status status = work ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
    for (int r = 0; r < m->receivers && !status; r++)
        status = gc_sofa_align(m->set, &alone, r, (double)(m->onset + GC_HALF_SINC),
                               (gc_span){taps + r * m->taps, work, m->taps}, error);
    free(work);
    return status;
}

static gpuconv_status align_for_gpu(void *motion, int response, float *taps, gpuconv_error *error) {
    return align(motion, response, taps, error);
}

/* Opens the GPU, once lengths and hops are known. Returns UNSUPPORTED, DEVICE, MEMORY, CANCELLED. */
static gpuconv_status open_gpu(gpuconv_motion *m, gpuconv_error *error) {
    const gc_motion_options options = {.channels = m->channels,
                                       .receivers = m->receivers,
                                       .responses = m->responses,
                                       .hop = m->hop,
                                       .hops = m->hops,
                                       .points = m->points,
                                       .taps = m->taps,
                                       .past = m->past,
                                       .device = m->config.device,
                                       .filters = gc_delay_line_filters(m->line),
                                       .response = align_for_gpu,
                                       .context = m};
    gpuconv_status status = m->backend->motion->open(&options, &m->gpu, error);
    if (status)
        return status;
    m->mixture = gc_calloc((m->hops + 1) * m->channels, sizeof *m->mixture);
    m->input = m->pinned = m->backend->alloc_pinned(options.device, m->channels * m->width);
    return m->mixture && m->pinned ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
}

void gc_motion_close_gpu(gpuconv_motion *m) {
    if (!m->gpu)
        return;
    m->backend->free_pinned(m->config.device, m->pinned);
    m->backend->motion->free(m->gpu);
}

gpuconv_status gc_motion_allocate(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t receivers = m->receivers, chunk = gc_motion_chunk(m), moments = (m->hops + m->kept) * m->channels;
    m->points = gc_power_of_two(gc_max(GC_FFT_MIN_POINTS, m->hop + m->taps - 1));
    m->before = m->backend ? 0 : m->past;
    m->width = m->backend ? chunk : m->past + gc_round_up(gc_max(m->past, 1), chunk); /* the past seldom moves */
    const double spectra =
        m->backend ? 0 : (double)m->responses * m->receivers + (double)(m->hops * m->groups) * m->receivers;
    gpuconv_status status =
        gc_ir_check_memory(receivers, (double)(chunk + m->taps),
                           4 * spectra * (double)m->points + 4.0 * (double)m->channels * (double)m->width, error);
    if (status)
        return status;
    m->simd = gc_simd_best();
    m->line = gc_delay_line_new();
    m->blend = gc_calloc(moments, sizeof *m->blend);
    m->delay = gc_calloc(moments, receivers * (int64_t)sizeof *m->delay);
    m->slot = gc_calloc(moments, sizeof *m->slot);
    m->output = gc_calloc(receivers, (chunk + m->taps) * (int64_t)sizeof *m->output);
    m->placed = gc_alloc(m->channels, 3 * (int64_t)sizeof *m->placed);
    m->capacity = 2 * chunk; /* enough if all is fetched in time */
    m->ready = gc_calloc(receivers, m->capacity * (int64_t)sizeof *m->ready);
    if (!m->line || !m->blend || !m->delay || !m->slot || !m->output || !m->placed || !m->ready)
        return gc_fail_memory(error, "the moving sources");
    for (int64_t i = 0; i < 3 * m->channels; i++)
        atomic_init(&m->placed[i], (double)NAN);
    if (m->backend)
        return open_gpu(m, error);
    m->fft = gc_fft_new(m->simd, m->points);
    if (!m->fft)
        return gc_fail_memory(error, "the moving sources");
    m->floats = gc_fft_floats(m->fft);
    m->spectrum = gc_calloc(m->responses, (int64_t)sizeof *m->spectrum);
    m->energy = gc_calloc((int64_t)m->responses * receivers, sizeof *m->energy);
    m->turn = m->path->ambisonic ? gc_calloc(moments * m->channels, sizeof *m->turn) : NULL;
    m->input = gc_calloc(m->channels, m->width * (int64_t)sizeof *m->input);
    m->scratch = gc_calloc(gc_pool_threads(m->pool), scratch_floats(m) * (int64_t)sizeof *m->scratch);
    m->sums = gc_calloc(m->hops * m->groups * receivers, m->floats * (int64_t)sizeof *m->sums);
    const bool ok = m->spectrum && m->energy && m->input && m->scratch && m->sums;
    return ok && (m->turn || !m->path->ambisonic) ? GPUCONV_OK : gc_fail_memory(error, "the moving sources");
}

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Finds the measurements and the delays of a channel at a moment. */
static void place(gpuconv_motion *m, int64_t moment, int channel, double time, const gc_rotation *head) {
    gc_blend *b = &m->blend[moment * m->channels + channel];
    double *delay = m->delay + (moment * m->channels + channel) * m->receivers, room[3], at[3];
    const double distance = gc_motion_find_place(m, time, channel, (const double[3]){0}, room);
    gc_rotate_to_head(head, room, at);
    gc_sofa_blend(m->set, at, room, m->config.interpolate, m->config.by_distance, b);
    for (int r = 0; r < m->receivers; r++) {
        (void)gc_sofa_delay(m->set, b, r, &delay[r], NULL); /* the onsets are known */
        delay[r] = fmin(fmax(delay[r] + distance - (double)m->base, 0), (double)m->span);
    }
    gc_motion_blend *mixture = m->mixture ? &m->mixture[moment * m->channels + channel] : NULL;
    for (int k = 0; k < 3 && mixture; k++) {
        mixture->response[k] = b->measurement[k];
        mixture->weight[k] = (float)b->weight[k];
        mixture->gain = (float)b->gain;
    }
}

/* Finds the places of a group at a moment: pool task `moment x groups + group`. The first moment of a chunk is the last
 * one of the chunk before. */
static void find_group(void *context, int64_t index, int worker) {
    gpuconv_motion *m = context;
    const int64_t moment = index / m->groups, group = index % m->groups;
    const double time = gc_motion_time(m, moment);
    const gc_rotation head = gc_motion_head(m, time);
    (void)worker;
    if (moment == 0 && m->chunk > 0)
        return;
    if (m->path->ambisonic) {
        if (group == 0)
            (void)gc_rotate_harmonics(gc_ambisonic_order(m->channels), &head, m->config.ambisonics,
                                      m->turn + moment * m->channels * m->channels);
        return;
    }
    for (int64_t c = group * GC_MOTION_GROUP; c < gc_min(m->channels, (group + 1) * GC_MOTION_GROUP); c++)
        place(m, moment, (int)c, time, &head);
}

gpuconv_status gc_motion_find_places(gpuconv_motion *m, gpuconv_error *error) {
    gpuconv_status status = GPUCONV_OK;
    if (m->placed_chunks > m->chunk)
        return status;
    if (m->room)
        status = gc_motion_room_find(m, error);
    else
        gc_pool_run(m->pool, find_group, m, (m->hops + 1) * m->groups);
    m->placed_chunks = m->chunk + !status;
    return status;
}

gpuconv_status gc_motion_make_spectra(gpuconv_motion *m, int response, gpuconv_error *error) {
    if (m->spectrum[response])
        return GPUCONV_OK;
    float *made = gc_calloc(m->receivers, m->floats * (int64_t)sizeof *made);
    float *taps = gc_calloc(m->receivers, m->taps * (int64_t)sizeof *taps);
    gpuconv_status status =
        made && taps ? align(m, response, taps, error) : gc_fail_memory(error, "the moving sources");
    for (int r = 0; r < m->receivers && !status; r++) {
        const float *const from[3] = {made + r * m->floats, made + r * m->floats, made + r * m->floats};
        const float weight[3] = {1, 0, 0}, *row = taps + r * m->taps;
        gc_fft_forward_rows(m->fft, &row, m->taps, (float)(2 / (double)m->points), made + r * m->floats);
        m->energy[(int64_t)response * m->receivers + r] =
            m->simd->motion->blend(from, weight, m->floats, made + r * m->floats);
    }
    free(taps);
    if (status)
        free(made);
    else
        m->spectrum[response] = made;
    return status;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static bool same_blend(const gc_blend *a, const gc_blend *b) {
    bool same = a->gain == b->gain;
    for (int k = 0; k < 3; k++)
        same = same && a->measurement[k] == b->measurement[k] && a->weight[k] == b->weight[k];
    return same;
}

/* Makes the spectrum of a blend at a receiver, in `work` or that of a measurement. *gain gets what it has to be
 * multiplied by: that keeps the mean energy of the measurements, and that of the distance. */
static const float *blend_spectra(const gpuconv_motion *m, const gc_blend *b, int receiver, float *work, float *gain) {
    const double most = 4; /* of the scale: a sum that nearly cancels is not raised to noise */
    const float *from[3], weight[3] = {(float)b->weight[0], (float)b->weight[1], (float)b->weight[2]};
    double energy = 0;
    for (int k = 0; k < 3; k++) {
        from[k] = m->spectrum[b->measurement[k]] + receiver * m->floats;
        energy += b->weight[k] * (double)m->energy[(int64_t)b->measurement[k] * m->receivers + receiver];
    }
    *gain = (float)b->gain;
    if (b->weight[0] == 1)
        return from[0];
    const double sum = (double)m->simd->motion->blend(from, weight, m->floats, work);
    *gain = (float)(sum > 0 ? fmin(sqrt(energy / sum), most) * b->gain : 1);
    return work;
}

/* Writes frames that go in a straight line from `first` times x to `last` times x. */
static void ramp(const float *x, float first, float last, int64_t frames, float *to) {
    const float step = (last - first) / (float)frames;
    for (int64_t i = 0; i < frames; i++)
        to[i] = x[i] * (first + step * (float)i);
}

/* Adds up the channels of a group for a receiver, over a hop. */
static void render_directions(gpuconv_motion *m, int64_t hop, int64_t group, int receiver, const scratch *s,
                              float *sum) {
    const float *signal[2 * GC_MOTION_GROUP], *response[2 * GC_MOTION_GROUP];
    const int64_t first = group * GC_MOTION_GROUP, end = gc_min(m->channels, first + GC_MOTION_GROUP);
    int count = 0;
    for (int64_t c = first; c < end; c++) {
        const float *x = gc_motion_input(m, c) - GC_DELAY_REACH + hop * m->hop;
        const int64_t now = hop * m->channels + c, next = now + m->channels;
        const bool same = same_blend(&m->blend[now], &m->blend[next]);
        gc_delay_line_read(m->line, x, m->delay[now * m->receivers + receiver],
                           m->delay[next * m->receivers + receiver], m->hop, s->x);
        for (int side = 0; side < (same ? 1 : 2); side++, count++) {
            float gain, *spectrum = s->signal + count * m->floats;
            const float *ramped = s->ramped;
            response[count] =
                blend_spectra(m, &m->blend[side ? next : now], receiver, s->response + count * m->floats, &gain);
            ramp(s->x, side ? 0 : gain, side || same ? gain : 0, m->hop, s->ramped);
            gc_fft_forward_rows(m->fft, &ramped, m->hop, 1, spectrum);
            signal[count] = spectrum;
        }
    }
    gc_fft_multiply_sum(m->fft, sum, signal, response, count, m->floats);
}

/* Writes frames times a weight of the cubic through four moments, -1, 0, 1 and 2, over the hop from 0 to 1. */
static void weight_cubic(const float *x, int moment, int64_t frames, float *to) {
    static const float weight[4][4] = {
        {0, -1 / 3.F, 0.5F, -1 / 6.F}, {1, -0.5F, -1, 0.5F}, {0, 1, 0.5F, -0.5F}, {0, -1 / 6.F, 0, 1 / 6.F}};
    const float *w = weight[moment], step = 1 / (float)frames;
    for (int64_t i = 0; i < frames; i++) {
        const float t = (float)i * step;
        to[i] = x[i] * (w[0] + t * (w[1] + t * (w[2] + t * w[3])));
    }
}

/* Adds up the channels of a group in a room for all receivers, over a hop. */
static void render_room(gpuconv_motion *m, int64_t hop, int64_t group, const scratch *s, float *sums) {
    enum { MOMENTS = 4 };
    const float *signal[MOMENTS * GC_MOTION_GROUP], *response[MOMENTS * GC_MOTION_GROUP], *ramped = s->ramped;
    const int64_t first = group * GC_MOTION_GROUP, end = gc_min(m->channels, first + GC_MOTION_GROUP);
    int slot[MOMENTS * GC_MOTION_GROUP];
    for (int r = 0; r < m->receivers; r += m->each) {
        int count = 0;
        for (int64_t c = first; c < end; c++) {
            const int *of = m->slot + hop * m->channels + c;
            const double *delay = m->delay + ((hop + 1) * m->channels + c) * m->receivers + r;
            const float *x = gc_motion_input(m, c) - GC_DELAY_REACH + hop * m->hop;
            bool same = true;
            gc_delay_line_read(m->line, x, delay[0], delay[(int64_t)m->channels * m->receivers], m->hop, s->x);
            for (int k = 1; k < MOMENTS; k++)
                same = same && of[k * m->channels] == *of;
            for (int k = 0; k < (same ? 1 : MOMENTS); k++, count++) {
                float *spectrum = s->signal + count * m->floats; /* `response` is not used here */
                const float *from = same ? s->x : ramped;
                if (!same)
                    weight_cubic(s->x, k, m->hop, s->ramped);
                gc_fft_forward_rows(m->fft, &from, m->hop, 1, spectrum);
                signal[count] = spectrum;
                slot[count] = of[k * m->channels];
            }
        }
        for (int k = r; k < r + m->each; k++) {
            for (int i = 0; i < count; i++)
                response[i] = m->spectrum[slot[i]] + k * m->floats;
            gc_fft_multiply_sum(m->fft, sums + k * m->floats, signal, response, count, m->floats);
        }
    }
}

/* Turns the channels of a group of ambisonics over a hop, and adds them up for all receivers. */
static void render_ambisonics(gpuconv_motion *m, int64_t hop, int64_t group, const scratch *s, float *sums) {
    const float *signal[GC_MOTION_GROUP], *response[GC_MOTION_GROUP], *ramped = s->ramped;
    const int64_t first = group * GC_MOTION_GROUP, count = gc_min(m->channels, first + GC_MOTION_GROUP) - first;
    for (int64_t i = 0; i < count; i++) {
        const double *now = m->turn + (hop * m->channels + first + i) * m->channels;
        const double *next = now + (int64_t)m->channels * m->channels;
        float *spectrum = s->signal + i * m->floats;
        memset(s->ramped, 0, (size_t)m->hop * sizeof *s->ramped);
        for (int64_t k = 0; k < m->channels; k++) {
            const float *x = gc_motion_input(m, k) + hop * m->hop;
            const float from = (float)now[k], step = (float)((next[k] - now[k]) / (double)m->hop);
            for (int64_t f = 0; f < m->hop && (now[k] != 0 || next[k] != 0); f++)
                s->ramped[f] += x[f] * (from + step * (float)f);
        }
        gc_fft_forward_rows(m->fft, &ramped, m->hop, 1, spectrum);
        signal[i] = spectrum;
    }
    for (int r = 0; r < m->receivers; r++) {
        for (int64_t i = 0; i < count; i++)
            response[i] = m->spectrum[first + i] + r * m->floats;
        gc_fft_multiply_sum(m->fft, sums + r * m->floats, signal, response, count, m->floats);
    }
}

/* Renders a group over a hop: pool task `hop x groups + group`. */
static void render_group(void *context, int64_t index, int worker) {
    gpuconv_motion *m = context;
    const scratch s = scratch_of(m, worker);
    float *sums = m->sums + index * m->receivers * m->floats;
    if (m->room)
        render_room(m, index / m->groups, index % m->groups, &s, sums);
    else if (m->path->ambisonic)
        render_ambisonics(m, index / m->groups, index % m->groups, &s, sums);
    else
        for (int r = 0; r < m->receivers; r++)
            render_directions(m, index / m->groups, index % m->groups, r, &s, sums + r * m->floats);
}

/* Adds up the groups of a hop at a receiver, and transforms them back: pool task `hop x receivers + receiver`. The
 * frames replace the sums. */
static void finish_hop(void *context, int64_t index, int worker) {
    gpuconv_motion *m = context;
    const int64_t hop = index / m->receivers, receiver = index % m->receivers, step = m->receivers * m->floats;
    float *sum = m->sums + hop * m->groups * step + receiver * m->floats, *frames = scratch_of(m, worker).signal;
    for (int64_t g = 1; g < m->groups; g++)
        for (int64_t i = 0; i < m->floats; i++)
            sum[i] += sum[g * step + i];
    gc_fft_inverse(m->fft, NULL, NULL, 0, sum, frames, 0);
    memcpy(sum, frames, (size_t)(m->hop + m->taps - 1) * sizeof *sum);
}

/* Renders all hops on the CPU: the frames are in the sums of their first groups. Returns MEMORY, CANCELLED. */
static gpuconv_status render_hops(gpuconv_motion *m, gpuconv_error *error) {
    for (int64_t i = 0; i < (m->hops + 1) * m->channels && !m->room && !m->path->ambisonic; i++)
        for (int k = 0; k < 3; k++) {
            gpuconv_status status = gc_motion_make_spectra(m, m->blend[i].measurement[k], error);
            if (status)
                return status;
        }
    gc_pool_run(m->pool, render_group, m, m->hops * m->groups);
    gc_pool_run(m->pool, finish_hop, m, m->hops * m->receivers);
    return gc_cancelled() ? gc_fail_cancelled(error, "the path") : GPUCONV_OK;
}

/* Moves the last moments of a chunk to the first ones of the next. `bytes`: of a channel at a moment. */
static void keep_moments(const gpuconv_motion *m, void *moments, int64_t bytes) {
    if (moments)
        memmove(moments, (char *)moments + m->hops * m->channels * bytes, (size_t)(m->kept * m->channels * bytes));
}

gpuconv_status gc_motion_render(gpuconv_motion *m, gpuconv_error *error) {
    const int64_t length = m->hop + m->taps - 1, wide = gc_motion_chunk(m) + m->taps;
    const int64_t pitch = m->backend ? m->points : m->floats, groups = m->backend ? 1 : m->groups;
    const gc_motion_work work = {m->hops, m->input, m->mixture, m->delay};
    const float *frames = m->sums;
    gpuconv_status status = gc_motion_find_places(m, error);
    if (!status)
        status = gc_cancelled() ? gc_fail_cancelled(error, "the path") : GPUCONV_OK;
    if (!status)
        status = m->backend ? m->backend->motion->render(m->gpu, &work, &frames, error) : render_hops(m, error);
    if (status)
        return status;
    for (int64_t h = 0; h < m->hops; h++)
        for (int64_t r = 0; r < m->receivers; r++) {
            const float *from = frames + (h * groups * m->receivers + r) * pitch;
            float *to = m->output + r * wide + h * m->hop;
            for (int64_t i = 0; i < length; i++)
                to[i] += from[i];
        }
    keep_moments(m, m->blend, sizeof *m->blend);
    keep_moments(m, m->mixture, sizeof *m->mixture);
    keep_moments(m, m->delay, m->receivers * (int64_t)sizeof *m->delay);
    keep_moments(m, m->slot, sizeof *m->slot);
    keep_moments(m, m->turn, m->channels * (int64_t)sizeof *m->turn);
    return GPUCONV_OK;
}
