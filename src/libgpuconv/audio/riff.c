/* A chunk is a name of four bytes, a size of four bytes and that many bytes of data, padded to an even number. A size
 * is only compared with other numbers until the bytes that it states were read. */
#include "riff.h"

#include <string.h>

enum { PCM = 1, FLOAT = 3, A_LAW = 6, MU_LAW = 7, EXTENSIBLE = 0xfffe };

/* Sizes that programs write if the length is unknown: all ones, and SoX's value. Zero also means unknown if the RIFF
 * chunk has no valid size. */
static const uint32_t unknown_32 = UINT32_MAX, unknown_sox = 0x7ffff000;

/* No stream has this many bytes: a larger size is invalid. */
static const uint64_t invalid_bytes = UINT64_C(1) << 56;

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

/* Returns true if all frames of this format have the same number of bytes. */
static bool has_fixed_frame_size(const unsigned char *format, uint32_t size) {
    unsigned tag = size >= 16 ? format[0] | (unsigned)format[1] << 8 : 0;
    if (tag == EXTENSIBLE)
        tag = size >= 40 ? format[24] | (unsigned)format[25] << 8 : 0;
    return tag == PCM || tag == FLOAT || tag == A_LAW || tag == MU_LAW;
}

/* Returns the bytes of samples that the data chunk, or the ds64 chunk of an RF64, states; -1 if they are unknown. */
static int64_t stated_bytes(const unsigned char *head, const gc_riff *r, uint32_t size) {
    const bool in_ds64 = r->is_rf64 && size == unknown_32;
    const uint64_t riff_size = in_ds64 ? little_64(head + r->ds64) : little_32(head + 4);
    const uint64_t bytes = in_ds64 ? little_64(head + r->ds64 + 8) : size;
    if (bytes >= invalid_bytes || (!in_ds64 && (bytes == unknown_32 || bytes == unknown_sox)))
        return -1;
    const bool no_riff_size = riff_size <= 8 || riff_size == unknown_32 || riff_size >= invalid_bytes;
    return bytes == 0 && no_riff_size ? -1 : (int64_t)bytes;
}

gc_riff_status gc_riff_parse(const unsigned char *head, int64_t count, gc_riff *r) {
    bool format = false;
    *r = (gc_riff){.need = 12};
    if (count < 12)
        return GC_RIFF_MORE;
    r->is_rf64 = memcmp(head, "RF64", 4) == 0;
    if ((!r->is_rf64 && memcmp(head, "RIFF", 4) != 0) || memcmp(head + 8, "WAVE", 4) != 0)
        return GC_RIFF_OTHER;
    for (int64_t at = 12;;) {
        r->need = at + 8;
        if (count < r->need)
            return GC_RIFF_MORE;
        const unsigned char *body = head + at + 8;
        const uint32_t size = little_32(head + at + 4);
        if (memcmp(head + at, "data", 4) == 0) {
            if (!format || (r->is_rf64 && !r->ds64))
                return GC_RIFF_OTHER;
            r->begin = at + 8;
            r->bytes = stated_bytes(head, r, size);
            return GC_RIFF_SAMPLES;
        }
        r->need = at + 8 + (int64_t)size + (size & 1); /* padding included: the data chunk is still to come */
        if (count < r->need)
            return GC_RIFF_MORE;
        if (memcmp(head + at, "fmt ", 4) == 0) {
            if (format || !has_fixed_frame_size(body, size))
                return GC_RIFF_OTHER;
            format = true;
        } else if (r->is_rf64 && memcmp(head + at, "ds64", 4) == 0) {
            if (r->ds64 || size < 28)
                return GC_RIFF_OTHER;
            r->ds64 = at + 8;
        }
        at = r->need;
    }
}

void gc_riff_set_open_end(unsigned char *head, const gc_riff *r, int64_t file_bytes) {
    if (!r->is_rf64) {
        put_32(head + 4, 8); /* libsndfile takes this for a file that was not closed properly */
        put_32(head + r->begin - 4, 0);
    } else {
        put_64(head + r->ds64, (uint64_t)(file_bytes - 8));
        put_64(head + r->ds64 + 8, (uint64_t)(file_bytes - r->begin));
        put_32(head + r->begin - 4, UINT32_MAX);
    }
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

enum {
    MAX_CHUNKS = 4096,    /* chunks that are checked; libsndfile stops earlier */
    MAX_HIDDEN = 1 << 16, /* chunks that are checked behind a broken chunk, where LIST chunks may overlap */
    BEXT_MIN_BYTES = 602, /* sizes of a broadcast extension and of a cart chunk that libsndfile 1.2 accepts */
    BEXT_MAX_BYTES = 10240,
    CART_MIN_BYTES = 2048,
    CART_MAX_BYTES = 0xffff
};

typedef struct riff_file {
    SF_VIRTUAL_IO *io;
    void *file;
    int64_t length;
    uint32_t riff_size; /* that the header states */
    bool big_endian;    /* RIFX */
} riff_file;

static uint32_t file_32(const riff_file *f, const unsigned char *at) {
    return f->big_endian ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3] : little_32(at);
}

