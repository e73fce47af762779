/* gpuconv ir synth: synthesizes impulse responses. */
#include "cli/cli.h"
#include "commands.h"
#include "libgpuconv/core/number.h"
#include "libtools/room/room_set.h"
#include "libtools/room/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 64 /* sources or receivers of options */, TEXT = 1024 };

static struct {
    char *size, *rt60, *distance, *absorption, *materials, *pattern, *receivers;
    char **source, **receiver;
    double rate, images;
    int channels, ambisonic;
    long long seed, count;
} synth = {.rate = 48000, .seed = 1, .images = -1};

static const char words_kind[] = "room|plate|spring|cabinet|telephone";
static const char words_pattern[] = "omni|wide-cardioid|cardioid|supercardioid|hypercardioid|figure-eight";

/* ---- Values of options ------------------------------------------------------------------------------------------- */

/* Parses LOW:HIGH or one number. */
static bool parse_span(const char *text, gc_span *span) {
    double value[2];
    const int count = gc_numbers_parse(text, ":", value, 2);
    *span = (gc_span){value[0], value[count > 1]};
    return count && span->low <= span->high;
}

/* Divides a copy of a text, which has room for TEXT bytes. Returns the number of parts; 0: more than `most`. */
static int divide(const char *text, const char *dividers, char *copy, char *part[], int most) {
    int count = 0;
    if (strlen(text) >= TEXT)
        return 0;
    memcpy(copy, text, strlen(text) + 1);
    for (char *at = copy; at; count++) {
        char *end = strpbrk(at, dividers);
        if (count == most)
            return 0;
        part[count] = at;
        if (end)
            *end++ = 0;
        at = end;
    }
    return count;
}

static bool parse_size(const char *text, gc_span size[3], bool *drawn) {
    char copy[TEXT], *part[3];
    const int axes = divide(text, "x,", copy, part, 3);
    for (int axis = 0; axis < axes; axis++) {
        if (!parse_span(part[axis], &size[axis]) || !(size[axis].low > 0))
            return false;
        *drawn = *drawn || size[axis].low < size[axis].high;
    }
    return axes > 1;
}

/* Parses spans of a kind of values, each within least..most. Returns how many; 0 with a message if one is wrong. */
static int parse_spans(const char *option, const char *text, const char *unit, gc_span range, gc_span *span, int most) {
    char copy[TEXT], *part[GPUCONV_ROOM_BANDS];
    const int count = divide(text, ",", copy, part, most);
    bool good = count > 0;
    for (int i = 0; i < count && good; i++)
        good = parse_span(part[i], &span[i]) && span[i].low >= range.low && span[i].high <= range.high;
    if (!good)
        (void)gc_print_error(GC_EXIT_USAGE, "--%s '%.60s': %s is a number from %g to %g%s; try --help", option, text,
                             unit, range.low, range.high,
                             most > 1 ? ", LOW:HIGH, or 6 or 9 for octaves" : ", or LOW:HIGH");
    return good ? count : 0;
}

static bool parse_points(const char *option, char **texts, gpuconv_room_point *points, int *count) {
    for (*count = 0; texts && texts[*count]; ++*count) {
        double v[5] = {0};
        const int numbers = gc_numbers_parse(texts[*count], ",", v, 5);
        if ((numbers != 3 && numbers != 5) || *count == POINTS) {
            (void)gc_print_error(GC_EXIT_USAGE,
                                 "--%s '%.60s': X,Y,Z or X,Y,Z,AZIMUTH,ELEVATION, at most %d times; try --help", option,
                                 texts[*count], POINTS);
            return false;
        }
        points[*count] = (gpuconv_room_point){{v[0], v[1], v[2]}, v[3], v[4], 1};
    }
    return true;
}

