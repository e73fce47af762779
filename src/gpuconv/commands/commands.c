/* The list of subcommands; options that become settings. */
#include "commands.h"

#include "cli/cli.h"
#include "libgpuconv/core/number.h"
#include <stdio.h>
#include <string.h>

const gc_command *const gc_commands[] = {
    &gc_command_convolve,   &gc_command_batch,
    &gc_command_bench_rows, &gc_command_bench_rt,
    &gc_command_bench,      &gc_command_calibrate,
    &gc_command_ir_clean,   &gc_command_ir_correct,
    &gc_command_ir_info,    &gc_command_ir_measure,
    &gc_command_ir_synth,   &gc_command_live,
    &gc_command_play,       NULL,
};

char gc_words_algorithm[256];

void gc_fill_words(void) {
    const char *name;
    for (int id = 0; strcmp(name = gpuconv_algorithm_name((gpuconv_algorithm)id), "unknown") != 0; id++)
        gc_append(gc_words_algorithm, sizeof gc_words_algorithm, "%s%s", id ? "|" : "", name);
}

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
    if (!job->path && !job->receiver_path && (job->doppler || (given[GC_SETTING_INTERVAL].text && !job->head)))
        return gc_print_error(GC_EXIT_USAGE, "--doppler needs --path, and --interval that or --head; try --help");
    return GC_EXIT_DONE;
}
