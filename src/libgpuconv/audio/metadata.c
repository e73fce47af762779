/* Copying metadata from one file to another. What the output's format has no place for is found by writing the metadata
 * into a file of this format in memory and reading it back. */
#include "file.h"
#include "format.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUES_MAX = 65536, CHUNK_MAX = 65536, EXTRA_BYTES = 15872 /* texts at the end of a broadcast or cart chunk */ };

/* Kinds of metadata. SF_STR_SOFTWARE is left out: libsndfile appends its own name on every copy. */
enum { CUES, LOOPS, BROADCAST, CART, STRUCTURES, CUE_NAMES = STRUCTURES, IXML, SPEAKERS, STRINGS, KINDS = STRINGS + 9 };

static const char *const names[KINDS] = {
    "cue points", "loops",    "broadcast chunk", "cart chunk", "names of cue points",
    "iXML chunk", "speakers", "title",           "copyright",  "artist",
    "comment",    "date",     "album",           "license",    "track number",
    "genre"};

static const int strings[KINDS - STRINGS] = {SF_STR_TITLE,   SF_STR_COPYRIGHT,   SF_STR_ARTIST,
                                             SF_STR_COMMENT, SF_STR_DATE,        SF_STR_ALBUM,
                                             SF_STR_LICENSE, SF_STR_TRACKNUMBER, SF_STR_GENRE};

static const struct {
    int get, set, bytes;
} structures[STRUCTURES] = {
    [CUES] = {SFC_GET_CUE, SFC_SET_CUE, sizeof(uint32_t)},
    [LOOPS] = {SFC_GET_INSTRUMENT, SFC_SET_INSTRUMENT, sizeof(SF_INSTRUMENT)},
    [BROADCAST] = {SFC_GET_BROADCAST_INFO, SFC_SET_BROADCAST_INFO, sizeof(SF_BROADCAST_INFO) + EXTRA_BYTES},
    [CART] = {SFC_GET_CART_INFO, SFC_SET_CART_INFO, sizeof(SF_CART_INFO) + EXTRA_BYTES}};

/* Chunks of WAV and RF64 that are copied as they are where libsndfile does not read and write what they hold: cue
 * points and loops of RF64, iXML of both. */
enum { CHUNKS = 3 };
static const struct {
    const char *id;
    int kind;
} chunks[CHUNKS] = {{"cue ", CUES}, {"smpl", LOOPS}, {"iXML", IXML}};

typedef struct metadata {
    SNDFILE *from;
    bool had[KINDS], kept[KINDS];
    int channels, map[GC_MAX_CHANNELS]; /* the speakers of `from` */
    bool no_memory;
} metadata;

/* Returns memory that the caller frees; NULL without memory. */
static void *allocate(metadata *m, int64_t bytes) {
    void *data = gc_calloc(1, bytes);
    m->no_memory = m->no_memory || !data;
    return data;
}

/* Returns a structure of a file, which the caller frees; NULL: it has none. */
static void *read_structure(metadata *m, SNDFILE *file, int kind, int *bytes) {
    uint32_t cues = 0;
    *bytes = structures[kind].bytes;
    if (kind == CUES &&
        (sf_command(file, SFC_GET_CUE_COUNT, &cues, sizeof cues) != SF_TRUE || cues == 0 || cues > CUES_MAX))
        return NULL;
    *bytes += (int)(cues * sizeof(SF_CUE_POINT));
    void *data = allocate(m, *bytes);
    if (data && sf_command(file, structures[kind].get, data, *bytes) == SF_TRUE)
        return data;
    free(data);
    return NULL;
}

/* Reads the chunk of a file with this number among those of its name; the caller frees info->data. NULL there: the file
 * has none. Its size becomes a multiple of 4 with blanks at its end, because libsndfile writes and reads no other size
 * correctly. */
static void read_chunk(metadata *m, SNDFILE *file, const char *id, int index, SF_CHUNK_INFO *info) {
    *info = (SF_CHUNK_INFO){.id_size = 4};
    memcpy(info->id, id, 4);
    SF_CHUNK_ITERATOR *at = sf_get_chunk_iterator(file, info);
    for (int i = 0; at && i < index; i++)
        at = sf_next_chunk_iterator(at);
    if (!at || sf_get_chunk_size(at, info) != SF_ERR_NO_ERROR || info->datalen == 0 || info->datalen > CHUNK_MAX)
        return;
    const unsigned size = (unsigned)gc_round_up(info->datalen, 4);
    char *data = allocate(m, size);
    if (!data)
        return;
    memset(data, ' ', size);
    info->data = data;
    if (sf_get_chunk_data(at, info) == SF_ERR_NO_ERROR) {
        info->datalen = size;
    } else {
        free(data);
        info->data = NULL;
    }
}

static void put_name(unsigned char *at, const char *name) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)name[i];
}

/* Writes the names of cue points into a WAV or RF64: a list of labels, each with the number of its point. */
static void write_labels(metadata *m, SNDFILE *to, const SF_CUES *cues) {
    SF_CHUNK_INFO list = {.id = "LIST", .id_size = 4, .datalen = 4};
    for (uint32_t i = 0; i < cues->cue_count; i++)
        list.datalen += 12 + (unsigned)gc_round_up((int64_t)strlen(cues->cue_points[i].name) + 1, 4);
    unsigned char *at = list.datalen <= CHUNK_MAX ? allocate(m, list.datalen) : NULL;
    list.data = at;
    if (!at)
        return;
    put_name(at, "adtl");
    at += 4;
    for (uint32_t i = 0; i < cues->cue_count; i++) {
        const SF_CUE_POINT *cue = &cues->cue_points[i];
        const size_t length = strlen(cue->name), size = 4 + (size_t)gc_round_up((int64_t)length + 1, 4);
        put_name(at, "labl");
        for (int b = 0; b < 4; b++) {
            at[4 + b] = (unsigned char)(size >> 8 * b);
            at[8 + b] = (unsigned char)((uint32_t)cue->indx >> 8 * b);
        }
        memcpy(at + 12, cue->name, length);
        at += 8 + size;
    }
    (void)sf_set_chunk(to, &list);
    free(list.data);
}

