/* The module gpuconv-media: decodes one audio stream with libavformat and libavcodec. It reads nothing but the given
 * descriptor, and accepts only containers of audio files: playlists and the like, which name other files, are refused.
 */
#include "media.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswresample/swresample.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IO_BYTES = 1 << 16, PROBE_BYTES = 1 << 16, CHANNELS_MOST = 1024, PADDING_MOST = 4096 };

gc_media_decode_function gpuconv_media_decode __attribute__((visibility("default")));

static const char *const containers[] = {"mov,mp4,m4a,3gp,3g2,mj2",
                                         "aac",
                                         "asf",
                                         "matroska,webm",
                                         "amr",
                                         "ac3",
                                         "eac3",
                                         "ape",
                                         "wv",
                                         "tta",
                                         "mp3",
                                         "ogg",
                                         "flac",
                                         "loas"};

typedef struct decoding {
    int from, to;
    int64_t size, at;
    const volatile int *cancel;
    AVIOContext *io;
    AVFormatContext *format;
    AVCodecContext *codec;
    SwrContext *convert;
    AVPacket *packet;
    AVFrame *frame;
    int sample_format; /* of the first frame */
    float *samples;    /* of one frame */
    int capacity;      /* frames */
    gc_media *media;
} decoding;

static bool fail(decoding *d, const char *what, int err) {
    char text[AV_ERROR_MAX_STRING_SIZE] = "";
    if (err == -1) /* some decoders return it; as an error of the system it would be a missing permission */
        err = 0;
    if (err)
        (void)av_strerror(err, text, sizeof text);
    (void)snprintf(d->media->why, sizeof d->media->why, "%s%s%s", what, err ? ": " : "", text);
    return false;
}

static int read_bytes(void *context, uint8_t *to, int count) {
    decoding *d = context;
    ssize_t n;
    if (d->cancel && *d->cancel)
        return AVERROR_EXIT;
    do
        n = pread(d->from, to, (size_t)count, d->at);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return AVERROR(errno);
    d->at += n;
    return n > 0 ? (int)n : AVERROR_EOF;
}

static int64_t seek(void *context, int64_t offset, int whence) {
    decoding *d = context;
    if (whence == AVSEEK_SIZE)
        return d->size;
    const int mode = whence & ~AVSEEK_FORCE;
    int64_t at = mode == SEEK_SET ? 0 : mode == SEEK_CUR ? d->at : d->size;
    if (__builtin_add_overflow(at, offset, &at) || at < 0)
        return AVERROR(EINVAL);
    return d->at = at;
}

/* Finds out the container. @return NULL: not one of ours */
static const AVInputFormat *probe(decoding *d) {
    const AVInputFormat *format = NULL;
    int score = av_probe_input_buffer2(d->io, &format, "", NULL, 0, PROBE_BYTES);
    if (score < AVPROBE_SCORE_EXTENSION || !format)
        return NULL;
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        if (strcmp(format->name, containers[i]) == 0)
            return format;
    return NULL;
}

/* Opens the container and its best audio stream. */
static bool open_stream(decoding *d, const AVInputFormat *format, int *stream) {
    const AVCodec *codec = NULL;
    d->format = avformat_alloc_context();
    if (!d->format)
        return fail(d, "out of memory", 0);
    d->format->pb = d->io;
    d->format->flags |= AVFMT_FLAG_CUSTOM_IO;
    if (av_opt_set(d->format, "protocol_whitelist", "", 0) < 0)
        return fail(d, "libavformat cannot be kept from other files", 0);
    int err = avformat_open_input(&d->format, "", format, NULL);
    if (err < 0)
        return fail(d, "the container is damaged", err);
    err = avformat_find_stream_info(d->format, NULL);
    if (err < 0)
        return fail(d, "the container is damaged", err);
    *stream = av_find_best_stream(d->format, AVMEDIA_TYPE_AUDIO, -1, -1, &codec, 0);
    if (*stream < 0 || !codec)
        return fail(d, "holds no audio that libavcodec decodes", 0);
    d->codec = avcodec_alloc_context3(codec);
    if (!d->codec)
        return fail(d, "out of memory", 0);
    err = avcodec_parameters_to_context(d->codec, d->format->streams[*stream]->codecpar);
    d->codec->pkt_timebase = d->format->streams[*stream]->time_base; /* needed to cut off the encoder's padding */
    d->codec->thread_count = 1;
    if (err >= 0)
        err = avcodec_open2(d->codec, codec, NULL);
    if (err < 0)
        return fail(d, "the codec cannot be opened", err);
    (void)snprintf(d->media->name, sizeof d->media->name, "%.30s, %.40s", format->long_name, codec->name);
    return true;
}

