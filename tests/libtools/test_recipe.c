/* Tests recipes of a batch against a reference in double precision: alignment and length, noise, levels, early
 * reflections and several sources, in slots and rendered in memory. */
#include "files.h"

#include "libtools/batch/entry/entry.h"
#include "libtools/batch/run/batch.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

enum { RATE = 8000, FRAMES = 6000, TAPS = 900, PEAK = 217, NOISE = 1700 };

static guarded input, other, two, response, second, wide, noise, noises;

static double decibels(double level) {
    return pow(10, level / 20);
}

/* Makes a decaying response with silence in front, a first sound, and a later peak. */
static guarded make_response(oracle_random *random, int silence, int peak) {
    guarded g = guarded_random(random, 1, TAPS);
    for (int i = 0; i < TAPS; i++)
        g.channel[0][i] *= i < silence ? 0 : (float)(0.2 * exp(-(i - silence) / 250.0));
    g.channel[0][silence] = 0.4F;
    g.channel[0][peak] = -0.9F;
    return g;
}

static int make_files(void **state) {
    oracle_random random = {77};
    const int format = SF_FORMAT_WAV | SF_FORMAT_FLOAT;
    const int begun = files_begin(state);
    input = guarded_random(&random, 1, FRAMES);
    other = guarded_random(&random, 1, FRAMES / 2);
    two = guarded_random(&random, 2, FRAMES);
    noise = guarded_random(&random, 1, NOISE);
    response = make_response(&random, 40, PEAK);
    second = make_response(&random, 3, 3);
    wide = guarded_random(&random, 2, TAPS / 2);
    noises = guarded_random(&random, 2, NOISE + 1);
    files_write(files_path("in.wav"), format, RATE, &input);
    files_write(files_path("other.wav"), format, RATE, &other);
    files_write(files_path("two.wav"), format, RATE, &two);
    files_write(files_path("noise.wav"), format, RATE, &noise);
    files_write(files_path("h.wav"), format, RATE, &response);
    files_write(files_path("h2.wav"), format, RATE, &second);
    files_write(files_path("wide.wav"), format, RATE, &wide);
    files_write(files_path("noises.wav"), format, RATE, &noises);
    FILE *f = fopen(files_path("sum.txt"), "w");
    return begun || !f || fprintf(f, "1 1 h.wav\n2 1 h2.wav\n") < 0 || fclose(f) != 0;
}

static int remove_files(void **state) {
    static const char *const made[] = {"y.wav", "y.early.wav", "results.jsonl"};
    for (int i = 0; i < COUNT(made); i++)
        (void)unlink(files_path("out/%s", made[i]));
    (void)rmdir(files_path("out"));
    guarded *const all[] = {&input, &other, &two, &response, &second, &wide, &noise, &noises};
    for (int i = 0; i < COUNT(all); i++)
        guarded_free(all[i]);
    return files_end(state);
}

static void read_manifest(const char *text, size_t length, gc_manifest *m) {
    gpuconv_error error = {0};
    FILE *f = fopen(files_path("row.csv"), "w");
    CHECK(f && fwrite(text, 1, length, f) == length && fclose(f) == 0, "row.csv cannot be written");
    CHECK(gc_manifest_read(files_path("row.csv"), NULL, m, &error) == GPUCONV_OK, "%s", error.message);
}

/* Runs a manifest of one row, in which @ stands for the folder, and reads the output. */
static guarded run(const char *format, ...) {
    char row[2000], text[8000];
    size_t used = 0;
    va_list args;
    va_start(args, format);
    (void)gc_vformat(row, sizeof row, format, args);
    va_end(args);
    for (const char *at = row; *at; at++)
        used += *at == '@' ? (size_t)snprintf(text + used, sizeof text - used, "%s", files_path("."))
                           : (text[used] = *at, 1);
    gc_manifest m;
    gpuconv_error error = {0};
    gc_batch_progress progress;
    SF_INFO info;
    read_manifest(text, used, &m);
    CHECK(!m.entry[0].refusal, "%s", m.entry[0].refusal);
    const gc_batch b = {.manifest = &m, .folder = files_path("out"), .backend = GPUCONV_BACKEND_CPU, .workers = 1};
    CHECK(gc_batch_run(&b, &progress, &error) == GPUCONV_OK && progress.failed == 0, "%s: failed, see results.jsonl",
          row);
    gc_manifest_free(&m);
    guarded got = files_read(files_path("out/y.wav"), &info);
    assert_int_equal(info.samplerate, RATE);
    return got;
}

