/* Samples as files store them: every value comes back as it was, rounding is to nearest even, what does not fit is
 * clamped and counted, channels do not touch one another. */
#include "check.h"
#include "dsp/pcm.h"
#include "oracle.h"

#include <math.h>

/* The integer that a container holds at interleaved position i, at the top of 32 bits; written anew, bytewise. */
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

static void every_value_survives_the_round_trip(void **state) {
    (void)state;
    oracle_random random = {.state = 21};
    for (int f = 0; f < COUNT(formats); f++) {
        int bits = formats[f].bits, shift = 32 - bits;
        int64_t values = bits <= 16 ? INT64_C(1) << bits : 20011;
        for (int channels = 1; channels <= 3; channels++) {
            unsigned char *raw = malloc((size_t)(values * channels * 4)),
                          *back = malloc((size_t)(values * channels * 4));
            float *planar = malloc((size_t)values * sizeof *planar);
            assert_true(raw && back && planar);
            for (int64_t i = 0; i < values * channels; i++) {
                int64_t v = bits <= 16 ? i % values - (values / 2)
                                       : (int64_t)(oracle_bits(&random) >> (64 - bits)) - (INT64_C(1) << (bits - 1));
                v = i == 0 ? -(INT64_C(1) << (bits - 1)) : i == channels ? (INT64_C(1) << (bits - 1)) - 1 : v;
                store(formats[f], raw, i, (int32_t)(v * (INT64_C(1) << shift)));
            }
            memset(back, 0x55, (size_t)(values * channels * 4));
            gc_pcm_overs overs = {0};
            for (int c = 0; c < channels; c++) {
                for (int64_t i = 0; i < values; i++)
                    planar[i] = NAN;
                gc_pcm_unpack(formats[f], raw, channels, c, values, planar);
                for (int64_t i = 0; i < values; i++) {
                    double want = (double)stored(formats[f], raw, i * channels + c) * 0x1p-31;
                    CHECK((double)planar[i] == want, "%d bits: %g instead of %g", bits, (double)planar[i], want);
                }
                gc_pcm_pack(formats[f], planar, channels, c, values, back, &overs);
            }
            assert_memory_equal(raw, back, values * channels * gc_pcm_bytes(formats[f]));
            assert_int_equal(overs.clipped, 0);
            assert_true(overs.peak == 1.0f);
            free(raw);
            free(back);
            free(planar);
        }
    }
}

static void thirty_two_bits_keep_what_a_float_holds(void **state) {
    (void)state;
    gc_pcm f = {GC_S32, 32};
    static const int32_t values[] = {0, 1, -1, 1 << 23, -(1 << 23), INT32_MIN, 0x7fffff80, -0x7fffff80, 0x12345600};
    int32_t raw[COUNT(values)], back[COUNT(values)];
    float planar[COUNT(values)];
    memcpy(raw, values, sizeof raw);
    gc_pcm_overs overs = {0};
    gc_pcm_unpack(f, raw, 1, 0, COUNT(values), planar);
    gc_pcm_pack(f, planar, 1, 0, COUNT(values), back, &overs);
    assert_memory_equal(raw, back, sizeof raw);
    assert_int_equal(overs.clipped, 0);
}

static void floats_pass_bit_for_bit(void **state) {
    (void)state;
    gc_pcm f = {GC_F32, 32};
    const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.4e38f, 0x1p-140f, NAN, INFINITY, -INFINITY, 1.7f};
    for (int channels = 1; channels <= 3; channels++) {
        float raw[3 * COUNT(values)], planar[COUNT(values)], back[3 * COUNT(values)];
        memset(back, 0x55, sizeof back);
        gc_pcm_overs overs = {0};
        for (int c = 0; c < channels; c++) {
            for (int i = 0; i < COUNT(values); i++)
                raw[i * channels + c] = values[(i + c) % COUNT(values)];
        }
        for (int c = 0; c < channels; c++) {
            gc_pcm_unpack(f, raw, channels, c, COUNT(values), planar);
            gc_pcm_pack(f, planar, channels, c, COUNT(values), back, &overs);
        }
        assert_memory_equal(raw, back, (size_t)channels * sizeof values);
        assert_int_equal(overs.clipped, 0); /* a float file holds overs */
    }
}

