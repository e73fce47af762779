/* Runs gnuplot without a shell and without the user's settings. Its standard streams are files in memory: the script,
 * the drawing and the error messages. It inherits no other descriptor and does not know the name of the output file. */
#include "plot.h"

#include "libgpuconv/core/cancel.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/os.h"
#include "libgpuconv/core/output_file.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 4352 };

static const double poll_interval = 5e-3; /* seconds between two checks of gnuplot and the cancel flag */

/* ---- Checks before a drawing ------------------------------------------------------------------------------------ */

/* Sets *format by the extension. Returns false for another extension. */
static bool find_format(const char *path, gc_plot_format *format) {
    static const char *const extension[GC_PLOT_FORMATS] = {".svg", ".png", ".pdf"};
    const char *dot = strrchr(path, '.');
    for (int k = 0; dot && k < GC_PLOT_FORMATS; k++)
        if (strcmp(dot, extension[k]) == 0) {
            *format = (gc_plot_format)k;
            return true;
        }
    return false;
}

static gpuconv_status refuse_without_gnuplot(const char *name, gpuconv_error *error) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%s: drawing needs gnuplot, which is not installed; install the package gnuplot-nox or gnuplot",
                   name);
}

/* Returns the folder of a path, "." if it names none; NULL if there is too little memory. The caller frees it. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

gpuconv_status gc_plot_check(const char *path, gpuconv_error *error) {
    char program[PATH_ROOM];
    gc_plot_format format;
    struct stat st;
    if (!find_format(path, &format))
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: a drawing is named .svg, .png or .pdf", path);
    if (!gc_os_find_program("gnuplot", program, sizeof program))
        return refuse_without_gnuplot(path, error);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: is a directory", path);
    char *folder = folder_of(path);
    if (!folder)
        return gc_fail_memory(error, path);
    gpuconv_status status = GPUCONV_OK;
    bool exists = stat(folder, &st) == 0;
    if (exists && !S_ISDIR(st.st_mode))
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(ENOTDIR));
    else if (!exists || access(folder, W_OK | X_OK) != 0)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    free(folder);
    return status;
}

/* ---- Running gnuplot -------------------------------------------------------------------------------------------- */

/* Returns the environment without gnuplot's variables; NULL if there is too little memory. The caller frees it. */
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

/* gnuplot reads a named file in blocks, but its "-" with one system call per byte. */
static char script_name[] = "/dev/stdin";

/* Starts gnuplot with the three files as its standard streams. Returns 0 or an errno value. */
static int start_gnuplot(const char *program, const int stream[3], pid_t *child) {
    char name[] = "gnuplot", plain[] = "-d", *const argv[] = {name, plain, script_name, NULL};
    char **environment = plain_environment();
    int err = environment ? gc_os_start(program, argv, environment, stream, child) : ENOMEM;
    free((void *)environment);
    return err;
}

/* Waits for gnuplot and ends it when the thread's cancel flag is raised. Returns whether gnuplot exited with status 0,
 * or true if its status is unknown: is_whole decides then. */
static bool wait_for_gnuplot(pid_t child) {
    int status = 0;
    while (!gc_os_wait(child, poll_interval, gc_cancelled(), &status))
        ;
    return status == 0;
}

/* Reads the last line of gnuplot's error messages, or "". */
static void read_last_error(int fd, char *line, size_t room) {
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

/* Returns whether the drawing has its end mark. It is truncated if memory was full. */
static bool is_whole(int fd, gc_plot_format format) {
    static const char *const mark[GC_PLOT_FORMATS] = {"</svg>", "IEND", "%%EOF"};
    char end[17] = "";
    off_t length = lseek(fd, 0, SEEK_END);
    return length > 16 && pread(fd, end, 16, length - 16) == 16 &&
           memmem(end, 16, mark[format], strlen(mark[format])) != NULL;
}

/* ---- The drawing's file ----------------------------------------------------------------------------------------- */

/* Returns 0, or the errno value of a err read or write. */
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

/* Copies the drawing into the file at `path`, which is replaced atomically. */
static gpuconv_status save(int drawing, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_output_file_new(path, GC_OUTPUT_USER_PATH, NULL, &file, error);
    if (status)
        return status;
    int err = copy_bytes(drawing, gc_output_file_descriptor(file));
    status = err ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(err))
                 : gc_output_file_commit(file, error);
    gc_output_file_free(file);
    return status;
}

