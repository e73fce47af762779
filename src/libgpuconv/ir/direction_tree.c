/* A k-d tree of unit vectors (Bentley, CACM 18 (1975), 509), balanced and without pointers: the root of a range of
 * nodes is its middle, which divides it along x, y or z in turn. */
#include "direction_tree.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdlib.h>

typedef struct node {
    double at[3], distance;
    int index;
} node;

struct gc_direction_tree {
    int count;
    node *nodes;
};

/* A search: the squared chord within which nodes count, and the best node yet. */
typedef struct search {
    const node *nodes;
    double at[3], distance;
    double chord2;
    const node *best;
} search;

double gc_unit_vector(const double position[3], double unit[3]) {
    const double length = sqrt(position[0] * position[0] + position[1] * position[1] + position[2] * position[2]);
    for (int i = 0; i < 3; i++)
        unit[i] = length > 0 ? position[i] / length : i == 0;
    return length;
}

/* Returns whether a node comes before another one along an axis. */
static bool is_before(const node *a, const node *b, int axis) {
    return a->at[axis] != b->at[axis] ? a->at[axis] < b->at[axis] : a->index < b->index;
}

/* Moves the node that is number `middle` along an axis to its place, lower ones before it and higher ones behind it
 * (Hoare, CACM 4 (1961), 321). Ends early once cancelled. */
static void select_middle(node *nodes, int count, int middle, int axis) {
    for (int low = 0, high = count - 1; low < high && !gc_cancelled();) {
        const node pivot = nodes[low + (high - low) / 2];
        int i = low, j = high;
        while (i <= j) {
            while (is_before(&nodes[i], &pivot, axis))
                i++;
            while (is_before(&pivot, &nodes[j], axis))
                j--;
            if (i <= j) {
                const node moved = nodes[i];
                nodes[i++] = nodes[j];
                nodes[j--] = moved;
            }
        }
        low = middle > j ? i : low;
        high = middle < i ? j : high;
    }
}

/* Orders the nodes of a range; the depth of the recursion is logarithmic. Ends early once cancelled. */
static void divide(node *nodes, int count, int depth) {
    if (count < 2 || gc_cancelled())
        return;
    const int middle = count / 2;
    select_middle(nodes, count, middle, depth % 3);
    divide(nodes, middle, depth + 1);
    divide(nodes + middle + 1, count - middle - 1, depth + 1);
}

gc_direction_tree *gc_direction_tree_new(const double *positions, const int *index, int count) {
    gc_direction_tree *tree = gc_calloc(1, sizeof *tree);
    if (!tree)
        return NULL;
    tree->count = count;
    tree->nodes = gc_calloc(count, sizeof *tree->nodes);
    if (!tree->nodes) {
        gc_direction_tree_free(tree);
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        tree->nodes[i].index = index[i];
        tree->nodes[i].distance = gc_unit_vector(positions + 3 * (int64_t)index[i], tree->nodes[i].at);
    }
    divide(tree->nodes, count, 0);
    return tree;
}

void gc_direction_tree_free(gc_direction_tree *tree) {
    if (!tree)
        return;
    free(tree->nodes);
    free(tree);
}

int gc_direction_tree_count(const gc_direction_tree *tree) {
    return tree->count;
}

int gc_direction_tree_get(const gc_direction_tree *tree, int i, double unit[3]) {
    for (int k = 0; k < 3; k++)
        unit[k] = tree->nodes[i].at[k];
    return tree->nodes[i].index;
}

static double chord2_of(const node *n, const double at[3]) {
    const double x = n->at[0] - at[0], y = n->at[1] - at[1], z = n->at[2] - at[2];
    return x * x + y * y + z * z;
}

/* Keeps the nearest node. */
static void keep_nearest(search *s, const node *n) {
    const double chord2 = chord2_of(n, s->at);
    if (!s->best || chord2 < s->chord2) {
        s->best = n;
        s->chord2 = chord2;
    }
}

/* Keeps, of the nodes within the chord, the nearest in distance. */
static void keep_by_distance(search *s, const node *n) {
    if (chord2_of(n, s->at) > s->chord2)
        return;
    const double off = fabs(n->distance - s->distance), least = s->best ? fabs(s->best->distance - s->distance) : 0;
    if (!s->best || off < least || (off == least && n->index < s->best->index))
        s->best = n;
}

static void descend(search *s, int begin, int count, int depth, void (*keep)(search *, const node *)) {
    if (count < 1)
        return;
    const int middle = count / 2;
    const node *n = s->nodes + begin + middle;
    const double across = s->at[depth % 3] - n->at[depth % 3];
    const int upper = begin + middle + 1, above = count - middle - 1;
    descend(s, across < 0 ? begin : upper, across < 0 ? middle : above, depth + 1, keep);
    keep(s, n);
    if (across * across <= s->chord2)
        descend(s, across < 0 ? upper : begin, across < 0 ? above : middle, depth + 1, keep);
}

int gc_direction_tree_nearest(const gc_direction_tree *tree, const double at[3], double *angle) {
    const double same = 1e-6; /* radians between directions that count as one */
    search s = {.nodes = tree->nodes, .chord2 = 5};
    s.distance = gc_unit_vector(at, s.at);
    descend(&s, 0, tree->count, 0, keep_nearest);
    *angle = 2 * asin(fmin(1, sqrt(s.chord2) / 2));
    s.chord2 = (sqrt(s.chord2) + same) * (sqrt(s.chord2) + same);
    s.best = NULL;
    descend(&s, 0, tree->count, 0, keep_by_distance);
    return s.best->index;
}
