/* Embeds one PTX file per .cu file with the assembler's .incbin, or makes it with nvcc, and counts its instructions per
 * kernel and opcode. */
#include "ptx.h"

#include "compile.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "process.h"
#include "sources.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef LAB_PTX_FILES /* generated header; each line is LAB_PTX(name of the .cu file, "path of the .ptx file") */
#define LAB_PTX(name, path)                                                                                            \
    __asm__(".section .rodata\nlab_ptx_" #name ":\n.incbin \"" path "\"\n.byte 0\n.previous\n");                       \
    extern const char lab_ptx_##name[];
#include LAB_PTX_FILES
#undef LAB_PTX
#endif

static const struct {
    const char *name, *text;
} files[] = {
#ifdef LAB_PTX_FILES
#define LAB_PTX(name, path) {#name, lab_ptx_##name},
#include LAB_PTX_FILES
#endif
    {NULL, NULL},
};

/* The table's columns. An instruction is counted if its opcode starts with one of the prefixes, which "|" separates,
 * and contains the parts, which "*" separates, in this order. */
static const struct {
    const char *title, *prefixes, *parts;
} columns[] = {{"ld.global", "ld.", ".global"},
               {"of 16 B", "ld.", ".global.*4.*32"},
               {"ld.shared", "ld.", ".shared"},
               {"ld.const", "ld.", ".const"},
               {"st.global", "st.", ".global"},
               {"st.shared", "st.", ".shared"},
               {"cp.async", "cp.", ".global"},
               {"fma", "fma.", ""},
               {"mul, add", "mul.rn|add.rn|mul.f|add.f|sub.f|mul.ftz|add.ftz", ""},
               {"mma", "mma.|wmma.mma|wgmma.mma", ""},
               {"atomic", "atom.|red.", ""},
               {"shuffle", "shfl.", ""},
               {"barrier", "bar.|barrier.", ""}};

enum { COLUMNS = LAB_LENGTH(columns), MAX_PTX = 64 << 20 };

static bool has_parts(const char *opcode, const char *part) {
    while (*part) {
        char piece[16];
        size_t length = strcspn(part, "*");
        memcpy(piece, part, length);
        piece[length] = '\0';
        opcode = strstr(opcode, piece);
        if (!opcode)
            return false;
        opcode += length;
        part += length + (part[length] == '*');
    }
    return true;
}

static bool has_prefix(const char *opcode, const char *prefixes) {
    for (;;) {
        size_t length = strcspn(prefixes, "|");
        if (strncmp(opcode, prefixes, length) == 0)
            return true;
        if (!prefixes[length])
            return false;
        prefixes += length + 1;
    }
}

/* Demangles a kernel's name (Itanium C++ ABI): the last identifier of the nested name, with its first integer or bool
 * template argument. */
static void demangle(const char *mangled, char *name, size_t room) {
    const char *at = strncmp(mangled, "_ZN", 3) == 0 ? mangled + 3 : strncmp(mangled, "_Z", 2) == 0 ? mangled + 2 : "";
    (void)snprintf(name, room, "%.100s", mangled);
    while (isdigit((unsigned char)*at)) {
        char *after;
        size_t length = strtoul(at, &after, 10);
        at = after;
        if (length > strlen(at))
            return;
        (void)snprintf(name, room, "%.*s", (int)length, at);
        at += length;
    }
    if (strncmp(at, "ILi", 3) == 0 || strncmp(at, "ILb", 3) == 0) { /* an int or bool template argument */
        size_t used = strlen(name), digits = strcspn(at + 3, "E");
        (void)snprintf(name + used, room - used, "<%.*s%s>", (int)digits, at + 3,
                       at[3 + digits + 1] == 'E' ? "" : "..");
    }
}

static void write_row(const char *name, const long *count, long total, FILE *to) {
    fprintf(to, "// %-28s", name);
    for (int c = 0; c < COLUMNS; c++)
        fprintf(to, " %9ld", count[c]);
    fprintf(to, " %9ld\n", total);
}

/* Prints a row of counts for each kernel of a PTX file. */
static void count_file(const char *text, FILE *to) {
    char name[160] = "";
    long count[COLUMNS] = {0}, total = 0;
    int depth = 0; /* of braces: vector operands and inline assembly contain braces too */
    for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        line += strspn(line, " \t");
        const char *entry = strstr(line, ".entry ");
        if (entry && entry < end && !name[0]) {
            char mangled[400];
            size_t length = strcspn(entry + 7, "(\n ");
            (void)snprintf(mangled, sizeof mangled, "%.*s", (int)length, entry + 7);
            demangle(mangled, name, sizeof name);
            continue;
        }
        for (const char *c = line; c < end; c++)
            depth += (*c == '{') - (*c == '}');
        if (name[0] && depth == 0 && *line == '}') {
            write_row(name, count, total, to);
            memset(count, 0, sizeof count);
            total = 0;
            name[0] = '\0';
            continue;
        }
        if (*line == '@')
            line += strcspn(line, " \t\n"), line += strspn(line, " \t");
        if (!name[0] || !islower((unsigned char)*line))
            continue;
        char opcode[64];
        (void)snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(line, " \t;\n"), line);
        total++;
        for (int c = 0; c < COLUMNS; c++)
            count[c] += has_prefix(opcode, columns[c].prefixes) && has_parts(opcode, columns[c].parts);
    }
}

/* Prints the table, and the text, of the PTX of one source. */
static void write_ptx(const char *name, const char *text, bool table_only, FILE *to) {
    fprintf(to, "// kernels/course/%s.cu\n// %-28s", name, "kernel: instructions");
    for (int c = 0; c < COLUMNS; c++)
        fprintf(to, " %9s", columns[c].title);
    fprintf(to, " %9s\n", "total");
    count_file(text, to);
    if (!table_only)
        fprintf(to, "%s\n", text);
}

