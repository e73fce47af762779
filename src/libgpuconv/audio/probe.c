/*
 * Tests which formats libsndfile can really write. sf_format_check() accepts some that cannot be opened (MP3 in WAV) or
 * that produce an unreadable file. gc_format_works therefore writes a short file in memory and reads it back. The
 * results are cached, because setting up an encoder may take milliseconds.
 */
#include "format.h"
#include "sndfile_open.h"

#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

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

/* What a caller of gc_format_try does with the file. */
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
