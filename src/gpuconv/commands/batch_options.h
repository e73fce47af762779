/* Options of `gpuconv batch` that are the defaults of a manifest's columns. */
#ifndef GPUCONV_COMMANDS_BATCH_OPTIONS_H
#define GPUCONV_COMMANDS_BATCH_OPTIONS_H

#include "cli/cli.h"
#include "libtools/batch/entry/entry.h"

typedef struct gc_batch_defaults {
    char *text[GC_COLUMNS]; /* values of the options that are columns; NULL: not given */
    char *preset, *length;
    char **series, **noises;
    int reverse, minimum_phase, level_match;
} gc_batch_defaults;

#define GC_WORDS_PRESET "none|speech"
#define GC_WORDS_LENGTH "full|input"

/* Lines of an option table for the gc_batch_defaults `d`. Values are texts, because a manifest's columns are. */
// clang-format off
#define GC_COLUMN_OPTION(d, name, letter, column, help, value) \
    {name, letter, POPT_ARG_STRING, &(d).text[column], 0, help, value}
#define GC_BATCH_TABLE(d) \
    {"preset", '\0', POPT_ARG_STRING, &(d).preset, 0, \
     "speech: --align peak --length input, so that each output is as long as its input and labels stay where they were " \
     "(default: none)", GC_WORDS_PRESET}, \
    {"length", '\0', POPT_ARG_STRING, &(d).length, 0, "input: each output is as long as its input; same as --tail 0 (default: full)", GC_WORDS_LENGTH}, \
    GC_COLUMN_OPTION(d, "mode", '\0', GC_COLUMN_MODE, "full, same or valid, as for one file (default: full)", "full|same|valid"), \
    GC_COLUMN_OPTION(d, "tail", '\0', GC_COLUMN_TAIL, "how much to keep after the end of the input: SECONDS, auto or auto:DB (default: all)", "SECONDS|auto"), \
    GC_COLUMN_OPTION(d, "gain", 'g', GC_COLUMN_GAIN, "gain of the whole output, or a range to draw from, such as -6:0", "DB|LOW:HIGH"), \
    GC_COLUMN_OPTION(d, "level", '\0', GC_COLUMN_LEVEL, "level of each output: peak:DB, rms:DB, loudness:LUFS, or input for the RMS of the input", "KIND:DB"), \
    {"level-match", '\0', POPT_ARG_NONE, &(d).level_match, 0, "--level input, the RMS of the input, as lhotse does (default: the response's own gain)", NULL}, \
    GC_COLUMN_OPTION(d, "early", '\0', GC_COLUMN_EARLY_MS, "also write the reflections up to MS after the direct sound, to NAME.early.EXT", "MS"), \
    {"noises", '\0', POPT_ARG_ARGV, &(d).noises, 0, "noise for each input: files, patterns or a list; short noise is repeated, a part of long noise is drawn", "PATTERN..."}, \
    GC_COLUMN_OPTION(d, "snr", '\0', GC_COLUMN_SNR, "power of the output over that of the noise, or a range to draw from, such as 5:20", "DB|LOW:HIGH")
#define GC_BATCH_RESPONSE_TABLE(d) \
    GC_COLUMN_OPTION(d, "ir-layout", '\0', GC_COLUMN_IR_LAYOUT, "order of a response's channels, as for one file (default: auto, a mono input gives an output for each)", "auto|source|output|packed|stereo"), \
    GC_COLUMN_OPTION(d, "ir-start", '\0', GC_COLUMN_IR_START, "skip the first SECONDS of each response", "SECONDS"), \
    GC_COLUMN_OPTION(d, "ir-length", '\0', GC_COLUMN_IR_LENGTH, "use only SECONDS of each response (default: all)", "SECONDS"), \
    GC_COLUMN_OPTION(d, "trim", '\0', GC_COLUMN_TRIM, "cut off the end that stays below DB relative to the peak, such as -60", "DB"), \
    GC_COLUMN_OPTION(d, "align", '\0', GC_COLUMN_ALIGN, "onset: cut off the silence before a response; peak: make its peak time zero (default: none)", "none|onset|peak"), \
    {"reverse", '\0', POPT_ARG_NONE, &(d).reverse, 0, "reverse each response in time", NULL}, \
    GC_COLUMN_OPTION(d, "stretch", '\0', GC_COLUMN_STRETCH, "make each response longer by FACTOR", "FACTOR"), \
    {"minimum-phase", '\0', POPT_ARG_NONE, &(d).minimum_phase, 0, "make each response minimum-phase", NULL}, \
    GC_COLUMN_OPTION(d, "fade", '\0', GC_COLUMN_FADE, "fade each response out over its last SECONDS", "SECONDS"), \
    {"series", '\0', POPT_ARG_ARGV, &(d).series, 0, "convolve each response with another response FILE; may be repeated", "FILE"}, \
    GC_COLUMN_OPTION(d, "predelay", '\0', GC_COLUMN_PREDELAY, "insert silence before each response", "SECONDS"), \
    GC_COLUMN_OPTION(d, "normalize", 'n', GC_COLUMN_NORMALIZE, "scale each response, as for one file (default: none)", "none|peak|l1|energy|loudness"), \
    GC_COLUMN_OPTION(d, "ir-gain", '\0', GC_COLUMN_IR_GAIN, "gain of each response", "DB"), \
    GC_COLUMN_OPTION(d, "wet", 'w', GC_COLUMN_WET, "gain of the convolved signal, or a range", "DB|LOW:HIGH"), \
    GC_COLUMN_OPTION(d, "dry", 'y', GC_COLUMN_DRY, "gain at which the input itself is added, or a range (default: not added)", "DB|LOW:HIGH")
#define GC_BATCH_FILE_TABLE(d) \
    GC_COLUMN_OPTION(d, "format", 'f', GC_COLUMN_FORMAT, "container of the outputs and their extension, such as wav, flac or opus (default: wav)", "NAME"), \
    GC_COLUMN_OPTION(d, "encoding", 'e', GC_COLUMN_ENCODING, "sample format of the outputs, such as s16 or float (default: that of the input)", "NAME"), \
    GC_COLUMN_OPTION(d, "dither", '\0', GC_COLUMN_DITHER, "noise added before rounding to integers (default: none)", "none|tpdf"), \
    GC_COLUMN_OPTION(d, "compression", '\0', GC_COLUMN_COMPRESSION, "level of FLAC: 0 is fastest, 8 smallest, as the command flac has them (default: 5)", "0..8")
// clang-format on

/* Fills in the row of defaults from the options, and checks it. The row must be cleared, also after a failure. @return
 * GC_EXIT_DONE, or GC_EXIT_USAGE or GC_EXIT_FAILED after a message */
int gc_batch_defaults_row(const gc_batch_defaults *defaults, gc_entry_texts *row);

#endif
