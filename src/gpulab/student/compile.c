/*
 * Compiles a student's CUDA source as a shared library for one module, and explains the compiler's messages, which are
 * recognised by their wording.
 *
 * The compiler sees only names that gpulab chooses: the source is student.cu in a folder of its own, a link to the
 * file, and a header declares the function solve with the buffers of the module. The name of the student's file is
 * never part of a program text or of a command line.
 */
#include "student.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/visible.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double compile_seconds = 180;

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

gpuconv_status gc_compile_student(int capability, const gc_work_folder *folder, bool *compiled, gpuconv_error *error) {
    char nvcc[4200], libraries[4300], architecture[32];
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
    return gc_work_compile(folder, arguments, compile_seconds, compiled, error);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

enum { MAX_SHOWN = 3, LINE_BYTES = 1000 };

#define MISSPELT                                                                                                        \
    "this name is not declared: is it misspelt? CUDA's own are threadIdx, blockIdx, blockDim and gridDim, with .x, .y " \
    "and .z"
/* A function of a warp without a mask. nvcc and clang++ quote a name with " or ', g++ with an apostrophe of Unicode
 * where the language is UTF-8, but not in the language C, which gpulab sets. */
#define REMOVED_AS(quote, name, arguments)                                                                             \
    {                                                                                                                  \
        quote name quote, "CUDA has removed " name " for compute capability 7.0 (Volta) and later: write " name        \
                          "_sync(" arguments "), whose mask names the lanes that take part"                            \
    }
#define REMOVED(name, arguments) REMOVED_AS("'", name, arguments), REMOVED_AS("\"", name, arguments)
#define SEMICOLON "a semicolon is missing, usually at the end of the line above"
#define READ_ONLY "this is const: inputs are read only; write to the output"

/* An error message of nvcc, g++ or clang++ contains `part`; `meaning` says what to do. A meaning with %s gets the
 * signature. */
static const struct {
    const char *part, *meaning;
} meanings[] = {
    {"undefined reference to `solve'",
     "gpulab calls this function, and the file has none with exactly these parameters:\n    %s"},
    {"is undefined in device code", "a kernel can call only functions marked __device__ or __global__"},
    {"calling a __host__ function",
     "a kernel can call only functions marked __device__: write __device__ before that function"},
    {"a __global__ function call must be configured",
     "a kernel is launched with its grid: kernel<<<blocks, threads, 0, stream>>>(...)"},
    {"a host function call cannot be configured", "<<<...>>> launches kernels only: mark the function __global__"},
    {"must have a void return type",
     "a kernel returns nothing: declare it __global__ void, and write results to memory"},
    REMOVED("__shfl", "0xffffffff, value, lane"),
    REMOVED("__shfl_up", "0xffffffff, value, delta"),
    REMOVED("__shfl_down", "0xffffffff, value, delta"),
    REMOVED("__shfl_xor", "0xffffffff, value, lanes"),
    REMOVED("__any", "0xffffffff, predicate"),
    REMOVED("__all", "0xffffffff, predicate"),
    REMOVED("__ballot", "0xffffffff, predicate"),
    {"without '.sync' is not supported",
     "CUDA has removed __any, __all and __ballot for compute capability 7.0 (Volta) and later: write __any_sync, "
     "__all_sync and __ballot_sync, whose first argument 0xffffffff names the lanes that take part"},
    {"is undefined", MISSPELT},
    {"was not declared in this scope", MISSPELT},
    {"use of undeclared identifier", MISSPELT},
    {"expected ';'", SEMICOLON},
    {"expected ')'", "a closing bracket is missing"},
    {"expected '}'", "a closing brace is missing"},
    {"read-only location", READ_ONLY},
    {"const-qualified type", READ_ONLY},
    {"expected a \";\"", SEMICOLON},
    {"expected a \")\"", "a closing bracket is missing"},
    {"expected a \"}\"", "a closing brace is missing"},
    {"modifiable lvalue", READ_ONLY},
    {"too few arguments", "the call has fewer arguments than the function has parameters"},
    {"too many arguments", "the call has more arguments than the function has parameters"},
    {"is incompatible with parameter", "the types differ: inputs are const float *, sizes are int64_t"},
    {"cannot be used to initialize", "the types differ: inputs are const pointers"},
    {"uses too much shared data",
     "a block can declare at most 48 KiB of shared memory: make the tile smaller, or use dynamic shared memory and "
     "cudaFuncSetAttribute"},
    {"cannot open source file", "the included file was not found; it is searched beside your file"},
    {"No such file or directory", "a file was not found; included files are searched beside your file"},
    {"has already been declared", "two things have this name"},
    {"must have a constant value", "the size of an array in a kernel is a constant: constexpr int N = ..., or dynamic "
                                   "shared memory (extern __shared__)"},
    {"dynamic initialization is not supported",
     "a __shared__ variable has no initial value: let one thread set it, then "
     "__syncthreads()"},
    {"Unsupported gpu architecture", "this nvcc does not know the GPU: use another version of the CUDA toolkit"},
    {"unsupported GNU version", "this nvcc does not accept the host's gcc: set NVCC_CCBIN to an older g++"},
};

void gc_print_messages(const char *text, size_t length, const gc_student_source *source, FILE *to) {
    static const char name[] = "student.cu";
    char line[LINE_BYTES], shown[2 * LINE_BYTES];
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < sizeof line;) {
        if (length - i >= strlen(name) && memcmp(text + i, name, strlen(name)) == 0) {
            int written = snprintf(line + used, sizeof line - used, "%s", source->path);
            used += written > 0 ? (size_t)written : 0;
            i += strlen(name);
        } else {
            line[used++] = text[i++];
        }
    }
    line[used < sizeof line ? used : sizeof line - 1] = '\0';
    fputs(gc_visible(shown, sizeof shown, line), to);
}

