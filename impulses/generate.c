/* Writes the impulse responses of this folder: generate-impulses OUTDIR.
 *
 * Every response has unity gain for pink noise: its power, averaged over the logarithm of frequency, is 1. The spectra
 * of speech and music are close to pink, so the wet sound is about as loud as the dry one, and responses can be
 * exchanged without a change in loudness. The samples in samples/, which peak at -6 dBFS, stay below -3.5 dBFS through
 * every response. */
#include "collection.h"
#include "libtools/room/synth.h"

#include <math.h>
#include <stdlib.h>

#define SOURCE "impulses/generate.c"

static const struct room small_room = {
    .size = {4.43, 3.37, 2.58},
    .decay = {0.46, 0.42, 0.38, 0.36, 0.355, 0.345, 0.33, 0.31, 0.30},
    .share = {1.0, 0.8, 1.2, 0.9, 1.5, 0.7},
    .mixing = 0.08,
    .seconds = 0.45,
    .sources = 1,
    .receivers = 1,
    .source = {{.at = {1.52, 1.37, 1.31}, .omni = 1}},
    .receiver = {{.at = {2.61, 1.92, 1.43}, .azimuth = 207, .omni = 0.6}},
};

static const struct room bathroom = {
    .size = {2.71, 1.93, 2.47},
    .decay = {0.9, 0.95, 1.05, 1.15, 1.2, 1.15, 1.0, 0.8, 0.6},
    .share = {1.0, 1.1, 0.9, 1.3, 0.8, 1.0},
    .mixing = 0.12,
    .seconds = 1.2,
    .sources = 1,
    .receivers = 1,
    .source = {{.at = {0.83, 0.71, 1.52}, .omni = 1}},
    .receiver = {{.at = {1.67, 1.22, 1.39}, .azimuth = 210, .omni = 0.8}},
};

static const struct room studio = {
    .size = {7.83, 6.12, 3.41},
    .decay = {0.60, 0.58, 0.62, 0.66, 0.65, 0.62, 0.57, 0.52, 0.46},
    .share = {0.9, 1.1, 1.0, 1.2, 0.5, 1.5},
    .mixing = 0.09,
    .seconds = 0.75,
    .sources = 1,
    .receivers = 2,
    .source = {{.at = {2.31, 2.62, 1.42}, .omni = 1}},
    .receiver = {{.at = {4.13, 2.33, 1.63}, .azimuth = 225, .omni = 0.55},
                 {.at = {4.13, 2.91, 1.63}, .azimuth = 135, .omni = 0.55}},
};

static const struct room hall = {
    .size = {43.1, 23.7, 15.3},
    .decay = {2.5, 2.4, 2.25, 2.15, 2.15, 2.1, 2.0, 1.8, 1.6},
    .share = {0.7, 1.2, 0.8, 0.9, 1.6, 0.7},
    .mixing = 0.17,
    .seconds = 2.15,
    .sources = 1,
    .receivers = 2,
    .source = {{.at = {7.3, 12.9, 1.6}, .omni = 1}},
    .receiver = {{.at = {16.1, 12.2, 3.1}, .omni = 1}, {.at = {16.1, 13.6, 3.1}, .omni = 1}},
};

static const struct room hall_true_stereo = {
    .size = {34.7, 21.3, 13.1},
    .decay = {1.95, 1.85, 1.75, 1.7, 1.68, 1.65, 1.55, 1.4, 1.25},
    .share = {0.7, 1.2, 0.9, 0.8, 1.6, 0.7},
    .mixing = 0.15,
    .seconds = 1.75,
    .sources = 2,
    .receivers = 2,
    .source = {{.at = {5.1, 7.7, 1.5}, .omni = 1}, {.at = {5.1, 14.1, 1.5}, .omni = 1}},
    .receiver = {{.at = {13.2, 10.3, 2.7}, .azimuth = 225, .omni = 0.55},
                 {.at = {13.2, 11.5, 2.7}, .azimuth = 135, .omni = 0.55}},
};

static const struct room cathedral = {
    .size = {76.3, 25.9, 24.1},
    .decay = {7.2, 7.1, 6.9, 6.6, 6.7, 6.5, 5.8, 4.6, 3.5},
    .share = {0.9, 1.1, 1.1, 1.0, 1.2, 0.8},
    .mixing = 0.3,
    .seconds = 6.9,
    .sources = 1,
    .receivers = 2,
    .source = {{.at = {19.4, 13.9, 1.7}, .omni = 1}},
    .receiver = {{.at = {31.6, 12.9, 2.9}, .omni = 1}, {.at = {31.6, 14.9, 2.9}, .omni = 1}},
};

/* Normalises, trims, writes and frees a response. @param made whether the synthesis succeeded */
static void finish(bool made, gc_sound *sound, const char *folder, const struct label *label) {
    if (!made || !gc_sound_normalize(sound))
        fail("%s: out of memory", label->file);
    gc_sound_trim(sound, ldexp(0.5, -23));
    audio_write(sound, folder, label);
    gc_sound_free(sound);
}

int main(int argc, char **argv) {
    if (argc != 2)
        fail("usage: generate-impulses OUTDIR");
    const char *folder = argv[1];
    struct plate plate = gc_plate_default();
    gc_sound sound;

    finish(gc_cabinet_response(&sound), &sound, folder,
           &(struct label){"cabinet.flac", SOURCE, "guitar speaker cabinet, four cones, close microphone", 24});
    finish(gc_telephone_response(&sound), &sound, folder,
           &(struct label){"telephone.flac", SOURCE, "telephone handset and line", 24});
    finish(gc_room_response(&small_room, 1, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"small-room.flac", SOURCE, "furnished small room, RT60 0.35 s", 24});
    finish(gc_room_response(&bathroom, 2, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"bathroom.flac", SOURCE, "tiled bathroom, RT60 1.1 s", 24});
    finish(gc_room_response(&studio, 3, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"studio.flac", SOURCE, "wooden recording room, stereo pair, RT60 0.6 s", 24});
    finish(gc_room_response(&hall, 4, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"hall.flac", SOURCE, "concert hall, spaced stereo pair, RT60 2 s", 24});
    finish(gc_room_response(&hall_true_stereo, 5, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"hall-true-stereo.flac", SOURCE,
                           "chamber hall, RT60 1.6 s, four paths in the order LL LR RL RR", 24});
    finish(gc_room_response(&cathedral, 6, &sound, NULL) == GPUCONV_OK, &sound, folder,
           &(struct label){"cathedral.flac", SOURCE, "stone cathedral, spaced stereo pair, RT60 6 s", 24});
    finish(gc_plate_response(&plate, &sound), &sound, folder,
           &(struct label){"plate.flac", SOURCE, "steel plate, one driver and two pickups, RT60 2 s", 24});
    finish(gc_spring_response(2.6, &sound), &sound, folder,
           &(struct label){"spring.flac", SOURCE, "three-spring tank, RT60 2.5 s", 24});
    return 0;
}
