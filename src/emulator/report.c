/* Turns an error and the counts of a run into text. The variables of a compiled kernel are read from its ELF symbol
 * table, the lines of its source come from addr2line, which every installation of a compiler has, and from student.cu
 * beside the library. */
#include "report.h"

#include "counts.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"
#include "toolchain/tool.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Symbols ----------------------------------------------------------------------------------------------------- */

enum { MAX_LIBRARY = 256 << 20, MAX_PLACES = 16 };

static const double lines_seconds = 20;

/* Reads a whole file. NULL if it cannot be read. */
static char *read_file(const char *path, size_t *bytes) {
    FILE *from = fopen(path, "rb");
    char *text = NULL;
    long end = from && fseek(from, 0, SEEK_END) == 0 ? ftell(from) : -1;
    if (end > 0 && end <= MAX_LIBRARY && fseek(from, 0, SEEK_SET) == 0 && (text = gc_calloc(end + 1, 1)) != NULL) {
        *bytes = fread(text, 1, (size_t)end, from);
        if (*bytes != (size_t)end) {
            free(text);
            text = NULL;
        }
    }
    if (from)
        (void)fclose(from);
    return text;
}

/* Writes the last name in a mangled one: a variable of a function is _ZZ...E4tile, of a file _ZL4tile. */
static void unmangle(const char *mangled, char *name, size_t room) {
    const char *best = mangled;
    size_t best_length = strlen(mangled);
    for (const char *at = strncmp(mangled, "_Z", 2) == 0 ? mangled + 2 : ""; *at; at++) {
        if (*at < '1' || *at > '9')
            continue;
        char *end;
        unsigned long length = strtoul(at, &end, 10);
        bool is_number = at[-2] == 'L' && strchr("ijlmstxyb", at[-1]); /* an argument of a template */
        if (!is_number && length <= strlen(end)) {
            best = end;
            best_length = length;
            end += length;
        }
        at = end - 1;
    }
    (void)snprintf(name, room, "%.*s", (int)best_length, best);
}

/* Returns whether `count` elements of `each` bytes from `offset` on lie within the file. */
static bool lies_within(size_t bytes, uint64_t offset, uint64_t count, uint64_t element_bytes) {
    return offset <= bytes && count <= (bytes - offset) / element_bytes;
}

/* Copies the variables of one symbol table. */
static int copy_symbols(const char *file, size_t bytes, const ElfW(Shdr) * table, const ElfW(Shdr) * names,
                        gc_symbol *symbols) {
    int count = 0;
    const ElfW(Sym) *symbol = (const void *)(file + table->sh_offset);
    for (uint64_t i = 0; i < table->sh_size / sizeof *symbol; i++) {
        int type = ELF64_ST_TYPE(symbol[i].st_info);
        uint64_t name = names->sh_offset + symbol[i].st_name;
        if ((type != STT_TLS && type != STT_OBJECT) || !symbol[i].st_size || symbol[i].st_shndx == SHN_UNDEF ||
            name >= bytes)
            continue;
        gc_symbol *s = &symbols[count++];
        *s = (gc_symbol){.value = symbol[i].st_value, .bytes = symbol[i].st_size, .is_thread_local = type == STT_TLS};
        unmangle(file + name, s->name, sizeof s->name);
    }
    return count;
}

gpuconv_status gc_symbols_read(const char *library, gc_symbol **symbols, int *count, gpuconv_error *error) {
    size_t bytes = 0;
    char *file = read_file(library, &bytes);
    const ElfW(Ehdr) *head = (const void *)file;
    *symbols = NULL;
    *count = 0;
    bool right = file && bytes > sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
                 head->e_shentsize == sizeof(ElfW(Shdr)) &&
                 lies_within(bytes, head->e_shoff, head->e_shnum, sizeof(ElfW(Shdr)));
    const ElfW(Shdr) *section = right ? (const void *)(file + head->e_shoff) : NULL;
    for (int i = 0; right && i < head->e_shnum && !*symbols; i++) {
        if (section[i].sh_type != SHT_SYMTAB || section[i].sh_link >= head->e_shnum ||
            !lies_within(bytes, section[i].sh_offset, section[i].sh_size, 1))
            continue;
        *symbols = gc_calloc((int64_t)(section[i].sh_size / sizeof(ElfW(Sym))) + 1, sizeof **symbols);
        if (*symbols)
            *count = copy_symbols(file, bytes, &section[i], &section[section[i].sh_link], *symbols);
    }
    free(file);
    return *symbols ? GPUCONV_OK : gc_fail(error, GPUCONV_ERROR_FILE, "%s: has no symbol table", library);
}

/* Reads addr2line's output: for each address a line "0x...", then the functions' places from the innermost one on. */
static void read_lines(const char *path, int *line, int count) {
    char text[4200];
    int at = -1;
    FILE *from = fopen(path, "r");
    while (from && fgets(text, sizeof text, from)) {
        if (strncmp(text, "0x", 2) == 0) {
            at++;
            continue;
        }
        const char *name = strstr(text, "student.cu:");
        if (name && at >= 0 && at < count && !line[at])
            line[at] = (int)strtol(name + strlen("student.cu:"), NULL, 10);
    }
    if (from)
        (void)fclose(from);
}

/* Finds the lines of student.cu for addresses in the library that is loaded from `library`; 0: none. Writes a file
 * beside it. */
