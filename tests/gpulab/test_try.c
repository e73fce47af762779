/* Tests what a student is told: the diagnosis of a wrong output, the code of a rung and its difference from the rung
 * before, and the explanation of compiler messages. */
#include "check.h"

#include "gpulab/pages/pages.h"
#include "gpulab/student/student.h"

#include <math.h>
#include <stdio.h>

enum { COUNT_ELEMENTS = 4096 };

static float got[COUNT_ELEMENTS];
static double expected[COUNT_ELEMENTS];

/* Fills the expected values, all different, and copies them to the output. */
static gc_lab_output right_output(void) {
    for (int i = 0; i < COUNT_ELEMENTS; i++) {
        expected[i] = 1 + i / 8192.0;
        got[i] = (float)expected[i];
    }
    return (gc_lab_output){"out", LAB_F32, COUNT_ELEMENTS, got, expected, 1e-6};
}

static void expect_text(const gc_lab_output *output, const char *text) {
    gc_lab_diagnosis d;
    char said[1500];
    CHECK(!gc_lab_diagnose(output, &d), "right instead of: %s", text);
    gc_lab_diagnosis_text(output, &d, said, sizeof said);
    CHECK(strstr(said, text), "does not say '%s': %s", text, said);
}

static void wrong_outputs_are_told(void **state) {
    (void)state;
    gc_lab_diagnosis d;
    gc_lab_output o = right_output();
    assert_true(gc_lab_diagnose(&o, &d));
    got[7] = 9;
    expect_text(&o, "out[7] is 9 and must be 1.00085449. Of 4096 elements 1 are wrong");
    o = right_output();
    got[7] = got[70];
    expect_text(&o, "belongs to index 70");
    o = right_output();
    got[5] = NAN;
    expect_text(&o, "1 are NaN");
    o = right_output();
    got[5] = INFINITY;
    expect_text(&o, "division by 0");
    o = right_output();
    memset(got + 3840, 0xff, sizeof(float) * 256);
    expect_text(&o, "out[3840] was never written and must be 1.46875. Of 4096 elements 256 were never written");
    expect_text(&o, "the grid ends too early");
    memset(got, 0xff, sizeof got);
    expect_text(&o, "Nothing was written");
    o = right_output();
    for (int i = 0; i < COUNT_ELEMENTS; i++)
        if (i % 256 < 3)
            got[i] = 0;
    expect_text(&o, "at places 0 to 2 of every 256 elements");
    o.tolerance = 0;
    o = right_output();
    got[COUNT_ELEMENTS - 1] = nextafterf(got[COUNT_ELEMENTS - 1], 2);
    o.tolerance = 0;
    expect_text(&o, "out[4095]");
}

/* Returns whether the code of a rung has a line with this mark and text. */
static bool has_line(const gc_lab_code *code, char mark, const char *text) {
    for (int i = 0; i < code->count; i++)
        if (code->line[i].mark == mark && memmem(code->line[i].text, (size_t)code->line[i].length, text, strlen(text)))
            return true;
    return false;
}

static void every_rung_has_code(void **state) {
    (void)state;
    const gc_lab_module *const *modules;
    int count = gc_lab_modules(&modules);
    for (int m = 0; m < count; m++)
        for (int i = 0; i < modules[m]->variant_count; i++) {
            gc_lab_code code;
            gpuconv_error error = {0};
            assert_int_equal(gc_lab_code_find(modules[m], i, &code, &error), GPUCONV_OK);
            const char *name = modules[m]->variants[i].code;
            CHECK(code.count > 2, "%s, %s: no code", modules[m]->name, modules[m]->variants[i].name);
            CHECK(name && (has_line(&code, ' ', name) || has_line(&code, '+', name)), "%s: %s is not shown",
                  modules[m]->name, name);
            gc_lab_code_free(&code);
        }
}

