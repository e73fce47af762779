/*
 * Prints or checks properties of an audio file that gpuconv wrote.
 *
 *   look_audio about PATH                    prints frames, channels, rate, container and sample format, one line
 *   look_audio clipped PATH                  prints the number of samples at 32767 or -32768 in 16 bits
 *   look_audio near PATH OTHER BOUND         checks frames, channels, and that samples differ by at most BOUND
 *   look_audio null PATH OTHER BOUND LEAST   checks a recording (PATH) of a played file (OTHER): finds the recording's
 *                                            loudest part in the file; the residual over all common frames must be at
 *                                            most BOUND dB, and there must be at least LEAST common frames
 *   look_audio peak PATH FROM TO             prints the largest magnitude of frames FROM to TO - 1
 *   look_audio tags PATH                     prints title, artist, date, cue points, loops, broadcast chunk and iXML
 *   look_audio sparse PATH FRAMES CHANNELS RATE TAP=VALUE... -- POSITION...
 *                                            checks the convolution of a sparse file: exactly these taps after each
 *                                            position, and zeros elsewhere
 */
#include "sparse.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const char *path, const char *why) {
    fprintf(stderr, "look_audio: %s: %s\n", path, why);
    return 1;
}

static SNDFILE *opened(const char *path, SF_INFO *info) {
    *info = (SF_INFO){0};
    SNDFILE *file = sf_open(path, SFM_READ, info);
    if (!file)
        fail(path, sf_strerror(NULL));
    return file;
}

static int about(const char *path) {
    SF_INFO info;
    SNDFILE *file = opened(path, &info);
    if (!file)
        return 1;
    static const struct {
        int code;
        const char *name;
    } containers[] = {{SF_FORMAT_WAV, "wav"}, {SF_FORMAT_WAVEX, "wav"}, {SF_FORMAT_RF64, "rf64"},
                      {SF_FORMAT_W64, "w64"}, {SF_FORMAT_FLAC, "flac"}, {SF_FORMAT_AIFF, "aiff"},
                      {SF_FORMAT_OGG, "ogg"}, {SF_FORMAT_CAF, "caf"},   {SF_FORMAT_AU, "au"}},
      samples[] = {{SF_FORMAT_PCM_S8, "s8"},     {SF_FORMAT_PCM_U8, "u8"},    {SF_FORMAT_PCM_16, "16"},
                   {SF_FORMAT_PCM_24, "24"},     {SF_FORMAT_PCM_32, "32"},    {SF_FORMAT_FLOAT, "float"},
                   {SF_FORMAT_DOUBLE, "double"}, {SF_FORMAT_VORBIS, "vorbis"}};
    const char *container = "other", *sample = "other";
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        if ((info.format & SF_FORMAT_TYPEMASK) == containers[i].code)
            container = containers[i].name;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if ((info.format & SF_FORMAT_SUBMASK) == samples[i].code)
            sample = samples[i].name;
    printf("%lld %d %d %s %s\n", (long long)info.frames, info.channels, info.samplerate, container, sample);
    return sf_close(file);
}

static int peak(const char *path, sf_count_t from, sf_count_t to) {
    SF_INFO info;
    SNDFILE *file = opened(path, &info);
    float block[4096], most = 0;
    if (!file || info.channels > 64 || sf_seek(file, from, SEEK_SET) != from)
        return fail(path, "no such frames");
    for (sf_count_t n; from < to; from += n) {
        n = 4096 / info.channels < to - from ? 4096 / info.channels : to - from;
        if ((n = sf_readf_float(file, block, n)) <= 0)
            break;
        for (sf_count_t i = 0; i < n * info.channels; i++)
            most = fmaxf(most, fabsf(block[i]));
    }
    printf("%g\n", (double)most);
    return sf_close(file);
}

