/* The texts of the exercises. */
#include "student.h"

#include <string.h>

static const gc_exercise exercises[] = {
    {"hello",
     "hello",
     "a grid",
     {0},
     "Start `blocks` blocks of `threads` threads. Thread t of block b writes two numbers: ids[2 * i] = b and "
     "ids[2 * i + 1] = t, with i = b * threads + t.",
     {"A kernel is a function marked __global__. It knows its place: blockIdx.x and threadIdx.x.",
      "The launch names both numbers: kernel<<<blocks, threads, 0, stream>>>(ids).",
      "Inside the kernel, the number of threads of a block is blockDim.x."}},
    {"vector-add",
     "vector-add",
     "one thread an element",
     {0},
     "c[i] = a[i] + b[i] for every i below `elements`, with one thread for each element.",
     {"i is blockIdx.x * blockDim.x + threadIdx.x; compute it in 64 bits: (int64_t)blockIdx.x * blockDim.x + ...",
      "256 threads per block are a good choice. The number of blocks is rounded up: (elements + 255) / 256.",
      "The last block has threads beyond the end: they must not read or write. if (i < elements)"}},
    {"vector-add-stride",
     "vector-add",
     "grid-stride",
     {.threads = 0.5},
     "The same sum with a grid whose size does not depend on the data: every thread computes many elements.",
     {"Begin at the thread's own index, and go on in steps of the whole grid: gridDim.x * blockDim.x.",
      "Neighbouring threads then still read neighbouring elements in every step.",
      "A GPU is full with a few blocks for every multiprocessor: cudaDeviceGetAttribute(&n, "
      "cudaDevAttrMultiProcessorCount, 0) counts them."}},
    {"image",
     "image",
     "blur from global memory",
     {0},
     "Blur an image of width x height pixels, stored row by row: each pixel becomes the sum of its 3 x 3 neighbours, "
     "weighted 1 2 1 in both directions and divided by 16. Beyond the edge the nearest pixel counts.",
     {"Use a grid of two dimensions: dim3 block(32, 8), and x and y of blockIdx, blockDim and threadIdx.",
      "The pixel at column x and row y is in[y * width + x].",
      "Clamp the neighbours' coordinates: x - 1 below 0 becomes 0, x + 1 at width becomes width - 1."}},
    {"coalescing",
     "coalescing",
     "horizontal",
     {.coalesced = true},
     "out[i] = 2 * in[i] for a matrix of rows x columns, stored row by row, with one thread for each element.",
     {"Threads with neighbouring threadIdx.x should access neighbouring addresses: let x be the column.",
      "Exchange rows and columns once, and compare the times: gpulab try shows both on the ladder."}},
    {"transpose",
     "transpose",
     "naive",
     {0},
     "Transpose a matrix: out[c * rows + r] = in[r * columns + c].",
     {"A thread for each element, with a grid of two dimensions.",
      "Reads along rows are neighbours; the writes are not. The ladder shows the cost."}},
    {"transpose-tile",
     "transpose",
     "padded tile",
     {.coalesced = true, .shared = true, .no_conflicts = true},
     "Transpose with reads and writes that are both neighbours, through a tile in shared memory.",
     {"__shared__ float tile[32][32]; a block reads 32 rows of 32 elements, waits at __syncthreads(), and writes 32 "
      "rows of the output.",
      "When writing, the block's place is transposed too: the row of the output begins at blockIdx.x * 32, its column "
      "at "
      "blockIdx.y * 32.",
      "A column of a 32 x 32 tile lies in one bank. Rows of 33 floats spread it over all banks.",
      "Both the reads and the writes need their own check of the matrix's edges."}},
    {"reduction",
     "reduction",
     "privatised in shared memory",
     {.accesses = 1.5},
     "sum[0] becomes the sum of all elements of a.",
     {"sum[0] is not zero when solve begins: cudaMemsetAsync(sum, 0, sizeof(float), stream).",
      "One atomicAdd for each element is right and slow: all of them wait for one address.",
      "Let every block add its elements first: a grid-stride loop into a register, then shared memory, halving the "
      "number of threads in each step, with __syncthreads() between the steps.",
      "Then one thread of each block does one atomicAdd."}},
    {"scan",
     "scan",
     "Hillis-Steele",
     {.shared = true},
     "out[i] becomes the sum of a[0] to a[i], for every i below `elements`.",
     {"First scan tiles: a block reads 256 elements into shared memory, and in step s thread t adds the element "
      "2^s before "
      "its own, if t >= 2^s.",
      "A thread must not read an element that another one has already changed: use two arrays in turn, with "
      "__syncthreads() after each step.",
      "The last thread of a block has the sum of its tile: write it to an array of sums, for which solve gets memory "
      "with "
      "cudaMallocAsync(&sums, bytes, stream).",
      "Scan the sums with the same kernel; if there is more than one tile of sums, call the function again for those.",
      "A second kernel adds sums[b - 1] to all elements of tile b."}},
    {"scan-one-pass",
     "scan",
     "one pass, look-back",
     {.accesses = 3},
     "The same with one kernel, which reads and writes each element once: decoupled look-back.",
     {"Each thread reads several neighbours and adds them up in registers; warps scan the threads' sums with "
      "__shfl_up_sync, and shared memory joins the warps.",
      "A block takes the number of its tile from an atomic counter: tile = atomicAdd(next, 1u). So all tiles before it "
      "have begun.",
      "A word of 64 bits for each tile has a state and a sum, so that both are written at once: 0 nothing yet, 1 the "
      "sum of "
      "the tile, 2 the sum up to the tile's end.",
      "Publish state 1, then read the words of the tiles before, from the nearest on: add the sums of state 1, wait "
      "for "
      "those of state 0, and stop at the first of state 2. Then publish state 2.",
      "Read and write the words with atomic operations: atomicAdd(words + t, 0ull) reads, atomicExch(words + t, w) "
      "writes."}},
    {"histogram",
     "histogram",
     "private in shared memory",
     {.shared = true},
     "counts[v] becomes the number of bytes in data that have the value v, for v from 0 to 255. `percent` only tells "
     "how "
     "many of them are 0.",
     {"counts is not zero when solve begins: cudaMemsetAsync(counts, 0, 256 * sizeof(int), stream).",
      "atomicAdd(&counts[data[i]], 1) for each byte is right, and all threads of the GPU meet at 256 addresses.",
      "Give each block its own counts: __shared__ int own[256], set to zero first, with a barrier before and after the "
      "loop.",
      "At the end thread t adds own[t] to counts[t], once for each block. Few blocks with many bytes each do this "
      "less often."}},
    {"histogram-lanes",
     "histogram",
     "a column for each lane",
     {.shared = true, .no_conflicts = true},
     "The same with counts that no two lanes of a warp ever share, so that the time does not depend on the data.",
     {"32 counts for each value: __shared__ int column[256][32]; thread t uses column[value][t % 32].",
      "Bank t % 32 then belongs to lane t % 32. The warps of a block share the columns, so the additions stay atomic.",
      "At the end thread v adds the 32 counts of value v. If all threads begin with column 0, they meet in one bank: "
      "begin "
      "with column (v + k) % 32."}},
    {"matmul",
     "matmul",
     "naive",
     {0},
     "c = a b, row by row: c[m * N + n] is the sum over k of a[m * K + k] * b[k * N + n].",
     {"A thread for each element of c, with a grid of two dimensions; let x be n, so that neighbouring threads read "
      "neighbouring elements of b.",
      "Keep the sum in a register, and store it once.", "M, N and K need not be multiples of the block."}},
    {"matmul-tile",
     "matmul",
     "tiled in shared memory",
     {.accesses = 0.25},
     "The same product with tiles of a and b in shared memory, so that each element is read once for many uses.",
     {"A block of 32 x 32 threads computes a tile of c. It goes through K in steps of 32.",
      "In each step every thread loads one element of a and one of b; elements beyond the edge are 0.",
      "Two barriers in each step: one between loading and computing, one before the next load.",
      "Threads outside c must still load and reach the barriers: check the edge only at the store."}},
    {"convolution",
     "convolution",
     "taps global",
     {0},
     "out[i] is the sum over k < taps of h[k] * x[i - k], where x = in + (taps + 31) / 32 * 32: the input begins with "
     "the samples before the first output.",
     {"A thread for each output, and a loop over the taps.",
      "x[i - k] reaches back before x[0]; these samples are there.",
      "Sum in a register: float sum = 0, and fmaf(h[k], x[i - k], sum)."}},
    {"convolution-tile",
     "convolution",
     "tile in shared memory",
     {.accesses = 0.75},
     "The same convolution, with the inputs of a block read once into shared memory.",
     {"A block of 256 outputs needs 256 + taps inputs: its own, and the halo of taps samples before them.",
      "taps is at most 1024 here, so __shared__ float window[256 + 1024] is enough.",
      "All threads load: for (int w = threadIdx.x; w < 256 + taps; w += 256). Then __syncthreads().",
      "Do not return before the barrier: threads beyond the last output load too. Do not read beyond the input's end: "
      "it has outputs + 32 samples after x[0]."}},
    {"convolution-registers",
     "convolution",
     "register-unrolled, 16 outputs",
     {.accesses = 0.3},
     "The same convolution with X neighbouring outputs per thread, whose window of inputs stays in registers.",
     {"Begin with X = 4: float sum[4], w[4]. Thread t computes the outputs from 4 t on. One h[k] now serves four "
      "multiply-adds.",
      "From one tap to the next the window moves by one input: x[i + r - k] of tap k is x[i + (r - 1) - (k - 1)]. Only "
      "one new input is needed for each tap.",
      "Unroll the loop over the taps X times, with #pragma unroll: the place of each input in the window, (r - q + X) "
      "% "
      "X for step q, is then a constant, and w stays in registers. h has zeros up to a multiple of 32 taps.",
      "Load the new inputs as float4: x[i - k - 4] ... x[i - k - 1] are 16 bytes, and aligned.",
      "Taps from constant memory are broadcast to the warp: __constant__ float taps[1024], filled in solve with "
      "cudaMemcpyToSymbolAsync(taps, h, bytes, 0, cudaMemcpyDeviceToDevice, stream). Then compare X = 4, 8, 16."}},
};

