/*
 * Convolution and correlation of rows with a response each, on device memory, with a whole transform on the chip.
 * Contract: job.h; the transforms: chip.cuh.
 *
 *      for each segment of a row:    load, forward, multiply by the spectrum, inverse, store
 *
 * Rows that share a response follow one another. A response that few rows use is transformed by each block that needs
 * it, as the first turn of the loop: a second copy of the transform made the kernels 1.3 times as large, and as fast.
 * One that many rows use is transformed before, by chip_spectra.
 *
 * Memory: samples are read 2 N / hop times (mostly from the cache) and written once.
 *
 * What it buys over rows in three kernels: 1.7 times the speed (1024 x 160 000 with 8000 taps each: 1.02 instead of
 * 1.70 ms, H200), 5 % where the response is as long as half a transform (docs/experiments/jobs.md).
 */
#include "chip.cuh"

#include <type_traits>

namespace {

/* What a group of threads computes: part `part` of a row with its response. */
struct chip_item {
    int row, response, part;
    bool exists;
};

/* Returns item `number` of `items`; per_response: sharing_rows. The parts of a row follow one another, and so do the
 * rows of a response. If the target has lengths, the items are in the order of its rows instead. Rows that exist come
 * first there, so that each block computes about the same number of them. */
__device__ __forceinline__ chip_item item_of(const gck_chip_job &a, int number, int items, int per_response) {
    const gck_sharing &s = a.sharing;
    const int clamped = min(number, items - 1), place = clamped / a.splits;
    int row = place, response;
    if (a.target.rows.lengths)
        response = response_of(s, min(row, s.rows - 1));
    else {
        response = place / per_response;
        row = sharing_row(s, response, place % per_response);
    }
    return {min(row, s.rows - 1), response, clamped % a.splits, number < items && row < s.rows};
}

/* What a turn transforms: the response of an item, or the segment of its row from frame n on, with its gate. used:
 * whether the item has this turn; the transforms of a warp wait for each other all the same. */
struct chip_turn {
    bool response, used;
    int64_t n;
};

/* Loads what a turn transforms. Returns whether there is a sample; if not, v is not written. */
template <typename F, known_rows Known>
__device__ __forceinline__ bool load_turn(float2 *v, float2 *s, const gck_chip_job &a, const chip_item &item,
                                          const chip_turn &turn, int t) {
    const bool gated = Known == GATED && !turn.response && a.gates.source.data;
    const int64_t at = turn.response ? 0 : turn.n + a.shift;
    if (Known == GATED) {
        if (turn.used && !turn.response && a.gates.target.data)
            prefetch_frames<F::T>(a.gates.target, item.row, turn.n, a.hop, t);
        if (turn.used && gated) {
            prefetch_frames<F::T>(a.source, item.row, at, 2 * F::N, t);
            prefetch_frames<F::T>(a.gates.source, item.row, at, 2 * F::N, t);
        }
        transform_barrier<F::T>();
    }
    if (!turn.used)
        return false;
    if (gated)
        return load_gated_segment<F::P, F::T>(v, (float *)s, a.source, a.gates.source, {item.row, at, 2 * F::N}, t);
    const gck_rows x = turn.response ? only_row(a.response, item.response) : only_row(a.source, item.row);
    return load_segment<F::P, F::T, Known>(v, x, {0, at, turn.response ? (int)a.taps : 2 * F::N}, t);
}

/* An item is a row and one of `splits` ranges of its segments. FLOATS, HALVES, BFLOATS: also, the target is overwritten
 * and there is no gain. This is the usual job, and a kernel that can do no more is faster. */
template <int Size, known_rows Known>
__global__ void __launch_bounds__(config<Size>::threads, resident_of<Size, Known>())
    chip_convolve(const __grid_constant__ gck_chip_job a, int items, int rows) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = group_of_thread<Size>();
    const int held = holds_addresses<Size>() ? thread_of_segment<Size>() : 0; /* the part of t in the addresses */
    float2 *own = a.scratch + ((int64_t)blockIdx.x * c::groups + group) * f::N + 2 * held, v[f::P];
    float2 *s = shared + group * c::stride;
    const float sign = a.reflect ? -1.0f : 1.0f;
    pdl_trigger();
    pdl_wait();
    const int step = gridDim.x * c::groups;
    for (int next = blockIdx.x * c::groups; next < items; next += step) {
        if (is_missing(a.target.rows, min(next / a.splits, a.sharing.rows - 1)))
            return;
        const chip_item item = item_of(a, next + group, items, rows);
        if (c::groups == 1 && !item.exists)
            continue;
        const float2 *h = a.spectra ? a.spectra + (int64_t)item.response * f::N + 2 * held : own;
        const part_range range = range_of<Size>(item.part, a.segments, a.splits);
#pragma unroll 1
        for (int segment = range.begin - !a.spectra; segment < range.last; segment++) {
            const int t = thread_of_segment<Size>();
            const bool response = segment < range.begin;
            const int64_t n = (int64_t)segment * a.hop;
            const bool used = response
                                  ? item.exists
                                  : item.exists && segment < range.end && n < frames_to_write(a.target, item.row).end;
            if (c::groups == 1 && !used)
                break;
            const bool loaded = load_turn<f, Known>(v, s, a, item, {response, used, n}, t);
            if (!loaded)
                clear<f::P>(v);
            if (response)
                scale<f::P>(v, 1.0f / f::N);
            if (loaded || f::T < 32) {
                transform_barrier<f::T>();
                f::forward(v, s, t, a.twiddles);
            }
            if (response) {
                keep<f::P, f::T>(v, own + 2 * (t - held));
                continue;
            }
            if (c::keeps && Known != GATED && a.transforms && used)
                keep<f::P, f::T>(v, a.transforms + (int64_t)item.row * f::N + 2 * t);
            if (loaded || f::T < 32) {
                multiply<f::P, f::T>(v, h + 2 * (t - held), sign);
                transform_barrier<f::T>();
                f::inverse(v, s, t, a.twiddles);
            }
            const row_segment part = {item.row, n, a.lo, used ? a.hop : 0};
            const float gain = a.gain ? a.gain[item.row] : 1.0f;
            if (Known == GATED) {
                transform_barrier<f::T>();
                store_gated_segment<f::P, f::T>(v, (float *)s, a.gates, a.target, part, gain, t);
            } else if (knows_type(Known))
                store_plain_segment<f::P, f::T, Known>(v, a.target, part, t);
            else
                store_segment<f::P, f::T, true, Known>(v, (float *)s, a.target, part, gain, t);
        }
    }
}

