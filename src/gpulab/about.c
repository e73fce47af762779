/*
 * Prints a device and computes occupancy by the rules of the CUDA programming guide: registers are allocated to warps
 * in units of 256, shared memory to blocks in units of 128 bytes, and the runtime reserves some shared memory in each
 * block.
 */
#include "about.h"

#include "libgpuconv/core/memory.h"
#include "libgpuconv/core/number.h"

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_UNIT = 128 };

/* Returns how many blocks of this shape are resident on a multiprocessor, 0 if a block exceeds a limit. `*limit` names
 * the resource that bounds the number. */
static int find_occupancy(const gc_lab_device_info *device, const gc_lab_block_shape *shape, const char **limit) {
    int64_t warps = gc_max(1, (shape->threads + WARP - 1) / WARP);
    int64_t registers = gc_round_up((int64_t)gc_max(shape->registers, 1) * WARP, REGISTER_UNIT) * warps;
    int64_t shared = gc_round_up(shape->shared + device->shared_reserved, SHARED_UNIT);
    int64_t most = device->blocks_multiprocessor;
    *limit = "blocks";
    const struct {
        const char *name;
        int64_t blocks;
    } limits[] = {{"threads", device->threads_multiprocessor / (warps * WARP)},
                  {"registers", device->registers_multiprocessor / registers},
                  {"shared memory", shared > 0 ? device->shared_multiprocessor / shared : most}};
    if (shape->threads > device->threads_block || shape->shared > device->shared_block_optin) {
        *limit = shape->threads > device->threads_block ? "threads of a block" : "shared memory of a block";
        return 0;
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < most) {
            most = limits[i].blocks;
            *limit = limits[i].name;
        }
    return (int)most;
}

void gc_lab_print_device(const gc_lab_session *session, const gc_lab_block_shape *shape, FILE *to) {
    if (!session->device) {
        fprintf(to, "no GPU: %s\n", session->no_device);
        return;
    }
    const gc_lab_device_info *d = gc_lab_device_get_info(session->device);
    const char *limit;
    gc_lab_nvml_reading reading;
    int blocks = find_occupancy(d, shape, &limit);
    fprintf(to, "%s, compute capability %d.%d, driver for CUDA %d.%d\n", d->name, d->capability / 10,
            d->capability % 10, d->driver / 1000, d->driver % 1000 / 10);
    fprintf(to, "  multiprocessors          %d, each %d threads, %d blocks, %d registers, %lld KiB shared memory\n",
            d->multiprocessors, d->threads_multiprocessor, d->blocks_multiprocessor, d->registers_multiprocessor,
            (long long)d->shared_multiprocessor / 1024);
    fprintf(to, "  block limits             %d threads, %lld KiB shared memory, up to %lld KiB if requested\n",
            d->threads_block, (long long)d->shared_block / 1024, (long long)d->shared_block_optin / 1024);
    gc_print(to, "  memory                   %.1f GiB, %d bits at %.0f MHz; L2 cache %.0f MiB; constants %lld KiB\n",
             (double)d->memory / 0x1p30, d->bus_bits, d->memory_clock_hz * 1e-6, (double)d->l2 / 0x1p20,
             (long long)d->constant / 1024);
    fprintf(to, "  copy engines             %d; managed memory: %s; mapped memory: %s\n", d->copy_engines,
            d->managed ? "yes" : "no", d->mapped ? "yes" : "no");
    if (gc_lab_nvml_read(session->nvml, &reading)) {
        char reasons[200];
        gc_lab_nvml_throttle_text(reading.throttle_reasons, reasons, sizeof reasons);
        gc_print(to, "  present state            %.0f of %.0f MHz, memory %.0f MHz, %.0f C, %.0f W, throttled by: %s\n",
                 reading.clock_hz * 1e-6, reading.clock_max_hz * 1e-6, reading.memory_clock_hz * 1e-6, reading.celsius,
                 reading.watts, reasons);
    } else {
        fprintf(to, "  present state            unknown: NVML is not available\n");
    }
    gc_print(to,
             "blocks of %d threads, %d registers per thread, %lld bytes of shared memory per block:\n"
             "  %d blocks per multiprocessor, occupancy %.0f %%, limited by %s; %d blocks fill the device\n",
             shape->threads, shape->registers, (long long)shape->shared, blocks,
             100.0 * blocks * shape->threads / d->threads_multiprocessor, limit, blocks * d->multiprocessors);
}
