/* Other people's programs on the same files, timed from start to end of the process. */
#include "processes.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/report.h"
#include "material.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RATE = 48000, TEXT = 4096, TOOLS = 5, MOST_RUNS = 64 };

extern char **environ;

/* A tool is a shell command: only the shell says the same everywhere about what is missing, piped or redirected. */
typedef struct tool {
    const char *name, *needs; /* what must be found for it to run */
    char command[TEXT];
    double wall[MOST_RUNS], processor[MOST_RUNS];
    bool there, failed;
} tool;

static gpuconv_status write_wav(const char *path, const float *const *planar, int channels, int64_t frames,
                                gpuconv_error *error) {
    enum { STEP = 8192 };
    gc_audio_info info = gc_audio_info_float(channels, RATE, frames);
    gc_writer *w = NULL;
    float *block = gc_calloc((int64_t)STEP * channels, sizeof *block);
    gpuconv_status status = block ? gc_writer_new(path, NULL, &info, channels, frames, &w, error)
                                  : gc_fail_memory(error, "a file of the benchmark");
    for (int64_t at = 0; at < frames && !status; at += STEP) {
        int64_t n = gc_min(STEP, frames - at);
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < channels; c++)
                block[i * channels + c] = planar[c][at + i];
        status = gc_writer_write(w, block, n, error);
    }
    if (!status)
        status = gc_writer_commit(w, error);
    gc_writer_free(w);
    free(block);
    return status;
}

static gpuconv_status write_text(const char *folder, const char *name, const char *text, size_t length,
                                 gpuconv_error *error) {
    char path[TEXT];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    bool bad = !f || fwrite(text, 1, length, f) != length;
    if (f && fclose(f) != 0)
        bad = true;
    return bad ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(errno)) : GPUCONV_OK;
}

/* SoX reads a filter's coefficients as text, one file a channel; fconvolver a list of responses. */
static gpuconv_status write_texts(const gc_material *m, const char *folder, gpuconv_error *error) {
    enum { NUMBER = 24, LINE = TEXT };
    int channels = m->what.channels;
    int64_t room = gc_max(m->what.taps * NUMBER, (int64_t)LINE * (channels + 1));
    char *text = gc_calloc(room, 1), name[32];
    gpuconv_status status = text ? GPUCONV_OK : gc_fail_memory(error, "the coefficients as text");
    for (int c = 0; c < channels && !status; c++) {
        size_t used = 0;
        for (int64_t i = 0; i < m->what.taps; i++)
            used += (size_t)snprintf(text + used, NUMBER, "%.9g\n", (double)m->taps[c][i]);
        snprintf(name, sizeof name, "taps%d.txt", c);
        status = write_text(folder, name, text, used, error);
    }
    if (!status) {
        size_t used = (size_t)snprintf(text, LINE, "/convolver/new %d %d 8192 %lld 1.0\n", channels, channels,
                                       (long long)m->what.taps);
        for (int c = 1; c <= channels; c++)
            used += (size_t)snprintf(text + used, LINE, "/impulse/read %d %d 1 0 0 0 %d %s/ir.wav\n", c, c, c, folder);
        status = write_text(folder, "fconvolver.conf", text, used, error);
    }
    free(text);
    return status;
}

static const char scipy[] =
    "import sys, numpy as np; from scipy.io import wavfile; from scipy.signal import oaconvolve\n"
    "r, x = wavfile.read(sys.argv[1]); _, h = wavfile.read(sys.argv[2])\n"
    "wavfile.write(sys.argv[3], r, oaconvolve(x, h, axes=0).astype(np.float32))\n";

/* So that six times the expected level of the output still fits: SoX clips, and its level is taken out again. */
static double headroom(const gc_material *m) {
    double most = 0;
    for (int c = 0; c < m->what.channels; c++) {
        double power = 0;
        for (int64_t i = 0; i < m->what.taps; i++)
            power += (double)m->taps[c][i] * (double)m->taps[c][i];
        most = fmax(most, power);
    }
    return fmin(1, 1 / (6 * sqrt(most / 12)));
}

