/*
 * Properties of libsndfile's formats, a test of which it can really write, and the lock for its one variable of errors.
 *
 * sf_format_check() accepts some formats that cannot be opened (MP3 in WAV) or that produce an unreadable file.
 * gc_format_works therefore writes a short file in memory and reads it back. The results are cached, because setting up
 * an encoder may take milliseconds.
 *
 * sf_open_virtual() sets the process-wide variable that sf_strerror(NULL) reads, on failure and on success. Threads
 * open files concurrently under the read lock; a thread that needs the reason takes the write lock.
 */
#include "format.h"

#include "file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <math.h>
#include <pthread.h>
#include <sndfile.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

/* A thread that waits for the write lock holds `gate`, which every thread passes before it reads: in a batch, files may
 * be opened without a pause, which would starve that thread. */
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t open_lock = PTHREAD_RWLOCK_INITIALIZER;

SNDFILE *gc_sndfile_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context) {
    pthread_mutex_lock(&gate);
    pthread_rwlock_rdlock(&open_lock);
    pthread_mutex_unlock(&gate);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    pthread_rwlock_unlock(&open_lock);
    return file;
}

SNDFILE *gc_sndfile_open_for_reason(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room) {
    pthread_mutex_lock(&gate);
    pthread_rwlock_wrlock(&open_lock);
    pthread_mutex_unlock(&gate);
    SNDFILE *file = sf_open_virtual(io, mode, info, context);
    if (!file)
        (void)snprintf(why, room, "%s", sf_strerror(NULL));
    pthread_rwlock_unlock(&open_lock);
    return file;
}

/* ---- Encodings and containers ------------------------------------------------------------------------------------ */

/* A container. Several names may stand for one. */
typedef struct named_container {
    const char *name;
    int code;     /* libsndfile's */
    bool streams; /* it states no lengths, may leave them out, or the sink of a pipe completes them */
} named_container;

