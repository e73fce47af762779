/*
 * The length and format that the headers of files state, found without libsndfile.
 *
 * WAV, RF64 and BW64. A chunk is a name of four bytes, a size of four bytes and that many bytes of data, padded to an
 * even number. The header for libsndfile contains, in this order: RIFF or RF64, the sizes of an RF64, `fmt `, `fact`,
 * the metadata that gc_metadata_copy copies, from in front of the samples and from behind them, and the head of the
 * data chunk.
 *
 * The extents of other files: containers of chunks, AU, FLAC, the pages of Ogg (RFC 3533) and the frames of MPEG audio
 * (ISO 11172-3, 13818-3).
 */
#include "extent.h"

#include "libgpuconv/core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- WAV --------------------------------------------------------------------------------------------------------- */

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

static uint64_t number(const unsigned char *at, int bytes, bool big_endian) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * (big_endian ? bytes - 1 - i : i);
    return value;
}

static void put_number(const parser *p, unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * (p->big_endian ? bytes - 1 - i : i));
}

/* Returns the bytes of a tag with this head. */
static int64_t id3_bytes(const unsigned char *head) {
    return 10 + ((head[6] & 127) << 21 | (head[7] & 127) << 14 | (head[8] & 127) << 7 | (head[9] & 127));
}

/* Returns true if a size in bytes is one that programs write if they do not know the length. */
static bool is_unknown_size(uint64_t size, int bits) {
    if (bits == 64)
        return size == 0 || size >= UINT64_C(1) << 56;
    /* all ones with or without a header subtracted, and the values of SoX and of programs with signed sizes */
    return size == 0 || size >= 0xffff0000 || (size >= 0x7f000000 && size <= 0x7f000100) ||
           (size >= 0x7fff0000 && size <= 0x7fffffff);
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
    put_number(p, to + 4, (uint32_t)even, 4);
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
    c->size = (uint32_t)number(bytes + 4, 4, p->big_endian);
    return true;
}

static bool is_printable(const unsigned char *name) {
    for (int i = 0; i < 4; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return true;
}

/* Returns true if the name is printable and the chunk ends in front of `end`. */
static bool is_whole(const chunk *c, int64_t end) {
    return is_printable(c->name) && (int64_t)c->size <= end - c->at - 8;
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
    uint32_t tag = (uint32_t)number(format, 2, p->big_endian);
    const uint32_t channels = (uint32_t)number(format + 2, 2, p->big_endian),
                   bits = (uint32_t)number(format + 14, 2, p->big_endian);
    if (tag == EXTENSIBLE)
        tag = size >= 40 ? (uint32_t)number(format + 24, 2, p->big_endian) : 0;
    p->block = (uint32_t)number(format + 12, 2, p->big_endian);
    const uint32_t width = channels ? p->block / channels : 0;
    if (tag == PCM && width >= 1 && width <= 4 && width * channels == p->block && bits >= 1 && bits <= 8 * width)
        put_number(p, format + 14, 8 * width, 2);
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
        put_number(p, p->header + begin + 4, (uint32_t)(p->count - begin - 8), 4);
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
        p->fact = fact ? (uint32_t)number(fact, 4, p->big_endian) : 0;
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
    p->riff_size_64 = number(bytes, 8, false);
    p->data_64 = number(bytes + 8, 8, false);
}

/* ---- Samples ----------------------------------------------------------------------------------------------------- */

/* Returns the bytes of samples that the data chunk, or the ds64 chunk, states; -1 if they are unknown. */
static int64_t stated_bytes(const parser *p, uint32_t size) {
    const bool in_ds64 = p->is_64 && size == unknown_32;
    const uint64_t riff_size = in_ds64 ? p->riff_size_64 : p->riff_size, bytes = in_ds64 ? p->data_64 : size;
    if (bytes > 0 && (bytes >= invalid_bytes || is_unknown_size(bytes, in_ds64 ? 64 : 32)))
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
        put_number(p, data + 4, UINT32_MAX, 4);
        put_number(p, p->header + 20, (uint64_t)(file_bytes - 8), 8);
        put_number(p, p->header + 28, (uint64_t)(file_bytes - p->count), 8);
    } else if (file_bytes - 8 < UINT32_MAX) {
        put_number(p, data + 4, (uint32_t)bytes, 4);
        put_number(p, p->header + 4, (uint32_t)(file_bytes - 8), 4);
    } else {
        put_number(p, p->header + 4, 8,
                   4); /* with 0 bytes of data: libsndfile reads samples up to the end of the file */
    }
}

