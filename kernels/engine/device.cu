/* What a device offers to the kernels, within the limits that a test sets by GPUCONV_CUDA_LIMITS. Host code only. The
 * contracts are in kernels.h. */
#include "kernels.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace {

struct limits {
    int shared_bytes = INT_MAX, architecture = INT_MAX;
    bool tensor_cores = true, early_launch = true;
    char unknown[64] = "";
};

/* Applies one word. Returns false if it has no meaning. */
bool apply(limits *l, const char *word) {
    char *end = NULL;
    if (strcmp(word, "no-early-launch") == 0) {
        l->early_launch = false;
    } else if (strcmp(word, "no-tensor-cores") == 0) {
        l->tensor_cores = false;
    } else if (strncmp(word, "shared=", 7) == 0) {
        const long kilobytes = strtol(word + 7, &end, 10);
        l->shared_bytes = 1024 * (int)std::min(std::max(kilobytes, 0l), 1024l);
        return end != word + 7 && *end == '\0' && kilobytes >= 48;
    } else if (strncmp(word, "architecture=", 13) == 0) {
        const long number = strtol(word + 13, &end, 10);
        l->architecture = (int)std::min(std::max(number, 0l), 1000l);
        return end != word + 13 && *end == '\0' && number >= 75;
    } else {
        return false;
    }
    return true;
}

limits read_limits() {
    limits l;
    const char *at = getenv("GPUCONV_CUDA_LIMITS");
    while (at && *at && !*l.unknown) {
        char word[sizeof l.unknown] = "";
        const size_t length = strcspn(at, ",");
        memcpy(word, at, std::min(length, sizeof word - 1));
        if (!apply(&l, word))
            memcpy(l.unknown, *word ? word : ",", *word ? sizeof word : 2);
        at += length + (at[length] == ',');
    }
    return l;
}

/* Returns the limits of this process. */
const limits &process_limits() {
    static const limits l = read_limits();
    return l;
}

/* Returns whether tensor cores sum products of halves in floats at many times the rate of the multiply-add units. */
bool has_fast_tensor_cores(int architecture) {
    return architecture == 80 || architecture / 10 == 9 || architecture / 10 == 10;
}

} // namespace

const char *gck_unknown_limit(void) {
    return *process_limits().unknown ? process_limits().unknown : NULL;
}

cudaError_t gck_device_query(int number, gck_device *device) {
    const limits &l = process_limits();
    int major = 0, minor = 0;
    *device = {};
    cudaError_t err = *l.unknown ? cudaErrorInvalidValue : cudaSuccess;
    if (!err)
        err = cudaDeviceGetAttribute(&device->multiprocessors, cudaDevAttrMultiProcessorCount, number);
    if (!err)
        err = cudaDeviceGetAttribute(&device->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, number);
    if (!err)
        err = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number);
    if (!err)
        err = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, number);
    device->shared_bytes = std::min(device->shared_bytes, l.shared_bytes);
    device->architecture = std::min(10 * major + minor, l.architecture);
    device->tensor_cores = l.tensor_cores && has_fast_tensor_cores(device->architecture);
    device->early_launch = l.early_launch && device->architecture >= 90;
    return err;
}
