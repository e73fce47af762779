// The declarations of CUDA, for a kernel that is compiled for the CPU by the host's C++ compiler. compile.c includes
// this header before the student's source, and rewrite.c has turned launches and dynamic shared memory into its
// functions.
#pragma once
#include "interface.h"

#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

// A function without __device__ reports its call (-finstrument-functions), which is an error within a kernel.
#define __device__ __attribute__((no_instrument_function))
#define __global__ __attribute__((no_instrument_function))
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
// The blocks run one after the other on one thread of the CPU, so that one copy is enough. thread_local makes it static
// within a function, and collects all shared memory in one segment.
#define __shared__ thread_local

#ifdef __clang__
#define GCE_PLAIN __attribute__((noinline, no_instrument_function, no_sanitize("thread", "coverage")))
#else
#define GCE_PLAIN __attribute__((noinline, no_instrument_function, no_sanitize("thread"), no_sanitize_coverage))
#endif
#define GCE_PURE __attribute__((const))
#define GCE_DEVICE __device__ inline

// ---- Vectors --------------------------------------------------------------------------------------------------------

namespace gce {
// An integer of the size of a vector, so that a vector is loaded and stored by one access, as on a GPU.
template <int bytes> struct word;
template <> struct word<2> { typedef short __attribute__((may_alias)) type; };
template <> struct word<4> { typedef int __attribute__((may_alias)) type; };
template <> struct word<8> { typedef long long __attribute__((may_alias)) type; };
template <> struct word<16> { typedef long long __attribute__((vector_size(16), may_alias)) type; };
} // namespace gce

#define GCE_ALIGNED(T, name, bytes, parameters, values)                                                                \
    struct __align__(bytes) name {                                                                                     \
        typedef gce::word<bytes>::type word;                                                                           \
        T GCE_FIRST_##values;                                                                                          \
        name() = default;                                                                                              \
        __forceinline__ __device__ name parameters : GCE_SET_##values {}                                               \
        __forceinline__ __device__ name(const name &v) {                                                               \
            *(word *)this = *(const word *)&v;                                                                         \
        }                                                                                                              \
        __forceinline__ __device__ name &operator=(const name &v) {                                                    \
            *(word *)this = *(const word *)&v;                                                                         \
            return *this;                                                                                              \
        }                                                                                                              \
    };
#define GCE_FIRST_2 x, y
#define GCE_FIRST_4 x, y, z, w
#define GCE_SET_2 x(a), y(b)
#define GCE_SET_4 x(a), y(b), z(c), w(d)
#define GCE_VECTOR_2(T, name)                                                                                          \
    GCE_ALIGNED(T, name, 2 * sizeof(T), (T a, T b), 2)                                                                 \
    GCE_DEVICE name make_##name(T x, T y) {                                                                            \
        return {x, y};                                                                                                 \
    }
#define GCE_VECTOR_4(T, name)                                                                                          \
    GCE_ALIGNED(T, name, 4 * sizeof(T), (T a, T b, T c, T d), 4)                                                       \
    GCE_DEVICE name make_##name(T x, T y, T z, T w) {                                                                  \
        return {x, y, z, w};                                                                                           \
    }
#define GCE_VECTOR_3(T, name)                                                                                          \
    struct name {                                                                                                      \
        T x, y, z;                                                                                                     \
    };                                                                                                                 \
    GCE_DEVICE name make_##name(T x, T y, T z) {                                                                       \
        return {x, y, z};                                                                                              \
    }
GCE_VECTOR_2(float, float2)
GCE_VECTOR_3(float, float3)
GCE_VECTOR_4(float, float4)
GCE_VECTOR_2(double, double2)
GCE_VECTOR_2(int, int2)
GCE_VECTOR_3(int, int3)
GCE_VECTOR_4(int, int4)
GCE_VECTOR_2(unsigned, uint2)
GCE_VECTOR_3(unsigned, uint3)
GCE_VECTOR_4(unsigned, uint4)
GCE_VECTOR_2(unsigned char, uchar2)
GCE_VECTOR_4(unsigned char, uchar4)
GCE_VECTOR_2(short, short2)
GCE_VECTOR_4(short, short4)
GCE_VECTOR_2(long long, longlong2)

