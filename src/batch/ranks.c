/* Finding the module that carries messages between ranks. */
#include "ranks.h"

#include "../core/error.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What launchers put into the environment: Open MPI's mpirun, PMIx and PMI (Slurm's srun --mpi). */
static bool launched(void) {
    static const char *const signs[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (getenv(signs[i]))
            return true;
    return false;
}

/* Beside the program, in the library folder beside it, where it was installed. */
static void *load(char *why, size_t room) {
    static const char *const places[] = {"gpuconv-mpi.so", "../lib/gpuconv/gpuconv-mpi.so"};
    char program[4096], path[4200];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    while (length > 0 && program[length - 1] != '/')
        length--;
    (void)snprintf(why, room, "its folder is not known");
    for (size_t i = 0; length > 0 && i < sizeof places / sizeof *places; i++) {
        (void)snprintf(path, sizeof path, "%.*s%s", (int)length, program, places[i]);
        void *module = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (module)
            return module;
        const char *reason = dlerror();
        (void)snprintf(why, room, "%.300s", reason ? reason : "gpuconv-mpi.so is not beside the program");
    }
    return NULL;
}

gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error) {
    static gc_ranks made;
    char why[400];
    *ranks = NULL;
    if (!launched())
        return GPUCONV_OK;
    void *module = load(why, sizeof why);
    if (!module)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "started as one of several processes, but this build has no MPI: %s", why);
    gc_ranks_start *start;
    *(void **)&start = dlsym(module, GC_RANKS_START);
    if (!start || !start(&made, why, sizeof why))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "MPI does not start: %s", start ? why : "no such function");
    *ranks = &made;
    return GPUCONV_OK;
}