/* ---- Parsing ----------------------------------------------------------------------------------------------------- */

/* Returns the offset of the RIFF chunk behind ID3 tags, which libsndfile skips. */
static int64_t skip_tags(const gc_riff_input *in) {
    unsigned char tag[10];
    int64_t at = 0;
    while (in->length >= 0 && in->read(in->file, at, tag, 10) == 10 && memcmp(tag, "ID3", 3) == 0)
        at += id3_bytes(tag);
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
    p->riff_size = (uint32_t)number(head + 4, 4, p->big_endian);
    p->riff_size_64 = p->data_64 = invalid_bytes;
    unsigned char *to = append(p, p->is_64 ? 48 : 12);
    if (!to)
        return false;
    memcpy(to, head, 12);
    if (p->is_64) {
        put_name(to, "RF64");
        put_number(p, to + 4, UINT32_MAX, 4);
        put_name(to + 12, "ds64");
        put_number(p, to + 16, 28, 4);
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

/* ---- Other files ------------------------------------------------------------------------------------------------- */

/* Reads bytes. Returns false if the file ends before. */
static bool read_at(const gc_riff_input *in, int64_t at, void *bytes, int64_t count) {
    return at >= 0 && count <= in->length - at && in->read(in->file, at, bytes, count) == count;
}

/* Notes bytes behind the samples; one byte may be padding. */
static void note_rest(gc_extent *e, int64_t bytes) {
    if (bytes > 1)
        (void)snprintf(e->note, sizeof e->note, "%lld bytes behind the samples that its header states are not read",
                       (long long)bytes);
}

/* Compares the bytes of samples that a header states with the bytes in the file. */
static void state(gc_extent *e, uint64_t stated, int64_t left) {
    if (stated >= INT64_MAX)
        return;
    e->stated = (int64_t)stated;
    e->missing = gc_max(0, e->stated - left);
}

/* Compares the bytes of samples that a header states with the rest of the file from `begin` on, for a container in
 * which nothing follows the samples. */
static void state_last(const gc_riff_input *in, int64_t begin, uint64_t stated, gc_extent *e) {
    const int64_t left = in->length - begin;
    state(e, stated, left);
    if (e->stated > 0 && e->stated < left)
        note_rest(e, left - e->stated);
}

/* ---- Containers of chunks ---------------------------------------------------------------------------------------- */

typedef struct layout {
    const char *begin, *type; /* the first four bytes, and those at offset `type_at`; NULL: any */
    int type_at, first;       /* offset of the first chunk */
    int name_bytes, size_bytes;
    bool big_endian, with_head; /* the size counts the chunk's head too */
    int align;
    const char *samples; /* name of the chunk */
    int skipped;         /* bytes in front of its samples */
} layout;

static const layout layouts[] = {{"FORM", "AIFF", 8, 12, 4, 4, true, false, 2, "SSND", 8},
                                 {"FORM", "AIFC", 8, 12, 4, 4, true, false, 2, "SSND", 8},
                                 {"FORM", "8SVX", 8, 12, 4, 4, true, false, 2, "BODY", 0},
                                 {"FORM", "16SV", 8, 12, 4, 4, true, false, 2, "BODY", 0},
                                 {"riff", "wave", 24, 40, 16, 8, false, true, 8, "data", 0},
                                 {"caff", NULL, 0, 8, 4, 8, true, false, 1, "data", 4}};

/* Finds the samples, and what follows them: chunks, or bytes that no chunk holds. */
static void walk_chunks(const gc_riff_input *in, const layout *l, gc_extent *e) {
    const int head = l->name_bytes + l->size_bytes;
    unsigned char bytes[24];
    bool found = false;
    int64_t at = l->first;
    for (int i = 0; i < MAX_CHUNKS && read_at(in, at, bytes, head); i++) {
        uint64_t size = number(bytes + l->name_bytes, l->size_bytes, l->big_endian);
        const int64_t counted = l->with_head ? head : 0, left = in->length - at - head;
        const bool samples = memcmp(bytes, l->samples, 4) == 0 && !found;
        if (samples && is_unknown_size(size - (uint64_t)counted, 8 * l->size_bytes))
            return;
        const bool whole = size >= (uint64_t)counted && size - (uint64_t)counted <= (uint64_t)left;
        size -= (uint64_t)counted;
        if (samples && size >= (uint64_t)l->skipped)
            state(e, size - (uint64_t)l->skipped, left - l->skipped);
        found = found || samples;
        if (!whole || !is_printable(bytes)) {
            if (found && !samples)
                note_rest(e, in->length - at);
            return;
        }
        at += (head + (int64_t)size + l->align - 1) / l->align * l->align;
    }
    if (found && at < in->length)
        note_rest(e, in->length - at);
}

/* ---- Fixed headers ----------------------------------------------------------------------------------------------- */

static void read_au(const gc_riff_input *in, const unsigned char *h, gc_extent *e) {
    const uint64_t begin = number(h + 4, 4, h[0] == '.'), size = number(h + 8, 4, h[0] == '.');
    if (!is_unknown_size(size, 32) && begin <= (uint64_t)in->length)
        state_last(in, (int64_t)begin, size, e);
}

/* Returns the number behind a name and a type in the header of a NIST file; 0: it is not there. */
static uint64_t nist_number(const char *text, const char *name) {
    const char *at = strstr(text, name), *type = at ? strchr(at, '-') : NULL, *digits = type ? strchr(type, ' ') : NULL;
    uint64_t value = 0;
    for (digits = digits ? digits + 1 : ""; *digits >= '0' && *digits <= '9' && value < UINT32_MAX; digits++)
        value = 10 * value + (uint64_t)(*digits - '0');
    return value;
}

static void read_nist(const gc_riff_input *in, gc_extent *e) {
    char text[1025] = "";
    if (read_at(in, 0, text, 1024))
        state_last(in, 1024,
                   nist_number(text, "sample_count") * nist_number(text, "channel_count") *
                       nist_number(text, "sample_n_bytes"),
                   e);
}

/* Reads the matrix with the samples in a file of Matlab 4 or 5. */
static void read_matlab(const gc_riff_input *in, bool version_5, gc_extent *e) {
    unsigned char h[512] = {0};
    const int64_t bytes = in->read(in->file, 0, h, gc_min(512, in->length));
    int64_t at = 20;
    while (at + 16 <= bytes && memcmp(h + at, "wavedata", 8) != 0)
        at++;
    if (at + 16 > bytes)
        return;
    if (version_5) {
        state_last(in, at + 16, number(h + at + 12, 4, h[126] == 'M'), e);
        return;
    }
    static const int widths[] = {8, 4, 4, 2, 2, 1};
    const bool big = number(h, 4, false) > 0xffff;
    const uint64_t type = number(h + at - 20, 4, big) / 10 % 10, rows = number(h + at - 16, 4, big);
    if (type < 6)
        state_last(in, at + 9, rows * number(h + at - 12, 4, big) * (uint64_t)widths[type], e);
}

/* Walks over the blocks of a VOC file up to its samples. */
static void read_voc(const gc_riff_input *in, gc_extent *e) {
    unsigned char h[4];
    int64_t at = 26;
    for (int i = 0; i < MAX_CHUNKS && read_at(in, at, h, 4); i++) {
        const int64_t size = (int64_t)number(h + 1, 3, false);
        if (h[0] == 1 || h[0] == 9)
            state(e, (uint64_t)size, in->length - at - 4);
        at += 4 + size;
    }
}

/* Reads the sizes that stand at fixed places. `h`: the first 40 bytes. */
static void read_fixed(const gc_riff_input *in, const unsigned char *h, gc_extent *e) {
    if (memcmp(h, ".snd", 4) == 0 || memcmp(h, "dns.", 4) == 0)
        read_au(in, h, e);
    else if (memcmp(h, "2BIT", 4) == 0)
        state_last(in, 128, number(h + 26, 4, true) * (h[12] ? 2 : 1) * (number(h + 14, 2, true) / 8), e);
    else if (memcmp(h, "ALawSoundFile**", 15) == 0)
        state_last(in, 32, number(h + 18, 4, true), e);
    else if (memcmp(h, "\001\004", 2) == 0 && number(h + 26, 4, false) == number(h + 30, 4, false))
        state_last(in, 42, number(h + 26, 4, false) * (h[21] ? 4 : 2), e);
    else if (memcmp(h, "NIST_1A", 7) == 0)
        read_nist(in, e);
    else if (memcmp(h, "MATLAB 5", 8) == 0 || number(h, 4, false) < 5000 || number(h, 4, true) < 5000)
        read_matlab(in, h[0] == 'M', e);
    else if (memcmp(h, "Creative Voice File", 19) == 0)
        read_voc(in, e);
}

/* ---- FLAC -------------------------------------------------------------------------------------------------------- */

bool gc_extent_open_flac(const gc_riff_input *in, unsigned char head[GC_FLAC_HEAD]) {
    if (!read_at(in, 0, head, GC_FLAC_HEAD) || memcmp(head, "fLaC", 4) != 0 || (head[4] & 127) != 0)
        return false;
    head[21] &= 0xf0;
    memset(head + 22, 0, 4);
    return true;
}

static void read_flac(const gc_riff_input *in, gc_extent *e) {
    unsigned char head[GC_FLAC_HEAD], bytes[5];
    if (!gc_extent_open_flac(in, head) || !read_at(in, 21, bytes, 5))
        return;
    bytes[0] &= 15;
    e->frames = (int64_t)number(bytes, 5, true);
    e->goes_on = e->frames > 0;
    if (e->frames == 0)
        e->frames = -1;
}

/* ---- Ogg --------------------------------------------------------------------------------------------------------- */

enum { CONTINUED = 1, BEGINS = 2, ENDS = 4 };

/* Adds a stream that begins at a page. Returns false without memory. */
static bool add_link(gc_extent *e, int64_t at) {
    gc_link *more = realloc(e->link, ((size_t)e->links + 1) * sizeof *more);
    if (!more)
        return false;
    e->link = more;
    e->link[e->links++] = (gc_link){.begin = at};
    return true;
}

/* Walks over the pages. */
static bool walk_pages(const gc_riff_input *in, gc_extent *e) {
    unsigned char head[27], sizes[255];
    int64_t at = 0, granule[3] = {0};
    uint64_t serial = 0;
    bool in_headers = false, ended = false;
    while (read_at(in, at, head, 27) && memcmp(head, "OggS", 4) == 0 && read_at(in, at + 27, sizes, head[26])) {
        int64_t size = 27 + head[26];
        for (int i = 0; i < head[26]; i++)
            size += sizes[i];
        if (size > in->length - at)
            break;
        if ((head[5] & BEGINS) && !in_headers) {
            if (!add_link(e, at))
                return false;
            serial = number(head + 14, 4, false);
            memset(granule, 0, sizeof granule);
            ended = false;
        }
        in_headers = (head[5] & BEGINS) != 0;
        gc_link *link = e->links ? &e->link[e->links - 1] : NULL;
        if (link && number(head + 14, 4, false) == serial) {
            granule[0] = granule[1];
            granule[1] = granule[2];
            granule[2] = (int64_t)number(head + 6, 8, false);
            link->safe = granule[0];
            ended = ended || (head[5] & ENDS);
        }
        at += size;
        if (link)
            link->bytes = at - link->begin;
    }
    if (at < in->length)
        (void)snprintf(e->note, sizeof e->note, "cut off or damaged: its last %lld bytes are no page and are not read",
                       (long long)(in->length - at));
    else if (!ended && e->links)
        (void)snprintf(e->note, sizeof e->note, "cut off: the end of its stream is not there");
    return true;
}

/* ---- MPEG audio -------------------------------------------------------------------------------------------------- */

typedef struct mpeg_frame {
    unsigned kind;     /* version, layer and rate: the same in all frames */
    int bytes, frames; /* frames: samples of a channel */
    int side;          /* bytes of head and side information */
} mpeg_frame;

/* Reads the head of a frame. Returns false if it is none, or its length is not stated. */
static bool read_frame(const unsigned char *h, mpeg_frame *f) {
    static const short rates[2][3][15] = {{{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
                                           {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384},
                                           {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320}},
                                          {{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
                                           {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
                                           {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}}};
    static const int hertz[3] = {44100, 48000, 32000};
    const int version = h[1] >> 3 & 3, layer = 3 - (h[1] >> 1 & 3), bits = h[2] >> 4, rate = h[2] >> 2 & 3;
    if (h[0] != 0xff || (h[1] & 0xe0) != 0xe0 || version == 1 || layer == 3 || bits == 0 || bits == 15 || rate == 3)
        return false;
    const bool low = version != 3, mono = h[3] >> 6 == 3;
    const int kilobits = rates[low][layer][bits], per_second = hertz[rate] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
    const int padding = h[2] >> 1 & 1;
    f->kind = (unsigned)(h[1] & 0x1e) << 8 | (h[2] & 0x0c);
    f->frames = layer == 0 ? 384 : layer == 2 && low ? 576 : 1152;
    f->bytes = layer == 0 ? (12000 * kilobits / per_second + padding) * 4
                          : f->frames / 8 * 1000 * kilobits / per_second + padding;
    f->side = layer == 2 ? 4 + (low ? (mono ? 9 : 17) : (mono ? 17 : 32)) : 0;
    return true;
}

/* Returns the bytes of a tag at `at`; 0: none is there. */
static int64_t tag_bytes(const gc_riff_input *in, int64_t at) {
    unsigned char h[32] = {0};
    (void)in->read(in->file, at, h, gc_min(32, in->length - at));
    const int64_t left = in->length - at;
    if (memcmp(h, "ID3", 3) == 0 && left >= 10)
        return id3_bytes(h);
    if (memcmp(h, "TAG", 3) == 0 && left == 128)
        return 128;
    if (memcmp(h, "APETAGEX", 8) == 0 && left >= 32)
        return (int64_t)number(h + 12, 4, false) + (h[23] & 0x80 ? 32 : 0);
    return 0;
}

/* Returns the offset of the first frame behind tags that another one of its kind follows; -1: there is none. */
static int64_t find_frame(const gc_riff_input *in, mpeg_frame *f) {
    enum { SEARCHED = 1 << 16 };
    unsigned char head[4];
    mpeg_frame next;
    int64_t at = 0, tag;
    for (int64_t searched = 0; searched < SEARCHED && read_at(in, at, head, 4); searched++) {
        if (read_frame(head, f) && read_at(in, at + f->bytes, head, 4) && read_frame(head, &next) &&
            next.kind == f->kind)
            return at;
        tag = tag_bytes(in, at);
        at += tag > 0 ? tag : 1;
    }
    return -1;
}

/* Reads the frames that a Xing header in the first frame states; -1: it has none, 0: it does not state them. */
static int64_t read_xing(const gc_riff_input *in, int64_t at, const mpeg_frame *f) {
    unsigned char b[12];
    if (f->side == 0 || !read_at(in, at + f->side, b, 12) || (memcmp(b, "Xing", 4) != 0 && memcmp(b, "Info", 4) != 0))
        return -1;
    return b[7] & 1 ? (int64_t)number(b + 8, 4, true) : 0;
}

/* Counts the frames. */
static void walk_frames(const gc_riff_input *in, gc_extent *e) {
    mpeg_frame first, f;
    unsigned char head[4];
    const int64_t begin = find_frame(in, &first);
    if (begin < 0)
        return;
    const int64_t stated = read_xing(in, begin, &first);
    int64_t at = begin + (stated >= 0 ? first.bytes : 0), count = 0, tag;
    for (;;) {
        if (read_at(in, at, head, 4) && read_frame(head, &f) && f.kind == first.kind) {
            if (f.bytes > in->length - at)
                break;
            count++;
            at += f.bytes;
        } else if (at < in->length && (tag = tag_bytes(in, at)) > 0) {
            at += tag;
        } else {
            break;
        }
    }
    if (at < in->length)
        (void)snprintf(e->note, sizeof e->note, "its last %lld bytes are no whole MPEG frame and are not read",
                       (long long)(in->length - at));
    if (stated == count)
        return;
    if (stated > count + 1) { /* some programs count the frame of the header too */
        e->stated = stated;
        e->missing = stated - count;
        return;
    }
    if (stated > 0)
        e->skip = begin + first.bytes;
    e->frames = count * first.frames;
    e->claimed = gc_max(in->length, (count + 16) * 4096); /* no frame has more bytes: the estimate is not too low */
}

/* ---- All --------------------------------------------------------------------------------------------------------- */

bool gc_extent_find(const gc_riff_input *in, gc_extent *e) {
    unsigned char head[40] = {0};
    *e = (gc_extent){.frames = -1};
    (void)in->read(in->file, 0, head, gc_min(40, in->length));
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (memcmp(head, layouts[i].begin, 4) == 0 &&
            (!layouts[i].type || memcmp(head + layouts[i].type_at, layouts[i].type, 4) == 0))
            walk_chunks(in, &layouts[i], e);
    read_fixed(in, head, e);
    if (memcmp(head, "fLaC", 4) == 0)
        read_flac(in, e);
    else if (memcmp(head, "OggS", 4) == 0)
        return walk_pages(in, e);
    else if (memcmp(head, "ID3", 3) == 0 || (head[0] == 0xff && (head[1] & 0xe0) == 0xe0))
        walk_frames(in, e);
    return true;
}