/* ---- A drawing -------------------------------------------------------------------------------------------------- */

/* The content of a drawing: one plot, or several panels. */
typedef struct sheet {
    const gc_plot *plot;
    const gc_panel *panel;
    int count, columns; /* columns 0: every panel is a document of its own */
    gc_plot_format format;
} sheet;

/* Writes the script and rewinds the file. Returns false if that fails. */
static bool write_script(const sheet *s, int fd) {
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    FILE *to = own < 0 ? NULL : fdopen(own, "w");
    if (!to) {
        if (own >= 0)
            close(own);
        return false;
    }
    if (s->plot)
        gc_script_plot(s->plot, s->format, to);
    else
        gc_script_panels(s->panel, s->count, s->columns, s->format, to);
    bool has_error = ferror(to) != 0;
    return fclose(to) == 0 && !has_error && lseek(fd, 0, SEEK_SET) == 0;
}

/* Writes the script and runs gnuplot; the drawing is in stream[1]. `name` begins the messages. */
static gpuconv_status draw(const sheet *s, const char *name, const int stream[3], gpuconv_error *error) {
    char program[PATH_ROOM], last_error[256];
    pid_t child = -1;
    if (!gc_os_find_program("gnuplot", program, sizeof program))
        return refuse_without_gnuplot(name, error);
    if (!write_script(s, stream[0]))
        return gc_fail_memory(error, name);
    int err = start_gnuplot(program, stream, &child);
    if (err)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s cannot be started: %s", name, program, strerror(err));
    bool succeeded = wait_for_gnuplot(child);
    if (gc_cancelled())
        return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted");
    if (succeeded && is_whole(stream[1], s->format))
        return GPUCONV_OK;
    read_last_error(stream[2], last_error, sizeof last_error);
    return gc_fail(error, GPUCONV_ERROR_FILE, "%s: gnuplot could not draw it%s%s", name, *last_error ? ": " : "",
                   last_error);
}

/* Reads the drawing into a text that the caller frees. */
static gpuconv_status read_drawing(int fd, char **text, gpuconv_error *error) {
    off_t length = lseek(fd, 0, SEEK_END), done = 0;
    char *made = length < 0 ? NULL : malloc((size_t)length + 1);
    if (!made)
        return gc_fail_memory(error, "a drawing");
    while (done < length) {
        ssize_t got = pread(fd, made + done, (size_t)(length - done), done);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            free(made);
            return gc_fail(error, GPUCONV_ERROR_FILE, "a drawing cannot be read: %s", strerror(got ? errno : EIO));
        }
        done += got > 0 ? got : 0;
    }
    made[length] = '\0';
    *text = made;
    return GPUCONV_OK;
}

/* Creates the three files in memory, draws, and saves the drawing at `path`, or in *text if `path` is NULL. */
static gpuconv_status write_sheet(const sheet *s, const char *path, char **text, gpuconv_error *error) {
    const char *name = path ? path : "a drawing";
    gpuconv_status status = path ? gc_plot_check(path, error) : GPUCONV_OK;
    int stream[3] = {-1, -1, -1};
    sheet formatted = *s;
    if (!status && path)
        (void)find_format(path, &formatted.format);
    for (int i = 0; i < 3 && !status; i++)
        if ((stream[i] = gc_os_memory_file()) < 0)
            status = gc_fail(error, GPUCONV_ERROR_MEMORY, "%s: no memory for the drawing: %s", name, strerror(errno));
    if (!status)
        status = draw(&formatted, name, stream, error);
    if (!status)
        status = path ? save(stream[1], path, error) : read_drawing(stream[1], text, error);
    for (int i = 0; i < 3; i++)
        if (stream[i] >= 0)
            close(stream[i]);
    return status;
}

gpuconv_status gc_plot_write(const gc_plot *plot, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.plot = plot}, path, NULL, error);
}

gpuconv_status gc_plot_panels(const gc_panel *panel, int count, int columns, const char *path, gpuconv_error *error) {
    return write_sheet(&(sheet){.panel = panel, .count = count, .columns = columns}, path, NULL, error);
}

gpuconv_status gc_plot_panels_svg(const gc_panel *panel, int count, char **svg, gpuconv_error *error) {
    *svg = NULL;
    return write_sheet(&(sheet){.panel = panel, .count = count}, NULL, svg, error);
}
