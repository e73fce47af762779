/* The reader of tables of text: line ends, byte order marks, separators, decimal commas, quotation marks, empty fields,
 * headings and comments, with texts that arrive byte by byte; what can be read in two ways is refused with its line. */
#include "check.h"
#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/table.h"

#include <string.h>

/* A text that is read in portions. */
typedef struct source {
    gc_lines lines; /* first: read_portion gets it */
    const char *text;
    int64_t at, length, portion;
} source;

static gpuconv_status read_portion(gc_lines *lines, char *to, int64_t bytes, int64_t *got, gpuconv_error *error) {
    (void)error;
    source *s = (source *)(void *)lines;
    *got = s->length - s->at < s->portion ? s->length - s->at : s->portion;
    *got = *got < bytes ? *got : bytes;
    memcpy(to, s->text + s->at, (size_t)*got);
    s->at += *got;
    return GPUCONV_OK;
}

static source make_source(const char *text, int64_t portion) {
    return (source){{.name = "t", .longest = 1 << 16, .most = 1 << 20, .fd = -1, .read = read_portion},
                    text,
                    .length = (int64_t)strlen(text),
                    .portion = portion};
}

/* Reads a text and prints its fields, "a|b" for each row; numbers of a table of numbers as numbers. */
static gpuconv_status print_rows(const gc_table_form *form, const char *text, int64_t portion, char *to, size_t room,
                                 gpuconv_error *error) {
    source s = make_source(text, portion);
    gc_table t;
    size_t used = 0;
    gpuconv_status status = gc_table_open(&t, form, &s.lines, error);
    *to = '\0';
    while (gc_table_next(&t, &status, error)) {
        for (int i = 0; i < t.fields && !status; i++) {
            double value;
            if (form->kind != GC_TABLE_NUMBERS)
                used += (size_t)snprintf(to + used, room - used, "%s%s", i ? "|" : "", t.field[i]);
            else if (gc_table_number(&t, i, &value))
                used += (size_t)snprintf(to + used, room - used, "%s%g", i ? "|" : "", value);
            else
                status = gc_table_fail(&t, error, "no number in field %d", i + 1);
        }
        if (!status)
            used += (size_t)snprintf(to + used, room - used, "%s\n", t.wrong ? t.wrong : "");
    }
    gc_table_close(&t);
    gc_lines_close(&s.lines);
    return status;
}

typedef struct text_case {
    const char *text, *rows; /* NULL: it is refused, and the message has: */
    const char *says;
} text_case;

static void check_cases(const gc_table_form *form, const text_case *cases, int count) {
    for (int i = 0; i < count; i++)
        for (int64_t portion = 1; portion <= 64; portion += 63) {
            char rows[1024];
            gpuconv_error error = {0};
            gpuconv_status status = print_rows(form, cases[i].text, portion, rows, sizeof rows, &error);
            const text_case *c = &cases[i];
            if (c->rows)
                CHECK(!status && strcmp(rows, c->rows) == 0, "case %d gives '%s' %s", i, rows, error.message);
            else
                CHECK(status == GPUCONV_ERROR_FORMAT && strstr(error.message, c->says), "case %d gives '%s', says %s",
                      i, rows, error.message);
        }
}

static void numbers_are_read_or_refused_with_their_line(void **state) {
    (void)state;
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = 8, .comments = true, .quotes = true};
    static const text_case cases[] = {
        {"1 2\n3 4", "1|2\n3|4\n", ""},
        {"\xEF\xBB\xBF"
         "1 2\r3 4\r\n\n5 6\r",
         "1|2\n3|4\n5|6\n", ""},
        {"a b\n* c\n# d\n 1\t2 # e\n;f\n 3\t4\n", "1|2\n3|4\n", ""},
        {"1,2\n3,4\n", "1|2\n3|4\n", ""},
        {"1, 2\n3 ,4\n5 6\n", "1|2\n3|4\n5|6\n", ""},
        {"1,5;2\n3;4,25\n", "1.5|2\n3|4.25\n", ""},
        {"1,5\t2\n3\t4,25\n", "1.5|2\n3|4.25\n", ""},
        {"1,5 2,0\n3,0 -4,25\n", "1.5|2\n3|-4.25\n", ""},
        {"\"1,5\",\"2\"\n\"3\",4\n", "1.5|2\n3|4\n", ""},
        {"\"1,5\"\t2\n", "1.5|2\n", ""},
        {"1;2;\n3;4;;\n", "1|2\n3|4\n", ""},
        {"1,2\n1,2.5,3\n", "1|2\n1|2.5|3\n", ""},
        {"", "", ""},
        {"1 2\n1k 3\n", NULL, "t, line 2: '1k 3': no number in field 1"},
        {"1 2\r3\r4 5x\r", NULL, "t, line 3: '4 5x': no number in field 2"},
        {"1;2\n;3\n", NULL, "line 2: ';3': no number in field 1"},
        {"1;2\n3;;4\n", NULL, "line 2: '3;;4': no number in field 2"},
        {"1\t2\n3\t\t4\n", NULL, "no number in field 2"},
        {"\t3\t4\n", NULL, "no number in field 1"},
        {",2\n", NULL, "line 1: ',2': no number in field 1"},
        {"1 2\nend\n", NULL, "line 2: 'end': no number in field 1"},
        {"1,5;2\n3;4.5\n", NULL, "(decimal commas and decimal points)"},
        {"1,000.5;2\n", NULL, "(decimal commas and decimal points)"},
        {"1 2\n3;4\n", NULL, "line 1"},
        {"0 30,5\n", NULL, "write semicolons"},
        {"20,00, -6,50\n", NULL, "write semicolons"},
        {"1,2\n1,2,5\n", NULL, "line 2: '1,2,5': has more or fewer fields"},
        {"1;\"2\n", NULL, "a quotation mark without its pair"},
        {"1;\"2\"3\n", NULL, "text behind a quotation mark"},
        {"1 2 3 4 5 6 7 8 9\n", NULL, "too many fields"},
    };
    check_cases(&form, cases, COUNT(cases));
}

