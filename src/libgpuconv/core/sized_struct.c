/* Public structures that begin with their size. */
#include "sized_struct.h"

#include "error.h"

#include <string.h>

/* No structure will ever be larger; a larger size is an uninitialised one. */
enum { LARGEST = 4096 };

gpuconv_status gc_sized_struct_read(const gc_sized_struct *own, const void *from, gpuconv_error *error) {
    size_t size;
    if (!from)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the %s is NULL: make it with %s_default()", own->name,
                       own->name);
    memcpy(&size, from, sizeof size);
    if (size < own->first_size || size > LARGEST)
        return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "the size of a %s is %zu, not %zu: make it with %s_default()",
                       own->name, size, own->size, own->name);
    const unsigned char *bytes = from;
    for (size_t i = own->size; i < size; i++)
        if (bytes[i])
            return gc_fail(error, GPUCONV_ERROR_ARGUMENT,
                           "a %s has a field that gpuconv %s does not know: set it to 0, or update the library",
                           own->name, gpuconv_version());
    memcpy(own->to, from, size < own->size ? size : own->size);
    memcpy(own->to, &own->size, sizeof own->size);
    return GPUCONV_OK;
}

void gc_sized_struct_init(void *to, size_t size, const void *defaults, size_t own_size) {
    if (!to || size < sizeof size)
        return;
    memset(to, 0, size);
    memcpy(to, defaults, size < own_size ? size : own_size);
    memcpy(to, &size, sizeof size);
}
