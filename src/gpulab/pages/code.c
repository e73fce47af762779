/*
 * The code of the modules. Their sources, the PTX and the records of GPUs are embedded with the assembler's .incbin: a
 * chapter shows the code that was compiled, wherever the program is installed.
 *
 * The code of a rung is the variant's function, found by name in the module's sources, with all functions, types and
 * constants of these sources that it reaches; it is compared, line by line, with that of the rung before.
 *
 * PTX is embedded, one file per .cu file, or made by nvcc in a build without CUDA. Its instructions are counted per
 * kernel and opcode.
 */
#include "pages.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "toolchain/items.h"
#include "toolchain/tool.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Embedded sources -------------------------------------------------------------------------------------------- */

#define EMBED(label, path)                                                                                             \
    __asm__(".section .rodata\n" #label ":\n.incbin \"" path "\"\n.byte 0\n.previous\n");                              \
    extern const char label[]; /* NOLINT(bugprone-macro-parentheses): a declared name */

#define LAB_SOURCE(number, name, path) EMBED(lab_source_##number, path)
#include LAB_SOURCE_FILES /* generated; each line is LAB_SOURCE(number, "path in a checkout", "path of the file") */
#undef LAB_SOURCE
EMBED(lab_recorded_report, LAB_RECORDED_FILE)
EMBED(lab_recorded_report_h100, LAB_RECORDED_FILE_H100)

typedef struct source {
    const char *path; /* as in a checkout: "kernels/course/transpose.cu" */
    const char *text;
} source;

/* The last one has the path NULL. */
static const source sources[] = {
#define LAB_SOURCE(number, name, path) {name, lab_source_##number},
#include LAB_SOURCE_FILES
#undef LAB_SOURCE
    {NULL, NULL},
};

/* Returns whether the file belongs to a module: matmul, for example, has matmul.c, matmul.cu, matmul.cuh and
 * matmul_tensor.cu. `name` is the file's name without its folder. */
static bool is_source_of(const char *name, const char *module) {
    size_t i = 0;
    for (; module[i]; i++)
        if (name[i] != (module[i] == '-' ? '_' : module[i]))
            return false;
    static const char *const ends[] = {"", "_tensor", "_hopper"};
    size_t length = strcspn(name + i, ".");
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
        if (length == strlen(ends[e]) && strncmp(name + i, ends[e], length) == 0)
            return true;
    return false;
}

const char *gc_lab_recorded_text(void) {
    return lab_recorded_report;
}

const char *gc_lab_recorded_text_h100(void) {
    return lab_recorded_report_h100;
}

/* ---- The code of a rung ------------------------------------------------------------------------------------------ */

enum { MAX_ITEMS = 400, MAX_LINES = 1200, MAX_FILES = 8, MAX_COMMON = 24, CONTEXT = 6 };

/* The lines of a rung's code. */
typedef struct listing {
    gc_lab_code_line *line;
    int count;
} listing;

/* The items of a module's sources. */
typedef struct items {
    gc_code_item *item;
    int count;
    const char *path[MAX_FILES];
} items;

/* Reads the items of all sources of a module, and of the calls of CUB, which are one file for all modules. */
static gpuconv_status read_items(const gc_lab_module *module, items *all, gpuconv_error *error) {
    *all = (items){.item = gc_calloc(MAX_ITEMS, sizeof *all->item)};
    if (!all->item)
        return gc_fail_memory(error, "the code of a module");
    int files = 0;
    for (const source *s = sources; s->path && files < MAX_FILES; s++) {
        const char *name = strrchr(s->path, '/') + 1;
        if (!is_source_of(name, module->name) && strcmp(name, "cub.cu") != 0)
            continue;
        int first = all->count;
        all->count += gc_code_items(s->text, all->item + first, MAX_ITEMS - first);
        for (int i = first; i < all->count; i++)
            all->item[i].file = files;
        all->path[files++] = s->path;
    }
    return GPUCONV_OK;
}

static bool is_header(const items *all, int file) {
    return strcmp(strrchr(all->path[file], '.'), ".cuh") == 0;
}

/* Returns whether code of the file `from` can name items of `file`: of the same file or of a header. */
static bool is_visible(const items *all, int file, int from) {
    return file == from || is_header(all, file);
}

/* Marks the items that item `i` names. Returns whether there were new ones. */
static bool reach_from(items *all, int i) {
    const gc_code_item *from = &all->item[i];
    bool found = false;
    size_t length;
    for (const char *at = from->begin; (at = gc_code_identifier(at, from->end, &length)) != NULL; at += length)
        for (int k = 0; k < all->count; k++) {
            gc_code_item *to = &all->item[k];
            if (!to->reached && is_visible(all, to->file, from->file) && gc_code_item_defines(to, at, length))
                to->reached = found = true;
        }
    return found;
}

/* Marks the items that the marked ones name, until there are no new ones. */
static void reach(items *all) {
    for (bool found = true; found;) {
        found = false;
        for (int i = 0; i < all->count; i++)
            found = (all->item[i].reached && reach_from(all, i)) || found;
    }
}

/* Appends the lines of an item, after an empty line unless it is the first one. */
static void append_item(listing *to, const gc_code_item *item) {
    if (to->count > 0 && to->count < MAX_LINES)
        to->line[to->count++] = (gc_lab_code_line){' ', "", 0};
    for (const char *at = item->begin; at < item->end && to->count < MAX_LINES;) {
        size_t length = strcspn(at, "\n");
        if (at + length > item->end)
            length = (size_t)(item->end - at);
        to->line[to->count++] = (gc_lab_code_line){' ', at, (int)length};
        at += length + 1;
    }
}

/* Returns the function of this name, or NULL. */
static gc_code_item *find_function(const items *all, const char *name) {
    for (int i = 0; i < all->count; i++)
        if (gc_code_item_defines(&all->item[i], name, strlen(name)) && all->item[i].end[-1] == '}')
            return &all->item[i];
    return NULL;
}

/* Lists the code of a rung: the items that its function reaches, headers first, and the function last. */
static gpuconv_status list_code(const gc_lab_module *module, const gc_lab_variant *v, listing *to,
                                gpuconv_error *error) {
    items all;
    *to = (listing){0};
    gpuconv_status err = read_items(module, &all, error);
    if (!err && !(to->line = gc_calloc(MAX_LINES, sizeof *to->line)))
        err = gc_fail_memory(error, "the code of a variant");
    gc_code_item *last = !err && v->code ? find_function(&all, v->code) : NULL;
    if (last) {
        last->reached = true;
        reach(&all);
        for (int header = 1; header >= 0; header--)
            for (int i = 0; i < all.count; i++)
                if (all.item[i].reached && &all.item[i] != last && is_header(&all, all.item[i].file) == header)
                    append_item(to, &all.item[i]);
        append_item(to, last);
    }
    free(all.item);
    return err;
}

static bool is_same_line(const gc_lab_code_line *a, const gc_lab_code_line *b) {
    return a->length == b->length && memcmp(a->text, b->text, (size_t)a->length) == 0;
}

static bool is_same_code(const listing *a, const listing *b) {
    bool same = a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = is_same_line(&a->line[i], &b->line[i]);
    return same;
}

/* Replaces the middle of long runs of common lines. Returns the number of lines that are left. */
static int leave_out(gc_lab_code_line *line, int count) {
    int to = 0;
    for (int i = 0; i < count;) {
        int end = i;
        while (end < count && line[end].mark == ' ')
            end++;
        bool is_long = end - i > MAX_COMMON;
        for (int k = i; k < end; k++)
            if (!is_long || k < i + CONTEXT || k >= end - CONTEXT)
                line[to++] = line[k];
            else if (k == i + CONTEXT)
                line[to++] = (gc_lab_code_line){GC_LAB_LEFT_OUT, "", end - i - 2 * CONTEXT};
        if (end < count)
            line[to++] = line[end++];
        i = end;
    }
    return to;
}

/* Fills `code` with the lines of both listings, marked, from a longest common subsequence. Leaves the marks out if less
 * than a quarter of the lines is common. */
static gpuconv_status mark_lines(const listing *before, const listing *now, gc_lab_code *code, gpuconv_error *error) {
    int n = before->count, m = now->count, substantial = 0, common = 0;
    int *length = gc_calloc((int64_t)(n + 1) * (m + 1), sizeof *length);
    gc_lab_code_line *line = gc_calloc((int64_t)n + m + 1, sizeof *line);
    if (!length || !line) {
        free(length);
        free(line);
        return gc_fail_memory(error, "a difference");
    }
    for (int i = n - 1; i >= 0; i--)
        for (int k = m - 1; k >= 0; k--) {
            int *at = &length[i * (m + 1) + k], below = at[m + 1], right = at[1];
            *at = is_same_line(&before->line[i], &now->line[k]) ? at[m + 2] + 1 : below > right ? below : right;
        }
    int count = 0;
    for (int i = 0, k = 0; i < n || k < m;) {
        bool same = i < n && k < m && is_same_line(&before->line[i], &now->line[k]);
        bool gone = !same && i < n && (k == m || length[(i + 1) * (m + 1) + k] >= length[i * (m + 1) + k + 1]);
        line[count] = gone ? before->line[i] : now->line[k];
        line[count].mark = same ? ' ' : gone ? '-' : '+';
        substantial += !gone && line[count].length > 4;
        common += same && line[count].length > 4;
        count++;
        i += same || gone;
        k += !gone;
    }
    free(length);
    if (4 * common < substantial) {
        free(line);
        code->against = NULL;
        return GPUCONV_OK;
    }
    free(code->line);
    code->line = line;
    code->count = leave_out(line, count);
    return GPUCONV_OK;
}

gpuconv_status gc_lab_code_find(const gc_lab_module *module, int rung, gc_lab_code *code, gpuconv_error *error) {
    const gc_lab_variant *v = &module->variants[rung];
    listing now, before;
    *code = (gc_lab_code){0};
    gpuconv_status err = list_code(module, v, &now, error);
    code->line = now.line;
    code->count = now.count;
    for (int i = rung - 1; i >= 0 && !err && now.count && !code->same; i--) {
        const gc_lab_variant *other = &module->variants[i];
        if (other->where != v->where)
            continue;
        err = list_code(module, other, &before, error);
        if (!err && is_same_code(&before, &now)) {
            code->same = other;
        } else if (!err && !code->against && before.count) {
            code->against = other;
        }
        free(before.line);
    }
    if (!err && code->same)
        code->against = NULL;
    if (!err && code->against) {
        err = list_code(module, code->against, &before, error);
        if (!err)
            err = mark_lines(&before, &now, code, error);
        free(before.line);
    }
    if (err)
        gc_lab_code_free(code);
    return err;
}

void gc_lab_code_free(gc_lab_code *code) {
    free(code->line);
    *code = (gc_lab_code){0};
}

/* ---- PTX --------------------------------------------------------------------------------------------------------- */

#ifdef LAB_PTX_FILES /* generated header; each line is LAB_PTX(name of the .cu file, "path of the .ptx file") */
#define LAB_PTX(name, path) EMBED(lab_ptx_##name, path)
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
EMBED(lab_header, LAB_FOLDER "/src/gpulab/lab.h")
EMBED(lab_convolution, LAB_FOLDER "/kernels/course/convolution.h")
EMBED(lab_softmax, LAB_FOLDER "/kernels/device/softmax.cuh")
EMBED(lab_tma, LAB_FOLDER "/kernels/device/tma.cuh")
EMBED(lab_wgmma, LAB_FOLDER "/kernels/device/wgmma.cuh")

/* Headers of other folders that the sources of the modules include. */
static const source headers[] = {{"gpulab/lab.h", lab_header},
                                 {"convolution.h", lab_convolution},
                                 {"kernels/device/softmax.cuh", lab_softmax},
                                 {"kernels/device/tma.cuh", lab_tma},
                                 {"kernels/device/wgmma.cuh", lab_wgmma}};
static const char *const folders[] = {"gpulab", "kernels", "kernels/device"};
static const double compile_seconds = 180;

/* Writes the sources of all modules and what they include. */
static gpuconv_status write_sources(const gc_work_folder *folder, gpuconv_error *error) {
    char path[4200];
    gpuconv_status err = GPUCONV_OK;
    for (int i = 0; i < LAB_LENGTH(folders) && !err; i++)
        if (mkdir(gc_work_path(folder, folders[i], path, sizeof path), 0700) != 0)
            err = gc_fail(error, GPUCONV_ERROR_FILE, "%s: cannot be created: %s", path, strerror(errno));
    for (int i = 0; i < LAB_LENGTH(headers) && !err; i++)
        err = gc_work_write(folder, headers[i].path, headers[i].text, error);
    for (const source *s = sources; s->path && !err; s++)
        err = gc_work_write(folder, strrchr(s->path, '/') + 1, s->text, error);
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
    char nvcc[4200];
    *text = NULL;
    if (!gc_find_nvcc(nvcc, sizeof nvcc))
        return gc_fail(error, GPUCONV_ERROR_FILE,
                       "this build has no CUDA, and nvcc, which could make the PTX, was not found");
    const char *const arguments[] = {
        nvcc,  "-ptx", "-O3", "-std=c++17", strstr(name, "_hopper") ? "-arch=compute_90a" : "-arch=compute_90",
        "-I.", name,   "-o",  "ptx",        NULL};
    bool compiled;
    gpuconv_status err = gc_work_compile(folder, arguments, compile_seconds, &compiled, error);
    if (err)
        return err;
    *text = compiled ? gc_work_read(folder, "ptx", MAX_PTX) : NULL;
    return *text ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_FILE, "%s: %s cannot compile it", name, nvcc);
}

static gpuconv_status compile_module(const gc_lab_module *module, bool table_only, FILE *to, gpuconv_error *error) {
    gc_work_folder folder;
    gpuconv_status err = gc_work_folder_new(&folder, error);
    if (!err)
        err = write_sources(&folder, error);
    for (const source *s = sources; s->path && !err; s++) {
        char *text, stem[100];
        const char *name = strrchr(s->path, '/') + 1, *end = strrchr(name, '.');
        if (strcmp(end, ".cu") != 0 || !is_source_of(name, module->name))
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
        if (!is_source_of(files[f].name, module->name))
            continue;
        found = true;
        write_ptx(files[f].name, files[f].text, table_only, to);
    }
    return found ? GPUCONV_OK : compile_module(module, table_only, to, error);
}
