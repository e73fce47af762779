/* Heads from arrays and from files. */
#include "head.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Returns whether a row is in its ranges. Yaws may go around many times. */
static bool is_row(const double row[4]) {
    return row[0] >= 0 && row[0] <= 1e9 && fabs(row[1]) <= 1e6 && fabs(row[2]) <= 1e6 && fabs(row[3]) <= 1e6;
}

static gpuconv_head *blank(void) {
    gpuconv_head *h = gc_calloc(1, sizeof *h);
    if (h)
        h->track.width = 3;
    return h;
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
    gpuconv_head *h = blank();
    gpuconv_status status = h ? GPUCONV_OK : gc_fail_memory(error, "the head");
    for (int64_t i = 0; i < count && !status; i++) {
        const double row[4] = {seconds[i], angles[3 * i], angles[3 * i + 1], angles[3 * i + 2]};
        if (!is_row(row) || (i > 0 && seconds[i] < seconds[i - 1]))
            status = gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                             "row %lld of the head: times rise from 0 s, angles are up to 1000000 degrees",
                             (long long)i + 1);
        else
            status = gc_track_append(&h->track, seconds[i], row + 1, error);
    }
    return finish(status, h, head);
}

/* Appends a line of a text. Returns FORMAT, MEMORY. */
static gpuconv_status append(gc_track *t, const double *line, int count, gpuconv_error *error) {
    double row[4] = {0};
    if (count >= 2 && count <= 4)
        memcpy(row, line, (size_t)count * sizeof *row);
    if (count < 2 || count > 4 || !is_row(row))
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "is not SECONDS YAW [PITCH [ROLL]] in seconds and degrees");
    if (t->count && row[0] < t->seconds[t->count - 1])
        return gc_fail(error, GPUCONV_ERROR_FORMAT, "%g s is before the line above", row[0]);
    return gc_track_append(t, row[0], row + 1, error);
}

/* Takes the messages whose address ends in ypr, as head trackers send them. */
static int64_t find_channel(const char *address) {
    const size_t length = strlen(address);
    return length >= 3 && strcmp(address + length - 3, "ypr") == 0 ? 0 : -1;
}

gpuconv_status gpuconv_head_load(const char *name, gpuconv_head **head, gpuconv_error *error) {
    static const gc_track_form form = {"orientation", append, find_channel, 3};
    if (!gc_begin(head, name, __func__, error))
        return GPUCONV_ERROR_ARGUMENT;
    gpuconv_head *h = blank();
    return finish(h ? gc_track_read(&h->track, &form, name, error) : gc_fail_memory(error, name), h, head);
}
