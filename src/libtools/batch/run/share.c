/* Costs of the rows of a batch, and whether GPUs shorten it (share.h). */
#include "share.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libtools/room/room_set.h"
#include "task.h"

#include <math.h>

/*
 * With a share f of N rows on D GPUs, beside W cores, a batch takes the longer one of
 *
 *      cores   N (host + (1 - f) cpu) / W
 *      GPUs    start + f N max(gpu / D, host / W, write)
 *
 * and at least N write. Both are equal at the best f. A GPU that is faster than the cores serve it waits for them, so
 * that f is then less than 1 only because of its start.
 */
gc_batch_share gc_batch_divide(const gc_batch_rates *r, int64_t rows, int cores, int devices) {
    const double n = (double)rows, host = r->host / cores, cpu = r->cpu / cores;
    gc_batch_share best = {.seconds = n * (host + cpu), .core = r->host + r->cpu};
    for (int d = 1; d <= devices; d++) {
        const double start = r->start + (d - 1) * r->next, row = fmax(fmax(r->gpu / d, host), r->write);
        const double gpus = fmin(1, fmax(0, n * (host + cpu) - start) / (n * (row + cpu)));
        const double feeders = fmax(d, fmin(ceil(1.25 * r->host * d / r->gpu), cores));
        const double seconds = fmax(fmax(n * (host + (1 - gpus) * cpu), start + gpus * n * row), n * r->write);
        if (gpus > 0 && seconds < (best.devices ? 1 : 0.75) * best.seconds)
            best = (gc_batch_share){d, (int)feeders, gpus, seconds, best.core, row};
    }
    return best;
}

void gc_batch_measured(gc_batch_rates *rates, double seconds) {
    const double quicker = fmin(1, seconds / (rates->host + rates->cpu));
    rates->host *= quicker;
    rates->cpu = seconds - rates->host;
}

enum { SAMPLES = 4 /* rows that are opened */ };

const gc_device gc_batch_slow_gpu = {.threads = 1,
                                     .multiprocessors = 40,
                                     .lanes = 64,
                                     .clock = 1.59e9,
                                     .bandwidth = 320e9,
                                     .memory = 16e9,
                                     .shared_memory = 65536,
                                     .resident_shared_memory = 65536,
                                     .resident_threads = 1024};

/* A GPU convolves after its driver, its context and its kernels are loaded; page-locked memory of the slots and the end
 * of the process take somewhat longer than these, and busy cores half as much again. A further GPU takes nearly as long
 * as the first (H200, 16 and 32 cores). */
static const double starts = 2, next_starts = 2;

/* Returns the seconds of the fastest algorithm; 0 if there is none. */
static double fastest(gpuconv_backend id, const gc_device *device, const gc_costs *costs, const gc_part *p) {
    gc_problem problem;
    gc_choice choice = {0};
    const bool found =
        gc_problem_init(&problem, p->response->ir, p->frames, -1) &&
        !gc_algorithms_choose(gc_backend_find(id)->algorithms, &problem, device, costs, &choice, NULL, NULL);
    gc_problem_free(&problem);
    return found ? choice.predicted : 0;
}

/* Adds the costs of a task. */
static void add_task(const gc_worker *w, const gc_task *t, const gc_costs *cpu, const gc_device *gpu,
                     gc_batch_rates *r) {
    static const gc_device core = {.threads = 1};
    gc_costs device = gpu ? gc_backend_find(GPUCONV_BACKEND_CUDA)->costs(gpu) : *cpu;
    const double bus = device.seconds[GC_COST_BUS_BYTE];
    device.seconds[GC_COST_BUS_BYTE] = 0; /* is added below, for the samples of files and many rows in flight */
    const gc_entry *e = gc_task_entry(w, t);
    r->host += gc_file_seconds * (1 + 2 * t->sources);
    if (gc_entry_noise(e) && e->extra->noise_response) /* as long as the other responses, if it is a room */
        r->host += gc_room_seconds(e->extra->noise_response, t->part[0].response->ir);
    for (int i = 0; i < t->parts; i++) {
        const gc_part *p = &t->part[i];
        const gpuconv_ir *ir = p->response->ir;
        const int64_t frames = gc_max(0, p->frames);
        const double in = (double)(frames * ir->inputs * gc_pcm_bytes(p->info.pcm)),
                     out = (double)((frames + ir->frames) * ir->outputs * gc_pcm_bytes(p->info.pcm));
        r->host += gc_file_byte_seconds * (in + out + 4 * (double)(ir->planes * ir->frames));
        r->write += gc_file_written_seconds * out;
        r->host += i < t->sources ? gc_room_seconds(gc_entry_source(e, i).response, ir) : 0; /* wherever it plays */
        r->cpu += fastest(GPUCONV_BACKEND_CPU, &core, cpu, p);
        r->gpu += gpu ? fmax(fastest(GPUCONV_BACKEND_CUDA, gpu, &device, p), bus * fmax(in, out)) : 0;
    }
}

bool gc_batch_estimate(const gc_worker *w, const gc_device *gpu, gc_batch_rates *r) {
    char name[128];
    int opened = 0;
    gc_os_processor_name(name, sizeof name);
    const gc_costs cpu = gc_costs_of_cpu(name);
    *r = (gc_batch_rates){0};
    for (int64_t i = 0; i < SAMPLES; i++) {
        gpuconv_error unused;
        gc_task task;
        if (!gc_task_open(w, w->manifest->entries * i / SAMPLES, &task, &unused)) {
            add_task(w, &task, &cpu, gpu, r);
            opened++;
        }
        gc_task_close(w, &task);
    }
    const double each = 1.0 / gc_max(1, opened);
    r->host *= each;
    r->cpu *= each;
    r->gpu *= each;
    r->write *= each;
    r->start = starts * cpu.seconds[GC_COST_CUDA_START];
    r->next = next_starts * cpu.seconds[GC_COST_CUDA_START];
    return opened > 0;
}