struct dim3 {
    unsigned x, y, z;
    __device__ constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

extern "C" {
GCE_PURE gc_emulator_index gce_thread_index();
GCE_PURE gc_emulator_index gce_block_index();
GCE_PURE gc_emulator_index gce_block_size();
GCE_PURE gc_emulator_index gce_grid_size();
int gce_barrier(int line, int predicate, int *threads);
const unsigned long long *gce_exchange(int line, unsigned mask, unsigned long long value);
unsigned gce_active();
void gce_fence();
unsigned long long gce_clock();
void gce_atomic(const void *address, unsigned long bytes, const void *place);
void gce_launch(const gc_emulator_launch *launch);
void *gce_dynamic();
}
#define threadIdx (gce_thread_index())
#define blockIdx (gce_block_index())
#define blockDim (gce_block_size())
#define gridDim (gce_grid_size())
static const int warpSize = 32;

// ---- Launches -------------------------------------------------------------------------------------------------------

typedef struct gce_stream *cudaStream_t;
typedef struct gce_event *cudaEvent_t;

namespace gce {
struct grid {
    dim3 blocks, threads;
    size_t bytes;
    __device__ grid(dim3 b, dim3 t, size_t shared = 0, cudaStream_t = nullptr) : blocks(b), threads(t), bytes(shared) {}
};

template <class F> GCE_PLAIN void call(const void *kernel) {
    (*static_cast<const F *>(kernel))();
}

template <class F> GCE_PLAIN void launch(int line, const grid &g, const F &kernel) {
    union {
        void (F::*member)() const;
        const void *address;
    } function = {&F::operator()};
    const gc_emulator_launch l = {{g.blocks.x, g.blocks.y, g.blocks.z},
                                  {g.threads.x, g.threads.y, g.threads.z},
                                  g.bytes,
                                  call<F>,
                                  &kernel,
                                  sizeof kernel,
                                  function.address,
                                  line};
    gce_launch(&l);
}
} // namespace gce

// ---- Barriers, warps, atomics ---------------------------------------------------------------------------------------

// The caller's line is needed, so these are macros.
#define __syncthreads() ((void)gce_barrier(__LINE__, 0, nullptr))
#define __syncthreads_count(p) gce_barrier(__LINE__, (p) != 0, nullptr)
#define __syncthreads_or(p) (gce_barrier(__LINE__, (p) != 0, nullptr) != 0)
#define __syncthreads_and(p) (gce_barrier(__LINE__, (p) == 0, nullptr) == 0)
#define GCE_FIRST(a, ...) (a)
#define __syncwarp(...) ((void)gce_exchange(__LINE__, gce::mask_of(__VA_ARGS__), 0))
#define __activemask() gce_active()
#define __ballot_sync(mask, p) gce::ballot(__LINE__, mask, (p) != 0)
#define __any_sync(mask, p) (gce::ballot(__LINE__, mask, (p) != 0) != 0)
#define __all_sync(mask, p) (gce::ballot(__LINE__, mask, (p) == 0) == 0)
#define __shfl_sync(...) gce::shuffle(__LINE__, gce::from_lane, __VA_ARGS__)
#define __shfl_up_sync(...) gce::shuffle(__LINE__, gce::from_below, __VA_ARGS__)
#define __shfl_down_sync(...) gce::shuffle(__LINE__, gce::from_above, __VA_ARGS__)
#define __shfl_xor_sync(...) gce::shuffle(__LINE__, gce::from_xor, __VA_ARGS__)
#define __reduce_add_sync(mask, v) gce::reduce(__LINE__, mask, v, [](auto a, auto b) { return a + b; })
#define __reduce_min_sync(mask, v) gce::reduce(__LINE__, mask, v, [](auto a, auto b) { return a < b ? a : b; })
#define __reduce_max_sync(mask, v) gce::reduce(__LINE__, mask, v, [](auto a, auto b) { return a > b ? a : b; })
#define __threadfence() gce_fence()
#define __threadfence_block() ((void)0)
#define __threadfence_system() gce_fence()
#define __nanosleep(ns) ((void)(ns))

namespace gce {
enum way { from_lane, from_below, from_above, from_xor };

GCE_PLAIN inline unsigned mask_of(unsigned mask = 0xffffffffu) {
    return mask;
}

GCE_PLAIN inline int lane() {
    gc_emulator_index t = gce_thread_index(), n = gce_block_size();
    return (int)((t.x + n.x * (t.y + n.y * t.z)) % 32);
}

GCE_PLAIN inline unsigned ballot(int line, unsigned mask, bool predicate) {
    const unsigned long long *value = gce_exchange(line, mask, predicate);
    unsigned bits = 0;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1 && value[l])
            bits |= 1u << l;
    return bits;
}

template <class T> GCE_PLAIN T shuffle(int line, way w, unsigned mask, T own, int by, int width = 32) {
    unsigned long long bits = 0;
    static_assert(sizeof(T) <= sizeof bits, "a shuffle moves at most 8 bytes");
    std::memcpy(&bits, &own, sizeof own);
    const unsigned long long *value = gce_exchange(line, mask, bits);
    int l = lane(), first = l / width * width, from = l;
    if (w == from_lane)
        from = first + (by & (width - 1));
    else if (w == from_below && l - by >= first)
        from = l - by;
    else if (w == from_above && l + by < first + width)
        from = l + by;
    else if (w == from_xor && (l ^ by) < first + width)
        from = l ^ by;
    T result = own;
    if (mask >> from & 1)
        std::memcpy(&result, &value[from], sizeof result);
    else
        std::memset(&result, 0xff, sizeof result); // CUDA leaves it undefined
    return result;
}

template <class T, class F> GCE_PLAIN T reduce(int line, unsigned mask, T own, F f) {
    const unsigned long long *value = gce_exchange(line, mask, (unsigned long long)own);
    bool any = false;
    T result = own;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1) {
            result = any ? f(result, (T)value[l]) : (T)value[l];
            any = true;
        }
    return result;
}
} // namespace gce

