/* Takes the place of sphere_hull.c in a build without libqhull. */
#include "libgpuconv/core/error.h"
#include "sphere.h"

gpuconv_status gc_sphere_hull(const double *points, int points_count, gc_triangle **triangles, int *count,
                              gpuconv_error *error) {
    (void)points;
    (void)points_count;
    *triangles = NULL;
    *count = 0;
    return gc_fail_without(error, "interpolation between directions", "libqhull", "libqhull-dev");
}
