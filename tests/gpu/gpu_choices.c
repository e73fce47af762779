/*
 * The planner's choices on this GPU for streams and banks: every algorithm that can compute a problem (of a bank: the
 * levels with every longest hop) is timed, all of them must give the same samples, and the time of the choice is
 * divided by the shortest time. gpu_jobs_speed --all does so for rows. GPUCONV_CUDA_LIMITS gives the choices of smaller
 * devices. Usage: gpu_choices
 */
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, WAYS = 16, BANK_RUNS = 5 };

/* The times of one problem. */
typedef struct times {
    char name[WAYS][48];
    double seconds[WAYS];
    int count, chosen;
} times;

typedef struct counts {
    int problems, within_10, within_25;
} counts;

/* An alternative is timed if its predicted time is less than the choice's time multiplied by this factor. */
static const double far = 8;

static void require(bool ok, const char *what, const char *why) {
    if (ok)
        return;
    fprintf(stderr, "gpu_choices: %s: %s\n", what, why);
    exit(1);
}

static float *noise(int64_t n, float size, uint64_t state) {
    float *x = gc_calloc(n, sizeof *x);
    require(x != NULL, "noise", "no memory");
    for (int64_t i = 0; i < n; i++)
        x[i] = size * gc_random_float(&state);
    return x;
}

/* Returns the relative RMS difference of two outputs in dB. */
static double difference(const float *a, const float *b, int64_t n) {
    double wrong = 0, power = 0;
    for (int64_t i = 0; i < n; i++) {
        wrong += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        power += (double)a[i] * (double)a[i];
    }
    return 10 * log10(wrong / power);
}

