/* Tests terminal.h: the width of UTF-8 text, names shortened in the middle, and status lines that never exceed the
 * width. */
#include "check.h"
#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void text_has_the_width_of_its_characters(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int columns;
    } cases[] = {{"", 0},
                 {"hall.wav", 8},
                 {"K\xc3\xb6ln", 4},              /* o with diaeresis, one character */
                 {"Ko\xcc\x88ln", 4},             /* a combining diaeresis */
                 {"\xe6\xbc\xa2\xe5\xad\x97", 4}, /* two wide characters */
                 {"\xf0\x9f\x8e\xb9", 2},         /* a wide character outside the BMP */
                 {"a\x1b[31mb", 7},
                 {"a\nb", 3},
                 {"\xff\xfe", 2},
                 {"\xe6\xbc", 2}}; /* cut off */
    for (int i = 0; i < COUNT(cases); i++)
        CHECK(gc_display_columns(cases[i].text) == cases[i].columns, "case %d: %d columns instead of %d", i,
              gc_display_columns(cases[i].text), cases[i].columns);
}

static void long_text_is_shortened_in_the_middle(void **state) {
    (void)state;
    char to[256];
    gc_shorten("a-long-name-of-a-response.wav", 13, to, sizeof to);
    assert_string_equal(to, "a-lon...e.wav");
    gc_shorten("short.wav", 13, to, sizeof to);
    assert_string_equal(to, "short.wav");
    gc_shorten("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97", 9, to, sizeof to);
    assert_string_equal(to, "\xe6\xbc\xa2...\xe5\xad\x97"); /* half of a wide character is not shown */
    gc_shorten("a\x1b[2Jb\nc\xff", 80, to, sizeof to);
    assert_string_equal(to, "a?[2Jb?c?");
    gc_shorten("anything", 2, to, sizeof to);
    assert_string_equal(to, "..");
    gc_shorten("anything", 0, to, sizeof to);
    assert_string_equal(to, "");
    gc_shorten("anything", 80, to, 4);
    assert_string_equal(to, "any");
}

static void names_of_a_list_are_shortened_so_that_they_differ(void **state) {
    (void)state;
    static const char *const lists[][4] = {
        {"/music/rooms/cathedral-near-left.wav", "/music/rooms/cathedral-near-right.wav",
         "/music/rooms/cathedral-far-left.wav", "/music/rooms/cathedral-far-right.wav"},
        {"hall-01-with-close-microphones.wav", "hall-02-with-close-microphones.wav",
         "hall-03-with-close-microphones.wav", "hall-04-with-close-microphones.wav"},
        {"01 a very long name of a room.wav", "02 a very long name of a room.wav", "03 a very long name of a room.wav",
         "04 a very long name of a room.wav"},
        {"one/with-a-long-name/x.wav", "two/with-a-long-name/x.wav", "one/with-a-long-name/y.wav",
         "two/with-a-long-name/y.wav"},
        {"K\xc3\xa4then-in-the-old-palace.wav", "K\xc3\xb6then-in-the-old-palace.wav",
         "K\xc3\xbcthen-in-the-old-palace.wav", "Kathen-in-the-old-palace.wav"}};
    char text[4][256];
    for (int l = 0; l < COUNT(lists); l++)
        for (int columns = 13; columns <= 60; columns++)
            for (int i = 0; i < 4; i++) {
                const gc_names names = {lists[l], 4, i};
                gc_shorten_among(&names, columns, text[i], sizeof text[i]);
                CHECK(gc_display_columns(text[i]) <= columns && !strchr(text[i], '?'), "'%s' in %d columns", text[i],
                      columns);
                for (int k = 0; k < i; k++)
                    CHECK(strcmp(text[i], text[k]) != 0, "list %d, %d columns: two are '%s'", l, columns, text[i]);
            }
    const gc_names folder = {lists[0], 4, 2},
                   same = {(const char *const[]){"equal-long-names.wav", "equal-long-names.wav"}, 2, 0};
    gc_shorten_among(&folder, 24, text[0], sizeof text[0]);
    assert_string_equal(text[0], "cathedral-far-left.wav");
    gc_shorten_among(&same, 12, text[0], sizeof text[0]);
    assert_string_equal(text[0], "equa...s.wav");
}

static void a_line_leaves_out_parts_by_rank_and_fits_any_width(void **state) {
    (void)state;
    static const char *const names[] = {"x", "hall.wav", "/a/rather/long/folder/with/a/response-in-it.wav",
                                        "\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2\xe5\xad\x97/\xe5\xad\x97.wav",
                                        "\xff\xff\x1b\n"};
    char text[1024];
    for (int n = 0; n < COUNT(names); n++)
        for (int columns = 1; columns <= 200; columns++) {
            gc_status_line line = {0};
            gc_status_time(&line, 0, "> ", 3725, "");
            gc_status_time(&line, 1, " / ", 59.6, "");
            gc_status_part(&line, 3, " [%s]", "########################");
            gc_status_part(&line, 2, " load %.1f %%", 12.5);
            gc_status_part(&line, 0, " ");
            const gc_names shown = {names, COUNT(names), n};
            gc_status_name(&line, &shown);
            gc_status_part(&line, 1, " (bypassed)");
            gc_status_write(&line, columns, text, sizeof text);
            CHECK(gc_display_columns(text) <= columns, "%d columns in %d: '%s'", gc_display_columns(text), columns,
                  text);
            if (columns >= 40)
                CHECK(strncmp(text, "> 1:02:05 / 1:00 ", 17) == 0 && strstr(text, "(bypassed)"), "'%s'", text);
            CHECK((strstr(text, "####") != NULL) <= (strstr(text, "load") != NULL),
                  "rank 2 was left out before rank 3: '%s'", text);
            if (columns >= 120)
                CHECK(strstr(text, "####") && strstr(text, "load 12.5 %"), "'%s'", text);
        }
    gc_status_line line = {0};
    for (int i = 0; i < 2 * GC_PARTS_MOST; i++)
        gc_status_part(&line, 0, "%s", "part");
    gc_status_write(&line, 0, text, sizeof text);
    assert_int_equal(strlen(text), 4 * GC_PARTS_MOST);
}

static void without_a_terminal_the_width_comes_from_the_environment(void **state) {
    (void)state;
    static const struct {
        const char *value;
        int columns;
    } cases[] = {{"132", 132}, {"", 80}, {"0", 80}, {"-5", 80}, {"wide", 80}, {"80x24", 80}, {"99999999999", 80}};
    int ends[2];
    CHECK(pipe(ends) == 0, "no pipe");
    for (int i = 0; i < COUNT(cases); i++) {
        CHECK(setenv("COLUMNS", cases[i].value, 1) == 0, "no environment");
        assert_int_equal(gc_terminal_columns(ends[0]), cases[i].columns);
    }
    unsetenv("COLUMNS");
    assert_int_equal(gc_terminal_columns(ends[0]), 80);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_the_width_of_its_characters),
        cmocka_unit_test(long_text_is_shortened_in_the_middle),
        cmocka_unit_test(names_of_a_list_are_shortened_so_that_they_differ),
        cmocka_unit_test(a_line_leaves_out_parts_by_rank_and_fits_any_width),
        cmocka_unit_test(without_a_terminal_the_width_comes_from_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