/* Finds what a file has. */
static void find(metadata *m, SNDFILE *file, bool has[KINDS]) {
    SF_CHUNK_INFO chunk;
    for (int k = 0; k < STRUCTURES; k++) {
        int bytes;
        void *data = read_structure(m, file, k, &bytes);
        const SF_CUES *cues = k == CUES ? data : NULL;
        has[k] = data != NULL;
        for (uint32_t i = 0; cues && i < cues->cue_count; i++)
            has[CUE_NAMES] = has[CUE_NAMES] || cues->cue_points[i].name[0];
        free(data);
    }
    for (int k = 0; k < CHUNKS; k++) {
        read_chunk(m, file, chunks[k].id, 0, &chunk);
        has[chunks[k].kind] = has[chunks[k].kind] || chunk.data;
        free(chunk.data);
    }
    for (int i = 0; i < 2; i++) { /* a list of texts, and one of labels */
        read_chunk(m, file, "LIST", i, &chunk);
        has[CUE_NAMES] = has[CUE_NAMES] || (chunk.data && memcmp(chunk.data, "adtl", 4) == 0);
        free(chunk.data);
    }
    for (int k = STRINGS; k < KINDS; k++)
        has[k] = sf_get_string(file, strings[k - STRINGS]) != NULL;
}

/* Copies what the format of `to` has a place for. */
static void copy(void *context, SNDFILE *to) {
    metadata *m = context;
    SF_INFO info = {0};
    (void)sf_command(to, SFC_GET_CURRENT_SF_INFO, &info, sizeof info);
    const int container = info.format & SF_FORMAT_TYPEMASK;
    const bool rf64 = container == SF_FORMAT_RF64;
    const bool riff = rf64 || container == SF_FORMAT_WAV || container == SF_FORMAT_WAVEX;
    bool written[KINDS] = {false};
    if (m->had[SPEAKERS])
        (void)sf_command(to, SFC_SET_CHANNEL_MAP_INFO, m->map, m->channels * (int)sizeof *m->map);
    for (int k = STRINGS; k < KINDS; k++)
        if (m->had[k])
            (void)sf_set_string(to, strings[k - STRINGS], sf_get_string(m->from, strings[k - STRINGS]));
    for (int k = 0; k < STRUCTURES; k++) {
        int bytes;
        void *data = m->had[k] ? read_structure(m, m->from, k, &bytes) : NULL;
        written[k] = data && sf_command(to, structures[k].set, data, bytes) == SF_TRUE && !rf64;
        if (data && k == CUES && m->had[CUE_NAMES] && riff)
            write_labels(m, to, data);
        free(data);
    }
    for (int k = 0; riff && k < CHUNKS; k++) {
        SF_CHUNK_INFO chunk = {.data = NULL};
        if (!written[chunks[k].kind])
            read_chunk(m, m->from, chunks[k].id, 0, &chunk);
        if (chunk.data)
            (void)sf_set_chunk(to, &chunk);
        free(chunk.data);
    }
}

static void look(void *context, SNDFILE *file) {
    metadata *m = context;
    int map[GC_MAX_CHANNELS];
    uint32_t mask;
    find(m, file, m->kept);
    m->kept[SPEAKERS] = m->had[SPEAKERS] && gc_format_read_speakers(file, m->channels, map, &mask) &&
                        memcmp(map, m->map, (size_t)m->channels * sizeof *map) == 0;
}

gpuconv_status gc_metadata_copy(const gc_reader *reader, gc_writer *writer, bool same_channels, gpuconv_error *error) {
    metadata m = {.from = gc_reader_sndfile(reader), .channels = gc_reader_info(reader)->channels};
    SNDFILE *to = gc_writer_sndfile(writer);
    SF_INFO info = {0};
    char container[48], dropped[160] = "";
    uint32_t mask;
    find(&m, m.from, m.had);
    const bool speakers = gc_format_read_speakers(m.from, m.channels, m.map, &mask);
    m.had[SPEAKERS] = speakers && same_channels;
    bool any = false;
    for (int k = 0; k < KINDS; k++)
        any = any || m.had[k];
    if (any && !m.no_memory) {
        copy(&m, to);
        (void)sf_command(to, SFC_GET_CURRENT_SF_INFO, &info, sizeof info);
        (void)gc_format_try(&info, copy, look, &m);
        m.kept[SPEAKERS] = m.kept[SPEAKERS] || (mask && gc_writer_speakers(writer) == mask);
        m.kept[CUE_NAMES] = m.kept[CUE_NAMES] || !m.kept[CUES]; /* the cue points are named then */
    }
    for (int k = 0; k < KINDS; k++)
        if (m.had[k] && !m.kept[k])
            gc_append(dropped, sizeof dropped, "%s%s", *dropped ? ", " : "", names[k]);
    if (*dropped) {
        char text[256];
        gc_format_container_name(info.format, container, sizeof container);
        (void)snprintf(text, sizeof text, "%s has no place for %s", container, dropped);
        gc_writer_add_note(writer, text);
    }
    if (speakers && !same_channels)
        gc_writer_add_note(writer, "the speakers of the input are left out: the output has other channels");
    return m.no_memory ? gc_fail_memory(error, "the metadata of the file") : GPUCONV_OK;
}
