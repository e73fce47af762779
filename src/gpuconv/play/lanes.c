/* Decides into how many inputs of the convolver the player's channels go. */
#include "libgpuconv/audio/file.h"
#include "player_state.h"

/* Returns the channels of a file of audio; 0: it is none, such as a matrix, or cannot be read. */
static int count_channels(const char *path) {
    gc_reader *reader;
    if (gc_reader_open(path, NULL, &reader, NULL))
        return 0;
    int channels = gc_reader_info(reader)->channels;
    gc_reader_free(reader);
    return channels;
}

int gc_player_lanes(const gc_player_config *config, int inputs, bool *widened) {
    bool seen[5] = {false};
    *widened = false;
    if (inputs != 1)
        return inputs;
    for (int i = 0; i < config->response_count; i++) {
        int channels = count_channels(config->responses[i]);
        seen[channels < 5 ? channels : 0] = true;
    }
    *widened = seen[4];
    return seen[4] || (seen[1] && seen[2]) ? 2 : 1;
}
