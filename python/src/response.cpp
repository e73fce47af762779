// Impulse responses and the engine of gpuconv.h.
#include "calls.h"

#include "library.h"

#include <cmath>
#include <map>
#include <mutex>

namespace {

// Calls an edit of the library: edit(ir, arguments..., &made, &error).
template <typename Edit, typename... Arguments>
response edited(const response &self, Edit edit, Arguments... arguments) {
    return {made_by<ir_owner>(
        [&](gpuconv_ir **made, gpuconv_error *error) { return edit(self.ir.get(), arguments..., made, error); })};
}

response from_taps(const planar_in &taps, double rate) {
    const std::vector<const float *> rows = rows_of(taps);
    return {made_by<ir_owner>([&](gpuconv_ir **made, gpuconv_error *error) {
        return gpuconv_ir_new(rows.data(), (int)rows.size(), (int64_t)taps.shape(1), rate, made, error);
    })};
}

// Row i of `taps` is the route from input places[i].first to output places[i].second.
response from_matrix(const planar_in &taps, const std::vector<std::pair<int, int>> &places, int inputs, int outputs,
                     double rate) {
    const std::vector<const float *> rows = rows_of(taps);
    std::vector<const float *> all((size_t)inputs * (size_t)outputs);
    for (size_t i = 0; i < rows.size(); i++)
        all.at((size_t)places.at(i).first * (size_t)outputs + (size_t)places.at(i).second) = rows[i];
    return {made_by<ir_owner>([&](gpuconv_ir **made, gpuconv_error *error) {
        return gpuconv_ir_new_matrix(all.data(), inputs, outputs, (int64_t)taps.shape(1), rate, made, error);
    })};
}

// Returns the response, and whether it is routed.
std::pair<response, bool> load(const std::string &path, double rate, const std::optional<std::string> &raw) {
    ir_owner made = made_by<ir_owner>([&](gpuconv_ir **ir, gpuconv_error *error) {
        return gpuconv_ir_load_as(path.c_str(), rate, raw ? raw->c_str() : nullptr, ir, error);
    });
    const bool routed = gcpy_is_routed(made.get());
    return {response{std::move(made)}, routed};
}

// Completes a response that was pickled; for a new one that only the caller has.
void restore(response &self, int64_t lead, const std::string &history) {
    run_unlocked([&](gpuconv_error *error) { return gcpy_restore(self.ir.get(), lead, history.c_str(), error); });
}

// Copies the taps of a route; without routes of that kind, None.
nb::object taps_of(const response &self, int input, int output) {
    const float *taps = gpuconv_ir_taps(self.ir.get(), input, output);
    if (!taps)
        return nb::none();
    nb::ndarray<nb::numpy, const float, nb::ndim<1>> array(taps, {(size_t)gpuconv_ir_frames(self.ir.get())},
                                                           nb::find(&self));
    return array.cast(nb::rv_policy::reference_internal, nb::find(&self));
}

// A plan with its engine, made on first use.
struct convolver {
    std::unique_ptr<gpuconv_plan, deleter<gpuconv_plan_free>> plan;
    std::unique_ptr<volatile int> cancel = std::make_unique<volatile int>(0); // of the engine's threads
    std::unique_ptr<gpuconv_engine, deleter<gpuconv_engine_free>> engine;     // freed before the flag and the plan
    std::mutex lock; // an engine belongs to one thread at a time
    explicit convolver(decltype(plan) made) : plan(std::move(made)) {}
};

void new_convolver(convolver *self, const response &from, int backend, int algorithm, int device, int threads,
                   int64_t frames) {
    gpuconv_config config = gpuconv_config_default();
    config.backend = (gpuconv_backend)backend;
    config.algorithm = (gpuconv_algorithm)algorithm;
    config.device = device;
    config.threads = threads;
    config.frames = frames;
    config.latency_frames = -1; // whole arrays
    new (self) convolver(made_soon_by<decltype(convolver::plan)>([&](gpuconv_plan **made, gpuconv_error *error) {
        return gpuconv_plan_new(from.ir.get(), &config, made, error);
    }));
}

// Convolves the whole input; `out` has N + M - 1 frames.
void convolve_all(convolver &self, const planar_in &in, const planar_rows &out) {
    const std::vector<const float *> from = rows_of(in);
    const std::vector<float *> to = rows_of(out);
    run_interruptible(self.cancel.get(), [&](gpuconv_error *error) {
        std::lock_guard<std::mutex> locked(self.lock);
        if (*self.cancel) { // an earlier call was interrupted, and the engine's flag stays raised while it lives
            self.engine.reset();
            *self.cancel = 0;
        }
        gpuconv_engine *engine = self.engine.get();
        gpuconv_status status =
            engine ? gpuconv_engine_reset(engine) : gpuconv_engine_new(self.plan.get(), &engine, error);
        int64_t taken = 0, produced = 0;
        if (!self.engine)
            self.engine.reset(engine);
        if (!status)
            status = gpuconv_engine_process(engine, from.data(), (int64_t)in.shape(1), to.data(), &produced);
        while (!status) {
            taken += produced;
            std::vector<float *> rest = to;
            for (float *&row : rest)
                row += taken;
            if (taken == (int64_t)out.shape(1))
                break;
            status = gpuconv_engine_drain(engine, rest.data(), (int64_t)out.shape(1) - taken, &produced);
            if (!status && produced == 0)
                status = GPUCONV_ERROR_STATE;
        }
        return status;
    });
}

nb::class_<response> bind_edits(nb::class_<response> c) {
    c.def("route", [](const response &s, int inputs, int layout) {
        return edited(s, gpuconv_ir_route_as, inputs, (gpuconv_layout)layout);
    });
    c.def("resample", [](const response &s, double rate) { return edited(s, gpuconv_ir_resample, rate); });
    c.def("cut",
          [](const response &s, int64_t start, int64_t frames) { return edited(s, gpuconv_ir_cut, start, frames); });
    c.def("trim", [](const response &s, double decibels) { return edited(s, gpuconv_ir_trim, decibels); });
    c.def("align", [](const response &s, int how) { return edited(s, gpuconv_ir_align, (gpuconv_align)how); });
    c.def("fade", [](const response &s, int64_t in, int64_t out) { return edited(s, gpuconv_ir_fade, in, out); });
    c.def("reverse", [](const response &s) { return edited(s, gpuconv_ir_reverse); });
    c.def("delay", [](const response &s, int64_t frames) { return edited(s, gpuconv_ir_delay, frames); });
    c.def("stretch", [](const response &s, double factor) { return edited(s, gpuconv_ir_stretch, factor); });
    c.def("minimum_phase", [](const response &s) { return edited(s, gpuconv_ir_minimum_phase); });
    c.def("series", [](const response &s, const response &o) {
        return edited(s, gpuconv_ir_series, (const gpuconv_ir *)o.ir.get());
    });
    c.def("gain", [](const response &s, double decibels) { return edited(s, gpuconv_ir_gain, decibels); });
    c.def("normalize", [](const response &s, int how) {
        return edited(s, gpuconv_ir_normalize, (gpuconv_normalize)how, (double *)nullptr);
    });
    c.def("mix", [](const response &s, double wet, double dry) { return edited(s, gpuconv_ir_mix, wet, dry); });
    return c;
}

} // namespace

