/* Times gpuconv and other programs on the same files, from start to end of the process. */
#include "processes.h"

#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/clock.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/report/report.h"
#include "timing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RATE = 48000, TEXT = 4096, TOOLS = 5, MOST_RUNS = 64 };

/* A program under test. The command is run by the shell, because SoX needs pipes and quoting. */
typedef struct tool {
    const char *name, *requires; /* a command that must be found, or for SciPy must succeed */
    char command[TEXT];
    double wall[MOST_RUNS], processor[MOST_RUNS];
    bool installed, failed;
} tool;

/* Results of the warm-up run. */
typedef struct output_check {
    double error, level; /* dB */
    int64_t frames_short;
} output_check;

/* Writes planar samples as a float WAV file. */
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

/* Writes a text file in the folder. */
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

/* Writes the responses as SoX reads them, a text file of coefficients per channel, and the configuration file of
 * fconvolver. */
static gpuconv_status write_tool_inputs(const gc_material *m, const char *folder, gpuconv_error *error) {
    enum { NUMBER = 24, LINE = TEXT };
    int channels = m->what.channels;
    int64_t capacity = gc_max(m->what.taps * NUMBER, (int64_t)LINE * (channels + 1));
    char *text = gc_calloc(capacity, 1), name[32];
    gpuconv_status status = text ? GPUCONV_OK : gc_fail_memory(error, "the coefficients as text");
    for (int c = 0; c < channels && !status; c++) {
        size_t used = 0;
        for (int64_t i = 0; i < m->what.taps; i++)
            used += (size_t)gc_format(text + used, NUMBER, "%.9g\n", (double)m->taps[c][i]);
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

/* Returns the input gain that leaves room for six times the expected output level, because SoX clips. The comparison
 * removes the gain again. */
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

/* Fills the table of tools. */
static void list_tools(const gc_material *m, const char *program, tool *t) {
    int64_t pad = m->what.taps - 1;
    t[0] = (tool){.name = "gpuconv", .requires = "true"};
    snprintf(t[0].command, TEXT, "'%s' -q in.wav ir.wav out.wav", program);
    t[1] = (tool){.name = "ffmpeg afir", .requires = "ffmpeg"};
    snprintf(t[1].command, TEXT,
             "ffmpeg -v error -nostdin -y -i in.wav -i ir.wav -filter_complex "
             "'[0:a]apad=pad_len=%lld[a];[a][1:a]afir=gtype=none:minp=32768:maxp=32768' -c:a pcm_f32le out.wav",
             (long long)pad);
    /* SoX's fir compensates the delay of a symmetric filter, so half of the padding goes before the signal. */
    t[2] = (tool){.name = "SoX fir", .requires = "sox"};
    int64_t before = pad / 2, after = pad - before;
    double gain = headroom(m);
    if (m->what.channels == 1) {
        gc_format(t[2].command, TEXT, "sox -V1 -v %g in.wav -e float -b 32 out.wav pad %llds %llds fir taps0.txt", gain,
                  (long long)before, (long long)after);
    } else {
        size_t used = (size_t)snprintf(t[2].command, TEXT, "sox -V1 -M");
        for (int c = 0; c < m->what.channels && used < TEXT; c++)
            used += (size_t)gc_format(t[2].command + used, TEXT - used,
                                      " '|sox -V1 -v %g in.wav -p remix %d pad %llds %llds fir taps%d.txt'", gain,
                                      c + 1, (long long)before, (long long)after, c);
        if (used < TEXT)
            snprintf(t[2].command + used, TEXT - used, " -e float -b 32 out.wav");
    }
    t[3] = (tool){.name = "fconvolver", .requires = "fconvolver"};
    snprintf(t[3].command, TEXT, "fconvolver -V fconvolver.conf in.wav out.wav");
    t[4] = (tool){.name = "SciPy oaconvolve", .requires = "python3 -c 'import scipy.signal'"};
    snprintf(t[4].command, TEXT, "python3 -c '%s' in.wav ir.wav out.wav", scipy);
}

/* Reads out.wav into the material's outputs, as many frames as the input has. @param frames receives the number of
 * frames in the file @return false if the file cannot be read */
static bool read_output(const gc_material *m, const char *path, int64_t *frames) {
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

/* Prints a note about a tool. */
static void note_tool(const gc_bench *b, const char *name, const char *what) {
    char text[TEXT];
    snprintf(text, sizeof text, "%s: %s", name, what);
    gc_bench_note(b, text);
}

/* Reports the times and the output check of one tool. @return STATE if gpuconv's own output is wrong */
static gpuconv_status report_tool(const gc_bench *b, const gc_material *m, tool *t, const output_check *result,
                                  gpuconv_error *error) {
    static const char *const names[] = {"wall ms", "spread", "CPU ms", "error dB", "level dB", "frames short"};
    char label[160];
    double wall = gc_median(t->wall, b->runs, NULL);
    double values[] = {wall * 1e3,
                       (t->wall[b->runs - 1] - t->wall[0]) / 2 * 1e3,
                       gc_median(t->processor, b->runs, NULL) * 1e3,
                       result->error,
                       result->level,
                       (double)result->frames_short};
    snprintf(label, sizeof label, "%s: %s", m->what.name, t->name);
    gc_report_named_row(b->report, "processes", label, 6, names, values);
    if (strcmp(t->name, "gpuconv") == 0 &&
        !(result->error <= -120 && fabs(result->level) < 1e-3 && result->frames_short == 0))
        return gc_fail(error, GPUCONV_ERROR_STATE,
                       "%s: gpuconv's output is wrong: error %.1f dB, level %.4f dB, %lld frames missing", m->what.name,
                       result->error, result->level, (long long)result->frames_short);
    if (!(result->error <= -60 && result->frames_short <= 0))
        note_tool(b, t->name, "its output is wrong or too short");
    return GPUCONV_OK;
}

/* Checks the output of tool i, which has just run for the first time. */
static void check_output(const gc_bench *b, const gc_material *m, const char *path, tool *t, output_check *result) {
    int64_t frames;
    t->failed = !read_output(m, path, &frames);
    if (t->failed)
        note_tool(b, t->name, "its output cannot be read");
    result->error = gc_material_error_at_best_level(m, &result->level);
    result->frames_short = gc_max((int64_t)0, m->what.frames + m->what.taps - 1 - frames);
}

/* Runs all tools in turn, b->runs times after a warm-up run, and reports them. */
static gpuconv_status run_tools(const gc_bench *b, const gc_material *m, const char *folder, tool *t,
                                gpuconv_error *error) {
    char path[TEXT];
    output_check result[TOOLS] = {{0}};
    gpuconv_status status = GPUCONV_OK;
    snprintf(path, sizeof path, "%s/out.wav", folder);
    for (int round = -1; round < b->runs && !status; round++) /* round -1 fills the caches and is checked */
        for (int i = 0; i < TOOLS && !status; i++) {
            double wall, processor;
            if (!t[i].installed || t[i].failed)
                continue;
            (void)unlink(path);
            t[i].failed = gc_os_run_shell(folder, t[i].command, &wall, &processor) != 0;
            if (gc_cancelled()) {
                status = gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
            } else if (t[i].failed) {
                note_tool(b, t[i].name, "failed");
                if (i == 0)
                    status = gc_fail(error, GPUCONV_ERROR_STATE, "%s: gpuconv failed", m->what.name);
            } else if (round < 0) {
                check_output(b, m, path, &t[i], &result[i]);
            } else {
                t[i].wall[round] = wall;
                t[i].processor[round] = processor;
            }
        }
    for (int i = 0; i < TOOLS && !status; i++)
        if (t[i].installed && !t[i].failed)
            status = report_tool(b, m, &t[i], &result[i], error);
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
    gpuconv_status status = gc_bench_refuse_matrix(what, error);
    if (!status)
        status = t ? gc_material_new(what, &m, error) : gc_fail_memory(error, "the benchmark");
    if (status) {
        free(t);
        return status;
    }
    if (strchr(folder, '\'') || strchr(program, '\'') || !mkdtemp(folder)) {
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", folder,
                         errno ? strerror(errno) : "the path contains an apostrophe");
    } else {
        snprintf(path, sizeof path, "%s/in.wav", folder);
        status = write_wav(path, (const float *const *)m.in, what->channels, what->frames, error);
        snprintf(path, sizeof path, "%s/ir.wav", folder);
        if (!status)
            status = write_wav(path, (const float *const *)m.taps, what->channels, what->taps, error);
        if (!status)
            status = write_tool_inputs(&m, folder, error);
        list_tools(&m, program, t);
        for (int i = 0; i < TOOLS && !status; i++) {
            double wall, processor;
            char probe[TEXT];
            snprintf(probe, sizeof probe, i == 4 ? "%s" : "command -v %s", t[i].requires);
            t[i].installed = gc_os_run_shell(folder, probe, &wall, &processor) == 0;
            if (!t[i].installed)
                note_tool(b, t[i].name, "not installed");
        }
        if (!status)
            status = run_tools(b, &m, folder, t, error);
        remove_folder(folder, what->channels);
    }
    gc_material_free(&m);
    free(t);
    return status;
}
