/* Decides how many outputs one channel of input has, and fits each response to them: a list may hold responses of one
 * and of two channels, and the convolver crossfades only between responses of the same shape. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"
#include "libgpuconv/core/memory.h"
#include "libgpuconv/file/job.h"
#include "libgpuconv/ir/object.h"
#include "player_state.h"

#include <string.h>

/* Returns the channels of a file of audio, 2 for a SOFA file; 0: it is neither, such as a matrix, or cannot be read. */
static int count_channels(const char *path) {
    const gc_input_options wish = {.kind = GC_INPUT_REGULAR};
    gc_reader *reader;
    if (gc_is_sofa(path))
        return 2;
    if (gc_reader_open(path, &wish, &reader, NULL))
        return 0;
    int channels = gc_reader_info(reader)->channels;
    gc_reader_free(reader);
    return channels;
}

bool gc_player_is_widened(const gc_player_config *config, int inputs) {
    bool one = false, two = false;
    for (int i = 0; inputs == 1 && i < config->response_count; i++) {
        const int channels = count_channels(config->responses[i]);
        one = one || channels == 1;
        two = two || channels == 2 || (channels == 4 && config->layout == GPUCONV_LAYOUT_STEREO);
    }
    return one && two;
}

gpuconv_status gc_player_widen(gpuconv_ir **ir, gpuconv_error *error) {
    gpuconv_ir *from = *ir;
    if (from->inputs != 1 || from->outputs != 1 || from->routes != 1)
        return GPUCONV_OK;
    gpuconv_ir *made = gc_ir_blank(1, 2, 1, 2, from->frames, from->rate);
    if (!made || (from->history && !(made->history = strdup(from->history)))) {
        gpuconv_ir_free(made);
        return gc_fail_memory(error, "the response");
    }
    memcpy(made->taps, gc_ir_plane(from, from->route[0].plane), (size_t)from->frames * sizeof *made->taps);
    for (int o = 0; o < 2; o++)
        made->route[o] = (gc_route){0, o, 0};
    made->lead = from->lead;
    made->routed = true;
    gpuconv_ir_free(from);
    *ir = made;
    return GPUCONV_OK;
}