void bind_response(nb::module_ &m) {
    auto c = nb::class_<response>(m, "Response", "An impulse response: routes from inputs to outputs. Immutable.")
                 .def_static("from_taps", &from_taps, nb::arg("taps"), nb::arg("rate"))
                 .def_static("from_matrix", &from_matrix, nb::arg("taps"), nb::arg("places"), nb::arg("inputs"),
                             nb::arg("outputs"), nb::arg("rate"))
                 .def_static("load", &load, nb::arg("path"), nb::arg("rate"), nb::arg("raw").none())
                 .def("restore", &restore, nb::arg("lead"), nb::arg("history"))
                 .def("taps", &taps_of, nb::arg("input"), nb::arg("output"))
                 .def("onset",
                      [](const response &s, double decibels) {
                          unlocked released;
                          return gpuconv_ir_onset(s.ir.get(), decibels);
                      })
                 .def("peak",
                      [](const response &s) {
                          double magnitude = 0;
                          unlocked released;
                          const int64_t at = gpuconv_ir_peak(s.ir.get(), &magnitude);
                          return std::make_pair(at, magnitude);
                      })
                 .def_prop_ro("inputs", [](const response &s) { return gpuconv_ir_inputs(s.ir.get()); })
                 .def_prop_ro("outputs", [](const response &s) { return gpuconv_ir_outputs(s.ir.get()); })
                 .def_prop_ro("routes", [](const response &s) { return gpuconv_ir_routes(s.ir.get()); })
                 .def_prop_ro("frames", [](const response &s) { return gpuconv_ir_frames(s.ir.get()); })
                 .def_prop_ro("rate", [](const response &s) { return gpuconv_ir_rate(s.ir.get()); })
                 .def_prop_ro("lead", [](const response &s) { return gpuconv_ir_lead(s.ir.get()); })
                 .def_prop_ro("history", [](const response &s) { return std::string(gpuconv_ir_history(s.ir.get())); });
    bind_edits(c);
    nb::class_<convolver>(m, "Engine", "A plan for a routed response, and the engine that executes it.")
        .def("__init__", &new_convolver, nb::arg("response"), nb::arg("backend"), nb::arg("algorithm"),
             nb::arg("device"), nb::arg("threads"), nb::arg("frames"))
        .def("convolve", &convolve_all, nb::arg("x"), nb::arg("y"))
        .def_prop_ro("backend",
                     [](const convolver &s) { return gpuconv_backend_name(gpuconv_plan_backend(s.plan.get())); })
        .def_prop_ro("algorithm",
                     [](const convolver &s) { return gpuconv_algorithm_name(gpuconv_plan_algorithm(s.plan.get())); })
        .def_prop_ro("threads", [](const convolver &s) { return gpuconv_plan_threads(s.plan.get()); })
        .def_prop_ro("device", [](const convolver &s) { return gpuconv_plan_device(s.plan.get()); })
        .def_prop_ro("reason", [](const convolver &s) { return gpuconv_plan_reason(s.plan.get()); })
        .def_prop_ro("note", [](const convolver &s) { return gpuconv_plan_note(s.plan.get()); });
}
