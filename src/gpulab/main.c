/* gpulab: runs the command line. */
#include "commands.h"

int main(int argc, const char **argv) {
    gc_start_program("gpulab");
    return gc_end_program(gc_command_run(&gc_lab_command, argc, argv));
}
