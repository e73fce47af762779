/* gpuconv batch: convolves many files, listed by a manifest or found by patterns. */
#include "cli/cli.h"
#include "commands.h"
#include "gpuconv/batch/batch.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/visible.h"
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

static gc_status_line progress_line(const gc_batch_progress *p) {
    gc_status_line line = {0};
    int64_t now = p->done + p->failed, left = p->total - p->skipped - now;
    double rate = p->seconds > 0 ? (double)now / p->seconds : 0;
    long long passed = now + p->skipped;
    gc_status_part(&line, 0, "%lld of %lld files", passed, (long long)p->total);
    gc_status_part(&line, 2, ", %.0f a second", rate);
    gc_status_part(&line, 3, ", %.3g h of audio a second", p->seconds > 0 ? p->audio / p->seconds / 3600 : 0);
    for (int i = 0; i < p->devices && p->devices > 1 && i < 8; i++)
        gc_status_part(&line, 4, ", cuda %d %.2g h/s", p->device[i], p->device_audio[i] / p->seconds / 3600);
    if (p->failed)
        gc_status_part(&line, 1, ", %lld failed", (long long)p->failed);
    if (left > 0 && now > 0)
        gc_status_time(&line, 1, ", ", (double)left / rate, " left");
    return line;
}

static void progress(void *context, const gc_batch_progress *p) {
    options *o = context;
    if (!gc_meter_due(&o->meter, p->seconds))
        return;
    gc_status_line line = progress_line(p);
    gc_meter_print(&o->meter, &line);
}

static bool parse_devices(const char *text, int *device, int *count) {
    char word[8];
    for (*count = 0;; text++) {
        size_t length = strcspn(text, ",");
        int64_t n;
        if (length >= sizeof word || *count == DEVICES_MOST)
            return false;
        memcpy(word, text, length);
        word[length] = '\0';
        if (!gc_integer_parse(word, &n) || n < 0 || n > 1023)
            return false;
        device[(*count)++] = (int)n;
        text += length;
        if (!*text)
            return true;
    }
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
    if (snprintf(kept, sizeof kept, "%s/manifest.csv", o->out) >= (int)sizeof kept) {
        *error = (gpuconv_error){.status = GPUCONV_ERROR_FILE};
        snprintf(error->message, sizeof error->message, "--out: a folder name of %zu bytes is too long",
                 strlen(o->out));
        status = error->status;
    } else {
        status = gc_manifest_write(m, kept, error);
    }
    if (status)
        gc_manifest_free(m);
    return status;
}

static int finish(options *o, gpuconv_status status, const gc_batch_progress *p, const gpuconv_error *error,
                  bool first) {
    char folder[512];
    gc_meter_clear(&o->meter);
    if (status)
        fprintf(stderr, "gpuconv: %s\n", error->message);
    if (!o->quiet && first && p->total > 0) { /* otherwise nothing was started */
        char text[2048];
        gc_status_line line = progress_line(p);
        gc_status_write(&line, 0, text, sizeof text);
        fprintf(stderr, "gpuconv: %s", text);
        if (p->skipped)
            fprintf(stderr, "; %lld done before", (long long)p->skipped);
        if (p->clipped)
            fprintf(stderr, "; %lld samples clipped", (long long)p->clipped);
        fprintf(stderr, "; %s/results.jsonl lists each file\n", gc_visible(folder, sizeof folder, o->out));
    }
    return status == GPUCONV_ERROR_CANCELLED ? GC_EXIT_INTERRUPTED
           : status || (first && p->failed)  ? GC_EXIT_FAILED /* if another rank failed, mpirun would kill the first */
                                             : GC_EXIT_DONE;
}

