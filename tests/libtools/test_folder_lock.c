/* Tests the lock of a batch's folder between processes and threads, and while ranks outlive the first one. */
#include "files.h"

#include "libtools/batch/output/folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Takes the lock. @return NULL: another batch has it */
static gc_folder_lock *take(bool first_rank) {
    gc_folder_lock *lock = NULL;
    gpuconv_error error = {0};
    int unsupported;
    const gpuconv_status status = gc_folder_lock_new(files_path("."), first_rank, &lock, &unsupported, &error);
    assert_int_equal(status, lock ? GPUCONV_OK : GPUCONV_ERROR_FILE);
    assert_int_equal(unsupported, 0);
    CHECK(lock || strstr(error.message, "another batch writes into this folder (process "), "%s", error.message);
    return lock;
}

static void a_folder_has_one_batch(void **state) {
    gc_folder_lock *first = take(true);
    (void)state;
    assert_non_null(first);
    assert_null(take(true));
    gc_folder_lock *rank = take(false), *another = take(false);
    assert_true(rank && another);
    gc_folder_lock_free(another);
    assert_null(take(true));
    gc_folder_lock_free(rank);
    gc_folder_lock_free(first);
    CHECK(access(files_path(".gpuconv-lock"), F_OK) != 0, "the lock's file stays");
    gc_folder_lock *next = take(true);
    assert_non_null(next);
    gc_folder_lock_free(next);
}

static void ranks_keep_others_out_after_the_first_was_killed(void **state) {
    int there[2];
    char byte;
    (void)state;
    assert_int_equal(pipe(there), 0);
    pid_t child = fork();
    if (child == 0) {
        close(there[0]);
        if (take(true) && write(there[1], "", 1) == 1)
            pause();
        _exit(1);
    }
    close(there[1]);
    assert_int_equal(read(there[0], &byte, 1), 1);
    close(there[0]);
    gc_folder_lock *rank = take(false);
    assert_non_null(rank);
    assert_null(take(true));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_null(take(true));
    gc_folder_lock_free(rank);
    gc_folder_lock *next = take(true);
    assert_non_null(next);
    gc_folder_lock_free(next);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_folder_has_one_batch),
                                       cmocka_unit_test(ranks_keep_others_out_after_the_first_was_killed)};
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
