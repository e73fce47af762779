/* Writes the header, links the source, and runs nvcc. */
#include "compile.h"

#include "libgpuconv/core/error.h"
#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double compile_seconds = 180;

/* ---- The folder -------------------------------------------------------------------------------------------------- */

gpuconv_status gc_work_folder_new(gc_work_folder *folder, gpuconv_error *error) {
    const char *parent = getenv("TMPDIR");
    int length =
        snprintf(folder->path, sizeof folder->path, "%s/gpulab-XXXXXX", parent && *parent == '/' ? parent : "/tmp");
    if (length >= (int)sizeof folder->path - 100) {
        folder->path[0] = '\0';
        return gc_fail(error, GPUCONV_ERROR_FILE, "TMPDIR is too long");
    }
    if (!mkdtemp(folder->path)) {
        gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot create a folder: %s", folder->path, strerror(errno));
        folder->path[0] = '\0';
        return GPUCONV_ERROR_FILE;
    }
    return GPUCONV_OK;
}

void gc_work_folder_remove(gc_work_folder *folder) {
    DIR *entries = folder->path[0] ? opendir(folder->path) : NULL;
    const struct dirent *entry;
    while (entries && (entry = readdir(entries)) != NULL) /* links are removed, not followed; there are no folders */
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void)unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries) {
        (void)closedir(entries);
        (void)rmdir(folder->path);
    }
    folder->path[0] = '\0';
}

const char *gc_work_path(const gc_work_folder *folder, const char *name, char *path, size_t room) {
    (void)snprintf(path, room, "%s/%s", folder->path, name);
    return path;
}

/* ---- The header -------------------------------------------------------------------------------------------------- */

static const char *c_type(gc_lab_type type) {
    switch (type) {
    case LAB_F64:
        return "double";
    case LAB_F16:
        return "__half";
    case LAB_BF16:
        return "__nv_bfloat16";
    case LAB_I32:
        return "int";
    case LAB_U8:
        return "unsigned char";
    default:
        return "float";
    }
}

/* Returns whether a dimension is called like a buffer. */
static bool names_buffer(const char *dimension, const gc_lab_buffer *buffer, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(buffer[i].name, dimension) == 0)
            return true;
    return false;
}

void gc_solve_signature(const gc_lab_module *module, char *text, size_t room) {
    gc_lab_buffer buffer[LAB_BUFFERS];
    int count = module->buffers(module->sizes[0].value, buffer);
    size_t used = (size_t)snprintf(text, room, "void solve(");
    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s *%s, ", buffer[i].role == LAB_INPUT ? "const " : "",
                                 c_type(buffer[i].type), buffer[i].name);
    for (int d = 0; d < LAB_DIMENSIONS && module->dimension[d] && used < room; d++)
        used += (size_t)snprintf(text + used, room - used, "int64_t %s%s, ",
                                 names_buffer(module->dimension[d], buffer, count) ? "n_" : "", module->dimension[d]);
    if (used < room)
        (void)snprintf(text + used, room - used, "cudaStream_t stream)");
}

/* Writes the header that is included before the student's source. */
static void write_header(const gc_lab_module *module, FILE *to) {
    gc_lab_buffer buffer[LAB_BUFFERS];
    char signature[600];
    int count = module->buffers(module->sizes[0].value, buffer);
    gc_solve_signature(module, signature, sizeof signature);
    fprintf(to,
            /* nvcc itself includes cuda_runtime.h */
            "#include <cstdint>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n"
            "extern \"C\" %s;\n"
            "extern \"C\" int gpulab_solve(void *const *buffer, const int64_t *size, cudaStream_t stream) {\n"
            "    solve(",
            signature);
    for (int i = 0; i < count; i++)
        fprintf(to, "(%s%s *)buffer[%d], ", buffer[i].role == LAB_INPUT ? "const " : "", c_type(buffer[i].type), i);
    for (int d = 0; d < LAB_DIMENSIONS && module->dimension[d]; d++)
        fprintf(to, "size[%d], ", d);
    fprintf(to, "stream);\n    return (int)cudaGetLastError();\n}\n");
}

