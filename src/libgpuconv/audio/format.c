/* Tables of libsndfile's formats: extensions and names to containers, encodings to sample types. */
#include "format.h"
#include "names.h"

#include "file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/number.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gc_pcm gc_format_pcm(int format) {
    int container = format & SF_FORMAT_TYPEMASK;
    int little =
        (format & SF_FORMAT_ENDMASK) != SF_ENDIAN_BIG && (container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX ||
                                                          container == SF_FORMAT_W64 || container == SF_FORMAT_RF64);
    switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
        return (gc_pcm){GC_S16, 8};
    case SF_FORMAT_PCM_16:
    case SF_FORMAT_ALAC_16:
    case SF_FORMAT_ULAW:
    case SF_FORMAT_ALAW:
    case SF_FORMAT_IMA_ADPCM:
    case SF_FORMAT_MS_ADPCM:
    case SF_FORMAT_GSM610:
    case SF_FORMAT_VOX_ADPCM:
    case SF_FORMAT_G721_32:
    case SF_FORMAT_G723_24:
    case SF_FORMAT_G723_40:
    case SF_FORMAT_NMS_ADPCM_16:
    case SF_FORMAT_NMS_ADPCM_24:
    case SF_FORMAT_NMS_ADPCM_32:
    case SF_FORMAT_DPCM_8:
    case SF_FORMAT_DPCM_16:
    case SF_FORMAT_DWVW_12:
    case SF_FORMAT_DWVW_16:
        return (gc_pcm){GC_S16, 16};
    case SF_FORMAT_PCM_24:
        return little ? (gc_pcm){GC_S24, 24} : (gc_pcm){GC_S32, 24};
    case SF_FORMAT_ALAC_20:
        return (gc_pcm){GC_S32, 20};
    case SF_FORMAT_ALAC_24:
    case SF_FORMAT_DWVW_24:
        return (gc_pcm){GC_S32, 24};
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_ALAC_32:
        return (gc_pcm){GC_S32, 32};
    default:
        return (gc_pcm){GC_F32, 32};
    }
}

bool gc_format_is_plain(int format) {
    const int sample = format & SF_FORMAT_SUBMASK;
    return (format & SF_FORMAT_TYPEMASK) != SF_FORMAT_FLAC &&
           (sample == SF_FORMAT_PCM_16 || sample == SF_FORMAT_PCM_24 || sample == SF_FORMAT_PCM_32 ||
            sample == SF_FORMAT_FLOAT);
}

bool gc_format_streams(int format) {
    switch (format & SF_FORMAT_TYPEMASK) {
    case SF_FORMAT_WAV: /* the sink completes the lengths of these */
    case SF_FORMAT_WAVEX:
    case SF_FORMAT_RF64:
    case SF_FORMAT_AU:
    case SF_FORMAT_RAW: /* these state none, or may leave it out */
    case SF_FORMAT_FLAC:
    case SF_FORMAT_OGG:
    case SF_FORMAT_MPEG:
    case SF_FORMAT_IRCAM:
    case SF_FORMAT_PAF:
    case SF_FORMAT_PVF:
        return true;
    default:
        return false;
    }
}

typedef struct name_code {
    const char *name;
    int code; /* libsndfile's */
} name_code;

static const name_code containers[] = {
    {"wav", SF_FORMAT_WAV},   {"wave", SF_FORMAT_WAV},    {"wavex", SF_FORMAT_WAVEX},
    {"w64", SF_FORMAT_W64},   {"rf64", SF_FORMAT_RF64},   {"flac", SF_FORMAT_FLAC},
    {"aif", SF_FORMAT_AIFF},  {"aiff", SF_FORMAT_AIFF},   {"aifc", SF_FORMAT_AIFF},
    {"ogg", SF_FORMAT_OGG},   {"oga", SF_FORMAT_OGG},     {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS},
    {"caf", SF_FORMAT_CAF},   {"au", SF_FORMAT_AU},       {"snd", SF_FORMAT_AU},
    {"mp3", SF_FORMAT_MPEG},  {"raw", SF_FORMAT_RAW},     {"pcm", SF_FORMAT_RAW},
    {"voc", SF_FORMAT_VOC},   {"ircam", SF_FORMAT_IRCAM}, {"sf", SF_FORMAT_IRCAM},
    {"nist", SF_FORMAT_NIST}, {"sph", SF_FORMAT_NIST},    {"paf", SF_FORMAT_PAF},
    {"svx", SF_FORMAT_SVX},   {"iff", SF_FORMAT_SVX},     {"8svx", SF_FORMAT_SVX},
    {"mat4", SF_FORMAT_MAT4}, {"mat5", SF_FORMAT_MAT5},   {"mat", SF_FORMAT_MAT5},
    {"pvf", SF_FORMAT_PVF},   {"htk", SF_FORMAT_HTK},     {"sds", SF_FORMAT_SDS},
    {"avr", SF_FORMAT_AVR},   {"xi", SF_FORMAT_XI},       {"wve", SF_FORMAT_WVE},
    {"mpc", SF_FORMAT_MPC2K}, {"mpc2k", SF_FORMAT_MPC2K},
};

