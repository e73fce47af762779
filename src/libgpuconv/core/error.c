/* The texts of the statuses, and gc_fail. */
#include "error.h"

#include "cancel.h"
#include "visible.h"

#include <stdarg.h>
#include <string.h>

const char *gpuconv_status_text(gpuconv_status status) {
    switch (status) {
    case GPUCONV_OK:
        return "done";
    case GPUCONV_ERROR_ARGUMENT:
        return "a value is outside its range";
    case GPUCONV_ERROR_MEMORY:
        return "out of memory";
    case GPUCONV_ERROR_FILE:
        return "a file cannot be opened, read or written";
    case GPUCONV_ERROR_FORMAT:
        return "a file is not usable audio";
    case GPUCONV_ERROR_TOPOLOGY:
        return "the channels of input and response do not fit";
    case GPUCONV_ERROR_UNSUPPORTED:
        return "the backend or this build cannot do what was asked";
    case GPUCONV_ERROR_DEVICE:
        return "the GPU is missing or failed";
    case GPUCONV_ERROR_CANCELLED:
        return "cancelled";
    case GPUCONV_ERROR_STATE:
        return "called out of order";
    }
    return "unknown status";
}

const char *gpuconv_version(void) {
    return GPUCONV_VERSION;
}

bool gc_begin(void *made, const void *from, const char *function, gpuconv_error *error) {
    if (made)
        memset(made, 0, sizeof(void *)); /* the pointer has another type in every function */
    if (!made || !from)
        gc_fail_null(error, function);
    return made && from;
}

gpuconv_status gc_fail_null(gpuconv_error *error, const char *function) {
    return gc_fail(error, GPUCONV_ERROR_ARGUMENT, "%s: an argument that it needs is NULL", function);
}

gpuconv_status gc_fail(gpuconv_error *error, gpuconv_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        error->status = status;
        gc_visible_print(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return status;
}

gpuconv_status gc_fail_cancelled(gpuconv_error *error, const char *what) {
    return gc_fail(error, GPUCONV_ERROR_CANCELLED, "interrupted while working on %s", what);
}

gpuconv_status gc_fail_memory(gpuconv_error *error, const char *what) {
    if (gc_cancelled())
        return gc_fail_cancelled(error, what);
    return gc_fail(error, GPUCONV_ERROR_MEMORY, "out of memory for %s", what);
}

gpuconv_status gc_fail_without(gpuconv_error *error, const char *what, const char *library, const char *package) {
    return gc_fail(error, GPUCONV_ERROR_UNSUPPORTED,
                   "%s needs %s, which this gpuconv was built without; install it (Debian: %s) and build again", what,
                   library, package);
}
