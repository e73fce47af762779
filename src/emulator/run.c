/* Connects the emulator with a library, and calls its function. */
#include "emulator.h"

#include "counts.h"
#include "libgpuconv/core/error.h"
#include "state.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_BUFFERS = 16 };

static const gc_emulator_table table = {
    .access = gc_on_access,
    .step = gc_on_step,
    .enter_host = gc_on_enter_host,
    .outside_array = gc_on_outside_array,
    .divide_by_zero = gc_on_divide_by_zero,
    .index = gc_on_index,
    .launch = gc_on_launch,
    .barrier = gc_on_barrier,
    .exchange = gc_on_exchange,
    .active = gc_on_active,
    .fence = gc_on_fence,
    .clock = gc_on_clock,
    .allocate = gc_on_allocate,
    .release = gc_on_release,
    .set_error = gc_on_set_error,
    .last_error = gc_on_last_error,
    .copy = gc_on_copy,
    .fill = gc_on_fill,
};

/* Finds where the library's segments lie. */
static int find_image(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (info->dlpi_addr != gc_emulated.base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = gc_emulated.base + info->dlpi_phdr[i].p_vaddr, end = begin + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > gc_emulated.image_end)
            gc_emulated.image_end = end;
    }
    gc_emulated.image_begin = gc_emulated.base;
    return 1;
}

gpuconv_status gc_emulator_open(void *library, const char *path, gpuconv_error *error) {
    void *symbol = dlsym(library, "gpulab_emulator_attach"), *anchor, *dynamic;
    Dl_info about;
    if (!symbol)
        return GPUCONV_OK;
    (void)snprintf(gc_emulated.library, sizeof gc_emulated.library, "%s", path);
    gpuconv_status err = gc_symbols_read(path, &gc_emulated.symbols, &gc_emulated.symbol_count, error);
    if (err)
        return err;
    memcpy((void *)&gc_emulated.attach, &symbol, sizeof symbol);
    gc_emulated.attach(&table, &anchor, &dynamic);
    if (!dladdr(symbol, &about))
        return gc_fail(error, GPUCONV_ERROR_FILE, "%s: its address is not known", path);
    gc_emulated.base = (uintptr_t)about.dli_fbase;
    gc_emulated.dynamic = (uintptr_t)dynamic;
    (void)dl_iterate_phdr(find_image, NULL);
    for (int i = 0; i < gc_emulated.symbol_count; i++)
        if (strcmp(gc_emulated.symbols[i].name, "gce_anchor") == 0)
            gc_emulated.shared_base = (uintptr_t)anchor - gc_emulated.symbols[i].value;
        else if (gc_emulated.symbols[i].is_thread_local)
            gc_emulated.static_shared += gc_emulated.symbols[i].bytes;
    return GPUCONV_OK;
}

bool gc_emulator_is_open(void) {
    return gc_emulated.attach != NULL;
}

/* Adds the variables of the library, and its dynamic shared memory. Returns false without memory. */
static bool add_variables(void) {
    for (int i = 0; i < gc_emulated.symbol_count; i++) {
        const gc_symbol *s = &gc_emulated.symbols[i];
        gc_region r = {.begin = (s->is_thread_local ? gc_emulated.shared_base : gc_emulated.base) + s->value,
                       .bytes = s->bytes,
                       .space = s->is_thread_local ? GC_SPACE_SHARED : GC_SPACE_CONSTANT,
                       .is_set = !s->is_thread_local};
        memcpy(r.name, s->name, sizeof r.name);
        if (strcmp(s->name, "gce_anchor") == 0)
            continue;
        if (r.begin == gc_emulated.dynamic) {
            r.space = GC_SPACE_SHARED;
            r.is_set = false;
            (void)snprintf(r.name, sizeof r.name, "the dynamic shared memory");
        }
        if (!gc_memory_add(&r))
            return false;
    }
    return true;
}

/* Copies the buffers into regions. Returns false without memory. */
static bool add_buffers(const gc_emulator_buffer *buffer, int count, void **data) {
    for (int i = 0; i < count; i++) {
        gc_region *r = gc_memory_allocate(buffer[i].name, (uint64_t)buffer[i].bytes);
        if (!r)
            return false;
        r->element = buffer[i].element;
        r->is_set = buffer[i].is_set;
        r->is_const = buffer[i].is_const;
        data[i] = (void *)r->begin;
        memcpy(data[i], buffer[i].data, (size_t)buffer[i].bytes);
    }
    return true;
}

/* Copies a buffer back. */
static void fetch(const gc_emulator_buffer *buffer, const gc_region *region) {
    unsigned char *to = buffer->data;
    memcpy(to, (const void *)region->begin, (size_t)buffer->bytes);
    for (int64_t i = 0; buffer->is_float && i < buffer->bytes; i += buffer->element) {
        unsigned k = 0;
        while (k < buffer->element && to[i + k] == 0xff)
            k++;
        if (k == buffer->element && gc_memory_is_set(region, (uint64_t)i))
            to[i + k - 1] = 0x7f;
    }
}

bool gc_emulator_run(gc_emulator_solve solve, const gc_emulator_buffer *buffer, int count, const int64_t *size) {
    static void *data[MAX_BUFFERS]; /* static: a jump back must not change it */
    gc_emulated.failure = gc_emulated.pending = (gc_failure){.is_set = false};
    gc_emulated.pending_thread = NULL;
    gc_emulated.running = NULL;
    gc_emulated.launch = NULL;
    gc_emulated.launched = 0;
    gc_counts_clear();
    gc_memory_clear();
    if (_setjmp(gc_emulated.outside) == 0) {
        if (count > MAX_BUFFERS || !add_variables() || !add_buffers(buffer, count, data))
            gc_stop(NULL, 0, "", "the emulator is out of memory.");
        int code = solve(data, size, NULL);
        if (code)
            gc_stop(NULL, 0, "", "a function of CUDA failed in solve: error %d.", code);
        for (int i = 0; i < count; i++)
            if (buffer[i].bytes > 0)
                fetch(&buffer[i], gc_memory_find((uintptr_t)data[i]));
    }
    gc_emulated.running = NULL;
    return !gc_emulated.failure.is_set;
}

void gc_emulator_error(char *text, size_t room) {
    gc_report_failure(&gc_emulated.failure, gc_emulated.library, text, room);
}

gc_emulator_totals gc_emulator_get_totals(void) {
    const gc_sum global = gc_counts_sum(GC_SITE_GLOBAL), shared = gc_counts_sum(GC_SITE_SHARED);
    return (gc_emulator_totals){.threads = gc_emulated.launched,
                                .global_accesses = global.lanes,
                                .sectors = global.spent,
                                .best_sectors = global.best,
                                .shared_requests = shared.requests,
                                .shared_cycles = shared.spent,
                                .best_shared_cycles = shared.best};
}

void gc_emulator_counts(char *text, size_t room) {
    gc_report_counts(gc_emulated.library, text, room);
}
