/* Response options: their ranges, and the preparation that they mean. */
#include "response_options.h"

static bool is_level(double decibels) {
    return decibels >= -200 && decibels <= 200;
}

static bool is_time(double seconds) {
    return seconds >= 0 && seconds <= 1e6;
}

int gc_response_options_apply(const gc_response_options *o, gpuconv_preparation *p) {
    int layout = gc_choose("--ir-layout", o->layout, GC_WORDS_LAYOUT);
    int align = layout < 0 ? -1 : gc_choose("--align", o->align, GC_WORDS_ALIGN);
    int normalize = align < 0 ? -1 : gc_choose("--normalize", o->normalize, GC_WORDS_NORMALIZE);
    if (normalize < 0)
        return GC_EXIT_USAGE;
    if (!is_time(o->start) || !is_time(o->length) || !is_time(o->fade) || !is_time(o->predelay))
        return gc_exit(GC_EXIT_USAGE,
                       "--ir-start, --ir-length, --fade and --predelay are 0 seconds or more; try --help");
    if (!(o->trim <= 0 && o->trim >= -300))
        return gc_exit(GC_EXIT_USAGE, "--trim lies under 0 dB, down to -300; try --help");
    if (!(o->stretch >= 0.01 && o->stretch <= 100))
        return gc_exit(GC_EXIT_USAGE, "--stretch is 0.01 to 100; try --help");
    if (!is_level(o->gain) || !is_level(o->wet) || !(is_level(o->dry) || o->dry <= -HUGE_VAL))
        return gc_exit(GC_EXIT_USAGE, "--ir-gain, --wet and --dry lie within -200 and 200 dB; try --help");
    *p = (gpuconv_preparation){.layout = (gpuconv_layout)layout,
                               .start = o->start,
                               .length = o->length,
                               .trim = o->trim,
                               .align = (gpuconv_align)align,
                               .reverse = o->reverse,
                               .stretch = o->stretch,
                               .minimum_phase = o->minimum_phase,
                               .fade = o->fade,
                               .then = (const char *const *)o->then,
                               .predelay = o->predelay,
                               .normalize = (gpuconv_normalize)normalize,
                               .gain = o->gain,
                               .wet = o->wet,
                               .dry = o->dry};
    while (o->then && o->then[p->thens])
        p->thens++;
    return GC_EXIT_DONE;
}