static void print_problem(const char *name, const times *t, counts *all) {
    double best = HUGE_VAL;
    for (int i = 0; i < t->count; i++)
        best = fmin(best, t->seconds[i]);
    const double ratio = t->seconds[t->chosen] / best;
    all->problems++;
    all->within_10 += ratio <= 1.1;
    all->within_25 += ratio <= 1.25;
    printf("%-44s %5.2f %s", name, ratio, ratio <= 1.1 ? "  " : ratio <= 1.25 ? "! " : "!!");
    for (int i = 0; i < t->count; i++)
        printf("%s %s%s %.4f", i ? "," : "", i == t->chosen ? "*" : "", t->name[i], t->seconds[i] * 1e3);
    printf("\n");
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

typedef struct stream {
    int inputs, outputs; /* outputs 0: a response for each input */
    int64_t taps, frames;
} stream;

static const stream streams[] = {
    {1, 0, 8, 1 << 23},      {1, 0, 40, 1 << 23},     {1, 0, 128, 1 << 22},     {1, 0, 300, 1 << 24},
    {1, 0, 900, 1 << 22},    {1, 0, 3000, 1 << 22},   {1, 0, 10000, 1 << 23},   {1, 0, 40000, 1 << 23},
    {1, 0, 150000, 1 << 23}, {1, 0, 600000, 1 << 24}, {1, 0, 2000000, 1 << 23}, {2, 0, 100, 1 << 22},
    {2, 0, 66150, 13000000}, {2, 0, 441000, 1 << 23}, {8, 0, 20000, 1 << 20},   {8, 0, 256, 1 << 20},
    {1, 0, 4096, 1 << 16},   {1, 0, 48000, 1 << 18},  {2, 0, 96000, 480000},    {2, 2, 24000, 1 << 21},
    {4, 4, 9600, 1 << 20},   {8, 8, 48000, 1 << 20},  {16, 16, 48000, 1440000}, {32, 32, 4800, 240000},
    {64, 64, 12000, 480000}, {1, 64, 256, 1 << 20},   {1, 16, 20000, 1 << 20},  {16, 2, 256, 1 << 20},
    {16, 2, 24000, 480000},
};

static gpuconv_ir *make_ir(const stream *s) {
    gpuconv_ir *mono = NULL, *ir = NULL;
    gpuconv_error error = {0};
    const int responses = s->outputs ? s->inputs * s->outputs : s->inputs;
    const float **taps = gc_calloc(responses, sizeof *taps);
    float *all = noise(s->taps + responses, 0.1F, 5);
    for (int i = 0; taps && i < responses; i++)
        taps[i] = all + i;
    require(taps != NULL, "a response", "no memory");
    if (s->outputs)
        require(!gpuconv_ir_new_matrix(taps, s->inputs, s->outputs, s->taps, 48000, &ir, &error), "ir", error.message);
    else
        require(!gpuconv_ir_new(taps, s->inputs, s->taps, 48000, &mono, &error) &&
                    !gpuconv_ir_route(mono, s->inputs, &ir, &error),
                "ir", error.message);
    gpuconv_ir_free(mono);
    free(taps);
    free(all);
    return ir;
}

static void time_stream(const stream *s, counts *all) {
    const int outputs = s->outputs ? s->outputs : s->inputs;
    gpuconv_ir *ir = make_ir(s);
    gpuconv_config config = gpuconv_config_default();
    gpuconv_error error = {0};
    gpuconv_plan *chosen = NULL, *plan = NULL;
    float *in = noise(s->frames + s->inputs, 0.5F, 3), *out = gc_calloc(2 * outputs * s->frames, sizeof *out);
    const float **inputs = gc_calloc(s->inputs, sizeof *inputs);
    float **to = gc_calloc(outputs, sizeof *to);
    require(out && inputs && to, "samples", "no memory");
    for (int i = 0; i < s->inputs; i++)
        inputs[i] = in + i;
    config.backend = GPUCONV_BACKEND_CUDA;
    config.frames = s->frames;
    require(!gpuconv_plan_new(ir, &config, &chosen, &error), "plan", error.message);
    times t = {0};
    for (const gc_algorithm *const *row = chosen->backend->algorithms; *row; row++) {
        config.algorithm = (*row)->id;
        if ((*row)->kind != GC_STREAM || gpuconv_plan_new(ir, &config, &plan, &error))
            continue;
        double seconds[RUNS];
        for (int o = 0; o < outputs; o++)
            to[o] = out + (t.count ? outputs + o : o) * s->frames;
        const gc_timing timing = {inputs, to, s->frames, RUNS, seconds};
        if (plan->choice.predicted < far * chosen->choice.predicted) {
            require(!gc_measures_find(GPUCONV_BACKEND_CUDA)->time_plan(plan, &timing, &error), (*row)->name,
                    error.message);
            require(difference(out, to[0], outputs * s->frames) < -100 || !t.count, (*row)->name, "wrong samples");
            if (plan->choice.algorithm == chosen->choice.algorithm)
                t.chosen = t.count;
            t.seconds[t.count] = gc_median(seconds, RUNS, NULL);
            snprintf(t.name[t.count++], sizeof t.name[0], "%s %lld", (*row)->name,
                     (long long)plan->choice.schedule.transform);
        }
        gpuconv_plan_free(plan);
    }
    char name[64];
    snprintf(name, sizeof name, "stream %d x %d, %lld taps, %lld frames", s->inputs, s->outputs, (long long)s->taps,
             (long long)s->frames);
    print_problem(name, &t, all);
    gpuconv_plan_free(chosen);
    gpuconv_ir_free(ir);
    free(in);
    free(out);
    free(inputs);
    free(to);
}

/* ---- Banks ------------------------------------------------------------------------------------------------------- */

typedef struct bank {
    int inputs, outputs; /* outputs 0: a response for each input */
    int block;
    int64_t taps;
} bank;

static const bank banks[] = {
    {2, 0, 64, 24000},    {2, 0, 128, 240000},   {64, 0, 64, 48000},    {512, 0, 128, 2000},  {512, 0, 128, 48000},
    {4000, 0, 128, 8000}, {4000, 0, 256, 48000}, {8000, 0, 128, 24000}, {8, 8, 64, 48000},    {16, 2, 128, 96000},
    {64, 64, 128, 24000}, {64, 64, 256, 48000},  {128, 2, 64, 1000},    {64, 2, 512, 480000},
};

/* The longest hop that the next plan may have; 0: as long as the device allows. */
static int64_t longest_hop;

gpuconv_status __real_gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                           const gc_device *device, const gc_costs *costs, gc_choice *choice,
                                           double *seconds, gpuconv_error *error);
gpuconv_status __wrap_gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                           const gc_device *device, const gc_costs *costs, gc_choice *choice,
                                           double *seconds, gpuconv_error *error);

