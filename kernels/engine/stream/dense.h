/*
 * Dense matrices of responses: one product of matrices for each bin (dense_transform.cu, dense_product.cu,
 * dense_tensor.cu). Included by kernels.h.
 *
 *      Y(o, s) = sum over inputs i and partitions p of H(o, i, p) X(i, s - p)        for each bin
 *
 * A transform has N complex points, which represent 2 N real ones. Bins are numbered in the order in which the threads
 * of a transform hold them, and stored in groups of four: a product reads, and a transform writes, whole sectors of
 * memory.
 *
 *      spectra      [group][input][column][bin of the group]    block s of partition p is column s - p + partitions - 1
 *      sums         [group][output][block][bin of the group]
 *      responses    [group][partition][tile of 8 inputs][tile of 16 outputs], 4 KB each: dense.cuh
 */
#ifndef GC_KERNELS_ENGINE_DENSE_H
#define GC_KERNELS_ENGINE_DENSE_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    GCK_DENSE_POINTS_MIN = 2048,
    GCK_DENSE_POINTS_MAX = 32768,
    GCK_DENSE_TILE_INPUTS = 8,
    GCK_DENSE_TILE_OUTPUTS = 16
};

/* Inputs and outputs whose responses form one dense matrix: a range of the inputs and one of the outputs, in the order
 * of gck_dense. */
typedef struct gck_dense_part {
    int first_input, inputs, first_output, outputs;
    float2 *responses; /* gck_dense_responses numbers; zeros before gck_dense_transform_responses */
} gck_dense_part;

/* A response of a part. input, output: counted from the first ones of the part. */
typedef struct gck_dense_route {
    int part, input, output, plane;
} gck_dense_route;

typedef struct gck_dense {
    int64_t points, hop;                       /* real points; new frames of a block, even */
    int64_t partition_taps;                    /* taps of a partition; `hop` if there are several */
    int partitions, blocks;                    /* blocks of a chunk */
    int inputs, outputs;                       /* of all parts */
    const int *input_channel, *output_channel; /* channels, part after part */
    const float2 *twiddles;
    float2 *spectra;          /* inputs x (blocks + partitions - 1) x points / 2 */
    float2 *sums;             /* outputs x blocks x points / 2 */
    int tensor_cores;         /* as gck_dense_uses_tensor_cores said: the form of the responses */
    unsigned *peaks;          /* blocks + partitions - 1; only with tensor cores */
    unsigned *response_peaks; /* outputs; only with tensor cores */
} gck_dense;

typedef struct gck_dense_sizes {
    int64_t twiddles; /* complex numbers of the table; 0: no kernel has this size */
    int shared_bytes; /* that a block needs, the product included */
} gck_dense_sizes;

gck_dense_sizes gck_dense_query(int64_t points);

/* Stores whether products run on the tensor cores of the current device. */
cudaError_t gck_dense_uses_tensor_cores(int *uses);

/* Writes the twiddle table, in host memory. */
void gck_dense_twiddles(int64_t points, float2 *twiddles);

/* Returns the complex numbers of the responses of a part, with the padding of its tiles. */
static inline int64_t gck_dense_responses(int64_t points, int64_t partitions, int64_t inputs, int64_t outputs) {
    const int64_t rows = (inputs + GCK_DENSE_TILE_INPUTS - 1) / GCK_DENSE_TILE_INPUTS * GCK_DENSE_TILE_INPUTS;
    const int64_t columns = (outputs + GCK_DENSE_TILE_OUTPUTS - 1) / GCK_DENSE_TILE_OUTPUTS * GCK_DENSE_TILE_OUTPUTS;
    return points / 2 * partitions * rows * columns;
}

/* Computes the spectra of the responses of `count` routes. `parts` and `routes` are device memory; responses->planes is
 * not read. */
cudaError_t gck_dense_transform_responses(const gck_dense *dense, const gck_dense_part *parts,
                                          const gck_dense_route *routes, int64_t count, const gck_responses *responses,
                                          cudaStream_t stream);

/* Computes `blocks` <= dense->blocks blocks of `hop` outputs. routes: in, out and the strides are read. Before in[0],
 * points - hop + (partitions - 1) hop frames are readable. `parts` is host memory. Outputs without a part are not
 * written. */
cudaError_t gck_dense_convolve(const gck_routes *routes, const gck_dense *dense, const gck_dense_part *parts,
                               int parts_count, int blocks, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