static int run(options *o, const char *path) {
    int device[DEVICES_MOST], devices = 0;
    int backend = gc_choose("--backend", o->backend, GC_WORDS_BACKEND);
    if (!o->out || !*o->out)
        return gc_print_error(GC_EXIT_USAGE,
                              "--out FOLDER is missing: it names the folder for the results; try --help");
    if (!path == (!o->inputs || !o->irs) || (path && (o->inputs || o->irs)))
        return gc_print_error(GC_EXIT_USAGE, "needs either a manifest, or --inputs and --irs; try --help");
    if (backend < 0 || gc_choose("--pick", o->pick, words_pick) < 0)
        return GC_EXIT_USAGE;
    if (o->devices && !parse_devices(o->devices, device, &devices))
        return gc_print_error(GC_EXIT_USAGE,
                              "--device '%.60s': up to %d numbers from 0 to 1023, such as 0,1; try --help", o->devices,
                              DEVICES_MOST);
    gpuconv_error error = {0};
    gc_manifest m;
    const gc_ranks *ranks;
    gpuconv_status status = gc_ranks_open(&ranks, &error);
    bool first = !ranks || ranks->rank == 0;
    if (!status)
        status = read_manifest(o, path, &m, first, &error);
    if (status)
        return gc_print_error(GC_EXIT_FAILED, "%s", error.message);
    gc_batch_progress p;
    /* Keeps the memory of one file for the next. If it were returned to the system, it would be mapped and cleared for
     * each file. */
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
        return gc_print_error(GC_EXIT_USAGE, "one manifest is needed, not %d; try --help", count);
    return run(&given, count ? arguments[0] : NULL);
}

static struct poptOption table[] = {
    {"out", 'o', POPT_ARG_STRING, &given.out, 0, "folder for the results, created if it does not exist", "FOLDER"},
    {"resume", '\0', POPT_ARG_NONE, &given.resume, 0,
     "skip entries that FOLDER/results.jsonl records as done and whose files have not changed since", NULL},
    {"fail-fast", '\0', POPT_ARG_NONE, &given.fail_fast, 0, "start no other file after the first failure", NULL},
    {"inputs", '\0', POPT_ARG_STRING, &given.inputs, 0, "input files, such as 'corpus/*/*.flac'", "PATTERN"},
    {"irs", '\0', POPT_ARG_STRING, &given.irs, 0, "responses; the pairs are written to FOLDER/manifest.csv", "PATTERN"},
    {"pick", '\0', POPT_ARG_STRING, &given.pick, 0,
     "responses for each input: one at random, all, or one in turn (default: random)", words_pick},
    {"seed", '\0', POPT_ARG_LONGLONG, &given.seed, GC_RANGE_ANY_COUNT, "seed of random picks (default: 0)", "NUMBER"},
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute (default: auto, which uses GPUs from 1280 files per core)", GC_WORDS_BACKEND},
    {"device", '\0', POPT_ARG_STRING, &given.devices, 0,
     "CUDA devices, such as 0,2 (default: as many as pay off, or all with --backend cuda)", "NUMBERS"},
    {"workers", '\0', POPT_ARG_INT, &given.workers, GC_RANGE_THREADS,
     "files that are convolved at the same time (default: one per core)", "COUNT"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group groups[] = {{"out", "Results"},
                                         {"inputs", "Patterns instead of a manifest"},
                                         {"backend", "Computation"},
                                         {"quiet", "Messages"},
                                         {NULL, NULL}};

static const gc_renamed_option renamed[] = {{"-i", "--inputs"},        {"-p", "--pick"},      {"-s", "--seed"},
                                            {"-R", "--resume"},        {"-f", "--fail-fast"}, {"-d", "--device"},
                                            {"--devices", "--device"}, {"-w", "--workers"},   {NULL, NULL}};

const gc_command gc_command_batch = {
    .name = "gpuconv batch",
    .arguments = "[MANIFEST] --out FOLDER",
    .about = "Convolves many files with many impulse responses.",
    .details =
        "MANIFEST is CSV whose first line names the columns, or JSON Lines (.jsonl). Columns: input; response; output (below "
        "FOLDER, default: the input's name as WAV); gain, wet and dry in decibels (default: dry is not added); offset and "
        "length of the input in seconds; seed (offset may be 'random' and is then drawn from it).\n\n"
        "FOLDER/results.jsonl gets a line for each file. The exit status is 1 if some files failed.",
    .options = table,
    .run = command,
    .groups = groups,
    .renamed = renamed,
    .examples = {{"gpuconv batch --inputs 'samples/*.flac' --irs 'impulses/*.flac' --seed 1 --out wet",
                  "convolves each sample with a response picked at random"},
                 {"gpuconv batch wet/manifest.csv --out wet --resume", "completes a batch that was interrupted"}}};
