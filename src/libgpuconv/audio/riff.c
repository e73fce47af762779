/*
 * A chunk is a name of four bytes, a size of four bytes and that many bytes of data, padded to an even number. The
 * header for libsndfile contains, in this order: RIFF or RF64, the sizes of an RF64, `fmt `, `fact`, the metadata that
 * gc_metadata_copy copies, from in front of the samples and from behind them, and the head of the data chunk.
 */
#include "riff.h"

#include "extent.h"

#include "libgpuconv/core/memory.h"

#include <stdlib.h>
#include <string.h>

enum { PCM = 1, FLOAT = 3, A_LAW = 6, MU_LAW = 7, EXTENSIBLE = 0xfffe };

enum {
    MAX_CHUNKS = 4096,         /* chunks that are read */
    MAX_HEADER_BYTES = 65536,  /* of the header for libsndfile, which keeps at most 100 KiB in memory */
    MAX_FORMAT_BYTES = 1024,   /* that are copied of a `fmt ` chunk */
    MAX_TEXT_BYTES = 2040,     /* of a text in a LIST chunk: libsndfile ignores the texts behind a longer one */
    MAX_SEARCH_BYTES = 1 << 20 /* that are searched behind damaged chunks */
};

static const uint32_t unknown_32 = UINT32_MAX;

/* No stream has this many bytes: a larger size is invalid. */
static const uint64_t invalid_bytes = UINT64_C(1) << 56;

typedef struct chunk {
    int64_t at; /* offset of the name */
    unsigned char name[4];
    uint32_t size; /* as stated */
} chunk;

typedef struct parser {
    const gc_riff_input *in;
    bool big_endian; /* RIFX */
    bool is_64;      /* RF64 or BW64 */
    bool has_format, has_fixed_frames;
    bool no_memory;
    uint32_t riff_size;             /* as stated */
    uint32_t block;                 /* bytes of a frame, or of a block of coded frames */
    uint32_t fact;                  /* frames that the `fact` chunk states; 0: none */
    uint64_t riff_size_64, data_64; /* of the ds64 chunk; invalid_bytes: no such chunk */
    int64_t searched;               /* bytes behind damaged chunks */
    unsigned char *header;
    int64_t count, room; /* bytes of `header` */
} parser;

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static uint32_t get(const parser *p, const unsigned char *at, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint32_t)at[i] << 8 * (p->big_endian ? bytes - 1 - i : i);
    return value;
}

static void put_32(const parser *p, unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> 8 * (p->big_endian ? 3 - i : i));
}

static void put_16(const parser *p, unsigned char *at, uint32_t value) {
    at[p->big_endian] = (unsigned char)value;
    at[!p->big_endian] = (unsigned char)(value >> 8);
}

static uint64_t little_64(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static void put_64(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> 8 * i);
}

static bool is_named(const unsigned char *bytes, const char *name) {
    return memcmp(bytes, name, 4) == 0;
}

static void put_name(unsigned char *at, const char *name) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)name[i];
}

/* ---- Writing the header ------------------------------------------------------------------------------------------ */

/* Appends `bytes` zeros. Returns their address; NULL without memory. */
static unsigned char *append(parser *p, int64_t bytes) {
    if (p->count + bytes > p->room) {
        const int64_t room = gc_max(p->count + bytes, gc_max(1024, 2 * p->room));
        unsigned char *larger = realloc(p->header, (size_t)room);
        if (!larger) {
            p->no_memory = true;
            return NULL;
        }
        p->header = larger;
        p->room = room;
    }
    unsigned char *at = memset(p->header + p->count, 0, (size_t)bytes);
    p->count += bytes;
    return at;
}

/* Appends a chunk with the first `size` bytes of `from` behind its name and size, padded to an even size, which is
 * stated: libsndfile does not skip the padding in RF64. Returns the address of those bytes in the header; NULL, with
 * nothing appended, if they cannot be read, if the header would become too long, or without memory. */
