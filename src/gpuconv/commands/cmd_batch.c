/* gpuconv batch: convolves many files, listed by a manifest or found by patterns. */
#include "cli/cli.h"
#include "cli/terminal.h"
#include "commands.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/visible.h"
#include "libtools/batch/entry/text.h"
#include "libtools/batch/output/results.h"
#include "libtools/batch/run/batch.h"
#include "libtools/room/room_set.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options that are the defaults of a manifest's columns ---- */

typedef struct column_options {
    char *preset, *length, *snr;
    char **noises;
    int level_match;
} column_options;

static gc_given given_settings[GC_SETTINGS];

/* Sets a column unless an option has set it. @return false: out of memory */
static bool set_default(gc_entry_texts *row, int column, const char *text) {
    return row->text[column] || gc_texts_set(row, column, text);
}

/* Copies the settings, which are columns of the same names. @return false: out of memory */
static bool copy_settings(const gc_given *given, gc_entry_texts *row) {
    bool good = true;
    for (int i = 0; i < GC_SETTINGS && good; i++) {
        const int column = gc_column_find(gc_settings_table[i].column);
        if (column < 0)
            continue;
        if (gc_settings_table[i].kind == GC_KIND_FLAG)
            good = !given[i].flag || gc_texts_set(row, column, "1");
        else if (gc_settings_table[i].kind != GC_KIND_FILES)
            good = !given[i].text || gc_texts_set(row, column, given[i].text);
        else
            for (char **s = given[i].list; s && *s && good; s++)
                good = gc_texts_append(row, column, *s);
    }
    return good;
}

static bool fill_row(const column_options *d, gc_entry_texts *row) {
    bool good = copy_settings(given_settings, row) && (!d->snr || gc_texts_set(row, GC_COLUMN_SNR, d->snr));
    if (good && d->level_match)
        good = gc_texts_set(row, GC_COLUMN_LEVEL, "input");
    if (good && d->length && strcmp(d->length, "input") == 0)
        good = gc_texts_set(row, GC_COLUMN_TAIL, "0");
    if (good && d->preset && strcmp(d->preset, "speech") == 0)
        good = set_default(row, GC_COLUMN_ALIGN, "peak") &&
               (row->text[GC_COLUMN_MODE] || (d->length && strcmp(d->length, "full") == 0) ||
                set_default(row, GC_COLUMN_TAIL, "0"));
    return good;
}

static int check_row(const gc_entry_texts *row) {
    int column, status = GC_EXIT_DONE;
    char *reason;
    if (!gc_texts_check(row, &column, &reason))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (reason)
        status = column >= 0
                     ? gc_refuse_setting(&gc_settings_table[column - GC_COLUMN_RECIPE], row->text[column])
                     : gc_print_error(GC_EXIT_USAGE, "the options are not valid for any file: %s; try --help", reason);
    free(reason);
    return status;
}

/* Fills in the row of defaults from the options, and checks it. The row must be cleared, also after a failure. @return
 * GC_EXIT_DONE, or GC_EXIT_USAGE or GC_EXIT_FAILED after a message */
static int defaults_row(const column_options *d, gc_entry_texts *row) {
    *row = (gc_entry_texts){.stem = NULL};
    if (given_settings[GC_SETTING_TAIL].text && d->length)
        return gc_print_error(GC_EXIT_USAGE, "--tail and --length exclude each other; try --help");
    if (given_settings[GC_SETTING_LEVEL].text && d->level_match)
        return gc_print_error(GC_EXIT_USAGE, "--level and --level-match exclude each other; try --help");
    if (!fill_row(d, row))
        return gc_print_error(GC_EXIT_FAILED, "out of memory");
    if (d->noises && !row->text[GC_COLUMN_SNR])
        return gc_print_error(GC_EXIT_USAGE, "--noises needs --snr, such as --snr 5:20; try --help");
    return check_row(row);
}

/* ---- --dry-run ---- */

enum { ROWS = 10, NAME = 600 };

