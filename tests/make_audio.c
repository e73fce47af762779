/*
 * Writes the audio files that the tests of the command need, valid and damaged ones.
 *
 *   make_audio noise PATH FORMAT CHANNELS RATE FRAMES LEVEL    random samples up to LEVEL; FORMAT such as wav-16
 *   make_audio taps PATH CHANNELS RATE VALUE...                a float WAV of these samples (nan and inf are values)
 *   make_audio sparse PATH FRAMES CHANNELS RATE POSITION...    RF64, 16 bit, silent but for frames at these positions
 *   make_audio broken KIND PATH                                a damaged file: truncated, zero-frames, zero-channels
 *   make_audio tagged PATH                                     a WAV with title, artist, date, cues, loops, broadcast
 *                                                              and iXML
 *   make_audio spoil PATH OUT SQUARE NOISE                     x + SQUARE x^2 + noise of RMS NOISE, as floats
 *
 * A sparse file needs almost no space on the disk. Channel c of its i-th non-zero frame is sparse_value(i, c), with
 * which look_audio computes the expected convolution.
 */
#include "sparse.h"

#include <errno.h>
#include <fcntl.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fail(const char *path, const char *why) {
    fprintf(stderr, "make_audio: %s: %s\n", path, why);
    return 1;
}

static int format_of(const char *name) {
    static const struct {
        const char *name;
        int format;
    } known[] = {{"wav-u8", SF_FORMAT_WAV | SF_FORMAT_PCM_U8},    {"wav-16", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                 {"wav-24", SF_FORMAT_WAV | SF_FORMAT_PCM_24},    {"wav-32", SF_FORMAT_WAV | SF_FORMAT_PCM_32},
                 {"wav-float", SF_FORMAT_WAV | SF_FORMAT_FLOAT},  {"wav-double", SF_FORMAT_WAV | SF_FORMAT_DOUBLE},
                 {"flac-16", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},  {"flac-24", SF_FORMAT_FLAC | SF_FORMAT_PCM_24},
                 {"aiff-16", SF_FORMAT_AIFF | SF_FORMAT_PCM_16},  {"ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
                 {"wavex-16", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].format;
    return 0;
}

enum {
    BLOCK = 1 << 16
}; /* samples that libsndfile reads or writes at once: a call of the system for each frame takes longer */

/* Returns the next number from -1 to 1, by xorshift (Marsaglia 2003). */
static double next_uniform(unsigned long long *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) * 0x1p-52 - 1;
}

static int noise(char **a) {
    SF_INFO info = {.format = format_of(a[1]), .channels = atoi(a[2]), .samplerate = atoi(a[3])};
    long long frames = atoll(a[4]);
    double level = atof(a[5]);
    SNDFILE *file = info.format ? sf_open(a[0], SFM_WRITE, &info) : NULL;
    if (!file)
        return fail(a[0], "cannot be made in this format");
    unsigned long long state = 88172645463325252ull + (unsigned long long)frames;
    static double block[BLOCK];
    if (info.channels > 1024) /* the most channels that libsndfile supports */
        return fail(a[0], "more than 1024 channels");
    for (long long left = frames * info.channels; left > 0;) {
        const long long n = left < BLOCK ? left : BLOCK / info.channels * info.channels;
        for (long long i = 0; i < n; i++)
            block[i] = level * next_uniform(&state);
        if (sf_write_double(file, block, n) != n)
            return fail(a[0], sf_strerror(file));
        left -= n;
    }
    return sf_close(file) == 0 ? 0 : fail(a[0], "not closed");
}

static int taps(int count, char **a) {
    SF_INFO info = {.format = SF_FORMAT_WAV | SF_FORMAT_FLOAT, .channels = atoi(a[1]), .samplerate = atoi(a[2])};
    SNDFILE *file = sf_open(a[0], SFM_WRITE, &info);
    if (!file)
        return fail(a[0], sf_strerror(NULL));
    for (int i = 3; i + info.channels <= count; i += info.channels) {
        float frame[256];
        for (int c = 0; c < info.channels; c++)
            frame[c] = strtof(a[i + c], NULL);
        if (sf_writef_float(file, frame, 1) != 1)
            return fail(a[0], sf_strerror(file));
    }
    return sf_close(file) == 0 ? 0 : fail(a[0], "not closed");
}

static void put(unsigned char *to, unsigned long long value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

enum { HEADER = 80 };

/* EBU Tech 3306: RF64 keeps its true sizes in the ds64 chunk. */
static void rf64_header(unsigned char *h, long long frames, int channels, int rate) {
    unsigned long long data = (unsigned long long)frames * (unsigned)channels * 2;
    memcpy(h, "RF64\377\377\377\377WAVEds64", 16);
    put(h + 16, 28, 4);
    put(h + 20, data + HEADER - 8, 8);
    put(h + 28, data, 8);
    put(h + 36, (unsigned long long)frames, 8);
    put(h + 44, 0, 4);
    memcpy(h + 48, "fmt ", 4);
    put(h + 52, 16, 4);
    put(h + 56, 1, 2);
    put(h + 58, (unsigned)channels, 2);
    put(h + 60, (unsigned)rate, 4);
    put(h + 64, (unsigned)(rate * channels * 2), 4);
    put(h + 68, (unsigned)channels * 2, 2);
    put(h + 70, 16, 2);
    memcpy(h + 72, "data\377\377\377\377", 8);
}

static int sparse(int count, char **a) {
    long long frames = atoll(a[1]);
    int channels = atoi(a[2]), fd = open(a[0], O_WRONLY | O_CREAT | O_TRUNC, 0666);
    unsigned char header[HEADER], sample[2];
    rf64_header(header, frames, channels, atoi(a[3]));
    if (fd < 0 || write(fd, header, HEADER) != HEADER || ftruncate(fd, HEADER + frames * channels * 2) != 0)
        return fail(a[0], strerror(errno));
    for (int i = 4; i < count; i++) {
        for (int c = 0; c < channels; c++) {
            put(sample, (unsigned long long)(long long)sparse_value(i - 4, c), 2);
            if (pwrite(fd, sample, 2, HEADER + (atoll(a[i]) * channels + c) * 2) != 2)
                return fail(a[0], strerror(errno));
        }
    }
    return close(fd) == 0 ? 0 : fail(a[0], strerror(errno));
}

static int spoil(const char *path, const char *out, double square, double noise) {
    SF_INFO info = {0};
    SNDFILE *from = sf_open(path, SFM_READ, &info), *to;
    static float block[BLOCK];
    info.format = SF_FORMAT_WAV | SF_FORMAT_FLOAT;
    if (!from || info.channels > 64 || !(to = sf_open(out, SFM_WRITE, &info)))
        return fail(out, "cannot be made");
    unsigned long long state = 88172645463325252ull;
    for (sf_count_t n; (n = sf_read_float(from, block, BLOCK / info.channels * info.channels)) > 0;) {
        for (sf_count_t i = 0; i < n; i++) {
            double x = (double)block[i];
            block[i] = (float)(x + square * x * x + noise * 1.7320508 * next_uniform(&state));
        }
        if (sf_write_float(to, block, n) != n)
            return fail(out, sf_strerror(to));
    }
    return sf_close(from) || sf_close(to);
}

static int tagged(const char *path) {
    SF_INFO info = {.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16, .channels = 1, .samplerate = 44100};
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    SF_CUES cues = {.cue_count = 2};
    SF_BROADCAST_INFO broadcast = {.time_reference_low = 12345, .version = 1};
    SF_INSTRUMENT loops = {.basenote = 60, .velocity_hi = 127, .key_hi = 127, .loop_count = 1};
    char label[] = "adtllabl\014\0\0\0\2\0\0\0chorus\0", ixml[] = "<BWFXML></BWFXML>\n\n";
    const SF_CHUNK_INFO labels = {.id = "LIST", .id_size = 4, .datalen = 24, .data = label},
                        scene = {.id = "iXML", .id_size = 4, .datalen = 20, .data = ixml};
    short samples[1000] = {1000};
    loops.loops[0].mode = SF_LOOP_FORWARD;
    loops.loops[0].end = 900;
    for (int i = 0; i < 2; i++)
        cues.cue_points[i] =
            (SF_CUE_POINT){.indx = i + 1, .position = 100 * (unsigned)i, .sample_offset = 100 * (unsigned)i};
    snprintf(broadcast.description, sizeof broadcast.description, "A take");
    snprintf(broadcast.originator, sizeof broadcast.originator, "A recorder");
    if (!file)
        return fail(path, "cannot be made");
    if (sf_set_string(file, SF_STR_TITLE, "A title") || sf_set_string(file, SF_STR_ARTIST, "Somebody") ||
        sf_set_string(file, SF_STR_DATE, "2024") ||
        sf_command(file, SFC_SET_INSTRUMENT, &loops, sizeof loops) != SF_TRUE || sf_set_chunk(file, &labels) ||
        sf_set_chunk(file, &scene) || sf_command(file, SFC_SET_CUE, &cues, sizeof cues) != SF_TRUE ||
        sf_command(file, SFC_SET_BROADCAST_INFO, &broadcast, sizeof broadcast) != SF_TRUE ||
        sf_writef_short(file, samples, 1000) != 1000)
        return fail(path, sf_strerror(file));
    return sf_close(file);
}

static int broken(const char *kind, const char *path) {
    unsigned char h[44 + 400] = "RIFF";
    size_t size = sizeof h;
    put(h + 4, sizeof h - 8, 4);
    memcpy(h + 8, "WAVEfmt ", 8);
    put(h + 16, 16, 4);
    put(h + 20, 1, 2);
    put(h + 22, strcmp(kind, "zero-channels") == 0 ? 0 : 1, 2);
    put(h + 24, 44100, 4);
    put(h + 28, 88200, 4);
    put(h + 32, 2, 2);
    put(h + 34, 16, 2);
    memcpy(h + 36, "data", 4);
    put(h + 40, 400, 4);
    if (strcmp(kind, "truncated") == 0) {
        size = 30; /* ends inside the format chunk */
    } else if (strcmp(kind, "zero-frames") == 0) {
        put(h + 4, 36, 4);
        put(h + 40, 0, 4);
        size = 44;
    } else if (strcmp(kind, "zero-channels") != 0) {
        return fail(path, "no such kind");
    }
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(h, 1, size, f) != size || fclose(f) != 0)
        return fail(path, strerror(errno));
    return 0;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "noise") == 0 && argc == 8)
        return noise(argv + 2);
    if (strcmp(what, "taps") == 0 && argc > 4)
        return taps(argc - 2, argv + 2);
    if (strcmp(what, "sparse") == 0 && argc > 5)
        return sparse(argc - 2, argv + 2);
    if (strcmp(what, "spoil") == 0 && argc == 6)
        return spoil(argv[2], argv[3], atof(argv[4]), atof(argv[5]));
    if (strcmp(what, "tagged") == 0 && argc == 3)
        return tagged(argv[2]);
    if (strcmp(what, "broken") == 0 && argc == 4)
        return broken(argv[2], argv[3]);
    fprintf(stderr, "usage: make_audio noise|taps|sparse|broken|tagged|spoil ARGUMENT...; see make_audio.c\n");
    return 2;
}
