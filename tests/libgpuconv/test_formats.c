/* Tests of output formats: the container follows the extension and the encoding follows the input, the output has
 * N + M - 1 frames, and every sample has the precision of its encoding. */
#include "files.h"

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"

#include <math.h>

typedef struct format {
    const char *extension;
    int container, samples; /* libsndfile's codes */
} format;

static const format formats[] = {
    {"wav", SF_FORMAT_WAV, SF_FORMAT_PCM_U8},   {"wav", SF_FORMAT_WAV, SF_FORMAT_PCM_16},
    {"wav", SF_FORMAT_WAV, SF_FORMAT_PCM_24},   {"wav", SF_FORMAT_WAV, SF_FORMAT_PCM_32},
    {"wav", SF_FORMAT_WAV, SF_FORMAT_FLOAT},    {"wav", SF_FORMAT_WAV, SF_FORMAT_DOUBLE},
    {"wav", SF_FORMAT_WAVEX, SF_FORMAT_PCM_16}, {"wav", SF_FORMAT_WAVEX, SF_FORMAT_PCM_24},
    {"flac", SF_FORMAT_FLAC, SF_FORMAT_PCM_S8}, {"flac", SF_FORMAT_FLAC, SF_FORMAT_PCM_16},
    {"flac", SF_FORMAT_FLAC, SF_FORMAT_PCM_24}, {"aiff", SF_FORMAT_AIFF, SF_FORMAT_PCM_16},
    {"aif", SF_FORMAT_AIFF, SF_FORMAT_PCM_24},  {"aiff", SF_FORMAT_AIFF, SF_FORMAT_FLOAT},
    {"w64", SF_FORMAT_W64, SF_FORMAT_PCM_16},   {"w64", SF_FORMAT_W64, SF_FORMAT_PCM_24},
    {"w64", SF_FORMAT_W64, SF_FORMAT_FLOAT},    {"rf64", SF_FORMAT_RF64, SF_FORMAT_PCM_16},
    {"rf64", SF_FORMAT_RF64, SF_FORMAT_PCM_24}, {"caf", SF_FORMAT_CAF, SF_FORMAT_PCM_16},
    {"caf", SF_FORMAT_CAF, SF_FORMAT_PCM_24},   {"caf", SF_FORMAT_CAF, SF_FORMAT_FLOAT},
    {"au", SF_FORMAT_AU, SF_FORMAT_PCM_16},     {"au", SF_FORMAT_AU, SF_FORMAT_PCM_24},
    {"ogg", SF_FORMAT_OGG, SF_FORMAT_VORBIS},
};

/* Returns the tolerance of an encoding: half a quantisation step and the rounding of floats; full scale is 1. */
static double tolerance_of(int samples) {
    switch (samples) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
        return 0x1p-8 + 1e-6;
    case SF_FORMAT_PCM_16:
        return 0x1p-16 + 1e-6;
    case SF_FORMAT_PCM_24:
        return 0x1p-24 + 1e-6;
    case SF_FORMAT_VORBIS:
        return 0.2;
    default:
        return 1e-6;
    }
}

static gpuconv_status convolve(const char *in, const char *response, const char *out, gpuconv_error *error) {
    gpuconv_job job = gpuconv_job_default();
    job.input = in;
    job.response = response;
    job.output = out;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    return gpuconv_convolve_file(&job, &config, NULL, error);
}

/* Convolves the file `in` into `out` and compares both files, as libsndfile reads them, with the oracle. Returns the
 * properties of the output. */
static SF_INFO check_convolution(const char *in, const guarded *h, const char *out, double tolerance) {
    SF_INFO from, to;
    gpuconv_error error = {0};
    files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, h);
    guarded x = files_read(in, &from);
    files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, from.samplerate, h);
    CHECK(convolve(in, files_path("response.wav"), out, &error) == GPUCONV_OK, "%s", error.message);
    guarded y = files_read(out, &to);
    oracle_route route[64];
    int outputs, routes = oracle_routes((const float *const *)h->channel, h->channels, x.channels, route, &outputs);
    CHECK(to.channels == outputs, "%s: %d channels instead of %d", out, to.channels, outputs);
    CHECK(to.samplerate == from.samplerate, "%s: at %d Hz", out, to.samplerate);
    int64_t total = x.frames + h->frames - 1;
    CHECK(to.frames == total, "%s: %lld frames instead of %lld", out, (long long)to.frames, (long long)total);
    double *want = malloc((size_t)(outputs * total) * sizeof *want);
    CHECK(want, "no memory");
    oracle_convolve((const float *const *)x.channel, x.frames, route, routes, h->frames, outputs, want);
    for (int c = 0; c < outputs; c++) {
        for (int64_t i = 0; i < total; i++) {
            double off = fabs((double)y.channel[c][i] - want[c * total + i]);
            CHECK(off <= tolerance, "%s: channel %d, frame %lld is off by %g, allowed are %g", out, c, (long long)i,
                  off, tolerance);
        }
    }
    free(want);
    guarded_free(&x);
    guarded_free(&y);
    return to;
}

