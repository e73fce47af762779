/*
 * Directions on the sphere: the search for the nearest, and triangles between them.
 *
 * The search uses a k-d tree of unit vectors (Bentley, CACM 18 (1975), 509), balanced and without pointers: the root of
 * a range of nodes is its middle, which divides it along x, y or z in turn.
 *
 * The walk through the mesh (Devillers, Pion & Teillaud, Walking in a triangulation, 2001) goes from a triangle at the
 * nearest direction across an edge that has the direction on its other side, until none has. Sets leave parts of the
 * sphere open: most have no directions below, some only a circle. Of the axes and diagonals of the room those that are
 * far from every measurement become points without a response. The triangles at them have the directions at the edge of
 * the set as their other corners, which share the weight.
 */
#include "sphere.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- The tree ---------------------------------------------------------------------------------------------------- */

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

/* ---- The mesh ---------------------------------------------------------------------------------------------------- */

enum {
    DIAGONALS = 8,
    OUTER = 6 + DIAGONALS,
    MAX_DIRECTIONS = 1 << 16 /* Qhull, which cannot be cancelled, takes about 0.4 s for them */
};

static const double open_angle = 0.25 * M_PI; /* radians without a measurement that leave a part open */

struct gc_sphere_mesh {
    int points, measured; /* the first points are the measured ones */
    double *unit;         /* per point */
    int *index;           /* per measured point: of its position */
    int *start;           /* per position up to the largest index: a triangle at it; -1: none */
    int positions;
    int triangles;
    gc_triangle *triangle; /* seen from outside counter-clockwise */
    gc_triangle *across;   /* per triangle: the one beyond the edge opposite to each corner; -1: none */
};

/* An edge of a triangle, opposite to its corner `side`. */
typedef struct edge {
    int low, high, triangle, side;
} edge;

static double dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Returns the product a . (b x c): positive if a, b, c turn counter-clockwise. */
static double triple(const double a[3], const double b[3], const double c[3]) {
    const double cross[3] = {b[1] * c[2] - b[2] * c[1], b[2] * c[0] - b[0] * c[2], b[0] * c[1] - b[1] * c[0]};
    return dot(a, cross);
}

static const double *corner_of(const gc_sphere_mesh *m, int triangle, int corner) {
    return m->unit + 3 * (int64_t)m->triangle[triangle].corner[corner];
}

/* Adds the directions around the open parts. */
static void add_outer_points(gc_sphere_mesh *m, const gc_direction_tree *tree) {
    for (int i = 0; i < OUTER; i++) {
        double *at = m->unit + 3 * (int64_t)m->points, angle;
        for (int k = 0; k < 3; k++)
            at[k] = i < DIAGONALS              ? (i >> k & 1 ? 1 : -1) * sqrt(1.0 / 3)
                    : (i - DIAGONALS) / 2 != k ? 0
                    : i % 2                    ? 1
                                               : -1;
        (void)gc_direction_tree_nearest(tree, at, &angle);
        m->points += angle > open_angle;
    }
}

/* Turns every triangle counter-clockwise, and notes one at each measured direction. */
static void orient(gc_sphere_mesh *m) {
    for (int p = 0; p < m->positions; p++)
        m->start[p] = -1;
    for (int t = 0; t < m->triangles; t++) {
        int *corner = m->triangle[t].corner;
        if (triple(corner_of(m, t, 0), corner_of(m, t, 1), corner_of(m, t, 2)) < 0) {
            const int first = corner[0];
            corner[0] = corner[1];
            corner[1] = first;
        }
        for (int k = 0; k < 3; k++)
            if (corner[k] < m->measured)
                m->start[m->index[corner[k]]] = t;
    }
}

static int compare_edges(const void *a, const void *b) {
    const edge *one = a, *other = b;
    if (one->low != other->low)
        return one->low < other->low ? -1 : 1;
    return (one->high > other->high) - (one->high < other->high);
}

/* Finds the neighbours of all triangles: those with the same edge. Returns MEMORY. */
static gpuconv_status connect(gc_sphere_mesh *m, gpuconv_error *error) {
    const int64_t count = 3 * (int64_t)m->triangles;
    edge *edges = gc_calloc(count, sizeof *edges);
    m->across = gc_calloc(m->triangles, sizeof *m->across);
    if (!edges || !m->across) {
        free(edges);
        return gc_fail_memory(error, "the triangles of the directions");
    }
    for (int64_t e = 0; e < count; e++) {
        const int t = (int)(e / 3), side = (int)(e % 3);
        const int a = m->triangle[t].corner[(side + 1) % 3], b = m->triangle[t].corner[(side + 2) % 3];
        edges[e] = (edge){a < b ? a : b, a < b ? b : a, t, side};
        m->across[t].corner[side] = -1;
    }
    qsort(edges, (size_t)count, sizeof *edges, compare_edges);
    for (int64_t e = 1; e < count; e++)
        if (compare_edges(&edges[e - 1], &edges[e]) == 0) {
            m->across[edges[e].triangle].corner[edges[e].side] = edges[e - 1].triangle;
            m->across[edges[e - 1].triangle].corner[edges[e - 1].side] = edges[e].triangle;
        }
    free(edges);
    return GPUCONV_OK;
}

