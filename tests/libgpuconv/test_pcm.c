/* Tests of the PCM conversion on every supported instruction set: round trips are exact, rounding is to nearest even,
 * samples out of range are clamped and counted, and no memory outside the samples is read or written. */
#include "check.h"
#include "libgpuconv/dsp/pcm.h"
#include "libgpuconv/dsp/simd.h"
#include "oracle.h"

#include <math.h>

/* Returns the integer at interleaved position i as the upper bits of 32. Reads single bytes and shares no code with the
 * product. */
static int32_t stored(gc_pcm f, const void *raw, int64_t i) {
    const unsigned char *b = (const unsigned char *)raw + i * gc_pcm_bytes(f);
    if (f.container == GC_S24)
        return (int32_t)((uint32_t)b[2] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[0] << 8);
    int16_t s;
    int32_t l;
    memcpy(&s, b, sizeof s);
    if (f.container == GC_S16)
        return (int32_t)((uint32_t)(uint16_t)s << 16);
    memcpy(&l, b, sizeof l);
    return l;
}

static void store(gc_pcm f, void *raw, int64_t i, int32_t top) {
    unsigned char *b = (unsigned char *)raw + i * gc_pcm_bytes(f);
    uint32_t u = (uint32_t)top;
    if (f.container == GC_S24) {
        b[0] = (unsigned char)(u >> 8);
        b[1] = (unsigned char)(u >> 16);
        b[2] = (unsigned char)(u >> 24);
    } else if (f.container == GC_S16) {
        int16_t s = (int16_t)(u >> 16);
        memcpy(b, &s, sizeof s);
    } else {
        memcpy(b, &top, sizeof top);
    }
}

static const gc_pcm formats[] = {{GC_S16, 8},  {GC_S16, 12}, {GC_S16, 16}, {GC_S24, 20},
                                 {GC_S24, 24}, {GC_S32, 20}, {GC_S32, 24}};

/* Fills the samples with every value of up to 16 bits, or with random values of more bits; both extremes are among
 * them. */
static void fill(gc_pcm f, oracle_random *random, void *raw, int64_t samples) {
    int64_t half = INT64_C(1) << (f.bits - 1);
    for (int64_t i = 0; i < samples; i++) {
        int64_t v = f.bits <= 16 ? i % (2 * half) - half : (int64_t)(oracle_bits(random) >> (64 - f.bits)) - half;
        v = i == 0 ? -half : i == 1 ? half - 1 : v;
        store(f, raw, i, (int32_t)(v * (INT64_C(1) << (32 - f.bits))));
    }
}

static void every_value_survives_the_round_trip(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    oracle_random random = {.state = 21};
    for (int k = 0; k < sets * COUNT(formats); k++) {
        const gc_simd *simd = all[k / COUNT(formats)];
        gc_pcm f = formats[k % COUNT(formats)];
        for (int channels = 1; channels <= 3; channels++) {
            int64_t frames = f.bits <= 16 ? (INT64_C(1) << f.bits) + 3 : 20011;
            size_t size = (size_t)(frames * channels * gc_pcm_bytes(f));
            unsigned char *raw = malloc(size), *back = malloc(size);
            guarded planar = guarded_new(channels, frames);
            assert_true(raw && back);
            fill(f, &random, raw, frames * channels);
            gc_pcm_unpack(simd, f, raw, channels, frames, planar.channel, 0);
            for (int64_t i = 0; i < frames * channels; i++) {
                double got = (double)planar.channel[i % channels][i / channels];
                CHECK(got == (double)stored(f, raw, i) * 0x1p-31, "%s, %d bits, sample %lld: %g", simd->name, f.bits,
                      (long long)i, got);
            }
            CHECK(guarded_intact(&planar), "%s: written outside the frames", simd->name);
            gc_pcm_overs overs = {0};
            gc_pcm_pack(simd, &(gc_pcm_target){f, back, &overs}, (const float *const *)planar.channel, 0, channels,
                        frames);
            assert_memory_equal(raw, back, size);
            assert_int_equal(overs.clipped, 0);
            assert_true(overs.peak == 1.0f);
            guarded_free(&planar);
            free(raw);
            free(back);
        }
    }
}

