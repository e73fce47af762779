/* gpuconv ir synth: synthesizes impulse responses. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/core/os.h"
#include "libtools/room/room_set.h"
#include "libtools/room/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    char *size, *rt60, *distance, *absorption, *materials, *pattern, *receivers, *sofa;
    char **source, **receiver;
    double rate, images;
    int channels, ambisonic;
    long long seed, count;
} synth = {.rate = 48000, .seed = 1, .images = -1};

static const char words_kind[] = "room|plate|spring|cabinet|telephone";
/* ---- Runs -------------------------------------------------------------------------------------------------------- */

/* Sets the keys of a room from the options of the same names, of which `rest` says whether one is given besides size,
 * rt60 and distance. */
static int read_options(gc_room_set *set, bool *rest) {
    char *const texts[] = {synth.size,      synth.rt60,    synth.distance,  synth.absorption,
                           synth.materials, synth.pattern, synth.receivers, synth.sofa};
    static const char *const keys[] = {"size",      "rt60",    "distance",  "absorption",
                                       "materials", "pattern", "receivers", "sofa"};
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !status; i++)
        if (texts[i]) {
            *rest = *rest || i > 2;
            status = gc_room_set_put(set, keys[i], texts[i], &error);
        }
    for (char **s = synth.source; s && *s && !status; s++)
        status = gc_room_set_put(set, "source", *s, &error);
    for (char **s = synth.receiver; s && *s && !status; s++)
        status = gc_room_set_put(set, "receiver", *s, &error);
    if (status == GPUCONV_ERROR_ARGUMENT)
        return gc_print_error(GC_EXIT_USAGE, "--%s; try --help", error.message);
    *rest = *rest || synth.source || synth.receiver || synth.ambisonic || synth.count || synth.images >= 0;
    return gc_print_refusal(status, &error);
}

