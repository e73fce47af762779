/* Checks open SOFA sets: the search for directions, the triangles around them, and what is made between measurements.
 * The sets are made here, from a pulse whose delay and level are known for every direction. */
#include "harness.h"

#include "libgpuconv/ir/sofa.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

enum { TAPS = 128, PULSE = 40, RECEIVERS = 2 };

static const char *const head_file = TESTS_SOURCE "/tests/sofa/head.sofa";
static const char *const delays_file = TESTS_SOURCE "/tests/sofa/delays.sofa";
static const double pi = 3.14159265358979323846;

/* Writes a direction of a spiral that covers the sphere evenly. */
static void spiral(int i, int count, double distance, double at[3]) {
    const double z = 1 - (2 * i + 1.0) / count, around = i * pi * (3 - sqrt(5)), flat = sqrt(1 - z * z);
    at[0] = distance * flat * cos(around);
    at[1] = distance * flat * sin(around);
    at[2] = distance * z;
}

/* Returns the delay at a receiver in frames, and the level: smooth functions of the direction. */
static double delay_at(const double at[3], int receiver) {
    const double side = receiver ? -1 : 1, length = fmax(1e-9, sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]));
    return 12 - 9 * side * at[1] / length + 2 * at[2] / length;
}

static double level_at(const double at[3], int receiver) {
    const double length = fmax(1e-9, sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]));
    return 1 + (receiver ? -0.4 : 0.4) * at[1] / length;
}

/* Returns a pulse without content near half the rate, at any time. */
static double pulse(double time) {
    return exp(-time * time / 8) * cos(0.3 * time);
}

/* Makes a set; its delays stand in the file or in the responses. */
static gpuconv_sofa *make_set(const double *positions, int count, bool in_file) {
    gpuconv_error error = {0};
    gpuconv_sofa *s = gc_sofa_new(gc_ir_blank(1, 1, count * RECEIVERS, 1, TAPS, 48000), count, RECEIVERS);
    CHECK(s && (s->name = strdup("a set")), "no memory");
    memcpy(s->position, positions, (size_t)count * 3 * sizeof *positions);
    for (int p = 0; p < count * RECEIVERS; p++) {
        const double *at = positions + 3 * (p / RECEIVERS), delay = delay_at(at, p % RECEIVERS);
        s->delay[p] = in_file ? delay : 0;
        s->longest_delay = fmax(s->longest_delay, s->delay[p]);
        s->fractions = in_file;
        for (int i = 0; i < TAPS; i++)
            s->responses->taps[p * TAPS + i] =
                (float)(level_at(at, p % RECEIVERS) * pulse(i - PULSE - (in_file ? 0 : delay)));
    }
    CHECK(gc_sofa_make_shells(s, &error) == GPUCONV_OK, "%s", error.message);
    CHECK(gc_sofa_make_meshes(s, GPUCONV_INTERPOLATE_TRIANGLE, &error) == GPUCONV_OK, "%s", error.message);
    return s;
}

static gpuconv_sofa *spiral_set(int count, bool in_file) {
    double *positions = calloc((size_t)count * 3, sizeof *positions);
    CHECK(positions, "no memory");
    for (int i = 0; i < count; i++)
        spiral(i, count, 1.2, positions + 3 * i);
    gpuconv_sofa *s = make_set(positions, count, in_file);
    free(positions);
    return s;
}

static void random_direction(oracle_random *random, double at[3]) {
    do
        for (int k = 0; k < 3; k++)
            at[k] = (double)oracle_uniform(random);
    while (at[0] * at[0] + at[1] * at[1] + at[2] * at[2] < 0.01);
}

