/* Orientations from a file, or the latest one from OSC. */
#include "follow.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/space/head.h"
#include "osc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 1000 /* that are taken at a time */ };

struct gc_follow {
    gpuconv_head *head;    /* of a file; NULL: OSC */
    gc_osc *osc;           /* NULL: a file */
    gc_orientation latest; /* of OSC */
};

void gc_follow_free(gc_follow *f) {
    if (!f)
        return;
    gc_osc_close(f->osc);
    gpuconv_head_free(f->head);
    free(f);
}

/* Takes the messages that have arrived. One whose address ends in ypr turns the head. */
static void take_messages(gc_follow *f) {
    gc_osc_message m;
    for (int taken = 0; taken < MESSAGES && gc_osc_take(f->osc, &m); taken++) {
        const size_t length = strlen(m.address);
        const double *v = m.value;
        if (m.count == 3 && length >= 3 && strcmp(m.address + length - 3, "ypr") == 0 && fabs(v[0]) <= 360 &&
            fabs(v[1]) <= 360 && fabs(v[2]) <= 360)
            f->latest = (gc_orientation){v[0], v[1], v[2]};
    }
}

gpuconv_status gc_follow_open(const char *source, gc_follow **follow, gpuconv_error *error) {
    *follow = NULL;
    gc_follow *f = gc_calloc(1, sizeof *f);
    if (!f)
        return gc_fail_memory(error, "following a head");
    const bool osc = strcmp(source, "osc") == 0 || strncmp(source, "osc:", 4) == 0;
    gpuconv_status status =
        osc ? gc_osc_open(source[3] ? source + 4 : "9000", &f->osc, error) : gpuconv_head_load(source, &f->head, error);
    if (status) {
        gc_follow_free(f);
        return status;
    }
    *follow = f;
    return GPUCONV_OK;
}

gc_orientation gc_follow_at(gc_follow *f, double seconds) {
    double angle[3];
    if (f->osc) {
        take_messages(f);
        return f->latest;
    }
    gc_head_at(f->head, seconds, angle);
    return (gc_orientation){remainder(angle[0], 360), remainder(angle[1], 360), remainder(angle[2], 360)};
}