const gc_exercise *gc_exercise_at(int i) {
    return i >= 0 && i < LAB_LENGTH(exercises) ? &exercises[i] : NULL;
}

const gc_exercise *gc_exercise_find(const char *name) {
    for (int i = 0; i < LAB_LENGTH(exercises); i++)
        if (strcmp(exercises[i].name, name) == 0)
            return &exercises[i];
    return NULL;
}

const gc_lab_variant *gc_exercise_goal(const gc_lab_module *module, const gc_exercise *exercise) {
    const gc_lab_variant *goal = exercise ? gc_lab_variant_find(module, exercise->goal) : NULL;
    for (int i = 0; i < module->variant_count && !exercise; i++) {
        const gc_lab_variant *v = &module->variants[i];
        if (v->where == LAB_GPU && !v->input && !v->output && !(v->flags & (LAB_RACES | LAB_LIBRARY)))
            goal = v;
    }
    return goal;
}

/* Writes a text as comment lines of at most 100 columns. */
static void write_comment(const char *text, FILE *to) {
    while (*text) {
        size_t length = strlen(text);
        if (length > 97)
            for (length = 97; length > 40 && text[length] != ' ';)
                length--;
        fprintf(to, "// %.*s\n", (int)length, text);
        text += length;
        text += *text == ' ';
    }
}

void gc_exercise_write_start(const gc_lab_module *module, const gc_exercise *exercise, FILE *to) {
    char signature[600];
    const char *name = exercise ? exercise->name : module->name;
    gc_solve_signature(module, signature, sizeof signature);
    fprintf(to, "// gpulab, exercise %s\n//\n", name);
    write_comment(exercise ? exercise->task : module->title, to);
    fprintf(
        to,
        "//\n// gpulab try %s           the task and hints\n// gpulab try %s FILE.cu   compiles this file, checks it "
        "and measures it;\n// without a GPU an emulator runs it, and names the line and the thread of an error\n//\n"
        "// All pointers are on the device. solve queues its work on the stream and does not wait.\n"
        "// <cstdint>, <cuda_runtime.h>, <cuda_fp16.h> and <cuda_bf16.h> are included already.\n\n",
        name, name);
    fprintf(to,
            "__global__ void kernel(/* parameters */) {\n    // what one thread does\n}\n\n%s {\n"
            "    // launch the kernel: kernel<<<blocks, threads, 0, stream>>>(...);\n}\n",
            signature);
}