static guarded quiet_noise(oracle_random *random, int channels, int64_t frames, float level) {
    guarded g = guarded_random(random, channels, frames);
    for (int c = 0; c < channels; c++)
        for (int64_t i = 0; i < frames; i++)
            g.channel[c][i] *= level;
    return g;
}

static void the_output_has_the_encoding_of_the_input(void **state) {
    (void)state;
    static const int rates[] = {8000, 44100, 48000, 96000}, channels[] = {1, 2, 3, 6};
    oracle_random random = {.state = 91};
    for (int f = 0; f < COUNT(formats); f++) {
        for (int r = 0; r < COUNT(rates); r++) {
            for (int c = 0; c < COUNT(channels); c++) {
                SF_INFO possible = {.format = formats[f].container | formats[f].samples,
                                    .channels = channels[c],
                                    .samplerate = rates[r]};
                CHECK(sf_format_check(&possible), "format %d cannot be tested", f);
                guarded x = quiet_noise(&random, channels[c], 3001, 0.3f), h = quiet_noise(&random, 1, 37, 0.1f);
                const char *in = files_path("in.%s", formats[f].extension);
                files_write(in, possible.format, rates[r], &x);
                SF_INFO to = check_convolution(in, &h, files_path("out.%s", formats[f].extension),
                                               tolerance_of(formats[f].samples));
                int container = to.format & SF_FORMAT_TYPEMASK;
                container = container == SF_FORMAT_WAVEX ? SF_FORMAT_WAV : container;
                int wanted = formats[f].container == SF_FORMAT_WAVEX ? SF_FORMAT_WAV : formats[f].container;
                CHECK(container == wanted, "%s: container %x", formats[f].extension, (unsigned)container);
                CHECK((to.format & SF_FORMAT_SUBMASK) == formats[f].samples, "%s: samples %x instead of %x",
                      formats[f].extension, (unsigned)to.format & SF_FORMAT_SUBMASK, (unsigned)formats[f].samples);
                guarded_free(&x);
                guarded_free(&h);
            }
        }
    }
}

