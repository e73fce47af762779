/* Fuzzes the text files of space: orientations of a head, directions of loudspeakers, and paths. */
#include "fuzz.h"
#include "gpuconv/play/player_state.h"
#include "libgpuconv/ir/spatial.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static gc_directions directions;
    const char *path = fuzz_file("file", data, size);
    gc_follow *follow;
    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_status status = gc_follow_open(path, &follow, &error);
    if (!status == !follow || (status && !*error.message))
        abort();
    for (int i = 0; follow && i < 20; i++) {
        double at[3];
        gc_follow_at(follow, i * 0.37, at);
        if (!(fabs(at[0]) <= 180 && fabs(at[1]) <= 180 && fabs(at[2]) <= 180))
            abort();
    }
    gc_follow_free(follow);
    gpuconv_path *way;
    for (int channels = 1; channels <= 3; channels += 2) {
        status = gpuconv_path_load(path, channels, &way, &error);
        if (!status == !way || (status && !*error.message))
            abort();
        gpuconv_path_free(way);
    }
    status = gc_directions_of_layout(path, &directions, &error);
    if (!status && (directions.count < 1 || directions.count > GC_MAX_CHANNELS))
        abort();
    return 0;
}
