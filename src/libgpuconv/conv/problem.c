#include "problem.h"

#include "libgpuconv/core/memory.h"

bool gc_problem_init(gc_problem *p, const gpuconv_ir *ir, int64_t frames, int64_t latency) {
    *p = (gc_problem){.ir = ir, .frames = frames, .chunk_most = latency > 0 ? latency / (GC_BOUNDED_SLOTS - 1) : 0};
    if (!gc_components_find(ir, &p->components))
        return false;
    p->products = gc_components_products(&p->components);
    return true;
}

void gc_problem_free(gc_problem *p) {
    gc_components_free(&p->components);
}

int64_t gc_problem_frames(const gc_problem *p, int64_t most) {
    return p->frames < 0 ? most : gc_min(p->frames, most);
}
