/* Properties of libsndfile's formats. A format is libsndfile's code: container | encoding | byte order. */
#ifndef GC_AUDIO_FORMAT_H
#define GC_AUDIO_FORMAT_H

#include "gpuconv.h"
#include "libgpuconv/dsp/pcm.h"

#include <sndfile.h>
#include <stdbool.h>
#include <stddef.h>

/* Calls sf_open_virtual; thread-safe. Every file must be opened by this function or the next one. */
SNDFILE *gc_sndfile_open(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context);

/* Repeats a failed gc_sndfile_open while no other thread opens a file, to get the reason of the failure. `info` and
 * `context` must be in the state that they had for the first call. @return NULL: `why` (`room` bytes) has the reason;
 * not NULL: the file was opened this time */
SNDFILE *gc_sndfile_open_for_reason(SF_VIRTUAL_IO *io, int mode, SF_INFO *info, void *context, char *why, size_t room);

/* Returns the sample type in which files of this format are read and written: lossless for all encodings of at most 32
 * bits. */
gc_pcm gc_format_pcm(int format);

/* Returns true if the file stores the sample type of gc_format_pcm unchanged: uncompressed and with all bits. */
bool gc_format_is_plain(int format);

/* Returns true if a file of this container is whole although nothing before its samples can be written after them, as
 * in a pipe. */
bool gc_format_streams(int format);

/* Returns the container of a path's extension, or 0 if the extension is unknown. */
int gc_container_of_path(const char *path);

/* Return the container or encoding of a name such as "wav" or "s16", or 0 if the name is unknown. */
int gc_container_from_name(const char *name);
int gc_encoding_from_name(const char *name);

/* Returns the name of an encoding; static. */
const char *gc_encoding_name_of(int encoding);

/* Parses the description of little-endian raw samples such as "48000,2,s16". Returns false if it is invalid. */
bool gc_format_parse_raw(const char *text, SF_INFO *info);

/* Returns true if libsndfile can write and read files of this complete format, tested in memory. */
bool gc_format_works(int format, int channels, int rate);

/* Writes a short file of a format in memory and reads it back. `fill` is called before its first sample is written,
 * `look` when it has been opened for reading. Returns false if the format cannot be written. */
bool gc_format_try(const SF_INFO *format, void (*fill)(void *context, SNDFILE *file),
                   void (*look)(void *context, SNDFILE *file), void *context);

/* Returns the format of `container` with `encoding`, or 0 if libsndfile cannot write it. */
int gc_format_exact(int container, int encoding, int channels, int rate);

/* Fails with the message "PATH: WHATWHY", in which libsndfile's message `why` loses its prefix and its full stop. */
gpuconv_status gc_format_fail(gpuconv_error *error, gpuconv_status status, const char *path, const char *what,
                              const char *why);

/* Returns the format of `container` with the encoding of `like`, or else the nearest encoding that works; 0 if the
 * container supports the channels or the rate with no encoding. */
int gc_format_nearest(int container, int like, int channels, int rate);

/* Returns true if the encoding is lossy or companded: a change of the encoding is then reported to the user. */
bool gc_format_is_compressed(int format);

/* Returns whether libsndfile's seeks in a format are exact: every sample, or block of samples, is decoded by itself. */
bool gc_format_seeks(int format);

/* Returns whether an encoding keeps more bits of a sample than a 32-bit float. */
bool gc_format_exceeds_float(int format);

/* Returns whether a file of this format has a mask of speakers in its header. */
bool gc_format_has_mask(int format);

/* Reads the speakers of a file's channels, as libsndfile's codes, into map[GC_MAX_CHANNELS]. Returns false if none is
 * known, or they are the usual ones of mono and stereo. *mask gets them as bits; 0: their order is another one. */
bool gc_format_read_speakers(SNDFILE *file, int channels, int *map, uint32_t *mask);

/* Returns a lower bound of the bytes per frame; 0 if none is known. */
double gc_format_frame_bytes(int format, int channels);

/* Returns the maximum file size that the container's size fields can state, or 0 if there is no limit. */
int64_t gc_format_max_bytes(int format);

/* Write the name of the container ("WAV"), of the encoding ("signed 16 bit PCM") and both ("WAV, signed 16 bit PCM").
 */
void gc_format_container_name(int format, char *name, size_t size);
void gc_format_encoding_name(int format, char *name, size_t size);
void gc_format_name(int format, char *name, size_t size);

#endif