static unsigned char *copy_chunk(parser *p, const chunk *from, int64_t size) {
    const int64_t even = size + (size & 1), begin = p->count;
    unsigned char *to = begin + 8 + even <= MAX_HEADER_BYTES ? append(p, 8 + even) : NULL;
    if (!to)
        return NULL;
    memcpy(to, from->name, 4);
    put_32(p, to + 4, (uint32_t)even);
    if (p->in->read(p->in->file, from->at + 8, to + 8, size) == size)
        return to + 8;
    p->count = begin;
    return NULL;
}

/* ---- Reading chunks ---------------------------------------------------------------------------------------------- */

/* Returns the offset of the end of the file; for a stream, an offset behind any chunk. */
static int64_t end_of(const parser *p) {
    return p->in->length < 0 ? GC_RIFF_UNBOUNDED : p->in->length;
}

/* Reads the name and the size of the chunk at `at`. Returns false at the end of the file. */
static bool read_chunk(const parser *p, int64_t at, chunk *c) {
    unsigned char bytes[8];
    if (at > end_of(p) - 8 || p->in->read(p->in->file, at, bytes, 8) != 8)
        return false;
    c->at = at;
    memcpy(c->name, bytes, 4);
    c->size = get(p, bytes + 4, 4);
    return true;
}

/* Returns true if the name is printable and the chunk ends in front of `end`. */
static bool is_whole(const chunk *c, int64_t end) {
    for (int i = 0; i < 4; i++)
        if (c->name[i] < ' ' || c->name[i] > '~')
            return false;
    return (int64_t)c->size <= end - c->at - 8;
}

static int64_t next_chunk(const chunk *c) {
    return c->at + 8 + (int64_t)c->size + (c->size & 1);
}

/* Searches for a chunk of this name, from `at` on. Returns its offset, -1: there is none. */
static int64_t find_chunk(parser *p, int64_t at, const char *name) {
    unsigned char block[4096];
    while (p->searched < MAX_SEARCH_BYTES) {
        const int64_t got = p->in->read(p->in->file, at, block, sizeof block);
        p->searched += sizeof block;
        for (int64_t i = 0; i + 4 <= got; i++)
            if (is_named(block + i, name))
                return at + i;
        if (got < (int64_t)sizeof block)
            break;
        at += got - 3; /* a name may lie across two blocks */
    }
    return -1;
}

/* Copies the format. Integer samples in containers that are wider than they, at the upper end of them as the standard
 * says, become samples of the container's width: libsndfile guesses from the samples, or ignores the width. Returns
 * false if it is too short or cannot be copied. */
static bool copy_format(parser *p, const chunk *c) {
    const int64_t size = gc_min(c->size, MAX_FORMAT_BYTES);
    unsigned char *format = size >= 16 ? copy_chunk(p, c, size) : NULL;
    if (!format)
        return false;
    uint32_t tag = get(p, format, 2);
    const uint32_t channels = get(p, format + 2, 2), bits = get(p, format + 14, 2);
    if (tag == EXTENSIBLE)
        tag = size >= 40 ? get(p, format + 24, 2) : 0;
    p->block = get(p, format + 12, 2);
    const uint32_t width = channels ? p->block / channels : 0;
    if (tag == PCM && width >= 1 && width <= 4 && width * channels == p->block && bits >= 1 && bits <= 8 * width)
        put_16(p, format + 14, 8 * width);
    p->has_fixed_frames = tag == PCM || tag == FLOAT || tag == A_LAW || tag == MU_LAW;
    return p->has_format = true;
}

