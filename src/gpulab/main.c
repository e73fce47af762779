/* gpulab: runs the command line. */
#include "commands.h"

int main(int argc, const char **argv) {
    gc_begin("gpulab");
    return gc_end(gc_command_run(&gc_lab_command, argc, argv));
}
