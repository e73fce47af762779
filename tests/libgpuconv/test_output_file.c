/* Tests temporary names of new output files: a file that a killed process has left is removed by the next process that
 * replaces the same target, one that a living process writes is not. rename() goes through the test. */
#include "files.h"

#include "libgpuconv/core/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static int in_rename = -1, go_on = -1; /* pipes of a child that stops in rename() */

int __wrap_rename(const char *from, const char *to) {
    char byte = 0;
    if (in_rename >= 0 && write(in_rename, &byte, 1) == 1)
        (void)!read(go_on, &byte, 1);
    return __real_rename(from, to);
}

/* Returns the number of temporary files in the folder. */
static int temporaries(void) {
    DIR *folder = opendir(files_path("."));
    int count = 0;
    assert_non_null(folder);
    for (struct dirent *e = readdir(folder); e; e = readdir(folder))
        count += strncmp(e->d_name, ".gpuconv-", 9) == 0;
    closedir(folder);
    return count;
}

static void write_text(const char *text) {
    gpuconv_error error = {0};
    CHECK(gc_output_file_write(files_path("out"), GC_OUTPUT_PROGRAM_PATH, text, strlen(text), &error) == GPUCONV_OK,
          "%s", error.message);
}

static void check_text(const char *text) {
    char got[100] = "";
    FILE *f = fopen(files_path("out"), "r");
    assert_true(f && fgets(got, sizeof got, f) && fclose(f) == 0);
    assert_string_equal(got, text);
}

/* Starts a process that replaces the file and stops before it has its name. */
static pid_t start_writer(const char *text, int *resume) {
    int there[2], back[2];
    char byte;
    assert_true(pipe(there) == 0 && pipe(back) == 0);
    pid_t child = fork();
    if (child == 0) {
        close(there[0]);
        close(back[1]);
        in_rename = there[1];
        go_on = back[0];
        write_text(text);
        _exit(0);
    }
    close(there[1]);
    close(back[0]);
    assert_int_equal(read(there[0], &byte, 1), 1);
    close(there[0]);
    *resume = back[1];
    return child;
}

static void what_a_killed_process_left_is_removed_by_the_next_one(void **state) {
    int status, resume;
    (void)state;
    write_text("old");
    pid_t child = start_writer("killed", &resume);
    assert_int_equal(temporaries(), 1);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(resume);
    assert_int_equal(temporaries(), 1);
    check_text("old");
    write_text("new");
    check_text("new");
    assert_int_equal(temporaries(), 0);
}

static bool closing_fails;

int __real_close(int fd);
int __wrap_close(int fd);

/* Closes the file, as a network file system that reports a late write error. */
int __wrap_close(int fd) {
    const int result = __real_close(fd);
    if (!closing_fails)
        return result;
    errno = EIO;
    return -1;
}

static void an_error_on_close_leaves_the_older_file(void **state) {
    gpuconv_error error = {0};
    (void)state;
    write_text("old");
    closing_fails = true;
    const gpuconv_status status = gc_output_file_write(files_path("out"), GC_OUTPUT_USER_PATH, "new", 3, &error);
    closing_fails = false;
    assert_int_equal(status, GPUCONV_ERROR_FILE);
    CHECK(strstr(error.message, strerror(EIO)), "'%s' does not name the reason", error.message);
    check_text("old");
    assert_int_equal(temporaries(), 0);
}

static void the_file_of_a_living_process_stays(void **state) {
    int status, resume;
    (void)state;
    write_text("old");
    pid_t child = start_writer("slow", &resume);
    write_text("fast");
    check_text("fast");
    assert_int_equal(temporaries(), 1);
    assert_int_equal(write(resume, "", 1), 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(resume);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_text("slow");
    assert_int_equal(temporaries(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_a_killed_process_left_is_removed_by_the_next_one),
                                       cmocka_unit_test(the_file_of_a_living_process_stays),
                                       cmocka_unit_test(an_error_on_close_leaves_the_older_file)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