/* A group of threads transforms a response. */
template <int Size>
__global__ void __launch_bounds__(config<Size>::threads, config<Size>::resident)
    chip_spectra(const __grid_constant__ gck_rows response, int64_t responses, int64_t taps,
                 const float2 *__restrict__ twiddles, float2 *spectra) {
    typedef config<Size> c;
    typedef typename c::transform f;
    extern __shared__ __align__(16) float2 shared[];
    const int group = group_of_thread<Size>(), t = thread_of_segment<Size>();
    const int64_t number = (int64_t)blockIdx.x * c::groups + group, row = min(number, responses - 1);
    float2 *s = shared + group * c::stride, v[f::P];
    pdl_trigger();
    pdl_wait();
    if (response.step != 1)
        load_any_step<f::P, f::T>(v, (float *)s, response, row, (int)taps, t);
    else if (!load_segment<f::P, f::T, ADJACENT>(v, response, {row, 0, (int)taps}, t))
        clear<f::P>(v);
    scale<f::P>(v, 1.0f / f::N);
    transform_barrier<f::T>();
    f::forward(v, s, t, twiddles);
    if (number < responses)
        keep<f::P, f::T>(v, spectra + row * f::N + 2 * t);
}

/* Whether every sample that a job reads and writes has the type of the target. The samples of prepared responses are
 * not read. */
bool have_one_type(const gck_chip_job *job) {
    const int type = job->target.rows.sample;
    return job->source.sample == type && (job->spectra || job->response.sample == type);
}

