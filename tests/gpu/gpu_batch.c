/* Batches on a GPU: signals of any length, and samples in the formats of files. */
#include "gpu_test.h"
#include "libgpuconv/conv/backend.h"
#include "libgpuconv/dsp/simd.h"
#include "libgpuconv/ir/object.h"

#include <math.h>

static const gc_pcm floats = {GC_F32, 32};

/* Fills *item with one signal and one response and copies the signal to byte *in of the slot's input. If `planes` is
 * NULL the response is copied there too. Advances *in and *out. */
static void add_item(gc_batch_slot *slot, const guarded *signal, const gpuconv_ir *ir, const float *planes,
                     gc_batch_item *item, int64_t *in, int64_t *out) {
    char *samples = slot->in;
    *item = (gc_batch_item){.ir = ir,
                            .in = {.at = *in, .format = floats, .channels = 1},
                            .out = {.at = *out, .format = floats, .channels = 1},
                            .frames = signal->frames,
                            .planes = planes};
    memcpy(samples + *in, signal->channel[0], (size_t)signal->frames * sizeof(float));
    *in += (signal->frames + 3) / 4 * 16;
    *out += (signal->frames + ir->frames + 2) / 4 * 16;
    if (!planes) {
        memcpy(samples + *in, ir->taps, (size_t)ir->frames * sizeof(float));
        item->planes_at = *in;
        *in += (ir->frames + 3) / 4 * 16;
    }
}

/* Checks that all frames of a result are finite, and some of them against the oracle. Returns the error in dB. */
static double check_result(const float *got, const guarded *signal, const guarded *response, oracle_random *random) {
    int64_t total = signal->frames + response->frames - 1;
    double wrong = 0, power = 0;
    for (int64_t n = 0; n < total; n++)
        CHECK(isfinite(got[n]), "%lld x %lld: frame %lld is not finite", (long long)signal->frames,
              (long long)response->frames, (long long)n);
    for (int k = 0; k < 64; k++) {
        int64_t n = k == 0 ? 0 : k == 1 ? total - 1 : oracle_below(random, total);
        double want = oracle_frame(signal->channel[0], signal->frames, response->channel[0], response->frames, n);
        wrong += ((double)got[n] - want) * ((double)got[n] - want);
        power += want * want;
    }
    double e = 10 * log10(wrong / power);
    CHECK(e <= -120 || wrong <= 0, "%lld x %lld: %.1f dB", (long long)signal->frames, (long long)response->frames, e);
    return e;
}

