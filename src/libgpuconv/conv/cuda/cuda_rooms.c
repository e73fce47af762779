/* Rooms on a device (gpuconv_rooms.h, kernels/engine/rooms.cu).
 *
 *   prepare -> for each chunk of channels: images -> bands convolved with their filters and added -> high-pass
 *
 * Where bands differ, a channel is a convolution of routes from its bands to one output (cuda_arrays.c). Its bands lie
 * in the workspace; a chunk has as many channels as CHUNK_BYTES hold. A plan has a copy of the set of its ears. */
#include "cuda_arrays.h"
#include "libgpuconv/conv/rooms.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/ir/sofa.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(gpuconv_room) == GCK_ROOM_DOUBLES * sizeof(double), "a room is doubles");
_Static_assert(sizeof(gpuconv_room_point) == GCK_ROOM_POINT * sizeof(double), "a point is doubles");
_Static_assert((int)GCK_ROOM_BANDS == (int)GPUCONV_ROOM_BANDS && (int)GCK_ROOM_STEPS == (int)GC_IMAGE_STEPS &&
                   (int)GCK_ROOM_HALF == (int)GC_IMAGE_HALF && (int)GCK_ROOM_TAPS <= (int)GC_IMAGE_TAPS,
               "the kernels have the filter of the CPU");

#define CHUNK_BYTES (INT64_C(256) << 20)

typedef struct device_rooms {
    gc_cuda_resources resources;
    const float *taps;
    gck_ears ears;
    int bands;     /* that are computed */
    int64_t rows;  /* channels of all responses */
    int64_t chunk; /* of them that are computed at a time */
    int64_t walls; /* bytes of the workspace for the walls, and behind them for the bands of a chunk */
    int64_t signal;
    gpuconv_responses *filters;
    gpuconv_arrays_plan *sum[2]; /* of a chunk; of the last one */
} device_rooms;

/* Returns the job that adds the bands of `rows` channels. */
static gpuconv_arrays_job sum_job(const device_rooms *d, int64_t rows, int64_t frames, int64_t lead) {
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(NULL, rows * d->bands, frames);
    job.output = gpuconv_rows_of_floats(NULL, rows, frames);
    job.offset = lead;
    job.prepared = d->filters;
    return job;
}

static int64_t chunk_rows(const device_rooms *d, int64_t first) {
    return gc_min(d->chunk, d->rows - first);
}

/* Makes the filters of the bands, and plans the sums. */
static gpuconv_status plan_bands(gpuconv_rooms_plan *plan, device_rooms *d, gpuconv_error *error) {
    const gc_rooms *r = &plan->rooms;
    const int64_t lead = gc_room_band_lead(r->job.rate);
    float *taps = gc_room_band_filters(r);
    gpuconv_ir *ir = taps ? gc_ir_blank(r->bands, 1, r->bands, r->bands, 2 * lead + 1, r->job.rate) : NULL;
    gpuconv_status status = ir ? GPUCONV_OK : gc_fail_memory(error, "the filters of a room's bands");
    for (int b = 0; b < r->bands && !status; b++)
        ir->route[b] = (gc_route){b, 0, b};
    if (!status) {
        memcpy(ir->taps, taps, (size_t)(r->bands * (2 * lead + 1)) * sizeof *taps);
        status = gpuconv_responses_route(plan->place, ir, r->job.frames, &d->filters, error);
    }
    const int64_t last = chunk_rows(d, (d->rows - 1) / d->chunk * d->chunk);
    for (int i = 0; i < 2 && !status; i++) {
        const gpuconv_arrays_job job = sum_job(d, i ? last : d->chunk, r->job.frames, lead);
        status = gpuconv_arrays_plan_new(plan->place, &job, &d->sum[i], error);
    }
    gpuconv_ir_free(ir);
    free(taps);
    return status;
}

/* A set in host memory, as the kernels read it. */
typedef struct host_ears {
    gck_shell *shell;
    float4 *direction;
    float *offset, *taps;
} host_ears;

/* Copies the directions and responses of a set to `to`, shell by shell. Sets the limits of `e`, which follow from the
 * responses. */