static void rounding_is_to_nearest_even(void **state) {
    (void)state;
    for (int f = 0; f < COUNT(formats); f++) {
        int bits = formats[f].bits;
        if (bits > 20)
            continue; /* a float has no halves there */
        double step = ldexp(1, 1 - bits);
        static const struct {
            double steps;
            int rounded;
        } cases[] = {{0.5, 0},   {1.5, 2},   {2.5, 2},     {-0.5, 0},    {-1.5, -2}, {-2.5, -2},
                     {0.501, 1}, {0.499, 0}, {-3.499, -3}, {-3.501, -4}, {7, 7}};
        for (int i = 0; i < COUNT(cases); i++) {
            float x = (float)(cases[i].steps * step);
            unsigned char raw[4] = {0};
            gc_pcm_overs overs = {0};
            gc_pcm_pack(formats[f], &x, 1, 0, 1, raw, &overs);
            int32_t got = stored(formats[f], raw, 0) / (int32_t)(INT64_C(1) << (32 - bits));
            CHECK(got == cases[i].rounded, "%d bits: %g steps became %d", bits, cases[i].steps, got);
            assert_int_equal(overs.clipped, 0);
        }
    }
}

static void what_does_not_fit_is_clamped_and_counted(void **state) {
    (void)state;
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
            {1.0, top, 1}, /* the one full-scale value that an integer does not have */
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
            {1.0 - step, top, bits == 32}, /* the top itself; at 32 bits a float has only 1.0 there */
            {1.0 - step / 4, top, 1},      /* rounds up to 1.0 */
            {-1.0 - step / 4, bottom, 0},  /* rounds up to -1.0 */
        };
        for (int i = 0; i < COUNT(cases); i++) {
            float x = (float)cases[i].value;
            unsigned char raw[4] = {0};
            gc_pcm_overs overs = {0};
            gc_pcm_pack(all[f], &x, 1, 0, 1, raw, &overs);
            int64_t got = stored(all[f], raw, 0) / (INT64_C(1) << (32 - bits));
            CHECK(got == cases[i].stored, "%d bits: %.9g became %lld", bits, (double)x, (long long)got);
            CHECK(overs.clipped == cases[i].counted, "%d bits: %.9g counted %lld times", bits, (double)x,
                  (long long)overs.clipped);
            CHECK(isnan(x) || overs.peak == fabsf(x), "%d bits: peak of %.9g is %.9g", bits, (double)x,
                  (double)overs.peak);
        }
    }
}

static void counts_add_up_over_calls_and_channels(void **state) {
    (void)state;
    float planar[] = {0.5f, 1.5f, -2.0f, NAN, 0.25f};
    int16_t raw[2 * COUNT(planar)];
    gc_pcm_overs overs = {.clipped = 100, .peak = 1.75f};
    gc_pcm_pack((gc_pcm){GC_S16, 16}, planar, 2, 0, COUNT(planar), raw, &overs);
    gc_pcm_pack((gc_pcm){GC_S16, 16}, planar, 2, 1, 2, raw, &overs);
    assert_int_equal(overs.clipped, 104);
    assert_true(overs.peak == 2.0f);
}

static void packing_one_channel_leaves_the_others(void **state) {
    (void)state;
    float planar[] = {0.5f, -0.5f, 0.25f, 0.125f};
    for (int f = 0; f < COUNT(formats); f++) {
        int bytes = gc_pcm_bytes(formats[f]);
        for (int channels = 1; channels <= 5; channels++) {
            for (int c = 0; c < channels; c++) {
                unsigned char raw[COUNT(planar) * 5 * 4 + 8];
                memset(raw, 0xc3, sizeof raw);
                gc_pcm_overs overs = {0};
                gc_pcm_pack(formats[f], planar, channels, c, COUNT(planar), raw, &overs);
                for (int b = 0; b < (int)sizeof raw; b++) {
                    int frame = b / (bytes * channels), channel = b / bytes % channels;
                    if (frame >= COUNT(planar) || channel != c)
                        CHECK(raw[b] == 0xc3, "%d channels, packing %d: byte %d was touched", channels, c, b);
                }
                for (int i = 0; i < COUNT(planar); i++)
                    assert_true((float)stored(formats[f], raw, i * channels + c) * 0x1p-31f == planar[i]);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_survives_the_round_trip),
        cmocka_unit_test(thirty_two_bits_keep_what_a_float_holds),
        cmocka_unit_test(floats_pass_bit_for_bit),
        cmocka_unit_test(rounding_is_to_nearest_even),
        cmocka_unit_test(what_does_not_fit_is_clamped_and_counted),
        cmocka_unit_test(counts_add_up_over_calls_and_channels),
        cmocka_unit_test(packing_one_channel_leaves_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
