/* Times rows of every length on each backend, forward and with both gradients, and verifies them. */
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

/* Rows: row b channels + c has response c or, with a hop, a response of its own for each `hop` frames. */
typedef struct bench_row {
    int64_t batch, channels, frames, taps, hop;
    gpuconv_sample_type type;
    bool gradients; /* also times both gradients */
    bool packed;    /* the rows of a channel follow one another and have PACKED_LEAST to `frames` frames */
} bench_row;

enum { PACKED_ROWS = 256, PACKED_LEAST = 50 };

/* Writes where the packed rows of a channel begin, and where the last one ends. Their lengths are log-uniform, in mixed
 * order. */
static void pack(int64_t most, int64_t offsets[PACKED_ROWS + 1]) {
    offsets[0] = 0;
    for (int64_t i = 0; i < PACKED_ROWS; i++)
        offsets[i * 77 % PACKED_ROWS + 1] =
            llrint(PACKED_LEAST * pow((double)most / PACKED_LEAST, (double)i / (PACKED_ROWS - 1)));
    for (int i = 0; i < PACKED_ROWS; i++)
        offsets[i + 1] += offsets[i];
}

/* ---- Peers' times, in a process of python3 ----------------------------------------------------------------------- */

static const char script[] =
    "import sys, time, torch, torch.nn.functional as F\n"
    "gpu, threads, runs = sys.argv[1] == 'cuda', int(sys.argv[2]), int(sys.argv[3])\n"
    "if gpu and not torch.cuda.is_available(): sys.exit(1)\n"
    "if threads: torch.set_num_threads(threads)\n"
    "try:\n"
    "    from subquadratic_ops_torch.fft_causal_conv1d import fft_causal_conv1d as nvidia\n"
    "    from subquadratic_ops_torch.fft_causal_conv1d_packed import fft_causal_conv1d_packed as nvidia_packed\n"
    "except Exception: nvidia = nvidia_packed = None\n"
    "device = 'cuda' if gpu else 'cpu'\n"
    "def wait():\n"
    "    if gpu: torch.cuda.synchronize()\n"
    "def convolve(x, h):\n"
    "    frames = x.shape[-1]\n"
    "    n = 1 << (frames + h.shape[-1] - 2).bit_length()\n"
    "    y = torch.fft.irfft(torch.fft.rfft(x.float(), n) * torch.fft.rfft(h.float(), n), n)\n"
    "    return y[..., :frames].to(x.dtype).contiguous()\n"
    "def varying(x, h):\n"
    "    rows, blocks, hop, taps = *x.shape, h.shape[-1]\n"
    "    n, width = 1 << (hop + taps - 2).bit_length(), hop + taps - 1\n"
    "    y = torch.fft.irfft(torch.fft.rfft(x, n) * torch.fft.rfft(h, n), n)[..., :width].transpose(1, 2)\n"
    "    return F.fold(y, (1, blocks * hop + taps - 1), (1, width), stride=(1, hop))[..., : blocks * hop]\n"
    "def measure(call, gradients, x, h):\n"
    "    g = torch.randn_like(x)\n"
    "    def run():\n"
    "        y = call(x.requires_grad_(gradients), h.requires_grad_(gradients))\n"
    "        if gradients: torch.autograd.grad(y, (x, h), g)\n"
    "    times = []\n"
    "    for i in range(runs + 1):\n"
    "        wait()\n"
    "        begin, calls = time.perf_counter(), 10 if gpu else 1\n"
    "        for _ in range(calls): run()\n"
    "        wait()\n"
    "        times.append((time.perf_counter() - begin) / calls)\n"
    "    return sorted(times[1:])[runs // 2]\n"
    "def attempt(*what):\n"
    "    try: return measure(*what)\n"
    "    except Exception: return float('nan')\n"
    "for case in sys.argv[4:]:\n"
    "    batch, channels, frames, taps, hop, half, gradients, packed, *starts = map(int, case.split(','))\n"
    "    make = lambda *shape: torch.randn(*shape, device=device, dtype=torch.float16 if half else torch.float32)\n"
    "    for both in (False, True):\n"
    "        ours = theirs = float('nan')\n"
    "        if both and not gradients: pass\n"
    "        elif hop:\n"
    "            ours = attempt(varying, both, make(batch, frames // hop, hop), make(batch, frames // hop, taps))\n"
    "        else:\n"
    "            ours = attempt(convolve, both, make(batch, channels, frames), make(channels, taps))\n"
    "        if both and not gradients or hop or not gpu or not nvidia: pass\n"
    "        elif packed:\n"
    "            offsets = torch.tensor(starts, device=device, dtype=torch.int32)\n"
    "            least = min(b - a for a, b in zip(starts, starts[1:]))\n"
    "            call = lambda x, h: nvidia_packed(x, h, offsets, frames, least)\n"
    "            theirs = attempt(call, both, make(channels, starts[-1]), make(channels, taps))\n"
    "        else:\n"
    "            theirs = attempt(nvidia, both, make(batch, channels, frames), make(channels, taps))\n"
    "        print(ours, theirs, flush=True)\n";

