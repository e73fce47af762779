/* Writes the response files of each form and computes their planes. */
#include "preparation_forms.h"

#include "libgpuconv/core/number.h"

#include <math.h>

/* Plane `input * outputs + output` is the route, of 2 and of 3 inputs to 2 outputs. */
#define TWO                                                                                                            \
    {                                                                                                                  \
        {1 << 0, 1 << 1}, {                                                                                            \
            1 << 2, 1 << 3                                                                                             \
        }                                                                                                              \
    }
#define THREE                                                                                                          \
    {                                                                                                                  \
        {1 << 0, 1 << 1}, {1 << 2, 1 << 3}, {                                                                          \
            1 << 4, 1 << 5                                                                                             \
        }                                                                                                              \
    }

// clang-format off
const form forms[FORMS] = {
    {"auto, one for one",    "a.wav", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 1, 1, 1, {0}, {{1}}},
    {"auto, one for all",    "a.wav", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 2, 2, 1, {0}, {{1, 0}, {0, 1}}},
    {"auto, one each",       "a.wav", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 2, 2, 2, {0, 1}, {{1, 0}, {0, 2}}},
    {"auto, an output each", "a.wav", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 1, 3, 3, {0, 1, 2}, {{1, 2, 4}}},
    {"auto, true stereo",    "a.wav", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 2, 2, 4, {0, 1, 2, 3}, TWO},
    {"stereo for one",       "a.wav", GPUCONV_LAYOUT_STEREO, NULL, NULL, false, false, 1, 2, 4, {0, 1, 2, 3}, {{1 + 4, 2 + 8}}},
    {"stereo for two",       "a.wav", GPUCONV_LAYOUT_STEREO, NULL, NULL, false, false, 2, 2, 4, {0, 1, 2, 3}, TWO},
    {"source",               "a.wav", GPUCONV_LAYOUT_SOURCE, NULL, NULL, false, false, 3, 2, 6, {0, 1, 2, 3, 4, 5}, THREE},
    {"output",               "a.wav", GPUCONV_LAYOUT_OUTPUT, NULL, NULL, false, false, 3, 2, 6, {0, 2, 4, 1, 3, 5}, THREE},
    {"packed",               "a.wav", GPUCONV_LAYOUT_PACKED, NULL, NULL, true, false, 3, 2, 6, {0}, THREE},
    {"packed, two to one",   "a.wav", GPUCONV_LAYOUT_PACKED, NULL, NULL, true, false, 2, 1, 2, {0}, {{1}, {2}}},
    {"packed, one to two",   "a.wav", GPUCONV_LAYOUT_PACKED, NULL, NULL, true, false, 1, 2, 2, {0}, {{1, 2}}},
    {"matrix",               "m.txt", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, false, 2, 2, 3, {0}, {{1, 2}, {0, 4}}},
    {"matrix of two rates",  "r.txt", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, true, 2, 2, 3, {0}, {{1, 2}, {0, 4}}},
    {"jconvolver",           "r.conf", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, true, 2, 2, 3, {0}, {{1, 2}, {0, 4}}},
    {"mcfx packed",          "p.conf", GPUCONV_LAYOUT_AUTO, NULL, NULL, false, true, 3, 3, 5, {0}, {{1, 2}, {4, 8}, {0, 0, 16}}},
    {"SOFA, direction",      "head.sofa", GPUCONV_LAYOUT_AUTO, "30,0", NULL, false, false, 1, 2, 2, {0}, {{1, 2}}},
    {"SOFA, loudspeakers",   "head.sofa", GPUCONV_LAYOUT_AUTO, NULL, "stereo", false, false, 2, 2, 4, {0}, TWO},
    {"SOFA, ambisonics",     "head.sofa", GPUCONV_LAYOUT_AUTO, NULL, "ambisonic", false, false, 4, 2, 8, {0},
     {{1, 2}, {4, 8}, {16, 32}, {64, 128}}},
};
// clang-format on

/* Returns frame n of the k-th response: three bursts with silence between them and at the end. */
static double cell(material m, int k, int n) {
    static const int begin[] = {0, FORM_START, 900}, smooth_begin[] = {30, FORM_START + 20, 900};
    double sum = 0;
    for (int burst = 0; burst < 3; burst++) {
        if (m == NOISE && n >= begin[burst] && n < begin[burst] + 40) {
            oracle_random random = {(uint64_t)(100000 * (k + 1) + n)};
            sum += (double)oracle_uniform(&random) * exp(-0.1 * (n - begin[burst])) / (burst + 1);
        }
        const double x = (n - smooth_begin[burst] - 40.3 - 3 * (k % 10)) / 8.0;
        if (m == SMOOTH && fabs(x) < 6.5)
            sum += exp(-x * x / 2) * cos((0.3 + 0.02 * (k % 10)) * 8 * x + burst) / (burst + 1);
    }
    return (double)(float)sum;
}

/* Writes `channels` channels of cells: frame n of channel c is that of cell first + order[c] + step * (n /
 * FORM_FRAMES). */
static void write_cells(const char *path, material m, int rate, int channels, int sections, int first,
                        const int order[], int step) {
    guarded samples = guarded_new(channels, (int64_t)sections * FORM_FRAMES);
    for (int c = 0; c < channels; c++)
        for (int n = 0; n < sections * FORM_FRAMES; n++)
            samples.channel[c][n] =
                (float)cell(m, first + (order ? order[c] : c) + step * (n / FORM_FRAMES), n % FORM_FRAMES);
    files_write(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, &samples);
    guarded_free(&samples);
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s: not written", path);
}