static double angle(const double a[3], const double b[3]) {
    const double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    return atan2(sqrt(x * x + y * y + z * z), a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
}

static void the_tree_finds_what_a_search_through_all_finds(void **state) {
    (void)state;
    oracle_random random = {.state = 3};
    gpuconv_sofa *s = spiral_set(700, false);
    for (int i = 0; i < 2000; i++) {
        double at[3], degrees, least = 10;
        random_direction(&random, at);
        if (i % 4 == 0) /* half-way between two, where a wrong bound would cut the other off */
            for (int k = 0; k < 3; k++)
                at[k] = s->position[3 * (i / 4) + k] + s->position[3 * (i / 4 + 1) + k] + 1e-3;
        const int found = gc_sofa_nearest(s, at, &degrees);
        for (int m = 0; m < s->measurements; m++)
            least = fmin(least, angle(s->position + 3 * m, at));
        CHECK(angle(s->position + 3 * found, at) <= least + 2e-6, "direction %d: not the nearest", i);
        CHECK(fabs(degrees * pi / 180 - least) < 1e-6, "direction %d: %g degrees", i, degrees);
    }
    gpuconv_sofa_free(s);
}

/* Checks that no measurement lies within the circle through the corners: the division is Delaunay's. */
static void check_circle(const gpuconv_sofa *s, const gc_blend *b) {
    const double *p = s->position + 3 * b->measurement[0], *q = s->position + 3 * b->measurement[1],
                 *r = s->position + 3 * b->measurement[2];
    double normal[3];
    for (int k = 0; k < 3; k++) {
        const int i = (k + 1) % 3, j = (k + 2) % 3;
        normal[k] = (q[i] - p[i]) * (r[j] - p[j]) - (q[j] - p[j]) * (r[i] - p[i]);
    }
    const double height = normal[0] * p[0] + normal[1] * p[1] + normal[2] * p[2];
    for (int m = 0; m < s->measurements; m++) {
        const double *at = s->position + 3 * m;
        const double over =
            (normal[0] * at[0] + normal[1] * at[1] + normal[2] * at[2] - height) * (height < 0 ? -1 : 1);
        CHECK(over < 1e-9, "measurement %d is within the circle of a triangle, by %g", m, over);
    }
}

static void every_direction_is_the_weighted_sum_of_its_corners(void **state) {
    (void)state;
    oracle_random random = {.state = 4};
    gpuconv_sofa *s = spiral_set(300, false);
    for (int i = 0; i < 1000; i++) {
        double at[3], sum[3] = {0}, weights = 0;
        gc_blend b;
        random_direction(&random, at);
        gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, false, &b);
        for (int k = 0; k < 3; k++) {
            const double *corner = s->position + 3 * b.measurement[k];
            assert_true(b.weight[k] >= 0 && b.weight[k] <= b.weight[0]);
            weights += b.weight[k];
            for (int d = 0; d < 3; d++)
                sum[d] += b.weight[k] * corner[d];
        }
        CHECK(fabs(weights - 1) < 1e-9 && angle(sum, at) < 1e-6, "direction %d: weights %g, %g degrees off", i, weights,
              angle(sum, at) * 180 / pi);
        check_circle(s, &b);
        assert_true(b.gain == 1);
    }
    gpuconv_sofa_free(s);
}

/* Checks what is made between the measurements against the pulse at the delay and level of the direction. */
static void check_between(bool in_file, gpuconv_interpolate how, double bound) {
    oracle_random random = {.state = 5};
    gpuconv_sofa *s = spiral_set(400, in_file);
    const int64_t frames = gpuconv_sofa_frames(s), lead = gpuconv_sofa_lead(s);
    float *taps = calloc((size_t)(RECEIVERS * frames), sizeof *taps);
    CHECK(taps, "no memory");
    double worst = -HUGE_VAL;
    for (int i = 0; i < 200; i++) {
        double at[3];
        gpuconv_error error = {0};
        random_direction(&random, at);
        CHECK(gpuconv_sofa_respond(s, at, 1, how, false, taps, &error) == GPUCONV_OK, "%s", error.message);
        for (int r = 0; r < RECEIVERS; r++) {
            double want[512];
            for (int64_t n = 0; n < frames; n++)
                want[n] = level_at(at, r) * pulse((double)(n - lead) - PULSE - delay_at(at, r));
            worst = fmax(worst, oracle_compare(taps + r * frames, want, frames).rms);
        }
    }
    CHECK((worst <= bound) == (how == GPUCONV_INTERPOLATE_TRIANGLE), "worst of the interpolated responses: %.1f dB",
          worst);
    free(taps);
    gpuconv_sofa_free(s);
}

static void delays_and_levels_are_averaged_apart(void **state) {
    (void)state;
    check_between(false, GPUCONV_INTERPOLATE_TRIANGLE, -30);
    check_between(false, GPUCONV_INTERPOLATE_NEAREST, -20);
}

static void delays_of_the_file_count_as_those_of_the_responses(void **state) {
    (void)state;
    check_between(true, GPUCONV_INTERPOLATE_TRIANGLE, -30);
}

static double energy_of(const float *taps, int64_t frames) {
    double sum = 0;
    for (int64_t i = 0; i < frames; i++)
        sum += (double)taps[i] * (double)taps[i];
    return sum;
}