static const name_code encodings[] = {
    {"s8", SF_FORMAT_PCM_S8},          {"u8", SF_FORMAT_PCM_U8},          {"s16", SF_FORMAT_PCM_16},
    {"s24", SF_FORMAT_PCM_24},         {"s32", SF_FORMAT_PCM_32},         {"float", SF_FORMAT_FLOAT},
    {"f32", SF_FORMAT_FLOAT},          {"double", SF_FORMAT_DOUBLE},      {"f64", SF_FORMAT_DOUBLE},
    {"ulaw", SF_FORMAT_ULAW},          {"alaw", SF_FORMAT_ALAW},          {"ima-adpcm", SF_FORMAT_IMA_ADPCM},
    {"ms-adpcm", SF_FORMAT_MS_ADPCM},  {"gsm610", SF_FORMAT_GSM610},      {"vox", SF_FORMAT_VOX_ADPCM},
    {"g721-32", SF_FORMAT_G721_32},    {"g723-24", SF_FORMAT_G723_24},    {"g723-40", SF_FORMAT_G723_40},
    {"nms16", SF_FORMAT_NMS_ADPCM_16}, {"nms24", SF_FORMAT_NMS_ADPCM_24}, {"nms32", SF_FORMAT_NMS_ADPCM_32},
    {"dwvw12", SF_FORMAT_DWVW_12},     {"dwvw16", SF_FORMAT_DWVW_16},     {"dwvw24", SF_FORMAT_DWVW_24},
    {"dpcm8", SF_FORMAT_DPCM_8},       {"dpcm16", SF_FORMAT_DPCM_16},     {"vorbis", SF_FORMAT_VORBIS},
    {"opus", SF_FORMAT_OPUS},          {"alac16", SF_FORMAT_ALAC_16},     {"alac20", SF_FORMAT_ALAC_20},
    {"alac24", SF_FORMAT_ALAC_24},     {"alac32", SF_FORMAT_ALAC_32},     {"mp3", SF_FORMAT_MPEG_LAYER_III},
};

/* Returns the code of `name`, compared without regard to case, or 0. */
static int find_code(const name_code *list, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (gc_same_word(name, list[i].name))
            return list[i].code;
    return 0;
}

int gc_container_from_name(const char *name) {
    return find_code(containers, sizeof containers / sizeof *containers, name);
}

int gc_encoding_from_name(const char *name) {
    return find_code(encodings, sizeof encodings / sizeof *encodings, name);
}

const char *gc_encoding_name_of(int encoding) {
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (encodings[i].code == encoding)
            return encodings[i].name;
    return "another encoding";
}

int gc_container_of_path(const char *path) {
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    return dot ? gc_container_from_name(dot + 1) : 0;
}

bool gc_format_parse_raw(const char *text, SF_INFO *info) {
    char *end;
    *info = (SF_INFO){0};
    if (text[strspn(text, "0123456789")] != ',') /* strtol also accepts white space and signs */
        return false;
    long rate = strtol(text, &end, 10);
    if (end == text || *end != ',' || rate < 1 || rate > GC_MAX_RATE)
        return false;
    text = end + 1;
    if (text[strspn(text, "0123456789")] != ',')
        return false;
    long channels = strtol(text, &end, 10);
    if (end == text || *end != ',' || channels < 1 || channels > GC_MAX_CHANNELS)
        return false;
    int code = gc_encoding_from_name(end + 1);
    info->samplerate = (int)rate;
    info->channels = (int)channels;
    info->format = SF_FORMAT_RAW | code | SF_ENDIAN_LITTLE;
    return code && sf_format_check(info);
}

