/* Plans of jobs on device memory: the description of the job, the choice among the algorithms of rows, and what these
 * share. */
#include "job_plan.h"
#include "cuda_algorithm.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/engine/plan.h"

#include <math.h>
#include <string.h>

/* Segments begin at multiples of ALIGNMENT frames, so that accesses to aligned rows are whole sectors. */
enum { ALIGNMENT = 32, REMEMBERED = 8 };

static const gc_cuda_rows *const algorithms[] = {
    [GC_JOB_3PASS] = &gc_rows_three_pass, [GC_JOB_CHIP] = &gc_rows_chip, [GC_JOB_DIRECT] = &gc_rows_direct};

int64_t gc_job_points(gc_job_transform t) {
    const gc_cuda_rows *a = algorithms[t.kind];
    for (int log2 = 1; log2 < (int)sizeof a->number; log2++)
        if (a->number[log2] == t.size + 1)
            return INT64_C(1) << (log2 - 1);
    return 0;
}

bool gc_job_transform_fits(const gc_device *device, gc_job_transform t) {
    const gc_cuda_rows *a = algorithms[t.kind];
    return !a->shared_bytes || a->shared_bytes(t.size) <= device->shared_memory;
}

int64_t gc_job_parts(int64_t points, int64_t taps) {
    return taps <= points + points / 2 ? 1 : gc_divide_up(taps, points);
}

/* ---- What the algorithms share ----------------------------------------------------------------------------------- */

/* Returns the transform of a choice; its size is -1 if the algorithm has none of so many points. */
static gc_job_transform transform_of(const gc_choice *c) {
    const int64_t points = c->schedule.transform;
    gc_job_transform t = {GC_JOB_3PASS, 0};
    while (t.kind < GC_JOB_DIRECT && &algorithms[t.kind]->row != c->algorithm)
        t.kind++;
    if (points)
        t.size = algorithms[t.kind]->number[__builtin_ctzll((unsigned long long)points)] - 1;
    return t;
}

/* Prepared spectra serve their own algorithm and size; their samples, where they are kept too, serve direct sums. */
bool gc_rows_fits(const gc_problem *p, const gc_device *device, int64_t points, int form, gc_choice *c) {
    const bool same = !p->only || (p->only == c->algorithm && p->only_points == points);
    if (form || !(points ? same : p->samples && (same || p->spectra)))
        return false;
    c->schedule = (gc_schedule){.taps = p->rows.taps, .transform = points};
    const gc_job_transform t = transform_of(c);
    return t.size >= 0 && gc_job_transform_fits(device, t);
}

/* Makes the plan of a choice. Returns false if its algorithm does not serve the problem. */
static bool make(const gc_problem *p, const gc_device *device, const gc_costs *costs, const gc_choice *c,
                 gc_job_plan *plan) {
    *plan = (gc_job_plan){.transform = transform_of(c), .points = c->schedule.transform / 2};
    return algorithms[plan->transform.kind]->plan(p, device, costs, plan);
}

void gc_rows_cost(const gc_problem *p, const gc_device *device, const gc_costs *costs, gc_choice *c) {
    gc_job_plan plan;
    c->cost = make(p, device, costs, c, &plan) ? plan.seconds : HUGE_VAL;
    c->bytes = (double)plan.bytes;
}

int64_t gc_rows_cut(const gc_job_shape *s, gc_job_plan *p) {
    const int64_t points = p->points, parts = gc_job_parts(points, s->taps);
    const bool convolve = s->operation == GPUCONV_ARRAYS_CONVOLVE;
    const int64_t overlap = gc_round_up(s->taps - 1, ALIGNMENT),
                  frames = convolve ? s->output_frames : s->signal_frames;
    p->hop = parts == 1 ? 2 * points - overlap : points;
    p->part_taps = parts == 1 ? s->taps : points;
    p->parts = parts;
    p->segments = gc_divide_up(frames, p->hop);
    p->lo = !convolve ? 0 : parts == 1 ? overlap : points;
    p->shift = convolve ? s->offset - p->lo - (parts - 1) * p->hop : -s->offset;
    /* A convolution that fits into one transform as a whole does not wrap around. */
    if (convolve && parts == 1 && s->offset >= 0 && s->signal_frames + s->taps - 1 <= 2 * points &&
        s->offset + frames <= 2 * points) {
        p->hop = frames;
        p->segments = 1;
        p->lo = s->offset;
        p->shift = 0;
    }
    return parts;
}

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

void gc_job_problem(const gc_job_shape *shape, bool kept, bool samples, const gc_job_transform *t, gc_problem *p) {
    *p = (gc_problem){.kind = GC_ROWS, .rows = *shape, .spectra = kept, .samples = samples};
    if (t) {
        p->only = &algorithms[t->kind]->row;
        p->only_points = 2 * gc_job_points(*t);
    }
}

void gc_job_plan_make(const gc_device *device, const gc_costs *costs, const gc_problem *p, gc_job_plan *plan) {
    gc_choice choice = {0};
    if (gc_algorithms_choose(gc_cuda_algorithms, p, device, costs, &choice, NULL, NULL) ||
        !make(p, device, costs, &choice, plan))
        *plan = (gc_job_plan){.seconds = 0};
}

/* What a plan depends on: the job, the device, and the limits of it that tests change. Has no padding, so that equal
 * ones have equal bytes. */
typedef struct question {
    gc_job_shape shape;
    const gc_algorithm *only;
    int64_t only_points, samples, spectra;
    int64_t device, multiprocessors, shared_memory, resident_shared_memory, workspace;
} question;

_Static_assert(sizeof(gc_job_shape) == 4 * sizeof(int) + 8 * sizeof(int64_t) &&
                   sizeof(question) == sizeof(gc_job_shape) + sizeof(void *) + 8 * sizeof(int64_t),
               "a question has no padding");

/* A small call takes a few microseconds, and training repeats the same few jobs. */
void gc_job_plan_recall(const gc_device *device, const gc_costs *costs, const gc_problem *p, gc_job_plan *plan) {
    static _Thread_local struct {
        question question;
        gc_job_plan plan;
    } answers[REMEMBERED];
    static _Thread_local unsigned next;
    const question q = {p->rows,
                        p->only,
                        p->only_points,
                        p->samples,
                        p->spectra,
                        device->number,
                        device->multiprocessors,
                        device->shared_memory,
                        device->resident_shared_memory,
                        device->workspace};
    for (int i = 0; i < REMEMBERED; i++)
        if (memcmp(&answers[i].question, &q, sizeof q) == 0) {
            *plan = answers[i].plan;
            return;
        }
    gc_job_plan_make(device, costs, p, plan);
    answers[next % REMEMBERED].question = q;
    answers[next++ % REMEMBERED].plan = *plan;
}
