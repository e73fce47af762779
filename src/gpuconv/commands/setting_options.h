/* Options that are settings of libgpuconv/ir/settings.h. A command has the texts in a static array `given_settings`,
 * whose lines of the option table GC_SETTINGS_OF_...(GC_SETTING_OPTION) makes. */
#ifndef GPUCONV_COMMANDS_SETTING_OPTIONS_H
#define GPUCONV_COMMANDS_SETTING_OPTIONS_H

#include "cli/cli.h"
#include "libgpuconv/ir/settings.h"

/* What an option was given: a text, a list of texts that ends with NULL, or, for a flag, not 0. */
typedef union gc_given {
    char *text;
    char **list;
    int flag;
} gc_given;

#define GC_POPT(kind)                                                                                                  \
    ((kind) == GC_KIND_FLAG ? POPT_ARG_NONE : (kind) == GC_KIND_FILES ? POPT_ARG_ARGV : POPT_ARG_STRING)
#define GC_SETTING_OPTION(id, column, option, letter, kind, member, least, most, other, value, unit, help)             \
    {option, letter, GC_POPT(GC_KIND_##kind), &given_settings[GC_SETTING_##id], 0, help, value},

/* Makes the settings that were given; 4 channels are true stereo by default. The caller frees *settings, also after a
 * failure. @return
 * GC_EXIT_DONE, or GC_EXIT_USAGE or GC_EXIT_FAILED after a message */
int gc_given_settings_read(const gc_given given[GC_SETTINGS], gc_settings *settings);

/* Prints that a setting's value is invalid. @return GC_EXIT_USAGE */
int gc_refuse_setting(const gc_setting *setting, const char *text);

#endif
