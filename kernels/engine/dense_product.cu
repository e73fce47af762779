/* The choice of a kernel for the products of dense matrices (dense.h): tensor cores or multiply-adds, and the tiles
 * that leave the fewest columns empty. */
#include "dense_product.cuh"

namespace {

/* Returns the most shared memory that a form takes. */
int most_bytes(const dense_form *(*forms)(int *count)) {
    int count, bytes = 0;
    const dense_form *form = forms(&count);
    for (int i = 0; i < count; i++)
        bytes = max(bytes, form[i].bytes);
    return bytes;
}

/* Returns the form with the fewest rows that are enough, and of these the one with the least work: a tile costs its
 * columns and about as much as eight more. */
const dense_form *choose(const dense_form *form, int count, int outputs, int blocks) {
    const dense_form *best = NULL;
    int64_t least = 0;
    for (int i = 0; i < count; i++) {
        if (best && best->rows >= outputs && form[i].rows > best->rows)
            break;
        const int64_t cost = (int64_t)((blocks + form[i].columns - 1) / form[i].columns) * (form[i].columns + 8);
        if (!best || form[i].rows > best->rows || cost < least) {
            best = form + i;
            least = cost;
        }
    }
    return best;
}

} // namespace

int gck_dense_product_bytes() {
    return most_bytes(dense_fma_forms);
}

cudaError_t gck_dense_uses_tensor_cores(int *uses) {
    int number = 0;
    gck_device device = {};
    bool compiled = false;
    cudaError_t err = cudaGetDevice(&number);
    if (!err)
        err = gck_device_query(number, &device);
    if (!err)
        err = dense_tensor_is_compiled(&compiled);
    *uses = compiled && device.tensor_cores && device.architecture >= 80 &&
            device.shared_bytes >= most_bytes(dense_tensor_forms);
    return err;
}

cudaError_t gck_dense_product(const gck_dense &a, const gck_dense_part &part, cudaStream_t stream) {
    const dense::operands o = {part.responses,
                               a.spectra,
                               a.sums,
                               a.tensor_cores ? a.peaks : NULL,
                               a.tensor_cores ? a.response_peaks + part.first_output : NULL,
                               part.first_input,
                               part.inputs,
                               part.first_output,
                               part.outputs,
                               a.inputs,
                               a.outputs,
                               a.partitions,
                               a.blocks + a.partitions - 1,
                               a.blocks};
    int count;
    const dense_form *forms = a.tensor_cores ? dense_tensor_forms(&count) : dense_fma_forms(&count);
    return choose(forms, count, part.outputs, a.blocks)->launch(o, a.points, stream);
}
