/*
 * libsndfile writes a header of length zero, then the samples, and corrects the header at the end. A pipe cannot seek:
 * the sink holds the header back until samples follow, completes its length fields from the expected number of frames,
 * and discards later writes to positions that were already sent.
 */
#include "pipe_sink.h"

#include "libgpuconv/core/memory.h"

#include <string.h>

void gc_sink_begin(gc_sink *s, gc_pipe_out out, int format, int channels, int64_t frames, uint32_t speakers) {
    *s = (gc_sink){.out = out, .format = format, .channels = channels, .frames = frames, .speakers = speakers};
}

static void put_little(unsigned char *to, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

/* Returns the offset of the size field of the chunk `name` in a header that ends with the header of the data chunk, or
 * 0 if the chunk does not exist. */
static int64_t chunk_size_offset(const unsigned char *header, int64_t count, const char *name) {
    for (int64_t at = 12; at + 8 <= count;) {
        if (memcmp(header + at, name, 4) == 0)
            return at + 4;
        uint64_t size = header[at + 4] | (uint64_t)header[at + 5] << 8 | (uint64_t)header[at + 6] << 16 |
                        (uint64_t)header[at + 7] << 24;
        at += 8 + (int64_t)((size + 1) & ~UINT64_C(1));
    }
    return 0;
}

void gc_sink_clear_peak_time(unsigned char *header, int64_t count) {
    int64_t size = count >= 12 && memcmp(header + 8, "WAVE", 4) == 0 ? chunk_size_offset(header, count, "PEAK") : 0;
    if (size && size + 12 <= count)
        memset(header + size + 8, 0, 4);
}

int64_t gc_sink_speakers_offset(const unsigned char *header, int64_t count) {
    const bool wav = count >= 12 && memcmp(header + 8, "WAVE", 4) == 0;
    const int64_t size = wav ? chunk_size_offset(header, count, "fmt ") : 0, tag = size + 4;
    return size && tag + 40 <= count && header[tag] == 0xfe && header[tag + 1] == 0xff ? tag + 20 : 0;
}

/* Writes the lengths and the mask of speakers into the header of a WAV, RF64 or AU; an unknown length is written as all
 * ones. */
static void complete_header(const gc_sink *s, unsigned char *header, int64_t count) {
    static const int sizes[] = {0, 1, 2, 3, 4, 1, 4, 8}; /* bytes per sample, indexed by libsndfile's encoding */
    int code = s->format & SF_FORMAT_SUBMASK, sample = code < 8 ? sizes[code] : code <= SF_FORMAT_ALAW ? 1 : 0;
    const int64_t mask = gc_sink_speakers_offset(header, count);
    gc_sink_clear_peak_time(header, count);
    if (mask)
        put_little(header + mask, s->speakers, 4);
    bool known = s->frames >= 0 && sample;
    uint64_t bytes = known ? (uint64_t)s->frames * (uint64_t)s->channels * (uint64_t)sample : UINT32_MAX;
    uint64_t all = known ? bytes + (bytes & 1) + (uint64_t)count - 8 : UINT32_MAX;
    if (count >= 12 && memcmp(header, "RIFF", 4) == 0) {
        int64_t data = chunk_size_offset(header, count, "data"), fact = chunk_size_offset(header, count, "fact");
        put_little(header + 4, all < UINT32_MAX ? all : UINT32_MAX, 4);
        if (data)
            put_little(header + data, bytes < UINT32_MAX ? bytes : UINT32_MAX, 4);
        if (fact)
            put_little(header + fact + 4, known ? (uint64_t)s->frames : UINT32_MAX, 4);
    } else if (count >= 48 && memcmp(header, "RF64", 4) == 0 && known) {
        int64_t ds64 = chunk_size_offset(header, count, "ds64");
        if (ds64) {
            put_little(header + ds64 + 4, all, 8);
            put_little(header + ds64 + 12, bytes, 8);
            put_little(header + ds64 + 20, (uint64_t)s->frames, 8);
        }
    } else if (count >= 24 && memcmp(header, ".snd", 4) == 0) {
        for (int i = 0; i < 4; i++)
            header[8 + i] = (unsigned char)((bytes < UINT32_MAX ? bytes : UINT32_MAX) >> (24 - 8 * i));
    }
}

static sf_count_t sink_length(void *sink) {
    const gc_sink *s = sink;
    return s->sent + s->header_bytes;
}

static sf_count_t sink_seek(sf_count_t offset, int whence, void *sink) {
    gc_sink *s = sink;
    int64_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->at : s->sent + s->header_bytes, to;
    if (__builtin_add_overflow(from, offset, &to) || to < 0)
        return -1;
    return s->at = to;
}

static sf_count_t sink_read(void *bytes, sf_count_t count, void *sink) {
    (void)bytes;
    (void)count;
    (void)sink;
    return 0;
}

/* Writes bytes to the pipe. After the first error all further bytes are dropped: an encoder may continue to write while
 * it is closed. */
static bool send_bytes(gc_sink *s, const void *bytes, int64_t count) {
    if (!s->err && count > 0)
        s->err = gc_pipe_out_write(&s->out, bytes, count);
    s->sent += s->err ? 0 : count;
    return !s->err;
}

/* Completes and sends the pending header. */
static bool send_header(gc_sink *s) {
    int64_t count = s->header_bytes;
    s->header_bytes = 0;
    complete_header(s, s->header, count);
    return send_bytes(s, s->header, count);
}

/* libsndfile writes the header when it opens the sink, and again before the first sample if a setting has changed. A
 * write at position 0 is therefore kept until bytes behind it arrive. */
static sf_count_t sink_write(const void *bytes, sf_count_t count, void *sink) {
    gc_sink *s = sink;
    if (s->sent == 0 && s->at == 0 && count <= (sf_count_t)sizeof s->header) {
        memcpy(s->header, bytes, (size_t)count);
        s->header_bytes = s->at = count;
        return s->err ? 0 : count;
    }
    if (s->header_bytes && !send_header(s))
        return 0;
    int64_t dropped = gc_min(count, gc_max(0, s->sent - s->at)); /* bytes at positions that were already sent */
    if (!send_bytes(s, (const char *)bytes + dropped, count - dropped))
        return dropped;
    s->at += count;
    return count;
}

int gc_sink_end(gc_sink *s) {
    if (s->header_bytes)
        (void)send_header(s);
    return s->err;
}

static sf_count_t sink_tell(void *sink) {
    return ((gc_sink *)sink)->at;
}

SF_VIRTUAL_IO *gc_sink_callbacks(void) {
    static SF_VIRTUAL_IO io = {sink_length, sink_seek, sink_read, sink_write, sink_tell};
    return &io;
}
