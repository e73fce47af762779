/* Writes the emulator's headers and the rewritten source into the folder, and runs the compiler twice: the kernel is
 * instrumented, the hooks are not. */
#include "compile.h"

#include "gpulab/process.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "rewrite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SOURCE = 16 << 20 };

static const double compile_seconds = 60;

/* EMULATOR_FOLDER is the folder of this file. */
#define EMBED(label, name)                                                                                             \
    __asm__(".section .rodata\n" #label ":\n.incbin \"" EMULATOR_FOLDER "/" name "\"\n.byte 0\n.previous\n");          \
    extern const char label[]; /* NOLINT(bugprone-macro-parentheses): a declared name */
EMBED(emulator_interface, "interface.h")
EMBED(emulator_cuda, "cuda.hpp")
EMBED(emulator_hooks, "hooks.cpp")

static const struct {
    const char *name, *text;
} files[] = {
    {"interface.h", emulator_interface},
    {"cuda.hpp", emulator_cuda},
    {"hooks.cpp", emulator_hooks},
    {"cuda.h", "#include \"cuda.hpp\"\n"},
    {"cuda_runtime.h", "#include \"cuda.hpp\"\n"},
    {"cuda_runtime_api.h", "#include \"cuda.hpp\"\n"},
    {"device_launch_parameters.h", "#include \"cuda.hpp\"\n"},
    {"cuda_fp16.h", "#include \"cuda.hpp\"\n"},
    {"cuda_bf16.h", "#include \"cuda.hpp\"\n"},
};

static gpuconv_status write_file(const char *folder, const char *name, const char *text, gpuconv_error *error) {
    char path[4300];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *to = fopen(path, "w");
    bool bad = !to || fputs(text, to) == EOF;
    if (to && fclose(to) != 0)
        bad = true;
    return bad ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno)) : GPUCONV_OK;
}

/* Reads a text file of the folder, shortened to 16 MiB. NULL if it cannot be read, or without memory. */
static char *read_file(const char *folder, const char *name) {
    char path[4300];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *from = fopen(path, "r");
    char *text = from ? gc_calloc(MAX_SOURCE + 1, 1) : NULL;
    if (text)
        text[fread(text, 1, MAX_SOURCE, from)] = '\0';
    if (from)
        (void)fclose(from);
    return text;
}

static gpuconv_status write_kernel(const char *folder, gpuconv_error *error) {
    char *source = read_file(folder, "student.cu"), *kernel = source ? gc_emulator_rewrite(source) : NULL;
    gpuconv_status err = !source   ? gc_fail(error, GPUCONV_ERROR_FILE, "%s/student.cu: cannot be read", folder)
                         : !kernel ? gc_fail_memory(error, "the source")
                                   : write_file(folder, "kernel.cpp", kernel, error);
    free(kernel);
    free(source);
    return err;
}

/* Keeps the warnings about the kernel: the linker writes its messages into the same file. */
static gpuconv_status keep_warnings(const char *folder, gpuconv_error *error) {
    char from[4300], to[4300];
    (void)snprintf(from, sizeof from, "%s/messages.txt", folder);
    (void)snprintf(to, sizeof to, "%s/warnings.txt", folder);
    if (rename(from, to) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be renamed: %s", from, strerror(errno));
    return GPUCONV_OK;
}

/* Runs the compiler in the folder. */
static gpuconv_status run(const char *folder, const char *const *arguments, bool *compiled, gpuconv_error *error) {
    char messages[4300];
    gc_process_result result;
    (void)snprintf(messages, sizeof messages, "%s/messages.txt", folder);
    gpuconv_status err =
        gc_process_run(&(gc_process_request){arguments, folder, messages, compile_seconds}, &result, error);
    if (!err && result.timed_out)
        err = gc_fail(error, GPUCONV_ERROR_FILE, "the compiler did not end within %.0f s", compile_seconds);
    *compiled = !err && result.status == 0;
    return err;
}

/* A C++ compiler, and what it knows. */
typedef struct compiler {
    char path[4200];
    bool is_clang;
    bool has_pattern; /* -ftrivial-auto-var-init; g++ before version 12 has not */
} compiler;

/* Finds a compiler. @return FILE if there is none, CANCELLED */
static gpuconv_status find_compiler(const char *folder, compiler *c, gpuconv_error *error) {
    static const char *const names[] = {"g++", "clang++", "c++"};
    bool found = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = gc_process_find(names[i], "CXX", NULL, c->path, sizeof c->path);
    if (!found)
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "no C++ compiler was found: install g++ or clang++, with which kernels run without a GPU");
    const char *const version[] = {c->path, "--version", NULL};
    const char *const help[] = {c->path, "-Q", "--help=common", NULL};
    gpuconv_status err = run(folder, version, &found, error);
    char *text = err ? NULL : read_file(folder, "messages.txt");
    c->is_clang = text && strstr(text, "clang");
    free(text);
    if (err || c->is_clang) {
        c->has_pattern = true;
        return err;
    }
    err = run(folder, help, &found, error);
    text = err ? NULL : read_file(folder, "messages.txt");
    c->has_pattern = text && strstr(text, "-ftrivial-auto-var-init");
    free(text);
    return err;
}

