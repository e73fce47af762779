/* Reading and writing audio files and pipes through libsndfile, which only this folder includes. Samples are
 * interleaved and have the type that the file stores (gc_audio_info.pcm). `options` and `cancel` parameters may be
 * NULL. */
#ifndef GC_AUDIO_FILE_H
#define GC_AUDIO_FILE_H

#include "gpuconv.h"
#include "libgpuconv/core/files.h"
#include "libgpuconv/core/limits.h"
#include "libgpuconv/dsp/pcm.h"

typedef struct gc_reader gc_reader;

typedef struct gc_audio_info {
    int channels, rate;
    int64_t frames;    /* -1: unknown until the end of the stream */
    int file_format;   /* libsndfile's code, for gc_writer_new */
    gc_pcm pcm;        /* the sample type of gc_reader_read */
    uint32_t speakers; /* of the channels, as bits of the mask of a WAV; 0: unknown, the usual ones of mono and stereo,
                          or in another order than that of the bits */
    const char *name;  /* container and encoding, such as "WAV, signed 16 bit PCM"; valid as long as the reader */
} gc_audio_info;

/* Returns the description of 32-bit float samples that were not read from a file, for gc_writer_new. */
gc_audio_info gc_audio_info_float(int channels, int rate, int64_t frames);

/* Returns the same for 24-bit integer samples. */
gc_audio_info gc_audio_info_s24(int channels, int rate, int64_t frames);

/* The kinds of files that are opened. */
typedef enum gc_input_kind {
    GC_INPUT_ANY,          /* regular files and pipes; no kind has devices, which may never end */
    GC_INPUT_REGULAR,      /* regular files: nothing that blocks or never ends */
    GC_INPUT_REGULAR_OR_FD /* also pipes that the process has open: "-", /dev/stdin, /dev/fd/N */
} gc_input_kind;

/* Options for reading. All zero: a file of any kind with a header. */
typedef struct gc_input_options {
    gc_input_kind kind;
    const char *raw;            /* RATE,CHANNELS,ENCODING of samples without a header; NULL: the file has a header */
    const volatile int *cancel; /* flag that is checked while a pipe blocks; NULL: none */
    bool keep_nonfinite;        /* deliver NaN and infinities unchanged instead of as 0 */
} gc_input_options;

/* Bytes of a stream that are copied into a temporary file at most: 4 GiB. Only a test changes it. */
extern int64_t gc_spool_most;

/* Opens a file with at least one channel and one frame; "-" is standard input. A file is refused that lacks samples
 * which its header states. From a pipe, a WAV or RF64 of PCM, float, mu-law or A-law and raw samples are streamed;
 * every other format is first copied to an unnamed file in $TMPDIR or /tmp. The error message begins with the path.
 * @return FILE, FORMAT, MEMORY, ARGUMENT (raw), CANCELLED */
gpuconv_status gc_reader_open(const char *path, const gc_input_options *options, gc_reader **reader,
                              gpuconv_error *error);

/* Calls gc_reader_open without options. */
gpuconv_status gc_reader_new(const char *path, gc_reader **reader, gpuconv_error *error);

/* As gc_reader_open, of a descriptor, which the reader owns from then on, also after a failure. `regular`: a regular
 * file of `size` bytes; otherwise the descriptor is read as a pipe. `name` is used in messages. */
gpuconv_status gc_reader_open_descriptor(int fd, bool regular, int64_t size, const char *name,
                                         const gc_input_options *options, gc_reader **reader, gpuconv_error *error);

/* Replaces the cancellation flag; NULL: none. */
void gc_reader_set_cancel(gc_reader *reader, const volatile int *cancel);

const gc_audio_info *gc_reader_info(const gc_reader *reader);

/* Sets the next frame to read, 0 .. the length of the file. The samples from there on are, bit for bit, those of the
 * whole file: of encodings whose decoder keeps a state, the frames before are decoded, from a safe place or from the
 * beginning on. @return FILE (a pipe), MEMORY, or as gc_reader_read */
gpuconv_status gc_reader_seek(gc_reader *reader, int64_t at, gpuconv_error *error);

/* Reads `frames` frames; *got is less only at the end of the file. @return FILE, FORMAT, CANCELLED */
gpuconv_status gc_reader_read(gc_reader *reader, void *raw, int64_t frames, int64_t *got, gpuconv_error *error);

/* As gc_reader_read, converted to float. */
gpuconv_status gc_reader_read_floats(gc_reader *reader, float *samples, int64_t frames, int64_t *got,
                                     gpuconv_error *error);

/* Counts the frames of a file whose length is unknown, by decoding it, for gc_reader_info. The length of a pipe stays
 * unknown. @return as gc_reader_read */
gpuconv_status gc_reader_count(gc_reader *reader, gpuconv_error *error);

/* Checks, at the end of the file, that it has given all frames of its header, and no more follow. @return FORMAT */
gpuconv_status gc_reader_check_end(gc_reader *reader, gpuconv_error *error);

/* Returns a note for the user of what the file holds and the reader does not read, such as "its last 200 bytes are no
 * whole MPEG frame and are not read"; "": it reads all. */
const char *gc_reader_note(const gc_reader *reader);

/* Returns the number of NaN and infinite samples that were read and delivered as 0. *first (may be NULL) gets the frame
 * of the first one, counted from the beginning of the file. */
int64_t gc_reader_nonfinite(const gc_reader *reader, int64_t *first);
void gc_reader_free(gc_reader *reader);

typedef struct gc_writer gc_writer;

