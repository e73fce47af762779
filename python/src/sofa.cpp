// Open sets of measured responses.
#include "calls.h"

#include "settings.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

extern "C" {
#include "libtools/room/room_set.h"
}

namespace {

using positions_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<2>, nb::c_contig, nb::ro>;

void open_set(sofa_set *self, const std::string &path, double rate) {
    new (self) sofa_set{made_by<sofa_owner>(
        [&](gpuconv_sofa **made, gpuconv_error *error) { return gpuconv_sofa_open(path.c_str(), rate, made, error); })};
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
void respond(const sofa_set &self, const positions_in &at, const named_texts &steps,
             const nb::ndarray<float, nb::device::cpu, nb::ndim<2>, nb::c_contig> &out) {
    const settings s(steps);
    run_interruptible([&](gpuconv_error *error) {
        return gpuconv_sofa_respond_turned(self.set.get(), at.data(), (int64_t)at.shape(0), &s.made.preparation,
                                           out.data(), error);
    });
}

response prepare(const sofa_set &self, const named_texts &steps, int inputs) {
    const settings s(steps);
    return {made_by<ir_owner>([&](gpuconv_ir **made, gpuconv_error *error) {
        return gpuconv_sofa_prepare(self.set.get(), &s.made.preparation, inputs, made, error);
    })};
}

using directions_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<3>, nb::c_contig, nb::ro>;
using times_in = nb::ndarray<const double, nb::device::cpu, nb::ndim<1>, nb::c_contig, nb::ro>;

// Where sources move: a file, or rows.
struct moving_path {
    std::unique_ptr<gpuconv_path, deleter<gpuconv_path_free>> path;
};

// Makes a path from a text, a file or a place, by Load.
template <auto Load> moving_path load_path(const std::string &text, int channels) {
    return {made_by<decltype(moving_path::path)>(
        [&](gpuconv_path **made, gpuconv_error *error) { return Load(text.c_str(), channels, made, error); })};
}

// Makes a path from rows, by New.
template <auto New> moving_path make_path(const times_in &seconds, const directions_in &rows) {
    return {made_soon_by<decltype(moving_path::path)>([&](gpuconv_path **made, gpuconv_error *error) {
        return New(seconds.data(), rows.data(), (int64_t)rows.shape(0), (int)rows.shape(1), made, error);
    })};
}

// How a head turns: a file, or rows.
struct turning_head {
    std::unique_ptr<gpuconv_head, deleter<gpuconv_head_free>> head;
};

turning_head load_head(const std::string &name) {
    return {made_by<decltype(turning_head::head)>(
        [&](gpuconv_head **made, gpuconv_error *error) { return gpuconv_head_load(name.c_str(), made, error); })};
}

turning_head make_head(const times_in &seconds, const positions_in &angles) {
    return {made_soon_by<decltype(turning_head::head)>([&](gpuconv_head **made, gpuconv_error *error) {
        return gpuconv_head_new(seconds.data(), angles.data(), (int64_t)angles.shape(0), made, error);
    })};
}

// Feeds `x` to moving sources that `make` makes, and returns the whole result.
template <typename Make> planar_out render(const planar_in &x, const Make &make) {
    const std::vector<const float *> in = rows_of(x);
    std::unique_ptr<gpuconv_motion, deleter<gpuconv_motion_free>> motion;
    memory_owner<float> result;
    size_t receivers = 0;
    int64_t frames = 0;
    run_interruptible([&](gpuconv_error *error) {
        gpuconv_motion *made = nullptr;
        gpuconv_status status = make(&made, error);
        motion.reset(made);
        frames = (int64_t)x.shape(1) + gpuconv_motion_tail(made);
        receivers = (size_t)gpuconv_motion_receivers(made);
        if (!status)
            result.reset((float *)std::calloc(receivers * (size_t)frames, sizeof(float)));
        if (!status && !result)
            return GPUCONV_ERROR_MEMORY;
        int64_t written = 0, got = 0;
        for (int64_t at = 0, block = 0; !status && at <= (int64_t)x.shape(1); at += block) {
            std::vector<const float *> from = in;
            std::vector<float *> to;
            for (const float *&row : from)
                row += at;
            for (size_t r = 0; r < receivers; r++)
                to.push_back(result.get() + r * (size_t)frames + written);
            block = std::min<int64_t>(1 << 16, (int64_t)x.shape(1) - at);
            status = gpuconv_motion_feed(made, from.data(), block, error);
            if (!status)
                status = gpuconv_motion_fetch(made, to.data(), frames - written, &got);
            written += got;
            if (block == 0)
                break;
        }
        return status;
    });
    return make_planar(result.release(), receivers, (size_t)frames);
}

// Moves the channels of `x` before the receivers of a set.
planar_out move(const sofa_set &self, const moving_path &path, const turning_head *head, const planar_in &x,
                const named_texts &given, const dictionary &how) {
    const settings s(given);
    gpuconv_motion_config config = gpuconv_motion_config_default();
    config.interval = s.made.job.interval;
    config.interpolate = s.made.preparation.interpolate;
    config.by_distance = s.made.preparation.by_distance;
    config.doppler = s.made.job.doppler;
    config.decode = s.made.preparation.decode;
    config.diffuse_eq = s.made.preparation.diffuse_eq;
    config.ambisonics = s.made.preparation.ambisonics;
    config.threads = nb::cast<int>(how["threads"]);
    config.backend = (gpuconv_backend)nb::cast<int>(how["backend"]);
    config.device = nb::cast<int>(how["device"]);
    config.head = head ? head->head.get() : nullptr;
    return render(x, [&](gpuconv_motion **made, gpuconv_error *error) {
        return gpuconv_motion_new(self.set.get(), path.path.get(), &config, made, error);
    });
}

// Moves the channels of `x` in the room of a text. paths: of sources and receivers; nullptr: they stay.
// how: rate, interval and threads.
planar_out move_in_room(const std::string &text, const moving_path *path, const moving_path *receivers,
                        const turning_head *head, const planar_in &x, const std::tuple<double, double, int> &how) {
    gpuconv_motion_config config = gpuconv_motion_config_default();
    double rate = 0;
    std::tie(rate, config.interval, config.threads) = how;
    config.head = head ? head->head.get() : nullptr;
    const std::unique_ptr<gc_room_job> room(new gc_room_job);
    run_here(
        [&](gpuconv_error *error) { return gc_room_job_read(text.c_str(), receivers != nullptr, room.get(), error); });
    gpuconv_rooms_job &job = room->job;
    if (!path && (!job.source || job.sources != (int64_t)x.shape(0)))
        throw nb::value_error("room: without a path, source=X,Y,Z is needed for each channel");
    job.frames = std::llrint(std::min((double)job.frames * rate / job.rate, 0x1p30)); // as for files
    job.rate = rate;
    return render(x, [&](gpuconv_motion **made, gpuconv_error *reason) {
        return gpuconv_motion_new_in_room(&job, path ? path->path.get() : nullptr,
                                          receivers ? receivers->path.get() : nullptr, &config, made, reason);
    });
}

} // namespace

void bind_sofa(nb::module_ &m) {
    nb::class_<moving_path>(m, "Path", "Where sources are at any time. Immutable.")
        .def_static("load", &load_path<gpuconv_path_load>, nb::arg("name"), nb::arg("channels"))
        .def_static("make", &make_path<gpuconv_path_new>, nb::arg("seconds"), nb::arg("directions"))
        .def_static("load_in_room", &load_path<gpuconv_path_load_in_room>, nb::arg("name"), nb::arg("channels"))
        .def_static("make_in_room", &make_path<gpuconv_path_new_in_room>, nb::arg("seconds"), nb::arg("places"))
        .def_static("still", &load_path<gpuconv_path_new_still>, nb::arg("place"), nb::arg("channels"));
    nb::class_<turning_head>(m, "Head", "How a head is turned at any time. Immutable.")
        .def_static("load", &load_head, nb::arg("name"))
        .def_static("make", &make_head, nb::arg("seconds"), nb::arg("angles"));
    m.def("move_in_room", &move_in_room, nb::arg("room"), nb::arg("path").none(), nb::arg("receivers").none(),
          nb::arg("head").none(), nb::arg("x"), nb::arg("how"));
    nb::class_<sofa_set>(m, "SofaSet", "An open set of measured responses. Immutable.")
        .def("__init__", &open_set, nb::arg("path"), nb::arg("rate"))
        .def("positions", &positions, nb::arg("out"))
        .def("nearest", &nearest, nb::arg("at"))
        .def("respond", &respond, nb::arg("at"), nb::arg("steps"), nb::arg("out"))
        .def("prepare", &prepare, nb::arg("steps"), nb::arg("inputs"))
        .def("move", &move, nb::arg("path"), nb::arg("head").none(), nb::arg("x"), nb::arg("settings"), nb::arg("how"))
        .def_prop_ro("directions", [](const sofa_set &s) { return gpuconv_sofa_directions(s.set.get()); })
        .def_prop_ro("receivers", [](const sofa_set &s) { return gpuconv_sofa_receivers(s.set.get()); })
        .def_prop_ro("rate", [](const sofa_set &s) { return gpuconv_sofa_rate(s.set.get()); })
        .def_prop_ro("frames", [](const sofa_set &s) { return gpuconv_sofa_frames(s.set.get()); })
        .def_prop_ro("lead", [](const sofa_set &s) { return gpuconv_sofa_lead(s.set.get()); })
        .def_prop_ro("title", [](const sofa_set &s) { return std::string(gpuconv_sofa_title(s.set.get())); });
}
