/* Reads a command line by a table of popt options. popt only splits the words; every value is converted and checked
 * here, by the same rules for all options. */
#ifndef GPUCONV_CLI_OPTIONS_H
#define GPUCONV_CLI_OPTIONS_H

#include <popt.h>
#include <stdbool.h>
#include <stdint.h>

/* Ranges of numeric options: name, least, most. `val` in an option's table line is GC_RANGE_NAME. INT and LONGLONG
 * options take whole numbers, and so do DOUBLE options that count frames, taps or signals. */
#define GC_RANGES(X)                                                                                                   \
    X(ANY_COUNT, 0, INT64_MAX)                                                                                         \
    X(CHANNEL, 0, 1024)                                                                                                \
    X(COMPARE, 0.1, 86400)                                                                                             \
    X(CROSSFADE, 0, 60)                                                                                                \
    X(CYCLES, 0, 1000)                                                                                                 \
    X(BENCH_CHANNELS, 1, 64)                                                                                           \
    X(BENCH_FRAMES, 1, 1e10)                                                                                           \
    X(BENCH_MOST, 1, 1e9)                                                                                              \
    X(BENCH_RUNS, 3, 64)                                                                                               \
    X(BENCH_SECONDS, 0.1, 86400)                                                                                       \
    X(BENCH_TAPS, 1, 1e8)                                                                                              \
    X(BLOCK, 0, 65536)                                                                                                 \
    X(DEVICE, -1, 1023)                                                                                                \
    X(DISTANCE, 0.3, 200)                                                                                              \
    X(FILTER_LENGTH, 0.001, 60)                                                                                        \
    X(FREQUENCY, 1e-3, 5e5)                                                                                            \
    X(INPUT, 0, 64)                                                                                                    \
    X(LATENCY, 0, 1048576)                                                                                             \
    X(LAUNCH_REGISTERS, 1, 65536)                                                                                      \
    X(LAUNCH_SHARED, 0, 1 << 30)                                                                                       \
    X(LAUNCH_THREADS, 1, 1024)                                                                                         \
    X(NOISE_TIME, 0, 60)                                                                                               \
    X(PLAYED_CHANNELS, 1, 64)                                                                                          \
    X(PLAYED_RATE, 0, 1e6)                                                                                             \
    X(PRE_RINGING, -200, -1)                                                                                           \
    X(RATE, 1000, 1e6)                                                                                                 \
    X(REPEAT, 1, 100)                                                                                                  \
    X(ROOM_COUNT, 1, 1000000)                                                                                          \
    X(ROOM_IMAGES, 0, 20)                                                                                              \
    X(ROOM_ORDER, 1, 4)                                                                                                \
    X(RT_BLOCK, 1, 65536)                                                                                              \
    X(RT_CHANNELS, 1, 1048576)                                                                                         \
    X(RT_LENGTH, 1e-6, 600)                                                                                            \
    X(RT_THREADS, 0, 64)                                                                                               \
    X(SMOOTHING, 0, 96)                                                                                                \
    X(SOUND_LEVEL, -100, 200)                                                                                          \
    X(SWEEP_LENGTH, 0, 600)                                                                                            \
    X(SWEEP_LEVEL, -100, 0)                                                                                            \
    X(SWEEP_SECONDS, 0.1, 600)                                                                                         \
    X(SYNTH_CHANNELS, 1, 4)                                                                                            \
    X(THREADS, 0, 1024)                                                                                                \
    X(TIME, 0, 1e6)

#define GC_RANGE_NAMED(name, least, most) GC_RANGE_##name,
typedef enum gc_range { GC_RANGE_NONE, GC_RANGES(GC_RANGE_NAMED) GC_RANGE_COUNT } gc_range;

/* Returns whether the option takes a value. */
bool gc_option_takes_value(const struct poptOption *option);

/* Returns whether the value may be left out: that of a DOUBLE or STRING with POPT_ARGFLAG_OPTIONAL, whose variable then
 * is 0 or "". The value follows an equals sign. */
bool gc_option_value_is_optional(const struct poptOption *option);

/* Returns whether the value is one of the words that argDescrip lists, with | between them. */
bool gc_option_takes_words(const struct poptOption *option);

/* Returns whether the value is a number. */
bool gc_option_takes_number(const struct poptOption *option);

/* ---- The word that a user probably meant instead of a mistyped one ---- */

/* The nearest of the words that gc_suggestion_try has seen. */
typedef struct gc_suggestion {
    const char *typed; /* the mistyped word, set by the caller, as `best` and `distance` are to 0 */
    const char *best;  /* NULL: no word is near */
    int distance;      /* of `best`, in letters */
} gc_suggestion;

/* Keeps `word` if it is nearer to the typed word than those before it: letters that are missing, superfluous, wrong or
 * swapped with the next one count 1 each (optimal string alignment), and one in three letters of the typed word, at
 * least one, may be wrong. Words of up to 31 letters are compared. */
void gc_suggestion_try(gc_suggestion *s, const char *word);

#endif