static int run_synth(const char **arguments, int count) {
    static gc_room_set set;
    gc_synth settings = gc_synth_default();
    gpuconv_error error = {0};
    bool drawn = false;
    if (count != 2)
        return gc_print_error(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR, not %d words; try --help", count);
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    gc_room_set_init(&set);
    const int status = read_options(&set, &drawn);
    if (status)
        return status;
    for (int a = 0; a < 3; a++)
        drawn = drawn || set.size[a].low < set.size[a].high;
    drawn = drawn || (synth.rt60 && strpbrk(synth.rt60, ",:")) || set.distance.low < set.distance.high;
    if (drawn && kind != GC_SYNTH_ROOM)
        return gc_print_error(GC_EXIT_USAGE, "places, walls, ranges and --count are those of a room, not of a %s",
                              arguments[0]);
    (void)gc_catch_signals();
    if (drawn) {
        if (synth.channels && set.receivers)
            return gc_print_error(
                GC_EXIT_USAGE,
                "--channels is for receivers that are drawn; leave out --receiver and --receivers; try --help");
        set.drawn = synth.channels ? synth.channels : 1;
        set.ambisonic = synth.ambisonic;
        set.images = synth.images;
        set.seed = (uint64_t)synth.seed;
        set.count = synth.count;
        gc_os_keep_freed_memory(); /* of one room for the next */
        return gc_print_refusal(gc_room_set_write(&set, synth.rate, arguments[1], &error), &error);
    }
    settings.kind = (gc_synth_kind)kind;
    for (int a = 0; a < 3; a++)
        settings.size[a] = set.size[a].low;
    settings.rt60 = set.rt60[0].low;
    settings.distance = set.distance.low;
    settings.channels = synth.channels ? synth.channels : settings.channels;
    settings.rate = synth.rate;
    settings.seed = (uint64_t)synth.seed;
    return gc_print_refusal(gc_synth_write(&settings, arguments[1], &error), &error);
}

static struct poptOption synth_table[] = {
    {"size", '\0', POPT_ARG_STRING, &synth.size, 0,
     "room, plate: size in metres (default: 8x6x3.2 for a room, 2.02x0.993 for a plate)", "XxYxZ"},
    {"rt60", '\0', POPT_ARG_STRING, &synth.rt60, 0,
     "room, plate: reverberation time, 0.1 to 20 (default: from the volume of a room, 2.1 for a plate)", "SECONDS"},
    {"distance", '\0', POPT_ARG_STRING, &synth.distance, 0,
     "room: distance from the source to the microphones, 0.3 to 200 (default: 0.35 of the room's length)", "METRES"},
    {"channels", '\0', POPT_ARG_INT, &synth.channels, GC_RANGE_SYNTH_CHANNELS,
     "room: 1, 2, or 4 for true stereo (default: 2)", "COUNT"},
    {"rate", '\0', POPT_ARG_DOUBLE, &synth.rate, GC_RANGE_RATE, "sampling rate (default: 48000)", "HZ"},
    {"seed", '\0', POPT_ARG_LONGLONG, &synth.seed, GC_RANGE_ANY_COUNT, "room: seed of all that is random (default: 1)",
     "NUMBER"},
    {"source", '\0', POPT_ARG_ARGV, &synth.source, 0, "a source at this place (default: drawn)", "X,Y,Z"},
    {"receiver", '\0', POPT_ARG_ARGV, &synth.receiver, 0,
     "a receiver at this place (default: drawn); azimuth and elevation say where it points (default: along x)",
     "X,Y,Z[,AZ,EL]"},
    {"receivers", '\0', POPT_ARG_STRING, &synth.receivers, 0, "receivers from a table of X Y Z [AZ EL]", "FILE"},
    {"absorption", '\0', POPT_ARG_STRING, &synth.absorption, 0,
     "absorption of the walls, 0 to 1: one number, or 6 (125 to 4000 Hz) or 9 octaves (62.5 Hz to 16 kHz) divided by "
     "commas; for six walls divided by slashes",
     "A[,A...][/A...]"},
    {"materials", '\0', POPT_ARG_STRING, &synth.materials, 0,
     "materials of the walls: one for all, or of x low, x high, y low, y high, floor, ceiling", "NAME[,NAME...]"},
    {"pattern", '\0', POPT_ARG_STRING, &synth.pattern, 0, "pattern of the receivers (default: omni)",
     "omni|wide-cardioid|cardioid|supercardioid|hypercardioid|figure-eight"},
    {"ambisonic", '\0', POPT_ARG_INT, &synth.ambisonic, GC_RANGE_ROOM_ORDER,
     "receivers of (N + 1)^2 channels, ACN and SN3D", "N"},
    {"sofa", '\0', POPT_ARG_STRING, &synth.sofa, 0,
     "receivers are a head of this set (.sofa), a channel for each ear, which looks along its axis", "SET"},
    {"images", '\0', POPT_ARG_DOUBLE, &synth.images, GC_RANGE_ROOM_IMAGES,
     "time from which noise takes the place of single reflections (default: from the volume)", "SECONDS"},
    {"count", '\0', POPT_ARG_LONGLONG, &synth.count, GC_RANGE_ROOM_COUNT,
     "rooms to write, IR-1 and so on, with a table, IR.csv", "N"},
    GC_OPTIONS_END};

static const gc_option_group synth_groups[] = {{"source", "Rooms with given or drawn places and walls"}, {NULL, NULL}};

const gc_command gc_command_ir_synth = {
    .name = "gpuconv ir synth",
    .arguments = "room|plate|spring|cabinet|telephone IR",
    .about = "Synthesizes the impulse response of a room, a plate, a spring, a guitar cabinet or a telephone.",
    .details =
        "A room is made of image sources and a diffuse tail, a steel plate mode by mode, a spring tank by its "
        "dispersion. The response has unity gain for pink noise. The reverberation time is T30 of every channel at 1 kHz, "
        "with the absorption of air. That of a room is 1.12 times as "
        "long at 63 Hz as at 1 kHz; above 1 kHz it falls with the absorption of walls and air, which alone allows "
        "5.9 s at 4 kHz and 1.7 s at 8 kHz. A time at 1 kHz that the size does not allow is refused.\n\n"
        "With places, walls, ranges or --count a room is simulated as it is described: --rt60 is that of the walls alone, "
        "one time or one for each of 6 or 9 octaves, 1.0 in the response is the sound pressure at 1 m from the source, and "
        "samples are 32-bit floats. LOW:HIGH in --size, --rt60 and --distance is a range from which each room is drawn. "
        "Without --source, and without --receiver and --receivers, places at least 0.5 m from the walls are drawn for one source and "
        "for --channels receivers (default 1); a drawn receiver with a pattern points to the source. The channels are all receivers of the first source, then those of the second.\n\n"
        "Materials: brick, painted-brick, concrete, block, painted-block, plaster, plasterboard, glass, window, tile, wood, "
        "parquet, linoleum, plywood, carpet, carpet-on-foam, curtain, heavy-curtain, seats and audience, from the tables of "
        "the Acoustical Materials Association as handbooks reprint them.",
    .options = synth_table,
    .run = run_synth,
    .groups = synth_groups,
    .examples = {{"gpuconv ir synth room room.wav --size 12x9x4 --rt60 1.5", "makes a stereo response of a room"},
                 {"gpuconv ir synth room r.wav --count 100 --size 3:10x3:8x2.4:4 --rt60 0.2:1 --rate 16000",
                  "makes 100 rooms"}}};
