/* Convolves a file and reads the report's values: 05_report IN IR OUT. */
#include <gpuconv.h>

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: 05_report IN IR OUT\n");
        return 2;
    }
    gpuconv_config config = gpuconv_config_default();
    gpuconv_job job = gpuconv_job_default();
    gpuconv_preparation preparation = gpuconv_preparation_default();
    preparation.normalize = GPUCONV_NORMALIZE_LOUDNESS;
    job.input = argv[1];
    job.response = argv[2];
    job.output = argv[3];
    job.preparation = &preparation;

    gpuconv_error error = {GPUCONV_OK, ""};
    gpuconv_report *report;
    if (gpuconv_report_new(&report) || gpuconv_convolve_file(&job, &config, report, &error)) {
        fprintf(stderr, "%s\n", *error.message ? error.message : "out of memory");
        return 1;
    }
    /* Known values by name; docs/report.schema.json lists them. */
    int64_t frames = gpuconv_report_count(report, "files", 0, "output frames");
    printf("%lld frames by %s, %lld clipped, in %.3f %s\n", (long long)frames,
           gpuconv_report_text(report, "convolution", 0, "algorithm"),
           (long long)gpuconv_report_count(report, "files", 0, "clipped samples"),
           gpuconv_report_number(report, "times", 0, "wall"), gpuconv_report_unit(report, "times", 0, "wall"));

    /* All values of a section. */
    const char *name;
    for (int i = 0; (name = gpuconv_report_name(report, "times", 0, i)); i++)
        printf("  %-16s %g %s\n", name, gpuconv_report_number(report, "times", 0, name),
               gpuconv_report_unit(report, "times", 0, name));
    gpuconv_report_free(report);
    return frames > 0 ? 0 : 1;
}