bool gc_is_format_name(const char *name) {
    return gc_container_from_name(name) != 0;
}

bool gc_is_encoding_name(const char *name) {
    return gc_encoding_from_name(name) != 0;
}

bool gc_is_raw_format(const char *text) {
    SF_INFO info;
    return gc_format_parse_raw(text, &info);
}

int gc_format_exact(int container, int encoding, int channels, int rate) {
    const int format = (container & SF_FORMAT_TYPEMASK) | encoding;
    return gc_format_works(format, channels, rate) ? format : 0;
}

int gc_format_nearest(int container, int like, int channels, int rate) {
    if (container & SF_FORMAT_SUBMASK)
        return gc_format_works(container, channels, rate) ? container : 0;
    int sample = like & SF_FORMAT_SUBMASK;
    gc_pcm pcm = gc_format_pcm(like);
    int integer = pcm.container != GC_F32;
    /* In order of preference: the same encoding, lossless ones, lossy ones. */
    int candidates[] = {sample,
                        integer && pcm.bits <= 8 ? SF_FORMAT_PCM_U8 : 0,
                        integer && pcm.bits <= 8 ? SF_FORMAT_PCM_S8 : 0,
                        integer && pcm.bits <= 16 ? SF_FORMAT_PCM_16 : 0,
                        integer && pcm.bits <= 24 ? SF_FORMAT_PCM_24 : 0,
                        integer ? SF_FORMAT_PCM_32 : 0,
                        SF_FORMAT_FLOAT,
                        SF_FORMAT_PCM_24,
                        SF_FORMAT_PCM_16,
                        SF_FORMAT_VORBIS,
                        SF_FORMAT_MPEG_LAYER_III};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++)
        if (candidates[i] && gc_format_works(container | candidates[i], channels, rate))
            return container | candidates[i];
    return 0;
}

bool gc_format_is_compressed(int format) {
    switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_PCM_16:
    case SF_FORMAT_PCM_24:
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_FLOAT:
    case SF_FORMAT_DOUBLE:
    case SF_FORMAT_ALAC_16: /* lossless */
    case SF_FORMAT_ALAC_20:
    case SF_FORMAT_ALAC_24:
    case SF_FORMAT_ALAC_32:
        return false;
    default:
        return true;
    }
}

