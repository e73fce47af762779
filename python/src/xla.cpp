// Convolution as a custom call of XLA, through the headers that come with jaxlib: on the CPU, where XLA's own threads
// call it, and on a GPU, where it queues the work on XLA's stream. Neither has the GIL.
#include "calls.h"

#include <xla/ffi/api/ffi.h>

#include <map>
#include <mutex>

XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(rows_call, xla::ffi::StructMember<int64_t>("operation"),
                                      xla::ffi::StructMember<int64_t>("group"),
                                      xla::ffi::StructMember<int64_t>("offset"),
                                      xla::ffi::StructMember<int64_t>("threads"),
                                      xla::ffi::StructMember<int64_t>("hop"),
                                      xla::ffi::StructMember<int64_t>("linear"));

namespace ffi = xla::ffi;

namespace {

using rows_in = ffi::Buffer<ffi::F32, 2>;
using rows_out = ffi::Result<rows_in>;

gpuconv_rows rows_of(rows_in &buffer) {
    return gpuconv_rows_of_floats(buffer.typed_data(), buffer.dimensions()[0], buffer.dimensions()[1]);
}

// Computes a call on the CPU.
ffi::Error compute(const rows_call &call, const gpuconv_rows *rows) {
    gpuconv_error error = {};
    if (compute_rows(call, rows, &error))
        return ffi::Error::Internal(error.message);
    return ffi::Error::Success();
}

ffi::Error one_on_cpu(rows_in first, rows_in second, rows_out made, rows_call call) {
    const gpuconv_rows rows[] = {rows_of(first), rows_of(second), rows_of(*made)};
    return compute(call, rows);
}

ffi::Error both_on_cpu(rows_in g, rows_in x, rows_in h, rows_out gx, rows_out gh, rows_call call) {
    const gpuconv_rows rows[] = {rows_of(g), rows_of(x), rows_of(h), rows_of(*gx), rows_of(*gh)};
    return compute(call, rows);
}

// Adds the arrays and attributes of a call of one operation to its binding.
template <typename Binding> auto with_rows(Binding binding) {
    return std::move(binding)
        .template Arg<rows_in>()
        .template Arg<rows_in>()
        .template Ret<rows_in>()
        .template Attrs<rows_call>();
}

// Adds those of a call of both gradients.
template <typename Binding> auto with_gradients(Binding binding) {
    return std::move(binding)
        .template Arg<rows_in>()
        .template Arg<rows_in>()
        .template Arg<rows_in>()
        .template Ret<rows_in>()
        .template Ret<rows_in>()
        .template Attrs<rows_call>();
}

XLA_FFI_DEFINE_HANDLER(one, one_on_cpu, with_rows(ffi::Ffi::Bind()));
XLA_FFI_DEFINE_HANDLER(both, both_on_cpu, with_gradients(ffi::Ffi::Bind()));

// Returns the place on the current device, whose number among XLA's devices is `ordinal`; nullptr: *error has the
// reason. Places are kept until the process ends.
gpuconv_arrays *place_on_gpu(int ordinal, gpuconv_error *error) {
    static std::mutex *lock = new std::mutex; // never deleted: threads of XLA may outlive the interpreter's end
    static auto *places = new std::map<int, gpuconv_arrays *>;
    const std::lock_guard<std::mutex> locked(*lock);
    gpuconv_arrays *&found = (*places)[ordinal];
    if (!found && gpuconv_arrays_new_cuda(-1, &found, error))
        found = nullptr;
    return found;
}

// Arguments that XLA passes to a call on a GPU.
struct gpu_context {
    struct CUstream_st *stream;
    ffi::ScratchAllocator &scratch;
    int32_t ordinal;
};

// Queues a call on a GPU.
ffi::Error queue(const gpu_context &gpu, const rows_call &call, const gpuconv_rows *rows) {
    const gpuconv_arrays_job job = job_of_rows(call, rows);
    gpuconv_error error = {};
    size_t bytes = 0;
    gpuconv_arrays *place = place_on_gpu(gpu.ordinal, &error);
    if (!place || gpuconv_arrays_workspace(place, &job, &bytes, &error))
        return ffi::Error::Internal(error.message);
    void *workspace = nullptr;
    if (bytes > 0) { // XLA grants an alignment of 16 bytes at most
        const std::optional<void *> found = gpu.scratch.Allocate(bytes + 255);
        if (!found)
            return ffi::Error(ffi::ErrorCode::kResourceExhausted, "too little memory on the GPU for a convolution");
        workspace = reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(*found) + 255) & ~uintptr_t{255});
    }
    if (gpuconv_arrays_run(place, &job, workspace, bytes, gpu.stream, &error))
        return ffi::Error::Internal(error.message);
    return ffi::Error::Success();
}

ffi::Error one_on_gpu(struct CUstream_st *stream, ffi::ScratchAllocator scratch, int32_t ordinal, rows_in first,
                      rows_in second, rows_out made, rows_call call) {
    const gpuconv_rows rows[] = {rows_of(first), rows_of(second), rows_of(*made)};
    return queue({stream, scratch, ordinal}, call, rows);
}

ffi::Error both_on_gpu(struct CUstream_st *stream, ffi::ScratchAllocator scratch, int32_t ordinal, rows_in g, rows_in x,
                       rows_in h, rows_out gx, rows_out gh, rows_call call) {
    const gpuconv_rows rows[] = {rows_of(g), rows_of(x), rows_of(h), rows_of(*gx), rows_of(*gh)};
    return queue({stream, scratch, ordinal}, call, rows);
}

// Returns a binding with these arguments.
auto on_gpu() {
    return ffi::Ffi::Bind()
        .Ctx<ffi::PlatformStream<struct CUstream_st *>>()
        .Ctx<ffi::ScratchAllocator>()
        .Ctx<ffi::DeviceOrdinal>();
}

XLA_FFI_DEFINE_HANDLER(one_gpu, one_on_gpu, with_rows(on_gpu()));
XLA_FFI_DEFINE_HANDLER(both_gpu, both_on_gpu, with_gradients(on_gpu()));

} // namespace

void bind_xla(nb::module_ &m) {
    m.def(
        "xla_rows",
        [](bool gradients, bool gpu) {
            return nb::capsule(reinterpret_cast<void *>(gradients ? gpu ? both_gpu : both : gpu ? one_gpu : one));
        },
        nb::arg("gradients"), nb::arg("gpu"),
        "Returns the custom call of one operation, or of both gradients, for jax.ffi.register_ffi_target().");
}