/* Parses walls divided by slashes, each with 1, 6 or 9 numbers, or names of materials divided by commas. */
static bool parse_walls(const char *text, bool named, double absorption[6][GPUCONV_ROOM_BANDS]) {
    char copy[TEXT], *part[6];
    const int walls = divide(text, named ? "," : "/", copy, part, 6);
    bool good = walls == 1 || walls == 6;
    for (int w = 0; w < 6 && good; w++) {
        const char *wall = part[walls == 1 ? 0 : w];
        double value[GPUCONV_ROOM_BANDS];
        const int material = named ? gc_word_find(wall, strlen(wall), gc_material_words) : -1;
        if (material >= 0)
            gc_material_absorption(material, absorption[w]);
        else
            good =
                !named && gc_room_spread(value, gc_numbers_parse(wall, ",", value, GPUCONV_ROOM_BANDS), absorption[w]);
        for (int b = 0; b < GPUCONV_ROOM_BANDS && good; b++)
            good = absorption[w][b] >= 0 && absorption[w][b] <= 1;
    }
    char names[TEXT];
    gc_word_list(gc_material_words, names, sizeof names);
    if (!good && named)
        (void)gc_print_error(GC_EXIT_USAGE,
                             "--materials '%.60s': one name or six, of x low, x high, y low, y high, floor "
                             "and ceiling, of %s",
                             text, names);
    else if (!good)
        (void)gc_print_error(GC_EXIT_USAGE,
                             "--absorption '%.60s': one wall or six divided by /, each with 1, 6 or 9 "
                             "numbers from 0 to 1 divided by commas; try --help",
                             text);
    return good;
}

/* ---- Runs -------------------------------------------------------------------------------------------------------- */

static int report(gpuconv_status status, const gpuconv_error *error) {
    if (!status)
        return GC_EXIT_DONE;
    return gc_print_error(status == GPUCONV_ERROR_ARGUMENT ? GC_EXIT_USAGE : gc_exit_of(status), "%s", error->message);
}

/* Writes rooms with given places, materials or ranges. The spans of the options are those of `set`. */
static int run_rooms(gc_room_set *set, int bands, const char *path) {
    static const double omni[] = {1, 0.75, 0.5, 0.37, 0.25, 0};
    static const double standard[3] = {8, 6, 3.2};
    static gpuconv_room_point source[POINTS], receiver[POINTS];
    gpuconv_room_point *listed = NULL;
    gpuconv_error error = {0};
    gpuconv_status status = GPUCONV_OK;
    const int pattern = synth.pattern ? gc_choose("--pattern", synth.pattern, words_pattern) : 0;
    if (pattern < 0 || !parse_points("source", synth.source, source, &set->sources) ||
        !parse_points("receiver", synth.receiver, receiver, &set->receivers))
        return GC_EXIT_USAGE;
    if (!!synth.absorption + !!synth.materials + !!synth.rt60 > 1)
        return gc_print_error(GC_EXIT_USAGE, "use one of --rt60, --absorption and --materials");
    if ((synth.absorption && !parse_walls(synth.absorption, false, set->absorption)) ||
        (synth.materials && !parse_walls(synth.materials, true, set->absorption)))
        return GC_EXIT_USAGE;
    for (int a = 0; a < 3; a++)
        if (!(set->size[a].low > 0))
            set->size[a] = (gc_span){standard[a], standard[a]};
    double low[GPUCONV_ROOM_BANDS], high[GPUCONV_ROOM_BANDS], value[2][GPUCONV_ROOM_BANDS];
    for (int i = 0; i < bands; i++) {
        value[0][i] = set->rt60[i].low;
        value[1][i] = set->rt60[i].high;
    }
    if (!bands && !synth.absorption && !synth.materials) {
        bands = 1;
        value[0][0] = value[1][0] = 0.15 * cbrt(set->size[0].low * set->size[1].low * set->size[2].low);
    }
    if (bands && (!gc_room_spread(value[0], bands, low) || !gc_room_spread(value[1], bands, high)))
        return gc_print_error(GC_EXIT_USAGE,
                              "--rt60 '%.60s': %d numbers; use 1, 6 (125 to 4000 Hz) or 9 (62.5 Hz to 16 kHz)",
                              synth.rt60, bands);
    for (int b = 0; b < GPUCONV_ROOM_BANDS && bands; b++)
        set->rt60[b] = (gc_span){low[b], high[b]};
    if ((synth.receiver || synth.receivers) && (synth.channels || synth.distance))
        return gc_print_error(GC_EXIT_USAGE,
                              "--%s is for receivers that are drawn; leave out --receiver and --receivers",
                              synth.channels ? "channels" : "distance");
    if (synth.receivers)
        status = gc_room_points_read(synth.receivers, &listed, &set->receivers, &error);
    gpuconv_room_point *const heard = listed ? listed : receiver;
    for (int i = 0; i < set->receivers; i++)
        heard[i].omni = omni[pattern];
    set->source = source;
    set->receiver = heard;
    set->drawn = synth.channels ? synth.channels : 1;
    set->omni = omni[pattern];
    set->ambisonic = synth.ambisonic;
    set->rate = synth.rate;
    set->images = synth.images;
    set->seed = (uint64_t)synth.seed;
    set->count = synth.count;
    if (!status)
        status = gc_room_set_write(set, path, &error);
    free(listed);
    return report(status, &error);
}

