// gpuconv._core: the binding of libgpuconv. It checks nothing that the library checks; shapes, libraries of arrays and
// defaults are the business of the Python files around it.
#include "common.h"

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

std::string without_dashes(const char *message) {
    std::string text;
    for (const char *c = message; *c; c++) {
        text += *c;
        if (*c != ' ' || c[1] != '-' || c[2] != '-' || !std::islower((unsigned char)c[3]))
            continue;
        for (c += 3; std::islower((unsigned char)*c) || (*c == '-' && std::islower((unsigned char)c[1])); c++)
            text += *c == '-' ? '_' : *c;
        c--;
    }
    return text;
}

// Returns the class of Python for a file's error, whose message ends with the text of errno.
static PyObject *file_error(const std::string &message) {
    auto ends = [&](int number) {
        const std::string text = std::strerror(number);
        return message.size() >= text.size() && message.compare(message.size() - text.size(), text.size(), text) == 0;
    };
    return ends(ENOENT)   ? PyExc_FileNotFoundError
           : ends(EACCES) ? PyExc_PermissionError
           : ends(EEXIST) ? PyExc_FileExistsError
                          : PyExc_OSError;
}

void raise(gpuconv_status status, const char *given) {
    const std::string message = without_dashes(given && *given ? given : gpuconv_status_text(status));
    PyObject *type = PyExc_RuntimeError; // DEVICE, STATE
    switch (status) {
    case GPUCONV_ERROR_ARGUMENT:
    case GPUCONV_ERROR_FORMAT:
    case GPUCONV_ERROR_TOPOLOGY:
        type = PyExc_ValueError;
        break;
    case GPUCONV_ERROR_MEMORY:
        type = PyExc_MemoryError;
        break;
    case GPUCONV_ERROR_FILE:
        type = file_error(message);
        break;
    case GPUCONV_ERROR_UNSUPPORTED:
        type = PyExc_NotImplementedError;
        break;
    case GPUCONV_ERROR_CANCELLED:
        type = PyExc_KeyboardInterrupt;
        break;
    default:
        break;
    }
    if (!PyErr_Occurred()) // a callback's own exception says more
        PyErr_SetString(type, message.c_str());
    throw nb::python_error();
}

void run_interruptible(volatile int *cancel, const std::function<gpuconv_status(gpuconv_error *)> &call) {
    gpuconv_error error = {};
    auto flagged = [&] {
        const volatile int *before = gpuconv_cancel_set(cancel);
        const gpuconv_status status = call(&error);
        gpuconv_cancel_set(before);
        return status;
    };
    gpuconv_status status;
    if (syscall(SYS_gettid) != getpid()) { // Python handles signals on the main thread only
        nb::gil_scoped_release unlocked;
        status = flagged();
    } else {
        nb::gil_scoped_release unlocked;
        std::future<gpuconv_status> done;
        try {
            done = std::async(std::launch::async, flagged);
        } catch (const std::system_error &) { // no thread to be had
            done = std::async(std::launch::deferred, flagged);
            done.wait();
        }
        while (done.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout) {
            nb::gil_scoped_acquire held;
            if (!*cancel && PyErr_CheckSignals() != 0)
                *cancel = 1;
        }
        status = done.get();
    }
    if (PyErr_Occurred())
        throw nb::python_error();
    check(status, error);
}

planar_out make_planar(float *samples, size_t channels, size_t frames) {
    nb::capsule owner(samples, [](void *memory) noexcept { std::free(memory); });
    return planar_out(samples, {channels, frames}, owner);
}

std::vector<const float *> rows_of(const planar_in &array) {
    if (array.shape(1) > 1 && array.stride(1) != 1)
        throw nb::value_error("the frames of a channel must be contiguous; use numpy.ascontiguousarray");
    std::vector<const float *> rows;
    for (size_t c = 0; c < array.shape(0); c++)
        rows.push_back(array.data() + (int64_t)c * array.stride(0));
    return rows;
}

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false); // objects that live until the interpreter ends, such as planned jobs, are no leaks
    m.doc() = "Binding of libgpuconv; use the package gpuconv.";
    m.def("version", &gpuconv_version, "Returns the version of the library.");
    bind_arrays(m);
    bind_cuda(m);
    bind_files(m);
    bind_realtime(m);
    bind_response(m);
}
