// gpuconv._core: the binding of libgpuconv. It checks nothing that the library checks; shapes, libraries of arrays and
// defaults are the business of the Python files around it.
#include "calls.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

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
        PyErr_SetObject(type, nb::cast(message).ptr());
    throw nb::python_error();
}

planar_out make_planar(float *samples, size_t channels, size_t frames) {
    nb::capsule owner(samples, [](void *memory) noexcept { std::free(memory); });
    return planar_out(samples, {channels, frames}, owner);
}

static std::vector<std::string> algorithm_names() {
    std::vector<std::string> names;
    for (std::string name = "auto"; name != "unknown"; name = gpuconv_algorithm_name((gpuconv_algorithm)names.size()))
        names.push_back(name);
    return names;
}

NB_MODULE(_core, m) {
    nb::set_leak_warnings(false); // objects that live until the interpreter ends, such as planned jobs, are no leaks
    m.doc() = "Binding of libgpuconv; use the package gpuconv.";
    m.def("version", &gpuconv_version, "Returns the version of the library.");
    m.def("algorithm_names", &algorithm_names,
          "Returns the names of the algorithms; the index of a name is its value.");
    m.def("end_calls", &end_calls, "Ends the calls of all other threads; for the end of Python.");
    bind_arrays(m);
    bind_files(m);
    bind_realtime(m);
    bind_response(m);
#ifdef GPUCONV_XLA
    bind_xla(m);
#endif
    bind_sofa(m);
}