static void print_row(const gc_batch *b, int64_t index) {
    const gc_entry *e = &b->manifest->entry[index];
    char name[NAME];
    char *settings = gc_settings_of(e);
    printf("%lld:", (long long)e->line);
    for (int i = 0; i < gc_entry_sources(e); i++) {
        const gc_source s = gc_entry_source(e, i);
        printf("%s %s", i ? " +" : "", gc_visible(name, sizeof name, s.input));
        printf(" * %s", gc_visible(name, sizeof name, s.response));
    }
    if (gc_entry_noise(e))
        gc_print(stdout, " + %s at %g dB", gc_visible(name, sizeof name, gc_entry_noise(e)), e->extra->snr);
    printf(" -> %s/", gc_visible(name, sizeof name, b->folder));
    if (b->shard_size > 0) {
        char shard[GC_OWN_SHARD];
        gc_own_shard(index / b->shard_size, shard);
        printf("%s/", shard);
    }
    printf("%s\n", gc_visible(name, sizeof name, e->output));
    if (settings)
        printf("    %s\n", gc_visible(name, sizeof name, settings));
    free(settings);
}

/* Prints the first rows of a batch as they would be done, the number of all rows and the number of refused rows.
 * @return GC_EXIT_DONE, GC_EXIT_FAILED if every row is refused, or GC_EXIT_USAGE if the batch is refused */
static int dry_run(const gc_batch *b) {
    static gc_failures refused;
    const gc_manifest *m = b->manifest;
    const gc_own_files own = gc_batch_own_files(b);
    gpuconv_error error = {0};
    int64_t shown = 0, bad = 0;
    char text[GC_FAILURE_BYTES];
    refused.count = 0;
    gpuconv_status status = gc_refuse_conflicts(b->manifest, &own, 1, &error);
    if (status)
        return gc_print_refusal(status, &error);
    for (int64_t i = 0; i < m->entries; i++) {
        if (m->entry[i].refusal) {
            (void)snprintf(text, sizeof text, "line %lld: %s", (long long)m->entry[i].line, m->entry[i].refusal);
            gc_failures_add(&refused, text);
            bad++;
        } else if (shown++ < ROWS) {
            print_row(b, i);
        }
    }
    if (shown > ROWS)
        printf("... and %lld more\n", (long long)(shown - ROWS));
    printf("%lld rows; nothing was written\n", (long long)m->entries);
    gc_failures_sort(&refused);
    for (int i = 0; i < refused.count; i++)
        printf("%lld refused like this: %s\n", (long long)refused.group[i].count, refused.group[i].example);
    return bad == m->entries ? GC_EXIT_FAILED : GC_EXIT_DONE;
}

/* ---- The command ---- */

enum { DEVICES_MOST = 64 };

static const char words_pick[] = "random|all|cycle";

typedef struct options {
    char *out, *pick, *backend, *devices, *segments, *id_suffix, *rooms;
    char **inputs, **irs;
    long long seed, shard_size;
    int workers, absolute, resume, fail_fast, quiet, dry_run;
    column_options defaults;
    gc_meter meter;
} options;

static void note(void *context, const char *text) {
    options *o = context;
    gc_meter_clear(&o->meter);
    if (!o->quiet)
        fprintf(stderr, "gpuconv: %s\n", text);
}

/* Hides all GPUs but the first one from the driver, which then starts sooner: two H200s take 0.2 s longer than one. */
static void hide_other_gpus(void *context) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES"), *shown = list ? list : "0";
    char first[64];
    (void)context;
    if ((size_t)snprintf(first, sizeof first, "%.*s", (int)strcspn(shown, ","), shown) < sizeof first)
        (void)gc_os_set_variable("CUDA_VISIBLE_DEVICES", first); /* without it all of them start */
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

/* Receives a reason of failures at the end. */
static void print_failures(void *context, int64_t count, const char *example) {
    options *o = context;
    gc_meter_clear(&o->meter);
    (void)gc_print_error(0, "%lld failed like this: %s", (long long)count, example);
}