#define GCE_ATOMIC(name, operation)                                                                                    \
    template <class T> GCE_PLAIN T name(T *p, typename std::common_type<T>::type v) {                                  \
        gce_atomic(p, sizeof *p, __builtin_return_address(0));                                                         \
        T old = *p;                                                                                                    \
        *p = operation;                                                                                                \
        return old;                                                                                                    \
    }                                                                                                                  \
    template <class T> GCE_PLAIN T name##_block(T *p, typename std::common_type<T>::type v) {                          \
        gce_atomic(p, sizeof *p, __builtin_return_address(0));                                                         \
        T old = *p;                                                                                                    \
        *p = operation;                                                                                                \
        return old;                                                                                                    \
    }
GCE_ATOMIC(atomicAdd, old + v)
GCE_ATOMIC(atomicSub, old - v)
GCE_ATOMIC(atomicExch, v)
GCE_ATOMIC(atomicMin, old < v ? old : v)
GCE_ATOMIC(atomicMax, old > v ? old : v)
GCE_ATOMIC(atomicAnd, old &v)
GCE_ATOMIC(atomicOr, old | v)
GCE_ATOMIC(atomicXor, old ^ v)
GCE_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
GCE_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
template <class T>
GCE_PLAIN T atomicCAS(T *p, typename std::common_type<T>::type compare, typename std::common_type<T>::type v) {
    gce_atomic(p, sizeof *p, __builtin_return_address(0));
    T old = *p;
    if (old == compare)
        *p = v;
    return old;
}

// ---- Functions of the device ----------------------------------------------------------------------------------------

template <class A, class B> __device__ constexpr typename std::common_type<A, B>::type min(A a, B b) {
    return b < a ? b : a;
}
template <class A, class B> __device__ constexpr typename std::common_type<A, B>::type max(A a, B b) {
    return a < b ? b : a;
}
template <class T> __device__ inline __attribute__((always_inline)) T __ldg(const T *p) {
    return *p;
}
template <class To, class From> __device__ inline To gce_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
GCE_DEVICE int __float_as_int(float x) {
    return gce_bits<int>(x);
}
GCE_DEVICE unsigned __float_as_uint(float x) {
    return gce_bits<unsigned>(x);
}
GCE_DEVICE float __int_as_float(int x) {
    return gce_bits<float>(x);
}
GCE_DEVICE float __uint_as_float(unsigned x) {
    return gce_bits<float>(x);
}
GCE_DEVICE float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
GCE_DEVICE float __fadd_rn(float a, float b) {
    return a + b;
}
GCE_DEVICE float __fsub_rn(float a, float b) {
    return a - b;
}
GCE_DEVICE float __fmul_rn(float a, float b) {
    return a * b;
}
GCE_DEVICE float __fdividef(float a, float b) {
    return a / b;
}
GCE_DEVICE float __expf(float x) {
    return expf(x);
}
GCE_DEVICE float __logf(float x) {
    return logf(x);
}
GCE_DEVICE float __log2f(float x) {
    return log2f(x);
}
GCE_DEVICE float __sinf(float x) {
    return sinf(x);
}
GCE_DEVICE float __cosf(float x) {
    return cosf(x);
}
GCE_DEVICE float __powf(float x, float y) {
    return powf(x, y);
}
GCE_DEVICE float __saturatef(float x) {
    return x > 1 ? 1.0f : x > 0 ? x : 0.0f;
}
GCE_DEVICE float __frsqrt_rn(float x) {
    return 1 / sqrtf(x);
}
GCE_DEVICE float rsqrtf(float x) {
    return 1 / sqrtf(x);
}
GCE_DEVICE double rsqrt(double x) {
    return 1 / sqrt(x);
}
GCE_DEVICE void __sincosf(float x, float *s, float *c) {
    *s = sinf(x), *c = cosf(x);
}
GCE_DEVICE int __popc(unsigned x) {
    return __builtin_popcount(x);
}
GCE_DEVICE int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
GCE_DEVICE int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
GCE_DEVICE int __ffs(int x) {
    return __builtin_ffs(x);
}
GCE_DEVICE unsigned __brev(unsigned x) {
    unsigned r = 0;
    for (int i = 0; i < 32; i++)
        r |= (x >> i & 1) << (31 - i);
    return r;
}
GCE_DEVICE int __mul24(int a, int b) {
    return a * b;
}
GCE_DEVICE int __float2int_rn(float x) {
    return (int)rintf(x);
}
GCE_DEVICE int __float2int_rd(float x) {
    return (int)floorf(x);
}
GCE_DEVICE long long clock64() {
    return (long long)gce_clock();
}

