/* Tests what the terminal of playing makes of remote control: a flood of messages makes one change of the response at a
 * look, always ends, and prints one line and a count, or nothing with --quiet. The linker puts the test in place of the
 * player. */
#include "gpuconv/commands/play_screen.h"

#include "check.h"

#include <math.h>
#include <unistd.h>

enum { RESPONSES = 3 };

/* ---- A player that takes note ------------------------------------------------------------------------------------ */

static struct {
    int selections, response; /* calls, and the last number that was good */
    double wet;
    const char *applied;
} player;

gpuconv_status __wrap_gc_player_select_response(gc_player *p, int response, gpuconv_error *error);
void __wrap_gc_player_get_view(gc_player *p, gc_player_view *view);
void __wrap_gc_player_set_levels(gc_player *p, double gain, double wet, double dry);
void __wrap_gc_player_bypass(gc_player *p, bool bypass);
void __wrap_gc_player_pause(gc_player *p, bool pause);
void __wrap_gc_player_seek(gc_player *p, double seconds);

gpuconv_status __wrap_gc_player_select_response(gc_player *p, int response, gpuconv_error *error) {
    (void)p;
    player.selections++;
    if (response < 0 || response >= RESPONSES) {
        (void)snprintf(error->message, sizeof error->message, "response %d does not exist", response + 1);
        return error->status = GPUCONV_ERROR_ARGUMENT;
    }
    player.response = response;
    return GPUCONV_OK;
}

void __wrap_gc_player_get_view(gc_player *p, gc_player_view *view) {
    (void)p;
    *view = (gc_player_view){.response = player.response, .applied = player.applied, .wet = player.wet};
}

void __wrap_gc_player_set_levels(gc_player *p, double gain, double wet, double dry) {
    (void)p, (void)gain, (void)dry;
    player.wet = wet;
}

void __wrap_gc_player_bypass(gc_player *p, bool bypass) {
    (void)p, (void)bypass;
}

void __wrap_gc_player_pause(gc_player *p, bool pause) {
    (void)p, (void)pause;
}

void __wrap_gc_player_seek(gc_player *p, double seconds) {
    (void)p, (void)seconds;
}

/* ---- A remote control -------------------------------------------------------------------------------------------- */

static gc_control_event event[8]; /* given in turn */
static int events;
static int64_t waiting; /* events that have not been taken */

static bool take(gc_control *control, gc_control_event *to) {
    (void)control;
    if (waiting <= 0)
        return false;
    *to = event[(events - waiting % events) % events];
    waiting--;
    return true;
}

static const gc_control_system flood = {NULL, NULL, take, NULL};

static gc_play_screen begin(bool quiet, const char *applied) {
    static const char *const names[RESPONSES] = {"one.wav", "two.wav", "three.wav"};
    player.selections = player.response = 0;
    player.applied = applied;
    gc_play_screen s = {.names = names, .count = RESPONSES, .quiet = quiet, .control = {{&flood, NULL}}, .controls = 1};
    return s;
}

/* Looks at the control as the player's loop does. */
static void look(gc_play_screen *s) {
    gc_player_view view;
    __wrap_gc_player_get_view(NULL, &view);
    assert_true(gc_play_screen_handle(s, &view));
}

/* ---- Lines on standard error ------------------------------------------------------------------------------------- */

static FILE *caught;
static int real_stderr;

static void catch_lines(void) {
    caught = tmpfile();
    assert_non_null(caught);
    (void)fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    assert_true(real_stderr >= 0 && dup2(fileno(caught), STDERR_FILENO) >= 0);
}