bool gc_format_seeks(int format) {
    const int sample = format & SF_FORMAT_SUBMASK;
    return !gc_format_is_compressed(format) || (format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC ||
           sample == SF_FORMAT_ULAW || sample == SF_FORMAT_ALAW || sample == SF_FORMAT_IMA_ADPCM ||
           sample == SF_FORMAT_MS_ADPCM;
}

bool gc_format_exceeds_float(int format) {
    const int sample = format & SF_FORMAT_SUBMASK;
    return sample == SF_FORMAT_PCM_32 || sample == SF_FORMAT_ALAC_32 || sample == SF_FORMAT_DOUBLE;
}

bool gc_format_has_mask(int format) {
    const int container = format & SF_FORMAT_TYPEMASK;
    return container == SF_FORMAT_WAVEX || container == SF_FORMAT_RF64;
}

/* The speakers of a mask, from bit 0 on. */
static const int speakers[] = {SF_CHANNEL_MAP_LEFT,
                               SF_CHANNEL_MAP_RIGHT,
                               SF_CHANNEL_MAP_CENTER,
                               SF_CHANNEL_MAP_LFE,
                               SF_CHANNEL_MAP_REAR_LEFT,
                               SF_CHANNEL_MAP_REAR_RIGHT,
                               SF_CHANNEL_MAP_FRONT_LEFT_OF_CENTER,
                               SF_CHANNEL_MAP_FRONT_RIGHT_OF_CENTER,
                               SF_CHANNEL_MAP_REAR_CENTER,
                               SF_CHANNEL_MAP_SIDE_LEFT,
                               SF_CHANNEL_MAP_SIDE_RIGHT,
                               SF_CHANNEL_MAP_TOP_CENTER,
                               SF_CHANNEL_MAP_TOP_FRONT_LEFT,
                               SF_CHANNEL_MAP_TOP_FRONT_CENTER,
                               SF_CHANNEL_MAP_TOP_FRONT_RIGHT,
                               SF_CHANNEL_MAP_TOP_REAR_LEFT,
                               SF_CHANNEL_MAP_TOP_REAR_CENTER,
                               SF_CHANNEL_MAP_TOP_REAR_RIGHT};
enum { SPEAKERS = sizeof speakers / sizeof *speakers };

bool gc_format_read_speakers(SNDFILE *file, int channels, int *map, uint32_t *mask) {
    const int bytes = channels * (int)sizeof *map;
    int known = 0, bit = 0;
    *mask = 0;
    if (sf_command(file, SFC_GET_CHANNEL_MAP_INFO, map, bytes) != SF_TRUE)
        return false;
    for (int c = 0; c < channels; c++)
        known += map[c] != SF_CHANNEL_MAP_INVALID;
    for (int c = 0; c < known; c++) { /* channels without a speaker follow those that have one */
        while (bit < SPEAKERS && speakers[bit] != map[c])
            bit++;
        *mask = bit < SPEAKERS && (c == 0 || *mask) ? *mask | UINT32_C(1) << bit++ : 0;
    }
    const bool usual = channels == 1 ? map[0] == SF_CHANNEL_MAP_MONO || *mask == 4 : channels == 2 && *mask == 3;
    *mask = usual ? 0 : *mask;
    return known > 0 && !usual;
}

double gc_format_frame_bytes(int format, int channels) {
    switch (format & SF_FORMAT_SUBMASK) {
    case SF_FORMAT_PCM_S8:
    case SF_FORMAT_PCM_U8:
    case SF_FORMAT_ULAW:
    case SF_FORMAT_ALAW:
        return channels;
    case SF_FORMAT_DOUBLE:
        return 8.0 * channels;
    case SF_FORMAT_GSM610:
        return 65.0 / 320 * channels;
    case SF_FORMAT_IMA_ADPCM:
    case SF_FORMAT_MS_ADPCM:
    case SF_FORMAT_G721_32:
        return 0.5 * channels;
    default:
        return gc_format_is_plain(format) ? (double)gc_pcm_bytes(gc_format_pcm(format)) * channels : 0;
    }
}

int64_t gc_format_max_bytes(int format) {
    const int container = format & SF_FORMAT_TYPEMASK;
    /* 64 KiB are left for headers and metadata. */
    return container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX || container == SF_FORMAT_AIFF ||
                   container == SF_FORMAT_SVX
               ? (INT64_C(1) << 32) - 65536
               : 0;
}

/* Returns libsndfile's name of a container or an encoding. */
static const char *name_of(int code) {
    SF_FORMAT_INFO info = {.format = code};
    sf_command(NULL, SFC_GET_FORMAT_INFO, &info, sizeof info);
    return info.name ? info.name : "unknown";
}

void gc_format_container_name(int format, char *name, size_t size) {
    const char *full_name = name_of(format & SF_FORMAT_TYPEMASK);
    snprintf(name, size, "%.*s", (int)strcspn(full_name, " "), full_name);
}

void gc_format_encoding_name(int format, char *name, size_t size) {
    snprintf(name, size, "%s", name_of(format & SF_FORMAT_SUBMASK));
}

void gc_format_name(int format, char *name, size_t size) {
    char container[48], encoding[48];
    gc_format_container_name(format, container, sizeof container);
    gc_format_encoding_name(format, encoding, sizeof encoding);
    snprintf(name, size, "%s, %s", container, encoding);
}

/* libsndfile's messages end in a full stop, and those of the system have a prefix; gpuconv's messages have neither. */
gpuconv_status gc_format_fail(gpuconv_error *error, gpuconv_status status, const char *path, const char *what,
                              const char *why) {
    static const char *const prefixes[] = {"System error : ", "Error : "};
    char text[256];
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strncmp(why, prefixes[i], strlen(prefixes[i])) == 0)
            why += strlen(prefixes[i]);
    snprintf(text, sizeof text, "%s", why);
    text[strcspn(text, "\n")] = '\0';
    size_t n = strlen(text);
    if (n > 0 && text[n - 1] == '.')
        text[n - 1] = '\0';
    return gc_fail(error, status, "%s: %s%s", path, what, text);
}
