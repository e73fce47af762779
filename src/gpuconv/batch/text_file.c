/* Reads text files through zlib, which passes files without compression on as they are. */
#include "text_file.h"

#include "libgpuconv/core/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

gpuconv_status gc_text_file_check(const char *path, const char *text, size_t length, gpuconv_error *error) {
    const char *nul = memchr(text, '\0', length);
    long long line = 1;
    for (const char *at = text; nul && at < nul; at++)
        line += *at == '\n';
    return nul ? gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: line %lld contains a NUL byte; a manifest must be text",
                         path, line)
               : GPUCONV_OK;
}

/* Reads everything. @return the text; NULL: out of memory. *err: an error of zlib */
static char *read_all(gzFile file, size_t *length, int *err) {
    size_t size = 1 << 16, used = 0;
    char *text = malloc(size);
    while (text) {
        int n = gzread(file, text + used, (unsigned)(size - used - 1 < (1U << 30) ? size - used - 1 : 1U << 30));
        used += n > 0 ? (size_t)n : 0;
        if (n <= 0)
            break;
        if (used < size - 1)
            continue;
        char *larger = realloc(text, size *= 2);
        if (!larger)
            free(text);
        text = larger;
    }
    (void)gzerror(file, err);
    *length = used;
    if (text)
        text[used] = '\0';
    return text;
}

char *gc_text_file_read(const char *path, size_t *length, gpuconv_error *error) {
    int err = Z_OK;
    errno = 0;
    gzFile file = gzopen(path, "rb");
    if (!file) {
        gc_fail(error, errno ? GPUCONV_ERROR_FILE : GPUCONV_ERROR_MEMORY, "%s: %s", path,
                errno ? strerror(errno) : "out of memory");
        return NULL;
    }
    (void)gzbuffer(file, 1 << 17);
    char *text = read_all(file, length, &err);
    int system_error = errno;
    (void)gzclose(file); /* opened for reading */
    gpuconv_status status = GPUCONV_OK;
    if (!text)
        status = gc_fail_memory(error, path);
    else if (err == Z_ERRNO)
        status = gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", path, strerror(system_error));
    else if (err != Z_OK && err != Z_STREAM_END)
        status = gc_fail(error, GPUCONV_ERROR_FORMAT, "%s: its compression is damaged or cut off", path);
    else
        status = gc_text_file_check(path, text, *length, error);
    if (status) {
        free(text);
        return NULL;
    }
    return text;
}

char *gc_text_file_line(char **at) {
    char *line = *at;
    if (!*line)
        return NULL;
    size_t length = strcspn(line, "\n");
    *at = line + length + (line[length] == '\n');
    line[length] = '\0';
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    return line;
}
