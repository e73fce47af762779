/*
 * Module scan: out[i] = a[0] + a[1] + ... + a[i], the prefix sums of an array. Each output depends on all inputs before
 * it, but sums can be joined: the prefix sums of a tile are those within the tile, plus the sum of all tiles before it.
 *
 *      elements -> threads (registers) -> warps (shuffles) -> tiles (shared memory) -> the sum of the tiles before
 *
 * A scan must read and write each element once: 8 bytes. The variants differ in the bytes that they move beyond that
 * and in the barriers within a tile.
 *
 * Sources: Hillis and Steele, Data parallel algorithms (1986); Blelloch, Prefix sums and their applications (1990);
 * Harris, Sengupta and Owens, GPU Gems 3, chapter 39 (2007); Merrill and Garland, Single-pass parallel prefix scan with
 * decoupled look-back (2016).
 */
#include "gpulab/lab.h"

LAB_LAUNCHER(gck_scan_hillis_steele);
LAB_LAUNCHER(gck_scan_blelloch);
LAB_LAUNCHER(gck_scan_shuffles);
LAB_LAUNCHER(gck_scan_look_back);
LAB_LAUNCHER(gck_scan_cub);
LAB_FACTS(gck_scan_look_back_facts);

static int sequential(const gc_lab_run *run) {
    const int32_t *a = run->buffer[0];
    int32_t *out = run->buffer[1], sum = 0;
    for (int64_t i = 0; i < run->size[0]; i++)
        out[i] = sum += a[i];
    return 0;
}

/* Adds up parts of the array on all cores, then scans each part from the sum of the parts before it. */
static int all_cores(const gc_lab_run *run) {
    enum { PARTS = 64 };
    const int32_t *a = run->buffer[0];
    int32_t *out = run->buffer[1], before[PARTS + 1] = {0};
    const int64_t n = run->size[0];
#pragma omp parallel for
    for (int p = 0; p < PARTS; p++) {
        int32_t sum = 0;
        for (int64_t i = n * p / PARTS; i < n * (p + 1) / PARTS; i++)
            sum += a[i];
        before[p + 1] = sum;
    }
    for (int p = 0; p < PARTS; p++)
        before[p + 1] += before[p];
#pragma omp parallel for
    for (int p = 0; p < PARTS; p++) {
        int32_t sum = before[p];
        for (int64_t i = n * p / PARTS; i < n * (p + 1) / PARTS; i++)
            out[i] = sum += a[i];
    }
    return 0;
}

/* The inputs count from 0 to 9 again and again, and begin anew after a prime number of elements: the reference needs no
 * loop, and a tile in the wrong place is seen. */
enum { PERIOD = 1021 };

static void fill(const int64_t *size, void *elements, int64_t count) {
    (void)size;
    for (int64_t i = 0; i < count; i++)
        ((int32_t *)elements)[i] = (int32_t)(i % PERIOD % 10);
}

/* Returns the sum of the first n elements of a period. */
static int64_t sum_of_first(int64_t n) {
    const int64_t tens = n / 10, rest = n % 10;
    return 45 * tens + rest * (rest - 1) / 2;
}

static int buffers(const int64_t *size, gc_lab_buffer *buffer) {
    buffer[0] = (gc_lab_buffer){.name = "a", .type = LAB_I32, .count = size[0], .fill = fill};
    buffer[1] = (gc_lab_buffer){.name = "out", .role = LAB_OUTPUT, .type = LAB_I32, .count = size[0]};
    return 2;
}

static gc_lab_cost cost(const int64_t *size, const gc_lab_variant *variant) {
    (void)variant;
    return (gc_lab_cost){.bytes = 8.0 * (double)size[0], .operations = (double)size[0]};
}

static double reference(const gc_lab_run *run, int buffer, int64_t index) {
    (void)run, (void)buffer;
    const int64_t periods = index / PERIOD, rest = index % PERIOD;
    return (double)(periods * sum_of_first(PERIOD) + sum_of_first(rest + 1));
}

static const gc_lab_size sizes[] = {
    {{1}, LAB_QUICK},       {{1000}, LAB_QUICK},       {{100003}, LAB_QUICK},
    {{1100003}, LAB_CHECK}, {{1 << 24}, LAB_CPU_TIME}, {{1 << 27}, LAB_GPU_TIME},
};