/* ---- The compiler ------------------------------------------------------------------------------------------------ */

/* Links student.cu to the source and `folder` to its folder, for its own #include lines. */
static gpuconv_status link_source(const char *source, const gc_work_folder *folder, gpuconv_error *error) {
    char link[4200];
    char *absolute = realpath(source, NULL);
    struct stat about;
    if (!absolute || stat(absolute, &about) != 0 || access(absolute, R_OK) != 0) {
        int reason = errno;
        free(absolute);
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be read: %s", source, strerror(reason));
    }
    if (!S_ISREG(about.st_mode)) {
        free(absolute);
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: not a file", source);
    }
    int err = symlink(absolute, gc_work_path(folder, "student.cu", link, sizeof link));
    char *slash = strrchr(absolute, '/');
    slash[slash == absolute] = '\0';
    if (!err)
        err = symlink(absolute, gc_work_path(folder, "folder", link, sizeof link));
    free(absolute);
    return err ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s", link, strerror(errno)) : GPUCONV_OK;
}

gpuconv_status gc_prepare_student(const gc_lab_module *module, const char *source, const gc_work_folder *folder,
                                  gpuconv_error *error) {
    char path[4200];
    gpuconv_status err = link_source(source, folder, error);
    if (err)
        return err;
    FILE *header = fopen(gc_work_path(folder, "gpulab_solve.h", path, sizeof path), "w");
    if (header)
        write_header(module, header);
    if (!header || (ferror(header) | fclose(header)) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno));
    return GPUCONV_OK;
}

/* Beside the folder of the program are Python's packages, or in a checkout the folder that scripts/cuda-compiler makes.
 */
bool gc_find_nvcc(char *path, size_t room) {
    static const char *const packages[] = {"../nvidia/cu13/bin", "../cuda/nvidia/cu13/bin"};
    char folder[4200], program[4000];
    const char *root = getenv("CUDA_PATH");
    (void)snprintf(folder, sizeof folder, "%s/bin", root && *root ? root : "/usr/local/cuda");
    bool found = gc_process_find("nvcc", "CUDACXX", folder, path, room);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    while (length > 0 && program[length - 1] != '/')
        length--;
    for (int i = 0; !found && length > 0 && i < LAB_LENGTH(packages); i++) {
        (void)snprintf(folder, sizeof folder, "%.*s%s", (int)length, program, packages[i]);
        found = gc_process_find("nvcc", NULL, folder, path, room);
    }
    return found;
}

gpuconv_status gc_compile_student(int capability, const gc_work_folder *folder, bool *compiled, gpuconv_error *error) {
    char nvcc[4200], path[4200], libraries[4300], architecture[32];
    *compiled = false;
    if (!gc_find_nvcc(nvcc, sizeof nvcc))
        return gc_fail(
            error, GPUCONV_ERROR_FILE,
            "nvcc was not found: install NVIDIA's CUDA toolkit, and put nvcc into PATH or its path into CUDACXX");
    (void)snprintf(architecture, sizeof architecture, "-arch=sm_%d", capability);
    /* nvcc looks into lib64, which the compiler from the Python package index has not. */
    (void)snprintf(libraries, sizeof libraries, "-L%.*s/../lib", (int)(strrchr(nvcc, '/') - nvcc), nvcc);
    const char *const arguments[] = {nvcc,         "-shared", "-O3",        "-std=c++17", "-lineinfo",
                                     "-Xcompiler", "-fPIC",   "-Xlinker",   "-z,defs",    architecture,
                                     libraries,    "-I",      "folder",     "-include",   "gpulab_solve.h",
                                     "student.cu", "-o",      "student.so", NULL};
    gc_process_result result;
    gpuconv_status err =
        gc_process_run(&(gc_process_request){arguments, folder->path,
                                             gc_work_path(folder, "messages.txt", path, sizeof path), compile_seconds},
                       &result, error);
    if (!err && result.timed_out)
        err = gc_fail(error, GPUCONV_ERROR_FILE, "the compiler did not end within %.0f s", compile_seconds);
    *compiled = !err && result.status == 0;
    return err;
}
