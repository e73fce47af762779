/* Drawings through gnuplot. gnuplot is run without a shell and without the user's settings. Script, drawing and
 * complaints are files in memory, which are its standard streams; it inherits no other descriptor and never sees the
 * output's name. */
#include "plot.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/output_file.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 4352, TURN = 5000000 /* nanoseconds between two looks at gnuplot */ };

/* ---- What is checked before ------------------------------------------------------------------------------------- */

static bool is_svg(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".svg") == 0;
}

/* Finds gnuplot in the folders of PATH; empty and relative ones are left out. */
static bool find_gnuplot(char *program, size_t room) {
    const char *path = getenv("PATH");
    struct stat st;
    for (path = path ? path : "/usr/local/bin:/usr/bin:/bin"; *path; path += *path == ':') {
        int length = (int)strcspn(path, ":");
        if (*path == '/' && snprintf(program, room, "%.*s/gnuplot", length, path) < (int)room &&
            access(program, X_OK) == 0 && stat(program, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        path += length;
    }
    return false;
}

/* The folder of a path, "." for none; NULL: no memory. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

gpuconv_status gc_plot_check(const char *path, gpuconv_error *error) {
    const char *dot = strrchr(path, '.');
    char program[PATH_ROOM];
    struct stat st;
    if (!is_svg(path) && !(dot && strcmp(dot, ".png") == 0))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a drawing is named .svg or .png", path);
    if (!find_gnuplot(program, sizeof program))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s: drawing needs gnuplot, which is not installed", path);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", path);
    char *folder = folder_of(path);
    if (!folder)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    bool there = stat(folder, &st) == 0;
    if (there && !S_ISDIR(st.st_mode))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(ENOTDIR));
    else if (!there || access(folder, W_OK | X_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    free(folder);
    return status;
}

/* ---- Running gnuplot -------------------------------------------------------------------------------------------- */

/* A file in memory whose descriptor lies above the standard streams; -1 with errno. */
static int memory_file(void) {
    int fd = memfd_create("gpuconv", MFD_CLOEXEC);
    if (fd < 0 || fd > 2)
        return fd;
    int above = fcntl(fd, F_DUPFD_CLOEXEC, 3), reason = errno;
    close(fd);
    errno = reason;
    return above;
}

/* The environment without gnuplot's settings; the caller frees it. */
static char **plain_environment(void) {
    int64_t count = 0;
    while (environ[count])
        count++;
    char **plain = gc_calloc(count + 1, (int64_t)sizeof *plain);
    for (int64_t i = 0, n = 0; plain && i < count; i++)
        if (strncmp(environ[i], "GNUTERM", 7) != 0 && strncmp(environ[i], "GNUPLOT", 7) != 0)
            plain[n++] = environ[i];
    return plain;
}

/* As a file, standard input is read in blocks; gnuplot's "-" reads one byte a system call. */
static char script_name[] = "/dev/stdin";

/* Starts gnuplot with the three files as its standard streams, default signals and no other descriptor.
 * @return 0, or the reason as errno has it */
static int start(const char *program, const int stream[3], pid_t *child) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char name[] = "gnuplot", plain[] = "-d", *const argv[] = {name, plain, script_name, NULL};
    char **environment = plain_environment();
    sigemptyset(&none);
    sigfillset(&all);
    if (!environment)
        return ENOMEM;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed) {
        free((void *)environment);
        return failed;
    }
    for (int i = 0; i < 3 && !failed; i++)
        failed = posix_spawn_file_actions_adddup2(&actions, stream[i], i);
#if defined __GLIBC__ && __GLIBC_PREREQ(2, 34)
    failed = failed ? failed : posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#else
    for (int fd = 3; fd < 256 && !failed; fd++)
        failed = posix_spawn_file_actions_addclose(&actions, fd);
#endif
    if (!failed && (failed = posix_spawnattr_init(&attributes)) == 0) {
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        failed = posix_spawn(child, program, &actions, &attributes, argv, environment);
        (void)posix_spawnattr_destroy(&attributes);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    free((void *)environment);
    return failed;
}

/* Waits for gnuplot; ends it when *cancel is raised. @return whether it ended by itself with status 0 */
static bool wait_for(pid_t child, const volatile int *cancel) {
    const struct timespec turn = {0, TURN};
    int status = 0;
    pid_t ended;
    while ((ended = waitpid(child, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (cancel && *cancel)
            (void)kill(child, SIGKILL);
        (void)nanosleep(&turn, NULL);
    }
    /* Without a status (SIGCHLD is ignored in this process) the drawing itself has to tell. */
    return ended < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The last line of what gnuplot complained about, or "". */
static void read_complaint(int fd, char *line, size_t room) {
    ssize_t got = pread(fd, line, room - 1, 0);
    off_t length = lseek(fd, 0, SEEK_END);
    if (length >= (off_t)room)
        got = pread(fd, line, room - 1, length - (off_t)room + 1);
    size_t end = got > 0 ? (size_t)got : 0;
    while (end > 0 && (line[end - 1] == '\n' || line[end - 1] == ' '))
        end--;
    line[end] = '\0';
    const char *newline = strrchr(line, '\n');
    if (newline)
        memmove(line, newline + 1, strlen(newline));
}

/* Whether the drawing reaches to its end: a disk or memory that was full cuts it. */
static bool is_whole(int fd, bool svg) {
    char end[17] = "";
    off_t length = lseek(fd, 0, SEEK_END);
    return length > 16 && pread(fd, end, 16, length - 16) == 16 &&
           memmem(end, 16, svg ? "</svg>" : "IEND", svg ? 6 : 4) != NULL;
}

/* ---- The drawing's file ----------------------------------------------------------------------------------------- */

/* Returns 0, or the errno of what could not be copied. */
static int copy_bytes(int from, int to) {
    char block[65536];
    ssize_t got;
    for (off_t at = 0; (got = pread(from, block, sizeof block, at)) > 0; at += got)
        for (ssize_t done = 0; done < got;) {
            ssize_t n = write(to, block + done, (size_t)(got - done));
            if (n < 0 && errno != EINTR)
                return errno;
            done += n > 0 ? n : 0;
        }
    return got < 0 ? errno : 0;
}

/* Copies the drawing into the file at `path`, which appears whole. */
static gpuconv_status save(int drawing, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_USER_PATH, NULL, &file, error);
    if (status)
        return status;
    int failed = copy_bytes(drawing, gc_output_file_descriptor(file));
    status = failed ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(failed))
                    : gc_output_file_commit(file, error);
    gc_output_file_free(file);
    return status;
}

/* ---- A drawing -------------------------------------------------------------------------------------------------- */

/* A drawing of one plot, or of panels. */
typedef struct sheet {
    const gc_plot *plot;
    const gc_panel *panel;
    int count, columns;
} sheet;

/* Writes the script and puts the file back to its beginning. */
static bool write_script(const sheet *s, bool svg, int fd) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *to = own < 0 ? NULL : fdopen(own, "w");
    if (!to) {
        if (own >= 0)
            close(own);
        return false;
    }
    if (s->plot)
        gc_script_plot(s->plot, svg, to);
    else
        gc_script_panels(s->panel, s->count, s->columns, svg, to);
    bool bad = ferror(to) != 0;
    return fclose(to) == 0 && !bad && lseek(fd, 0, SEEK_SET) == 0;
}

static gpuconv_status draw(const sheet *s, const char *path, const int stream[3], const volatile int *cancel,
                           gpuconv_error *error) {
    char program[PATH_ROOM], complaint[256];
    bool svg = is_svg(path);
    pid_t child = -1;
    if (!find_gnuplot(program, sizeof program))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "%s: drawing needs gnuplot, which is not installed", path);
    if (!write_script(s, svg, stream[0]))
        return gc_fail_memory(error, path);
    int failed = start(program, stream, &child);
    if (failed)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s cannot be started: %s", path, program, strerror(failed));
    bool done = wait_for(child, cancel);
    if (cancel && *cancel)
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    if (done && is_whole(stream[1], svg))
        return save(stream[1], path, error);
    read_complaint(stream[2], complaint, sizeof complaint);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: gnuplot could not draw it%s%s", path, *complaint ? ": " : "",
                   complaint);
}

static gpuconv_status write_sheet(const sheet *s, const char *path, const volatile int *cancel, gpuconv_error *error) {
    gpuconv_status status = gc_plot_check(path, error);
    int stream[3] = {-1, -1, -1};
    for (int i = 0; i < 3 && !status; i++)
        if ((stream[i] = memory_file()) < 0)
            status = gc_fail(error, GPUCONV_ERROR_MEMORY, "%s: no memory for the drawing: %s", path, strerror(errno));
    if (!status)
        status = draw(s, path, stream, cancel, error);
    for (int i = 0; i < 3; i++)
        if (stream[i] >= 0)
            close(stream[i]);
    return status;
}

gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, const volatile int *cancel, gpuconv_error *error) {
    return write_sheet(&(sheet){.plot = plot}, path, cancel, error);
}

gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path,
                              const volatile int *cancel, gpuconv_error *error) {
    return write_sheet(&(sheet){.panel = panel, .count = count, .columns = columns}, path, cancel, error);
}
