/* Embeds one PTX file per .cu file with the assembler's .incbin and counts its instructions per kernel and opcode. */
#include "ptx.h"

#include "sources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

enum { COLUMNS = LAB_LENGTH(columns) };

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

bool gc_lab_write_ptx(const gc_lab_module *module, bool table_only, FILE *to) {
    bool found = false;
    for (int f = 0; files[f].name; f++) {
        if (!gc_lab_is_source_of(files[f].name, module->name))
            continue;
        found = true;
        fprintf(to, "// kernels/course/%s.cu\n// %-28s", files[f].name, "kernel: instructions");
        for (int c = 0; c < COLUMNS; c++)
            fprintf(to, " %9s", columns[c].title);
        fprintf(to, " %9s\n", "total");
        count_file(files[f].text, to);
        if (!table_only)
            fprintf(to, "%s\n", files[f].text);
    }
    return found;
}