/* Converts every number of frames up to 70 and checks that no byte or float outside them changes. */
static void no_memory_outside_the_frames_is_accessed(void **state) {
    (void)state;
    enum { MAX_FRAMES = 70, EDGE = 64 };
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    oracle_random random = {.state = 22};
    for (int k = 0; k < sets * COUNT(formats); k++) {
        const gc_simd *simd = all[k / COUNT(formats)];
        gc_pcm f = formats[k % COUNT(formats)];
        for (int channels = 1; channels <= 5; channels++) {
            for (int64_t frames = 0; frames <= MAX_FRAMES; frames++) {
                size_t size = (size_t)(frames * channels * gc_pcm_bytes(f));
                unsigned char *raw = malloc(size + 1); /* exact size: the address sanitizer reports a read beyond it */
                unsigned char packed[MAX_FRAMES * 5 * 4 + 2 * EDGE];
                guarded planar = guarded_new(channels, frames + 3);
                assert_non_null(raw);
                fill(f, &random, raw, frames * channels);
                gc_pcm_unpack(simd, f, raw, channels, frames, planar.channel, 2);
                for (int c = 0; c < channels; c++)
                    CHECK(isnan(planar.channel[c][0]) && isnan(planar.channel[c][1]) &&
                              isnan(planar.channel[c][frames + 2]),
                          "%s, %d channels, %lld frames: written outside the frames", simd->name, channels,
                          (long long)frames);
                memset(packed, 0xc3, sizeof packed);
                gc_pcm_overs overs = {0};
                gc_pcm_pack(simd, &(gc_pcm_target){f, packed + EDGE, &overs}, (const float *const *)planar.channel, 2,
                            channels, frames);
                assert_memory_equal(packed + EDGE, raw, size);
                for (size_t i = 0; i < sizeof packed; i++)
                    CHECK(packed[i] == 0xc3 || (i >= EDGE && i < EDGE + size), "%s, %d channels, %lld frames: byte %zu",
                          simd->name, channels, (long long)frames, i);
                guarded_free(&planar);
                free(raw);
            }
        }
    }
}

/* Packs one value through the scalar code and through the vector code, and checks that both agree. */
static int32_t packed_value(const gc_simd *simd, gc_pcm f, float x, gc_pcm_overs *one) {
    enum { MANY = 100 };
    float values[MANY];
    const float *planar[1] = {values};
    unsigned char raw[MANY * 4], first[4] = {0};
    for (int i = 0; i < MANY; i++)
        values[i] = x;
    gc_pcm_overs overs = {0};
    *one = (gc_pcm_overs){0};
    gc_pcm_pack(simd, &(gc_pcm_target){f, first, one}, planar, 0, 1, 1);
    gc_pcm_pack(simd, &(gc_pcm_target){f, raw, &overs}, planar, 0, 1, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(stored(f, raw, i) == stored(f, first, 0), "%s, %d bits: %.9g as number %d", simd->name, f.bits, (double)x,
              i);
    assert_int_equal(overs.clipped, MANY * one->clipped);
    assert_true(overs.peak == one->peak);
    return stored(f, first, 0);
}

static void thirty_two_bits_keep_every_bit_of_a_float(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    static const int32_t values[] = {0, 1, -1, 1 << 23, -(1 << 23), INT32_MIN, 0x7fffff80, -0x7fffff80, 0x12345600};
    for (int s = 0; s < sets; s++) {
        for (int i = 0; i < COUNT(values); i++) {
            gc_pcm_overs overs;
            assert_int_equal(packed_value(all[s], (gc_pcm){GC_S32, 32}, (float)values[i] * 0x1p-31f, &overs),
                             values[i]);
            assert_int_equal(overs.clipped, 0);
        }
    }
}

static void floats_pass_bit_for_bit(void **state) {
    (void)state;
    enum { MANY = 77 };
    gc_pcm f = {GC_F32, 32};
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.4e38f, 0x1p-140f, NAN, INFINITY, -INFINITY, 1.7f};
    for (int s = 0; s < sets; s++) {
        for (int channels = 1; channels <= 3; channels++) {
            float raw[3 * MANY], planar[3][MANY], back[3 * MANY];
            float *const p[3] = {planar[0], planar[1], planar[2]};
            for (int i = 0; i < channels * MANY; i++)
                raw[i] = values[i * 7 % COUNT(values)];
            gc_pcm_overs overs = {0};
            gc_pcm_unpack(all[s], f, raw, channels, MANY, p, 0);
            gc_pcm_pack(all[s], &(gc_pcm_target){f, back, &overs}, (const float *const *)p, 0, channels, MANY);
            assert_memory_equal(raw, back, (size_t)channels * MANY * sizeof *raw);
            assert_int_equal(overs.clipped, 0); /* a float file can store values beyond full scale */
        }
    }
}