/* The launchers of one size. */
template <int Size> struct launchers {
    typedef typename config<Size>::transform f;
    static const int bytes = config<Size>::bytes, threads = config<Size>::threads;
    typedef void (*convolver)(gck_chip_job, int, int);

    /* The sizes of 2048 and 4096 points have no kernel for floats: it takes 3 % longer there, elsewhere 1 to 14 % less.
     */
    static const known_rows plain = Size == 4 || Size == 5 ? ADJACENT : FLOATS;

    /* Returns the kernel for a job, the one that knows most of it. Rows of halves and bfloat16 take 7 to 36 % longer
     * with the kernel for any type, measured on an H100. */
    static convolver convolver_of(const gck_chip_job *job) {
        if (job->gated)
            return chip_convolve<Size, GATED>;
        if (!have_one_type(job) || job->gain || job->target.accumulate)
            return chip_convolve<Size, ADJACENT>;
        return job->target.rows.sample == GCK_F32   ? chip_convolve<Size, plain>
               : job->target.rows.sample == GCK_F16 ? chip_convolve<Size, HALVES>
                                                    : chip_convolve<Size, BFLOATS>;
    }

    static gck_chip_sizes sizes() {
        return gck_chip_sizes{
            f::N, f::twiddles, bytes, threads, config<Size>::resident, config<Size>::groups, config<Size>::keeps};
    }

    static cudaError_t load() {
        const cudaError_t err = load_kernel(chip_spectra<Size>, bytes);
        return err ? err
                   : load_kernels<Size>(chip_convolve<Size, plain>, chip_convolve<Size, HALVES>,
                                        chip_convolve<Size, BFLOATS>, chip_convolve<Size, ADJACENT>,
                                        chip_convolve<Size, GATED>);
    }

    static cudaError_t convolve(const gck_chip_job *job, cudaStream_t stream) {
        const int rows = sharing_rows(job->sharing);
        return launch_dependent(convolver_of(job), dim3(job->blocks), threads, bytes, stream, *job,
                                job->sharing.responses * rows * job->splits, rows);
    }

    static cudaError_t spectra(const gck_rows *response, int64_t responses, int64_t taps, const float2 *twiddles,
                               float2 *to, cudaStream_t stream) {
        const int64_t groups = config<Size>::groups, blocks = (responses + groups - 1) / groups;
        const cudaError_t err = allow_shared(chip_spectra<Size>, bytes);
        return err ? err
                   : launch_dependent(chip_spectra<Size>, dim3((unsigned)blocks), threads, bytes, stream, *response,
                                      responses, taps, twiddles, to);
    }
};

struct chip_row {
    gck_chip_sizes (*sizes)();
    void (*write_twiddles)(float2 *to);
    cudaError_t (*load)();
    cudaError_t (*convolve)(const gck_chip_job *job, cudaStream_t stream);
    cudaError_t (*spectra)(const gck_rows *response, int64_t responses, int64_t taps, const float2 *twiddles,
                           float2 *to, cudaStream_t stream);
};

template <int Size> constexpr chip_row row_of() {
    typedef launchers<Size> l;
    return chip_row{l::sizes, l::f::write_twiddles, l::load, l::convolve, l::spectra};
}

const chip_row rows[GCK_CHIP_SIZES] = {row_of<0>(), row_of<1>(), row_of<2>(), row_of<3>(),
                                       row_of<4>(), row_of<5>(), row_of<6>(), row_of<7>()};

} // namespace

gck_chip_sizes gck_chip_query(int size) {
    return rows[size].sizes();
}

void gck_chip_twiddles(int64_t size, float2 *twiddles) {
    rows[size].write_twiddles(twiddles);
}

cudaError_t gck_chip_load_size(int size) {
    return rows[size].load();
}

cudaError_t gck_chip_load(int shared_bytes_max) {
    cudaError_t err = cudaSuccess;
    for (const chip_row &r : rows)
        if (!err && r.sizes().shared_bytes <= shared_bytes_max)
            err = r.load();
    err = err ? err : gck_chip_load_gradient(shared_bytes_max);
    return err ? err : gck_chip_load_both(shared_bytes_max);
}

cudaError_t gck_chip_convolve(int size, const gck_chip_job *job, cudaStream_t stream) {
    return rows[size].convolve(job, stream);
}

cudaError_t gck_chip_spectra(int size, const gck_rows *response, int64_t responses, int64_t taps,
                             const float2 *twiddles, float2 *spectra, cudaStream_t stream) {
    return rows[size].spectra(response, responses, taps, twiddles, spectra, stream);
}