/* Chooses with the longest hop above. Stands for the planner in calls from other files of the library. */
gpuconv_status __wrap_gc_algorithms_choose(const gc_algorithm *const *algorithms, const gc_problem *problem,
                                           const gc_device *device, const gc_costs *costs, gc_choice *choice,
                                           double *seconds, gpuconv_error *error) {
    gc_problem bounded = *problem;
    if (problem->kind == GC_BANK && longest_hop)
        bounded.bank.longest_hop = gc_min(longest_hop, problem->bank.longest_hop);
    const gpuconv_status status =
        __real_gc_algorithms_choose(algorithms, &bounded, device, costs, choice, seconds, error);
    if (problem->kind == GC_BANK && !status)
        longest_hop = choice->levels.level[choice->levels.count - 1].hop;
    return status;
}

typedef struct responses {
    const float *noise;
    int64_t taps;
} responses;

static void write_response(void *context, int route, float *taps) {
    const responses *r = context;
    memcpy(taps, r->noise + route % 61, (size_t)r->taps * sizeof *taps);
}

/* Times a bank. periods: to run before the output is taken. out: receives it. */
static double time_bank(const gc_bank_options *options, int periods, float *out, char *name) {
    gc_bank *made = NULL;
    gpuconv_error error = {0};
    double seconds[BANK_RUNS];
    const float *result = NULL;
    require(!gc_bank_cuda.open(options, &made, &error), "bank", error.message);
    float *in = gc_backend_cuda.alloc_pinned(options->device, (int64_t)options->inputs * options->block);
    require(in != NULL, "bank", "no memory");
    uint64_t state = 9;
    for (int64_t i = 0; i < (int64_t)options->inputs * options->block; i++)
        in[i] = gc_random_float(&state);
    for (int run = 0; run < BANK_RUNS; run++) {
        const double begin = gc_now();
        for (int p = 0; p < periods; p++)
            require(!gc_bank_cuda.process(made, in, &result, &error), "bank", error.message);
        seconds[run] = (gc_now() - begin) / periods;
    }
    memcpy(out, result, (size_t)options->outputs * (size_t)options->block * sizeof *out);
    gc_backend_cuda.free_pinned(options->device, in);
    gc_bank_cuda.free(made);
    snprintf(name, 48, "hops to %lld", (long long)longest_hop);
    return gc_median(seconds, BANK_RUNS, NULL);
}

static void try_bank(const bank *b, counts *all) {
    const int outputs = b->outputs ? b->outputs : b->inputs, routes = b->outputs ? b->inputs * b->outputs : b->inputs;
    gc_route *route = gc_calloc(routes, sizeof *route);
    float *out = gc_calloc(2 * (int64_t)outputs * b->block, sizeof *out), *taps = noise(b->taps + 61, 0.1F, 5);
    responses all_routes = {taps, b->taps};
    require(route && out, "bank", "no memory");
    for (int r = 0; r < routes; r++)
        route[r] = b->outputs ? (gc_route){r % b->inputs, r / b->inputs, 0} : (gc_route){r, r, 0};
    const gc_bank_options options = {.inputs = b->inputs,
                                     .outputs = outputs,
                                     .routes = routes,
                                     .route = route,
                                     .block = b->block,
                                     .taps = b->taps,
                                     .device = -1,
                                     .response = write_response,
                                     .context = &all_routes};
    const int periods = (int)gc_max(64, gc_min(512, 2 * gc_power_of_two(b->taps) / b->block));
    times t = {0};
    longest_hop = 0;
    t.seconds[0] = time_bank(&options, periods, out, t.name[0]);
    const int64_t chosen = longest_hop;
    t.count = 1;
    for (int64_t hop = b->block; hop <= 4 * chosen && t.count < WAYS; hop *= 2) {
        longest_hop = hop;
        const double seconds = time_bank(&options, periods, out + (int64_t)outputs * b->block, t.name[t.count]);
        require(difference(out, out + (int64_t)outputs * b->block, (int64_t)outputs * b->block) < -100, "bank",
                "wrong samples");
        if (longest_hop == hop && hop != chosen)
            t.seconds[t.count++] = seconds;
    }
    char name[64];
    snprintf(name, sizeof name, "bank %d x %d, blocks of %d, %lld taps", b->inputs, b->outputs, b->block,
             (long long)b->taps);
    print_problem(name, &t, all);
    free(route);
    free(out);
    free(taps);
}

int main(void) {
    counts all = {0};
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        time_stream(&streams[i], &all);
    for (size_t i = 0; i < sizeof banks / sizeof *banks; i++)
        try_bank(&banks[i], &all);
    printf("choices: %d problems, %d within 10 %% of the fastest, %d within 25 %%\n", all.problems, all.within_10,
           all.within_25);
    return 0;
}
