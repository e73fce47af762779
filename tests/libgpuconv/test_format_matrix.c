/* Tests every combination of container, encoding, channel count and rate as input and output: the result of each is
 * compared with the oracle at the precision of its encoding. */
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

/* The encodings. A sample may deviate by half a quantisation step and the rounding of single precision. */
static const struct {
    const char *name;
    int format;
    double step, bound; /* limit of error to signal in dB; the signal is below full scale */
} encodings[] = {{"s16", SF_FORMAT_PCM_16, 0x1p-15, -65},  {"s24", SF_FORMAT_PCM_24, 0x1p-23, -115},
                 {"s32", SF_FORMAT_PCM_32, 0x1p-31, -120}, {"float", SF_FORMAT_FLOAT, 0, -120},
                 {"double", SF_FORMAT_DOUBLE, 0, -120},    {"vorbis", SF_FORMAT_VORBIS, 0, -12}};

static int cells, unsupported;

/* Returns two tones per channel, a signal that lossy encodings preserve well. */
static guarded sound(int channels, int rate) {
    guarded g = guarded_new(channels, FRAMES);
    for (int c = 0; c < channels; c++)
        for (int i = 0; i < FRAMES; i++)
            g.channel[c][i] = (float)(0.2 * sin(0.05 * (c + 1) * i + rate) + 0.1 * cos(0.21 * i));
    return g;
}

/* Convolves a file of one combination and compares the output with the oracle. */
static void check_cell(int container, int encoding, int channels, int rate) {
    int format = containers[container].format | encodings[encoding].format;
    SF_INFO info = {.format = format, .channels = channels, .samplerate = rate};
    if (!sf_format_check(&info)) {
        unsupported++;
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
    /* The reference is computed from the samples that the input file contains, after quantisation. */
    SF_INFO stored, got;
    guarded input = files_read(in, &stored), output = files_read(out, &got);
    CHECK((got.format & (SF_FORMAT_TYPEMASK | SF_FORMAT_SUBMASK)) == format && got.channels == channels &&
              got.samplerate == rate && got.frames == stored.frames + TAPS - 1,
          "%s, %s, %d channels at %d: the output has other properties", containers[container].name,
          encodings[encoding].name, channels, rate);
    bool lossy = encodings[encoding].format == SF_FORMAT_VORBIS;
    for (int c = 0; c < channels; c++) {
        double wrong = 0, power = 0;
        for (int64_t i = 0; i < output.frames; i++) {
            double want = oracle_frame(input.channel[c], input.frames, taps.channel[0], TAPS, i);
            double off = fabs((double)output.channel[c][i] - want);
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
    guarded_free(&input);
    guarded_free(&output);
}

static void every_combination_has_the_precision_of_its_encoding(void **state) {
    (void)state;
    for (int k = 0; k < COUNT(containers); k++)
        for (int e = 0; e < COUNT(encodings); e++)
            for (int c = 0; c < COUNT(channel_counts); c++)
                for (int r = 0; r < COUNT(rates); r++)
                    check_cell(k, e, channel_counts[c], rates[r]);
    printf("%d combinations, %d not supported by libsndfile\n", cells, unsupported);
    /* Four containers with five encodings, FLAC with two, Ogg with one. */
    assert_int_equal(cells, (4 * 5 + 2 + 1) * 4 * COUNT(rates));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_combination_has_the_precision_of_its_encoding)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
