/* The settings of a convolution, once. The options of the command, the columns and recipes of a batch, the keywords of
 * Python and the checks of the library follow from this table. A new setting is one line in a list below and the use of
 * its member; docs/manual.md or docs/datasets.md names it. */
#ifndef GC_IR_SETTINGS_H
#define GC_IR_SETTINGS_H

#include "gpuconv.h"
#include "libgpuconv/core/limits.h"

#include <math.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The lists. X(ID, column, option, letter, kind, member of gc_settings, least, most, default, value, unit, help):
 *
 *   column, option   of a manifest; of the command (NULL: none), which Python spells with _ for -
 *   kind             see gc_setting_kind
 *   value            what the help shows for a value; the words, separated by |, in the order of their enumeration
 *   unit             follows a range of numbers in a refusal; for other kinds the whole of what a value must be */
// clang-format off
#define GC_SETTINGS_OF_LAYOUT(X) \
    X(IR_LAYOUT, "ir_layout", "ir-layout", '\0', WORD, preparation.layout, 0, 0, 0, "auto|source|output|packed|stereo|hesuvi", "", \
      "order of the response's channels: auto: one for all, one each, or 4 as true stereo for 2 inputs, and an output for each " \
      "for 1; source: all outputs of input 1, then of input 2; output: all inputs of output 1, then of output 2; packed: the " \
      "inputs one after the other in time; stereo: as auto, and 4 are true stereo for 1 input too; hesuvi: 7 or 14 channels of " \
      "HeSuVi for mono to 7.1 (default: stereo; in a batch auto)") \
    X(IR_RATE, "ir_rate", "ir-rate", '\0', NUMBER, preparation.file_rate, 1, GC_MAX_RATE, 0, "HZ", " Hz", \
      "sampling rate of a response that states none: a text of coefficients, or .npy") \
    X(IR_RAW, "ir_raw", "ir-raw", '\0', RAW, preparation.raw, 0, 0, 0, "RATE,CHANNELS,ENCODING", \
      "RATE,CHANNELS,ENCODING such as 48000,1,double", "the response has samples without a header, such as 48000,1,double")
#define GC_SETTINGS_OF_RESPONSE(X) \
    X(IR_START, "ir_start", "ir-start", '\0', NUMBER, preparation.start, 0, 1e6, 0, "SECONDS", " seconds", "skip the first SECONDS of the response") \
    X(IR_LENGTH, "ir_length", "ir-length", '\0', NUMBER, preparation.length, 0, 1e6, 0, "SECONDS", " seconds", \
      "use only SECONDS of the response (default: all)") \
    X(TRIM, "trim", "trim", '\0', NUMBER, preparation.trim, -300, 0, 0, "DB", " dB", \
      "cut off the end of the response that stays below DB relative to its peak, such as -60") \
    X(ALIGN, "align", "align", '\0', WORD, preparation.align, 0, 0, 0, "none|onset|peak", "", \
      "onset: cut off the silence before the response; peak: make its peak time zero (default: none)") \
    X(REVERSE, "reverse", "reverse", '\0', FLAG, preparation.reverse, 0, 0, 0, NULL, "", "reverse the response in time") \
    X(STRETCH, "stretch", "stretch", '\0', NUMBER, preparation.stretch, 0.01, 100, 1, "FACTOR", "", \
      "make the response longer by FACTOR, which lowers its pitch") \
    X(MINIMUM_PHASE, "minimum_phase", "minimum-phase", '\0', FLAG, preparation.minimum_phase, 0, 0, 0, NULL, "", \
      "make the response minimum-phase, with the same spectrum") \
    X(FADE, "fade", "fade", '\0', NUMBER, preparation.fade, 0, 1e6, 0, "SECONDS", " seconds", "fade the response out over its last SECONDS") \
    X(SERIES, "series", "series", '\0', FILES, preparation.series, 0, 0, 0, "FILE", "the name of a file", \
      "convolve the response with another response FILE, in series; may be repeated") \
    X(PREDELAY, "predelay", "predelay", '\0', NUMBER, preparation.predelay, 0, 1e6, 0, "SECONDS", " seconds", "insert silence before the response") \
    X(NORMALIZE, "normalize", "normalize", 'n', WORD, preparation.normalize, 0, 0, 0, "none|peak|l1|energy|loudness", "", \
      "scale the response by one gain so that its largest tap is 1 (peak), no input can clip (l1), white noise (energy) or pink " \
      "noise (loudness) keeps its level (default: none)") \
    X(IR_GAIN, "ir_gain", "ir-gain", '\0', NUMBER, preparation.gain, -GC_MAX_DECIBELS, GC_MAX_DECIBELS, 0, "DB", " dB", \
      "gain of the response in decibels (default: 0)")
