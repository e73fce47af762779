/* A calibration file of any bytes: understood with figures that plans can use, or as good as none. */
#include "fuzz.h"

#include "libgpuconv/engine/costs.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gc_costs c;
    char *text = malloc(size ? size : 1); /* of its own, so that a byte read behind it shows */
    if (!text)
        return 0;
    memcpy(text, data, size);
    if (gc_costs_parse(text, size, &c)) {
        int figures = *c.cuda ? GC_COSTS : GC_COST_CUDA_TAP;
        for (int i = 0; i < figures; i++)
            if (!(c.seconds[i] > 0 && c.seconds[i] < 1e3))
                abort();
        if (!memchr(c.cpu, '\0', sizeof c.cpu) || !memchr(c.cuda, '\0', sizeof c.cuda))
            abort();
    }
    free(text);
    return 0;
}