/* Copies the texts of a LIST chunk that libsndfile stores: those of an INFO list, and the labels of cues. */
static void copy_list(parser *p, const chunk *list) {
    const int64_t begin = p->count, end = list->at + 8 + (int64_t)list->size;
    const chunk type = {.at = list->at, .name = {'L', 'I', 'S', 'T'}};
    chunk c;
    const unsigned char *name = copy_chunk(p, &type, 4);
    const bool info = name && is_named(name, "INFO"), labels = name && is_named(name, "adtl");
    const int64_t texts = p->count;
    int64_t at = list->at + 12;
    for (int i = 0; (info || labels) && i < MAX_CHUNKS && read_chunk(p, at, &c) && is_whole(&c, end); i++) {
        const bool text = info ? c.name[0] == 'I' : is_named(c.name, "labl") && c.size > 4;
        if (text && c.size <= MAX_TEXT_BYTES)
            (void)copy_chunk(p, &c, c.size);
        at = next_chunk(&c);
    }
    if (p->count > texts)
        put_32(p, p->header + begin + 4, (uint32_t)(p->count - begin - 8));
    else
        p->count = begin;
}

/* Copies a chunk that gc_metadata_copy copies, if it has a size that libsndfile accepts. */
static void copy_metadata(parser *p, const chunk *c) {
    static const struct {
        char name[5];
        uint32_t least, most;
    } known[] = {
        {"cue ", 4, 65536}, {"smpl", 36, 65536}, {"bext", 602, 10240}, {"cart", 2048, 0xffff}, {"iXML", 1, 32768}};
    if (is_named(c->name, "LIST") && c->size > 12)
        copy_list(p, c);
    else if (is_named(c->name, "fact") && c->size >= 4 && !p->is_64) {
        const unsigned char *fact = copy_chunk(p, c, 4);
        p->fact = fact ? get(p, fact, 4) : 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_named(c->name, known[i].name) && c->size >= known[i].least && c->size <= known[i].most)
            (void)copy_chunk(p, c, c->size);
}