static void arrange_ears(const gpuconv_sofa *set, double per_metre, const host_ears *to, gck_ears *e) {
    const int64_t frames = set->responses->frames;
    int64_t response = 0;
    int at = 0;
    for (int i = 0; i < set->shells; i++) {
        const gc_direction_tree *tree = set->shell[i].tree;
        const int count = gc_direction_tree_count(tree);
        to->shell[i] = (gck_shell){(float)(set->shell[i].distance * per_metre), at, at + count};
        for (int k = 0; k < count; k++, at++) {
            double unit[3];
            const int measurement = gc_direction_tree_get(tree, k, unit);
            const double metres = gc_unit_vector(set->position + 3 * (int64_t)measurement, unit);
            to->direction[at] = (float4){(float)unit[0], (float)unit[1], (float)unit[2], (float)(metres * per_metre)};
            for (int ear = 0; ear < set->receivers; ear++, response++) {
                const double delay = set->delay[(int64_t)measurement * set->receivers + ear];
                const float *taps = gc_sofa_taps(set, measurement, ear);
                float sum = 0;
                for (int64_t n = 0; n < frames; n++) {
                    sum += fabsf(taps[n]);
                    e->peak = fmaxf(e->peak, fabsf(taps[n]));
                }
                memcpy(to->taps + response * frames, taps, (size_t)frames * sizeof *taps);
                to->offset[response] = (float)((delay - (double)set->responses->lead) * GCK_ROOM_STEPS);
                e->late = fmaxf(e->late, to->offset[response] + (float)(frames * GCK_ROOM_STEPS));
                e->sum = fmaxf(e->sum, sum);
            }
        }
    }
}

/* Copies a set to the device. */
static gpuconv_status upload_ears(device_rooms *d, const gpuconv_sofa *set, double per_metre, gpuconv_error *error) {
    const int64_t count = set->measurements, responses = count * set->receivers, frames = set->responses->frames;
    gck_ears *e = &d->ears;
    host_ears h = {.shell = gc_alloc(set->shells, sizeof *h.shell),
                   .direction = gc_alloc(count, sizeof *h.direction),
                   .offset = gc_alloc(responses, sizeof *h.offset),
                   .taps = gc_alloc(responses * frames, sizeof *h.taps)};
    const bool good = h.shell && h.direction && h.offset && h.taps;
    if (good) {
        *e = (gck_ears){.shells = set->shells,
                        .frames = (int)frames,
                        .early = (float)(set->responses->lead * GCK_ROOM_STEPS),
                        .peak = FLT_MIN};
        arrange_ears(set, per_metre, &h, e);
        e->shell = gc_cuda_upload(&d->resources, h.shell, set->shells * (int64_t)sizeof *h.shell);
        e->direction = gc_cuda_upload(&d->resources, h.direction, count * (int64_t)sizeof *h.direction);
        e->offset = gc_cuda_upload(&d->resources, h.offset, responses * (int64_t)sizeof *h.offset);
        e->taps = gc_cuda_upload(&d->resources, h.taps, responses * frames * (int64_t)sizeof *h.taps);
    }
    free(h.shell);
    free(h.direction);
    free(h.offset);
    free(h.taps);
    return good ? GPUCONV_OK : gc_fail_memory(error, "the ears of a room");
}

gpuconv_status gc_cuda_plan_rooms(gpuconv_rooms_plan *plan, gpuconv_error *error) {
    const gc_rooms *r = &plan->rooms;
    const gpuconv_rooms_job *job = &r->job;
    float taps[GC_IMAGE_TAPS] = {0};
    gpuconv_status status = gc_cuda_check_current(plan->place->device, error);
    if (status)
        return status;
    device_rooms *d = plan->state = gc_calloc(1, sizeof *d);
    if (!d || !gc_room_reduction(taps))
        return gc_fail_memory(error, "the plan of rooms");
    gc_cuda_resources_init(&d->resources, plan->place->device);
    d->bands = job->alike && !job->air ? 1 : r->bands;
    d->rows = job->rooms * job->sources * job->receivers * r->channels;
    const int64_t channel = d->bands * job->frames * (int64_t)sizeof(float), blocks = job->frames / 1024 + 2;
    d->chunk = gc_max(gc_min(d->rows, d->bands > 1 ? CHUNK_BYTES / channel : INT32_MAX / blocks), 1);
    d->taps = gc_cuda_upload(&d->resources, taps, GCK_ROOM_TAPS * (int64_t)sizeof *taps);
    if (job->ears)
        status = upload_ears(d, job->ears, job->rate * GCK_ROOM_STEPS / r->speed, error);
    if (!status)
        status = gc_cuda_check_memory(error, plan->place->device, d->resources.err, "the plan of rooms",
                                      d->resources.device_bytes);
    if (!status && d->bands > 1)
        status = plan_bands(plan, d, error);
    d->walls = gc_round_up(job->rooms * (int64_t)sizeof(gck_walls), 256);
    d->signal = d->bands > 1 ? gc_round_up(d->chunk * channel, 256) : 0;
    plan->bytes = d->walls + d->signal;
    plan->bytes += (int64_t)(d->bands > 1 ? gc_max((int64_t)gpuconv_arrays_plan_workspace(d->sum[0]),
                                                   (int64_t)gpuconv_arrays_plan_workspace(d->sum[1]))
                                          : 0);
    return status;
}