#define GC_SETTINGS_OF_RESULT(X) \
    X(MODE, "mode", "mode", '\0', WORD, job.mode, 0, 0, 0, "full|same|valid", "", \
      "full: keep all frames; same: the middle ones, as many as the input has; valid: the frames computed without zero padding " \
      "(default: full)") \
    X(TAIL, "tail", "tail", '\0', TAIL, job.tail, 0, 1e6, 0, "SECONDS|auto", "all, seconds up to 1000000, auto, or auto:DB with DB under 0, down to -300", \
      "how much to keep after the end of the input: SECONDS, auto (down to -90 dBFS) or auto:DB (default: all)")
#define GC_SETTINGS_OF_BATCH(X) \
    X(LEVEL, "level", "level", '\0', LEVEL, level, 0, 0, 0, "KIND:DB", "peak:DB, rms:DB, loudness:LUFS, input or input:DB", \
      "level of each output: peak:DB, rms:DB, loudness:LUFS, or input for the RMS of the input") \
    X(EARLY_MS, "early_ms", "early", '\0', NUMBER, early_ms, 0, 1e6, 0, "MS", " milliseconds", \
      "also write the reflections up to MS after the direct sound, to NAME.early.EXT")
#define GC_SETTINGS_OF_FILE(X) \
    X(FORMAT, "format", "format", 'f', FORMAT, job.format, 0, 0, 0, "NAME", "a format such as wav, flac, aiff, w64, rf64, caf, au, ogg, opus or mp3", \
      "container of the output, such as wav, flac or opus, for one file also raw (default: from its extension; in a batch wav)") \
    X(ENCODING, "encoding", "encoding", 'e', ENCODING, job.encoding, 0, 0, 0, "NAME", "an encoding such as u8, s16, s24, s32, float, double, ulaw, alaw or vorbis", \
      "sample format of the output, such as s16, s24, float or vorbis (default: that of the input)") \
    X(DITHER, "dither", "dither", '\0', SWITCH, job.dither, 0, 0, 0, "none|tpdf", "", "noise added before rounding to integers (default: none)") \
    X(COMPRESSION, "compression", "compression", '\0', COMPRESSION, job.compression, 0, 8, 0, "LEVEL", "", \
      "level of FLAC: 0 is fastest, 8 smallest, as the command flac has them (default: 5)")
#define GC_SETTINGS_OF_LEVELS(X) \
    X(GAIN, "gain", "gain", 'g', NUMBER, job.gain, -GC_MAX_DECIBELS, GC_MAX_DECIBELS, 0, "DB", " dB", "gain of the whole output in decibels (default: 0)") \
    X(WET, "wet", "wet", 'w', MIX, preparation.wet, -GC_MAX_DECIBELS, GC_MAX_DECIBELS, 0, "DB", " dB or -inf", \
      "gain of the convolved signal in decibels (default: 0)") \
    X(DRY, "dry", "dry", 'y', MIX, preparation.dry, -GC_MAX_DECIBELS, GC_MAX_DECIBELS, -HUGE_VAL, "DB", " dB or -inf", \
      "gain in decibels at which the input itself is added (default: not added)")