static void commands(const gc_material *m, const char *program, tool *t) {
    int64_t pad = m->what.taps - 1;
    t[0] = (tool){.name = "gpuconv", .needs = "true"};
    snprintf(t[0].command, TEXT, "'%s' -q in.wav ir.wav out.wav", program);
    t[1] = (tool){.name = "ffmpeg afir", .needs = "ffmpeg"};
    snprintf(t[1].command, TEXT,
             "ffmpeg -v error -nostdin -y -i in.wav -i ir.wav -filter_complex "
             "'[0:a]apad=pad_len=%lld[a];[a][1:a]afir=gtype=none:minp=32768:maxp=32768' -c:a pcm_f32le out.wav",
             (long long)pad);
    /* fir centres its filter. */
    t[2] = (tool){.name = "SoX fir", .needs = "sox"};
    int64_t before = pad / 2, behind = pad - before;
    double gain = headroom(m);
    if (m->what.channels == 1) {
        snprintf(t[2].command, TEXT, "sox -V1 -v %g in.wav -e float -b 32 out.wav pad %llds %llds fir taps0.txt", gain,
                 (long long)before, (long long)behind);
    } else {
        size_t used = (size_t)snprintf(t[2].command, TEXT, "sox -V1 -M");
        for (int c = 0; c < m->what.channels && used < TEXT; c++)
            used += (size_t)snprintf(t[2].command + used, TEXT - used,
                                     " '|sox -V1 -v %g in.wav -p remix %d pad %llds %llds fir taps%d.txt'", gain, c + 1,
                                     (long long)before, (long long)behind, c);
        if (used < TEXT)
            snprintf(t[2].command + used, TEXT - used, " -e float -b 32 out.wav");
    }
    t[3] = (tool){.name = "fconvolver", .needs = "fconvolver"};
    snprintf(t[3].command, TEXT, "fconvolver -V fconvolver.conf in.wav out.wav");
    t[4] = (tool){.name = "SciPy oaconvolve", .needs = "python3 -c 'import scipy.signal'"};
    snprintf(t[4].command, TEXT, "python3 -c '%s' in.wav ir.wav out.wav", scipy);
}

