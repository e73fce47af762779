/* gpuconv ir synth: synthesizes impulse responses. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/core/number.h"
#include "libtools/room/synth.h"

#include <string.h>

static struct {
    char *size;
    double rt60, distance, rate;
    int channels;
    long long seed;
} synth = {.channels = 2, .rate = 48000, .seed = 1};

static const char words_kind[] = "room|plate|spring|cabinet|telephone";

static bool parse_size(const char *text, double size[3]) {
    const int axes = gc_numbers_parse(text, "x,", size, 3);
    for (int axis = 0; axis < axes; axis++)
        if (!(size[axis] > 0))
            return false;
    return axes > 1;
}

static int run_synth(const char **arguments, int count) {
    gc_synth settings = gc_synth_default();
    gpuconv_error error = {0};
    if (count != 2)
        return gc_print_error(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR, not %d words; try --help", count);
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    if (synth.size && !parse_size(synth.size, settings.size))
        return gc_print_error(GC_EXIT_USAGE, "--size '%.60s': metres such as 8x6x3.2, of a plate 2x1; try --help",
                              synth.size);
    settings.kind = (gc_synth_kind)kind;
    settings.rt60 = synth.rt60;
    settings.distance = synth.distance;
    settings.channels = synth.channels;
    settings.rate = synth.rate;
    settings.seed = (uint64_t)synth.seed;
    (void)gc_catch_signals();
    gpuconv_status status = gc_synth_write(&settings, arguments[1], &error);
    if (status)
        return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s",
                              error.message);
    return GC_EXIT_DONE;
}

static struct poptOption synth_table[] = {
    {"size", '\0', POPT_ARG_STRING, &synth.size, 0,
     "room, plate: size in metres (default: 8x6x3.2 for a room, 2.02x0.993 for a plate)", "XxYxZ"},
    {"rt60", '\0', POPT_ARG_DOUBLE, &synth.rt60, GC_RANGE_RT60,
     "room, plate: reverberation time (T30) of every channel at 1 kHz, with the absorption of air (default: from the volume "
     "of a room, 2.1 for a plate)",
     "SECONDS"},
    {"distance", '\0', POPT_ARG_DOUBLE, &synth.distance, GC_RANGE_DISTANCE,
     "room: distance from the source to the microphones (default: 0.35 of the room's length)", "METRES"},
    {"channels", '\0', POPT_ARG_INT, &synth.channels, GC_RANGE_SYNTH_CHANNELS,
     "room: 1, 2, or 4 for true stereo (default: 2)", "COUNT"},
    {"rate", '\0', POPT_ARG_DOUBLE, &synth.rate, GC_RANGE_RATE, "sampling rate (default: 48000)", "HZ"},
    {"seed", '\0', POPT_ARG_LONGLONG, &synth.seed, GC_RANGE_ANY_COUNT, "room: seed of its diffuse tail (default: 1)",
     "NUMBER"},
    GC_OPTIONS_END};

const gc_command gc_command_ir_synth = {
    .name = "gpuconv ir synth",
    .arguments = "room|plate|spring|cabinet|telephone IR",
    .about = "Synthesizes the impulse response of a room, a plate, a spring, a guitar cabinet or a telephone.",
    .details =
        "A room is made of image sources and a diffuse tail, a steel plate mode by mode, a spring tank by its "
        "dispersion. The response has unity gain for pink noise. The reverberation time of a room is 1.12 times as "
        "long at 63 Hz as at 1 kHz; above 1 kHz it falls with the absorption of walls and air, which alone allows "
        "5.9 s at 4 kHz and 1.7 s at 8 kHz. A time at 1 kHz that the size does not allow is refused.",
    .options = synth_table,
    .run = run_synth,
    .examples = {{"gpuconv ir synth room room.wav --size 12x9x4 --rt60 1.5", "makes a stereo response of a room"},
                 {"gpuconv ir synth plate plate.flac --rate 44100", "makes a plate at 44100 Hz"}}};
