/* The same load as gpuconv bench rt through zita-convolver, for comparison: paced by the clock, without a sound device.
 *
 *   zita_rt CHANNELS TAPS BLOCK RATE SECONDS [matrix|offline]
 *       prints mean processor time and block times as one line; matrix: a response from every channel to every channel;
 *       offline: the same, block after block without waiting for the clock */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/resource.h>
#include <vector>
#include <zita-convolver.h>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processor_time() {
    rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv) {
    if (argc != 6 && argc != 7)
        return 2;
    const bool matrix = argc == 7, offline = matrix && strcmp(argv[6], "offline") == 0;
    const int channels = atoi(argv[1]), taps = atoi(argv[2]), block = atoi(argv[3]);
    const double rate = atof(argv[4]), seconds = atof(argv[5]);
    Convproc engine;
    engine.set_options(Convproc::OPT_VECTOR_MODE);
    if (engine.configure((unsigned)channels, (unsigned)channels, (unsigned)taps, (unsigned)block, (unsigned)block,
                         Convproc::MAXPART, matrix ? 1.0f : 0.0f))
        return 1;
    std::vector<float> h((size_t)taps), x(65536);
    for (int c = 0; c < channels; c++) {
        for (int o = matrix ? 0 : c; o < (matrix ? channels : c + 1); o++) {
            for (int k = 0; k < taps; k++)
                h[(size_t)k] = ((float)rand() / (float)RAND_MAX - 0.5f) * expf(-6.9f * (float)k / (float)taps);
            if (engine.impdata_create((unsigned)c, (unsigned)o, 1, h.data(), 0, taps))
                return 1;
        }
    }
    for (float &f : x)
        f = (float)rand() / (float)RAND_MAX - 0.5f;
    if (engine.start_process(0, 0))
        return 1;
    const long blocks = (long)(seconds * rate / block);
    const double period = block / rate;
    double start = now(), before = processor_time();
    for (long k = 0; (double)k * period < 0.5; k++) { /* what the clock's ticks cost by themselves */
        double due = start + (double)(k + 1) * period;
        timespec until = {(time_t)due, (long)((due - floor(due)) * 1e9)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
    const double waiting = (processor_time() - before) / (now() - start);
    start = now();
    before = processor_time();
    std::vector<double> took((size_t)blocks);
    int late = 0;
    for (long k = 0; k < blocks; k++) {
        double due = start + (double)(k + 1) * period;
        timespec until = {(time_t)due, (long)((due - floor(due)) * 1e9)};
        if (!offline)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
        double begun = now();
        for (int c = 0; c < channels; c++)
            std::copy_n(x.data() + k * block % 65536, block, engine.inpdata((unsigned)c));
        late += engine.process(matrix) != 0; /* waits for its threads: it stops for good once it is late a few times */
        took[(size_t)k] = now() - begun;
    }
    const double wall = now() - start, cpu = processor_time() - before;
    std::sort(took.begin(), took.end());
    if (offline)
        printf("zita-convolver offline: %.3f s of processor time for %g s of sound\n", cpu, seconds);
    printf("zita-convolver: CPU %.3f %%, waiting %.3f %%, median %.1f us, 99.9 %% %.1f us, worst %.1f us, late %d\n", 100 * cpu / wall, 100 * waiting,
           1e6 * took[(size_t)blocks / 2], 1e6 * took[(size_t)((blocks - 1) * 999 / 1000)], 1e6 * took.back(), late);
    engine.stop_process();
    return 0;
}