/* Runs a shell command in the folder, its output thrown away. Gives its exit status, or -1. */
static int run(const char *folder, const char *command, double *wall, double *processor) {
    char text[2 * TEXT];
    snprintf(text, sizeof text, "cd '%s' && %s", folder, command);
    char shell[] = "sh", option[] = "-c", *const argv[] = {shell, option, text, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    struct rusage used;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return -1;
    bool bad = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
               posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0 ||
               posix_spawn_file_actions_adddup2(&actions, 1, 2) != 0;
    double start = gc_now();
    bad = bad || posix_spawn(&child, "/bin/sh", &actions, NULL, argv, environ) != 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    if (bad)
        return -1;
    while (wait4(child, &status, 0, &used) < 0)
        if (errno != EINTR)
            return -1;
    *wall = gc_now() - start;
    *processor = (double)used.ru_utime.tv_sec + (double)used.ru_stime.tv_sec +
                 1e-6 * ((double)used.ru_utime.tv_usec + (double)used.ru_stime.tv_usec);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What lies in out.wav, as far as the input goes, into the material's outputs; frames beyond that must be there too. */
static bool fetch(const gc_material *m, const char *path, int64_t *frames) {
    enum { STEP = 8192 };
    gc_reader *r;
    gpuconv_error error = {0};
    int channels = m->what.channels;
    int64_t at = 0, got = 0;
    *frames = 0;
    for (int c = 0; c < channels; c++)
        memset(m->out[c], 0xff, (size_t)m->what.frames * sizeof(float));
    if (gc_reader_new(path, &r, &error) != GPUCONV_OK)
        return false;
    float *block = gc_calloc((int64_t)STEP * channels, sizeof *block);
    bool good = block && gc_reader_info(r)->channels == channels;
    do {
        good = good && gc_reader_read_floats(r, block, STEP, &got, &error) == GPUCONV_OK;
        for (int64_t i = 0; good && i < got && at + i < m->what.frames; i++)
            for (int c = 0; c < channels; c++)
                m->out[c][at + i] = block[i * channels + c];
        at += good ? got : 0;
    } while (good && got == STEP);
    gc_reader_free(r);
    free(block);
    *frames = at;
    return good;
}

static void note(const gc_bench *b, const char *name, const char *what) {
    char text[TEXT];
    snprintf(text, sizeof text, "%s: %s", name, what);
    if (b->note)
        b->note(b->context, text);
}

static gpuconv_status tell(const gc_bench *b, const gc_material *m, tool *t, const double *result,
                           gpuconv_error *error) {
    static const char *const names[] = {"wall ms", "spread", "CPU ms", "error dB", "level dB", "frames short"};
    char label[160];
    double wall = gc_median(t->wall, b->runs, NULL);
    double values[] = {wall * 1e3,
                       (t->wall[b->runs - 1] - t->wall[0]) / 2 * 1e3,
                       gc_median(t->processor, b->runs, NULL) * 1e3,
                       result[0],
                       result[1],
                       result[2]};
    snprintf(label, sizeof label, "%s: %s", m->what.name, t->name);
    gc_report_named_row(b->report, "processes", label, 6, names, values);
    if (strcmp(t->name, "gpuconv") == 0 && !(result[0] <= -120 && fabs(result[1]) < 1e-3 && result[2] == 0))
        return gc_fail(error, GPUCONV_ERROR_STATE, "%s by this program is wrong: %.1f dB, level %.4f dB, %.0f short",
                       m->what.name, result[0], result[1], result[2]);
    if (!(result[0] <= -60 && result[2] <= 0))
        note(b, t->name, "its output is wrong, or too short");
    return GPUCONV_OK;
}

static gpuconv_status rounds(const gc_bench *b, const gc_material *m, const char *folder, tool *t,
                             gpuconv_error *error) {
    char path[TEXT];
    double result[TOOLS][3] = {{0}};
    gpuconv_status status = GPUCONV_OK;
    snprintf(path, sizeof path, "%s/out.wav", folder);
    for (int round = -1; round < b->runs && !status; round++) /* the first fills the caches, and is checked */
        for (int i = 0; i < TOOLS && !status; i++) {
            double wall, processor;
            if (!t[i].there || t[i].failed)
                continue;
            (void)unlink(path);
            t[i].failed = run(folder, t[i].command, &wall, &processor) != 0;
            if (b->cancel && *b->cancel) {
                status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
            } else if (t[i].failed) {
                note(b, t[i].name, "failed");
                if (i == 0)
                    status = gc_fail(error, GPUCONV_ERROR_STATE, "%s: this program failed", m->what.name);
            } else if (round < 0) {
                int64_t frames;
                t[i].failed = !fetch(m, path, &frames);
                if (t[i].failed)
                    note(b, t[i].name, "its output cannot be read");
                result[i][0] = gc_material_error_at_best_level(m, &result[i][1]);
                result[i][2] = (double)gc_max((int64_t)0, m->what.frames + m->what.taps - 1 - frames);
            } else {
                t[i].wall[round] = wall;
                t[i].processor[round] = processor;
            }
        }
    for (int i = 0; i < TOOLS && !status; i++)
        if (t[i].there && !t[i].failed)
            status = tell(b, m, &t[i], result[i], error);
    return status;
}

static void remove_folder(const char *folder, int channels) {
    static const char *const files[] = {"in.wav", "ir.wav", "out.wav", "fconvolver.conf"};
    char path[TEXT];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        (void)unlink(path);
    }
    for (int c = 0; c < channels; c++) {
        snprintf(path, sizeof path, "%s/taps%d.txt", folder, c);
        (void)unlink(path);
    }
    (void)rmdir(folder);
}

gpuconv_status gc_bench_processes(const gc_bench *b, const gc_bench_case *what, const char *program,
                                  gpuconv_error *error) {
    const char *temporary = getenv("TMPDIR");
    char folder[TEXT / 2], path[TEXT];
    gc_material m;
    tool *t = gc_calloc(TOOLS, sizeof *t);
    snprintf(folder, sizeof folder, "%s/gpuconv-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    gpuconv_status status = t ? gc_material_new(what, &m, error) : gc_fail_memory(error, "the benchmark");
    if (status) {
        free(t);
        return status;
    }
    if (strchr(folder, '\'') || strchr(program, '\'') || !mkdtemp(folder)) {
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", folder, errno ? strerror(errno) : "no place for files");
    } else {
        snprintf(path, sizeof path, "%s/in.wav", folder);
        status = write_wav(path, (const float *const *)m.in, what->channels, what->frames, error);
        snprintf(path, sizeof path, "%s/ir.wav", folder);
        if (!status)
            status = write_wav(path, (const float *const *)m.taps, what->channels, what->taps, error);
        if (!status)
            status = write_texts(&m, folder, error);
        commands(&m, program, t);
        for (int i = 0; i < TOOLS && !status; i++) {
            double w, p;
            char probe[TEXT];
            snprintf(probe, sizeof probe, i == 4 ? "%s" : "command -v %s", t[i].needs);
            t[i].there = run(folder, probe, &w, &p) == 0;
            if (!t[i].there)
                note(b, t[i].name, "not installed");
        }
        if (!status)
            status = rounds(b, &m, folder, t, error);
        remove_folder(folder, what->channels);
    }
    gc_material_free(&m);
    free(t);
    return status;
}
