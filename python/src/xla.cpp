// Convolution as a custom call of XLA on the CPU, through the headers that come with jaxlib. XLA's own threads call it,
// without the GIL.
#include "calls.h"

#include <xla/ffi/api/ffi.h>

namespace ffi = xla::ffi;

namespace {

using rows_in = ffi::Buffer<ffi::F32, 2>;
using rows_out = ffi::Result<rows_in>;

gpuconv_rows rows_of(rows_in &buffer) {
    return gpuconv_rows_of_floats(buffer.typed_data(), buffer.dimensions()[0], buffer.dimensions()[1]);
}

ffi::Error call(rows_in first, rows_in second, rows_out made, int64_t operation, int64_t group, int64_t offset,
                int64_t threads) {
    const gpuconv_rows rows[3] = {rows_of(first), rows_of(second), rows_of(*made)};
    gpuconv_error error = {};
    if (compute_rows((int)operation, rows, group, offset, (int)threads, &error))
        return ffi::Error::Internal(error.message);
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(handler, call,
                       ffi::Ffi::Bind()
                           .Arg<rows_in>()
                           .Arg<rows_in>()
                           .Ret<rows_in>()
                           .Attr<int64_t>("operation")
                           .Attr<int64_t>("group")
                           .Attr<int64_t>("offset")
                           .Attr<int64_t>("threads"));

} // namespace

void bind_xla(nb::module_ &m) {
    m.def(
        "xla_rows", [] { return nb::capsule(reinterpret_cast<void *>(handler)); },
        "Returns the custom call for jax.ffi.register_ffi_target().");
}