static void words_routes_and_cells_are_divided(void **state) {
    (void)state;
    static const gc_table_form rest = {.kind = GC_TABLE_WORDS, .most = 2, .last = 2},
                               shell = {.kind = GC_TABLE_WORDS,
                                        .most = 4,
                                        .last = 2,
                                        .comments = true,
                                        .escapes = true},
                               routes = {.kind = GC_TABLE_ROUTES, .most = 4, .comments = true, .quotes = true},
                               cells = {.kind = GC_TABLE_CELLS, .most = 4, .quotes = true};
    static const text_case of_rest[] = {{" id \t a \"b\" # c \r\nid\n", "id|a \"b\" # c\nid\n", ""}};
    static const text_case of_shell[] = {{"a 'b c'\\'\"d\" # e\n", "a|b c'd\n", ""},
                                         {"a b c  d # e\na b # e\na\n", "a|b c  d\na|b\na\n", ""},
                                         {"a 'b c' d\n", "a|b c|d\n", ""},
                                         {"a 'b", NULL, "a quotation mark without its pair"},
                                         {"a b\\", NULL, "a quotation mark without its pair"}};
    static const text_case of_routes[] = {{"# ;,\n1 2 a;b,c.wav\n", "1|2|a;b,c.wav\n", ""},
                                          {"1;2;\"a;b\";\n;x\n", "1|2|a;b|\n|x\n", ""},
                                          {"1 , 2, a b.wav # c\n", "1|2|a b.wav\n", ""},
                                          {"row\t1\t2\n", "row|1|2\n", ""},
                                          {"1\t\t2\n", NULL, "an empty field between two tabs"}};
    static const text_case of_cells[] = {
        {"\xEF\xBB\xBF"
         "a;b\r1; 2 \r;\"x;\"\"y\"\"\rz\"\r",
         "a|b\n1| 2 \n|x;\"y\"\rz\n", ""},
        {"a\tb\n\"1\r\n\n2\"\t3,5\n", "a|b\n1\r\n\n2|3,5\n", ""},
        {"\"a;\",b\n1,\n", "a;|b\n1|\n", ""},
    };
    check_cases(&rest, of_rest, COUNT(of_rest));
    check_cases(&shell, of_shell, COUNT(of_shell));
    check_cases(&routes, of_routes, COUNT(of_routes));
    check_cases(&cells, of_cells, COUNT(of_cells));
    char rows[128];
    assert_int_equal(print_rows(&cells, "a,b\n1,\"2\nx", 64, rows, sizeof rows, NULL), GPUCONV_OK);
    assert_string_equal(rows, "a|b\na quotation mark without its pair\n"); /* a row of cells is returned with it */
}

static void the_sample_ends_with_a_line(void **state) {
    (void)state;
    enum { SAMPLE = 1 << 16 };
    static const gc_table_form form = {.kind = GC_TABLE_NUMBERS, .most = 8};
    static char text[SAMPLE + 64];
    for (int over = 0; over < 12; over++) { /* the sample ends at any byte of "10,00 20,00\n" */
        int used = snprintf(text, sizeof text, "%*s\n", over, "");
        while (used < SAMPLE + 20)
            used += snprintf(text + used, sizeof text - (size_t)used, "10,00 20,00\n");
        source s = make_source(text, 1000);
        gc_table t;
        gpuconv_error error = {0};
        CHECK(gc_table_open(&t, &form, &s.lines, &error) == GPUCONV_OK && t.separator == ' ', "%d: %s", over,
              error.message);
        gc_table_close(&t);
        gc_lines_close(&s.lines);
    }
}

static void reading_ends_when_it_is_cancelled(void **state) {
    (void)state;
    static const gc_table_form form = {.kind = GC_TABLE_WORDS, .most = 2};
    volatile int flag = 0;
    source s = make_source("1\n2\n3\n", 64);
    gc_table t;
    gpuconv_cancel_set(&flag);
    gpuconv_status status = gc_table_open(&t, &form, &s.lines, NULL);
    assert_true(gc_table_next(&t, &status, NULL));
    flag = 1;
    assert_false(gc_table_next(&t, &status, NULL));
    assert_int_equal(status, GPUCONV_ERROR_CANCELLED);
    gpuconv_cancel_set(NULL);
    gc_table_close(&t);
    gc_lines_close(&s.lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_or_refused_with_their_line),
        cmocka_unit_test(words_routes_and_cells_are_divided),
        cmocka_unit_test(the_sample_ends_with_a_line),
        cmocka_unit_test(reading_ends_when_it_is_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
