/* Converts options into settings. */
#include "setting_options.h"

int gc_refuse_setting(const gc_setting *s, const char *text) {
    char range[GC_SETTING_TEXT_ROOM];
    gc_setting_range(s, range);
    return gc_print_error(GC_EXIT_USAGE, "--%s '%.60s': must be %s; try --help", s->option, text, range);
}

int gc_given_settings_read(const gc_given given[GC_SETTINGS], gc_settings *settings) {
    *settings = gc_settings_default();
    settings->preparation.layout = GPUCONV_LAYOUT_STEREO;
    for (int i = 0; i < GC_SETTINGS; i++) {
        const gc_setting *s = &gc_settings_table[i];
        const gc_given *g = &given[i];
        const char *one[] = {s->kind == GC_KIND_FLAG ? (g->flag ? "1" : NULL) : g->text, NULL};
        const char *const *texts = s->kind == GC_KIND_FILES ? (const char *const *)g->list : one;
        for (; texts && *texts; texts++) {
            const gpuconv_status status = gc_setting_set(settings, (gc_setting_id)i, *texts);
            if (status == GPUCONV_ERROR_MEMORY)
                return gc_print_error(GC_EXIT_FAILED, "out of memory");
            if (status)
                return gc_refuse_setting(s, *texts);
        }
    }
    const gpuconv_job *job = &settings->job;
    if (!job->path && (job->doppler || (given[GC_SETTING_INTERVAL].text && !job->head)))
        return gc_print_error(GC_EXIT_USAGE, "--doppler needs --path, and --interval that or --head; try --help");
    return GC_EXIT_DONE;
}