#define GC_SETTINGS_OF_SPACE(X) \
    X(DIRECTION, "direction", "direction", '\0', TEXT, preparation.direction, 0, 0, 0, "AZIMUTH,ELEVATION[,DISTANCE]", "", \
      "of a SOFA file: where a mono input comes from, in degrees to the left and up, and metres (default: 1)") \
    X(SPEAKERS, "layout", "layout", '\0', TEXT, preparation.speakers, 0, 0, 0, "NAME|FILE", "", \
      "of a SOFA file: where the channels of the input come from: mono, stereo, 5.1, 7.1, 5.1.4, 7.1.4, ambisonic, " \
      "or a text file with a direction for each channel") \
    X(INTERPOLATE, "interpolate", "interpolate", '\0', WORD, preparation.interpolate, 0, 0, 0, "auto|nearest|triangle", "", \
      "of a SOFA file: take the nearest measured response, or one between the three around a direction, with the delay and the " \
      "rest averaged apart (default: auto, which is triangle)") \
    X(BY_DISTANCE, "by_distance", "by-distance", '\0', FLAG, preparation.by_distance, 0, 0, 0, NULL, "", \
      "of a SOFA file: gain of the measured DISTANCE divided by that of the direction, 1/r") \
    X(DECODE, "decode", "decode", '\0', WORD, preparation.decode, 0, 0, 0, "auto|ls|aligned|magls", "", \
      "of a SOFA file: fit ambisonics of order N above N x 624 Hz to the responses (ls), to them without their differences in " \
      "delay (aligned), or to their magnitudes (default: auto, which is magls)") \
    X(AMBISONICS, "ambisonics", "ambisonics", '\0', WORD, preparation.ambisonics, 0, 0, 0, "acn-sn3d|acn-n3d|fuma", "", \
      "of a SOFA file: order and normalisation of ambisonics; FuMa up to order 3 (default: acn-sn3d)") \
    X(DIFFUSE_EQ, "diffuse_eq", "diffuse-eq", '\0', FLAG, preparation.diffuse_eq, 0, 0, 0, NULL, "", \
      "of a SOFA file: give decoded ambisonics the energy of the responses over all directions at every frequency")
#define GC_SETTINGS_OF_MOTION(X) \
    X(PATH, "path", "path", '\0', TEXT, job.path, 0, 0, 0, "FILE", "", \
      "of a SOFA file: move the channels of the input along FILE, a table with a line SECONDS, and AZIMUTH, ELEVATION[, DISTANCE] for " \
      "each channel, or messages /NUMBER/aed as oscdump prints them; in a room: SECONDS, and X, Y, Z in metres for each channel") \
    X(RECEIVER_PATH, "receiver_path", "receiver-path", '\0', TEXT, job.receiver_path, 0, 0, 0, "FILE", "", \
      "of a room: move the receivers along FILE, a table with lines SECONDS X Y Z, which is the place of the first one") \
    X(HEAD, "head", "head", '\0', TEXT, job.head, 0, 0, 0, "FILE", "", \
      "of a SOFA file: turn the head as in FILE, a table with lines SECONDS YAW [PITCH [ROLL]], or messages /ypr as oscdump " \
      "prints them; with --path, --direction or --layout") \
    X(INTERVAL, "interval", "interval", '\0', NUMBER, job.interval, 0.0001, 1, 0.005, "SECONDS", " seconds", \
      "exchange the responses of moving channels and heads every SECONDS (default: 0.005)") \
    X(DOPPLER, "doppler", "doppler", '\0', FLAG, job.doppler, 0, 0, 0, NULL, "", \
      "delay the sound of moving channels by its way, so that the pitch changes with the speed")
#define GC_SETTINGS_OF_HEAD(X) \
    X(YAW, "yaw", NULL, '\0', NUMBER, preparation.yaw, -360, 360, 0, "DEGREES", " degrees", NULL) \
    X(PITCH, "pitch", NULL, '\0', NUMBER, preparation.pitch, -360, 360, 0, "DEGREES", " degrees", NULL) \
    X(ROLL, "roll", NULL, '\0', NUMBER, preparation.roll, -360, 360, 0, "DEGREES", " degrees", NULL)
// clang-format on

/* The columns of a recipe of a batch, in the order of a manifest; then all settings. */
#define GC_SETTINGS_OF_RECIPE(X)                                                                                       \
    GC_SETTINGS_OF_LAYOUT(X)                                                                                           \
    GC_SETTINGS_OF_RESPONSE(X)                                                                                         \
    GC_SETTINGS_OF_RESULT(X) GC_SETTINGS_OF_BATCH(X) GC_SETTINGS_OF_FILE(X)
