/* Every rate, channel count, sample format and container together, in and out: each cell is held against the oracle at
 * the precision that its format has. */
#include "check.h"
#include "files.h"
#include "gpuconv.h"

#include <math.h>

enum { FRAMES = 700, TAPS = 61 };

static const int rates[] = {8000, 11025, 16000, 22050, 32000, 44100, 48000, 88200, 96000, 176400, 192000};
static const int channel_counts[] = {1, 2, 4, 8};

static const struct {
    const char *name;
    int format;
} containers[] = {{"wav", SF_FORMAT_WAV}, {"flac", SF_FORMAT_FLAC}, {"aiff", SF_FORMAT_AIFF},
                  {"w64", SF_FORMAT_W64}, {"rf64", SF_FORMAT_RF64}, {"ogg", SF_FORMAT_OGG}};

/* What a sample may be off by: half a step, and what single precision leaves open. */
static const struct {
    const char *name;
    int format;
    double step, bound; /* dB of the error against the sound, which is some way under full scale */
} encodings[] = {{"s16", SF_FORMAT_PCM_16, 0x1p-15, -65},  {"s24", SF_FORMAT_PCM_24, 0x1p-23, -115},
                 {"s32", SF_FORMAT_PCM_32, 0x1p-31, -120}, {"float", SF_FORMAT_FLOAT, 0, -120},
                 {"double", SF_FORMAT_DOUBLE, 0, -120},    {"vorbis", SF_FORMAT_VORBIS, 0, -12}};

static int cells, impossible;

/* Tones that fade: what a lossy format can carry as well. */
static guarded sound(int channels, int rate) {
    guarded g = guarded_new(channels, FRAMES);
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < FRAMES; i++)
            g.channel[c][i] = (float)(0.2 * sin(0.05 * (c + 1) * i + rate) + 0.1 * cos(0.21 * i));
    return g;
}

static void one_cell(int container, int encoding, int channels, int rate) {
    int format = containers[container].format | encodings[encoding].format;
    SF_INFO info = {.format = format, .channels = channels, .samplerate = rate};
    if (!sf_format_check(&info)) {
        impossible++;
        return;
    }
    cells++;
    const char *in = files_path("in.%s", containers[container].name),
               *out = files_path("out.%s", containers[container].name);
    guarded samples = sound(channels, rate), taps = guarded_new(1, TAPS);
    for (int i = 0; i < TAPS; i++)
        taps.channel[0][i] = (float)(0.3 * exp(-i / 15.0) * cos(0.7 * i));
    files_write(in, format, rate, &samples);
    files_write(files_path("ir.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, &taps);
    gpuconv_config config = gpuconv_config_default();
    gpuconv_job job = gpuconv_job_default();
    gpuconv_error error = {0};
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = 1;
    job.input = in;
    job.response = files_path("ir.wav");
    job.output = out;
    CHECK(gpuconv_convolve_file(&job, &config, NULL, &error) == GPUCONV_OK, "%s, %s, %d channels at %d: %s",
          containers[container].name, encodings[encoding].name, channels, rate, error.message);
    /* What the file holds is what was put in, not what was meant. */
    SF_INFO stored, got;
    guarded was = files_read(in, &stored), is = files_read(out, &got);
    CHECK((got.format & (SF_FORMAT_TYPEMASK | SF_FORMAT_SUBMASK)) == format && got.channels == channels &&
              got.samplerate == rate && got.frames == stored.frames + TAPS - 1,
          "%s, %s, %d channels at %d: another file", containers[container].name, encodings[encoding].name, channels,
          rate);
    bool lossy = encodings[encoding].format == SF_FORMAT_VORBIS;
    for (int c = 0; c < channels; c++) {
        double wrong = 0, power = 0;
        for (int64_t i = 0; i < is.frames; i++) {
            double want = oracle_frame(was.channel[c], was.frames, taps.channel[0], TAPS, i);
            double off = fabs((double)is.channel[c][i] - want);
            CHECK(lossy || off <= encodings[encoding].step / 2 + 0x1p-23,
                  "%s, %s, %d channels at %d: frame %lld off by %g", containers[container].name,
                  encodings[encoding].name, channels, rate, (long long)i, off);
            wrong += off * off;
            power += want * want;
        }
        double decibels = 10 * log10(wrong / power);
        CHECK(decibels <= encodings[encoding].bound, "%s, %s, %d channels at %d: channel %d is %.1f dB off",
              containers[container].name, encodings[encoding].name, channels, rate, c, decibels);
    }
    guarded_free(&samples);
    guarded_free(&taps);
    guarded_free(&was);
    guarded_free(&is);
}

static void every_cell_is_convolved_at_its_own_precision(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(containers); k++)
        for (int e = 0; e < COUNT(encodings); e++)
            for (int c = 0; c < COUNT(channel_counts); c++)
                for (int r = 0; r < COUNT(rates); r++)
                    one_cell(k, e, channel_counts[c], rates[r]);
    printf("%d cells, %d that no such file can be\n", cells, impossible);
    /* Four containers of five formats, FLAC of two, Ogg of one. */
    assert_int_equal(cells, (4 * 5 + 2 + 1) * 4 * COUNT(rates));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_cell_is_convolved_at_its_own_precision)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
