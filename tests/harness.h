/* Runs engines and the real-time convolver on a whole signal, through guarded buffers and in chosen block lengths. */
#ifndef TESTS_HARNESS_H
#define TESTS_HARNESS_H

#include "check.h"
#include "gpuconv.h"
#include "oracle.h"

#include "libgpuconv/conv/backend.h"

/* Returns a routed response for `inputs` channels. Its `channels` channels are decaying noise, which *taps holds. */
gpuconv_ir *harness_response(oracle_random *random, int channels, int inputs, int64_t frames, guarded *taps);

/* Returns a routed response with the given taps; fails the test if the library reports an error. */
gpuconv_ir *harness_route(const guarded *taps, int inputs);

/* Returns an unrouted response with the given taps; fails the test if the library reports an error. */
gpuconv_ir *harness_ir(const guarded *taps, double rate);

/* Returns an unrouted response of 48 kHz with random taps, which *taps holds. */
gpuconv_ir *harness_random_ir(int channels, int64_t frames, guarded *taps);

/* Returns a response with `channels` inputs and outputs and zeroed taps: routes between all of them, or from each input
 * to its output. */
gpuconv_ir *harness_square_ir(int channels, bool dense, int64_t frames);

/* Fails the test if the history of the response does not contain `words`. */
void harness_check_history(const gpuconv_ir *ir, const char *words);

/* The tests of engines run on the CPU. tests/gpu compiles the same files with HARNESS_CUDA, for a GPU.
 * HARNESS_ALGORITHMS: how many of harness_algorithms take any response. harness_quick: runs fewer cases, because a
 * sanitizer makes the GPU slow. */
#ifdef HARNESS_CUDA
#define HARNESS_BACKEND GPUCONV_BACKEND_CUDA
enum { HARNESS_ALGORITHMS = 3 };
#else
#define HARNESS_BACKEND GPUCONV_BACKEND_CPU
enum { HARNESS_ALGORITHMS = 4 };
#endif
extern bool harness_quick;

/* Ends a file of tests: main(), or for a GPU a function that gpu_test calls. Returns how many failed. */
#ifdef HARNESS_CUDA
#define HARNESS_TESTS(name, ...) HARNESS_RUN(int name(void); int name(void), #name, __VA_ARGS__)
#else
#define HARNESS_TESTS(name, ...) HARNESS_RUN(int main(void), #name, __VA_ARGS__)
#endif
#define HARNESS_RUN(function, name, ...)                                                                               \
    function {                                                                                                         \
        const struct CMUnitTest tests[] = {__VA_ARGS__};                                                               \
        return cmocka_run_group_tests_name(name, tests, NULL, NULL);                                                   \
    }

/* Returns a plan with any latency; fails the test if the plan has another backend or algorithm than requested.
 * threads: of the CPU */
gpuconv_plan *harness_plan_on(gpuconv_backend backend, const gpuconv_ir *ir, gpuconv_algorithm algorithm,
                              int64_t frames, int threads);

static inline gpuconv_plan *harness_plan(const gpuconv_ir *ir, gpuconv_algorithm algorithm, int64_t frames,
                                         int threads) {
    return harness_plan_on(HARNESS_BACKEND, ir, algorithm, frames, threads);
}

/* Gives a plan transforms of `points` points. Returns false if the algorithm has none for the response. */
bool harness_schedule(gpuconv_plan *plan, int64_t points);

/* Gives a plan short chunks, of about `frames` frames, so that a short test has many of them. */
void harness_chunk(gpuconv_plan *plan, int64_t frames);

/* Block lengths: `fixed` if it is positive, else random lengths from 0 to -fixed. */
typedef struct harness_split {
    int64_t fixed;
    oracle_random random;
} harness_split;

/* Feeds all of `in` to a new or reset engine and drains it. Returns N + M - 1 guarded frames; the test fails if the
 * engine gives another number. */
guarded harness_run(gpuconv_engine *engine, const guarded *in, int outputs, int64_t taps, harness_split split);

/* Creates an engine, convolves `in` in one block, and frees the engine. */
guarded harness_convolve(const gpuconv_plan *plan, const gpuconv_ir *ir, const guarded *in);

/* Returns the expected output: N + M - 1 doubles per channel. The caller frees it. */
double *harness_expected(const guarded *taps, const guarded *in, int *outputs);

/* The thread sanitizer multiplies the time of arithmetic, and threads meet once a chunk: fewer frames find as much. So
 * do fewer random cases, and fewer cases that differ in numbers only, under either sanitizer, which looks at accesses.
 */
#ifdef __SANITIZE_THREAD__
enum { HARNESS_LESS = 6, HARNESS_FEWER = 6 };
#elif defined(__SANITIZE_ADDRESS__)
enum { HARNESS_LESS = 1, HARNESS_FEWER = 4 };
#else
enum { HARNESS_LESS = 1, HARNESS_FEWER = 1 };
#endif

/* All algorithms except GPUCONV_ALGORITHM_AUTO. */
extern const gpuconv_algorithm harness_algorithms[4];

/* Returns the offline convolution of `in` on the CPU. */
guarded harness_offline(const gpuconv_ir *ir, const guarded *in);

/* Returns a real-time convolver of 48 kHz; fails the test if the library reports an error. */
gpuconv_realtime *harness_realtime(const gpuconv_ir *ir, int block, bool freewheel);

/* Processes all of `in` with the real-time convolver in calls of `block` frames, or of changing lengths if `block` is
 * 0. Returns as many frames. `*inside` (or NULL) is true during the calls. */
guarded harness_play(gpuconv_realtime *rt, const guarded *in, int outputs, int block, bool *inside);

/* Returns the power of a - b relative to b in dB, over the first `frames` frames of all channels. */
double harness_distance(const guarded *a, const guarded *b, int64_t frames);

#endif
