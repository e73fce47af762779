/* PTX files as the assembler took them in, one of each .cu file; counted by kernel and opcode. */
#include "ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#ifdef LAB_PTX_FILES /* a header of the build: LAB_PTX(file without .cu, "its .ptx") a line */
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

/* An opcode counts where it begins so and, if there is a part, has it. */
static const struct {
    const char *title, *begins, *part;
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

enum { COLUMNS = LAB_LENGTH(columns) };

/* `part`: pieces between stars, in this order. */
static bool has(const char *opcode, const char *part) {
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

static bool begins(const char *opcode, const char *choices) {
    for (;;) {
        size_t length = strcspn(choices, "|");
        if (strncmp(opcode, choices, length) == 0)
            return true;
        if (!choices[length])
            return false;
        choices += length + 1;
    }
}

/* The function's own name in a mangled one: the last identifier before its template's or its own parameters. */
static void plain_name(const char *mangled, char *name, size_t room) {
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
    if (strncmp(at, "ILi", 3) == 0 || strncmp(at, "ILb", 3) == 0) { /* the first argument of a template */
        size_t used = strlen(name), digits = strcspn(at + 3, "E");
        (void)snprintf(name + used, room - used, "<%.*s%s>", (int)digits, at + 3,
                       at[3 + digits + 1] == 'E' ? "" : "..");
    }
}

static void write_row(const char *name, const long *count, long all, FILE *to) {
    fprintf(to, "// %-28s", name);
    for (int c = 0; c < COLUMNS; c++)
        fprintf(to, " %9ld", count[c]);
    fprintf(to, " %9ld\n", all);
}

static void count_file(const char *text, FILE *to) {
    char name[160] = "";
    long count[COLUMNS] = {0}, all = 0;
    int depth = 0; /* of braces: vectors and assembly written by hand have theirs */
    for (const char *line = text, *end; *line; line = end + (*end == '\n')) {
        end = line + strcspn(line, "\n");
        line += strspn(line, " \t");
        const char *entry = strstr(line, ".entry ");
        if (entry && entry < end && !name[0]) {
            char mangled[400];
            size_t length = strcspn(entry + 7, "(\n ");
            (void)snprintf(mangled, sizeof mangled, "%.*s", (int)length, entry + 7);
            plain_name(mangled, name, sizeof name);
            continue;
        }
        for (const char *c = line; c < end; c++)
            depth += (*c == '{') - (*c == '}');
        if (name[0] && depth == 0 && *line == '}') {
            write_row(name, count, all, to);
            memset(count, 0, sizeof count);
            all = 0;
            name[0] = '\0';
            continue;
        }
        if (*line == '@')
            line += strcspn(line, " \t\n"), line += strspn(line, " \t");
        if (!name[0] || !islower((unsigned char)*line))
            continue;
        char opcode[64];
        (void)snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(line, " \t;\n"), line);
        all++;
        for (int c = 0; c < COLUMNS; c++)
            count[c] += begins(opcode, columns[c].begins) && has(opcode, columns[c].part);
    }
}

/* matmul has matmul.cu, matmul_tensor.cu and matmul_hopper.cu. */
static bool belongs(const char *file, const char *module) {
    size_t i = 0;
    for (; module[i]; i++)
        if (file[i] != (module[i] == '-' ? '_' : module[i]))
            return false;
    return !file[i] || strcmp(file + i, "_tensor") == 0 || strcmp(file + i, "_hopper") == 0;
}

bool gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to) {
    bool any = false;
    for (int f = 0; files[f].name; f++) {
        if (!belongs(files[f].name, module->name))
            continue;
        any = true;
        fprintf(to, "// kernels/course/%s.cu\n// %-28s", files[f].name, "kernel: instructions");
        for (int c = 0; c < COLUMNS; c++)
            fprintf(to, " %9s", columns[c].title);
        fprintf(to, " %9s\n", "all");
        count_file(files[f].text, to);
        if (!table_only)
            fprintf(to, "%s\n", files[f].text);
    }
    return any;
}
