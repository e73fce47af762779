/* gpulab-manual FOLDER: writes the manual page of gpulab. The build runs it. */
#include "commands.h"

int main(int argc, char **argv) {
    static const gc_command gpuconv = {.name = "gpuconv"};
    const gc_command *const pages[] = {&gc_lab_command, &gpuconv, NULL};
    gc_start_program("gpulab-manual");
    if (argc != 2)
        return gc_print_error(GC_EXIT_USAGE, "one FOLDER is needed, not %d arguments", argc - 1);
    gc_manual_page_write(argv[1], &gc_lab_command, pages);
    return gc_end_program(GC_EXIT_DONE);
}