/* If the output's container does not support the input's encoding, the nearest lossless one is used. */
static void other_containers_get_the_nearest_lossless_encoding(void **state) {
    (void)state;
    static const struct {
        int in;
        const char *out;
        int samples;
    } cases[] = {{SF_FORMAT_WAV | SF_FORMAT_PCM_16, "flac", SF_FORMAT_PCM_16},
                 {SF_FORMAT_WAV | SF_FORMAT_PCM_24, "flac", SF_FORMAT_PCM_24},
                 {SF_FORMAT_WAV | SF_FORMAT_PCM_U8, "flac", SF_FORMAT_PCM_S8},
                 {SF_FORMAT_WAV | SF_FORMAT_PCM_32, "flac", SF_FORMAT_PCM_24},
                 {SF_FORMAT_WAV | SF_FORMAT_FLOAT, "flac", SF_FORMAT_PCM_24},
                 {SF_FORMAT_WAV | SF_FORMAT_DOUBLE, "flac", SF_FORMAT_PCM_24},
                 {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, "wav", SF_FORMAT_PCM_16},
                 {SF_FORMAT_FLAC | SF_FORMAT_PCM_24, "wav", SF_FORMAT_PCM_24},
                 {SF_FORMAT_FLAC | SF_FORMAT_PCM_S8, "wav", SF_FORMAT_PCM_U8},
                 {SF_FORMAT_OGG | SF_FORMAT_VORBIS, "wav", SF_FORMAT_FLOAT},
                 {SF_FORMAT_AIFF | SF_FORMAT_PCM_24, "wav", SF_FORMAT_PCM_24},
                 {SF_FORMAT_CAF | SF_FORMAT_ALAC_16, "wav", SF_FORMAT_PCM_16},
                 {SF_FORMAT_CAF | SF_FORMAT_ALAC_24, "wav", SF_FORMAT_PCM_24},
                 {SF_FORMAT_CAF | SF_FORMAT_ALAC_32, "wav", SF_FORMAT_PCM_32},
                 {SF_FORMAT_AU | SF_FORMAT_PCM_16, "W64", SF_FORMAT_PCM_16},
                 {SF_FORMAT_WAV | SF_FORMAT_ULAW, "flac", SF_FORMAT_PCM_16},
                 {SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM, "wav", SF_FORMAT_IMA_ADPCM},
                 {SF_FORMAT_WAV | SF_FORMAT_PCM_16, "ogg", SF_FORMAT_VORBIS},
                 {SF_FORMAT_WAV | SF_FORMAT_PCM_16, "FLAC", SF_FORMAT_PCM_16}};
    oracle_random random = {.state = 92};
    for (int i = 0; i < COUNT(cases); i++) {
        guarded x = quiet_noise(&random, 1, 5001, 0.3f), h = quiet_noise(&random, 1, 21, 0.1f);
        const char *in = files_path("in");
        files_write(in, cases[i].in, 44100, &x);
        if (cases[i].samples == SF_FORMAT_IMA_ADPCM) { /* stored in blocks: the number of frames differs */
            gpuconv_error error = {0};
            files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &h);
            CHECK(convolve(in, files_path("response.wav"), files_path("out.%s", cases[i].out), &error) == GPUCONV_OK,
                  "%s", error.message);
        } else {
            SF_INFO to = check_convolution(in, &h, files_path("out.%s", cases[i].out), tolerance_of(cases[i].samples));
            CHECK((to.format & SF_FORMAT_SUBMASK) == cases[i].samples, "case %d: samples %x", i,
                  (unsigned)to.format & SF_FORMAT_SUBMASK);
        }
        guarded_free(&x);
        guarded_free(&h);
    }
}

