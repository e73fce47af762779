/* Formats: extensions to containers, sample formats to the way samples travel. */
#include "format.h"

#include "libgpuconv/core/error.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

bool gc_format_plain(int format) {
    const int sample = format & SF_FORMAT_SUBMASK;
    return (format & SF_FORMAT_TYPEMASK) != SF_FORMAT_FLAC &&
           (sample == SF_FORMAT_PCM_16 || sample == SF_FORMAT_PCM_24 || sample == SF_FORMAT_PCM_32 ||
            sample == SF_FORMAT_FLOAT);
}

typedef struct named {
    const char *name;
    int code;
} named;

static const named containers[] = {
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

static const named encodings[] = {
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

static int find(const named *list, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(name, list[i].name) == 0)
            return list[i].code;
    return 0;
}

int gc_format_container_named(const char *name) {
    return find(containers, sizeof containers / sizeof *containers, name);
}

int gc_format_encoding_named(const char *name) {
    return find(encodings, sizeof encodings / sizeof *encodings, name);
}

int gc_format_container(const char *path) {
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    return dot ? gc_format_container_named(dot + 1) : 0;
}

bool gc_format_raw(const char *text, SF_INFO *info) {
    char *end;
    *info = (SF_INFO){0};
    long rate = strtol(text, &end, 10);
    if (end == text || *end != ',' || rate < 1 || rate > 10000000)
        return false;
    text = end + 1;
    long channels = strtol(text, &end, 10);
    if (end == text || *end != ',' || channels < 1 || channels > 1024)
        return false;
    int code = gc_format_encoding_named(end + 1);
    info->samplerate = (int)rate;
    info->channels = (int)channels;
    info->format = SF_FORMAT_RAW | code | SF_ENDIAN_LITTLE;
    return code && sf_format_check(info);
}

int gc_format_exactly(int container, int encoding, int channels, int rate) {
    SF_INFO info = {.format = (container & SF_FORMAT_TYPEMASK) | encoding, .channels = channels, .samplerate = rate};
    return sf_format_check(&info) ? info.format : 0;
}

int gc_format_for(int container, int like, int channels, int rate) {
    if (container & SF_FORMAT_SUBMASK) {
        SF_INFO fixed = {.format = container, .channels = channels, .samplerate = rate};
        return sf_format_check(&fixed) ? container : 0;
    }
    int sample = like & SF_FORMAT_SUBMASK;
    gc_pcm pcm = gc_format_pcm(like);
    int integer = pcm.container != GC_F32;
    /* From what keeps the samples as they are to what merely holds them. */
    int wishes[] = {sample,
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
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        SF_INFO info = {.format = container | wishes[i], .channels = channels, .samplerate = rate};
        if (wishes[i] && sf_format_check(&info))
            return info.format;
    }
    return 0;
}

void gc_format_name(int format, char *name, size_t size) {
    SF_FORMAT_INFO container = {.format = format & SF_FORMAT_TYPEMASK}, sample = {.format = format & SF_FORMAT_SUBMASK};
    sf_command(NULL, SFC_GET_FORMAT_INFO, &container, sizeof container);
    sf_command(NULL, SFC_GET_FORMAT_INFO, &sample, sizeof sample);
    snprintf(name, size, "%.*s, %s", container.name ? (int)strcspn(container.name, " ") : 7,
             container.name ? container.name : "unknown", sample.name ? sample.name : "unknown");
}

/* The library's own sentences end in a full stop and wrap those of the system; ours do not. */
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
