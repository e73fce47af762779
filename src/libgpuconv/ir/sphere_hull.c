/* The convex hull of points on a sphere, by Qhull (Barber, Dobkin & Huhdanpaa, The Quickhull algorithm for convex
 * hulls, ACM TOMS 22 (1996), 469). */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "sphere.h"

#include <libqhull_r/libqhull_r.h>
#include <stdio.h>
#include <stdlib.h>

/* Copies the facets, all of which are triangles. Returns MEMORY. */
static gpuconv_status copy_facets(qhT *qh, gc_triangle **triangles, int *count, gpuconv_error *error) {
    facetT *facet;
    vertexT *vertex, **vertexp;
    gc_triangle *made = gc_calloc(gc_max(1, qh->num_facets), sizeof *made);
    if (!made)
        return gc_fail_memory(error, "the triangles of the directions");
    *count = 0;
    FORALLfacets {
        int corners = 0;
        FOREACHvertex_(facet->vertices) {
            if (corners < 3)
                made[*count].corner[corners++] = qh_pointid(qh, vertex->point);
        }
        *count += corners == 3;
    }
    *triangles = made;
    return GPUCONV_OK;
}

gpuconv_status gc_sphere_hull(const double *points, int points_count, gc_triangle **triangles, int *count,
                              gpuconv_error *error) {
    char options[] = "qhull Qt Pp", said[4096] = "";
    int kept, lost;
    qhT state, *qh = &state;
    gpuconv_status status;
    FILE *messages = fmemopen(said, sizeof said, "w"); /* else they go to standard error */
    if (!messages)
        return gc_fail_memory(error, "the triangles of the directions");
    coordT *copy = gc_alloc((int64_t)points_count * 3, sizeof *copy);
    for (int64_t i = 0; copy && i < (int64_t)points_count * 3; i++)
        copy[i] = points[i];
    qh_zero(qh, messages);
    if (!copy)
        status = gc_fail_memory(error, "the triangles of the directions");
    else if (qh_new_qhull(qh, 3, points_count, copy, False, options, messages, messages) != 0)
        status =
            gc_fail(error, GPUCONV_ERROR_FORMAT, "the %d directions cannot be divided into triangles", points_count);
    else
        status = copy_facets(qh, triangles, count, error);
    qh_freeqhull(qh, !qh_ALL);
    qh_memfreeshort(qh, &kept, &lost);
    free(copy);
    (void)fclose(messages);
    return status;
}