/* Reads the name and the size of the chunk at `at`. Returns false at the end of the file. */
static bool read_chunk(const riff_file *f, int64_t at, unsigned char *name, uint32_t *size) {
    unsigned char bytes[8];
    if (at > f->length - 8 || f->io->seek(at, SEEK_SET, f->file) != at || f->io->read(bytes, 8, f->file) != 8)
        return false;
    memcpy(name, bytes, 4);
    *size = file_32(f, bytes + 4);
    return true;
}

/* Checks at most *left chunks inside a LIST chunk and subtracts them from *left. Returns false if one states 2^31 bytes
 * or more, with that size in *size. */
static bool list_is_valid(const riff_file *f, int64_t at, int64_t end, int *left, uint32_t *size) {
    unsigned char name[4];
    for (; *left > 0 && at < end && read_chunk(f, at, name, size); --*left) {
        if (memcmp(name, "INFO", 4) == 0 || memcmp(name, "adtl", 4) == 0) { /* list types, which have no size */
            at += 4;
            continue;
        }
        if (*size > INT32_MAX)
            return false;
        at += 8 + (int64_t)*size + (*size & 1);
    }
    return true;
}

/* Returns true if libsndfile continues behind a chunk of this name and size. It ignores the size of others and searches
 * for the next chunk from there. */
static bool is_skipped(const unsigned char *name, int64_t size, int64_t left) {
    for (int i = 0; i < 4; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    if (memcmp(name, "bext", 4) == 0)
        return size >= BEXT_MIN_BYTES && size <= BEXT_MAX_BYTES && size <= left;
    if (memcmp(name, "cart", 4) == 0)
        return size >= CART_MIN_BYTES && size <= CART_MAX_BYTES && size <= left;
    return size <= left || memcmp(name, "data", 4) == 0;
}

/* Checks everything from `at` on that could be taken for a LIST chunk, at any position. Returns false with *size 0 if
 * there are too many to check. */
static bool hidden_lists_are_valid(const riff_file *f, int64_t at, uint32_t *size) {
    unsigned char block[4096];
    int left = MAX_HIDDEN;
    while (at < f->length) {
        if (f->io->seek(at, SEEK_SET, f->file) != at)
            break;
        const int64_t got = f->io->read(block, sizeof block, f->file);
        if (got < 4)
            break;
        for (int64_t i = 0; i + 4 <= got; i++)
            if (memcmp(block + i, "LIST", 4) == 0 && !list_is_valid(f, at + i + 8, f->length, &left, size))
                return false;
        if (left == 0) {
            *size = 0;
            return false;
        }
        at += got - 3; /* a name may lie across two blocks */
    }
    return true;
}

/* Checks all LIST chunks of the file. */
static bool chunk_lists_are_valid(const riff_file *f, uint32_t *size) {
    unsigned char name[4], ds64[16];
    int64_t data_bytes = -1;
    for (int64_t at = 12, i = 0; i < MAX_CHUNKS && read_chunk(f, at, name, size); i++) {
        int64_t bytes = *size;
        int left = MAX_CHUNKS;
        if (memcmp(name, "LIST", 4) == 0 && !list_is_valid(f, at + 8, at + 8 + bytes, &left, size))
            return false;
        if (memcmp(name, "ds64", 4) == 0 && f->io->read(ds64, 16, f->file) == 16 && little_64(ds64 + 8) < invalid_bytes)
            data_bytes = (int64_t)little_64(ds64 + 8);
        if (memcmp(name, "data", 4) == 0 && bytes == unknown_32 && data_bytes >= 0)
            bytes = data_bytes;
        if (memcmp(name, "data", 4) == 0 && bytes == 0 && f->riff_size == 8)
            return true; /* not closed properly: libsndfile reads samples up to the end */
        if (!is_skipped(name, bytes, f->length - at - 8))
            return hidden_lists_are_valid(f, at, size);
        at += 8 + bytes + (bytes & 1);
    }
    return true;
}

bool gc_riff_lists_are_valid(SF_VIRTUAL_IO *io, void *file, int64_t length, uint32_t *size) {
    unsigned char head[12];
    riff_file f = {.io = io, .file = file, .length = length};
    bool valid = true;
    if (io->seek(0, SEEK_SET, file) == 0 && io->read(head, 12, file) == 12 && memcmp(head + 8, "WAVE", 4) == 0) {
        f.big_endian = memcmp(head, "RIFX", 4) == 0;
        f.riff_size = file_32(&f, head + 4);
        valid = chunk_lists_are_valid(&f, size);
    }
    (void)io->seek(0, SEEK_SET, file);
    return valid;
}