/* Computes `count` frames from frame `from` of the convolution of a channel with a response, plus what is there. */
static void add(double *y, int64_t count, int64_t at, const float *x, int64_t frames, const float *taps,
                int64_t taps_count, int64_t from, double gain) {
    for (int64_t i = 0; i < count; i++)
        if (from + i >= 0 && from + i < frames + taps_count - 1)
            y[at + i] += gain * oracle_frame(x, frames, taps, taps_count, from + i);
}

static double power(const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += y[i] * y[i];
    return sum / (double)n;
}

static double peak(const double *y, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(y[i]));
    return most;
}

static void scale(double *y, int64_t n, double factor) {
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

/* Compares an output with the reference and frees it. */
static void agrees(const char *what, guarded got, const double *want, int64_t frames) {
    CHECK(oracle_agrees(what, &got, got.frames, want, frames, -110), "%s", what);
    guarded_free(&got);
}

static void an_aligned_output_has_the_length_and_the_time_of_its_input(void **state) {
    double y[FRAMES] = {0};
    (void)state;
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, decibels(-3));
    agrees("align peak, tail 0", run("input,response,output,align,tail,gain\n@/in.wav,@/h.wav,y.wav,peak,0,-3\n"), y,
           FRAMES);
}

static void modes_keep_the_frames_of_the_command(void **state) {
    static double y[FRAMES + TAPS];
    (void)state;
    memset(y, 0, sizeof y);
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, (TAPS - 1) / 2, 1);
    agrees("same", run("input,response,output,mode\n@/in.wav,@/h.wav,y.wav,same\n"), y, FRAMES);
    memset(y, 0, sizeof y);
    add(y, FRAMES - TAPS + 1, 0, input.channel[0], FRAMES, response.channel[0], TAPS, TAPS - 1, 1);
    agrees("valid", run("input,response,output,mode\n@/in.wav,@/h.wav,y.wav,valid\n"), y, FRAMES - TAPS + 1);
    memset(y, 0, sizeof y);
    add(y, FRAMES + 400, 0, input.channel[0], FRAMES, response.channel[0], TAPS, 0, 1);
    agrees("tail", run("input,response,output,tail\n@/in.wav,@/h.wav,y.wav,0.05\n"), y, FRAMES + 400);
}

static void noise_is_repeated_and_added_at_its_snr(void **state) {
    double y[FRAMES] = {0}, n[FRAMES];
    const int offset = 800;
    (void)state;
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, 1);
    for (int i = 0; i < FRAMES; i++)
        n[i] = (double)noise.channel[0][(i + offset) % NOISE];
    const double factor = sqrt(power(y, FRAMES) / power(n, FRAMES)) / decibels(7);
    for (int i = 0; i < FRAMES; i++)
        y[i] += factor * n[i];
    agrees("noise",
           run("input,response,output,align,tail,noise,snr,noise_offset\n"
               "@/in.wav,@/h.wav,y.wav,peak,0,@/noise.wav,7,0.1\n"),
           y, FRAMES);
}

static void levels_are_reached_and_the_gain_is_applied_after_them(void **state) {
    double whole[FRAMES] = {0}, y[FRAMES], x[FRAMES];
    static const char row[] = "input,response,output,align,tail,level,gain\n@/in.wav,@/h.wav,y.wav,peak,0,%s,%d\n";
    (void)state;
    add(whole, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, 1);
    memcpy(y, whole, sizeof y);
    scale(y, FRAMES, decibels(-26 - 2) / sqrt(power(whole, FRAMES)));
    agrees("rms", run(row, "rms:-26", -2), y, FRAMES);
    memcpy(y, whole, sizeof y);
    scale(y, FRAMES, decibels(-1) / peak(whole, FRAMES));
    agrees("peak", run(row, "peak:-1", 0), y, FRAMES);
    for (int i = 0; i < FRAMES; i++)
        x[i] = (double)input.channel[0][i];
    memcpy(y, whole, sizeof y);
    scale(y, FRAMES, decibels(3) * sqrt(power(x, FRAMES) / power(whole, FRAMES)));
    agrees("input", run(row, "input:3", 0), y, FRAMES);
}

/* White noise of a known power has a loudness that is 3.01 dB above -0.691 dB plus its power for K-weighting alone; two
 * levels must differ by their difference exactly, which needs no table of the filter. */