static void differences_are_marked(void **state) {
    (void)state;
    gc_lab_code code;
    const gc_lab_module *module = gc_lab_module_find("convolution");
    int rung = (int)(gc_lab_variant_find(module, "taps constant") - module->variants);
    assert_int_equal(gc_lab_code_find(module, 3, &code, NULL), GPUCONV_OK);
    assert_ptr_equal(code.against, gc_lab_variant_find(module, "one thread, taps global"));
    assert_true(has_line(&code, '+', "__constant__ float constant_taps"));
    assert_true(has_line(&code, '-', "s.h[k]"));
    assert_true(has_line(&code, ' ', "struct filter_input"));
    assert_false(has_line(&code, '+', "unrolled"));
    gc_lab_code_free(&code);
    assert_int_equal(gc_lab_code_find(module, rung, &code, NULL), GPUCONV_OK);
    assert_string_equal(code.same->name, "one block, taps constant");
    gc_lab_code_free(&code);
}

static void exercises_lead_to_rungs(void **state) {
    (void)state;
    int count = 0;
    for (; gc_exercise_at(count); count++) {
        const gc_exercise *e = gc_exercise_at(count);
        const gc_lab_module *module = gc_lab_module_find(e->module);
        CHECK(module && gc_student_can_try(module), "%s: module %s", e->name, e->module);
        CHECK(gc_exercise_goal(module, e), "%s: no rung %s", e->name, e->goal);
        CHECK(e->hint[0], "%s: no hint", e->name);
    }
    assert_true(count >= 10);
    assert_false(gc_student_can_try(gc_lab_module_find("bank-conflicts")));
}

/* Explains messages and compares the result. */
static void expect_explained(const char *messages, const char *text) {
    const gc_student_source source = {"my own.cu", "void solve(int *ids)"};
    char said[4000] = "";
    FILE *to = fmemopen(said, sizeof said, "w");
    assert_non_null(to);
    gc_explain_compiler_messages(messages, &source, to);
    assert_int_equal(fclose(to), 0);
    CHECK(strstr(said, text), "does not say '%s': %s", text, said);
    CHECK(!strchr(said, '\033'), "a control character: %s", said);
}

static void compiler_messages_are_explained(void **state) {
    (void)state;
    expect_explained("student.cu(4): error: expected a \";\"\n  }\n  ^\n", "my own.cu(4): error: expected a \";\"");
    expect_explained("student.cu(4): error: expected a \";\"\n", "a semicolon is missing");
    static const char *const removed[] = {"shfl", "shfl_up", "shfl_down", "shfl_xor", "any", "all", "ballot"};
    static const char *const form[][2] = {/* nvcc, g++, clang++ */
                                          {"student.cu(4): error: identifier \"__", "\" is undefined\n"},
                                          {"student.cu:4:3: error: '__", "' was not declared in this scope\n"},
                                          {"student.cu:4:3: error: use of undeclared identifier '__", "'\n"}};
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
            char message[200], told[100];
            (void)snprintf(message, sizeof message, "%s%s%s", form[k][0], removed[i], form[k][1]);
            (void)snprintf(told, sizeof told, "(Volta) and later: write __%s_sync(0xffffffff, ", removed[i]);
            expect_explained(message, told);
        }
    expect_explained(
        "ptxas x.ptx, line 3; error   : Instruction 'vote' without '.sync' is not supported on .target sm_70 and "
        "higher from PTX ISA version 6.4\n",
        "__ballot_sync");
    expect_explained("/usr/bin/ld: x.o: undefined reference to `solve'\ncollect2: error: ld returned 1\n",
                     "exactly these parameters:\n    void solve(int *ids)");
    expect_explained(
        "student.cu(4): error: a\nstudent.cu(5): error: b\nstudent.cu(6): error: c\nstudent.cu(7): error: d\n",
        "1 more error");
    expect_explained("something else\n", "something else");
    expect_explained("student.cu(1): error: \033[31m\n", "\\x1b[31m");
    expect_explained("", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_outputs_are_told),          cmocka_unit_test(every_rung_has_code),
        cmocka_unit_test(differences_are_marked),          cmocka_unit_test(exercises_lead_to_rungs),
        cmocka_unit_test(compiler_messages_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
