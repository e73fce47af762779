/* Takes the place of audio/, ir/load.c and this folder in a build without libsndfile. */
#include "libgpuconv/audio/file.h"
#include "libgpuconv/core/error.h"

gpuconv_status gc_ir_load_from(const char *path, const gc_ir_form *form, gpuconv_ir **ir, gpuconv_error *error) {
    (void)form;
    *ir = NULL;
    return gc_fail_without(error, path, "libsndfile", "libsndfile1-dev");
}

gpuconv_status gpuconv_convolve_file(const gpuconv_job *job, const gpuconv_config *config, gpuconv_report *report,
                                     gpuconv_error *error) {
    (void)config, (void)report;
    return job ? gc_fail_without(error, "convolving a sound file", "libsndfile", "libsndfile1-dev")
               : gc_fail_null(error, __func__);
}
