/* Loads the module that sends messages between ranks. */
#include "ranks.h"

#include "libgpuconv/core/error.h"
#include "libgpuconv/core/module.h"

#include <stdlib.h>

/* Looks for the environment variables of launchers: Open MPI's mpirun, PMIx, PMI (Slurm's srun --mpi). */
static bool is_launched(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (getenv(variables[i]))
            return true;
    return false;
}

gpuconv_status gc_ranks_open(const gc_ranks **ranks, gpuconv_error *error) {
    static gc_ranks module;
    char why[400];
    *ranks = NULL;
    if (!is_launched())
        return GPUCONV_OK;
    gc_ranks_start *start;
    *(void **)&start = gc_module_load("gpuconv-mpi", GC_RANKS_START, why, sizeof why);
    if (!start)
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                       "started by a launcher of parallel programs, but this build has no MPI: %s", why);
    if (!start(&module, why, sizeof why))
        return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED, "cannot start MPI: %s", why);
    *ranks = &module;
    return GPUCONV_OK;
}