/* Signals and responses of all lengths in one batch, which covers the parts of responses, hops and the ends of both. */
void test_signals_of_any_length_in_one_batch_agree_with_the_oracle(void **state) {
    (void)state;
    static const int64_t lengths[] = {1, 2, 5, 1000, 24768, 24769, 32768, 50001, 300000};
    static const int64_t taps[] = {1, 2, 4, 5, 100, 8000, 16384, 16385, 40000};
    enum { SIGNALS = COUNT(lengths), RESPONSES = COUNT(taps), BYTES = 1 << 25 };
    int signals = harness_quick ? 6 : SIGNALS, responses = harness_quick ? 6 : RESPONSES;
    oracle_random random = {11};
    gpuconv_error error = {0};
    gc_batch_slot *slot;
    double worst = -HUGE_VAL;
    CHECK(gc_batch_cuda.new_slot(0, BYTES, SIGNALS * RESPONSES, &slot, &error) == GPUCONV_OK, "%s", error.message);
    gc_batch_item items[SIGNALS * RESPONSES];
    guarded x[SIGNALS], h[RESPONSES];
    gpuconv_ir *ir[RESPONSES];
    float *on_device[RESPONSES];
    int count = 0;
    int64_t in = 0, out = 0;
    for (int r = 0; r < responses; r++) {
        h[r] = guarded_random(&random, 1, taps[r]);
        ir[r] = harness_route(&h[r], 1);
        on_device[r] = gc_backend_cuda.upload(0, h[r].channel[0], taps[r]);
        CHECK(on_device[r], "no memory on the device");
    }
    for (int s = 0; s < signals; s++) {
        x[s] = guarded_random(&random, 1, lengths[s]);
        for (int r = 0; r < responses; r++) {
            /* Every third response is in the slot's input, the others are kept on the device. */
            add_item(slot, &x[s], ir[r], (s + r) % 3 == 0 ? NULL : on_device[r], &items[count++], &in, &out);
            CHECK(in <= BYTES && out <= BYTES, "the slot is too small for the test");
        }
    }
    memset(slot->out, 0xff, (size_t)out);
    CHECK(gc_batch_cuda.begin(slot, items, count, in, out, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_batch_cuda.finish(slot, items, count, &error) == GPUCONV_OK, "%s", error.message);
    for (int i = 0; i < count; i++) {
        const float *got = (const float *)(const void *)slot->out + items[i].out.at / 4;
        worst = fmax(worst, check_result(got, &x[i / responses], &h[i % responses], &random));
    }
    gpu_note("signals of any length in one batch", worst);
    gc_batch_cuda.free(slot);
    for (int r = 0; r < responses; r++) {
        gc_backend_cuda.release(0, on_device[r]);
        gpuconv_ir_free(ir[r]);
        guarded_free(&h[r]);
    }
    for (int s = 0; s < signals; s++)
        guarded_free(&x[s]);
}

/* With one number of taps. Short responses have short transforms, long ones with a long signal have long ones. */
static void check_formats(int64_t taps) {
    static const gc_pcm formats[] = {{GC_S16, 16}, {GC_S16, 8}, {GC_S24, 24}, {GC_S32, 24}, {GC_S32, 32}, {GC_F32, 32}};
    static const int64_t lengths[] = {1, 1000, 40000};
    enum { CHANNELS = 3, BYTES = 1 << 23, STORED = 0, FLOATS = BYTES / 2 };
    oracle_random random = {13};
    gpuconv_error error = {0};
    gc_batch_slot *slot;
    CHECK(gc_batch_cuda.new_slot(0, BYTES, 2 * CHANNELS, &slot, &error) == GPUCONV_OK, "%s", error.message);
    guarded h = guarded_random(&random, CHANNELS, taps);
    gpuconv_ir *ir = harness_route(&h, CHANNELS), *one[CHANNELS];
    for (int c = 0; c < CHANNELS; c++) {
        const guarded channel = {.channel = &h.channel[c], .channels = 1, .frames = taps};
        one[c] = harness_route(&channel, 1);
    }
    unsigned char *in = (unsigned char *)slot->in, *packed = malloc(BYTES / 2);
    CHECK(packed, "no memory");
    const unsigned char *out = (const unsigned char *)slot->out;
    for (int i = 0; i < COUNT(formats); i++)
        for (int l = 0; l < COUNT(lengths); l++) {
            const int64_t frames = lengths[l], total = frames + taps - 1, in_row = 4 * ((frames + 3) / 4 * 4),
                          out_row = 4 * ((total + 3) / 4 * 4), taps_offset = BYTES - 16 * CHANNELS * taps;
            const gc_pcm from = formats[i], to = formats[COUNT(formats) - 1 - i];
            float *planar[CHANNELS];
            const float *results[CHANNELS];
            gc_batch_item items[1 + CHANNELS]; /* the file, then each channel as floats */
            oracle_fill(&random, (float *)(void *)packed, frames * CHANNELS);
            for (int c = 0; c < CHANNELS; c++)
                planar[c] = (float *)(void *)packed + c * frames;
            gc_pcm_overs overs = {0};
            gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){from, in + STORED, &overs}, (const float *const *)planar, 0,
                        CHANNELS, frames);
            for (int c = 0; c < CHANNELS; c++) {
                planar[c] = (float *)(void *)(in + FLOATS + c * in_row);
                results[c] = (const float *)(const void *)(out + FLOATS + c * out_row);
                memcpy(in + taps_offset + 4 * c * taps, h.channel[c], (size_t)taps * sizeof(float));
                items[1 + c] = (gc_batch_item){.ir = one[c],
                                               .in = {.at = FLOATS + c * in_row, .format = floats, .channels = 1},
                                               .out = {.at = FLOATS + c * out_row, .format = floats, .channels = 1},
                                               .frames = frames,
                                               .planes_at = taps_offset + 4 * c * taps};
            }
            items[0] = (gc_batch_item){.ir = ir,
                                       .in = {.at = STORED, .format = from, .channels = CHANNELS},
                                       .out = {.at = STORED, .format = to, .channels = CHANNELS},
                                       .frames = frames,
                                       .planes_at = taps_offset};
            gc_pcm_unpack(gc_simd_best(), from, in + STORED, CHANNELS, frames, planar, 0);
            CHECK(gc_batch_cuda.begin(slot, items, 1 + CHANNELS, BYTES, BYTES, &error) == GPUCONV_OK, "%s",
                  error.message);
            CHECK(gc_batch_cuda.finish(slot, items, 1 + CHANNELS, &error) == GPUCONV_OK, "%s", error.message);
            overs = (gc_pcm_overs){0};
            gc_pcm_pack(gc_simd_best(), &(gc_pcm_target){to, packed, &overs}, results, 0, CHANNELS, total);
            CHECK(memcmp(packed, out + STORED, (size_t)(total * CHANNELS * gc_pcm_bytes(to))) == 0,
                  "format %d, %lld frames: the samples differ from those of floats", i, (long long)frames);
            CHECK(to.container == GC_F32 || items[0].clipped == overs.clipped, "%lld clipped, %lld with floats",
                  (long long)items[0].clipped, (long long)overs.clipped);
        }
    gc_batch_cuda.free(slot);
    gpuconv_ir_free(ir);
    for (int c = 0; c < CHANNELS; c++)
        gpuconv_ir_free(one[c]);
    guarded_free(&h);
    free(packed);
}

/* Channels in the format of a file, in and out, give exactly the samples that floats converted on the CPU give. */
void test_samples_in_file_formats_give_the_same_as_floats(void **state) {
    (void)state;
    check_formats(700);
    check_formats(5000);
}