static const gc_lab_variant variants[] = {
    {.name = "CPU sequential", .changed = "one core, one addition an element", LAB_RUNS(sequential)},
    {.name = "CPU OpenMP",
     .changed = "all cores: the sums of 64 parts, then a scan of each part from the sum before it",
     .limit = "Two passes: a is read twice, and n more additions are done. On a few cores the additions of the first "
              "pass cost more than they save; the same trade is made on the GPU.",
     LAB_RUNS(all_cores)},
    {.name = "Hillis-Steele",
     .changed =
         "a thread for each element of a tile of 1024: in step s it adds the element 2^s before its own, from one "
         "half of shared memory to the other; the sums of the tiles are scanned in the same way, and a third kernel "
         "adds them to all elements",
     .where = LAB_GPU,
     .limit =
         "10 steps for 1024 elements: 10 additions an element instead of 1, and 11 barriers that all 32 warps of the "
         "block wait at. The kernel that adds reads and writes every element once more: 16 bytes an element, so "
         "that even a kernel at the memory's full speed takes twice the limit. Next: fewer additions.",
     LAB_RUNS_ON_GPU(gck_scan_hillis_steele)},
    {.name = "Blelloch, work-efficient",
     .changed =
         "512 threads for 1024 elements: sums up a binary tree in place, and then down, which makes 2 additions an "
         "element; padded, so that the tree's strides meet no bank twice",
     .where = LAB_GPU,
     .limit =
         "2 additions an element, but 20 steps with a barrier each, and in most of them most threads have nothing to "
         "do: step s of the tree has 512 / 2^s additions, and a warp costs as much for one of them as for 32. The "
         "bytes are still 16 an element. Fewer additions do not help where barriers and bytes are the cost. Next: "
         "more items a thread, fewer barriers, fewer bytes.",
     LAB_RUNS_ON_GPU(gck_scan_blelloch)},
    {.name = "shuffles, 32 items a thread",
     .changed =
         "a tile of 16 384: each thread scans 32 items in registers, which it reads as eight int4, shuffles join the "
         "threads of a warp, and one barrier the warps; the first kernel only adds up each tile",
     .where = LAB_GPU,
     .limit =
         "One barrier for 16 384 elements. The first kernel writes one sum a tile and no elements: 4 bytes read, then "
         "4 read and 4 written, 12 an element, so at best 8 / 12 = 67 % of the limit. Next: read a only once.",
     LAB_RUNS_ON_GPU(gck_scan_shuffles)},
    {.name = "one pass, look-back",
     .changed =
         "one kernel: a block publishes the sum of its tile, and adds up what the tiles before it have published, "
         "32 at a time, until it meets a complete prefix",
     .where = LAB_GPU,
     .facts = LAB_ON_GPU(gck_scan_look_back_facts),
     .limit =
         "8 bytes an element and 8 bytes a tile, which is the least. A block waits for its predecessors while it "
         "holds 32 items a thread; the other block of the multiprocessor loads in the meantime, and waits as well: "
         "what "
         "is missing to the copy is this wait.",
     LAB_RUNS_ON_GPU(gck_scan_look_back)},
    {.name = "CUB",
     .changed = "NVIDIA's library, which uses the same algorithm with tiles tuned for each device",
     .where = LAB_GPU,
     .flags = LAB_LIBRARY,
     LAB_RUNS_ON_GPU(gck_scan_cub)},
};

static const gc_lab_effect effects[] = {
    {"several items a thread beat one with a barrier in each step", "Hillis-Steele", "shuffles, 32 items a thread", 1.3,
     0},
    {"one pass beats two", "shuffles, 32 items a thread", "one pass, look-back", 1.05, 0},
};

const gc_lab_module gc_lab_scan = {
    .name = "scan",
    .title = "Scan: prefix sums, which seem to be sequential",
    .course = "Blelloch 1990; Merrill and Garland 2016",
    .idea =
        "Each output is the output before it plus one input, so a loop over the array seems to be the only way. But "
        "addition is associative: the sum of a tile can be computed without the tiles before it and be joined later. "
        "A scan turns many decisions that depend on each other into one parallel step: where each thread writes when "
        "elements are selected, sorted, or have different lengths.\n\n"
        "Within a tile there are two classic algorithms. Hillis and Steele add with distance 1, 2, 4, 8: few steps, "
        "many "
        "additions. Blelloch builds the sums of a tree and walks down again: few additions, twice the steps. On a GPU "
        "neither number decides, but the number of barriers and the bytes that are moved. So a thread scans many items "
        "in its registers, where a step costs one addition and no barrier, and only one number per thread takes part "
        "in "
        "the parallel scan.\n\n"
        "Between tiles the simple way is three kernels: sums of the tiles, their scan, and the scan of each tile from "
        "its sum. Each element then crosses the memory more than twice. Decoupled look-back needs one kernel: every "
        "tile "
        "has a word in memory, which says that it has nothing yet, the sum of its tile, or the complete prefix up to "
        "its "
        "end. A tile reads the words before its own backwards and stops at the first complete prefix; meanwhile it has "
        "published its own sum, so that no tile waits for a chain of all others. Flag and sum are in one 64-bit word, "
        "which is written at once and needs no fence. Tiles are numbered by an atomic counter in the order in which "
        "blocks start: a tile waits only for tiles that run already, and always comes to an end.",
    .see =
        "Compare each time with the copy of the same 8 bytes an element, which is the limit in the table. The first "
        "two GPU variants move 16 bytes an element and can reach at most 50 %, the shuffles move 12 and can reach 67 "
        "%, and only one pass can reach the copy. What each variant lacks to these shares is the cost of its "
        "barriers. One pass is about as fast as CUB. With 16 items a thread and tiles of 4096 it was slower: four "
        "times as many tiles are on their way, and a tile has to look back further before it meets a complete prefix.",
    .next =
        "Change ROWS in scan.cu from 8 to 4 and to 2: there are two and four times as many tiles to look back at, and "
        "a tile that waits holds fewer loads back. gpulab try scan lets you write the scan of a tile.",
    .dimension = {"elements"},
    .buffers = buffers,
    .cost = cost,
    .reference = reference,
    LAB_TABLES,
};
