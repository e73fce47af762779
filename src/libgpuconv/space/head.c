/* Heads from arrays and from files. */
#include "head.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a row is in its ranges. Yaws may go around many times. */
static bool is_row(double seconds, const double angle[3]) {
    return seconds >= 0 && seconds <= 1e9 && fabs(angle[0]) <= 1e6 && fabs(angle[1]) <= 1e6 && fabs(angle[2]) <= 1e6;
}

void gpuconv_head_free(gpuconv_head *h) {
    if (!h)
        return;
    gc_track_free(&h->track);
    free(h);
}

/* Hands a head over, or frees it after a failure. Returns the status. */
static gpuconv_status finish(gpuconv_status status, gpuconv_head *made, gpuconv_head **head) {
    if (status)
        gpuconv_head_free(made);
    else
        *head = made;
    return status;
}

gpuconv_status gpuconv_head_new(const double *seconds, const double *angles, int64_t count, gpuconv_head **head,
                                gpuconv_error *error) {
    if (!gc_begin(head, seconds, __func__, error) || !angles)
        return gc_fail_null(error, __func__);
    if (count < 1)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "a head has 1 row or more, not %lld", (long long)count);
    gpuconv_head *h = gc_calloc(1, sizeof *h);
    gpuconv_status status = h ? GPUCONV_OK : gc_fail_memory(error, "the head");
    for (int64_t i = 0; i < count && !status; i++) {
        if (!is_row(seconds[i], angles + 3 * i) || (i > 0 && seconds[i] < seconds[i - 1]))
            status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                             "row %lld of the head: times rise from 0 s, angles are up to 1000000 degrees",
                             (long long)i + 1);
        else
            status = gc_track_append(&h->track, seconds[i], angles + 3 * i, error);
    }
    return finish(status, h, head);
}

/* Takes the messages whose address ends in ypr, as head trackers send them. */
static int64_t find_channel(const char *address) {
    const size_t length = strlen(address);
    return length >= 3 && strcmp(address + length - 3, "ypr") == 0 ? 0 : -1;
}

gpuconv_status gpuconv_head_load(const char *name, gpuconv_head **head, gpuconv_error *error) {
    static const gc_track_form form = {.what = "orientation",
                                       .syntax = "SECONDS YAW [PITCH [ROLL]] in seconds and degrees",
                                       .ranges = "times are 0 s or more, angles up to 1000000 degrees",
                                       .least = 1,
                                       .is_row = is_row,
                                       .find_channel = find_channel,
                                       .angles = 3};
    if (!gc_begin(head, name, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_head *h = gc_calloc(1, sizeof *h);
    return finish(h ? gc_track_read(&h->track, 1, &form, name, &h->text, error) : gc_fail_memory(error, name), h, head);
}
