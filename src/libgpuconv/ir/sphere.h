/* Directions on the sphere: the search for the nearest of many in logarithmic time, and triangles between them: the
 * Delaunay triangulation, which is the convex hull of their unit vectors. */
#ifndef GC_IR_SPHERE_H
#define GC_IR_SPHERE_H

#include "gpuconv.h"

typedef struct gc_direction_tree gc_direction_tree;

/* Writes the unit vector of a position; of one without length that to the front. Returns the length. */
double gc_unit_vector(const double position[3], double unit[3]);

/* Makes the tree of positions[3 * index[i]] (x, y, z), i < count, count >= 1. Returns NULL without memory. */
gc_direction_tree *gc_direction_tree_new(const double *positions, const int *index, int count);
void gc_direction_tree_free(gc_direction_tree *tree);

/* Returns the index of the position whose direction is nearest to that of `at`; among those of the same direction, the
 * one nearest in distance, then the lowest index. *angle gets the angle in radians. */
int gc_direction_tree_nearest(const gc_direction_tree *tree, const double at[3], double *angle);

/* Returns the number of directions. */
int gc_direction_tree_count(const gc_direction_tree *tree);

/* Writes the unit vector of direction i, 0 <= i < the number of directions, in the order of the tree. Returns the index
 * of its position. */
int gc_direction_tree_get(const gc_direction_tree *tree, int i, double unit[3]);

typedef struct gc_sphere_mesh gc_sphere_mesh;

/* Makes the mesh of the directions of a tree. Returns FORMAT (they cannot be divided), MEMORY, UNSUPPORTED (a build
 * without libqhull). */
gpuconv_status gc_sphere_mesh_new(const gc_direction_tree *tree, gc_sphere_mesh **mesh, gpuconv_error *error);
void gc_sphere_mesh_free(gc_sphere_mesh *mesh);

/* Finds the corners of the triangle around a direction and their weights, which sum to 1: the weights with which the
 * unit vectors of the corners add up to the direction. A direction that the set leaves open has those of the edge.
 * `nearest` is the index of the position nearest in direction. Returns false if no triangle is there. */
bool gc_sphere_mesh_find(const gc_sphere_mesh *mesh, const double at[3], int nearest, int corner[3], double weight[3]);

/* A triangle of a hull: its corners, as numbers of points. */
typedef struct gc_triangle {
    int corner[3];
} gc_triangle;

/* Computes the convex hull of points[3 * i] on the unit sphere (sphere_hull.c): *triangles from gc_alloc, *count of
 * them. Returns FORMAT (they cannot be divided), MEMORY, UNSUPPORTED. */
gpuconv_status gc_sphere_hull(const double *points, int points_count, gc_triangle **triangles, int *count,
                              gpuconv_error *error);

#endif
