/* The files that a response is read from, found without reading samples, so that no output replaces one of them. */
#include "read_files.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/files.h"
#include "matrix.h"
#include "prepare.h"

#include <string.h>
#include <sys/stat.h>

void gc_ir_visit_files(const char *path, gc_file_visit *visit, void *context) {
    struct stat st;
    visit(context, path);
    if (gc_is_matrix(path) && stat(path, &st) == 0 && S_ISREG(st.st_mode)) /* a pipe can be read only once */
        gc_matrix_visit_files(path, visit, context);
}

typedef struct comparison {
    const char *output;
    bool same;
} comparison;

static void compare(void *context, const char *path) {
    comparison *c = context;
    c->same = c->same || gc_is_same_file(c->output, path);
}

bool gc_ir_reads_file(const char *path, const char *output) {
    struct stat st;
    comparison c = {output, false};
    if (stat(output, &st) == 0 && S_ISREG(st.st_mode))
        gc_ir_visit_files(path, compare, &c);
    return c.same;
}

gpuconv_status gc_ir_keep_files(const char *output, const char *const *kept, int count, gpuconv_error *error) {
    for (int i = 0; i < count; i++)
        if (kept[i] && (strcmp(kept[i], output) == 0 || gc_ir_reads_file(kept[i], output)))
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "%s: would replace a file of the same job; give it another name", output);
    return GPUCONV_OK;
}