#define GC_ALL_SETTINGS(X)                                                                                             \
    GC_SETTINGS_OF_RECIPE(X)                                                                                           \
    GC_SETTINGS_OF_LEVELS(X)                                                                                           \
    GC_SETTINGS_OF_SPACE(X) GC_SETTINGS_OF_MOTION(X) GC_SETTINGS_OF_HEAD(X)

#define GC_SETTING_ID(id, ...) GC_SETTING_##id,
typedef enum gc_setting_id { GC_ALL_SETTINGS(GC_SETTING_ID) GC_SETTINGS } gc_setting_id;

typedef enum gc_setting_kind {
    GC_KIND_NUMBER,      /* double, finite */
    GC_KIND_MIX,         /* double, a level; -INFINITY is "-inf" */
    GC_KIND_FLAG,        /* bool, "0" or "1"; an option without value */
    GC_KIND_SWITCH,      /* bool, one of two words */
    GC_KIND_WORD,        /* an enumeration of gpuconv.h, one of several words */
    GC_KIND_COMPRESSION, /* int: 1 + a whole number; 0: the default */
    GC_KIND_TEXT,        /* const char *, which the setting's text stays */
    GC_KIND_FORMAT,      /* the same: a container */
    GC_KIND_ENCODING,    /* the same: a sample format */
    GC_KIND_RAW,         /* the same: samples without a header */
    GC_KIND_FILES,       /* const char *const *: each text adds a path */
    GC_KIND_TAIL,        /* job.tail and job.tail_floor: "all", "2.5", "auto" and "auto:-60" */
    GC_KIND_LEVEL        /* level and level_db: "peak:-1", "rms:-26", "loudness:-23", "input" and "input:3" */
} gc_setting_kind;

typedef enum gc_level_kind {
    GC_LEVEL_NONE = 0,
    GC_LEVEL_PEAK,     /* largest magnitude, dBFS */
    GC_LEVEL_RMS,      /* root of the mean power of all channels, dBFS */
    GC_LEVEL_LOUDNESS, /* integrated loudness, LUFS (BS.1770) */
    GC_LEVEL_INPUT     /* the RMS of the input, plus decibels */
} gc_level_kind;

/* The values of all settings. */
typedef struct gc_settings {
    gpuconv_preparation preparation;
    gpuconv_job job;     /* its files, callbacks and preparation are not settings */
    gc_level_kind level; /* of a batch, like the two below */
    double level_db;
    double early_ms; /* milliseconds after the direct sound that the second output keeps */
} gc_settings;

/* A line of the lists. */
typedef struct gc_setting {
    const char *column, *option;
    gc_setting_kind kind;
    size_t at; /* bytes into gc_settings */
    double least, most, other;
    const char *value, *unit;
} gc_setting;

extern const gc_setting gc_settings_table[GC_SETTINGS];

enum { GC_SETTING_TEXT_ROOM = 160 };

/* Writes what a value of a setting must be: "-300 to 0 dB", "none, onset or peak". */
void gc_setting_range(const gc_setting *setting, char text[GC_SETTING_TEXT_ROOM]);

/* Returns whether a number is within a setting's range; false for NaN. */
bool gc_setting_takes(const gc_setting *setting, double value);

/* Checks the value of a number. Returns ARGUMENT. */
gpuconv_status gc_setting_check(gc_setting_id id, double value, gpuconv_error *error);

/* Checks the settings of one structure of gc_settings, which has `size` bytes from byte `at` on. 0 always stands for a
 * default. Returns ARGUMENT. */
gpuconv_status gc_settings_check(const void *structure, size_t at, size_t size, gpuconv_error *error);

/* Returns the defaults of all settings. */
gc_settings gc_settings_default(void);

/* Sets a setting. Texts and paths are not copied: they must exist as long as the settings. Returns ARGUMENT (the text
 * is invalid), MEMORY. */
gpuconv_status gc_setting_set(gc_settings *settings, gc_setting_id id, const char *text);

/* Returns the canonical text of a setting's value, from which gc_setting_set makes the same value; NULL: the default,
 * or a text or list of files. */
const char *gc_setting_print(const gc_settings *settings, gc_setting_id id, char text[GC_SETTING_TEXT_ROOM]);

/* Frees the list of paths. */
void gc_settings_free(gc_settings *settings);

#ifdef __cplusplus
}
#endif

#endif