/* Noise, of which nothing adds in phase. A shift by half a frame takes some energy near half the rate. */
static void the_energy_is_the_mean_of_the_corners(void **state) {
    (void)state;
    oracle_random random = {.state = 8};
    gpuconv_sofa *s = spiral_set(60, false);
    const gc_sofa_form form = gc_sofa_form_of(s, true);
    static float taps[RECEIVERS][512];
    oracle_fill(&random, s->responses->taps, (int64_t)60 * RECEIVERS * TAPS);
    for (int i = 0; i < 50; i++) {
        double at[3], want = 0;
        gc_blend b;
        random_direction(&random, at);
        gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, false, &b);
        assert_int_equal(gc_sofa_respond(s, &b, form, taps[0], 512, NULL), GPUCONV_OK);
        for (int k = 0; k < 3; k++)
            want += b.weight[k] * energy_of(gc_sofa_taps(s, b.measurement[k], 1), TAPS);
        const double got = energy_of(taps[1], form.frames);
        CHECK(got <= want * 1.001 && got >= want * 0.85, "direction %d: %g of the energy", i, got / want);
    }
    gpuconv_sofa_free(s);
}

/* Above and below a circle of directions the responses are those of the circle, at the same azimuth. */
static void an_open_set_keeps_its_edge(void **state) {
    (void)state;
    double positions[72][3];
    for (int i = 0; i < 72; i++) {
        positions[i][0] = cos(i * pi / 36);
        positions[i][1] = sin(i * pi / 36);
        positions[i][2] = 0;
    }
    gpuconv_sofa *s = make_set(positions[0], 72, false);
    for (int elevation = -80; elevation <= 80; elevation += 20) {
        const double azimuth = 7.5 * pi / 180, up = elevation * pi / 180;
        const double at[3] = {cos(up) * cos(azimuth), cos(up) * sin(azimuth), sin(up)};
        gc_blend b;
        gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, false, &b);
        const int a = b.measurement[0], c = b.weight[1] > 0 ? b.measurement[1] : b.measurement[2];
        CHECK(a + c == 3 && a * c == 2 && fabs(b.weight[0] - 0.5) < 1e-6, "elevation %d: %d and %d with %g", elevation,
              a, c, b.weight[0]);
    }
    gpuconv_sofa_free(s);
}

static void a_set_of_one_direction_gives_it_everywhere(void **state) {
    (void)state;
    const double only[3] = {1, 0.2, 0}, at[3] = {-1, 0.5, -2};
    gc_blend b;
    gpuconv_sofa *s = make_set(only, 1, false);
    gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, false, &b);
    assert_true(b.weight[0] == 1 && b.measurement[0] == 0);
    gpuconv_sofa_free(s);
}

/* Writes positions that no mesh of triangles fits well. */
static void place_badly(int kind, int i, oracle_random *random, double at[3]) {
    const double u = (double)oracle_uniform(random), v = (double)oracle_uniform(random);
    const double kinds[][3] = {{0, 0, 0},
                               {1, 0, 0},
                               {i % 2 ? 1 : -1, 0, 0},
                               {u, v, 0},
                               {u, u, u},
                               {1e30 * u, 1e-30 * v, 1},
                               {1, 1e-9 * u, 1e-9 * v},
                               {i % 3, i / 3 % 3 - 1, i / 9 - 1},
                               {u, v, fabs(u * v)}};
    memcpy(at, kinds[kind], sizeof kinds[kind]);
}

/* Every direction gets weights that sum to 1, of measurements of the set. */
static void directions_in_bad_places_are_no_danger(void **state) {
    (void)state;
    oracle_random random = {.state = 9};
    for (int kind = 0; kind < 9; kind++)
        for (int count = 1; count <= 27; count += 13) {
            double positions[27][3];
            for (int i = 0; i < count; i++)
                place_badly(kind, i, &random, positions[i]);
            gpuconv_sofa *s = make_set(positions[0], count, false);
            for (int i = 0; i < 100; i++) {
                double at[3], weights = 0;
                gc_blend b;
                random_direction(&random, at);
                gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, false, &b);
                for (int k = 0; k < 3; k++) {
                    weights += b.weight[k];
                    assert_true(b.weight[k] >= 0 && b.measurement[k] >= 0 && b.measurement[k] < count);
                }
                CHECK(fabs(weights - 1) < 1e-9, "kind %d, %d directions: weights %g", kind, count, weights);
            }
            gpuconv_sofa_free(s);
        }
}