/* Returns the number of lines; `text` gets the last one. */
static int count_lines(char *text, int room) {
    int lines = 0;
    (void)fflush(stderr);
    assert_true(dup2(real_stderr, STDERR_FILENO) >= 0);
    close(real_stderr);
    rewind(caught);
    *text = '\0';
    while (fgets(text, room, caught))
        lines++;
    (void)fclose(caught);
    return lines;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void many_changes_make_one_and_the_last_one_counts(void **state) {
    (void)state;
    gc_play_screen s = begin(true, "");
    event[0] = (gc_control_event){GC_CONTROL_RESPONSE, 3};
    event[1] = (gc_control_event){GC_CONTROL_WET, -3};
    event[2] = (gc_control_event){GC_CONTROL_RESPONSE, 1};
    event[3] = (gc_control_event){GC_CONTROL_STEP, 1};
    waiting = 4 * 100;
    events = 4;
    look(&s);
    assert_int_equal(waiting, 0);
    assert_int_equal(player.selections, 1);
    assert_int_equal(player.response, 1);
    assert_true(player.wet == -3);
    event[0] = (gc_control_event){GC_CONTROL_STEP, -1};
    waiting = events = 1;
    look(&s);
    assert_int_equal(player.response, 0);
    waiting = 1;
    look(&s);
    assert_int_equal(player.response, 2);
    look(&s); /* without a message nothing changes */
    assert_int_equal(player.selections, 3);
}

static void a_flood_without_an_end_does_not_hold_up_the_player(void **state) {
    (void)state;
    gc_play_screen s = begin(true, "");
    event[0] = (gc_control_event){GC_CONTROL_RESPONSE, 2};
    events = 1;
    waiting = INT64_MAX;
    for (int k = 1; k <= 100; k++) {
        look(&s);
        assert_int_equal(player.selections, k);
    }
    CHECK(INT64_MAX - waiting <= 100 * 10000, "%lld messages were taken", (long long)(INT64_MAX - waiting));
}

static void a_flood_prints_one_line_and_a_count(void **state) {
    (void)state;
    static const struct {
        double number;
        const char *applied;
        bool quiet;
        int lines;
    } cases[] = {
        {9, "", false, 2}, {9, "", true, 0}, {2, "resampled", false, 2}, {2, "resampled", true, 0}, {2, "", false, 0}};
    for (int i = 0; i < COUNT(cases); i++) {
        gc_play_screen s = begin(cases[i].quiet, cases[i].applied);
        char last[300];
        event[0] = (gc_control_event){GC_CONTROL_RESPONSE, cases[i].number};
        events = 1;
        catch_lines();
        for (int k = 0; k < 300; k++) {
            waiting = 80;
            look(&s);
        }
        gc_play_screen_end(&s);
        int lines = count_lines(last, sizeof last);
        CHECK(lines == cases[i].lines, "case %d: %d lines, the last one is '%s'", i, lines, last);
        CHECK(lines < 2 || strstr(last, "299 more"), "case %d: '%s'", i, last);
    }
}

static void lines_at_a_distance_are_all_printed(void **state) {
    (void)state;
    gc_play_screen s = begin(false, "");
    char last[300];
    event[0] = (gc_control_event){GC_CONTROL_RESPONSE, 9};
    events = 1;
    catch_lines();
    for (int k = 0; k < 500; k++) {
        waiting = k % 100 == 0 || k == 401;
        look(&s);
    }
    int lines = count_lines(last, sizeof last);
    CHECK(lines == 6 && strstr(last, "1 more"), "%d lines, the last one is '%s'", lines, last);
}

static void meters_are_there_at_80_columns(void **state) {
    (void)state;
    static const char *const names[] = {"/a/rather/long/folder/with/a/response.wav",
                                        "/a/rather/long/folder/another.wav"};
    static const char *const lines[] = {"80", "100", "120", "200"};
    char text[1000];
    for (int i = 0; i < COUNT(lines); i++)
        for (int k = 0; k < 64; k++) {
            gc_play_screen s = {.names = names, .count = 2, .shown = true};
            gc_player_view v = {
                .position = k & 1 ? 40000 : 4, .duration = k & 2 ? 80000 : -1, .outputs = 2, .gpu = true};
            v.paused = v.bypassed = k & 4;
            v.clipped[0] = v.clipped[1] = k & 8;
            v.peak[0] = v.peak[1] = k & 8 ? 1.0f : 0.1f;
            v.xruns = v.underruns = k & 16 ? 12345 : 0;
            (void)snprintf(s.note, sizeof s.note, "response changed");
            s.note_left = k & 32;
            assert_int_equal(setenv("COLUMNS", lines[i], 1), 0);
            catch_lines();
            gc_play_screen_draw(&s, &v);
            (void)count_lines(text, sizeof text);
            const char *meter = strchr(text + 4, '['), /* behind what erases the line */
                *second = meter ? strchr(meter + 1, '[') : NULL;
            CHECK(second && strchr(second, ']'), "%s columns, case %d: no meters in '%s'", lines[i], k, text);
            CHECK(second - meter >= 12 && strchr(meter, ']') == second - 1, "case %d: '%s'", k, text);
            CHECK(!(k & 8) == !strstr(second, "CLIP]"), "case %d: '%s'", k, text);
            CHECK(strlen(text) < 4 + strtoul(lines[i], NULL, 10), "case %d: '%s' is too long", k, text);
        }
    unsetenv("COLUMNS");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_changes_make_one_and_the_last_one_counts),
        cmocka_unit_test(a_flood_without_an_end_does_not_hold_up_the_player),
        cmocka_unit_test(a_flood_prints_one_line_and_a_count),
        cmocka_unit_test(lines_at_a_distance_are_all_printed),
        cmocka_unit_test(meters_are_there_at_80_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
