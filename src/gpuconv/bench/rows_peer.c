/* PyTorch's time for rows: rfft, product, irfft of the next power of two, all rows at once; filters that change with
 * time as blocks that are overlapped and added by fold. */
#include "rows_peer.h"

#include "libgpuconv/core/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

bool gc_bench_rows_peer(const gc_bench_row *rows, int count, gpuconv_backend backend, int threads, int runs,
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
