// What the binding's files share: the library's errors as Python's exceptions, and owners of its objects.
#ifndef GPUCONV_PYTHON_COMMON_H
#define GPUCONV_PYTHON_COMMON_H

#include <gpuconv.h>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

namespace nb = nanobind;

// Texts cross the boundary as os.fsencode() and os.fsdecode() do it, because most are names of files, or contain one,
// and these may be any bytes. nanobind/stl/string.h, which knows only UTF-8, is not included.
template <> struct nb::detail::type_caster<std::string> {
    NB_TYPE_CASTER(std::string, const_name("str"))

    bool from_python(handle from, uint32_t, cleanup_list *) noexcept {
        PyObject *bytes = PyUnicode_Check(from.ptr()) ? PyUnicode_EncodeFSDefault(from.ptr()) : nullptr;
        if (!bytes) {
            PyErr_Clear();
            return false;
        }
        value.assign(PyBytes_AsString(bytes), (size_t)PyBytes_Size(bytes));
        Py_DECREF(bytes);
        return true;
    }

    static handle from_cpp(const std::string &text, rv_policy, cleanup_list *) noexcept {
        return PyUnicode_DecodeFSDefaultAndSize(text.c_str(), (Py_ssize_t)text.size());
    }
};

// Returns a message with the options of the command as names of Python: --ir-gain becomes ir_gain.
std::string without_dashes(const char *message);

// Raises the exception of a status. The GIL is held.
[[noreturn]] void raise(gpuconv_status status, const char *message);

// Raises if the status is not 0.
inline void check(gpuconv_status status, const gpuconv_error &error) {
    if (status != GPUCONV_OK)
        raise(status, error.message);
}

// Deletes an object of the library with its _free function.
template <auto Free> struct deleter {
    template <typename T> void operator()(T *object) const {
        Free(object);
    }
};

// Memory of malloc().
template <typename T> using memory_owner = std::unique_ptr<T, deleter<std::free>>;

using ir_owner = std::unique_ptr<gpuconv_ir, deleter<gpuconv_ir_free>>;
using sofa_owner = std::unique_ptr<gpuconv_sofa, deleter<gpuconv_sofa_free>>;

// An open set of responses. Immutable: any number of threads may use it.
struct sofa_set {
    sofa_owner set;
};

// An impulse response, as Python sees it. Immutable.
struct response {
    ir_owner ir;
};

// Arrays of floats in host memory with any strides.
using floats_in = nb::ndarray<const float, nb::device::cpu, nb::ro>;
using floats_out = nb::ndarray<float, nb::device::cpu>;
using planar_in = nb::ndarray<const float, nb::device::cpu, nb::ndim<2>, nb::ro>;
using planar_rows = nb::ndarray<float, nb::device::cpu, nb::ndim<2>>;
using planar_out = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

// Makes an array of NumPy that owns `samples`, which are freed with free().
planar_out make_planar(float *samples, size_t channels, size_t frames);

// Pointers to the rows of an array whose frames are contiguous. Raises ValueError otherwise.
template <typename Array> auto rows_of(const Array &array) {
    if (array.shape(1) > 1 && array.stride(1) != 1)
        throw nb::value_error("the frames of a channel must be contiguous; use numpy.ascontiguousarray");
    std::vector<decltype(array.data())> rows;
    for (size_t c = 0; c < array.shape(0); c++)
        rows.push_back(array.data() + (int64_t)c * array.stride(0));
    return rows;
}

void bind_arrays(nb::module_ &m);
void bind_files(nb::module_ &m);
void bind_realtime(nb::module_ &m);
void bind_response(nb::module_ &m);
void bind_xla(nb::module_ &m); // in builds with the headers of XLA
void bind_sofa(nb::module_ &m);

#endif
