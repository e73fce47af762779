/* Convolves a file with a response: 01_offline IN IR OUT. One call does what `gpuconv IN IR OUT` does. */
#include <gpuconv.h>

static void note(void *context, const char *text) {
    (void)context;
    fprintf(stderr, "note: %s\n", text);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: 01_offline IN IR OUT\n");
        return 2;
    }
    gpuconv_config config = gpuconv_config_default();
    gpuconv_job job = gpuconv_job_default();
    job.input = argv[1];
    job.response = argv[2];
    job.output = argv[3];
    job.note = note; /* called for resampling, clipping, a missing GPU */

    gpuconv_error error;
    if (gpuconv_convolve_file(&job, &config, NULL, &error) != GPUCONV_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}