static int run_synth(const char **arguments, int count) {
    gc_synth settings = gc_synth_default();
    gc_room_set set = {.images = -1};
    gpuconv_error error = {0};
    bool drawn = false;
    if (count != 2)
        return gc_print_error(GC_EXIT_USAGE, "a kind and a file are needed, KIND IR, not %d words; try --help", count);
    int kind = gc_choose("KIND", arguments[0], words_kind);
    if (kind < 0)
        return GC_EXIT_USAGE;
    if (synth.size && !parse_size(synth.size, set.size, &drawn))
        return gc_print_error(GC_EXIT_USAGE, "--size '%.60s': metres such as 8x6x3.2, of a plate 2x1; try --help",
                              synth.size);
    const int bands =
        synth.rt60 ? parse_spans("rt60", synth.rt60, "SECONDS", (gc_span){0.1, 20}, set.rt60, GPUCONV_ROOM_BANDS) : 0;
    if ((synth.rt60 && !bands) ||
        (synth.distance && !parse_spans("distance", synth.distance, "METRES", (gc_span){0.3, 200}, &set.distance, 1)))
        return GC_EXIT_USAGE;
    drawn = drawn || bands > 1 || set.rt60[0].low < set.rt60[0].high || set.distance.low < set.distance.high ||
            synth.absorption || synth.materials || synth.pattern || synth.receivers || synth.source || synth.receiver ||
            synth.ambisonic || synth.count || synth.images >= 0;
    if (drawn && kind != GC_SYNTH_ROOM)
        return gc_print_error(GC_EXIT_USAGE, "places, walls, ranges and --count are those of a room, not of a %s",
                              arguments[0]);
    (void)gc_catch_signals();
    if (drawn)
        return run_rooms(&set, bands, arguments[1]);
    settings.kind = (gc_synth_kind)kind;
    for (int a = 0; a < 3; a++)
        settings.size[a] = set.size[a].low;
    settings.rt60 = set.rt60[0].low;
    settings.distance = set.distance.low;
    settings.channels = synth.channels ? synth.channels : settings.channels;
    settings.rate = synth.rate;
    settings.seed = (uint64_t)synth.seed;
    return report(gc_synth_write(&settings, arguments[1], &error), &error);
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
    {"pattern", '\0', POPT_ARG_STRING, &synth.pattern, 0, "pattern of the receivers (default: omni)", words_pattern},
    {"ambisonic", '\0', POPT_ARG_INT, &synth.ambisonic, GC_RANGE_ROOM_ORDER,
     "receivers of (N + 1)^2 channels, ACN and SN3D", "N"},
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