/* Measurements of a case (a step is the forward and both gradients), and peers: PyTorch's FFT of padded rows, NVIDIA's
 * convolution. */
enum { FORWARD, STEP, TIMED };
enum { TORCH, NVIDIA, PEERS };
enum { LINE = 64, COMMAND = sizeof script + 8192 };

typedef double peer_seconds[TIMED][PEERS];

/* Reads a line of the script: a number for each peer; "nan" leaves it as it is. */
static void read_peers(char *line, double *seconds) {
    char *second = strchr(line, ' ');
    line[strcspn(line, "\r\n")] = '\0';
    if (second)
        *second++ = '\0';
    (void)gc_number_parse(line, &seconds[TORCH]);
    (void)(second && gc_number_parse(second, &seconds[NVIDIA]));
}

/* Writes the median seconds of each peer; NaN where it has none.
 * @return false if python3 has no PyTorch for this backend */
static bool time_peers(const gc_bench *b, gpuconv_backend backend, const bench_row *rows, int count,
                       peer_seconds *seconds) {
    char command[COMMAND], line[LINE];
    int used = snprintf(command, sizeof command, "exec python3 -c \"%s\" %s %d %d", script,
                        backend == GPUCONV_BACKEND_CUDA ? "cuda" : "cpu", b->config.threads, b->runs);
    for (int i = 0; i < count; i++) {
        const bench_row *r = &rows[i];
        for (int k = 0; k < TIMED * PEERS; k++)
            seconds[i][k / PEERS][k % PEERS] = (double)NAN;
        used += snprintf(command + used, sizeof command - (size_t)used, " %lld,%lld,%lld,%lld,%lld,%d,%d,%d",
                         (long long)r->batch, (long long)r->channels, (long long)r->frames, (long long)r->taps,
                         (long long)r->hop, r->type != GPUCONV_SAMPLE_F32, r->gradients, r->packed);
        int64_t offsets[PACKED_ROWS + 1];
        if (r->packed)
            pack(r->frames, offsets);
        for (int64_t k = 0; k <= r->batch && r->packed && used < COMMAND - 2 * LINE; k++)
            used += snprintf(command + used, sizeof command - (size_t)used, ",%lld", (long long)offsets[k]);
        if (used > COMMAND - 2 * LINE)
            return false;
    }
    snprintf(command + used, sizeof command - (size_t)used, " 2>/dev/null");
    FILE *python = popen(command, "r"); /* NOLINT(cert-env33-c): the text is this file's */
    if (!python)
        return false;
    for (int i = 0; i < count * TIMED && fgets(line, sizeof line, python); i++)
        read_peers(line, seconds[i / TIMED][i % TIMED]);
    return pclose(python) == 0;
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

#define SEQUENCES(batch, channels, frames, taps, packed)                                                               \
    {batch, channels, frames, taps, 0, GPUCONV_SAMPLE_F32, true, packed}, {                                            \
        batch, channels, frames, taps, 0, GPUCONV_SAMPLE_F16, true, packed                                             \
    }

static const bench_row cases[] = {SEQUENCES(64, 768, 128, 128, false),
                                  SEQUENCES(64, 768, 256, 256, false),
                                  SEQUENCES(64, 768, 512, 512, false),
                                  SEQUENCES(64, 768, 1024, 1024, false),
                                  SEQUENCES(64, 768, 2048, 2048, false),
                                  SEQUENCES(64, 768, 4096, 4096, false),
                                  SEQUENCES(64, 768, 8192, 8192, false),
                                  SEQUENCES(32, 768, 16384, 16384, false),
                                  SEQUENCES(4, 768, 65536, 65536, false),
                                  SEQUENCES(1, 64, 1 << 20, 1 << 20, false),
                                  SEQUENCES(16, 768, 8192, 128, false),
                                  SEQUENCES(256, 256, 8000, 8000, true),
                                  {1, 65536, 128, 128, 0, GPUCONV_SAMPLE_F32, false, false},
                                  {1, 4096, 512, 256, 0, GPUCONV_SAMPLE_F32, false, false},
                                  {1024, 1, 48000, 64, 0, GPUCONV_SAMPLE_F32, false, false},
                                  {64, 1, 64000, 128, 64, GPUCONV_SAMPLE_F32, false, false},
                                  {16, 1, 480000, 1024, 480, GPUCONV_SAMPLE_F32, false, false}};
enum { CASES = sizeof cases / sizeof *cases, CPU_PART = 16 };

/* Returns the case as a backend gets it: the CPU gets a sixteenth of the rows, of packed ones of the channels. */
static bench_row case_of(int i, gpuconv_backend backend) {
    bench_row r = cases[i];
    const int64_t part = r.packed ? 1 : gc_min(r.batch, CPU_PART);
    if (backend == GPUCONV_BACKEND_CPU) {
        r.batch /= part;
        r.channels /= CPU_PART / part;
    }
    return r;
}

/* ---- Samples and their check ------------------------------------------------------------------------------------- */

/* Numbers of different rows, of rows that are verified, and of their verified frames. */
enum { DISTINCT = 256, CHECKS = 4, CHECKED_FRAMES = 64 };

/* The largest error of a correct output, in dB. */
static const double float_bound = -115, half_bound = -48;

enum { X, Y, H, GX, GH }; /* arrays, in the order of gc_job_arrays; Y has the gradient of the output in a step */

/* A case with its samples. */
typedef struct bench_rows {
    const gc_backend *backend;
    const bench_row *row;
    int64_t rows, responses;
    int64_t offsets[PACKED_ROWS + 1]; /* of packed rows */
    float *number[GC_JOB_ARRAYS];     /* X, Y and H as numbers */
    uint16_t *half[GC_JOB_ARRAYS];    /* the same as samples; NULL: floats */
    gc_timed_array array[GC_JOB_ARRAYS];
    float *output; /* the checked rows, of both gradients */
} bench_rows;

static int64_t row_start(const bench_rows *m, int64_t i) {
    const int64_t b = i / m->row->channels, c = i % m->row->channels;
    return m->row->packed ? c * m->offsets[PACKED_ROWS] + m->offsets[b] : i * m->row->frames;
}

static int64_t row_length(const bench_rows *m, int64_t i) {
    const int64_t b = i / m->row->channels;
    return m->row->packed ? m->offsets[b + 1] - m->offsets[b] : m->row->frames;
}

/* Returns a sample of an array. */
static double sample(const bench_rows *m, int array, int64_t element) {
    return (double)m->number[array][element % m->array[array].period];
}

/* Fills an array that is read. Returns false without memory. */
static bool fill(bench_rows *m, int array, int64_t elements, int64_t period) {
    uint64_t seed = (uint64_t)array + 1;
    const bool half = m->row->type != GPUCONV_SAMPLE_F32;
    float *number = m->number[array] = gc_alloc(period, sizeof *number);
    uint16_t *halves = m->half[array] = half ? gc_alloc(period, sizeof *halves) : NULL;
    if (!number || (half && !halves))
        return false;
    for (int64_t i = 0; i < period; i++) {
        number[i] = gc_random_float(&seed);
        if (half)
            number[i] = gc_half_to_float(halves[i] = gc_half_of_float(number[i]));
    }
    m->array[array] = (gc_timed_array){elements, period, half ? (const void *)halves : number};
    return true;
}

static bool make_rows(bench_rows *m) {
    const bench_row *r = m->row;
    m->rows = r->batch * r->channels;
    m->responses = r->hop ? m->rows * (r->frames / r->hop) : r->channels;
    m->output = gc_calloc(2 * CHECKS * gc_max(r->frames, r->taps), sizeof(float));
    if (r->packed)
        pack(r->frames, m->offsets);
    const int64_t elements = r->packed ? r->channels * m->offsets[PACKED_ROWS] : m->rows * r->frames;
    const int64_t period = gc_min(elements, DISTINCT * r->frames);
    return m->output && fill(m, X, elements, period) && fill(m, Y, elements, period) &&
           fill(m, H, m->responses * r->taps, gc_min(m->responses, DISTINCT) * r->taps);
}

static void free_rows(bench_rows *m) {
    for (int i = 0; i < GC_JOB_ARRAYS; i++) {
        free(m->number[i]);
        free(m->half[i]);
    }
    free(m->output);
}

/* Returns frame n of row i of an array that a job writes, in double precision. */
static double expected(const bench_rows *m, int array, int64_t i, int64_t n) {
    const bench_row *r = m->row;
    const int64_t first = row_start(m, i % m->rows), length = row_length(m, i % m->rows),
                  blocks = r->hop ? r->frames / r->hop : 1;
    double sum = 0;
    if (array == Y)
        for (int64_t x = gc_max(0, n - r->taps + 1); x <= n; x++) {
            const int64_t response = r->hop ? i * blocks + x / r->hop : i % m->responses;
            sum += sample(m, X, first + x) * sample(m, H, response * r->taps + n - x);
        }
    else if (array == GX)
        for (int64_t k = 0; k < gc_min(r->taps, length - n); k++)
            sum += sample(m, H, i % m->responses * r->taps + k) * sample(m, Y, first + n + k);
    else
        for (int64_t j = i; j < m->rows; j += m->responses)
            for (int64_t x = 0; x < row_length(m, j) - n; x++)
                sum += sample(m, X, row_start(m, j) + x) * sample(m, Y, row_start(m, j) + x + n);
    return sum;
}

/* Returns the row of an array that check k looks at. */
static int64_t checked_row(const bench_rows *m, int array, int64_t k) {
    return k * ((array == GH ? m->responses : m->rows) - 1) / (CHECKS - 1);
}

/* Sets the parts of a written array that are checked: whole rows. */
static void choose_parts(const bench_rows *m, int array, gc_timed_part part[CHECKS]) {
    const bench_row *r = m->row;
    for (int64_t k = 0; k < CHECKS; k++) {
        const int64_t i = checked_row(m, array, k);
        float *to = m->output + ((array == GH) * CHECKS + k) * gc_max(r->frames, r->taps);
        part[k] = array == GH ? (gc_timed_part){array, i * r->taps, r->taps, to}
                              : (gc_timed_part){array, row_start(m, i), row_length(m, i), to};
    }
}

/* Returns the relative RMS error of some frames of the parts, in dB. */
static double error_of(const bench_rows *m, const gc_timed_part part[CHECKS]) {
    double wrong = 0, power = 0;
    for (int64_t k = 0; k < CHECKS; k++)
        for (int64_t c = 0; c < CHECKED_FRAMES; c++) {
            const int64_t i = checked_row(m, part->array, k), n = c * (part[k].count - 1) / (CHECKED_FRAMES - 1);
            const double got = m->half[X] ? (double)gc_half_to_float(((const uint16_t *)part[k].to)[n])
                                          : (double)((const float *)part[k].to)[n];
            const double want = expected(m, part->array, i, n);
            wrong += (got - want) * (got - want);
            power += want * want;
        }
    return 10 * log10(wrong / power);
}

/* ---- Times ------------------------------------------------------------------------------------------------------- */

/* Jobs that are timed: a convolution, and those of a step of training. */
typedef enum timed_job { CONVOLUTION = 0, CONVOLUTION_OF_STEP, BOTH_GRADIENTS } timed_job;

/* Writes the longest frames of the classes of packed rows, and returns how many there are. */
static int choose_classes(int64_t frames, int64_t bounds[GPUCONV_SEQUENCE_CLASSES_MAX]) {
    int classes = 0;
    for (int64_t bound = 128; bound < frames; bound *= 2)
        bounds[classes++] = bound;
    bounds[classes++] = frames;
    return classes;
}

/* Times and verifies a job. */
static gpuconv_status time_job(const gc_bench *b, const bench_rows *m, timed_job timed, double *seconds,
                               double *error_db, gpuconv_error *error) {
    const bool both = timed == BOTH_GRADIENTS;
    const bench_row *r = m->row;
    int64_t bounds[GPUCONV_SEQUENCE_CLASSES_MAX];
    const gpuconv_sequences packed = {
        m->offsets, PACKED_ROWS, r->channels, m->offsets[PACKED_ROWS], bounds, choose_classes(r->frames, bounds),
        0,          0,           NULL};
    gc_timed_part part[2 * CHECKS];
    gc_rows_timing t = {.job = gpuconv_arrays_job_default(),
                        .sequences = r->packed ? &packed : NULL,
                        .in_step = timed != CONVOLUTION,
                        .array = {m->array[X], m->array[Y], m->array[H]},
                        .part = part,
                        .parts = both ? 2 * CHECKS : CHECKS,
                        .runs = b->runs};
    t.seconds = seconds;
    t.job.signal = (gpuconv_rows){NULL, r->type, m->rows, r->frames, r->frames, 1, NULL, NULL};
    t.job.response = (gpuconv_rows){NULL, r->type, m->responses, r->taps, r->taps, 1, NULL, NULL};
    t.job.output = t.job.signal;
    t.job.hop = r->hop;
    if (both) {
        t.job.operation = GPUCONV_ARRAYS_GRADIENT_BOTH;
        t.job.signal_gradient = t.job.signal;
        t.job.response_gradient = t.job.response;
        t.array[GX] = (gc_timed_array){m->array[X].elements, m->array[X].period, NULL};
        t.array[GH] = (gc_timed_array){m->array[H].elements, m->array[H].period, NULL};
        choose_parts(m, GH, part + CHECKS);
    } else
        t.array[Y].samples = NULL;
    choose_parts(m, both ? GX : Y, part);
    const gpuconv_status status = gc_measures_find(m->backend->id)->time_rows(&b->config, &t, error);
    if (status)
        return status;
    *error_db = error_of(m, part);
    if (both && !(error_of(m, part + CHECKS) <= *error_db))
        *error_db = error_of(m, part + CHECKS);
    if (!(*error_db <= (m->half[X] ? half_bound : float_bound)))
        return gc_fail(error, GPUCONV_ERROR_STATE, "rows of %lld frames are wrong: the error is %.1f dB",
                       (long long)r->frames, *error_db);
    return GPUCONV_OK;
}

/* Writes what the rows are. */
static void describe(const bench_rows *m, char *text, size_t size) {
    const bench_row *r = m->row;
    char responses[64];
    if (r->hop)
        snprintf(responses, sizeof responses, "%lld taps each %lld frames", (long long)r->taps, (long long)r->hop);
    else if (m->responses == m->rows)
        snprintf(responses, sizeof responses, "own %lld", (long long)r->taps);
    else
        snprintf(responses, sizeof responses, "%lld of %lld", (long long)m->responses, (long long)r->taps);
    snprintf(text, size, "%s%lld x %lld, %s%s", r->packed ? "packed up to " : "", (long long)m->rows,
             (long long)r->frames, responses, r->type == GPUCONV_SAMPLE_F32 ? "" : ", half");
}

/* Reports the forward, or the step: the forward and both gradients. `forward`: its median seconds. */
static void report_times(const gc_bench *b, const bench_rows *m, bool step, double *seconds, double forward,
                         const double peer[PEERS], double error_db) {
    static const char *const peers[PEERS][2] = {{"PyTorch ms", "of PyTorch"}, {"NVIDIA ms", "of NVIDIA"}};
    const char *names[5 + 2 * PEERS] = {"ms", "spread", "of bytes", "error dB", "of forward"};
    double values[5 + 2 * PEERS], spread;
    char label[160], rows[128];
    const double median = gc_median(seconds, b->runs, &spread), x = (double)m->array[X].elements;
    const double h = (double)m->array[H].elements, samples = step ? 5 * x + 3 * h : 2 * x + h;
    const double bytes = samples * (double)gc_job_sample_bytes(m->row->type);
    int count = 0;
    values[count++] = median * 1e3;
    values[count++] = spread * 1e3;
    values[count++] = median / (bytes / b->copy[m->backend->id]);
    values[count++] = error_db;
    values[count++] = median / forward;
    for (int p = 0; p < PEERS && !isnan(peer[p]); p++) {
        names[count] = peers[p][0];
        values[count++] = peer[p] * 1e3;
        names[count] = peers[p][1];
        values[count++] = median / peer[p];
    }
    describe(m, rows, sizeof rows);
    snprintf(label, sizeof label, "%s: %s%s", gpuconv_backend_name(m->backend->id), rows,
             step ? ", forward and both gradients" : "");
    gc_report_named_row(b->report, "rows", label, count, names, values);
}

/* Times and reports a case. */
static gpuconv_status run_case(const gc_bench *b, const gc_backend *backend, const bench_row *r, peer_seconds peer,
                               gpuconv_error *error) {
    bench_rows m = {.backend = backend, .row = r};
    double seconds[GC_BENCH_RUNS_MOST], forward = 0, error_db = 0, gradients_db = 0;
    if (!make_rows(&m)) {
        free_rows(&m);
        return gc_fail_memory(error, "the benchmark");
    }
    gpuconv_status status = time_job(b, &m, CONVOLUTION, seconds, &error_db, error);
    if (!status) {
        forward = gc_median(seconds, b->runs, NULL);
        report_times(b, &m, false, seconds, forward, peer[FORWARD], error_db);
    }
    double first = forward; /* on a GPU the convolution of a step of rows of one length also leaves transforms */
    if (!status && r->gradients && !r->packed && backend->id == GPUCONV_BACKEND_CUDA) {
        status = time_job(b, &m, CONVOLUTION_OF_STEP, seconds, &error_db, error);
        first = status ? 0 : gc_median(seconds, b->runs, NULL);
    }
    if (!status && r->gradients)
        status = time_job(b, &m, BOTH_GRADIENTS, seconds, &gradients_db, error);
    if (!status && r->gradients) {
        for (int i = 0; i < b->runs; i++)
            seconds[i] += first;
        report_times(b, &m, true, seconds, forward, peer[STEP], fmax(error_db, gradients_db));
    }
    free_rows(&m);
    return status;
}

gpuconv_status gc_bench_rows(const gc_bench *b, int64_t most, gpuconv_error *error) {
    const gc_backend *list[GC_BACKENDS];
    const int count = gc_bench_backends(b, list);
    gpuconv_status status = count ? GPUCONV_OK : gc_bench_fail_no_backend(error);
    for (int k = 0; k < count && !status; k++) {
        bench_row rows[CASES];
        peer_seconds peer[CASES];
        int cases_count = 0;
        for (int i = 0; i < CASES; i++)
            if (cases[i].frames <= most)
                rows[cases_count++] = case_of(i, list[k]->id);
        if (!time_peers(b, list[k]->id, rows, cases_count, peer))
            gc_bench_note(b, "python3 has no PyTorch for this processor; its times are left out");
        for (int i = 0; i < cases_count && !status; i++)
            status = run_case(b, list[k], &rows[i], peer[i], error);
    }
    return status;
}