/* Compiles kernel.cpp. */
static gpuconv_status compile_kernel(const char *folder, const compiler *c, bool *compiled, gpuconv_error *error) {
    /* -O1: no vector instructions, which would merge accesses. */
    static const char *const options[] = {"-c",
                                          "-fPIC",
                                          "-O1",
                                          "-g1",
                                          "-gdwarf-4",
                                          "-std=c++17",
                                          "-fno-exceptions",
                                          "-fno-strict-aliasing",
                                          "-fsanitize=thread,bounds,integer-divide-by-zero",
                                          "-fsanitize-coverage=trace-pc",
                                          "-finstrument-functions",
                                          "-Wuninitialized",
                                          "-Wno-attributes",
                                          "-Wno-unknown-pragmas",
                                          "-I.",
                                          "-Ifolder",
                                          "-include",
                                          "cuda.hpp",
                                          "-include",
                                          "gpulab_solve.h",
                                          "kernel.cpp",
                                          "-o",
                                          "kernel.o"};
    const char *arguments[40] = {"/usr/bin/env", "LC_ALL=C", c->path};
    int n = 3;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        arguments[n++] = options[i];
    if (c->is_clang) { /* a read before a write to the same address counts too */
        arguments[n++] = "-mllvm";
        arguments[n++] = "-tsan-instrument-read-before-write=1";
    } else {
        arguments[n++] = "-Wmaybe-uninitialized";
        arguments[n++] = "-finstrument-functions-exclude-function-list=<lambda"; /* a kernel's own need no __device__ */
    }
    if (c->has_pattern) /* variables without a value get one that makes the result wrong */
        arguments[n++] = "-ftrivial-auto-var-init=pattern";
    arguments[n] = NULL;
    return run(folder, arguments, compiled, error);
}

/* Compiles the hooks and links them with the kernel. */
static gpuconv_status link_kernel(const char *folder, const compiler *c, bool *compiled, gpuconv_error *error) {
    const char *const arguments[] = {"/usr/bin/env",
                                     "LC_ALL=C",
                                     c->path,
                                     "-shared",
                                     "-fPIC",
                                     "-O1",
                                     "-std=c++17",
                                     "-fno-exceptions",
                                     "-w",
                                     "-I.",
                                     "kernel.o",
                                     "hooks.cpp",
                                     "-Wl,-z,defs",
                                     "-Wl,-Bsymbolic,--wrap=memcpy,--wrap=memmove,--wrap=memset",
                                     "-o",
                                     "student.so",
                                     NULL};
    return run(folder, arguments, compiled, error);
}

/* Removes the headers: nvcc, which may follow, has its own. */
static void remove_files(const char *folder) {
    char path[4300];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        (void)unlink(path);
    }
}

gpuconv_status gc_emulator_compile(const char *folder, bool *compiled, gpuconv_error *error) {
    compiler c = {0};
    *compiled = false;
    gpuconv_status err = find_compiler(folder, &c, error);
    if (!err)
        err = write_kernel(folder, error);
    for (size_t i = 0; !err && i < sizeof files / sizeof *files; i++)
        err = write_file(folder, files[i].name, files[i].text, error);
    if (!err)
        err = compile_kernel(folder, &c, compiled, error);
    if (!err && *compiled)
        err = keep_warnings(folder, error);
    if (!err && *compiled)
        err = link_kernel(folder, &c, compiled, error);
    remove_files(folder);
    return err;
}

bool gc_emulator_warning(const char *folder, char *text, size_t room) {
    static const char file[] = "student.cu:";
    char *warnings = read_file(folder, "warnings.txt");
    const char *line = warnings;
    *text = '\0';
    while (line && *line && !*text) {
        size_t length = strcspn(line, "\n");
        const char *name = memchr(line, '\'', length), *end = name ? memchr(name + 1, '\'', length) : NULL;
        if (strncmp(line, file, strlen(file)) == 0 && memmem(line, length, "uninitialized", 13) && end)
            (void)snprintf(text, room,
                           "Line %ld: %.*s has no value yet when it is used. Give it one where it is declared.",
                           strtol(line + strlen(file), NULL, 10), (int)(end - name - 1), name + 1);
        line += length + (line[length] == '\n');
    }
    free(warnings);
    return *text != '\0';
}