/* ---- PTX that nvcc makes ----------------------------------------------------------------------------------------- */

#ifndef LAB_PTX_FILES
#define EMBED(label, path)                                                                                             \
    __asm__(".section .rodata\n" #label ":\n.incbin \"" LAB_FOLDER "/" path "\"\n.byte 0\n.previous\n");               \
    extern const char label[]; /* NOLINT(bugprone-macro-parentheses): a declared name */
EMBED(lab_header, "src/gpulab/lab.h")
EMBED(lab_convolution, "kernels/course/convolution.h")
EMBED(lab_softmax, "kernels/device/softmax.cuh")
EMBED(lab_tma, "kernels/device/tma.cuh")
EMBED(lab_wgmma, "kernels/device/wgmma.cuh")

/* What the sources of the modules include besides headers of their own folder. */
static const gc_lab_source headers[] = {{"gpulab/lab.h", lab_header},
                                        {"convolution.h", lab_convolution},
                                        {"kernels/device/softmax.cuh", lab_softmax},
                                        {"kernels/device/tma.cuh", lab_tma},
                                        {"kernels/device/wgmma.cuh", lab_wgmma}};
static const char *const folders[] = {"gpulab", "kernels", "kernels/device"};
static const double compile_seconds = 180;

static gpuconv_status write_file(const gc_work_folder *folder, const char *name, const char *text,
                                 gpuconv_error *error) {
    char path[4200];
    FILE *to = fopen(gc_work_path(folder, name, path, sizeof path), "w");
    bool bad = !to || fputs(text, to) == EOF;
    if (to && fclose(to) != 0)
        bad = true;
    return bad ? gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be written: %s", path, strerror(errno)) : GPUCONV_OK;
}

/* Writes the sources of all modules and what they include. */
static gpuconv_status write_sources(const gc_work_folder *folder, gpuconv_error *error) {
    char path[4200];
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; i < LAB_LENGTH(folders) && !err; i++)
        if (mkdir(gc_work_path(folder, folders[i], path, sizeof path), 0700) != 0)
            err = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be created: %s", path, strerror(errno));
    for (int i = 0; i < LAB_LENGTH(headers) && !err; i++)
        err = write_file(folder, headers[i].path, headers[i].text, error);
    for (const gc_lab_source *s = gc_lab_sources(); s->path && !err; s++)
        err = write_file(folder, strrchr(s->path, '/') + 1, s->text, error);
    return err;
}

/* Removes the folder with the folders in it. */
static void remove_sources(gc_work_folder *folder) {
    char path[4200];
    for (int i = 0; i < LAB_LENGTH(headers); i++)
        (void)unlink(gc_work_path(folder, headers[i].path, path, sizeof path));
    for (int i = LAB_LENGTH(folders) - 1; i >= 0; i--)
        (void)rmdir(gc_work_path(folder, folders[i], path, sizeof path));
    gc_work_folder_remove(folder);
}

/* Compiles one source. Sets `*text` to its PTX. */
static gpuconv_status compile_source(const gc_work_folder *folder, const char *name, char **text,
                                     gpuconv_error *error) {
    char nvcc[4200], path[4200];
    *text = NULL;
    if (!gc_find_nvcc(nvcc, sizeof nvcc))
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "this build has no CUDA, and nvcc, which could make the PTX, was not found");
    const char *const arguments[] = {
        nvcc,  "-ptx", "-O3", "-std=c++17", strstr(name, "_hopper") ? "-arch=compute_90a" : "-arch=compute_90",
        "-I.", name,   "-o",  "ptx",        NULL};
    gc_process_result result;
    gpuconv_status err =
        gc_process_run(&(gc_process_request){arguments, folder->path,
                                             gc_work_path(folder, "messages", path, sizeof path), compile_seconds},
                       &result, error);
    if (err)
        return err;
    FILE *from = result.status == 0 ? fopen(gc_work_path(folder, "ptx", path, sizeof path), "r") : NULL;
    *text = from ? gc_calloc(MAX_PTX + 1, 1) : NULL;
    if (*text)
        (*text)[fread(*text, 1, MAX_PTX, from)] = '\0';
    if (from)
        (void)fclose(from);
    return *text ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s cannot compile it", name, nvcc);
}

static gpuconv_status compile_module(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error) {
    gc_work_folder folder;
    gpuconv_status err = gc_work_folder_new(&folder, error);
    if (!err)
        err = write_sources(&folder, error);
    for (const gc_lab_source *s = gc_lab_sources(); s->path && !err; s++) {
        char *text, stem[100];
        const char *name = strrchr(s->path, '/') + 1, *end = strrchr(name, '.');
        if (strcmp(end, ".cu") != 0 || !gc_lab_is_source_of(name, module->name))
            continue;
        err = compile_source(&folder, name, &text, error);
        (void)snprintf(stem, sizeof stem, "%.*s", (int)(end - name), name);
        if (!err)
            write_ptx(stem, text, table_only, to);
        free(text);
    }
    remove_sources(&folder);
    return err;
}
#else
static gpuconv_status compile_module(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error) {
    (void)table_only;
    (void)to;
    return gc_fail(error, GPUCONV_ERROR_FILE, "this build has no PTX of %s", module->name);
}
#endif

gpuconv_status gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error) {
    bool found = false;
    for (int f = 0; files[f].name; f++) {
        if (!gc_lab_is_source_of(files[f].name, module->name))
            continue;
        found = true;
        write_ptx(files[f].name, files[f].text, table_only, to);
    }
    return found ? GPUCONV_OK : compile_module(module, table_only, to, error);
}