// ---- Functions of the host ------------------------------------------------------------------------------------------

typedef int cudaError_t;
enum {
    cudaSuccess,
    cudaErrorInvalidValue,
    cudaErrorMemoryAllocation,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevicePointer = 17
};
enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout
};
struct cudaDeviceProp {
    char name[256];
    int multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, major, minor;
    size_t sharedMemPerBlock, sharedMemPerBlockOptin, totalGlobalMem;
};

extern "C" {
cudaError_t gce_allocate(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t gce_copy(void *to, const void *from, size_t bytes, int kind, int line);
cudaError_t gce_fill(void *to, int byte, size_t bytes, int line);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
cudaError_t cudaDeviceGetAttribute(int *value, int attribute, int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
const char *cudaGetErrorString(cudaError_t error);
}

#define cudaMemcpy(to, from, bytes, kind) gce_copy(to, from, bytes, kind, __LINE__)
#define cudaMemcpyAsync(to, from, bytes, ...) gce_copy(to, from, bytes, GCE_FIRST(__VA_ARGS__, 0), __LINE__)
#define cudaMemset(to, byte, bytes) gce_fill(to, byte, bytes, __LINE__)
#define cudaMemsetAsync(to, byte, ...) gce_fill(to, byte, GCE_FIRST(__VA_ARGS__, 0), __LINE__)
#define cudaMemcpyToSymbol(symbol, ...) gce::to_symbol(__LINE__, symbol, __VA_ARGS__)
#define cudaMemcpyToSymbolAsync(symbol, ...) gce::to_symbol(__LINE__, symbol, __VA_ARGS__)

namespace gce {
template <class T>
GCE_PLAIN cudaError_t to_symbol(int line, T &symbol, const void *from, size_t bytes, size_t offset = 0,
                                cudaMemcpyKind kind = cudaMemcpyHostToDevice, cudaStream_t = nullptr) {
    return gce_copy((char *)&symbol + offset, from, bytes, kind, line);
}
} // namespace gce

template <class T> GCE_PLAIN cudaError_t cudaMalloc(T **p, size_t bytes) {
    return gce_allocate((void **)p, bytes);
}
template <class T> GCE_PLAIN cudaError_t cudaMallocAsync(T **p, size_t bytes, cudaStream_t) {
    return gce_allocate((void **)p, bytes);
}
GCE_PLAIN inline cudaError_t cudaFreeAsync(void *p, cudaStream_t) {
    return cudaFree(p);
}
template <class T> GCE_PLAIN cudaError_t cudaGetSymbolAddress(void **p, T &symbol) {
    return *p = &symbol, cudaSuccess;
}
template <class T> GCE_PLAIN cudaError_t cudaFuncSetAttribute(T *, cudaFuncAttribute, int) {
    return cudaSuccess;
}
GCE_PLAIN inline cudaError_t cudaDeviceSynchronize() {
    return cudaPeekAtLastError();
}
GCE_PLAIN inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaPeekAtLastError();
}
GCE_PLAIN inline cudaError_t cudaGetDevice(int *device) {
    return *device = 0, cudaSuccess;
}
template <class T>
GCE_PLAIN cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *, int threads, size_t) {
    return *blocks = threads > 0 && threads <= 1024 ? 2048 / threads : 0, cudaSuccess;
}