static const named_container containers[] = {
    {"wav", SF_FORMAT_WAV, true},    {"wave", SF_FORMAT_WAV, true},    {"wavex", SF_FORMAT_WAVEX, true},
    {"w64", SF_FORMAT_W64, false},   {"rf64", SF_FORMAT_RF64, true},   {"flac", SF_FORMAT_FLAC, true},
    {"aif", SF_FORMAT_AIFF, false},  {"aiff", SF_FORMAT_AIFF, false},  {"aifc", SF_FORMAT_AIFF, false},
    {"ogg", SF_FORMAT_OGG, true},    {"oga", SF_FORMAT_OGG, true},     {"opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, true},
    {"caf", SF_FORMAT_CAF, false},   {"au", SF_FORMAT_AU, true},       {"snd", SF_FORMAT_AU, true},
    {"mp3", SF_FORMAT_MPEG, true},   {"raw", SF_FORMAT_RAW, true},     {"pcm", SF_FORMAT_RAW, true},
    {"voc", SF_FORMAT_VOC, false},   {"ircam", SF_FORMAT_IRCAM, true}, {"sf", SF_FORMAT_IRCAM, true},
    {"nist", SF_FORMAT_NIST, false}, {"sph", SF_FORMAT_NIST, false},   {"paf", SF_FORMAT_PAF, true},
    {"svx", SF_FORMAT_SVX, false},   {"iff", SF_FORMAT_SVX, false},    {"8svx", SF_FORMAT_SVX, false},
    {"mat4", SF_FORMAT_MAT4, false}, {"mat5", SF_FORMAT_MAT5, false},  {"mat", SF_FORMAT_MAT5, false},
    {"pvf", SF_FORMAT_PVF, true},    {"htk", SF_FORMAT_HTK, false},    {"sds", SF_FORMAT_SDS, false},
    {"avr", SF_FORMAT_AVR, false},   {"xi", SF_FORMAT_XI, false},      {"wve", SF_FORMAT_WVE, false},
    {"mpc", SF_FORMAT_MPC2K, false}, {"mpc2k", SF_FORMAT_MPC2K, false}};

/* The losses of an encoding. In BLOCKS every sample, or block of samples, is decoded by itself. */
typedef enum loss { LOSSY, BLOCKS, LOSSLESS } loss;

/* An encoding. Several names may stand for one. Encodings that are not listed are lossy and are read as floats. */
typedef struct named_encoding {
    const char *name;
    int code; /* libsndfile's */
    int bits; /* of the integers in which it is read; 0: floats */
    loss loss;
    double bytes; /* of a sample in a file, where the type of the samples does not tell; 0: not known */
} named_encoding;

static const named_encoding encodings[] = {
    {"s8", SF_FORMAT_PCM_S8, 8, LOSSLESS, 1},          {"u8", SF_FORMAT_PCM_U8, 8, LOSSLESS, 1},
    {"s16", SF_FORMAT_PCM_16, 16, LOSSLESS, 0},        {"s24", SF_FORMAT_PCM_24, 24, LOSSLESS, 0},
    {"s32", SF_FORMAT_PCM_32, 32, LOSSLESS, 0},        {"float", SF_FORMAT_FLOAT, 0, LOSSLESS, 0},
    {"f32", SF_FORMAT_FLOAT, 0, LOSSLESS, 0},          {"double", SF_FORMAT_DOUBLE, 0, LOSSLESS, 8},
    {"f64", SF_FORMAT_DOUBLE, 0, LOSSLESS, 8},         {"ulaw", SF_FORMAT_ULAW, 16, BLOCKS, 1},
    {"alaw", SF_FORMAT_ALAW, 16, BLOCKS, 1},           {"ima-adpcm", SF_FORMAT_IMA_ADPCM, 16, BLOCKS, 0.5},
    {"ms-adpcm", SF_FORMAT_MS_ADPCM, 16, BLOCKS, 0.5}, {"gsm610", SF_FORMAT_GSM610, 16, LOSSY, 65.0 / 320},
    {"vox", SF_FORMAT_VOX_ADPCM, 16, LOSSY, 0},        {"g721-32", SF_FORMAT_G721_32, 16, LOSSY, 0.5},
    {"g723-24", SF_FORMAT_G723_24, 16, LOSSY, 0},      {"g723-40", SF_FORMAT_G723_40, 16, LOSSY, 0},
    {"nms16", SF_FORMAT_NMS_ADPCM_16, 16, LOSSY, 0},   {"nms24", SF_FORMAT_NMS_ADPCM_24, 16, LOSSY, 0},
    {"nms32", SF_FORMAT_NMS_ADPCM_32, 16, LOSSY, 0},   {"dwvw12", SF_FORMAT_DWVW_12, 16, LOSSY, 0},
    {"dwvw16", SF_FORMAT_DWVW_16, 16, LOSSY, 0},       {"dwvw24", SF_FORMAT_DWVW_24, 24, LOSSY, 0},
    {"dpcm8", SF_FORMAT_DPCM_8, 16, LOSSY, 0},         {"dpcm16", SF_FORMAT_DPCM_16, 16, LOSSY, 0},
    {"vorbis", SF_FORMAT_VORBIS, 0, LOSSY, 0},         {"opus", SF_FORMAT_OPUS, 0, LOSSY, 0},
    {"alac16", SF_FORMAT_ALAC_16, 16, LOSSLESS, 0},    {"alac20", SF_FORMAT_ALAC_20, 20, LOSSLESS, 0},
    {"alac24", SF_FORMAT_ALAC_24, 24, LOSSLESS, 0},    {"alac32", SF_FORMAT_ALAC_32, 32, LOSSLESS, 0},
    {"mp3", SF_FORMAT_MPEG_LAYER_III, 0, LOSSY, 0}};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static named_encoding encoding_of(int format) {
    for (size_t i = 0; i < COUNT(encodings); i++)
        if (encodings[i].code == (format & SF_FORMAT_SUBMASK))
            return encodings[i];
    return (named_encoding){.name = "another encoding"};
}

gc_pcm gc_format_pcm(int format) {
    const int bits = encoding_of(format).bits, container = format & SF_FORMAT_TYPEMASK;
    const bool little =
        (format & SF_FORMAT_ENDMASK) != SF_ENDIAN_BIG && (container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX ||
                                                          container == SF_FORMAT_W64 || container == SF_FORMAT_RF64);
    if (bits == 0)
        return (gc_pcm){GC_F32, 32};
    return (gc_pcm){bits <= 16                                                   ? GC_S16
                    : little && (format & SF_FORMAT_SUBMASK) == SF_FORMAT_PCM_24 ? GC_S24
                                                                                 : GC_S32,
                    bits};
}

bool gc_format_is_plain(int format) {
    const int sample = format & SF_FORMAT_SUBMASK;
    return (format & SF_FORMAT_TYPEMASK) != SF_FORMAT_FLAC &&
           (sample == SF_FORMAT_PCM_16 || sample == SF_FORMAT_PCM_24 || sample == SF_FORMAT_PCM_32 ||
            sample == SF_FORMAT_FLOAT);
}

bool gc_format_streams(int format) {
    for (size_t i = 0; i < COUNT(containers); i++)
        if ((containers[i].code & SF_FORMAT_TYPEMASK) == (format & SF_FORMAT_TYPEMASK))
            return containers[i].streams;
    return false;
}

int gc_container_from_name(const char *name) {
    for (size_t i = 0; i < COUNT(containers); i++)
        if (gc_same_word(name, containers[i].name))
            return containers[i].code;
    return 0;
}

int gc_encoding_from_name(const char *name) {
    for (size_t i = 0; i < COUNT(encodings); i++)
        if (gc_same_word(name, encodings[i].name))
            return encodings[i].code;
    return 0;
}

const char *gc_encoding_name_of(int code) {
    return encoding_of(code).name;
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
    return encoding_of(format).loss != LOSSLESS;
}

bool gc_format_seeks(int format) {
    return encoding_of(format).loss != LOSSY;
}

bool gc_format_exceeds_float(int format) {
    return encoding_of(format).bits == 32 || (format & SF_FORMAT_SUBMASK) == SF_FORMAT_DOUBLE;
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
    const double bytes = encoding_of(format).bytes;
    return channels * (bytes == 0 && gc_format_is_plain(format) ? (double)gc_pcm_bytes(gc_format_pcm(format)) : bytes);
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

/* ---- The test ---------------------------------------------------------------------------------------------------- */

enum {
    FRAMES = 256,         /* frames that are written */
    MAX_SAMPLES = 16384,  /* limit of frames x channels */
    FILE_BYTES = 1 << 20, /* room for the file in memory */
    CACHE_SIZE = 128      /* results that are cached */
};

/* ---- A file in memory -------------------------------------------------------------------------------------------- */

typedef struct memory {
    int64_t at, size;
    unsigned char bytes[FILE_BYTES];
} memory;

static sf_count_t memory_length(void *file) {
    return ((memory *)file)->size;
}

static sf_count_t memory_tell(void *file) {
    return ((memory *)file)->at;
}

static sf_count_t memory_seek(sf_count_t offset, int whence, void *file) {
    memory *m = file;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? m->at : m->size, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return m->at = to;
}

static sf_count_t memory_read(void *bytes, sf_count_t count, void *file) {
    memory *m = file;
    const int64_t got = gc_max(0, gc_min(count, m->size - m->at));
    if (got > 0)
        memcpy(bytes, m->bytes + m->at, (size_t)got);
    m->at += got;
    return got;
}

static sf_count_t memory_write(const void *bytes, sf_count_t count, void *file) {
    memory *m = file;
    int64_t end;
    if (count <= 0 || __builtin_add_overflow(m->at, count, &end) || end > FILE_BYTES)
        return 0;
    if (m->at > m->size) /* the gap after a seek past the end reads as zeros */
        memset(m->bytes + m->size, 0, (size_t)(m->at - m->size));
    memcpy(m->bytes + m->at, bytes, (size_t)count);
    m->at = end;
    m->size = gc_max(m->size, end);
    return count;
}

static SF_VIRTUAL_IO memory_io = {memory_length, memory_seek, memory_read, memory_write, memory_tell};

/* ---- The test ---------------------------------------------------------------------------------------------------- */

/* The functions of a caller of gc_format_try. */
typedef struct visitor {
    void (*fill)(void *context, SNDFILE *file), (*look)(void *context, SNDFILE *file);
    void *context;
} visitor;

/* Writes silence into the file in memory. Returns false if the format cannot be written. */
static bool write_test_file(memory *m, SF_INFO info, const visitor *v) {
    const int64_t frames = gc_min(FRAMES, gc_max(16, MAX_SAMPLES / info.channels));
    static const float silence[MAX_SAMPLES];
    SNDFILE *file = frames * info.channels <= MAX_SAMPLES ? gc_sndfile_open(&memory_io, SFM_WRITE, &info, m) : NULL;
    if (file && v)
        v->fill(v->context, file);
    bool ok = file && sf_writef_float(file, silence, frames) == frames && !sf_error(file);
    if (file && sf_close(file) != 0)
        ok = false;
    return ok;
}

/* Reads the file in memory. Returns true if its header states the expected format and one frame can be read. */
static bool read_test_file(memory *m, const SF_INFO *expected, const visitor *v) {
    const bool raw = (expected->format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RAW;
    SF_INFO info = raw ? *expected : (SF_INFO){0};
    m->at = 0;
    SNDFILE *file = gc_sndfile_open(&memory_io, SFM_READ, &info, m);
    if (!file)
        return false;
    float frame[GC_MAX_CHANNELS];
    const int same = SF_FORMAT_TYPEMASK | SF_FORMAT_SUBMASK;
    bool ok = info.channels <= GC_MAX_CHANNELS && (info.format & same) == (expected->format & same) &&
              info.channels == expected->channels && fabs((double)info.samplerate / expected->samplerate - 1) < 0.01 &&
              sf_readf_float(file, frame, 1) == 1;
    if (ok && v)
        v->look(v->context, file);
    sf_close(file);
    return ok;
}

/* ---- The cache --------------------------------------------------------------------------------------------------- */

/* Static memory, so that the test cannot fail for lack of memory. The lock also serialises the tests. */
static struct {
    pthread_mutex_t lock;
    struct {
        int format, channels, rate;
        bool works;
    } result[CACHE_SIZE];
    int count, next;
    memory file;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Finds a cached result. */
static bool look_up(const SF_INFO *info, bool *works) {
    for (int i = 0; i < cache.count; i++)
        if (cache.result[i].format == info->format && cache.result[i].channels == info->channels &&
            cache.result[i].rate == info->samplerate) {
            *works = cache.result[i].works;
            return true;
        }
    return false;
}

static bool try_format(const SF_INFO *info, const visitor *v) {
    cache.file.at = cache.file.size = 0;
    return write_test_file(&cache.file, *info, v) && read_test_file(&cache.file, info, v);
}

bool gc_format_try(const SF_INFO *format, void (*fill)(void *context, SNDFILE *file),
                   void (*look)(void *context, SNDFILE *file), void *context) {
    const visitor v = {fill, look, context};
    const SF_INFO info = {.format = format->format, .channels = format->channels, .samplerate = format->samplerate};
    pthread_mutex_lock(&cache.lock);
    const bool works = try_format(&info, &v);
    pthread_mutex_unlock(&cache.lock);
    return works;
}

/* Tests a format and caches the result. */
static bool test_format(const SF_INFO *info) {
    const bool works = try_format(info, NULL);
    const int i = cache.next;
    cache.result[i].format = info->format;
    cache.result[i].channels = info->channels;
    cache.result[i].rate = info->samplerate;
    cache.result[i].works = works;
    cache.next = (i + 1) % CACHE_SIZE;
    cache.count = (int)gc_max(cache.count, i + 1);
    return works;
}

bool gc_format_works(int format, int channels, int rate) {
    const SF_INFO info = {.format = format, .channels = channels, .samplerate = rate};
    bool works = false;
    if (channels > GC_MAX_CHANNELS || !sf_format_check(&info)) /* a negative answer is reliable */
        return false;
    pthread_mutex_lock(&cache.lock);
    if (!look_up(&info, &works))
        works = test_format(&info);
    pthread_mutex_unlock(&cache.lock);
    return works;
}
