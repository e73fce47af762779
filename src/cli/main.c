/* gpuconv: the command. */
#include "cli.h"

int main(int argc, char **argv) {
    return gc_cmd_convolve(argc, (const char **)argv);
}
