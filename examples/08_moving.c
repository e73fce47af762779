/* Moves a source around a head beside a sound device: a thread of the library renders, and the callback copies. Usage:
 * 08_moving SET.sofa */
#include <gpuconv.h>

#include <time.h>

enum { BLOCK = 128 };

/* Waits as long as a device plays a block. */
static void wait_for_device(double rate) {
    const struct timespec block = {0, (long)(1e9 * BLOCK / rate)};
    nanosleep(&block, NULL);
}

int main(int argc, char **argv) {
    const double seconds[] = {0, 1}, turn[] = {0, 0, 1.5, 360, 0, 1.5}; /* azimuth, elevation, distance */
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_sofa *set = NULL;
    gpuconv_path *path = NULL;
    gpuconv_motion *motion = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: 08_moving SET.sofa\n");
        return 2;
    }
    if (gpuconv_sofa_open(argv[1], 0, &set, &error) || gpuconv_path_new(seconds, turn, 2, 1, &path, &error) ||
        gpuconv_motion_new(set, path, NULL, &motion, &error) || gpuconv_motion_start(motion, BLOCK, &error)) {
        fprintf(stderr, "%s\n", error.message);
        return error.status == GPUCONV_ERROR_UNSUPPORTED ? 0 : 1;
    }
    const double rate = gpuconv_sofa_rate(set);
    const int64_t blocks = ((int64_t)rate + gpuconv_motion_latency(motion)) / BLOCK;
    double energy[4][2] = {{0}};
    unsigned noise = 1;
    for (int64_t b = 0; b < blocks; b++) {
        float in[BLOCK], left[BLOCK], right[BLOCK];
        const float *const from[] = {in};
        float *const to[] = {left, right};
        for (int i = 0; i < BLOCK; i++) {
            noise = 1664525 * noise + 1013904223;
            in[i] = (float)(noise >> 16) / 65536 - 0.5f;
        }
        gpuconv_motion_process(motion, from, to, BLOCK); /* the callback */
        wait_for_device(rate);
        const int quarter = (int)(4 * b / blocks);
        for (int i = 0; i < BLOCK; i++) {
            energy[quarter][0] += (double)left[i] * (double)left[i];
            energy[quarter][1] += (double)right[i] * (double)right[i];
        }
    }
    printf("%lld frames of latency, %lld frames late\n", (long long)gpuconv_motion_latency(motion),
           (long long)gpuconv_motion_late(motion));
    for (int q = 0; q < 4; q++)
        printf("quarter %d: left / right %.1f\n", q + 1, energy[q][0] / energy[q][1]);
    gpuconv_motion_free(motion);
    gpuconv_path_free(path);
    gpuconv_sofa_free(set);
    return !(energy[0][0] > energy[0][1] && energy[3][0] < energy[3][1]);
}