/* Reads the manifest at `path`, or makes one from the patterns. */
static gpuconv_status read_manifest(const options *o, const char *path, const gc_entry_texts *defaults, gc_manifest *m,
                                    gpuconv_error *error) {
    const gc_manifest_options wish = {.defaults = defaults,
                                      .responses = (const char *const *)o->irs,
                                      .noises = (const char *const *)o->defaults.noises,
                                      .rooms = o->rooms,
                                      .pick = (gc_pick)gc_choose("--pick", o->pick, words_pick),
                                      .seed = (uint64_t)o->seed,
                                      .segments = o->segments};
    gpuconv_status status = path ? gc_manifest_read(path, &wish, m, error)
                                 : gc_manifest_pick((const char *const *)o->inputs, &wish, m, error);
    int64_t silent = 0; /* rows without noise at the beginning */
    while (!status && silent < m->entries && !gc_entry_noise(&m->entry[silent]) && !m->entry[silent].refusal)
        silent++;
    if (!status && defaults->text[GC_COLUMN_SNR] && silent == m->entries)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "--snr needs noise: --noises, or the column noise; try --help");
    else if (!status && o->segments && !m->has_segments)
        status = gc_fail(error, GPUCONV_ERROR_ARGUMENT, "--segments is for a wav.scp of Kaldi; try --help");
    else
        return status;
    gc_manifest_free(m);
    return status;
}

/* Prints how the batch ended. @return the exit status */
static int finish(options *o, gpuconv_status status, const gc_batch_progress *p, const gpuconv_error *error,
                  const gc_batch *b, bool first) {
    char folder[512];
    (void)gc_visible(folder, sizeof folder, o->out);
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
        fprintf(stderr, "; %s/" GC_OWN_RESULTS " lists each file\n", folder);
    }
    if (!o->quiet && p->listed >= 0)
        fprintf(stderr, "gpuconv: %s/%s lists %lld outputs\n", folder, gc_own_list(b->manifest->kind),
                (long long)p->listed);
    return status == GPUCONV_ERROR_CANCELLED  ? GC_EXIT_INTERRUPTED
           : status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE
           : status || (first && p->failed)   ? GC_EXIT_FAILED /* if another rank failed, mpirun would kill the first */
                                              : GC_EXIT_DONE;
}

/* Runs the batch. *begun: the threads of the batch have run; false: it failed before. */
static int convolve(options *o, const gc_batch *b, bool *begun) {
    const bool first = !b->ranks || b->ranks->rank == 0;
    gpuconv_error error = {0};
    gc_batch_progress p;
    gc_os_keep_freed_memory(); /* of one file for the next */
    o->meter = gc_meter_begin(o->quiet);
    gpuconv_status status = gc_batch_run(b, &p, &error);
    *begun = !status || p.total > 0;
    return finish(o, status, &p, &error, b, first);
}

/* Checks the combination of options. */
static int check(const options *o, const char *path, int *device, int *devices) {
    if (!o->out || !*o->out)
        return gc_print_error(GC_EXIT_USAGE,
                              "--out FOLDER is missing: it names the folder for the results; try --help");
    if (!path && !o->inputs && o->irs && o->irs[1])
        return gc_print_error(GC_EXIT_USAGE,
                              "needs either a manifest, which must precede --irs and the words that --irs "
                              "takes, or --inputs and --irs; try --help");
    if (!path == !o->inputs || (!path && !o->irs && !o->rooms))
        return gc_print_error(GC_EXIT_USAGE, "needs either a manifest, or --inputs and --irs or --rooms; try --help");
    if (o->rooms && (o->irs || o->pick))
        return gc_print_error(GC_EXIT_USAGE, "--rooms and --%s exclude each other; try --help",
                              o->irs ? "irs" : "pick");
    if (o->id_suffix && !gc_text_is_utf8(o->id_suffix))
        return gc_print_error(GC_EXIT_USAGE, "--id-suffix '%.60s': is not UTF-8; try --help", o->id_suffix);
    if (o->devices && !parse_devices(o->devices, device, devices))
        return gc_print_error(GC_EXIT_USAGE,
                              "--device '%.60s': up to %d numbers from 0 to 1023, such as 0,1; try --help", o->devices,
                              DEVICES_MOST);
    return GC_EXIT_DONE;
}

/* Returns what follows the identifiers in a list of outputs for lhotse. */
static const char *suffix_of(const options *o) {
    return !o->id_suffix ? "_rvb" : strcmp(o->id_suffix, "none") == 0 ? "" : o->id_suffix;
}