static int tags(const char *path) {
    SF_INFO info;
    SNDFILE *file = opened(path, &info);
    if (!file)
        return 1;
    SF_CUES cues = {0};
    SF_BROADCAST_INFO broadcast = {0};
    SF_INSTRUMENT loops;
    const SF_CHUNK_INFO ixml = {.id = "iXML", .id_size = 4};
    const char *title = sf_get_string(file, SF_STR_TITLE), *artist = sf_get_string(file, SF_STR_ARTIST),
               *date = sf_get_string(file, SF_STR_DATE);
    printf("title %s\nartist %s\ndate %s\n", title ? title : "none", artist ? artist : "none", date ? date : "none");
    if (sf_command(file, SFC_GET_CUE, &cues, sizeof cues) == SF_TRUE)
        for (unsigned i = 0; i < cues.cue_count && i < 100; i++)
            printf("cue %d at %u: %s\n", cues.cue_points[i].indx, cues.cue_points[i].sample_offset,
                   cues.cue_points[i].name);
    if (sf_command(file, SFC_GET_INSTRUMENT, &loops, sizeof loops) == SF_TRUE)
        printf("%d loops to %u\n", loops.loop_count, loops.loops[0].end);
    if (sf_get_chunk_iterator(file, &ixml))
        printf("iXML\n");
    if (sf_command(file, SFC_GET_BROADCAST_INFO, &broadcast, sizeof broadcast) == SF_TRUE)
        printf("broadcast %.256s by %.32s at %u\n", broadcast.description, broadcast.originator,
               broadcast.time_reference_low);
    return sf_close(file);
}

static int clipped(const char *path) {
    SF_INFO info;
    SNDFILE *file = opened(path, &info);
    if (!file)
        return 1;
    short block[4096];
    long long count = 0;
    for (sf_count_t n; (n = sf_read_short(file, block, 4096)) > 0;)
        for (sf_count_t i = 0; i < n; i++)
            count += block[i] == 32767 || block[i] == -32768;
    printf("%lld\n", count);
    return sf_close(file);
}

/* Returns the expected sample of a channel at a frame. */
static int expected(long long at, int channel, int taps, char **tap, int positions, char **position) {
    double sum = 0;
    for (int p = 0; p < positions; p++)
        for (int t = 0; t < taps; t++)
            if (atoll(position[p]) + atoll(tap[t]) == at)
                sum += atof(strchr(tap[t], '=') + 1) * sparse_value(p, channel);
    return (int)lrint(sum);
}

static int sparse(int argc, char **a) {
    enum { BLOCK = 65536, CHANNELS = 8 };
    static short block[BLOCK * CHANNELS];
    SF_INFO info;
    SNDFILE *file = opened(a[0], &info);
    int taps = 0;
    while (4 + taps < argc && strcmp(a[4 + taps], "--") != 0)
        taps++;
    char **tap = a + 4, **position = a + 4 + taps + 1;
    int positions = argc - 4 - taps - 1;
    if (!file)
        return 1;
    if (info.frames != atoll(a[1]) || info.channels != atoi(a[2]) || info.samplerate != atoi(a[3]))
        return fail(a[0], "another length, channel count or rate");
    if (positions < 1 || taps < 1 || info.channels > CHANNELS)
        return fail(a[0], "nothing to look for");
    long long nonzero = 0, frame = 0;
    for (sf_count_t n; (n = sf_readf_short(file, block, BLOCK)) > 0; frame += n) {
        for (sf_count_t i = 0; i < n * info.channels; i++) {
            if (block[i] == 0)
                continue;
            long long at = frame + i / info.channels;
            int channel = (int)(i % info.channels), want = expected(at, channel, taps, tap, positions, position);
            if (block[i] != want) {
                fprintf(stderr, "look_audio: %s: frame %lld, channel %d is %d, not %d\n", a[0], at, channel, block[i],
                        want);
                return 1;
            }
            nonzero++;
        }
    }
    if (frame != info.frames)
        return fail(a[0], "shorter than its header says");
    /* All non-zero samples are correct, so a wrong count means that some are missing. */
    if (nonzero != (long long)taps * positions * info.channels)
        return fail(a[0], "a non-zero frame is missing");
    return sf_close(file);
}

/* The comparison is written such that NaN fails. */
static int near(const char *path, const char *other, double bound) {
    SF_INFO one, two;
    SNDFILE *a = opened(path, &one), *b = opened(other, &two);
    int err = !a || !b;
    if (!err && (one.frames != two.frames || one.channels != two.channels))
        err = fail(path, "has other frames or channels");
    float x[1024], y[1024];
    for (sf_count_t n = 1; !err && n > 0;) {
        n = sf_readf_float(a, x, 1024 / one.channels);
        err = sf_readf_float(b, y, 1024 / one.channels) != n ? fail(path, "ends elsewhere") : 0;
        for (sf_count_t i = 0; i < n * one.channels && !err; i++)
            if (!(fabs((double)x[i] - (double)y[i]) <= bound)) {
                fprintf(stderr, "look_audio: %s: %g instead of %g\n", path, (double)x[i], (double)y[i]);
                err = 1;
            }
    }
    sf_close(a);
    sf_close(b);
    return err;
}