static void loudness_follows_its_target(void **state) {
    static const char row[] = "input,response,output,level\n@/in.wav,@/h.wav,y.wav,loudness:%d\n";
    (void)state;
    guarded loud = run(row, -20), quiet = run(row, -30);
    assert_int_equal(loud.frames, quiet.frames);
    double want[FRAMES + TAPS];
    for (int64_t i = 0; i < loud.frames; i++)
        want[i] = (double)quiet.channel[0][i] * decibels(10);
    CHECK(oracle_agrees("loudness", &loud, loud.frames, want, quiet.frames, -110), "loudness");
    const double rms = 10 * log10(power(want, quiet.frames));
    CHECK(rms > -26 && rms < -18, "an RMS of %g dB for -20 LUFS", rms);
    guarded_free(&loud);
    guarded_free(&quiet);
}

static void sources_add_up_with_their_gains_and_starts(void **state) {
    enum { START = 3500 };
    double y[START + FRAMES / 2 > FRAMES ? START + FRAMES / 2 : FRAMES] = {0};
    (void)state;
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, decibels(-6));
    add(y, FRAMES / 2, START, other.channel[0], FRAMES / 2, second.channel[0], TAPS, 3, decibels(2));
    agrees("sources",
           run("inputs,responses,gains,starts,output,align,tail\n"
               "@/in.wav|@/other.wav,@/h.wav|@/h2.wav,-6|2,0|%.17g,y.wav,peak,0\n",
               (double)START / RATE),
           y, COUNT(y));
}

/* Returns the frame with the largest magnitude of all channels. */
static int64_t peak_frame(const guarded *g) {
    int64_t at = 0;
    float most = -1;
    for (int64_t i = 0; i < g->frames; i++)
        for (int c = 0; c < g->channels; c++)
            if (fabsf(g->channel[c][i]) > most) {
                most = fabsf(g->channel[c][i]);
                at = i;
            }
    return at;
}

/* Fails unless the result of the last run contains a text. */
static void recorded(const char *text) {
    char line[8000] = "";
    FILE *f = fopen(files_path("out/results.jsonl"), "r");
    CHECK(f && fgets(line, sizeof line, f) && strstr(line, text), "no %s in %s", text, line);
    fclose(f);
}

/* Adds the whole results of one input through two responses and of two inputs through one, in two channels. */
static void add_both(double *y, int64_t frames, int64_t start, const int64_t taps[2], const double gain[2]) {
    for (int c = 0; c < 2; c++) {
        add(y + c * frames, FRAMES + taps[0] - 1, 0, input.channel[0], FRAMES, wide.channel[c], taps[0], 0, gain[0]);
        add(y + c * frames, FRAMES + taps[1] - 1, start, two.channel[c], FRAMES, second.channel[0], taps[1], 0,
            gain[1]);
    }
}

static void sources_of_different_channels_add_up_channel_by_channel(void **state) {
    enum { START = 777, ALL = START + FRAMES + TAPS - 1, EARLY = 80 };
    static double y[2 * ALL], early[2 * ALL], n[2 * ALL];
    const double gain[2] = {decibels(-4), decibels(1)};
    const int64_t whole[2] = {TAPS / 2, TAPS};
    SF_INFO info;
    (void)state;
    add_both(y, ALL, START, whole, gain);
    agrees("two channels",
           run("inputs,responses,gains,starts,output\n@/in.wav|@/two.wav,@/wide.wav|@/h2.wav,-4|1,0|%.17g,y.wav\n",
               (double)START / RATE),
           y, ALL);
    for (int c = 0; c < 2; c++)
        for (int i = 0; i < ALL; i++)
            n[c * ALL + i] = (double)noises.channel[c][(i + 100) % (NOISE + 1)];
    const double factor = sqrt(power(y, (int64_t)2 * ALL) / power(n, (int64_t)2 * ALL)) / decibels(-3);
    for (int i = 0; i < 2 * ALL; i++)
        n[i] = y[i] + factor * n[i];
    double level = decibels(-9) / peak(n, (int64_t)2 * ALL);
    scale(n, (int64_t)2 * ALL, level);
    const int64_t direct[2] = {peak_frame(&wide) + EARLY + 1, 3 + EARLY + 1};
    add_both(early, ALL, START, direct, gain);
    scale(early, (int64_t)2 * ALL, level);
    agrees("two channels, noise, level",
           run("inputs,responses,gains,starts,output,noise,snr,noise_offset,level,early_ms\n"
               "@/in.wav|@/two.wav,@/wide.wav|@/h2.wav,-4|1,0|%.17g,y.wav,@/noises.wav,-3,0.0125,peak:-9,10\n",
               (double)START / RATE),
           n, ALL);
    agrees("two channels, early", files_read(files_path("out/y.early.wav"), &info), early, ALL);
}