static void rounding_is_to_nearest_even(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *simds = gc_simd_all(&sets);
    for (int f = 0; f < COUNT(formats); f++) {
        int bits = formats[f].bits;
        if (bits > 20)
            continue; /* a float cannot represent half steps there */
        double step = ldexp(1, 1 - bits);
        static const struct {
            double steps;
            int rounded;
        } cases[] = {{0.5, 0},   {1.5, 2},   {2.5, 2},     {-0.5, 0},    {-1.5, -2}, {-2.5, -2},
                     {0.501, 1}, {0.499, 0}, {-3.499, -3}, {-3.501, -4}, {7, 7}};
        for (int i = 0; i < COUNT(cases); i++) {
            float x = (float)(cases[i].steps * step);
            for (int k = 0; k < sets; k++) {
                gc_pcm_overs overs;
                int32_t got = packed_value(simds[k], formats[f], x, &overs) / (int32_t)(INT64_C(1) << (32 - bits));
                CHECK(got == cases[i].rounded, "%d bits: %g steps became %d", bits, cases[i].steps, got);
                assert_int_equal(overs.clipped, 0);
            }
        }
    }
}

static void values_out_of_range_are_clamped_and_counted(void **state) {
    (void)state;
    int sets;
    const gc_simd *const *simds = gc_simd_all(&sets);
    static const gc_pcm all[] = {{GC_S16, 8}, {GC_S16, 16}, {GC_S24, 24}, {GC_S32, 24}, {GC_S32, 32}};
    for (int f = 0; f < COUNT(all); f++) {
        int bits = all[f].bits;
        int64_t top = (INT64_C(1) << (bits - 1)) - 1, bottom = -(INT64_C(1) << (bits - 1));
        double step = ldexp(1, 1 - bits);
        const struct {
            double value;
            int64_t stored;
            int counted;
        } cases[] = {
            {1.0, top, 1}, /* integers have no positive full scale */
            {-1.0, bottom, 0},
            {1.0 + 0x1p-20, top, 1},
            {-1.0 - 2 * step - 0x1p-20, bottom, 1},
            {37, top, 1},
            {-37, bottom, 1},
            {1e30, top, 1},
            {-1e30, bottom, 1},
            {INFINITY, top, 1},
            {-INFINITY, bottom, 1},
            {NAN, 0, 1},
            {1.0 - step, top, bits == 32}, /* the largest integer; at 32 bits a float rounds it to 1.0 */
            {1.0 - step / 4, top, 1},      /* rounds up to 1.0 */
            {-1.0 - step / 4, bottom, 0},  /* rounds up to -1.0 */
        };
        for (int i = 0; i < COUNT(cases); i++) {
            float x = (float)cases[i].value;
            for (int k = 0; k < sets; k++) {
                gc_pcm_overs overs;
                int64_t got = packed_value(simds[k], all[f], x, &overs) / (INT64_C(1) << (32 - bits));
                CHECK(got == cases[i].stored, "%d bits: %.9g became %lld", bits, (double)x, (long long)got);
                CHECK(overs.clipped == cases[i].counted, "%d bits: %.9g counted %lld times", bits, (double)x,
                      (long long)overs.clipped);
                CHECK(isnan(x) || overs.peak == fabsf(x), "%d bits: peak of %.9g is %.9g", bits, (double)x,
                      (double)overs.peak);
            }
        }
    }
}

static void counts_add_up_over_calls_and_channels(void **state) {
    (void)state;
    enum { MANY = 85 };
    int sets;
    const gc_simd *const *all = gc_simd_all(&sets);
    static const float values[] = {0.5f, 1.5f, -2.0f, NAN, 0.25f};
    for (int s = 0; s < sets; s++) {
        for (int channels = 1; channels <= 3; channels++) {
            float planar[3][MANY];
            const float *const p[3] = {planar[0], planar[1], planar[2]};
            int16_t raw[3 * MANY];
            for (int i = 0; i < 3 * MANY; i++)
                planar[i % 3][i / 3] = values[i / 3 % COUNT(values)];
            gc_pcm_overs overs = {.clipped = 100, .peak = 1.75f};
            gc_pcm_pack(all[s], &(gc_pcm_target){(gc_pcm){GC_S16, 16}, raw, &overs}, p, 0, channels, MANY);
            assert_int_equal(overs.clipped, 100 + MANY / 5 * 3 * channels);
            assert_true(overs.peak == 2.0f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_survives_the_round_trip),
        cmocka_unit_test(thirty_two_bits_keep_every_bit_of_a_float),
        cmocka_unit_test(floats_pass_bit_for_bit),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(values_out_of_range_are_clamped_and_counted),
        cmocka_unit_test(counts_add_up_over_calls_and_channels),
        cmocka_unit_test(no_memory_outside_the_frames_is_accessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