static void topologies_hold_from_file_to_file(void **state) {
    (void)state;
    static const int shapes[][2] = {{1, 2}, {2, 2}, {2, 4}, {5, 5}, {1, 8}, {4, 1}};
    oracle_random random = {.state = 93};
    for (int s = 0; s < COUNT(shapes); s++) {
        guarded x = quiet_noise(&random, shapes[s][0], 4001, 0.2f), h = quiet_noise(&random, shapes[s][1], 301, 0.05f);
        files_write(files_path("in.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_24, 48000, &x);
        check_convolution(files_path("in.wav"), &h, files_path("out.wav"), tolerance_of(SF_FORMAT_PCM_24));
        guarded_free(&x);
        guarded_free(&h);
    }
}

static void unsupported_channel_counts_are_refused(void **state) {
    (void)state;
    oracle_random random = {.state = 94};
    guarded x = quiet_noise(&random, 1, 101, 0.2f), h = quiet_noise(&random, 9, 31, 0.05f);
    files_write(files_path("in.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 48000, &x);
    files_write(files_path("nine.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, &h);
    gpuconv_error error = {0};
    assert_int_equal(convolve(files_path("in.wav"), files_path("nine.wav"), files_path("nine.flac"), &error),
                     GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "nine.flac") && strstr(error.message, "9 channels"), "%s", error.message);
    guarded_free(&x);
    guarded_free(&h);
}

/* A WAV of unknown length, or of more than 4 GiB, is begun as RF64 and becomes a WAV on commit if it is small enough.
 */
static void wav_becomes_rf64_only_if_necessary(void **state) {
    (void)state;
    static const int64_t announced[] = {100, -1, INT64_C(2) << 30};
    for (int i = 0; i < COUNT(announced); i++) {
        gc_audio_info like = {.rate = 44100, .file_format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
        gc_writer *writer;
        gpuconv_error error = {0};
        int16_t block[200] = {1, 2, 3};
        CHECK(gc_writer_new(files_path("large.wav"), NULL, &like, 2, announced[i], &writer, &error) == GPUCONV_OK, "%s",
              error.message);
        CHECK((strstr(gc_writer_name(writer), "RF64") != NULL) == (announced[i] != 100), "%s for %lld frames",
              gc_writer_name(writer), (long long)announced[i]);
        assert_int_equal(gc_writer_write(writer, block, 100, &error), GPUCONV_OK);
        CHECK(gc_writer_commit(writer, &error) == GPUCONV_OK, "%s", error.message);
        gc_writer_free(writer);
        SF_INFO info;
        guarded y = files_read(files_path("large.wav"), &info);
        assert_int_equal(info.frames, 100);
        assert_int_equal(info.format & SF_FORMAT_SUBMASK, SF_FORMAT_PCM_16);
        assert_int_not_equal(info.format & SF_FORMAT_TYPEMASK, SF_FORMAT_RF64);
        guarded_free(&y);
    }
}

/* Stores a note of the job. */
static void store_note(void *context, const char *text) {
    snprintf(context, 512, "%s", text);
}

/* Every sample out of range is counted; samples at full scale are not. */
static void clipped_samples_are_counted_exactly(void **state) {
    (void)state;
    oracle_random random = {.state = 95};
    static const int samples[] = {SF_FORMAT_PCM_16, SF_FORMAT_PCM_24, SF_FORMAT_PCM_U8};
    static const int bits[] = {16, 24, 8};
    for (int f = 0; f < COUNT(samples); f++) {
        guarded x = guarded_random(&random, 2, 70001), h = guarded_new(1, 3);
        SF_INFO info;
        h.channel[0][0] = 0;
        h.channel[0][1] = 1.75f;
        h.channel[0][2] = 0;
        files_write(files_path("in.wav"), SF_FORMAT_WAV | samples[f], 44100, &x);
        files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &h);
        guarded stored = files_read(files_path("in.wav"), &info);
        int64_t want = 0;
        double scale = ldexp(1, bits[f] - 1);
        for (int c = 0; c < 2; c++) {
            for (int64_t i = 0; i < stored.frames; i++) {
                double v = nearbyint((double)(stored.channel[c][i] * 1.75f) * scale);
                want += !(v <= scale - 1 && v >= -scale);
            }
        }
        assert_true(want > 1000);
        char note[512] = "", expected[64];
        gpuconv_job job = gpuconv_job_default();
        job.input = files_path("in.wav");
        job.response = files_path("response.wav");
        job.output = files_path("out.wav");
        job.note = store_note;
        job.context = note;
        gpuconv_config config = gpuconv_config_default();
        config.backend = GPUCONV_BACKEND_CPU;
        config.algorithm = GPUCONV_ALGORITHM_DIRECT;
        gpuconv_error error = {0};
        CHECK(gpuconv_convolve_file(&job, &config, NULL, &error) == GPUCONV_OK, "%s", error.message);
        snprintf(expected, sizeof expected, ": %lld samples clipped;", (long long)want);
        CHECK(strstr(note, expected), "'%s' instead of '%s'", note, expected);
        guarded_free(&stored);
        guarded_free(&x);
        guarded_free(&h);
    }
}

/* A file has no latency: its chunks are long whatever the configuration says. */
static void a_short_latency_does_not_change_a_file(void **state) {
    (void)state;
    int64_t chunk[2];
    oracle_random random = {.state = 3};
    guarded x = guarded_random(&random, 1, 100000), h = guarded_random(&random, 1, 100);
    files_write(files_path("in.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &x);
    files_write(files_path("response.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, &h);
    for (int i = 0; i < 2; i++) {
        gpuconv_job job = gpuconv_job_default();
        gpuconv_config config = gpuconv_config_default();
        gpuconv_report *report;
        job.input = files_path("in.wav");
        job.response = files_path("response.wav");
        job.output = files_path("out.wav");
        config.backend = GPUCONV_BACKEND_CPU;
        config.latency_frames = i ? 1024 : 0;
        assert_int_equal(gpuconv_report_new(&report), GPUCONV_OK);
        assert_int_equal(gpuconv_convolve_file(&job, &config, report, NULL), GPUCONV_OK);
        chunk[i] = gpuconv_report_count(report, "convolution", 0, "chunk frames");
        gpuconv_report_free(report);
    }
    assert_true(chunk[0] > 50000);
    assert_int_equal(chunk[0], chunk[1]);
    guarded_free(&x);
    guarded_free(&h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_latency_does_not_change_a_file),
        cmocka_unit_test(the_output_has_the_encoding_of_the_input),
        cmocka_unit_test(other_containers_get_the_nearest_lossless_encoding),
        cmocka_unit_test(topologies_hold_from_file_to_file),
        cmocka_unit_test(unsupported_channel_counts_are_refused),
        cmocka_unit_test(wav_becomes_rf64_only_if_necessary),
        cmocka_unit_test(clipped_samples_are_counted_exactly),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