static void the_longest_source_gives_the_length_and_the_input_level_is_that_of_all(void **state) {
    double y[FRAMES] = {0}, x[FRAMES] = {0};
    (void)state;
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, 1);
    add(y, FRAMES / 2, 0, other.channel[0], FRAMES / 2, second.channel[0], TAPS, 3, 1);
    for (int i = 0; i < FRAMES; i++)
        x[i] = (double)input.channel[0][i];
    double both = power(x, FRAMES);
    for (int i = 0; i < FRAMES / 2; i++)
        x[i] = (double)other.channel[0][i];
    both += power(x, FRAMES / 2);
    scale(y, FRAMES, sqrt(both / power(y, FRAMES)));
    agrees("the first is the longest",
           run("inputs,responses,output,align,tail,level\n@/in.wav|@/other.wav,@/h.wav|@/h2.wav,y.wav,peak,0,input\n"),
           y, FRAMES);
}

static void an_inaudible_tail_is_cut_behind_the_input_of_each_source(void **state) {
    enum { START = 7000 };
    (void)state;
    guarded got = run("inputs,responses,gains,starts,output,tail\n"
                      "@/in.wav|@/other.wav,@/h.wav|@/h2.wav,-200|-200,0|%.17g,y.wav,auto:-60\n",
                      (double)START / RATE);
    assert_int_equal(got.frames, START + FRAMES / 2);
    guarded_free(&got);
    got = run("inputs,responses,gains,output,tail,align\n@/in.wav|@/in.wav,@/h.wav|@/h.wav,-200|-200,y.wav,"
              "auto:-60,peak\n");
    assert_int_equal(got.frames, FRAMES - PEAK); /* the input's frames behind the response's peak */
    guarded_free(&got);
}

/* Removes the number of frames from the header of a FLAC file. */
static void remove_length(const char *path) {
    FILE *f = fopen(path, "r+b");
    assert_true(f && fseek(f, 21, SEEK_SET) == 0);
    const int bits = fgetc(f) & 0xf0; /* of the sample format, before the 36 bits of the number */
    assert_true(fseek(f, 21, SEEK_SET) == 0 && fputc(bits, f) != EOF && fwrite("\0\0\0", 1, 4, f) == 4 &&
                fclose(f) == 0);
}

