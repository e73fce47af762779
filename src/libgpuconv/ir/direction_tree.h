/* Search for the nearest of many directions, in logarithmic time. */
#ifndef GC_IR_DIRECTION_TREE_H
#define GC_IR_DIRECTION_TREE_H

typedef struct gc_direction_tree gc_direction_tree;

/* Writes the unit vector of a position; of one without length that to the front. Returns the length. */
double gc_unit_vector(const double position[3], double unit[3]);

/* Makes the tree of positions[3 * index[i]] (x, y, z), i < count, count >= 1. Returns NULL without memory. */
gc_direction_tree *gc_direction_tree_new(const double *positions, const int *index, int count);
void gc_direction_tree_free(gc_direction_tree *tree);

/* Returns the number of directions; writes the unit vector of one, i below that number, in the tree's own order, and
 * returns the index of its position. */
int gc_direction_tree_count(const gc_direction_tree *tree);
int gc_direction_tree_get(const gc_direction_tree *tree, int i, double unit[3]);

/* Returns the index of the position whose direction is nearest to that of `at`; among those of the same direction, the
 * one nearest in distance, then the lowest index. *angle gets the angle in radians. */
int gc_direction_tree_nearest(const gc_direction_tree *tree, const double at[3], double *angle);

#endif
