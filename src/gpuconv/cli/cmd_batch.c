/* gpuconv batch: a whole corpus, by manifest or by patterns. */
#include "cli.h"
#include "gpuconv/batch/batch.h"
#include "progress.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MOST = 64 };

static const char words_pick[] = "random|all|cycle";

typedef struct options {
    char *out, *inputs, *irs, *pick, *backend, *devices;
    long long seed;
    int workers, resume, fail_fast, quiet;
    gc_meter meter;
} options;

static void note(void *context, const char *text) {
    options *o = context;
    gc_meter_clear(&o->meter);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %s\n", text);
}

static void print_progress(const gc_batch_progress *p) {
    int64_t now = p->done + p->failed, left = p->total - p->skipped - now;
    double rate = p->seconds > 0 ? (double)now / p->seconds : 0;
    long long passed = now + p->skipped;
    fprintf(stderr, "%lld of %lld files, %.0f a second, %.3g h of audio a second", passed, (long long)p->total, rate,
            p->seconds > 0 ? p->audio / p->seconds / 3600 : 0);
    for (int i = 0; i < p->devices && p->devices > 1 && i < 8; i++)
        fprintf(stderr, ", cuda %d %.2g h/s", p->device[i], p->device_audio[i] / p->seconds / 3600);
    if (p->failed)
        fprintf(stderr, ", %lld failed", (long long)p->failed);
    if (left > 0 && now > 0) {
        fprintf(stderr, ", ");
        gc_print_time((double)left / rate);
        fprintf(stderr, " left");
    }
}

static void progress(void *context, const gc_batch_progress *p) {
    options *o = context;
    if (!gc_meter_begin_line(&o->meter, p->seconds))
        return;
    print_progress(p);
    gc_meter_end_line(&o->meter);
}

static bool parse_devices(const char *text, int *device, int *count) {
    for (*count = 0; *text;) {
        char *end;
        long n = strtol(text, &end, 10);
        if (end == text || n < 0 || n > 1023 || *count == DEVICES_MOST || (*end && *end != ','))
            return false;
        device[(*count)++] = (int)n;
        text = end + (*end == ',');
    }
    return *count > 0;
}

static gpuconv_status read_manifest(const options *o, const char *path, gc_manifest *m, bool first,
                                    gpuconv_error *error) {
    if (path)
        return gc_manifest_read(path, m, error);
    char kept[4200];
    gc_pick pick = (gc_pick)gc_choose("--pick", o->pick, words_pick);
    gpuconv_status status = gc_manifest_pick(o->inputs, o->irs, pick, (uint64_t)o->seed, m, error);
    if (status || !first)
        return status;
    snprintf(kept, sizeof kept, "%s/manifest.csv", o->out);
    status = gc_manifest_write(m, kept, error);
    if (status)
        gc_manifest_free(m);
    return status;
}

static int finish(options *o, gpuconv_status status, const gc_batch_progress *p, const gpuconv_error *error,
                  bool first) {
    gc_meter_clear(&o->meter);
    if (status)
        fprintf(stderr, "gpuconv: %s\n", error->message);
    if (!o->quiet && first && p->total > 0) { /* else it has not begun */
        fprintf(stderr, "gpuconv: ");
        print_progress(p);
        if (p->skipped)
            fprintf(stderr, "; %lld were there before", (long long)p->skipped);
        if (p->clipped)
            fprintf(stderr, "; %lld samples clipped", (long long)p->clipped);
        fprintf(stderr, "; %s/results.jsonl has each\n", o->out);
    }
    return status == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED
           : status || (first && p->failed)
               ? GC_EXIT_FAILED /* another rank that failed would have mpirun kill the first */
               : GC_EXIT_DONE;
}

