/* Converts response options into a gpuconv_preparation. */
#include "response_options.h"

int gc_response_layout(const char *layout) {
    return gc_choose("--ir-layout", layout ? layout : "stereo", GC_WORDS_LAYOUT);
}

int gc_response_interpolate(const char *interpolate) {
    const int chosen = gc_choose("--interpolate", interpolate ? interpolate : "triangle", GC_WORDS_INTERPOLATE);
    return chosen < 0 ? chosen : interpolate ? GPUCONV_INTERPOLATE_NEAREST + chosen : GPUCONV_INTERPOLATE_AUTO;
}

int gc_response_decode(const char *decode) {
    const int chosen = gc_choose("--decode", decode ? decode : "magls", GC_WORDS_DECODE);
    return chosen < 0 ? chosen : GPUCONV_DECODE_LEAST_SQUARES + chosen;
}

int gc_response_options_apply(const gc_response_options *o, gpuconv_preparation *p) {
    int layout = gc_response_layout(o->layout);
    int align = layout < 0 ? -1 : gc_choose("--align", o->align, GC_WORDS_ALIGN);
    int normalize = align < 0 ? -1 : gc_choose("--normalize", o->normalize, GC_WORDS_NORMALIZE);
    int interpolate = normalize < 0 ? -1 : gc_response_interpolate(o->interpolate);
    int decode = interpolate < 0 ? -1 : gc_response_decode(o->decode);
    if (decode < 0)
        return GC_EXIT_USAGE;
    *p = (gpuconv_preparation){.size = sizeof *p,
                               .layout = (gpuconv_layout)layout,
                               .start = o->start,
                               .length = o->length,
                               .trim = o->trim,
                               .align = (gpuconv_align)align,
                               .reverse = o->reverse,
                               .stretch = o->stretch,
                               .minimum_phase = o->minimum_phase,
                               .fade = o->fade,
                               .series = (const char *const *)o->series,
                               .predelay = o->predelay,
                               .normalize = (gpuconv_normalize)normalize,
                               .gain = o->gain,
                               .wet = o->wet,
                               .dry = o->dry,
                               .direction = o->direction,
                               .speakers = o->speakers,
                               .interpolate = (gpuconv_interpolate)interpolate,
                               .by_distance = o->by_distance,
                               .decode = (gpuconv_decode)decode,
                               .diffuse_eq = o->diffuse_eq};
    while (o->series && o->series[p->series_count])
        p->series_count++;
    return GC_EXIT_DONE;
}
