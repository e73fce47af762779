/* Fuzzes calibration files: a file is ignored, or gives times in the range that plans can use. */
#include "fuzz.h"

#include "libgpuconv/conv/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    gc_costs c;
    char *text = malloc(size ? size : 1); /* of exact size, so that the sanitizer detects a read past the end */
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
