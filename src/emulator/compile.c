/* Rewrites a student's source, in two forms outside comments and strings, writes it and the emulator's headers into the
 * folder, and runs the compiler twice: the kernel is instrumented, the hooks are not. */
#include "compile.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "toolchain/items.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- CUDA's syntax as C++ ---------------------------------------------------------------------------------------- */

typedef struct output {
    gc_buffer text;
    bool failed;
} output;

/* A part of the source. */
typedef struct part {
    const char *begin, *end;
} part;

static void append(output *t, const char *from, size_t length) {
    t->failed = !gc_buffer_append(&t->text, from, length) || t->failed;
}

static void append_text(output *t, const char *from) {
    append(t, from, strlen(from));
}

static void append_part(output *t, part p) {
    append(t, p.begin, (size_t)(p.end - p.begin));
}

static bool is_identifier_character(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_blanks(const char *at) {
    return at + strspn(at, " \t\r\n\\");
}

/* Returns the place of `what` outside brackets and quoted text, or NULL. */
static const char *find_outside_brackets(const char *at, const char *what) {
    int depth = 0;
    while (*at) {
        if (depth == 0 && strncmp(at, what, strlen(what)) == 0)
            return at;
        const char *next = gc_code_skip_quoted(at);
        if (next == at) {
            depth += (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
            next = at + 1;
        }
        if (depth < 0)
            return NULL;
        at = next;
    }
    return NULL;
}

/* Returns where the name of a kernel begins that ends the text, a::b<...>; the text's length if there is none. */
static size_t find_kernel(const output *t) {
    size_t at = t->text.length;
    while (at > 0 && isspace((unsigned char)t->text.bytes[at - 1]))
        at--;
    if (at > 0 && t->text.bytes[at - 1] == '>') {
        int depth = 0;
        do {
            at--;
            depth += (t->text.bytes[at] == '>') - (t->text.bytes[at] == '<');
        } while (at > 0 && depth > 0);
        while (at > 0 && isspace((unsigned char)t->text.bytes[at - 1]))
            at--;
    }
    size_t end = at;
    while (at > 0 && (is_identifier_character(t->text.bytes[at - 1]) || t->text.bytes[at - 1] == ':'))
        at--;
    return at < end ? at : t->text.length;
}

/* Rewrites a launch at "<<<". Returns the place after it, or NULL if it is none. */
static const char *rewrite_launch(output *t, const char *at) {
    part configuration = {at + 3, find_outside_brackets(at + 3, ">>>")};
    const char *open = configuration.end ? skip_blanks(configuration.end + 3) : "";
    const char *close = *open == '(' ? find_outside_brackets(open + 1, ")") : NULL;
    size_t begin = find_kernel(t);
    if (!close || begin == t->text.length)
        return NULL;
    output kernel = {0};
    append(&kernel, t->text.bytes + begin, t->text.length - begin);
    t->text.length = begin;
    append_text(t, "gce::launch(__LINE__, gce::grid(");
    append_part(t, configuration);
    append_text(t, "), [=] { ");
    if (kernel.text.bytes)
        append_text(t, kernel.text.bytes);
    append_part(t, (part){configuration.end + 3, close + 1});
    append_text(t, "; })");
    t->failed |= kernel.failed;
    free(kernel.text.bytes);
    return close + 1;
}

/* Skips the attributes before a type. */
static const char *skip_alignment(const char *at) {
    static const char *const words[] = {"__align__", "alignas", "__attribute__"};
    at = skip_blanks(at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *open = strncmp(at, words[i], strlen(words[i])) == 0 ? skip_blanks(at + strlen(words[i])) : "";
        const char *close = *open == '(' ? find_outside_brackets(open + 1, ")") : NULL;
        if (close)
            return skip_alignment(close + 1);
    }
    return at;
}

/* Rewrites a declaration at "extern". Returns the place of its semicolon, or NULL if it is of another kind. */
static const char *rewrite_shared(output *t, const char *at) {
    static const char word[] = "__shared__";
    const char *begin = skip_alignment(at + strlen("extern"));
    if (strncmp(begin, word, strlen(word)) != 0)
        return NULL;
    part type = {skip_alignment(begin + strlen(word)), NULL};
    const char *end = find_outside_brackets(type.begin, ";");
    const char *open = end ? memchr(type.begin, '[', (size_t)(end - type.begin)) : NULL;
    const char *close = open ? skip_blanks(open + 1) : "";
    if (*close != ']')
        return NULL;
    part name = {NULL, open};
    while (name.end > type.begin && isspace((unsigned char)name.end[-1]))
        name.end--;
    name.begin = name.end;
    while (name.begin > type.begin && is_identifier_character(name.begin[-1]))
        name.begin--;
    type.end = name.begin;
    part sizes = {close + 1, end};
    append_part(t, type);
    append_text(t, "(*const ");
    append_part(t, name);
    append_text(t, ")");
    append_part(t, sizes);
    append_text(t, " = (");
    append_part(t, type);
    append_text(t, "(*)");
    append_part(t, sizes);
    append_text(t, ")gce_dynamic()");
    return end;
}

char *gc_emulator_rewrite(const char *source) {
    output t = {0};
    append_text(&t, "#line 1 \"student.cu\"\n");
    for (const char *at = source; *at;) {
        const char *next = gc_code_skip_quoted(at), *rewritten = NULL;
        if (next == at && strncmp(at, "<<<", 3) == 0)
            rewritten = rewrite_launch(&t, at);
        else if (next == at && strncmp(at, "extern", 6) == 0 && !is_identifier_character(at[6]) &&
                 (at == source || !is_identifier_character(at[-1])))
            rewritten = rewrite_shared(&t, at);
        if (!rewritten) {
            next += next == at;
            append(&t, at, (size_t)(next - at));
        }
        at = rewritten ? rewritten : next;
    }
    if (t.failed) {
        free(t.text.bytes);
        return NULL;
    }
    return t.text.bytes;
}

/* ---- The compiler ------------------------------------------------------------------------------------------------ */

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

static gpuconv_status write_kernel(const gc_work_folder *folder, gpuconv_error *error) {
    char *source = gc_work_read(folder, "student.cu", MAX_SOURCE),
         *kernel = source ? gc_emulator_rewrite(source) : NULL;
    gpuconv_status err = !source   ? gc_fail(error, GPUCONV_ERROR_FILE, "%s/student.cu: cannot be read", folder->path)
                         : !kernel ? gc_fail_memory(error, "the source")
                                   : gc_work_write(folder, "kernel.cpp", kernel, error);
    free(kernel);
    free(source);
    return err;
}

/* Keeps the warnings about the kernel: the linker writes its messages into the same file. */
static gpuconv_status keep_warnings(const gc_work_folder *folder, gpuconv_error *error) {
    char from[4300], to[4300];
    gc_work_path(folder, "messages.txt", from, sizeof from);
    if (rename(from, gc_work_path(folder, "warnings.txt", to, sizeof to)) != 0)
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be renamed: %s", from, strerror(errno));
    return GPUCONV_OK;
}

/* Runs the compiler in the folder. */
static gpuconv_status run(const gc_work_folder *folder, const char *const *arguments, bool *compiled,
                          gpuconv_error *error) {
    return gc_work_compile(folder, arguments, compile_seconds, compiled, error);
}

/* A C++ compiler, and what it knows. */
typedef struct compiler {
    char path[4200];
    bool is_clang;
    bool has_pattern; /* -ftrivial-auto-var-init; g++ before version 12 has not */
} compiler;

/* Finds a compiler. @return FILE if there is none, CANCELLED */
static gpuconv_status find_compiler(const gc_work_folder *folder, compiler *c, gpuconv_error *error) {
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
    char *text = err ? NULL : gc_work_read(folder, "messages.txt", MAX_SOURCE);
    c->is_clang = text && strstr(text, "clang");
    free(text);
    if (err || c->is_clang) {
        c->has_pattern = true;
        return err;
    }
    err = run(folder, help, &found, error);
    text = err ? NULL : gc_work_read(folder, "messages.txt", MAX_SOURCE);
    c->has_pattern = text && strstr(text, "-ftrivial-auto-var-init");
    free(text);
    return err;
}

/* Compiles kernel.cpp. */
static gpuconv_status compile_kernel(const gc_work_folder *folder, const compiler *c, bool *compiled,
                                     gpuconv_error *error) {
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
static gpuconv_status link_kernel(const gc_work_folder *folder, const compiler *c, bool *compiled,
                                  gpuconv_error *error) {
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
static void remove_files(const gc_work_folder *folder) {
    char path[4300];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        (void)unlink(gc_work_path(folder, files[i].name, path, sizeof path));
}

gpuconv_status gc_emulator_compile(const gc_work_folder *folder, bool *compiled, gpuconv_error *error) {
    compiler c = {0};
    *compiled = false;
    gpuconv_status err = find_compiler(folder, &c, error);
    if (!err)
        err = write_kernel(folder, error);
    for (size_t i = 0; !err && i < sizeof files / sizeof *files; i++)
        err = gc_work_write(folder, files[i].name, files[i].text, error);
    if (!err)
        err = compile_kernel(folder, &c, compiled, error);
    if (!err && *compiled)
        err = keep_warnings(folder, error);
    if (!err && *compiled)
        err = link_kernel(folder, &c, compiled, error);
    remove_files(folder);
    return err;
}

bool gc_emulator_warning(const gc_work_folder *folder, char *text, size_t room) {
    static const char file[] = "student.cu:";
    char *warnings = gc_work_read(folder, "warnings.txt", MAX_SOURCE);
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
