/* Real spherical harmonics by the recursion of the associated Legendre functions, without the Condon-Shortley phase
 * (Nachbar, Zotter, Deleflie & Sontacchi, AmbiX: a suggested ambisonics format, Ambisonics Symposium 2011). */
#include "spherical.h"

#include <math.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

int gc_ambisonic_order(int channels) {
    for (int order = 1; order <= GC_AMBISONIC_ORDER; order++)
        if ((order + 1) * (order + 1) == channels)
            return order;
    return 0;
}

/* Returns sqrt((2 - [m = 0]) (n - m)! / (n + m)!). */
static double sn3d(int n, int m) {
    double ratio = 1;
    for (int k = n - m + 1; k <= n + m; k++)
        ratio /= k;
    return sqrt((m ? 2 : 1) * ratio);
}

void gc_spherical_harmonics(int order, const double d[3], double *values) {
    const double length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]), azimuth = atan2(d[1], d[0]);
    const double z = d[2] / length, flat = sqrt(fmax(0, 1 - z * z));
    double diagonal = 1; /* P_m^m */
    for (int m = 0; m <= order; m++) {
        double before = 0, legendre = diagonal;
        for (int n = m; n <= order; n++) {
            const double value = sn3d(n, m) * legendre;
            values[n * n + n + m] = value * cos(m * azimuth);
            if (m)
                values[n * n + n - m] = value * sin(m * azimuth);
            const double next = ((2 * n + 1) * z * legendre - (n + m) * before) / (n - m + 1);
            before = legendre;
            legendre = next;
        }
        diagonal *= (2 * m + 1) * flat;
    }
}

gc_rotation gc_rotation_of(double yaw, double pitch, double roll) {
    const double a = yaw * pi / 180, b = pitch * pi / 180, c = roll * pi / 180;
    const double ca = cos(a), sa = sin(a), cb = cos(b), sb = sin(b), cc = cos(c), sc = sin(c);
    /* the columns are the directions of the nose, the left ear and the top of the head in the room */
    return (gc_rotation){{{ca * cb, -sa * cc - ca * sb * sc, sa * sc - ca * sb * cc},
                          {sa * cb, ca * cc - sa * sb * sc, -ca * sc - sa * sb * cc},
                          {sb, cb * sc, cb * cc}}};
}

void gc_rotate_to_head(const gc_rotation *head, const double room[3], double to[3]) {
    const double from[3] = {room[0], room[1], room[2]};
    for (int i = 0; i < 3; i++)
        to[i] = head->row[0][i] * from[0] + head->row[1][i] * from[1] + head->row[2][i] * from[2];
}

/* Factors the matrix in place: its lower triangle becomes L with L L^T = gram. Returns the least pivot relative to the
 * largest diagonal element; 0 or less if the matrix is not positive definite. */
static double factor(double *g, int n) {
    double least = HUGE_VAL, largest = 0;
    for (int i = 0; i < n; i++)
        largest = fmax(largest, g[i * n + i]);
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++) {
            double sum = g[i * n + j];
            for (int k = 0; k < j; k++)
                sum -= g[i * n + k] * g[j * n + k];
            if (i != j) {
                g[i * n + j] = sum / g[j * n + j];
                continue;
            }
            least = fmin(least, sum / largest);
            if (!(sum > 0))
                return 0;
            g[i * n + i] = sqrt(sum);
        }
    return least;
}

bool gc_solve_normal(double *gram, int n, double *right, int64_t columns, bool *regularised) {
    const double well = 1e-5, added = 1e-3;
    double copy[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS], largest = 0;
    memcpy(copy, gram, (size_t)n * (size_t)n * sizeof *copy);
    for (int i = 0; i < n; i++)
        largest = fmax(largest, gram[i * n + i]);
    *regularised = factor(gram, n) < well;
    if (*regularised) {
        memcpy(gram, copy, (size_t)n * (size_t)n * sizeof *copy);
        for (int i = 0; i < n; i++)
            gram[i * n + i] += added * largest;
        if (!(factor(gram, n) > 0))
            return false;
    }
    for (int i = 0; i < n; i++) /* L y = right */
        for (int k = 0; k <= i; k++)
            for (int64_t c = 0; c < columns; c++)
                right[i * columns + c] = k < i ? right[i * columns + c] - gram[i * n + k] * right[k * columns + c]
                                               : right[i * columns + c] / gram[i * n + i];
    for (int i = n - 1; i >= 0; i--) { /* L^T x = y */
        for (int k = i + 1; k < n; k++)
            for (int64_t c = 0; c < columns; c++)
                right[i * columns + c] -= gram[k * n + i] * right[k * columns + c];
        for (int64_t c = 0; c < columns; c++)
            right[i * columns + c] /= gram[i * n + i];
    }
    return true;
}

bool gc_rotate_harmonics(int order, const gc_rotation *head, double *matrix) {
    const int n = (order + 1) * (order + 1), points = 4 * n; /* of a spiral, which covers the sphere evenly */
    double gram[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS] = {0}, room[GC_AMBISONIC_CHANNELS] = {0};
    double turned[GC_AMBISONIC_CHANNELS] = {0}, right[GC_AMBISONIC_CHANNELS * GC_AMBISONIC_CHANNELS] = {0};
    bool regularised;
    for (int p = 0; p < points; p++) {
        const double z = 1 - (2 * p + 1.0) / points, around = p * pi * (3 - sqrt(5)), flat = sqrt(1 - z * z);
        const double direction[3] = {flat * cos(around), flat * sin(around), z};
        double in_head[3];
        gc_rotate_to_head(head, direction, in_head);
        gc_spherical_harmonics(order, direction, room);
        gc_spherical_harmonics(order, in_head, turned);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < n; k++) {
                gram[i * n + k] += room[i] * room[k];
                right[i * n + k] += room[i] * turned[k];
            }
    }
    if (!gc_solve_normal(gram, n, right, n, &regularised))
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            matrix[i * n + k] = right[k * n + i];
    return true;
}
