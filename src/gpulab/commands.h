/* The command line of gpulab, which main.c runs and manual.c documents. */
#ifndef GPULAB_COMMANDS_H
#define GPULAB_COMMANDS_H

#include "cli/cli.h"

extern const gc_command gc_lab_command;

#endif