static int run(options *o, const char *path) {
    int device[DEVICES_MOST], devices = 0;
    int backend = gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    if (!o->out)
        return gc_exit(GC_EXIT_USAGE, "--out names the folder for the results; try --help");
    if (!path == (!o->inputs || !o->irs) || (path && (o->inputs || o->irs)))
        return gc_exit(GC_EXIT_USAGE, "a manifest, or --inputs and --irs; try --help");
    if (backend < 0 || gc_choose("--pick", o->pick, words_pick) < 0)
        return GC_EXIT_USAGE;
    if (o->workers < 0 || o->workers > 1024 || o->seed < 0 ||
        (o->devices && !parse_devices(o->devices, device, &devices)))
        return gc_exit(GC_EXIT_USAGE,
                       "--workers are 1 to 1024, --seed 0 or more, --devices numbers like 0,1; try --help");
    gpuconv_error error = {0};
    gc_manifest m;
    const gc_ranks *ranks;
    gpuconv_status status = gc_ranks_open(&ranks, &error);
    bool first = !ranks || ranks->rank == 0;
    if (!status)
        status = read_manifest(o, path, &m, first, &error);
    if (status)
        return gc_exit(GC_EXIT_FAILED, "%s", error.message);
    gc_batch_progress p;
    /* The memory of one file serves the next: given back to the system, it would be cleared and mapped anew each time.
     */
    mallopt(M_MMAP_THRESHOLD, 1 << 25);
    mallopt(M_TRIM_THRESHOLD, 1 << 28);
    o->meter = gc_meter_begin(o->quiet);
    gc_batch b = {.manifest = &m,
                  .folder = o->out,
                  .backend = (gpuconv_backend)backend,
                  .workers = o->workers,
                  .device = o->devices ? device : NULL,
                  .devices = devices,
                  .resume = o->resume,
                  .fail_fast = o->fail_fast,
                  .ranks = ranks,
                  .cancel = gc_catch_signals(),
                  .progress = first ? progress : NULL,
                  .note = note,
                  .context = o};
    status = gc_batch_run(&b, &p, &error);
    int result = finish(o, status, &p, &error, first);
    if (ranks)
        ranks->end();
    gc_manifest_free(&m);
    return result;
}

static options given;

static int command(const char **arguments, int count) {
    if (count > 1)
        return gc_exit(GC_EXIT_USAGE, "one manifest at a time; try --help");
    return run(&given, count ? arguments[0] : NULL);
}

static struct poptOption table[] = {
    {"out", 'o', POPT_ARG_STRING, &given.out, 0, "folder for the results, made if missing", "FOLDER"},
    {"inputs", 'i', POPT_ARG_STRING, &given.inputs, 0, "instead of a manifest: inputs, such as 'corpus/*/*.flac'",
     "PATTERN"},
    {"irs", 'h', POPT_ARG_STRING, &given.irs, 0, "and responses; FOLDER/manifest.csv tells what came of them",
     "PATTERN"},
    {"pick", 'p', POPT_ARG_STRING, &given.pick, 0, "of the responses, for each input (default: random)", words_pick},
    {"seed", 's', POPT_ARG_LONGLONG, &given.seed, 0, "for random picks (default: 0)", "NUMBER"},
    {"resume", 'R', POPT_ARG_NONE, &given.resume, 0, "leave alone what has its output already", NULL},
    {"fail-fast", 'f', POPT_ARG_NONE, &given.fail_fast, 0, "begin nothing more after the first failure", NULL},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute (default: auto, GPUs from 1280 files a core on)", GC_WORDS_BACKEND},
    {"devices", 'd', POPT_ARG_STRING, &given.devices, 0,
     "CUDA devices, such as 0,2 (default: as many as pay, or all with --backend cuda)", "NUMBERS"},
    {"workers", 'w', POPT_ARG_INT, &given.workers, 0, "files at a time (default: one a core)", "COUNT"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "say nothing but errors", NULL},
    GC_OPTIONS_END};

const gc_command gc_command_batch = {
    "gpuconv batch", "[MANIFEST] --out FOLDER",
    "[MANIFEST] --out FOLDER [OPTIONS]\n"
    "Convolves many files with many responses. MANIFEST is CSV with a first line that names its columns, or JSON\n"
    "Lines (.jsonl): input, response, output (below FOLDER; default: the input's name as WAV), gain, wet and dry in\n"
    "decibels (dry: none by default), offset and length of the input in seconds (offset may be 'random', drawn by\n"
    "the column seed). FOLDER/results.jsonl gets a line for each file. Exit: 0 all done, 1 some failed.\n\n"
    "Options:",
    table, command};
