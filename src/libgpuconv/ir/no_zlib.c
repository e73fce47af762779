/* Takes the place of sofa_file.c and of the HDF5 reader in a build without zlib. */
#include "libgpuconv/core/error.h"
#include "sofa.h"

gpuconv_status gc_sofa_load(const char *path, gpuconv_interpolate how, gpuconv_sofa **sofa, gpuconv_error *error) {
    (void)how;
    *sofa = NULL;
    return gc_fail_without(error, path, "zlib", "zlib1g-dev");
}
