/* A program of another project: convolves arrays, a stream and blocks in real time with responses from memory, compares
 * each with a direct sum, and then calls what needs a library of the distribution.
 * Usage: embedded CHECKOUT [LIBRARY...]: the libraries that gpuconv was built with; each of the others is named in an
 * error */
#include <gpuconv.h>
#include <gpuconv_arrays.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _GNU_SOURCE
#error "a program gets the definitions that the library is compiled with"
#endif

enum { FRAMES = 4096, TAPS = 777, BLOCK = 64, OUT = FRAMES + TAPS - 1 };

static float taps[TAPS], in[FRAMES], out[OUT];
static double wanted[OUT];

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

/* Compares `frames` frames of `out`, and fills it with NaN for the next test. */
static void check(const char *what, int frames) {
    for (int n = 0; n < frames; n++) {
        if (!(fabs((double)out[n] - wanted[n]) <= 1e-4))
            fail(what, "the output is wrong");
        out[n] = NAN;
    }
}

static void stream(const gpuconv_ir *ir) {
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_config config = gpuconv_config_default();
    gpuconv_plan *plan = NULL;
    gpuconv_engine *engine = NULL;
    if (gpuconv_plan_new(ir, &config, &plan, &error) || gpuconv_engine_new(plan, &engine, &error))
        fail("engine", error.message);
    const float *const from[] = {in};
    float *to[] = {out};
    int64_t taken = 0, produced;
    if (gpuconv_engine_process(engine, from, FRAMES, to, &produced))
        fail("engine", "it failed");
    do {
        taken += produced;
        to[0] = out + taken;
        if (gpuconv_engine_drain(engine, to, OUT - taken, &produced))
            fail("engine", "it failed");
    } while (produced > 0);
    if (taken != OUT)
        fail("engine", "the output is not N + M - 1 frames long");
    gpuconv_engine_free(engine);
    gpuconv_plan_free(plan);
    check("engine", OUT);
}

static void play(const gpuconv_ir *ir) {
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    gpuconv_realtime *realtime = NULL;
    config.rate = 48000;
    config.block = BLOCK;
    config.freewheel = true;
    if (gpuconv_realtime_new(ir, &config, &realtime, &error))
        fail("real time", error.message);
    for (int at = 0; at < FRAMES; at += BLOCK) {
        const float *const from[] = {in + at};
        float *const to[] = {out + at};
        gpuconv_realtime_process(realtime, from, to, BLOCK);
    }
    gpuconv_realtime_free(realtime);
    check("real time", FRAMES);
}

static void convolve_arrays(void) {
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_arrays *cpu = NULL;
    gpuconv_arrays_job job = gpuconv_arrays_job_default();
    job.signal = gpuconv_rows_of_floats(in, 1, FRAMES);
    job.response = gpuconv_rows_of_floats(taps, 1, TAPS);
    job.output = gpuconv_rows_of_floats(out, 1, OUT);
    if (gpuconv_arrays_new_cpu(0, &cpu, &error) || gpuconv_arrays_run(cpu, &job, NULL, 0, NULL, &error))
        fail("arrays", error.message);
    gpuconv_arrays_free(cpu);
    check("arrays", OUT);
}

/* Checks the status of a function that needs a library, which is among the words or named in the error. */
static void needs(const char *library, const char *package, char **words, gpuconv_status status,
                  const gpuconv_error *error) {
    while (*words && strcmp(*words, library) != 0)
        words++;
    if (*words ? status != GPUCONV_OK
               : status != GPUCONV_ERROR_UNSUPPORTED || !strstr(error->message, library) ||
                     !strstr(error->message, package))
        fail(library, *error->message ? error->message : gpuconv_status_text(status));
}

int main(int argc, char **argv) {
    char file[4096], set[4096];
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_status status;
    gpuconv_ir *mono = NULL, *ir = NULL, *made = NULL;
    gpuconv_report *report = NULL;
    const float *const channels[] = {taps};
    for (int i = 0; i < TAPS; i++)
        taps[i] = (float)((i * 7919 + 13) % 1009) / 1009 - 0.5f;
    for (int i = 0; i < FRAMES; i++)
        in[i] = (float)((i * 104729 + 7) % 2003) / 2003 - 0.5f;
    for (int n = 0; n < OUT; n++)
        for (int k = n < FRAMES ? 0 : n - FRAMES + 1; k < TAPS && k <= n; k++)
            wanted[n] += (double)taps[k] * (double)in[n - k];
    if (argc < 2 || gpuconv_ir_new(channels, 1, TAPS, 48000, &mono, &error) || gpuconv_ir_route(mono, 1, &ir, &error))
        fail("response", error.message);
    stream(ir);
    play(ir);
    convolve_arrays();

    snprintf(file, sizeof file, "%s/impulses/small-room.flac", argv[1]);
    snprintf(set, sizeof set, "%s/tests/sofa/latest.sofa", argv[1]);
    gpuconv_preparation preparation = gpuconv_preparation_default();
    preparation.direction = "30,0";
    char **words = argv + 2;
    needs("libsndfile", "libsndfile1-dev", words, gpuconv_ir_load(file, &made, &error), &error);
    gpuconv_ir_free(made);
    needs("libsoxr", "libsoxr-dev", words, gpuconv_ir_resample(mono, 44100, &made, &error), &error);
    gpuconv_ir_free(made);
    needs("libebur128", "libebur128-dev", words,
          gpuconv_ir_normalize(ir, GPUCONV_NORMALIZE_LOUDNESS, NULL, &made, &error), &error);
    gpuconv_ir_free(made);
    status = gpuconv_ir_prepare(set, &preparation, 1, 48000, &made, &error);
    needs("zlib", "zlib1g-dev", words, status, &error);
    gpuconv_ir_free(made);
    preparation.interpolate = GPUCONV_INTERPOLATE_TRIANGLE;
    if (!status)
        needs("libqhull", "libqhull-dev", words, gpuconv_ir_prepare(set, &preparation, 1, 48000, &made, &error),
              &error);
    gpuconv_ir_free(made);
    strcpy(error.message, "jansson libjansson-dev"); /* the next function has no text */
    needs("jansson", "libjansson-dev", words, gpuconv_report_new(&report), &error);
    gpuconv_report_free(report);
    gpuconv_ir_free(mono);
    gpuconv_ir_free(ir);
    printf("arrays, engine, real time and %d libraries\n", argc - 2);
    return 0;
}