static void an_input_of_unknown_length_is_mixed_whole(void **state) {
    enum { LONG = 150000 };
    oracle_random random = {5};
    static double y[LONG + 29];
    double x[2] = {0};
    SF_INFO info;
    (void)state;
    guarded drawn = guarded_random(&random, 2, LONG), sum = guarded_random(&random, 1, 30);
    sum.channel[0][7] = 2;
    files_write(files_path("few.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &sum);
    FILE *f = fopen(files_path("few.txt"), "w");
    assert_true(f && fputs("1 1 few.wav\n2 1 few.wav\n", f) >= 0 && fclose(f) == 0);
    files_write(files_path("endless.flac"), SF_FORMAT_FLAC | SF_FORMAT_PCM_24, RATE, &drawn);
    guarded endless = files_read(files_path("endless.flac"), &info);
    remove_length(files_path("endless.flac"));
    assert_int_equal(endless.frames, LONG);
    guarded got =
        run("input,response,output,level,early_ms,encoding\n@/endless.flac,@/few.txt,y.wav,input:-20,10,float\n");
    memset(y, 0, sizeof y);
    for (int c = 0; c < 2; c++) {
        add(y, LONG + 29, 0, endless.channel[c], LONG, sum.channel[0], 30, 0, 1);
        for (int i = 0; i < LONG; i++)
            x[c] += (double)endless.channel[c][i] * (double)endless.channel[c][i];
    }
    const double level = decibels(-20) * sqrt((x[0] + x[1]) / 2 / LONG / power(y, LONG + 29));
    scale(y, LONG + 29, level);
    agrees("of unknown length", got, y, LONG + 29);
    agrees("of unknown length, early", files_read(files_path("out/y.early.wav"), &info), y, LONG + 29);
    guarded_free(&drawn);
    guarded_free(&endless);
    guarded_free(&sum);
}

static void samples_that_are_not_finite_are_counted_in_all_sources(void **state) {
    oracle_random random = {6};
    (void)state;
    guarded a = guarded_random(&random, 2, 300), b = guarded_random(&random, 2, 300);
    a.channel[0][7] = a.channel[1][200] = b.channel[1][3] = NAN;
    files_write(files_path("a.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &a);
    files_write(files_path("b.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, RATE, &b);
    guarded got = run("inputs,responses,output\n@/a.wav|@/b.wav,@/sum.txt|@/sum.txt,y.wav\n");
    recorded("\"not_finite\":3,");
    guarded_free(&got);
    guarded_free(&a);
    guarded_free(&b);
}

static void early_reflections_are_a_second_output_of_the_same_level(void **state) {
    enum { EARLY = 160 }; /* 20 ms */
    double y[FRAMES] = {0}, early[FRAMES] = {0};
    SF_INFO info;
    (void)state;
    add(y, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], TAPS, PEAK, 1);
    const double factor = decibels(-12) / peak(y, FRAMES);
    scale(y, FRAMES, factor);
    add(early, FRAMES, 0, input.channel[0], FRAMES, response.channel[0], PEAK + EARLY + 1, PEAK, factor);
    agrees("with early",
           run("input,response,output,align,tail,level,early_ms\n"
               "@/in.wav,@/h.wav,y.wav,peak,0,peak:-12,20\n"),
           y, FRAMES);
    agrees("early", files_read(files_path("out/y.early.wav"), &info), early, FRAMES);
}

static void a_mix_that_no_slot_takes_is_the_same(void **state) {
    static double y[FRAMES + TAPS - 1];
    (void)state;
    memset(y, 0, sizeof y);
    add(y, COUNT(y), 0, two.channel[0], FRAMES, response.channel[0], TAPS, 0, 1);
    add(y, COUNT(y), 0, two.channel[1], FRAMES, second.channel[0], TAPS, 0, 1);
    scale(y, COUNT(y), decibels(-5) / peak(y, COUNT(y)));
    agrees("rendered", run("input,response,output,level\n@/two.wav,@/sum.txt,y.wav,peak:-5\n"), y, COUNT(y));
}

static void a_range_is_drawn_from_the_seed(void **state) {
    char text[] = "input,response,output,gain,seed\na.wav,h.wav,1.wav,-6:0,1\na.wav,h.wav,2.wav,-6:0,2\n"
                  "a.wav,h.wav,3.wav,-6:0,1\na.wav,h.wav,4.wav,0:-6,1\n";
    gc_manifest m;
    (void)state;
    read_manifest(text, sizeof text - 1, &m);
    assert_int_equal(m.entries, 4);
    CHECK(m.entry[0].gain >= -6 && m.entry[0].gain <= 0 && m.entry[0].gain == m.entry[2].gain &&
              m.entry[0].gain != m.entry[1].gain && m.entry[3].refusal,
          "drew %g, %g and %g", m.entry[0].gain, m.entry[1].gain, m.entry[2].gain);
    gc_manifest_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_aligned_output_has_the_length_and_the_time_of_its_input),
        cmocka_unit_test(modes_keep_the_frames_of_the_command),
        cmocka_unit_test(noise_is_repeated_and_added_at_its_snr),
        cmocka_unit_test(levels_are_reached_and_the_gain_is_applied_after_them),
        cmocka_unit_test(loudness_follows_its_target),
        cmocka_unit_test(sources_add_up_with_their_gains_and_starts),
        cmocka_unit_test(sources_of_different_channels_add_up_channel_by_channel),
        cmocka_unit_test(the_longest_source_gives_the_length_and_the_input_level_is_that_of_all),
        cmocka_unit_test(an_inaudible_tail_is_cut_behind_the_input_of_each_source),
        cmocka_unit_test(an_input_of_unknown_length_is_mixed_whole),
        cmocka_unit_test(samples_that_are_not_finite_are_counted_in_all_sources),
        cmocka_unit_test(early_reflections_are_a_second_output_of_the_same_level),
        cmocka_unit_test(a_mix_that_no_slot_takes_is_the_same),
        cmocka_unit_test(a_range_is_drawn_from_the_seed),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