void gc_cuda_free_rooms(gpuconv_rooms_plan *plan) {
    device_rooms *d = plan->state;
    gpuconv_arrays_plan_free(d->sum[0]);
    gpuconv_arrays_plan_free(d->sum[1]);
    gpuconv_responses_free(d->filters);
    gc_cuda_resources_free(&d->resources);
    free(d);
}

static gck_rooms kernel_rooms(const gc_rooms *r, const device_rooms *d, void *workspace) {
    const gpuconv_rooms_job *job = &r->job;
    gck_rooms k = {.room = (const double *)job->room,
                   .source = (const double *)job->source,
                   .receiver = (const double *)job->receiver,
                   .seeds = job->seeds,
                   .taps = d->taps,
                   .ears = d->ears,
                   .walls = workspace,
                   .rooms = job->rooms,
                   .sources = job->sources,
                   .receivers = job->receivers,
                   .frames = job->frames,
                   .origin = job->origin,
                   .channels = r->channels,
                   .bands = d->bands,
                   .order = job->images_order,
                   .tail = job->tail,
                   .diffuse = job->diffuse,
                   .formula = (int)job->formula,
                   .air = job->air,
                   .per_metre = job->rate * GCK_ROOM_STEPS / r->speed,
                   .speed = r->speed,
                   .seconds = job->images_seconds,
                   .nepers = job->images_level * log(10) / 10,
                   .seed = job->seed};
    for (int b = 0; b < GCK_ROOM_BANDS; b++)
        k.damping[b] = (float)(r->air[b] / k.per_metre);
    return k;
}

gpuconv_status gc_cuda_simulate(const gpuconv_rooms_plan *plan, const gc_rooms *r, float *output, void *workspace,
                                cudaStream_t stream, gpuconv_error *error) {
    const device_rooms *d = plan->state;
    const int64_t frames = r->job.frames, lead = (int64_t)gc_power_of_two((int64_t)fmax(r->job.rate / 6, 1024)) / 4;
    const gck_rooms k = kernel_rooms(r, d, workspace);
    gpuconv_status status = gc_cuda_check_current(plan->place->device, error);
    cudaError_t err = status ? cudaSuccess : gck_rooms_prepare(&k, stream);
    float *signal = (float *)(void *)((char *)workspace + d->walls);
    for (int64_t first = 0; first < d->rows && !status && !err; first += d->chunk) {
        const int64_t rows = chunk_rows(d, first);
        float *to = output + first * frames;
        GC_CUDA_TRY(err, gck_rooms_images(&k, first, rows, d->bands > 1 ? signal : to, stream));
        if (d->bands > 1 && !err) {
            gpuconv_arrays_job job = sum_job(d, rows, frames, lead);
            const gpuconv_arrays_plan *sum = d->sum[rows != d->chunk];
            job.signal.data = signal;
            job.output.data = to;
            status = gpuconv_arrays_plan_run(sum, &job, (char *)signal + d->signal, gpuconv_arrays_plan_workspace(sum),
                                             stream, error);
        }
        for (int section = 0; section < 2 && r->job.highpass > 0; section++) {
            double biquad[5];
            gc_room_highpass(&r->job, section, biquad);
            GC_CUDA_TRY(err, gck_rooms_filter(to, rows, frames, biquad, stream));
        }
    }
    return status ? status : gc_cuda_check(error, plan->place->device, err);
}