/* Options for writing. All zero: the container of the path's extension and the encoding of the input. */
typedef struct gc_output_options {
    const char *format, *encoding; /* names such as "wav" and "s16"; NULL: from the path and the input */
    int compression;               /* of FLAC: 1 + the level, 0 to 8; 0: level 5 */
    gc_output_path_kind path_kind; /* whether the user or the program chose the path */
    const volatile int *cancel;    /* NULL: none */
} gc_output_options;

/* Opens a new file that takes the name `path` on commit (core/files.h). Without options the container follows the
 * extension; the encoding is that of `like` if the container supports it, else the nearest lossless one, else the
 * container's own. A WAV that `frames` (-1: unknown) would take past 4 GiB becomes RF64 if RF64 supports the encoding.
 * A WAV or RF64 gets the mask like->speakers; 0: the usual one of mono and stereo, none of more channels. "-" is
 * standard output, by default a WAV. A named pipe is written in place; this blocks until it has a reader.
 * @return FILE, FORMAT (unknown extension, unsupported channels or rate), ARGUMENT (unknown names, compression of
 * another format), MEMORY, CANCELLED */
gpuconv_status gc_writer_new(const char *path, const gc_output_options *options, const gc_audio_info *like,
                             int channels, int64_t frames, gc_writer **writer, gpuconv_error *error);

/* Copies the metadata that the output format supports: strings (title, artist, comment, ...), cue points with their
 * names, loops, the broadcast, cart and iXML chunks, and, if the output has the `same_channels`, their speakers;
 * gc_writer_note then names the metadata that are left out. Call before the first sample is written. @return MEMORY */
gpuconv_status gc_metadata_copy(const gc_reader *from, gc_writer *to, bool same_channels, gpuconv_error *error);

/* Writes the sample type that gc_writer_new would choose for these arguments to *pcm, without opening a file.
 * @return FORMAT */
gpuconv_status gc_writer_predict_pcm(const char *path, const gc_output_options *options, const gc_audio_info *like,
                                     int channels, int64_t frames, gc_pcm *pcm, gpuconv_error *error);

/* Returns the sample type that gc_writer_write expects. */
gc_pcm gc_writer_pcm(const gc_writer *writer);

/* Returns true if the file stores the samples unchanged (gc_format_is_plain), so that writing is copying. */
bool gc_writer_is_plain(const gc_writer *writer);
int gc_writer_channels(const gc_writer *writer);

/* Returns the names of the container and the encoding. */
const char *gc_writer_name(const gc_writer *writer);

/* Returns a note for the user if a compressed encoding of the input was replaced or metadata are left out, such as "WAV
 * cannot hold MPEG Layer III; written as 32 bit float", or if input and output have more bits than a float; ""
 * otherwise. */
const char *gc_writer_note(const gc_writer *writer);

/* Writes `frames` interleaved frames. @return FILE, CANCELLED (while a pipe blocked) */
gpuconv_status gc_writer_write(gc_writer *writer, const void *raw, int64_t frames, gpuconv_error *error);

/* Returns the number of NaN and infinite samples that were written as floats: input of more than about 1e34 overflows
 * in the transforms. *first (may be NULL) gets the frame of the first one. */
int64_t gc_writer_nonfinite(const gc_writer *writer, int64_t *first);

/* Forgets that a write has failed, so that a file of plain samples can be committed with what was written before. */
void gc_writer_forgive(gc_writer *writer);

/* Completes the file, which does not have its name yet, and stores its size. @return FILE, CANCELLED */
gpuconv_status gc_writer_complete(gc_writer *writer, int64_t *bytes, gpuconv_error *error);

/* Completes the file, if it is not complete, and gives it its name, replacing an existing file. The writer must still
 * be freed. @return FILE, CANCELLED */
gpuconv_status gc_writer_commit(gc_writer *writer, gpuconv_error *error);

/* Frees the writer. Without a previous commit, the file is removed. */
void gc_writer_free(gc_writer *writer);

/* How to read the file of a response, beyond what the file states. */
typedef struct gc_ir_form {
    gc_input_kind kind; /* the kinds of files that are read */
    const char *raw;    /* as in gc_input_options */
    double rate;        /* of a file that states none; 0: such a file is refused */
} gc_ir_form;

/* As gpuconv_ir_load, of a file of any form but those of matrices and SOFA. */
gpuconv_status gc_ir_load_from(const char *path, const gc_ir_form *form, gpuconv_ir **ir, gpuconv_error *error);

/* Writes an impulse response to a new file, one channel per plane, as 32-bit floats or 24-bit integers.
 * @return FILE, FORMAT (for example a container without floats), MEMORY */
gpuconv_status gc_ir_write(const gpuconv_ir *ir, const char *path, bool floats, gpuconv_error *error);

/* Adds a text to the writer's note. */
void gc_writer_add_note(gc_writer *writer, const char *text);

/* Returns the mask of speakers that the file gets; 0: none. */
uint32_t gc_writer_speakers(const gc_writer *writer);

/* Return libsndfile's object (SNDFILE *), for use inside the audio folder. */
void *gc_reader_sndfile(const gc_reader *reader);
void *gc_writer_sndfile(const gc_writer *writer);

/* ---- Names that a user typed ---- */

/* Returns true if `name` is a container such as wav. */
bool gc_is_format_name(const char *name);

/* Returns true if `name` is a sample encoding such as s16. */
bool gc_is_encoding_name(const char *name);

/* Returns true if `text` describes raw samples: RATE,CHANNELS,ENCODING. */
bool gc_is_raw_format(const char *text);

#endif
