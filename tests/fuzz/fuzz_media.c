/* Decodes files of the module gpuconv-media (M4A, AAC, MP3, Ogg, Opus, WMA, Matroska and others): a file gives exactly
 * the frames that the module reports, or is refused with a reason. The decoders belong to other projects. */
#include "libgpuconv/audio/media.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
gc_media_decode_function gpuconv_media_decode;

static void require(bool holds) {
    if (!holds)
        abort();
}

/* Limits the decoded samples: a few bytes may stand for hours of silence. */
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    const struct rlimit limit = {64 << 20, 64 << 20};
    (void)argc;
    (void)argv;
    require(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    return setrlimit(RLIMIT_FSIZE, &limit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const volatile int cancel = 0;
    gc_media media;
    struct stat st;
    int from = memfd_create("media", MFD_CLOEXEC), to = memfd_create("samples", MFD_CLOEXEC);
    require(from >= 0 && to >= 0 && write(from, data, size) == (ssize_t)size);
    if (gpuconv_media_decode(from, (int64_t)size, to, &cancel, &media)) {
        require(media.recognised && media.frames > 0 && media.channels > 0 && media.rate > 0 && *media.name);
        require(fstat(to, &st) == 0 && st.st_size == media.frames * media.channels * (off_t)sizeof(float));
    } else {
        require(*media.why);
    }
    close(from);
    close(to);
    return 0;
}
