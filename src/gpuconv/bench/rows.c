/* Times rows of every length on each backend and verifies them. */
#include "bench.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "libgpuconv/core/random.h"
#include "libgpuconv/core/statistics.h"
#include "libgpuconv/dsp/half.h"
#include "libgpuconv/report/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one length: row i has response i mod `responses`, or with a hop a response for each `hop` frames. */
typedef struct bench_row {
    int64_t rows, frames, taps, responses, hop;
    gpuconv_sample_type type;
} bench_row;

/* ---- PyTorch's time, in a process of python3 --------------------------------------------------------------------- */

static const char script[] =
    "import sys, time, torch, torch.nn.functional as F\n"
    "gpu, threads, runs = sys.argv[1] == 'cuda', int(sys.argv[2]), int(sys.argv[3])\n"
    "if gpu and not torch.cuda.is_available(): sys.exit(1)\n"
    "if threads: torch.set_num_threads(threads)\n"
    "device = 'cuda' if gpu else 'cpu'\n"
    "def wait():\n"
    "    if gpu: torch.cuda.synchronize()\n"
    "def convolve(x, h, frames):\n"
    "    n = 1 << (frames + h.shape[-1] - 2).bit_length()\n"
    "    return torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)\n"
    "@torch.no_grad()\n"
    "def measure(rows, frames, taps, responses, hop):\n"
    "    if hop:\n"
    "        x = torch.randn(rows, frames // hop, hop, device=device)\n"
    "        h = torch.randn(rows, frames // hop, taps, device=device)\n"
    "        width = hop + taps - 1\n"
    "        def run():\n"
    "            y = convolve(x, h, hop)[..., :width].transpose(1, 2)\n"
    "            return F.fold(y, (1, frames + taps - 1), (1, width), stride=(1, hop))[..., :frames]\n"
    "    else:\n"
    "        x = torch.randn(rows // responses, responses, frames, device=device)\n"
    "        h = torch.randn(responses, taps, device=device)\n"
    "        def run(): return convolve(x, h, frames)[..., :frames].contiguous()\n"
    "    times = []\n"
    "    for i in range(runs + 1):\n"
    "        wait()\n"
    "        begin, calls = time.perf_counter(), 10 if gpu else 1\n"
    "        for _ in range(calls): run()\n"
    "        wait()\n"
    "        times.append((time.perf_counter() - begin) / calls)\n"
    "    return sorted(times[1:])[runs // 2]\n"
    "for case in sys.argv[4:]:\n"
    "    try: print(measure(*map(int, case.split(','))), flush=True)\n"
    "    except RuntimeError: print('nan', flush=True)\n";

enum { LINE = 64, COMMAND = sizeof script + 4096 };

/* Writes the median seconds of PyTorch's FFT for each case to seconds[]; NaN where it has none. threads: of the CPU; 0:
 * as PyTorch chooses.
 * @return false if python3 has no PyTorch for this backend */