static void the_nearest_distance_is_used_and_its_gain_is_asked_for(void **state) {
    (void)state;
    double positions[100][3];
    for (int i = 0; i < 100; i++)
        spiral(i % 50, 50, i < 50 ? 0.5 : 2, positions[i]);
    gpuconv_sofa *s = make_set(positions[0], 100, false);
    assert_int_equal(s->shells, 2);
    static const struct {
        double distance, gain;
        bool far;
    } cases[] = {{0.25, 2, false}, {0.5, 1, false}, {1.2, 0.5 / 1.2, false}, {1.3, 2 / 1.3, true}, {8, 0.25, true}};
    for (int i = 0; i < COUNT(cases); i++) {
        const double at[3] = {0.6 * cases[i].distance, 0, 0.8 * cases[i].distance};
        gc_blend b;
        gc_sofa_blend(s, at, at, GPUCONV_INTERPOLATE_TRIANGLE, true, &b);
        for (int k = 0; k < 3; k++)
            assert_true((b.measurement[k] >= 50) == cases[i].far);
        CHECK(fabs(b.gain - cases[i].gain) < 1e-9, "%g m: gain %g", cases[i].distance, b.gain);
    }
    gpuconv_sofa_free(s);
}

/* What a thread works on. */
typedef struct part {
    const gpuconv_sofa *set;
    const double *at;
    float *taps;
} part;

enum { DIRECTIONS = 60, THREADS = 4 };

static void *respond_all(void *context) {
    const part *p = context;
    return gpuconv_sofa_respond(p->set, p->at, DIRECTIONS, GPUCONV_INTERPOLATE_TRIANGLE, false, p->taps, NULL) ? context
                                                                                                               : NULL;
}

static void threads_share_a_set(void **state) {
    (void)state;
    oracle_random random = {.state = 6};
    double at[DIRECTIONS][3];
    gpuconv_sofa *s = spiral_set(100, false), *alone = spiral_set(100, false);
    const size_t each = (size_t)(DIRECTIONS * RECEIVERS * gpuconv_sofa_frames(s));
    float *taps = calloc((THREADS + 1) * each, sizeof *taps);
    pthread_t thread[THREADS];
    part parts[THREADS + 1];
    CHECK(taps, "no memory");
    for (int i = 0; i < DIRECTIONS; i++)
        random_direction(&random, at[i]);
    for (int t = 0; t <= THREADS; t++)
        parts[t] = (part){t < THREADS ? s : alone, at[0], taps + (size_t)t * each};
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, respond_all, &parts[t]), 0);
    assert_null(respond_all(&parts[THREADS]));
    for (int t = 0; t < THREADS; t++) {
        void *failed;
        assert_int_equal(pthread_join(thread[t], &failed), 0);
        assert_null(failed);
        assert_memory_equal(parts[t].taps, parts[THREADS].taps, each * sizeof *taps);
    }
    free(taps);
    gpuconv_sofa_free(s);
    gpuconv_sofa_free(alone);
}

static void an_open_set_prepares_what_its_file_does(void **state) {
    (void)state;
    static const struct {
        const char *file, *direction, *speakers;
        int inputs;
        gpuconv_interpolate how;
        double bound; /* of the error after resampling, which comes before or after the shifts */
    } cases[] = {{head_file, "37,11", NULL, 1, GPUCONV_INTERPOLATE_TRIANGLE, -45},
                 {head_file, "37,11", NULL, 1, GPUCONV_INTERPOLATE_NEAREST, -45},
                 {head_file, NULL, "5.1", 6, GPUCONV_INTERPOLATE_AUTO, -45},
                 {head_file, NULL, "ambisonic", 9, GPUCONV_INTERPOLATE_AUTO, -45},
                 {delays_file, "90,0", NULL, 1, GPUCONV_INTERPOLATE_NEAREST, -20}};
    const double more = sizeof(void *) == 4 ? 5 : 0; /* dB: 32-bit systems have other triangles, as qhull rounds */
    static const double rates[] = {48000, 44100};
    for (int i = 0; i < COUNT(cases) * COUNT(rates); i++) {
        const char *file = cases[i / COUNT(rates)].file;
        const double rate = rates[i % COUNT(rates)], own = file == head_file ? 48000 : 44100;
        gpuconv_error error = {0};
        gpuconv_sofa *s;
        gpuconv_ir *a, *b;
        gpuconv_preparation p = gpuconv_preparation_default();
        p.direction = cases[i / COUNT(rates)].direction;
        p.speakers = cases[i / COUNT(rates)].speakers;
        p.interpolate = cases[i / COUNT(rates)].how;
        p.decode = GPUCONV_DECODE_LEAST_SQUARES; /* phases of the others depend on the rate */
        const int inputs = cases[i / COUNT(rates)].inputs;
        CHECK(gpuconv_sofa_open(file, rate == own ? 0 : rate, &s, &error) == GPUCONV_OK, "%s", error.message);
        assert_true(gpuconv_sofa_rate(s) == rate && gpuconv_sofa_receivers(s) == 2);
        CHECK(gpuconv_sofa_prepare(s, &p, inputs, &a, &error) == GPUCONV_OK, "%s", error.message);
        CHECK(gpuconv_ir_prepare(file, &p, inputs, rate, &b, &error) == GPUCONV_OK, "%s", error.message);
        gpuconv_sofa_free(s);
        const int64_t later = gpuconv_ir_lead(a) - gpuconv_ir_lead(b);
        assert_true(later == 0 || rate != own);
        for (int c = 0; c < inputs * 2; c++) {
            double want[512] = {0};
            const float *got = gpuconv_ir_taps(a, c / 2, c % 2), *from = gpuconv_ir_taps(b, c / 2, c % 2);
            for (int64_t n = 0; n < gpuconv_ir_frames(b); n++)
                if (n + later >= 0 && n + later < gpuconv_ir_frames(a))
                    want[n + later] = (double)from[n];
            oracle_error e = oracle_compare(got, want, gpuconv_ir_frames(a));
            CHECK(e.rms <= (rate == own ? -150 : cases[i / COUNT(rates)].bound + more), "case %d, route %d: %.1f dB", i,
                  c, e.rms);
        }
        gpuconv_ir_free(a);
        gpuconv_ir_free(b);
    }
}

