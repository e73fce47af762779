/* Simulates a room between a loudspeaker and microphones in real time.
 *
 *      simulate_room RESPONSE.wav GAIN NOISE [silent]
 *
 * Reads mono 32-bit floats from standard input and writes four channels to standard output: the sound through the first
 * two channels of the response times GAIN, with noise of the amplitude NOISE, limited to full scale as a converter
 * does; the sound itself (loopback); silence. With "silent" the first two channels are noise only. Only taps that are
 * not zero are added up, so that a sparse response of any length is fast. */
#include <math.h>
#include <sndfile.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 240, MOST_TAPS = 400 };

typedef struct tap {
    long delay;
    float gain[2];
} tap;

static tap taps[MOST_TAPS];
static int count;
static long longest;

static int read_response(const char *path) {
    SF_INFO info = {0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    if (!file)
        return 0;
    float *frame = calloc((size_t)info.channels, sizeof *frame);
    for (long i = 0; frame && i < info.frames && sf_readf_float(file, frame, 1) == 1; i++) {
        float right = frame[info.channels > 1];
        if ((frame[0] == 0 && right == 0) || count == MOST_TAPS)
            continue;
        taps[count++] = (tap){i, {frame[0], right}};
        longest = i + 1;
    }
    free(frame);
    sf_close(file);
    return count;
}

static float noise(float amplitude) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return amplitude * ((float)(state >> 40) / (float)(1 << 23) - 1);
}

static float limit(float x) {
    return fmaxf(-1, fminf(x, 1));
}

int main(int argc, char **argv) {
    if (argc < 4 || !read_response(argv[1]))
        return 1;
    float gain = strtof(argv[2], NULL), loud = strtof(argv[3], NULL), in[BLOCK], out[BLOCK][4];
    if (argc > 4 && strcmp(argv[4], "silent") == 0)
        gain = 0;
    float *past = calloc((size_t)longest + BLOCK, sizeof *past); /* the last `longest` frames, then the block */
    if (!past)
        return 1;
    size_t got;
    while ((got = fread(in, sizeof *in, BLOCK, stdin)) > 0) {
        memcpy(past + longest, in, got * sizeof *in);
        for (size_t i = 0; i < got; i++) {
            float sum[2] = {0, 0};
            for (int k = 0; k < count; k++)
                for (int c = 0; c < 2; c++)
                    sum[c] += taps[k].gain[c] * past[longest + (long)i - taps[k].delay];
            for (int c = 0; c < 2; c++)
                out[i][c] = limit(gain * sum[c] + noise(loud));
            out[i][2] = in[i];
            out[i][3] = 0;
        }
        memmove(past, past + got, (size_t)longest * sizeof *past);
        if (fwrite(out, sizeof *out, got, stdout) != got || fflush(stdout) != 0)
            break;
    }
    free(past);
    return 0;
}
