/* Embeds the modules' sources and the recorded report with the assembler's .incbin. */
#include "sources.h"

#include <stddef.h>
#include <string.h>

#define EMBED(label, path)                                                                                             \
    __asm__(".section .rodata\n" #label ":\n.incbin \"" path "\"\n.byte 0\n.previous\n");                              \
    extern const char label[]; /* NOLINT(bugprone-macro-parentheses): a declared name */

#define LAB_SOURCE(number, name, path) EMBED(lab_source_##number, path)
#include LAB_SOURCE_FILES /* generated; each line is LAB_SOURCE(number, "path in a checkout", "path of the file") */
#undef LAB_SOURCE
EMBED(lab_recorded_report, LAB_RECORDED_FILE)
EMBED(lab_recorded_report_h100, LAB_RECORDED_FILE_H100)

static const gc_lab_source sources[] = {
#define LAB_SOURCE(number, name, path) {name, lab_source_##number},
#include LAB_SOURCE_FILES
#undef LAB_SOURCE
    {NULL, NULL},
};

const gc_lab_source *gc_lab_sources(void) {
    return sources;
}

bool gc_lab_is_source_of(const char *name, const char *module) {
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
