/* Writes a manifest as CSV. */
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/folder.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/output_file.h"
#include "manifest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes a text in quotes, with inner quotes doubled. @return the number of bytes */
static size_t quote(const char *text, char *to) {
    size_t used = 0;
    to[used++] = '"';
    for (; *text; text++) {
        if (*text == '"')
            to[used++] = '"';
        to[used++] = *text;
    }
    to[used++] = '"';
    return used;
}

static bool write_entry(const gc_entry *e, FILE *f) {
    const char *texts[] = {e->input, e->response, e->output};
    char numbers[200], dry[32] = "-inf";
    size_t size = 16, used = 0;
    for (int i = 0; i < 3; i++)
        size += 2 * strlen(texts[i]) + 4;
    char *line = gc_calloc((int64_t)size, 1);
    if (!line)
        return false;
    for (int i = 0; i < 3; i++) {
        used += quote(texts[i], line + used);
        line[used++] = ',';
    }
    if (e->dry > -HUGE_VAL)
        (void)snprintf(dry, sizeof dry, "%.17g", e->dry);
    int n = snprintf(numbers, sizeof numbers, "%.17g,%.17g,%s,", e->gain, e->wet, dry);
    if (e->random_offset)
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "random,");
    else
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%.17g,", e->offset);
    if (e->length >= 0)
        n += snprintf(numbers + n, sizeof numbers - (size_t)n, "%.17g", e->length);
    n += snprintf(numbers + n, sizeof numbers - (size_t)n, ",%llu\n", (unsigned long long)e->seed);
    bool good = fwrite(line, 1, used, f) == used && fwrite(numbers, 1, (size_t)n, f) == (size_t)n;
    free(line);
    return good;
}

bool gc_manifest_print(const gc_manifest *m, FILE *f) {
    static const char head[] = "input,response,output,gain,wet,dry,offset,length,seed\n";
    bool good = fwrite(head, 1, sizeof head - 1, f) == sizeof head - 1;
    for (int64_t i = 0; i < m->entries && good; i++)
        if (m->entry[i].input && m->entry[i].response && m->entry[i].output)
            good = write_entry(&m->entry[i], f);
    return good;
}

gpuconv_status gc_manifest_write(const gc_manifest *m, const char *path, gpuconv_error *error) {
    gc_output_file *file;
    gpuconv_status status = gc_create_parent_folders(path, error);
    if (!status)
        status = gc_output_file_new(path, GC_OUTPUT_PROGRAM_PATH, NULL, &file, error);
    if (status)
        return status;
    int fd = dup(gc_output_file_descriptor(file));
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool good = f && gc_manifest_print(m, f);
    int reason = errno;
    if (f && fclose(f) != 0 && good) {
        good = false;
        reason = errno;
    } else if (!f && fd >= 0) {
        close(fd);
    }
    status = good ? gc_output_file_commit(file, error)
                  : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(reason));
    gc_output_file_free(file);
    return status;
}
