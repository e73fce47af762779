// gpuconv._core: the binding of libgpuconv. It checks nothing that the library checks; shapes, libraries of arrays and
// defaults are the business of the Python files around it.
#include "common.h"

#include <cstdlib>

void raise(gpuconv_status status, const char *message) {
    if (!message || !*message)
        message = gpuconv_status_text(status);
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
        type = PyExc_OSError;
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
        PyErr_SetString(type, message);
    throw nb::python_error();
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