/* The triangles of a set are computed in a step that cannot be cancelled. */
static void a_set_of_very_many_directions_gets_no_triangles(void **state) {
    (void)state;
    enum { COUNT_OF = (1 << 16) + 1 };
    double *positions = malloc(3 * COUNT_OF * sizeof *positions);
    int *index = malloc(COUNT_OF * sizeof *index);
    gpuconv_error error = {0};
    gc_sphere_mesh *mesh;
    CHECK(positions && index, "no memory");
    for (int i = 0; i < COUNT_OF; i++) {
        spiral(i, COUNT_OF, 1, positions + 3 * i);
        index[i] = i;
    }
    gc_direction_tree *tree = gc_direction_tree_new(positions, index, COUNT_OF);
    assert_int_equal(gc_sphere_mesh_new(tree, &mesh, &error), GPUCONV_ERROR_FORMAT);
    CHECK(strstr(error.message, "at most 65536 directions"), "%s", error.message);
    gc_direction_tree_free(tree);
    free(index);
    free(positions);
}

static void what_is_no_direction_is_refused(void **state) {
    (void)state;
    gpuconv_error error = {0};
    gpuconv_sofa *s = spiral_set(20, false), *none;
    static float taps[4096];
    const double good[3] = {1, 0, 0}, nothing[3] = {0}, endless[3] = {1, INFINITY, 0};
    assert_int_equal(gpuconv_sofa_respond(s, nothing, 1, 0, false, taps, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_sofa_respond(s, endless, 1, 0, false, taps, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_sofa_respond(s, good, 0, 0, false, taps, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_sofa_respond(s, good, 1, 7, false, taps, &error), GPUCONV_ERROR_ARGUMENT);
    assert_int_equal(gpuconv_sofa_open(head_file, -1, &none, &error), GPUCONV_ERROR_ARGUMENT);
    assert_null(none);
    double at[3] = {1, 1, 1};
    gpuconv_sofa_position(s, 20, at);
    assert_true(at[0] == 0 && at[1] == 0 && at[2] == 0);
    gpuconv_sofa_position(s, 19, at);
    assert_memory_equal(at, s->position + 57, sizeof at);
    gpuconv_sofa_free(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree_finds_what_a_search_through_all_finds),
        cmocka_unit_test(every_direction_is_the_weighted_sum_of_its_corners),
        cmocka_unit_test(delays_and_levels_are_averaged_apart),
        cmocka_unit_test(delays_of_the_file_count_as_those_of_the_responses),
        cmocka_unit_test(the_energy_is_the_mean_of_the_corners),
        cmocka_unit_test(an_open_set_keeps_its_edge),
        cmocka_unit_test(a_set_of_one_direction_gives_it_everywhere),
        cmocka_unit_test(directions_in_bad_places_are_no_danger),
        cmocka_unit_test(the_nearest_distance_is_used_and_its_gain_is_asked_for),
        cmocka_unit_test(threads_share_a_set),
        cmocka_unit_test(an_open_set_prepares_what_its_file_does),
        cmocka_unit_test(a_set_of_very_many_directions_gets_no_triangles),
        cmocka_unit_test(what_is_no_direction_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
