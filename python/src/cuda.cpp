// Convolution on device memory: gpuconv_arrays.h. Pointers and streams come as integers from the caller's library. The
// calls only queue work, so that they keep the GIL.
#include "calls.h"

#if defined(GPUCONV_WITH_CUDA) && __has_include(<gpuconv_arrays.h>)
#include <gpuconv_arrays.h>

namespace {

using layout = std::tuple<int, int64_t, int64_t, int64_t>; // type, rows, frames, stride

struct device {
    gpuconv_arrays *cuda = nullptr;
    ~device() {
        gpuconv_arrays_free(cuda);
    }
};

struct responses {
    const device *home = nullptr;
    gpuconv_responses *kept = nullptr;
    ~responses() {
        gpuconv_responses_free(kept);
    }
};

struct streamer {
    gpuconv_streamer *stream = nullptr;
    ~streamer() {
        gpuconv_streamer_free(stream);
    }
};

struct CUstream_st *stream_of(uintptr_t stream) {
    return reinterpret_cast<struct CUstream_st *>(stream);
}

gpuconv_rows array_of(const layout &l, uintptr_t data) {
    gpuconv_rows array = {};
    array.data = reinterpret_cast<void *>(data);
    array.type = (gpuconv_sample_type)std::get<0>(l);
    array.rows = std::get<1>(l);
    array.frames = std::get<2>(l);
    array.stride = std::get<3>(l);
    return array;
}

struct planned_job {
    const device *home;
    gpuconv_arrays_job job;
    size_t bytes = 0;
};

void new_job(planned_job *self, const device &home, int operation, const layout &signal, const layout &response,
             const layout &output, int64_t group, int64_t offset, const responses *prepared) {
    new (self) planned_job{&home, gpuconv_arrays_job_default(), 0};
    self->job.operation = (gpuconv_arrays_operation)operation;
    self->job.signal = array_of(signal, 0);
    self->job.response = array_of(response, 0);
    self->job.output = array_of(output, 0);
    self->job.group = group;
    self->job.offset = offset;
    self->job.prepared = prepared ? prepared->kept : nullptr;
    gpuconv_error error = {};
    check(gpuconv_arrays_workspace(home.cuda, &self->job, &self->bytes, &error), error);
}

// Runs the job: `first` and `second` are the arrays that are read, `made` the one that is written.
void run_job(const planned_job &self, uintptr_t first, uintptr_t second, uintptr_t made, uintptr_t workspace,
             uintptr_t stream) {
    gpuconv_arrays_job job = self.job;
    const bool gradient = job.operation != GPUCONV_ARRAYS_CONVOLVE,
               by_response = job.operation == GPUCONV_ARRAYS_GRADIENT_RESPONSE;
    job.output.data = reinterpret_cast<void *>(gradient ? first : made);
    job.signal.data = reinterpret_cast<void *>(!gradient ? first : by_response ? second : made);
    job.response.data = reinterpret_cast<void *>(by_response ? made : second);
    gpuconv_error error = {};
    check(gpuconv_arrays_run(self.home->cuda, &job, reinterpret_cast<void *>(workspace), self.bytes, stream_of(stream),
                           &error),
          error);
}

void new_device(device *self, int number) {
    new (self) device;
    run_unlocked([&](gpuconv_error *error) { return gpuconv_arrays_new_cuda(number, &self->cuda, error); });
}

void new_responses(responses *self, const device &home, const layout &l, uintptr_t data, int64_t frames,
                   uintptr_t stream) {
    new (self) responses;
    self->home = &home;
    const gpuconv_rows array = array_of(l, data);
    run_unlocked([&](gpuconv_error *error) {
        return gpuconv_responses_new(home.cuda, &array, frames, stream_of(stream), &self->kept, error);
    });
}

void update_responses(responses &self, const layout &l, uintptr_t data, uintptr_t stream) {
    const gpuconv_rows array = array_of(l, data);
    gpuconv_error error = {};
    check(gpuconv_responses_update(self.home->cuda, self.kept, &array, stream_of(stream), &error), error);
}

void new_streamer(streamer *self, const device &home, const layout &l, uintptr_t data, int64_t channels, int64_t block,
                  uintptr_t stream) {
    new (self) streamer;
    const gpuconv_rows array = array_of(l, data);
    run_unlocked([&](gpuconv_error *error) {
        return gpuconv_streamer_new(home.cuda, &array, channels, block, stream_of(stream), &self->stream, error);
    });
}

void process(streamer &self, const layout &in, uintptr_t in_data, const layout &out, uintptr_t out_data,
             uintptr_t stream) {
    const gpuconv_rows from = array_of(in, in_data), to = array_of(out, out_data);
    gpuconv_error error = {};
    check(gpuconv_streamer_process(self.stream, &from, &to, stream_of(stream), &error), error);
}

void reset(streamer &self, uintptr_t stream) {
    gpuconv_error error = {};
    check(gpuconv_streamer_reset(self.stream, stream_of(stream), &error), error);
}

} // namespace

void bind_cuda(nb::module_ &m) {
    m.attr("has_cuda") = true;
    nb::class_<device>(m, "Cuda", "The tables and kernels of one device.")
        .def("__init__", &new_device, nb::arg("device"));
    nb::class_<responses>(m, "CudaResponses", "Responses whose transforms are kept on the device.")
        .def("__init__", &new_responses, nb::keep_alive<1, 2>(), nb::arg("cuda"), nb::arg("layout"), nb::arg("data"),
             nb::arg("frames"), nb::arg("stream"))
        .def("update", &update_responses, nb::arg("layout"), nb::arg("data"), nb::arg("stream"))
        .def_prop_ro("bytes", [](const responses &r) { return gpuconv_responses_bytes(r.kept); });
    nb::class_<planned_job>(m, "CudaJob", "A job that is planned for its shapes.")
        .def("__init__", &new_job, nb::keep_alive<1, 2>(), nb::keep_alive<1, 9>(), nb::arg("cuda"),
             nb::arg("operation"), nb::arg("signal"), nb::arg("response"), nb::arg("output"), nb::arg("group"),
             nb::arg("offset"), nb::arg("prepared").none())
        .def_ro("workspace", &planned_job::bytes)
        .def("run", &run_job, nb::arg("first"), nb::arg("second"), nb::arg("made"), nb::arg("workspace"),
             nb::arg("stream"));
    nb::class_<streamer>(m, "CudaStreamer", "Blocks in, blocks out, with the state on the device.")
        .def("__init__", &new_streamer, nb::keep_alive<1, 2>(), nb::arg("cuda"), nb::arg("layout"), nb::arg("data"),
             nb::arg("channels"), nb::arg("block"), nb::arg("stream"))
        .def("process", &process, nb::arg("input"), nb::arg("input_data"), nb::arg("output"), nb::arg("output_data"),
             nb::arg("stream"))
        .def("reset", &reset, nb::arg("stream"));
}

#else

void bind_cuda(nb::module_ &m) {
    m.attr("has_cuda") = false;
}

#endif