/* Returns cells first .. first + count - 1. */
static planes cells(material m, int first, int count, double rate) {
    planes made = planes_new(count, 0, FORM_FRAMES, rate);
    for (int p = 0; p < count; p++)
        for (int n = 0; n < FORM_FRAMES; n++)
            made.x[p][n] = cell(m, first + p, n);
    return made;
}

bool form_is_sofa(const form *f) {
    return f->direction || f->speakers;
}

bool form_is_audio(const form *f) {
    return strcmp(f->file, "a.wav") == 0;
}

planes form_write_one(const char *path, material m, int k) {
    write_cells(path, m, FORM_RATE, 1, 1, k, NULL, 0);
    return cells(m, k, 1, FORM_RATE);
}

planes form_write_audio(const form *f, material m, const char *path, int k) {
    if (f->packed)
        write_cells(path, m, FORM_RATE, f->outputs, f->inputs, k, NULL, f->outputs);
    else
        write_cells(path, m, FORM_RATE, f->count, 1, k, f->order, 0);
    return cells(m, k, f->count, FORM_RATE);
}

/* Writes the matrix files and the audio files that they name. Channel c of the files of two sections has cell 1 + c,
 * then cell 3 + c; those of r.txt, r.conf and p.conf have 96 kHz, and the other file, which is the first one, 48. */
void form_write_matrices(material m) {
    char text[512];
    write_cells(files_path("one.wav"), m, 48000, 1, 1, 0, NULL, 0);
    write_cells(files_path("slow.wav"), m, 48000, 2, 2, 1, NULL, 2);
    write_cells(files_path("fast.wav"), m, 96000, 2, 2, 1, NULL, 2);
    for (int fast = 0; fast < 2; fast++) {
        const char *name = fast ? "fast.wav" : "slow.wav";
        const double section = FORM_FRAMES / (fast ? 96000.0 : 48000.0);
        gc_format(text, sizeof text, "1 1 one.wav\n1 2 %s 1 0 0 0 %.9f\n2 2 %s 1 -6 0.001 %.9f\n", name, section, name,
                  section);
        write_text(files_path(fast ? "r.txt" : "m.txt"), text);
    }
    snprintf(text, sizeof text,
             "/convolver/new 2 2 256 4000\n/impulse/read 1 1 1 0 0 0 1 one.wav\n/impulse/read 1 2 1 0 0 %d 1 fast.wav\n"
             "/impulse/read 2 2 0.5011872336 48 %d 0 1 fast.wav\n",
             FORM_FRAMES, FORM_FRAMES);
    write_text(files_path("r.conf"), text);
    write_text(files_path("p.conf"), "/impulse/read 3 3 1 0 0 0 1 one.wav\n/impulse/packedmatrix 2 1 0 0 0 fast.wav\n");
}

/* Returns the planes of a matrix file at its rate. */
static planes matrix_planes(const form *f, material m) {
    static const int lines[] = {0, 1, 3}, packed[] = {1, 2, 3, 4, 0};
    const bool fast = f->fast, is_packed = f->count == COUNT(packed);
    planes made = planes_new(f->count, PLANES_PRE, fast ? FORM_FRAMES : FORM_FRAMES + 48, FORM_RATE);
    for (int p = 0; p < f->count; p++) {
        const int k = is_packed ? packed[p] : lines[p], delay = !is_packed && p == 2 ? 48 : 0;
        planes one = cells(m, k, 1, fast && k ? 96000 : 48000);
        if (one.rate != FORM_RATE)
            planes_replace(&one, planes_resample(&one, FORM_RATE / one.rate, FORM_RATE));
        for (int n = -PLANES_PRE; n < made.frames; n++)
            made.x[p][PLANES_PRE + n] = (delay ? pow(10, -6 / 20.0) : 1) * planes_at(&one, 0, n - delay);
        planes_free(&one);
    }
    return made;
}

/* Returns the planes of a SOFA file without any step, which test_spatial.c checks. */
static planes sofa_planes(const form *f, const char *path) {
    gpuconv_preparation plain = gpuconv_preparation_default();
    gpuconv_error error = {0};
    gpuconv_ir *ir;
    plain.direction = f->direction;
    plain.speakers = f->speakers;
    gpuconv_status status = gpuconv_ir_prepare(path, &plain, f->inputs, FORM_RATE, &ir, &error);
    if (status == GPUCONV_ERROR_UNSUPPORTED)
        return planes_new(0, 0, 0, FORM_RATE);
    CHECK(status == GPUCONV_OK && gpuconv_ir_lead(ir) == 0, "%s: %s", path, error.message);
    planes made = planes_new(f->count, 0, (int)gpuconv_ir_frames(ir), FORM_RATE);
    for (int p = 0; p < f->count; p++)
        for (int n = 0; n < made.frames; n++)
            made.x[p][n] = (double)gpuconv_ir_taps(ir, p / 2, p % 2)[n];
    gpuconv_ir_free(ir);
    return made;
}

planes form_planes(const form *f, material m, const char *path) {
    return form_is_audio(f)  ? form_write_audio(f, m, path, 0)
           : form_is_sofa(f) ? sofa_planes(f, path)
                             : matrix_planes(f, m);
}