/* Prints line `number` of the source. */
static void print_source_line(const gc_student_source *source, long number, FILE *to) {
    char text[LINE_BYTES], shown[LINE_BYTES];
    FILE *from = fopen(source->path, "r");
    long at = 1;
    bool begins = true;
    while (from && at <= number && fgets(text, sizeof text, from)) {
        if (at == number && begins) {
            text[strcspn(text, "\r\n")] = '\0';
            fprintf(to, "    %s\n", gc_visible(shown, sizeof shown, text + strspn(text, " \t")));
        }
        begins = strchr(text, '\n') != NULL || at == number;
        at += begins;
    }
    if (from)
        (void)fclose(from);
}

/* Returns whether a line reports an error: "file(12): error: ..." of nvcc, "file:12:3: error: ..." of the host
 * compiler, "ptxas error   : ..." or a name that the linker misses. */
static bool is_error(const char *line, size_t length) {
    static const char *const forms[] = {": error:",    "fatal error:", ": catastrophic error:", "ptxas error",
                                        "; error   :", "nvcc fatal",   "undefined reference to"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (memmem(line, length, forms[i], strlen(forms[i])))
            return true;
    return memmem(line, length, "error #", 7) != NULL;
}

static void explain(const char *line, size_t length, const gc_student_source *source, FILE *to) {
    const char *reference = memmem(line, length, "undefined reference", 19);
    if (reference) { /* the files before it are the compiler's own */
        length -= (size_t)(reference - line);
        line = reference;
    }
    gc_print_messages(line, length, source, to);
    fputc('\n', to);
    static const char name[] = "student.cu";
    if (length > strlen(name) && strncmp(line, name, strlen(name)) == 0) {
        long number = strtol(line + strlen(name) + 1, NULL, 10);
        if (number > 0)
            print_source_line(source, number, to);
    }
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (!memmem(line, length, meanings[i].part, strlen(meanings[i].part)))
            continue;
        const char *place = strstr(meanings[i].meaning, "%s");
        fprintf(to, "  -> %.*s%s\n", place ? (int)(place - meanings[i].meaning) : 1000, meanings[i].meaning,
                place ? source->signature : "");
        return;
    }
}

void gc_explain_compiler_messages(const char *messages, const gc_student_source *source, FILE *to) {
    int count = 0;
    for (const char *line = messages; *line;) {
        size_t length = strcspn(line, "\n");
        if (is_error(line, length) && ++count <= MAX_SHOWN)
            explain(line, length, source, to);
        line += length + (line[length] == '\n');
    }
    if (count > MAX_SHOWN)
        fprintf(to, "%d more error%s; the first one often causes the others.\n", count - MAX_SHOWN,
                count - MAX_SHOWN == 1 ? "" : "s");
    for (const char *line = count ? "" : messages; *line;) {
        size_t length = strcspn(line, "\n");
        gc_print_messages(line, length, source, to);
        fputc('\n', to);
        line += length + (line[length] == '\n');
    }
}
