// Streaming without latency: gpuconv_realtime, whose calls wait for a late tail.
#include "calls.h"

#include <algorithm>
#include <mutex>

namespace {

constexpr int64_t longest_step = 1 << 18; // frames of a call without a look at signals

struct stream {
    std::unique_ptr<gpuconv_realtime, deleter<gpuconv_realtime_free>> realtime;
    int inputs, outputs;
    std::mutex lock; // one thread processes at a time
    stream(decltype(realtime) made, const gpuconv_ir *ir)
        : realtime(std::move(made)), inputs(gpuconv_ir_inputs(ir)), outputs(gpuconv_ir_outputs(ir)) {}
};

// options: rate, block, threads; others: backend, device, latency.
void new_stream(stream *self, const response &from, const std::tuple<double, int, int> &options, bool freewheel,
                const std::tuple<int, int, int64_t> &others) {
    gpuconv_realtime_config config = gpuconv_realtime_config_default();
    int backend = 0;
    std::tie(config.rate, config.block, config.threads) = options;
    std::tie(backend, config.device, config.latency) = others;
    config.freewheel = freewheel;
    config.backend = (gpuconv_backend)backend;
    new (self) stream(made_soon_by<decltype(stream::realtime)>([&](gpuconv_realtime **made, gpuconv_error *error) {
                          return gpuconv_realtime_new(from.ir.get(), &config, made, error);
                      }),
                      from.ir.get());
}

void process(stream &self, const planar_in &in, const planar_rows &out) {
    std::vector<const float *> from = rows_of(in);
    std::vector<float *> to = rows_of(out);
    if ((int)from.size() != self.inputs || (int)to.size() != self.outputs || in.shape(1) != out.shape(1))
        throw nb::value_error("a block whose shape does not fit the stream");
    const int64_t frames = (int64_t)in.shape(1);
    for (int64_t at = 0; at < frames; at += longest_step) { // between two steps Ctrl-C is noticed
        if (at && PyErr_CheckSignals() != 0)
            throw nb::python_error();
        run_unlocked([&](gpuconv_error *) {
            std::lock_guard<std::mutex> locked(self.lock);
            gpuconv_realtime_process(self.realtime.get(), from.data(), to.data(), std::min(longest_step, frames - at));
            return GPUCONV_OK;
        });
        for (const float *&channel : from)
            channel += longest_step;
        for (float *&channel : to)
            channel += longest_step;
    }
}

void reset(stream &self) {
    run_unlocked([&](gpuconv_error *) {
        std::lock_guard<std::mutex> locked(self.lock);
        gpuconv_realtime_reset(self.realtime.get());
        return GPUCONV_OK;
    });
}

void swap(stream &self, const response &to, double seconds) {
    run_unlocked(
        [&](gpuconv_error *error) { return gpuconv_realtime_swap(self.realtime.get(), to.ir.get(), seconds, error); });
}

void swap_routes(stream &self, const response &to, double seconds) {
    run_unlocked([&](gpuconv_error *error) {
        return gpuconv_realtime_swap_routes(self.realtime.get(), to.ir.get(), seconds, error);
    });
}

} // namespace

void bind_realtime(nb::module_ &m) {
    nb::class_<stream>(m, "Stream", "A real-time convolution of blocks.")
        .def("__init__", &new_stream, nb::arg("response"), nb::arg("options"), nb::arg("freewheel"), nb::arg("others"))
        .def("process", &process, nb::arg("x"), nb::arg("y"))
        .def("reset", &reset)
        .def("swap", &swap, nb::arg("response"), nb::arg("seconds"))
        .def("swap_routes", &swap_routes, nb::arg("response"), nb::arg("seconds"))
        .def("set_freewheel",
             [](stream &s, bool freewheel) { gpuconv_realtime_set_freewheel(s.realtime.get(), freewheel); })
        .def_prop_ro("latency", [](const stream &s) { return gpuconv_realtime_latency(s.realtime.get()); })
        .def_prop_ro("late_blocks", [](const stream &s) { return gpuconv_realtime_late_blocks(s.realtime.get()); })
        .def_prop_ro("backend",
                     [](const stream &s) { return gpuconv_backend_name(gpuconv_realtime_backend(s.realtime.get())); })
        .def_prop_ro("plan", [](const stream &s) { return gpuconv_realtime_plan(s.realtime.get()); });
}
