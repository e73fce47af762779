/* Chunks are a name of four bytes, a size of four and so many bytes, padded to an even number. A size is used only for
 * comparisons until the bytes that it promises were read. */
#include "riff.h"

#include <string.h>

enum { PCM = 1, FLOAT = 3, A_LAW = 6, MU_LAW = 7, EXTENSIBLE = 0xfffe };

/* Sizes that programs write when they do not know the length: all ones, SoX's, and none in a file without one. */
static const uint32_t unknown_32 = UINT32_MAX, unknown_sox = 0x7ffff000;

/* More bytes than any stream has. */
static const uint64_t impossible = UINT64_C(1) << 56;

static uint32_t little_32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t little_64(const unsigned char *at) {
    return little_32(at) | (uint64_t)little_32(at + 4) << 32;
}

static void put_32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static void put_64(unsigned char *at, uint64_t value) {
    put_32(at, (uint32_t)value);
    put_32(at + 4, (uint32_t)(value >> 32));
}

/* Whether each frame of this format has the same number of bytes. */
static bool is_steady(const unsigned char *format, uint32_t size) {
    unsigned tag = size >= 16 ? format[0] | (unsigned)format[1] << 8 : 0;
    if (tag == EXTENSIBLE)
        tag = size >= 40 ? format[24] | (unsigned)format[25] << 8 : 0;
    return tag == PCM || tag == FLOAT || tag == A_LAW || tag == MU_LAW;
}

/* The bytes of samples that the chunk's own size, or the one of RF64, promises. */
static int64_t promised(const unsigned char *head, const gc_riff *r, uint32_t size) {
    const bool elsewhere = r->wide && size == unknown_32;
    const uint64_t whole = elsewhere ? little_64(head + r->ds64) : little_32(head + 4);
    const uint64_t bytes = elsewhere ? little_64(head + r->ds64 + 8) : size;
    if (bytes >= impossible || (!elsewhere && (bytes == unknown_32 || bytes == unknown_sox)))
        return -1;
    const bool unwritten = whole <= 8 || whole == unknown_32 || whole >= impossible;
    return bytes == 0 && unwritten ? -1 : (int64_t)bytes;
}

gc_riff_found gc_riff_look(const unsigned char *head, int64_t count, gc_riff *r) {
    bool format = false;
    *r = (gc_riff){.need = 12};
    if (count < 12)
        return GC_RIFF_MORE;
    r->wide = memcmp(head, "RF64", 4) == 0;
    if ((!r->wide && memcmp(head, "RIFF", 4) != 0) || memcmp(head + 8, "WAVE", 4) != 0)
        return GC_RIFF_OTHER;
    for (int64_t at = 12;;) {
        r->need = at + 8;
        if (count < r->need)
            return GC_RIFF_MORE;
        const unsigned char *body = head + at + 8;
        const uint32_t size = little_32(head + at + 4);
        if (memcmp(head + at, "data", 4) == 0) {
            if (!format || (r->wide && !r->ds64))
                return GC_RIFF_OTHER;
            r->begin = at + 8;
            r->bytes = promised(head, r, size);
            return GC_RIFF_SAMPLES;
        }
        r->need =
            at + 8 + (int64_t)size + (size & 1); /* the padding is a byte that must come, as the next chunk must */
        if (count < r->need)
            return GC_RIFF_MORE;
        if (memcmp(head + at, "fmt ", 4) == 0) {
            if (format || !is_steady(body, size))
                return GC_RIFF_OTHER;
            format = true;
        } else if (r->wide && memcmp(head + at, "ds64", 4) == 0) {
            if (r->ds64 || size < 28)
                return GC_RIFF_OTHER;
            r->ds64 = at + 8;
        }
        at = r->need;
    }
}

void gc_riff_open_end(unsigned char *head, const gc_riff *r, int64_t all) {
    if (!r->wide) {
        put_32(head + 4, 8); /* a file that was not closed properly, as libsndfile has it */
        put_32(head + r->begin - 4, 0);
    } else {
        put_64(head + r->ds64, (uint64_t)(all - 8));
        put_64(head + r->ds64 + 8, (uint64_t)(all - r->begin));
        put_32(head + r->begin - 4, UINT32_MAX);
    }
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

enum { CHUNKS_MOST = 4096 }; /* looked at; the library stops sooner at what is no chunk */

typedef struct walk {
    SF_VIRTUAL_IO *io;
    void *file;
    int64_t length;
    bool big; /* RIFX */
} walk;

/* Reads a chunk's name and size. */
static bool read_chunk(const walk *w, int64_t at, unsigned char *name, uint32_t *size) {
    unsigned char bytes[8];
    if (at > w->length - 8 || w->io->seek(at, SEEK_SET, w->file) != at || w->io->read(bytes, 8, w->file) != 8)
        return false;
    memcpy(name, bytes, 4);
    *size = w->big ? (uint32_t)bytes[4] << 24 | (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7]
                   : little_32(bytes + 4);
    return true;
}

static bool list_ends(const walk *w, int64_t at, int64_t end, uint32_t *size) {
    unsigned char name[4];
    for (int i = 0; i < CHUNKS_MOST && at < end && read_chunk(w, at, name, size); i++) {
        if (memcmp(name, "INFO", 4) == 0 || memcmp(name, "adtl", 4) == 0) { /* these have no size */
            at += 4;
            continue;
        }
        if (*size > INT32_MAX)
            return false;
        at += 8 + (int64_t)*size + (*size & 1);
    }
    return true;
}

static bool chunks_end(const walk *w, uint32_t *size) {
    unsigned char name[4], wide[16];
    int64_t data = -1;
    for (int64_t at = 12, i = 0; i < CHUNKS_MOST && read_chunk(w, at, name, size); i++) {
        int64_t bytes = *size;
        if (memcmp(name, "LIST", 4) == 0 && !list_ends(w, at + 8, at + 8 + bytes, size))
            return false;
        if (memcmp(name, "ds64", 4) == 0 && w->io->read(wide, 16, w->file) == 16 && little_64(wide + 8) < impossible)
            data = (int64_t)little_64(wide + 8);
        if (memcmp(name, "data", 4) == 0 && bytes == unknown_32 && data >= 0)
            bytes = data;
        at += 8 + bytes + (bytes & 1);
    }
    return true;
}

bool gc_riff_ends(SF_VIRTUAL_IO *io, void *file, uint32_t *size) {
    unsigned char head[12];
    walk w = {.io = io, .file = file, .length = io->get_filelen(file)};
    bool ends = true;
    if (io->seek(0, SEEK_SET, file) == 0 && io->read(head, 12, file) == 12 && memcmp(head + 8, "WAVE", 4) == 0) {
        w.big = memcmp(head, "RIFX", 4) == 0;
        ends = chunks_end(&w, size);
    }
    (void)io->seek(0, SEEK_SET, file);
    return ends;
}