static int run(options *o, const char *path) {
    int device[DEVICES_MOST], devices = 0;
    gc_entry_texts defaults = {.stem = NULL};
    int result = check(o, path, device, &devices);
    if (!result)
        result = defaults_row(&o->defaults, &defaults);
    if (result) {
        gc_texts_clear(&defaults);
        return result;
    }
    gpuconv_error error = {0};
    gc_manifest m;
    const gc_ranks *ranks;
    gpuconv_status status = gc_ranks_open(&ranks, &error);
    const volatile int *cancel = gc_catch_signals(); /* before the lists: one may be a pipe that nothing writes to */
    if (!status)
        status = read_manifest(o, path, &defaults, &m, &error);
    gc_texts_clear(&defaults);
    if (status)
        return gc_print_refusal(status, &error);
    const bool first = !ranks || ranks->rank == 0;
    const gc_batch b = {.manifest = &m,
                        .folder = o->out,
                        .keep_manifest = o->irs || o->rooms || o->defaults.noises,
                        .backend = (gpuconv_backend)gc_choose("--backend", o->backend, GC_WORDS_BACKEND),
                        .workers = o->workers,
                        .device = devices ? device : NULL,
                        .devices = devices,
                        .resume = o->resume,
                        .fail_fast = o->fail_fast,
                        .shard_size = o->shard_size,
                        .id_suffix = suffix_of(o),
                        .absolute = o->absolute,
                        .ranks = ranks,
                        .cancel = cancel,
                        .one_gpu = hide_other_gpus,
                        .progress = first ? progress : NULL,
                        .note = note,
                        .failures = first ? print_failures : NULL,
                        .context = o};
    bool begun = true;
    result = o->dry_run ? dry_run(&b) : convolve(o, &b, &begun);
    if (ranks)
        ranks->end(begun, result);
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
    {"out", 'o', POPT_ARG_STRING, &given.out, 0,
     "folder for the results, created if it does not exist; no file that is read may lie in it", "FOLDER"},
    {"resume", '\0', POPT_ARG_NONE, &given.resume, 0,
     "skip entries that FOLDER/results.jsonl records as done and whose files have not changed since", NULL},
    {"fail-fast", '\0', POPT_ARG_NONE, &given.fail_fast, 0, "start no other file after the first failure", NULL},
    {"shard-size", '\0', POPT_ARG_LONGLONG, &given.shard_size, GC_RANGE_ANY_COUNT,
     "pack the outputs into tar files of COUNT entries each, FOLDER/000000.tar and so on (default: 0, loose files)",
     "COUNT"},
    {"id-suffix", '\0', POPT_ARG_STRING, &given.id_suffix, 0,
     "what follows the identifiers in a list of outputs for lhotse (default: _rvb)", "TEXT|none"},
    {"absolute", '\0', POPT_ARG_NONE, &given.absolute, 0,
     "absolute paths in a list of outputs (default: those of FOLDER)", NULL},
    {"dry-run", '\0', POPT_ARG_NONE, &given.dry_run, 0, "print the first rows as they would be done, and do nothing",
     NULL},
    {"inputs", '\0', POPT_ARG_ARGV, &given.inputs, 0, "input files or tar shards, such as 'corpus/**/*.flac'",
     "PATTERN..."},
    {"irs", '\0', POPT_ARG_ARGV, &given.irs, 0,
     "responses: files, patterns or a list; the choices are written to FOLDER/manifest.csv", "PATTERN..."},
    {"pick", '\0', POPT_ARG_STRING, &given.pick, 0,
     "responses for each input: one at random, all, or one in turn (default: random)", words_pick},
    {"rooms", '\0', POPT_ARG_STRING, &given.rooms, 0,
     "instead of --irs: a room for each input, drawn from ranges and simulated: size, rt60, absorption, materials, "
     "distance, pattern, channels, ambisonic, images, source, receiver and (last) sofa, as gpuconv ir synth room has them, such as "
     "'size=3:10x3:8x2.4:4 rt60=0.2:1.0 distance=0.5:3'",
     "'KEY=VALUE...'"},
    {"seed", '\0', POPT_ARG_LONGLONG, &given.seed, GC_RANGE_ANY_COUNT, "seed of all random choices (default: 0)",
     "NUMBER"},
    {"segments", '\0', POPT_ARG_STRING, &given.segments, 0, "Kaldi segments of a wav.scp (default: that of a folder)",
     "FILE"},
    {"preset", '\0', POPT_ARG_STRING, &given.defaults.preset, 0,
     "speech: --align peak --length input, so that each output is as long as its input and labels stay where they were "
     "(default: none)",
     "none|speech"},
    {"length", '\0', POPT_ARG_STRING, &given.defaults.length, 0,
     "input: each output is as long as its input; same as --tail 0 (default: full)", "full|input"},
    {"level-match", '\0', POPT_ARG_NONE, &given.defaults.level_match, 0,
     "--level input, the RMS of the input, as lhotse does (default: the response's own gain)", NULL},
    {"noises", '\0', POPT_ARG_ARGV, &given.defaults.noises, 0,
     "noise for each input: files, patterns or a list; short noise is repeated, a part of long noise is drawn",
     "PATTERN..."},
    {"snr", '\0', POPT_ARG_STRING, &given.defaults.snr, 0,
     "power of the output over that of the noise, or a range to draw from, such as 5:20", "DB|LOW:HIGH"},
    // clang-format off
    GC_SETTINGS_OF_RESULT(GC_SETTING_OPTION)
    GC_SETTINGS_OF_LEVELS(GC_SETTING_OPTION)
    GC_SETTINGS_OF_BATCH(GC_SETTING_OPTION)
    GC_SETTINGS_OF_LAYOUT(GC_SETTING_OPTION)
    GC_SETTINGS_OF_RESPONSE(GC_SETTING_OPTION)
    GC_SETTINGS_OF_FILE(GC_SETTING_OPTION)
    // clang-format on
    {"backend", 'b', POPT_ARG_STRING, &given.backend, 0,
     "where to compute (default: auto, which shares long batches between cores and GPUs)", GC_WORDS_BACKEND},
    {"device", '\0', POPT_ARG_STRING, &given.devices, 0,
     "CUDA devices, such as 0,2 (default: as many as pay off, or all with --backend cuda)", "NUMBERS"},
    {"workers", '\0', POPT_ARG_INT, &given.workers, GC_RANGE_THREADS,
     "files that are convolved at the same time (default: one per core)", "COUNT"},
    {"quiet", 'q', POPT_ARG_NONE, &given.quiet, 0, "print only errors", NULL},
    GC_OPTIONS_END};

