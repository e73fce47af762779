/* Tests with damaged files: small valid files with random bytes changed or truncated, from a fixed seed. Reading each
 * must end, must give samples or an error with a message, must not allocate memory for data that is not there, and must
 * leave no file behind. Meant to run under the sanitizers too. */
#include "files.h"

#include "gpuconv.h"
#include "libgpuconv/audio/file.h"

#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 150, MAX_FRAMES = 1 << 22 };

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

static void write_file(const char *path, const unsigned char *bytes, size_t size) {
    unlink(path); /* faster: some file systems flush a truncated file on close */
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0, "%s cannot be written", path);
}

/* Changes some bytes, most of them in the header, and truncates the file in one of four cases. Returns the new size. */
static size_t damage(oracle_random *random, unsigned char *bytes, size_t size) {
    int64_t changes = 1 + oracle_below(random, 6), header = size < 160 ? (int64_t)size : 160;
    for (int64_t i = 0; i < changes; i++) {
        int64_t at = oracle_below(random, oracle_below(random, 4) ? header : (int64_t)size);
        static const unsigned char extremes[] = {0, 1, 0x7f, 0x80, 0xff};
        bytes[at] = oracle_below(random, 2) ? (unsigned char)oracle_bits(random) : extremes[oracle_below(random, 5)];
    }
    return oracle_below(random, 4) ? size : (size_t)oracle_below(random, (int64_t)size);
}

/* Reads a file to its end. Returns true if it is audio whose channels and rate make it cheap to convolve: the response
 * is resampled to any rate. */
static bool check_reading(const char *path) {
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
    while (got == BLOCK && all < MAX_FRAMES) {
        if (gc_reader_read_floats(reader, block, BLOCK, &got, &error) != GPUCONV_OK)
            break;
        assert_true(got >= 0 && got <= BLOCK);
        all += got;
    }
    CHECK(all < MAX_FRAMES, "%s gives more frames than it can hold", path);
    bool is_cheap = info->channels <= 16 && info->rate >= 4000 && info->rate <= 400000;
    free(block);
    gc_reader_free(reader);
    return is_cheap;
}

/* Convolves a file: either there is an output, or an error with a message and no output. */
static void check_convolving(const char *in, const char *response, const char *out) {
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
            write_file(files_path("bad.%s", formats[f].extension), bytes, damage(&random, bytes, size));
            bool is_cheap = check_reading(files_path("bad.%s", formats[f].extension));
            gpuconv_ir *ir;
            gpuconv_error error = {0};
            gpuconv_status status = gpuconv_ir_load(files_path("bad.%s", formats[f].extension), &ir, &error);
            CHECK((ir != NULL) == (status == GPUCONV_OK), "an object after '%s'", error.message);
            gpuconv_ir_free(ir);
            if (is_cheap && i % 5 == 0)
                check_convolving(files_path("bad.%s", formats[f].extension), files_path("good"),
                                 files_path("out.%s", formats[f].extension));
        }
    }
}

/* A header that states 2^36 - 1 frames must not cause an allocation of that size. */
static void a_stated_length_allocates_no_memory(void **state) {
    (void)state;
    oracle_random random = {.state = 7654321};
    guarded x = guarded_random(&random, 1, 5000);
    files_write(files_path("long.flac"), SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, &x);
    guarded_free(&x);
    FILE *f = fopen(files_path("long.flac"), "r+b");
    /* STREAMINFO follows "fLaC" and a block header of four bytes; the low 36 bits of its bytes 10 to 17 are the number
     * of samples. */
    unsigned char count[5];
    CHECK(f && fseek(f, 4 + 4 + 13, SEEK_SET) == 0 && fread(count, 1, 5, f) == 5, "not read");
    count[0] |= 0x0f;
    memset(count + 1, 0xff, 4);
    CHECK(fseek(f, 4 + 4 + 13, SEEK_SET) == 0 && fwrite(count, 1, 5, f) == 5 && fclose(f) == 0, "not written");
    long before = peak_memory();
    gpuconv_ir *ir;
    gpuconv_error error = {0};
    gpuconv_ir_load(files_path("long.flac"), &ir, &error);
    gpuconv_ir_free(ir);
    long grown = peak_memory() - before;
    CHECK(grown < 100000, "%ld KiB for a file of some thousand frames", grown);
}

/* ---- Reasons ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 4, OPEN_CALLS = 1500 };

typedef struct opener {
    const char *path;
    char reason[sizeof((gpuconv_error *)NULL)->message]; /* the message when no other thread opens a file */
    int wrong;
} opener;

static void *open_repeatedly(void *argument) {
    opener *o = argument;
    for (int i = 0; i < OPEN_CALLS; i++) {
        gc_reader *reader;
        gpuconv_error error = {0};
        gpuconv_status status = gc_reader_new(o->path, &reader, &error);
        gc_reader_free(reader);
        o->wrong += (status != GPUCONV_OK) != (*o->reason != '\0') || strcmp(error.message, o->reason) != 0;
    }
    return NULL;
}

/* libsndfile stores the reason of a failure in one variable; each thread must still get the reason of its own file. */
static void threads_do_not_mix_up_reasons(void **state) {
    (void)state;
    opener o[THREADS] = {{.path = strdup(files_path("text.wav"))},
                         {.path = strdup(files_path("cut.wav"))},
                         {.path = strdup(files_path("kind.wav"))},
                         {.path = strdup(files_path("whole.wav"))}};
    unsigned char bytes[2000];
    oracle_random random = {.state = 99};
    guarded x = guarded_random(&random, 1, 700);
    files_write(files_path("whole.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 44100, &x);
    guarded_free(&x);
    FILE *f = fopen(files_path("whole.wav"), "rb");
    CHECK(f && fread(bytes, 1, 1000, f) == 1000 && fclose(f) == 0, "not read");
    write_file(files_path("text.wav"), (const unsigned char *)"some words, and no sound", 24);
    write_file(files_path("cut.wav"), bytes, 40);
    bytes[20] = 0x77; /* an unknown encoding */
    write_file(files_path("kind.wav"), bytes, 1000);
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        gc_reader *reader;
        gpuconv_error error = {0};
        (void)gc_reader_new(o[i].path, &reader, &error);
        gc_reader_free(reader);
        memcpy(o[i].reason, error.message, sizeof error.message);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, open_repeatedly, &o[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        CHECK(o[i].wrong == 0, "%d of %d times another reason than '%s'", o[i].wrong, OPEN_CALLS, o[i].reason);
        free((void *)o[i].path);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_files_are_read_or_refused),
        cmocka_unit_test(a_stated_length_allocates_no_memory),
        cmocka_unit_test(threads_do_not_mix_up_reasons),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