static bool time_peer(const bench_row *rows, int count, gpuconv_backend backend, int threads, int runs,
                      double *seconds) {
    char command[COMMAND], line[LINE];
    int used = snprintf(command, sizeof command, "exec python3 -c \"%s\" %s %d %d", script,
                        backend == GPUCONV_BACKEND_CUDA ? "cuda" : "cpu", threads, runs);
    for (int i = 0; i < count; i++) {
        seconds[i] = (double)NAN;
        used += snprintf(command + used, sizeof command - (size_t)used, " %lld,%lld,%lld,%lld,%lld",
                         (long long)rows[i].rows, (long long)rows[i].frames, (long long)rows[i].taps,
                         (long long)rows[i].responses, (long long)rows[i].hop);
        if (used > COMMAND - LINE * 2)
            return false;
    }
    snprintf(command + used, sizeof command - (size_t)used, " 2>/dev/null");
    FILE *python = popen(command, "r"); /* NOLINT(cert-env33-c): the text is this file's */
    if (!python)
        return false;
    for (int i = 0; i < count && fgets(line, sizeof line, python); i++) {
        line[strcspn(line, "\r\n")] = '\0';
        (void)gc_number_parse(line, &seconds[i]); /* of "nan" it stays NAN */
    }
    return pclose(python) == 0;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* Numbers of different rows, of rows that are verified, and of their verified frames. */
enum { DISTINCT = 256, CHECKS = 4, CHECKED_FRAMES = 64 };

/* The largest error of a correct output, in dB. */
static const double float_bound = -115, half_bound = -48;

/* Sequences of 768 channels. */
#define SEQUENCE(batch, frames, type)                                                                                  \
    { (batch) * INT64_C(768), frames, frames, 768, 0, GPUCONV_SAMPLE_##type }
#define SEQUENCES(batch, frames) SEQUENCE(batch, frames, F32), SEQUENCE(batch, frames, F16)

static const bench_row cases[] = {SEQUENCES(64, 128),
                                  SEQUENCES(64, 256),
                                  SEQUENCES(64, 512),
                                  SEQUENCES(64, 1024),
                                  SEQUENCES(64, 2048),
                                  SEQUENCES(64, 4096),
                                  SEQUENCES(64, 8192),
                                  SEQUENCES(32, 16384),
                                  {65536, 128, 128, 65536, 0, GPUCONV_SAMPLE_F32},
                                  {4096, 512, 256, 4096, 0, GPUCONV_SAMPLE_F32},
                                  {1024, 48000, 64, 1, 0, GPUCONV_SAMPLE_F32},
                                  {64, 64000, 128, 0, 64, GPUCONV_SAMPLE_F32},
                                  {16, 480000, 1024, 0, 480, GPUCONV_SAMPLE_F32}};
enum { CASES = sizeof cases / sizeof *cases, CPU_PART = 16 };

/* Returns the case as a backend gets it: the CPU gets a sixteenth of the rows, at least one for each response. */
static bench_row case_of(int i, gpuconv_backend backend) {
    bench_row r = cases[i];
    const bool own = r.responses == r.rows;
    if (backend == GPUCONV_BACKEND_CPU)
        r.rows = gc_max(r.rows / CPU_PART, own ? 1 : r.responses);
    r.responses = r.hop ? r.rows * (r.frames / r.hop) : own ? r.rows : r.responses;
    return r;
}

/* A block of different rows, as numbers and as samples. */
typedef struct block {
    float *number;
    uint16_t *half; /* NULL: floats */
    gc_timed_rows rows;
} block;

static bool make_block(block *b, uint64_t seed, int64_t rows, int64_t frames, gpuconv_sample_type type) {
    const int64_t distinct = gc_min(rows, DISTINCT), samples = distinct * frames;
    b->number = gc_calloc(samples, sizeof *b->number);
    b->half = type == GPUCONV_SAMPLE_F32 ? NULL : gc_calloc(samples, sizeof *b->half);
    if (!b->number || (type != GPUCONV_SAMPLE_F32 && !b->half))
        return false;
    for (int64_t i = 0; i < samples; i++) {
        b->number[i] = gc_random_float(&seed);
        if (b->half)
            b->number[i] = gc_half_to_float(b->half[i] = gc_half_of_float(b->number[i]));
    }
    b->rows = (gc_timed_rows){b->half ? (const void *)b->half : b->number, rows, distinct, frames};
    return true;
}

static void free_block(block *b) {
    free(b->number);
    free(b->half);
}

/* Returns frame n of an output row in double precision. */
static double expected(const bench_row *r, const block *x, const block *h, int64_t row, int64_t n) {
    const float *signal = x->number + row % gc_max(1, x->rows.distinct) * r->frames;
    double sum = 0;
    for (int64_t m = gc_max(0, n - r->taps + 1); m <= n; m++) {
        const int64_t response = r->hop ? row * (r->frames / r->hop) + m / r->hop : row % gc_max(1, r->responses);
        sum += (double)signal[m] * (double)h->number[response % gc_max(1, h->rows.distinct) * r->taps + n - m];
    }
    return sum;
}

/* Returns the relative RMS error of some frames of the checked rows, in dB. */
static double error_of(const bench_row *r, const block *x, const block *h, const gc_rows_timing *t) {
    double wrong = 0, power = 0;
    for (int i = 0; i < t->checks; i++)
        for (int64_t k = 0; k < CHECKED_FRAMES; k++) {
            const int64_t n = k * (r->frames - 1) / (CHECKED_FRAMES - 1), at = i * r->frames + n;
            const double got = x->half ? (double)gc_half_to_float(((const uint16_t *)t->output)[at])
                                       : (double)((const float *)t->output)[at];
            const double want = expected(r, x, h, t->checked[i], n);
            wrong += (got - want) * (got - want);
            power += want * want;
        }
    return 10 * log10(wrong / power);
}

/* Times and verifies a case. */
static gpuconv_status time_case(const gc_bench *b, const gc_backend *backend, const bench_row *r, double *seconds,
                                double *error_db, gpuconv_error *error) {
    block x = {0}, h = {0};
    const int64_t checked[CHECKS] = {0, r->rows / 3, 2 * r->rows / 3, r->rows - 1};
    gc_rows_timing t = {r->type, .hop = r->hop, .checked = checked, .checks = CHECKS, .runs = b->runs};
    t.seconds = seconds;
    t.output = gc_calloc(CHECKS * r->frames, sizeof(float));
    const bool allocated =
        make_block(&x, 1, r->rows, r->frames, r->type) && make_block(&h, 2, r->responses, r->taps, r->type) && t.output;
    t.signal = x.rows;
    t.response = h.rows;
    gpuconv_status status = allocated ? gc_measures_find(backend->id)->time_rows(&b->config, &t, error)
                                      : gc_fail_memory(error, "the benchmark");
    if (!status)
        *error_db = error_of(r, &x, &h, &t);
    if (!status && !(*error_db <= (x.half ? half_bound : float_bound)))
        status = gc_fail(error, GPUCONV_ERROR_STATE, "rows of %lld frames are wrong: the error is %.1f dB",
                         (long long)r->frames, *error_db);
    free(t.output);
    free_block(&x);
    free_block(&h);
    return status;
}

/* Reports a case. peer: the seconds of PyTorch; NaN: it was not measured. */
static void report_case(const gc_bench *b, gpuconv_backend backend, const bench_row *r, const double *seconds,
                        double peer, double error_db) {
    static const char *const names[] = {"ms", "spread", "of bytes", "error dB", "PyTorch ms", "of PyTorch"};
    char label[160], responses[64];
    double spread;
    const double median = gc_median((double *)seconds, b->runs, &spread);
    const double samples = 2 * (double)r->rows * (double)r->frames + (double)r->responses * (double)r->taps;
    const double bytes = samples * (double)gc_job_sample_bytes(r->type);
    if (r->hop)
        snprintf(responses, sizeof responses, "%lld taps each %lld frames", (long long)r->taps, (long long)r->hop);
    else if (r->responses == r->rows)
        snprintf(responses, sizeof responses, "own %lld", (long long)r->taps);
    else
        snprintf(responses, sizeof responses, "%lld of %lld", (long long)r->responses, (long long)r->taps);
    snprintf(label, sizeof label, "%s: %lld x %lld, %s%s", gpuconv_backend_name(backend), (long long)r->rows,
             (long long)r->frames, responses, r->type == GPUCONV_SAMPLE_F32 ? "" : ", half");
    const double values[] = {median * 1e3, spread * 1e3, median / (bytes / b->copy[backend]),
                             error_db,     peer * 1e3,   median / peer};
    gc_report_named_row(b->report, "rows", label, isnan(peer) ? 4 : 6, names, values);
}

gpuconv_status gc_bench_rows(const gc_bench *b, int64_t most, gpuconv_error *error) {
    const gc_backend *list[GC_BACKENDS];
    const int count = gc_bench_backends(b, list);
    gpuconv_status status = count ? GPUCONV_OK : gc_bench_fail_no_backend(error);
    for (int k = 0; k < count && !status; k++) {
        const gpuconv_backend id = list[k]->id;
        bench_row rows[CASES];
        double peer[CASES];
        int cases_count = 0;
        for (int i = 0; i < CASES; i++)
            if (cases[i].frames <= most)
                rows[cases_count++] = case_of(i, id);
        if (!time_peer(rows, cases_count, id, b->config.threads, b->runs, peer))
            gc_bench_note(b, "python3 has no PyTorch for this processor; its times are left out");
        for (int i = 0; i < cases_count && !status; i++) {
            double seconds[GC_BENCH_RUNS_MOST], error_db = 0;
            status = time_case(b, list[k], &rows[i], seconds, &error_db, error);
            if (!status)
                report_case(b, id, &rows[i], seconds, peer[i], error_db);
        }
    }
    return status;
}