static float *read_all(const char *path, SF_INFO *info) {
    SNDFILE *file = opened(path, info);
    float *samples = file ? calloc((size_t)(info->frames * info->channels + 1), sizeof *samples) : NULL;
    if (samples)
        info->frames = sf_readf_float(file, samples, info->frames);
    sf_close(file);
    return samples;
}

/* Returns the position in b at which n frames of a, from frame `at`, have the least squared difference. */
static sf_count_t find_match(const float *a, sf_count_t at, sf_count_t n, const float *b, sf_count_t frames,
                             int channels) {
    double least = HUGE_VAL;
    sf_count_t best = 0;
    for (sf_count_t k = 0; k + n <= frames; k++) {
        double error = 0;
        for (sf_count_t i = 0; i < n && error < least; i++) {
            double d = (double)a[(at + i) * channels] - (double)b[(k + i) * channels];
            error += d * d;
        }
        if (error < least) {
            least = error;
            best = k;
        }
    }
    return best;
}

static int null_test(const char *path, const char *other, double bound, sf_count_t least) {
    enum { PROBE = 2048 };
    SF_INFO one, two;
    float *a = read_all(path, &one), *b = read_all(other, &two);
    int err = !a || !b || one.channels != two.channels || one.frames < PROBE || two.frames < PROBE
                  ? fail(path, "other channels, or too short")
                  : 0;
    if (!err) {
        int channels = one.channels;
        sf_count_t loudest = 0;
        double most = -1;
        for (sf_count_t at = 0; at + PROBE <= one.frames; at += PROBE / 2) {
            double power = 0;
            for (sf_count_t i = 0; i < PROBE; i++)
                power += (double)a[(at + i) * channels] * (double)a[(at + i) * channels];
            if (power > most) {
                most = power;
                loudest = at;
            }
        }
        sf_count_t shift = find_match(a, loudest, PROBE, b, two.frames, channels) - loudest; /* b[n + shift] is a[n] */
        sf_count_t from = shift < 0 ? -shift : 0,
                   to = one.frames + shift < two.frames ? one.frames : two.frames - shift;
        double error = 0, power = 0;
        for (sf_count_t i = from * channels; i < to * channels; i++) {
            double d = (double)a[i] - (double)b[i + shift * channels];
            error += d * d;
            power += (double)b[i + shift * channels] * (double)b[i + shift * channels];
        }
        double residual = 10 * log10(error / power);
        printf("%s: %lld frames against %s, shifted by %lld: %.1f dB\n", path, (long long)(to - from), other,
               (long long)shift, residual);
        if (!(residual <= bound) && !(error <= 0 && power > 0))
            err = fail(path, "differs from the played file");
        else if (to - from < least)
            err = fail(path, "has too few common frames");
    }
    free(a);
    free(b);
    return err;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    if (strcmp(what, "about") == 0 && argc == 3)
        return about(argv[2]);
    if (strcmp(what, "peak") == 0 && argc == 5)
        return peak(argv[2], strtol(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    if (strcmp(what, "tags") == 0 && argc == 3)
        return tags(argv[2]);
    if (strcmp(what, "clipped") == 0 && argc == 3)
        return clipped(argv[2]);
    if (strcmp(what, "near") == 0 && argc == 5)
        return near(argv[2], argv[3], strtod(argv[4], NULL));
    if (strcmp(what, "null") == 0 && argc == 6)
        return null_test(argv[2], argv[3], strtod(argv[4], NULL), strtol(argv[5], NULL, 10));
    if (strcmp(what, "sparse") == 0 && argc > 8)
        return sparse(argc - 2, argv + 2);
    fprintf(stderr, "usage: look_audio about|clipped|near|null|peak|tags|sparse ARGUMENT...; see look_audio.c\n");
    return 2;
}
