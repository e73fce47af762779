/* The subcommands of gpuconv. */
#ifndef GPUCONV_COMMANDS_COMMANDS_H
#define GPUCONV_COMMANDS_COMMANDS_H

#include "cli/cli.h"
#include "gpuconv/play/device.h"
#include "libgpuconv/ir/settings.h"

#include <stdbool.h>

/* All subcommands. `gpuconv IN IR OUT` is the first; "bench rows" and "bench rt" come before "bench", because the first
 * match is taken.
 */
extern const gc_command gc_command_convolve, gc_command_batch, gc_command_bench_rows, gc_command_bench_rt,
    gc_command_bench, gc_command_calibrate, gc_command_ir_clean, gc_command_ir_correct, gc_command_ir_info,
    gc_command_ir_measure, gc_command_ir_synth, gc_command_live, gc_command_play;
extern const gc_command *const gc_commands[]; /* NULL at the end */

/* The options of a command that reads responses by itself: what their files do not state. */
#define GC_FORM_OPTIONS(rate, raw)                                                                                     \
    {"ir-rate", '\0',          POPT_ARG_DOUBLE,                                                                        \
     &(rate),   GC_RANGE_RATE, "sampling rate of responses that state none: texts of coefficients, or .npy",           \
     "HZ"},                                                                                                            \
    {                                                                                                                  \
        "ir-raw", '\0', POPT_ARG_STRING, &(raw), 0, "responses have samples without a header, such as 48000,1,double", \
            "RATE,CHANNELS,ENCODING"                                                                                   \
    }

/* Prints the devices of a sound system. @return GC_EXIT_DONE, or GC_EXIT_FAILED after a message */
int gc_list_devices(gc_sound_choice sound);

/* Ends a benchmark: prints the error if `status` is not OK, prints the report if it has the list `name`, and frees it.
 * @return the exit status */
int gc_finish_bench(gpuconv_status status, const gpuconv_error *error, gpuconv_report *report, const char *name,
                    const char *format);

/* Prints an error that names the subcommand that `word` was probably meant as, if it is neither a file nor a
 * subcommand.
 * @return whether it did */
bool gc_refuse_mistyped(const char *word);

/* The words of --algorithm, the names of the library's algorithms, for argDescrip and gc_choose. The index of a word is
 * its gpuconv_algorithm. Every main fills them before it reads the tables of options. */
extern char gc_words_algorithm[256];
void gc_fill_words(void);

/* ---- Options that are settings of libgpuconv/ir/settings.h ---- */
/* A command has the texts in a static array `given_settings`, whose lines of the option table
 * GC_SETTINGS_OF_...(GC_SETTING_OPTION) makes. */

/* The value of an option: a text, a list of texts that ends with NULL, or, for a flag, not 0. */
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