static void find_lines(const char *library, const void *const *place, int *line, int count) {
    char program[4200], output[4300], address[MAX_PLACES][32];
    const char *arguments[MAX_PLACES + 6];
    int n = 0;
    gc_process_result result;
    gpuconv_error ignored;
    if (count > MAX_PLACES)
        count = MAX_PLACES;
    memset(line, 0, (size_t)count * sizeof *line);
    if (!gc_process_find("addr2line", NULL, "/usr/bin", program, sizeof program))
        return;
    const char *const first[] = {program, "-a", "-i", "-e", library};
    for (; n < 5; n++)
        arguments[n] = first[n];
    for (int i = 0; i < count; i++) {
        Dl_info about = {0};
        uintptr_t base = place[i] && dladdr(place[i], &about) ? (uintptr_t)about.dli_fbase : 0;
        /* A return address is the instruction after the call. */
        (void)snprintf(address[i], sizeof address[i], "0x%llx",
                       base ? (unsigned long long)((uintptr_t)place[i] - base - 1) : 0ull);
        arguments[n++] = address[i];
    }
    arguments[n] = NULL;
    (void)snprintf(output, sizeof output, "%s.lines", library);
    if (!gc_process_run(&(gc_process_request){arguments, NULL, output, lines_seconds}, &result, &ignored))
        read_lines(output, line, count);
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* Writes line `number` of the source, without the blanks before it; nothing if there is none. */
static void read_source_line(const char *library, int number, char *line, size_t room) {
    char path[4300];
    const char *slash = strrchr(library, '/');
    *line = '\0';
    (void)snprintf(path, sizeof path, "%.*sstudent.cu", slash ? (int)(slash + 1 - library) : 0, library);
    FILE *from = number > 0 ? fopen(path, "r") : NULL;
    int at = 1;
    char text[400];
    while (from && at <= number && fgets(text, sizeof text, from)) {
        size_t length = strcspn(text, "\r\n");
        bool ends = strchr(text, '\n') != NULL;
        if (at == number && ends) {
            text[length] = '\0';
            (void)snprintf(line, room, "> %s\n", text + strspn(text, " \t"));
        }
        at += ends;
    }
    if (from)
        (void)fclose(from);
}

/* Writes where a barrier is missing between the accesses in two lines, of which the second came first. */
static void name_missing_barrier(const gc_failure *f, const int line[2], char *hint, size_t room) {
    int first = line[0] < line[1] ? line[0] : line[1], last = line[0] < line[1] ? line[1] : line[0];
    if (first == last)
        (void)snprintf(
            hint, room,
            "This is a race. A barrier is missing: __syncthreads() at the end of the loop around line %d, or "
            "between what this line reads and what it writes.",
            first);
    else if (first < f->barrier && f->barrier < last)
        (void)snprintf(hint, room,
                       "This is a race. A barrier is missing at the end of the loop: __syncthreads() after line %d, "
                       "before its next step reaches line %d.",
                       last, first);
    else
        (void)snprintf(hint, room, "This is a race. A barrier is missing: __syncthreads() between line %d and line %d.",
                       first, last);
}

void gc_report_failure(const gc_failure *failure, const char *library, char *text, size_t room) {
    const void *const place[] = {failure->place, failure->other_place};
    int line[2];
    char where[40] = "", source[500], hint[300];
    const char *other = strstr(failure->text, "%LINE%");
    find_lines(library, place, line, 2);
    if (!failure->place)
        line[0] = failure->line;
    if (line[0] > 0)
        (void)snprintf(where, sizeof where, "Line %d: ", line[0]);
    read_source_line(library, line[0], source, sizeof source);
    char changed[650];
    (void)snprintf(changed, sizeof changed, "%s", failure->text);
    if (other)
        (void)snprintf(changed, sizeof changed, "%.*s%d%s", (int)(other - failure->text), failure->text, line[1],
                       other + strlen("%LINE%"));
    if (failure->is_shared_race)
        name_missing_barrier(failure, line, hint, sizeof hint);
    (void)snprintf(text, room, "%s%s%s%s\n%s%s", where, failure->thread, *failure->thread ? " " : "", changed, source,
                   failure->is_shared_race ? hint : failure->hint);
}

void gc_report_counts(const char *library, char *text, size_t room) {
    const gc_sum global = gc_counts_sum(GC_SITE_GLOBAL), shared = gc_counts_sum(GC_SITE_SHARED),
                 blocks = gc_counts_sum(GC_SITE_BLOCK);
    const void *const place[] = {global.worst, shared.worst, blocks.worst};
    int line[3];
    char worst[3][100] = {"", "", ""};
    find_lines(library, place, line, 3);
    if (line[0])
        (void)gc_format(worst[0], sizeof worst[0], ", line %d takes %.1f", line[0], global.worst_ratio);
    if (line[1])
        (void)gc_format(worst[1], sizeof worst[1], ", conflicts in line %d", line[1]);
    if (line[2])
        (void)gc_format(worst[2], sizeof worst[2], ", in line %d: %.0f %%", line[2], 100 * blocks.worst_ratio);
    *text = '\0';
    if (global.requests)
        gc_append(text, room, "global memory: %lld requests of %.1f sectors (best %.1f)%s\n",
                  (long long)global.requests, (double)global.spent / (double)global.requests,
                  (double)global.best / (double)global.requests, worst[0]);
    if (shared.requests)
        gc_append(text, room, "shared memory: %lld requests of %.1f cycles (best %.1f)%s\n", (long long)shared.requests,
                  (double)shared.spent / (double)shared.requests, (double)shared.best / (double)shared.requests,
                  shared.worst ? worst[1] : ", no bank conflicts");
    if (blocks.spent)
        gc_append(text, room, "divergence: %.0f %% of the lanes are at work%s\n",
                  100 * (double)blocks.best / (double)blocks.spent, worst[2]);
}