/* Reads the sizes in a ds64 chunk. */
static void read_sizes_64(parser *p, const chunk *c) {
    unsigned char bytes[16];
    if (c->size < 28 || p->in->read(p->in->file, c->at + 8, bytes, sizeof bytes) != sizeof bytes)
        return;
    p->riff_size_64 = little_64(bytes);
    p->data_64 = little_64(bytes + 8);
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Returns the bytes of samples that the data chunk, or the ds64 chunk, states; -1 if they are unknown. */
static int64_t stated_bytes(const parser *p, uint32_t size) {
    const bool in_ds64 = p->is_64 && size == unknown_32;
    const uint64_t riff_size = in_ds64 ? p->riff_size_64 : p->riff_size, bytes = in_ds64 ? p->data_64 : size;
    if (bytes > 0 && (bytes >= invalid_bytes || gc_extent_is_unknown(bytes, in_ds64 ? 64 : 32)))
        return -1;
    const bool no_riff_size = riff_size <= 8 || riff_size == unknown_32 || riff_size >= invalid_bytes;
    return bytes == 0 && no_riff_size ? -1 : (int64_t)bytes;
}

/* Reads chunks up to the samples. Returns false if there are none. */
static bool find_samples(parser *p, chunk *data) {
    int64_t at = data->at, found = -1;
    for (int i = 0; i < MAX_CHUNKS && at >= 0 && read_chunk(p, at, data); i++) {
        if (is_named(data->name, "data"))
            return p->has_format;
        if (!is_whole(data, end_of(p))) {
            if (p->in->length < 0)
                return false;
            /* from one byte in front of it: the padding of the chunk before may be missing */
            at = found = find_chunk(p, at == found ? at + 1 : at - 1, p->has_format ? "data" : "fmt ");
            continue;
        }
        if (is_named(data->name, "fmt ") && !p->has_format && !copy_format(p, data))
            return false;
        if (is_named(data->name, "ds64") && p->is_64)
            read_sizes_64(p, data);
        copy_metadata(p, data);
        at = next_chunk(data);
    }
    return false;
}

/* Copies the metadata behind the samples. Returns the bytes that belong to no chunk. */
static int64_t read_tail(parser *p, int64_t at) {
    chunk c;
    for (int i = 0; i < MAX_CHUNKS && read_chunk(p, at, &c) && is_whole(&c, end_of(p)); i++) {
        copy_metadata(p, &c);
        at = next_chunk(&c);
    }
    return gc_max(0, end_of(p) - at);
}

/* Appends the head of the data chunk and writes all sizes; `bytes` of samples, -1: unknown. */
static void end_header(parser *p, int64_t bytes) {
    unsigned char *data = append(p, 8);
    if (!data)
        return;
    put_name(data, "data");
    const int64_t file_bytes = bytes < 0 ? GC_RIFF_UNBOUNDED : p->count + bytes;
    if (p->is_64) {
        put_32(p, data + 4, UINT32_MAX);
        put_64(p->header + 20, (uint64_t)(file_bytes - 8));
        put_64(p->header + 28, (uint64_t)(file_bytes - p->count));
    } else if (file_bytes - 8 < UINT32_MAX) {
        put_32(p, data + 4, (uint32_t)bytes);
        put_32(p, p->header + 4, (uint32_t)(file_bytes - 8));
    } else {
        put_32(p, p->header + 4, 8); /* with 0 bytes of data: libsndfile reads samples up to the end of the file */
    }
}

/* ---- Parsing ----------------------------------------------------------------------------------------------------- */

/* Returns the offset of the RIFF chunk behind ID3 tags, which libsndfile skips. */
static int64_t skip_tags(const gc_riff_input *in) {
    unsigned char tag[10];
    int64_t at = 0;
    while (in->length >= 0 && in->read(in->file, at, tag, 10) == 10 && memcmp(tag, "ID3", 3) == 0)
        at += 10 + ((tag[6] & 127) << 21 | (tag[7] & 127) << 14 | (tag[8] & 127) << 7 | (tag[9] & 127));
    return at;
}

/* Begins the header if the bytes at `at` begin a WAV. */
static bool begin_header(parser *p, int64_t at) {
    unsigned char head[12];
    if (p->in->read(p->in->file, at, head, 12) != 12 || !is_named(head + 8, "WAVE"))
        return false;
    p->big_endian = is_named(head, "RIFX");
    p->is_64 = is_named(head, "RF64") || is_named(head, "BW64");
    if (!p->big_endian && !p->is_64 && !is_named(head, "RIFF"))
        return false;
    p->riff_size = get(p, head + 4, 4);
    p->riff_size_64 = p->data_64 = invalid_bytes;
    unsigned char *to = append(p, p->is_64 ? 48 : 12);
    if (!to)
        return false;
    memcpy(to, head, 12);
    if (p->is_64) {
        put_name(to, "RF64");
        put_32(p, to + 4, UINT32_MAX);
        put_name(to + 12, "ds64");
        put_32(p, to + 16, 28);
    }
    return true;
}

bool gc_riff_parse(const gc_riff_input *input, gc_riff *riff) {
    parser p = {.in = input};
    const int64_t at = skip_tags(input);
    chunk data = {.at = at + 12};
    *riff = (gc_riff){0};
    if (begin_header(&p, at) && find_samples(&p, &data)) {
        riff->begin = data.at + 8;
        riff->stated = riff->bytes = stated_bytes(&p, data.size);
        riff->has_fixed_frames = p.has_fixed_frames;
        riff->fact = p.fact;
        if (input->length >= 0) {
            const int64_t left = input->length - riff->begin, block = gc_max(1, p.block);
            riff->missing = riff->stated / block > left / block ? riff->stated - left : 0;
            riff->bytes = riff->stated < 0 ? left : gc_min(riff->stated, left);
            riff->blocks = (riff->bytes + block - 1) / block;
            riff->behind = read_tail(&p, riff->begin + riff->bytes + (riff->bytes & 1));
        }
        end_header(&p, riff->bytes);
    }
    riff->header = p.header;
    riff->header_bytes = p.count;
    return !p.no_memory;
}
