/* Damaged files: small good ones with some bytes changed or their end cut off, at random from a fixed seed. Whatever
 * they say, reading them ends, gives samples or an error with a message, takes no more memory than there is data, and
 * leaves nothing behind. The sanitizers watch. */
#include "files.h"

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"

#include <math.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 150, FRAMES_MOST = 1 << 22 };

static const struct {
    const char *extension;
    int format;
} formats[] = {{"wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},   {"wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT},
               {"wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_24}, {"flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
               {"aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_24}, {"w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16},
               {"rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16}, {"caf", SF_FORMAT_CAF | SF_FORMAT_PCM_24},
               {"au", SF_FORMAT_AU | SF_FORMAT_FLOAT}};

static long peak_memory(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void put(const char *path, const unsigned char *bytes, size_t size) {
    unlink(path); /* a fresh file is not flushed on closing, as one written over is */
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "%s cannot be written", path);
}

/* Changes some bytes, most of them in the header, and now and then cuts the end off. */
static size_t damage(oracle_random *random, unsigned char *bytes, size_t size) {
    int64_t changes = 1 + oracle_below(random, 6), header = size < 160 ? (int64_t)size : 160;
    for (int64_t i = 0; i < changes; i++) {
        int64_t at = oracle_below(random, oracle_below(random, 4) ? header : (int64_t)size);
        static const unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
        bytes[at] = oracle_below(random, 2) ? (unsigned char)oracle_bits(random) : extremes[oracle_below(random, 5)];
    }
    return oracle_below(random, 4) ? size : (size_t)oracle_below(random, (int64_t)size);
}

/* True when it is audio of a shape that costs no fortune to convolve: a response is resampled to any rate. */
static bool reads_to_an_end(const char *path) {
    gc_reader *reader;
    gpuconv_error error = {0};
    gpuconv_status status = gc_reader_new(path, &reader, &error);
    if (status) {
        assert_null(reader);
        CHECK(strncmp(error.message, path, strlen(path)) == 0, "'%s' does not begin with the file", error.message);
        return false;
    }
    const gc_audio_info *info = gc_reader_info(reader);
    assert_true(info->channels >= 1 && info->channels <= 1024 && info->rate >= 1);
    enum { BLOCK = 512 };
    float *block = malloc(sizeof *block * BLOCK * (size_t)info->channels);
    CHECK(block, "no memory");
    int64_t got = BLOCK, all = 0;
    while (got == BLOCK && all < FRAMES_MOST) {
        if (gc_reader_read_floats(reader, block, BLOCK, &got, &error) != GPUCONV_OK)
            break;
        assert_true(got >= 0 && got <= BLOCK);
        all += got;
    }
    CHECK(all < FRAMES_MOST, "%s gives more frames than it can hold", path);
    bool modest = info->channels <= 16 && info->rate >= 4000 && info->rate <= 400000;
    free(block);
    gc_reader_free(reader);
    return modest;
}

static void convolves_or_says_why(const char *in, const char *response, const char *out) {
    gpuconv_job job = gpuconv_job_default();
    job.input = in;
    job.response = response;
    job.output = out;
    gpuconv_config config = gpuconv_config_default();
    config.backend = GPUCONV_BACKEND_CPU;
    config.threads = 1;
    gpuconv_error error = {0};
    gpuconv_status status = gpuconv_convolve_file(&job, &config, NULL, &error);
    CHECK((access(out, F_OK) == 0) == (status == GPUCONV_OK), "an output after '%s'", error.message);
    CHECK(status == GPUCONV_OK || strlen(error.message) > 10, "no message");
    unlink(out);
}

static void damaged_files_are_read_or_refused(void **state) {
    (void)state;
    oracle_random random = {.state = 1234567};
    for (int f = 0; f < COUNT(formats); f++) {
        unsigned char good[20000], bytes[sizeof good];
        guarded x = guarded_random(&random, 2, 700);
        files_write(files_path("good"), formats[f].format, 44100, &x);
        guarded_free(&x);
        FILE *file = fopen(files_path("good"), "rb");
        CHECK(file, "not written");
        size_t size = fread(good, 1, sizeof good, file);
        fclose(file);
        assert_true(size > 100 && size < sizeof good);
        for (int i = 0; i < ROUNDS; i++) {
            memcpy(bytes, good, size);
            put(files_path("bad.%s", formats[f].extension), bytes, damage(&random, bytes, size));
            bool modest = reads_to_an_end(files_path("bad.%s", formats[f].extension));
            gpuconv_ir *ir;
            gpuconv_error error = {0};
            gpuconv_status status = gpuconv_ir_load(files_path("bad.%s", formats[f].extension), &ir, &error);
            CHECK((ir != NULL) == (status == GPUCONV_OK), "an object after '%s'", error.message);
            gpuconv_ir_free(ir);
            if (modest && i % 5 == 0)
                convolves_or_says_why(files_path("bad.%s", formats[f].extension), files_path("good"),
                                      files_path("out.%s", formats[f].extension));
        }
    }
}

/* A header that promises 2^36 - 1 frames costs nothing until they come. */
static void a_promise_of_frames_takes_no_memory(void **state) {
    (void)state;
    oracle_random random = {.state = 7654321};
    guarded x = guarded_random(&random, 1, 5000);
    files_write(files_path("liar.flac"), SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, &x);
    guarded_free(&x);
    FILE *f = fopen(files_path("liar.flac"), "r+b");
    /* The stream's own block follows "fLaC" and four bytes; the low 36 bits of its bytes 10 to 17 count samples. */
    unsigned char count[5];
    CHECK(f && fseek(f, 4 + 4 + 13, SEEK_SET) == 0 && fread(count, 1, 5, f) == 5, "not read");
    count[0] |= 0x0f;
    memset(count + 1, 0xff, 4);
    CHECK(fseek(f, 4 + 4 + 13, SEEK_SET) == 0 && fwrite(count, 1, 5, f) == 5 && fclose(f) == 0, "not written");
    long before = peak_memory();
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    gpuconv_ir_load(files_path("liar.flac"), &ir, &error);
    gpuconv_ir_free(ir);
    long grown = peak_memory() - before;
    CHECK(grown < 100000, "%ld KiB for a file of some thousand frames", grown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_are_read_or_refused),
        cmocka_unit_test(a_promise_of_frames_takes_no_memory),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
