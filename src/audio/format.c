/* Formats: extensions to containers, sample formats to the way samples travel. */
#include "format.h"

#include <sndfile.h>
#include <stdio.h>
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
        return (gc_pcm){GC_S16, 16};
    case SF_FORMAT_PCM_24:
        return little ? (gc_pcm){GC_S24, 24} : (gc_pcm){GC_S32, 24};
    case SF_FORMAT_ALAC_20:
        return (gc_pcm){GC_S32, 20};
    case SF_FORMAT_ALAC_24:
        return (gc_pcm){GC_S32, 24};
    case SF_FORMAT_PCM_32:
    case SF_FORMAT_ALAC_32:
        return (gc_pcm){GC_S32, 32};
    default:
        return (gc_pcm){GC_F32, 32};
    }
}

int gc_format_container(const char *path) {
    static const struct {
        const char *extension;
        int container;
    } known[] = {
        {"wav", SF_FORMAT_WAV},
        {"wave", SF_FORMAT_WAV},
        {"w64", SF_FORMAT_W64},
        {"rf64", SF_FORMAT_RF64},
        {"flac", SF_FORMAT_FLAC},
        {"aif", SF_FORMAT_AIFF},
        {"aiff", SF_FORMAT_AIFF},
        {"aifc", SF_FORMAT_AIFF},
        {"ogg", SF_FORMAT_OGG},
        {"oga", SF_FORMAT_OGG},
        {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS},
        {"caf", SF_FORMAT_CAF},
        {"au", SF_FORMAT_AU},
        {"snd", SF_FORMAT_AU},
        {"mp3", SF_FORMAT_MPEG},
    };
    const char *name = strrchr(path, '/');
    const char *dot = strrchr(name ? name : path, '.');
    for (size_t i = 0; dot && i < sizeof known / sizeof *known; i++)
        if (strcasecmp(dot + 1, known[i].extension) == 0)
            return known[i].container;
    return 0;
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