/* Takes the directions of a tree. Returns FORMAT (too many), MEMORY. */
static gpuconv_status take_directions(gc_sphere_mesh *m, const gc_direction_tree *tree, gpuconv_error *error) {
    const int count = gc_direction_tree_count(tree);
    if (count > MAX_DIRECTIONS)
        return gc_fail(error, GPUCONV_ERROR_FORMAT,
                       "at most %d directions of a distance are divided into triangles, not %d", MAX_DIRECTIONS, count);
    m->points = m->measured = count;
    m->unit = gc_calloc((int64_t)count + OUTER, 3 * (int64_t)sizeof *m->unit);
    m->index = gc_calloc(count, sizeof *m->index);
    if (!m->unit || !m->index)
        return gc_fail_memory(error, "the triangles of the directions");
    for (int i = 0; i < count; i++) {
        m->index[i] = gc_direction_tree_get(tree, i, m->unit + 3 * (int64_t)i);
        m->positions = m->index[i] >= m->positions ? m->index[i] + 1 : m->positions;
    }
    m->start = gc_calloc(m->positions, sizeof *m->start);
    return m->start ? GPUCONV_OK : gc_fail_memory(error, "the triangles of the directions");
}

gpuconv_status gc_sphere_mesh_new(const gc_direction_tree *tree, gc_sphere_mesh **mesh, gpuconv_error *error) {
    gc_sphere_mesh *m = gc_calloc(1, sizeof *m);
    *mesh = NULL;
    if (!m)
        return gc_fail_memory(error, "the triangles of the directions");
    gpuconv_status status = take_directions(m, tree, error);
    if (!status) {
        add_outer_points(m, tree);
        status = gc_sphere_hull(m->unit, m->points, &m->triangle, &m->triangles, error);
    }
    if (!status) {
        orient(m);
        status = connect(m, error);
    }
    if (status)
        gc_sphere_mesh_free(m);
    else
        *mesh = m;
    return status;
}

void gc_sphere_mesh_free(gc_sphere_mesh *m) {
    if (!m)
        return;
    free(m->unit);
    free(m->index);
    free(m->start);
    free(m->triangle);
    free(m->across);
    free(m);
}

/* Writes the weights of a triangle's corners for a direction, in units of the triangle's volume; the sum of the
 * weights is positive where the triangle is on the direction's side. Returns the corner of the least. */
static int weigh(const gc_sphere_mesh *m, int triangle, const double at[3], double weight[3]) {
    int least = 0;
    for (int k = 0; k < 3; k++) {
        weight[k] = triple(at, corner_of(m, triangle, (k + 1) % 3), corner_of(m, triangle, (k + 2) % 3));
        least = weight[k] < weight[least] ? k : least;
    }
    return least;
}

/* Gives the weights of corners without a response to the others. Returns false if there are no others. */
static bool share_weights(const gc_sphere_mesh *m, int triangle, int nearest, int corner[3], double weight[3]) {
    const double negligible = 1e-6;
    double sum = 0, whole = weight[0] + weight[1] + weight[2];
    for (int k = 0; k < 3; k++) {
        const int point = m->triangle[triangle].corner[k];
        const bool counts = point < m->measured && weight[k] > negligible * whole;
        corner[k] = counts ? m->index[point] : nearest;
        weight[k] = counts ? weight[k] : 0;
        sum += weight[k];
    }
    for (int k = 0; k < 3; k++)
        weight[k] /= sum;
    return sum > 0;
}

bool gc_sphere_mesh_find(const gc_sphere_mesh *m, const double at[3], int nearest, int corner[3], double weight[3]) {
    const double inside = -1e-12;
    double unit[3];
    (void)gc_unit_vector(at, unit);
    int t = nearest < m->positions && m->start[nearest] >= 0 ? m->start[nearest] : 0;
    for (int step = 0; step < m->triangles && t >= 0; step++) {
        const int least = weigh(m, t, unit, weight);
        if (weight[least] >= inside)
            return weight[0] + weight[1] + weight[2] > 0 && share_weights(m, t, nearest, corner, weight);
        t = m->across[t].corner[least];
    }
    return false;
}
