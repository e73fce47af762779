// Open sets of measured responses.
#include "calls.h"

#include "preparation.h"

namespace {

using positions_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<2>, nb::c_contig, nb::ro>;

// Immutable: any number of threads may use it.
struct sofa_set {
    std::unique_ptr<gpuconv_sofa, deleter<gpuconv_sofa_free>> set;
};

void open_set(sofa_set *self, const std::string &path, double rate) {
    gpuconv_sofa *set = nullptr;
    try {
        run_interruptible([&](gpuconv_error *error) { return gpuconv_sofa_open(path.c_str(), rate, &set, error); });
    } catch (...) {
        gpuconv_sofa_free(set);
        throw;
    }
    new (self) sofa_set;
    self->set.reset(set);
}

// Writes the positions of all directions: x, y, z.
void positions(const sofa_set &self, const nb::ndarray<double, nb::device::cpu, nb::ndim<2>, nb::c_contig> &out) {
    for (size_t i = 0; i < out.shape(0); i++)
        gpuconv_sofa_position(self.set.get(), (int)i, out.data() + 3 * i);
}

std::pair<int, double> nearest(const sofa_set &self, const std::tuple<double, double, double> &at) {
    const double xyz[3] = {std::get<0>(at), std::get<1>(at), std::get<2>(at)};
    double degrees = 0;
    const int direction = gpuconv_sofa_nearest(self.set.get(), xyz, &degrees);
    return {direction, degrees};
}

// `out`: a row for each direction and receiver.
void respond(const sofa_set &self, const positions_in &at, int interpolate, bool by_distance,
             const nb::ndarray<float, nb::device::cpu, nb::ndim<2>, nb::c_contig> &out) {
    run_interruptible([&](gpuconv_error *error) {
        return gpuconv_sofa_respond(self.set.get(), at.data(), (int64_t)at.shape(0), (gpuconv_interpolate)interpolate,
                                    by_distance, out.data(), error);
    });
}

response prepare(const sofa_set &self, const dictionary &steps, int inputs) {
    const preparation p(steps);
    return made_by([&](gpuconv_ir **made, gpuconv_error *error) {
        return gpuconv_sofa_prepare(self.set.get(), &p.steps, inputs, made, error);
    });
}

} // namespace

void bind_sofa(nb::module_ &m) {
    nb::class_<sofa_set>(m, "SofaSet", "An open set of measured responses. Immutable.")
        .def("__init__", &open_set, nb::arg("path"), nb::arg("rate"))
        .def("positions", &positions, nb::arg("out"))
        .def("nearest", &nearest, nb::arg("at"))
        .def("respond", &respond, nb::arg("at"), nb::arg("interpolate"), nb::arg("by_distance"), nb::arg("out"))
        .def("prepare", &prepare, nb::arg("steps"), nb::arg("inputs"))
        .def_prop_ro("directions", [](const sofa_set &s) { return gpuconv_sofa_directions(s.set.get()); })
        .def_prop_ro("receivers", [](const sofa_set &s) { return gpuconv_sofa_receivers(s.set.get()); })
        .def_prop_ro("rate", [](const sofa_set &s) { return gpuconv_sofa_rate(s.set.get()); })
        .def_prop_ro("frames", [](const sofa_set &s) { return gpuconv_sofa_frames(s.set.get()); })
        .def_prop_ro("lead", [](const sofa_set &s) { return gpuconv_sofa_lead(s.set.get()); })
        .def_prop_ro("title", [](const sofa_set &s) { return std::string(gpuconv_sofa_title(s.set.get())); });
}