static const gc_option_group groups[] = {
    {"out", "Results"},
    {"inputs", "Patterns instead of a manifest, and choices"},
    {"preset", "Outputs (defaults of the manifest's columns; gain, wet, dry and snr may be ranges LOW:HIGH)"},
    {"ir-layout", "Responses (defaults of the manifest's columns)"},
    {"format", "Files"},
    {"backend", "Computation"},
    {"quiet", "Messages"},
    {NULL, NULL}};

const gc_command gc_command_batch = {
    .name = "gpuconv batch",
    .arguments = "[MANIFEST] --out FOLDER",
    .about = "Convolves many files with many impulse responses.",
    .details =
        "MANIFEST is CSV or TSV whose first line names the columns, or JSON Lines (.jsonl) with these names: input; response; "
        "output (below FOLDER, default: the input's name); gain, wet, dry in decibels; offset and length of the input in "
        "seconds; seed; inputs and responses (several sources, separated by |, that are added up) with gains and starts; "
        "noise, snr, noise_offset, noise_response; early (name of the second output); id; and the options below, with _ for -, early_ms for "
        "--early. offset and noise_offset may be 'random'; gain, wet, dry and snr may be ranges LOW:HIGH: they are drawn "
        "from the seed.\n\n"
        "MANIFEST may also be a wav.scp or a data folder of Kaldi, a RecordingSet or CutSet of lhotse, or a folder with "
        "metadata.csv; all of them need --irs or --rooms, and FOLDER gets a list of the outputs of the same kind. Lists may be "
        "compressed by gzip. --irs and --noises take lists too, also Kaldi's with probabilities.\n\n"
        "FOLDER/results.jsonl gets a line for each file, with every value that was drawn; it is a manifest that gives the "
        "same bytes. The exit status is 1 if some files failed.",
    .options = table,
    .run = command,
    .groups = groups,
    .examples = {{"gpuconv batch --inputs samples/*.flac --irs impulses/*.flac --preset speech --format flac --out wet",
                  "convolves each sample with a response picked at random; length and time stay the same"},
                 {"gpuconv batch wet/manifest.csv --out wet --resume", "completes a batch that was interrupted"}}};