/* Makes the conversion to floats for the first frame; later frames must be alike. */
static bool check_frame(decoding *d) {
    AVFrame *f = d->frame; /* libswresample 4 takes its layout without const */
    const int channels = f->ch_layout.nb_channels;
    if (d->convert)
        return (channels == d->media->channels && f->sample_rate == d->media->rate && f->format == d->sample_format) ||
               fail(d, "the channels, the rate or the sample format change in the middle", 0);
    if (channels < 1 || channels > CHANNELS_MOST || f->sample_rate < 1)
        return fail(d, "an unsupported number of channels or rate", 0);
    d->media->channels = channels;
    d->media->rate = f->sample_rate;
    d->sample_format = f->format; /* the conversion would read another one beyond its end */
    int err = swr_alloc_set_opts2(&d->convert, &f->ch_layout, AV_SAMPLE_FMT_FLT, f->sample_rate, &f->ch_layout,
                                  (enum AVSampleFormat)f->format, f->sample_rate, 0, NULL);
    if (err >= 0)
        err = swr_init(d->convert);
    return err >= 0 || fail(d, "the samples cannot be converted", err);
}

static bool write_all(decoding *d, const void *bytes, size_t count) {
    while (count > 0) {
        ssize_t n = write(d->to, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fail(d, "the decoded samples cannot be stored", AVERROR(errno));
        bytes = (const char *)bytes + n;
        count -= (size_t)n;
    }
    return true;
}

/* Converts and writes the current frame. */
static bool write_frame(decoding *d) {
    if (!check_frame(d))
        return false;
    const int n = d->frame->nb_samples;
    if (n > d->capacity) {
        float *larger = realloc(d->samples, (size_t)n * (size_t)d->media->channels * sizeof *larger);
        if (!larger)
            return fail(d, "out of memory", 0);
        d->samples = larger;
        d->capacity = n;
    }
    uint8_t *out = (uint8_t *)d->samples;
    int got = swr_convert(d->convert, &out, n, (const uint8_t **)d->frame->extended_data, n);
    if (got < 0)
        return fail(d, "the samples cannot be converted", got);
    d->media->frames += got;
    return write_all(d, d->samples, (size_t)got * (size_t)d->media->channels * sizeof(float));
}

/* Feeds a packet, or NULL at the end, and writes all frames that are complete. */
static bool decode_packet(decoding *d, const AVPacket *packet) {
    int err = avcodec_send_packet(d->codec, packet);
    if (err < 0 && err != AVERROR_EOF)
        return fail(d, "the stream is damaged", err);
    while ((err = avcodec_receive_frame(d->codec, d->frame)) >= 0)
        if (!write_frame(d))
            return false;
    return err == AVERROR(EAGAIN) || err == AVERROR_EOF || fail(d, "the stream is damaged", err);
}

/* Cuts off the zeros with which the encoder filled its last frame, if the container states the length in samples. */
static bool cut_padding(decoding *d, const AVStream *stream) {
    const int64_t stated = stream->duration; /* the least integer: not stated */
    const bool in_samples = stream->time_base.num == 1 && stream->time_base.den == d->media->rate;
    if (!in_samples || stated <= 0 || stated >= d->media->frames || d->media->frames - stated > PADDING_MOST)
        return true;
    d->media->frames = stated;
    return ftruncate(d->to, stated * d->media->channels * (off_t)sizeof(float)) == 0 ||
           fail(d, "the decoded samples cannot be cut", AVERROR(errno));
}

static bool decode_all(decoding *d, int stream) {
    int err;
    while ((err = av_read_frame(d->format, d->packet)) >= 0) {
        bool good = d->packet->stream_index != stream || decode_packet(d, d->packet);
        av_packet_unref(d->packet);
        if (!good)
            return false;
        if (d->cancel && *d->cancel)
            return fail(d, "interrupted", 0);
    }
    if (err != AVERROR_EOF)
        return fail(d, "the container is damaged", err);
    return decode_packet(d, NULL) && cut_padding(d, d->format->streams[stream]) &&
           (d->media->frames > 0 || fail(d, "holds no frames", 0));
}

bool gpuconv_media_decode(int from, int64_t size, int to, const volatile int *cancel, gc_media *media) {
    decoding d = {.from = from, .to = to, .size = size, .cancel = cancel, .media = media};
    int stream = -1;
    av_log_set_level(AV_LOG_QUIET);
    *media = (gc_media){.frames = 0};
    unsigned char *buffer = av_malloc(IO_BYTES);
    d.io = buffer ? avio_alloc_context(buffer, IO_BYTES, 0, &d, read_bytes, NULL, seek) : NULL;
    d.packet = av_packet_alloc();
    d.frame = av_frame_alloc();
    bool good = d.io && d.packet && d.frame ? true : fail(&d, "out of memory", 0);
    const AVInputFormat *format = good ? probe(&d) : NULL;
    media->recognised = format != NULL;
    if (good && !format)
        good = fail(&d, "not a container that the module reads", 0);
    good = good && open_stream(&d, format, &stream) && decode_all(&d, stream);
    if (!d.io)
        av_free(buffer);
    free(d.samples);
    swr_free(&d.convert);
    avcodec_free_context(&d.codec);
    avformat_close_input(&d.format);
    av_frame_free(&d.frame);
    av_packet_free(&d.packet);
    if (d.io)
        av_freep(&d.io->buffer);
    avio_context_free(&d.io);
    return good;
}
