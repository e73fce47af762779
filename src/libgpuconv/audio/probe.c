/*
 * Which formats the file library really writes. sf_format_check() says yes to some that cannot be opened (MP3 in WAV),
 * or that give a file which nothing reads. So a format is tried: a short file in memory is written and read again. The
 * answers are kept, since an encoder may take milliseconds to set up.
 */
#include "format.h"
#include "library.h"

#include "libgpuconv/core/limits.h"
#include "libgpuconv/core/memory.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Frames that are written, of one channel and at most of all together; bytes of the file; answers that are kept. */
enum { FRAMES = 256, CHANNEL_FRAMES = 16384, ROOM = 1 << 20, KEPT = 128 };

/* ---- A file in memory -------------------------------------------------------------------------------------------- */

typedef struct memory {
    int64_t at, size;
    unsigned char bytes[ROOM];
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
    if (count <= 0 || __builtin_add_overflow(m->at, count, &end) || end > ROOM)
        return 0;
    if (m->at > m->size) /* a hole reads as zeros */
        memset(m->bytes + m->size, 0, (size_t)(m->at - m->size));
    memcpy(m->bytes + m->at, bytes, (size_t)count);
    m->at = end;
    m->size = gc_max(m->size, end);
    return count;
}

static SF_VIRTUAL_IO memory_io = {memory_length, memory_seek, memory_read, memory_write, memory_tell};

/* ---- Trying ------------------------------------------------------------------------------------------------------ */

static bool writes(memory *m, SF_INFO info) {
    const int64_t frames = gc_min(FRAMES, gc_max(16, CHANNEL_FRAMES / info.channels));
    static const float silence[CHANNEL_FRAMES];
    SNDFILE *file = frames * info.channels <= CHANNEL_FRAMES ? gc_library_open(&memory_io, SFM_WRITE, &info, m) : NULL;
    bool good = file && sf_writef_float(file, silence, frames) == frames && !sf_error(file);
    if (file && sf_close(file) != 0)
        good = false;
    return good;
}

/* Whether the file in memory is of the wanted format, as far as a header can tell. */
static bool reads(memory *m, const SF_INFO *want) {
    const bool raw = (want->format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RAW;
    SF_INFO info = raw ? *want : (SF_INFO){0};
    m->at = 0;
    SNDFILE *file = gc_library_open(&memory_io, SFM_READ, &info, m);
    if (!file)
        return false;
    float frame[GC_CHANNELS_MOST];
    const int same = SF_FORMAT_TYPEMASK | SF_FORMAT_SUBMASK;
    bool good = info.channels <= GC_CHANNELS_MOST && (info.format & same) == (want->format & same) &&
                info.channels == want->channels && fabs((double)info.samplerate / want->samplerate - 1) < 0.01 &&
                sf_readf_float(file, frame, 1) == 1;
    sf_close(file);
    return good;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

/* One thread at a time tries, so that all can use the same memory: nothing here can run out of it. */
static struct {
    pthread_mutex_t lock;
    struct {
        int format, channels, rate;
        bool works;
    } answer[KEPT];
    int count, next;
    memory file;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool look_up(const SF_INFO *info, bool *works) {
    for (int i = 0; i < kept.count; i++)
        if (kept.answer[i].format == info->format && kept.answer[i].channels == info->channels &&
            kept.answer[i].rate == info->samplerate) {
            *works = kept.answer[i].works;
            return true;
        }
    return false;
}

static bool try(const SF_INFO *info) {
    kept.file.at = kept.file.size = 0;
    const bool works = writes(&kept.file, *info) && reads(&kept.file, info);
    const int i = kept.next;
    kept.answer[i].format = info->format;
    kept.answer[i].channels = info->channels;
    kept.answer[i].rate = info->samplerate;
    kept.answer[i].works = works;
    kept.next = (i + 1) % KEPT;
    kept.count = (int)gc_max(kept.count, i + 1);
    return works;
}

bool gc_format_works(int format, int channels, int rate) {
    const SF_INFO info = {.format = format, .channels = channels, .samplerate = rate};
    bool works = false;
    if (channels > GC_CHANNELS_MOST || !sf_format_check(&info)) /* its no can be believed */
        return false;
    pthread_mutex_lock(&kept.lock);
    if (!look_up(&info, &works))
        works = try(&info);
    pthread_mutex_unlock(&kept.lock);
    return works;
}
