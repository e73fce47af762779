/* Device memory between two pages that do not exist, by the driver's virtual memory management. The driver is opened at
 * run time, as the CUDA runtime does. */
#include "fence.h"

#include "check.h"

#include <dlfcn.h>

/* The functions of libcuda that are needed. */
static struct driver {
    CUresult (*granularity)(size_t *bytes, const CUmemAllocationProp *property,
                            CUmemAllocationGranularity_flags option);
    CUresult (*reserve)(CUdeviceptr *at, size_t bytes, size_t alignment, CUdeviceptr address, unsigned long long flags);
    CUresult (*create)(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *property,
                       unsigned long long flags);
    CUresult (*map)(CUdeviceptr at, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
                    unsigned long long flags);
    CUresult (*access)(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *access, size_t count);
    CUresult (*unmap)(CUdeviceptr at, size_t bytes);
    CUresult (*release)(CUmemGenericAllocationHandle handle);
    CUresult (*unreserve)(CUdeviceptr at, size_t bytes);
} driver;

static void *find(void *library, const char *name) {
    void *function = dlsym(library, name);
    CHECK(function, "the driver has no %s", name);
    return function;
}

static void open_driver(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    CHECK(library, "no libcuda.so.1");
    *(void **)&driver.granularity = find(library, "cuMemGetAllocationGranularity");
    *(void **)&driver.reserve = find(library, "cuMemAddressReserve");
    *(void **)&driver.create = find(library, "cuMemCreate");
    *(void **)&driver.map = find(library, "cuMemMap");
    *(void **)&driver.access = find(library, "cuMemSetAccess");
    *(void **)&driver.unmap = find(library, "cuMemUnmap");
    *(void **)&driver.release = find(library, "cuMemRelease");
    *(void **)&driver.unreserve = find(library, "cuMemAddressFree");
}

static void require(CUresult result, const char *what) {
    CHECK(result == CUDA_SUCCESS, "%s failed: error %d of the driver", what, (int)result);
}

fence fence_new(int64_t floats, bool at_end) {
    const CUmemAllocationProp property = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    const CUmemAccessDesc access = {.location = property.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    fence f = {.floats = floats};
    if (!driver.create)
        open_driver();
    require(driver.granularity(&f.page, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM), "cuMemGetAllocationGranularity");
    f.bytes = ((size_t)floats * sizeof(float) + f.page - 1) / f.page * f.page;
    require(driver.reserve(&f.reserved, f.bytes + 2 * f.page, 0, 0, 0), "cuMemAddressReserve");
    require(driver.create(&f.handle, f.bytes, &property, 0), "cuMemCreate");
    require(driver.map(f.reserved + f.page, f.bytes, 0, f.handle, 0), "cuMemMap");
    require(driver.access(f.reserved + f.page, f.bytes, &access, 1), "cuMemSetAccess");
    f.memory = (char *)(uintptr_t)(f.reserved + f.page);
    f.at = (float *)(void *)(f.memory + (at_end ? f.bytes - (size_t)floats * sizeof(float) : 0));
    CHECK(cudaMemset(f.memory, 0xff, f.bytes) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess,
          "cudaMemset failed");
    return f;
}

bool fence_intact(const fence *f) {
    unsigned char *all = malloc(f->bytes);
    CHECK(all && cudaMemcpy(all, f->memory, f->bytes, cudaMemcpyDeviceToHost) == cudaSuccess, "cudaMemcpy failed");
    const size_t first = (size_t)((char *)f->at - f->memory), end = first + (size_t)f->floats * sizeof(float);
    bool intact = true;
    for (size_t i = 0; i < f->bytes; i++)
        intact = intact && ((i >= first && i < end) || all[i] == 0xff);
    free(all);
    return intact;
}

void fence_free(fence *f) {
    require(driver.unmap(f->reserved + f->page, f->bytes), "cuMemUnmap");
    require(driver.release(f->handle), "cuMemRelease");
    require(driver.unreserve(f->reserved, f->bytes + 2 * f->page), "cuMemAddressFree");
}
